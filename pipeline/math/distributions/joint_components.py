r"""Mixtures of normal inverse gamma distributions of a mean and a variance, beside a region.

Model. Nodes i of a quadrature have weights w_i and, given one,

.. math:: \sigma^2 \sim \mathrm{IG}(a_i, b_i), \qquad
    \mu \mid \sigma^2 \sim \mathrm{Normal}\bigl(m_i, \sqrt{\sigma^2 / \kappa_i}\bigr). \qquad (1)

Nodes of a box stand for their part of it: their widths may be larger than those of (1). So a component has
the location and the width of the mean and of the variance's logarithm, from which a, b and kappa follow, and
the degrees of freedom of the mean's Student distribution beside them.

The region is that of records within -1..1, and S_i its probability given a component:

.. math:: |\mu| \le \sqrt{1 - \sigma^2}, \qquad S_i = P(A \mid i). \qquad (2)

Symbols:

- w: ``weight``; m: ``loc``; log(b / a): ``log_ratio``; 1 / sqrt(a): ``log_width``, (n_components,)
- sqrt(b / (a kappa)): ``width``; 2 a of nodes: ``degrees``, (n_components,)
- S: ``inside``, (n_components,)

Method. Closed forms. S_i is by three Gauss points in the logarithm of the variance: it says which components
matter, and has no part in results.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

import numpy as np

from suffice.pipeline.math.distributions.gamma import gamma_cdf
from suffice.pipeline.math.distributions.normal import log_student

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.typing import Floats, Mask, Rows


_LARGEST = 600.0
"""Whose exponential is a number."""
_NEXT_TO_NONE = 1e-290
"""Stands for a spread of 0."""
_MANY = 1e4
"""Concentrations from which on log gammas would cancel."""
_POINTS, _SHARES = np.polynomial.hermite_e.hermegauss(3)
_SHARES = _SHARES / np.sum(_SHARES)


@dataclass(frozen=True, slots=True, kw_only=True)
class JointComponents:
    """Components of one cell, in half ranges about the middle of the region.

    Attributes
    ----------
    weight : ndarray of shape (n_components,), float64
        They sum to 1 before any are left out.
    loc, width, degrees : ndarray of shape (n_components,), float64
        Of the mean: Student's t.
    log_ratio, log_width : ndarray of shape (n_components,), float64
        Of the variance, an inverse gamma: log(scale / concentration), and one over the root of the latter.
    """

    weight: Floats
    loc: Floats
    width: Floats
    degrees: Floats
    log_ratio: Floats
    log_width: Floats

    def take(self, rows: Rows | Mask | slice) -> Self:
        """Return some components."""
        return type(self)(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})

    def moved(self, shift: float, factor: float) -> Self:
        """Return those of the parameters after a linear map of the records."""
        return replace(
            self,
            loc=shift + factor * self.loc,
            width=factor * self.width,
            log_ratio=self.log_ratio + 2.0 * np.log(factor),
        )

    def slices(self, log_variance: Floats) -> Floats:
        """P(|mu| <= sqrt(1 - sigma^2)) given variances, in the order of the components."""
        from scipy.special import ndtr

        reach = np.sqrt(np.maximum(-np.expm1(log_variance), 0.0))
        # mu given sigma^2 is normal, of variance sigma^2 / kappa.
        spread = np.maximum(self.width * np.exp((log_variance - self.log_ratio) / 2.0), _NEXT_TO_NONE)
        # The nearer end first: far out nothing cancels.
        away = np.abs(self.loc)
        share: Floats = ndtr((reach - away) / spread) - ndtr((-reach - away) / spread)
        return np.where(log_variance < 0.0, share, 0.0)

    def inside(self) -> Floats:
        """About the probability of the region given each component."""
        share = np.zeros(len(self.weight))
        for point, part in zip(_POINTS.tolist(), _SHARES.tolist(), strict=True):
            share += part * self.slices(self.log_ratio + point * self.log_width)
        return share

    def room(self, mean: Floats) -> Floats:
        """P(sigma^2 <= 1 - mu^2) given means, in the order of the components."""
        a = self.log_width**-2
        # sigma^2 given mu is an inverse gamma again: b + kappa (mu - m)^2 / 2, with kappa = b / (a width^2).
        scale = np.exp(self.log_ratio) * (a + ((mean - self.loc) / self.width) ** 2 / 2.0)
        most = np.maximum((1.0 - mean) * (1.0 + mean), np.finfo(np.float64).tiny)
        with np.errstate(over="ignore"):
            below = gamma_cdf(a + 0.5, np.minimum(scale / most, 1e300))
        return 1.0 - below

    def line(self, *, is_variance: bool) -> tuple[Floats, Floats]:
        """Return locations and widths of the mean, or of the variance's logarithm."""
        return (self.log_ratio, self.log_width) if is_variance else (self.loc, self.width)

    def log_density(self, at: Floats, *, is_variance: bool) -> Floats:
        """Log densities of the mean, or of the variance's logarithm, in the order of the components."""
        if not is_variance:
            return log_student(self.degrees, self.loc, self.width, at)
        from scipy.special import gammaln

        a, away = self.log_width**-2, at - self.log_ratio
        # Stirling's series where a is large: a (log a - 1) - log Gamma(a) cancels there.
        constant = np.where(a > _MANY, np.log(a / (2.0 * np.pi)) / 2.0, a * (np.log(a) - 1.0) - gammaln(a))
        # -a (y + e^-y - 1).
        return np.asarray(constant - a * (np.expm1(np.minimum(-away, _LARGEST)) + away))


@runtime_checkable
class KnowsComponents(Protocol):
    """A distribution of means and variances that is known as a mixture."""

    def joint_components(self, centre: float, half_range: float) -> Iterator[JointComponents]:
        """Yield the components of every cell, in such half ranges about a centre."""
