r"""Mixtures of normal-inverse-gamma priors on the grid of means and log variances; see ``prior_on_grid``.

With x the mean and :math:`\lambda` the log variance, in half ranges, a component is

.. math::
    \frac{w \sqrt k\, b^a}{\Gamma(a)}
    \exp\bigl(-(a + 1/2) \lambda - (b + k (x - m)^2 / 2) e^{-\lambda}\bigr)

Components of one m, one a and one k / b, as those that are spread over scales, differ by b alone. Their sum
is a function of :math:`u = \log(1 + (k / 2 b) (x - m)^2) - \lambda`, and a table of its logarithm is enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.math.priors.mixtures import Mixture

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from suffice.pipeline.math.distributions.normal_inverse_gamma import NormalInverseGamma
    from suffice.typing import Floats


_DEEPEST = 1e300
_PER_UNIT = 1024.0
"""Entries of the table for each unit of u: off by less than 1e-7 times what the last component falls."""
_CONSTANT, _ALONE = 1e-12, 700.0
"""Exponents of the largest and of the smallest b at which the table begins and ends."""
_SAME = 1e-12
_LONGEST = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class ConjugatesOnGrid:
    """Components of a mixture, of one perhaps, in half ranges; all arrays (n,).

    Attributes
    ----------
    loc, precision, concentration, scale : ndarray, float64
    log_height : ndarray, float64
        Log weights and constants.
    start : float
        Where the table begins, if the components differ by their scales alone.
    table : ndarray of shape (n_entries,), float64, or None
        Logs of the sum, less what depends on the log variance alone.
    """

    loc: Floats
    precision: Floats
    concentration: Floats
    scale: Floats
    log_height: Floats
    start: float
    table: Floats | None = field(repr=False)

    @classmethod
    def of(cls, prior: NormalInverseGamma | Mixture, centre: float, half_range: float) -> Self:
        """Take the components, and lay out a table where there may be one."""
        from scipy.special import gammaln

        parts: Sequence[Any] = prior.components if isinstance(prior, Mixture) else (prior,)
        weights = np.array(prior.weights if isinstance(prior, Mixture) else (1.0,))
        loc, precision, concentration, scale = np.array(
            [
                ((one.loc - centre) / half_range, one.precision, one.concentration, one.scale / half_range**2)
                for one in parts
            ]
        ).T
        log_height = np.log(weights) + np.log(precision) / 2.0
        log_height += concentration * np.log(scale) - gammaln(concentration)
        start, table = 0.0, None
        alike = (loc, concentration, np.log(precision / scale))
        if len(parts) > 1 and all(
            np.ptp(values) <= _SAME * (1.0 + np.max(np.abs(values))) for values in alike
        ):
            start, end = math.log(_CONSTANT / np.max(scale)), math.log(_ALONE / np.min(scale))
            count = math.ceil((end - start) * _PER_UNIT) + 1
            if count <= _LONGEST:
                table = np.full(count, -np.inf)
                growth = np.exp(start + np.arange(count) / _PER_UNIT)
                for height, b in zip(log_height, scale, strict=True):
                    np.logaddexp(table, height - b * growth, out=table)
        return cls(
            loc=loc,
            precision=precision,
            concentration=concentration,
            scale=scale,
            log_height=log_height,
            start=start,
            table=table,
        )

    def log_density(self, first: Floats, second: Floats) -> Floats:
        """Log densities at positions (n, p) and (n, q), but for a constant: (n, p, q)."""
        if self.table is not None:
            return self._from_table(self.table, first, second)
        per_variance = np.exp(-second)[:, None, :]
        of_each = np.empty((len(self.loc), len(first), first.shape[1], second.shape[1]))
        parts = (self.log_height, self.loc, self.precision, self.concentration, self.scale)
        for own, height, m, k, a, b in zip(of_each, *parts, strict=True):
            np.multiply((b + k / 2.0 * (first - m) ** 2)[:, :, None], -per_variance, out=own)
            np.add(own, (height - (a + 0.5) * second)[:, None, :], out=own)
        top = np.maximum(np.max(of_each, axis=0), -_DEEPEST)
        of_each -= top
        with np.errstate(divide="ignore"):
            mixed: Floats = top + np.log(np.sum(np.exp(of_each, out=of_each), axis=0))
        return mixed

    def _from_table(self, table: Floats, first: Floats, second: Floats) -> Floats:
        """The same, where components differ by their scales alone."""
        ratio = self.precision[0] / (2.0 * self.scale[0])
        growth = np.log1p(ratio * (first - self.loc[0]) ** 2)[:, :, None] - second[:, None, :]
        place = (growth - self.start) * _PER_UNIT
        index = np.clip(place, 0.0, len(table) - 2.0).astype(np.int64)
        low = table[index]
        found: Floats = table[index + 1] - low
        found *= np.clip(place - index, 0.0, 1.0)
        found += low
        beyond = place > len(table) - 1.0
        if np.any(beyond):
            # The smallest scale is left alone.
            last = int(np.argmin(self.scale))
            found[beyond] = np.maximum(
                self.log_height[last] - self.scale[last] * np.exp(growth[beyond]), -_DEEPEST
            )
        found -= ((self.concentration[0] + 0.5) * second)[:, None, :]
        return found
