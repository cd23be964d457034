r"""Gamma distributions of a rate and inverse gamma distributions of a variance: as priors and of many cells.

Model. With X ~ Gamma(a, r) and Y ~ InverseGamma(a, s), the law of 1 / X for r = s,

.. math:: p(x) = \frac{r^a}{\Gamma(a)} x^{a - 1} e^{-r x}, \qquad (1)

.. math:: p(y) = \frac{s^a}{\Gamma(a)} y^{-a - 1} e^{-s / y}. \qquad (2)

Both are conjugate with :math:`\eta = (a, r)` or :math:`(a, s)` and :math:`\log Z = \log \Gamma(a) - a \log
r`.

On the line. With :math:`\delta = \log x - \log(a / r)`, or :math:`\log(s / a) - \log y`, the logarithm has
the density

.. math:: \log f = h(a) - a (e^\delta - 1 - \delta), \qquad h(a) = a \log a - a - \log \Gamma(a), \qquad (3)

with its mode at :math:`\delta = 0` and the curvature a there: the width is :math:`1 / \sqrt a`.

Symbols:

- a: ``concentration``, (n_cells,), > 0, without a unit
- r: ``rate``, (n_cells,), > 0, in one over the unit of x
- s: ``scale``, (n_cells,), > 0, in the unit of y
- x, y: > 0

Method. Moments are closed: E X = a / r, Var X = a / r^2, E Y = s / (a - 1) for a > 1, Var Y = (E Y)^2 / (a -
2) for a > 2, infinite otherwise. Quantiles invert the incomplete gamma ratios P and Q (DLMF 8.2.4), exact but
for rounding. ``gamma_cdf`` is P below ``LARGE`` and (4) of ``distribution.py`` from there on, off by at most
1.0e-4.
"""

# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from suffice.pipeline.math.distributions.distribution import (
    LARGE,
    Coordinate,
    Line,
    OneParameter,
    Prior,
    either,
    excess,
    log_height,
    moment_above,
    require_number,
    root_over,
    times_exp,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.typing import Floats


@dataclass(frozen=True, slots=True, init=False)
class Gamma(Prior):
    r"""Gamma distribution of a rate.

    .. math:: p(x) \propto x^{a - 1} e^{-r x}, \quad x > 0

    The mean is a / r, the variance a / r^2 and, for a >= 1, the mode (a - 1) / r.

    Parameters
    ----------
    concentration : float, > 0
        a: the shape.
    rate : float, > 0
        r, in units of one over the parameter.
    a, scale : float, optional
        The shape and one over the rate, by the names of ``scipy.stats.gamma``.
    """

    concentration: float
    rate: float

    def __init__(
        self,
        concentration: float | None = None,
        rate: float | None = None,
        *,
        a: float | None = None,
        scale: float | None = None,
    ) -> None:
        if scale is not None:
            require_number(self, "scale", scale, positive=True)
        inverse = None if scale is None else 1.0 / scale
        object.__setattr__(self, "concentration", either("Gamma", "concentration", concentration, "a", a))
        object.__setattr__(self, "rate", either("Gamma", "rate", rate, "scale", inverse))
        self.__post_init__()

    def sample(self, size: int, rng: np.random.Generator) -> Floats:
        """Return independent draws, (size,)."""
        return rng.gamma(self.concentration, 1.0 / self.rate, size)

    def distribution(self) -> GammaDistribution:
        """Return it as the distribution of one cell."""
        return GammaDistribution(**self._of_one_cell())


@dataclass(frozen=True, slots=True, kw_only=True)
class GammaDistribution(OneParameter):
    """Gamma distributions of one parameter.

    Attributes
    ----------
    concentration, rate : ndarray of shape (n_cells,), float64
        As in ``Gamma``.
    name : str
        The parameter's.
    """

    _natural: ClassVar = ("concentration", "rate")

    concentration: Floats
    rate: Floats
    name: str = "rate"

    def mean(self, parameter: str) -> Floats:
        """Means, a / r."""
        return self.concentration / self.rate

    def sd(self, parameter: str) -> Floats:
        """Standard deviations, sqrt(a) / r."""
        return np.sqrt(self.concentration) / self.rate

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Exact quantiles: P(a, r x) = q, solved for x."""
        from scipy.special import gammaincinv

        # P(a, r x) = q.
        quantiles: Floats = gammaincinv(self.concentration[:, None], np.asarray(q)) / self.rate[:, None]
        return quantiles

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent joint draws."""
        size = (draws, len(self.rate))
        return {self.name: rng.standard_gamma(self.concentration, size) / self.rate}

    def log_normaliser(self) -> Floats:
        """Return log Z = log Gamma(a) - a log r."""
        return gamma_log_normaliser(self.concentration, self.rate)

    def coordinate(self) -> Coordinate:
        """Return the logarithm, of density (3)."""
        concentration, rate = self.concentration, self.rate
        return Coordinate(
            centre=np.log(concentration / rate),
            width=1.0 / np.sqrt(concentration),
            cdf=lambda position: gamma_cdf(concentration, times_exp(rate, position)),
            log_density=lambda position: log_gamma(concentration, position - np.log(concentration / rate)),
            line=Line.LOGARITHM,
        )


@dataclass(frozen=True, slots=True, init=False)
class InverseGamma(Prior):
    r"""Inverse gamma distribution of a variance.

    .. math:: p(x) \propto x^{-a - 1} e^{-s / x}, \quad x > 0

    The mean is s / (a - 1) for a > 1, the variance its square over a - 2 for a > 2, the mode s / (a + 1).

    Parameters
    ----------
    concentration : float, > 0
        a: the shape.
    scale : float, > 0
        s, in units of the parameter.
    a : float, optional
        The shape, by the name of ``scipy.stats.invgamma``.
    """

    concentration: float
    scale: float

    def __init__(
        self, concentration: float | None = None, scale: float | None = None, *, a: float | None = None
    ) -> None:
        object.__setattr__(
            self, "concentration", either("InverseGamma", "concentration", concentration, "a", a)
        )
        object.__setattr__(self, "scale", either("InverseGamma", "scale", scale, "scale", None))
        self.__post_init__()

    def sample(self, size: int, rng: np.random.Generator) -> Floats:
        """Return independent draws, (size,)."""
        draws: Floats = self.scale / rng.standard_gamma(self.concentration, size)
        return draws

    def distribution(self) -> InverseGammaDistribution:
        """Return it as the distribution of one cell."""
        return InverseGammaDistribution(**self._of_one_cell())


@dataclass(frozen=True, slots=True, kw_only=True)
class InverseGammaDistribution(OneParameter):
    """Inverse gamma distributions of one parameter.

    Attributes
    ----------
    concentration, scale : ndarray of shape (n_cells,), float64
        As in ``InverseGamma``.
    name : str
        The parameter's.
    """

    _natural: ClassVar = ("concentration", "scale")

    concentration: Floats
    scale: Floats
    name: str = "variance"

    def mean(self, parameter: str) -> Floats:
        """Means, s / (a - 1); infinite for a <= 1."""
        return moment_above(1.0, self.concentration, self.scale, self.concentration - 1.0)

    def sd(self, parameter: str) -> Floats:
        """Standard deviations, the mean over sqrt(a - 2); infinite for a <= 2."""
        root = np.sqrt(np.maximum(self.concentration - 2.0, 0.0))
        # Var Y = (E Y)^2 / (a - 2).
        return moment_above(2.0, self.concentration, self.mean(parameter), root)

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Exact quantiles: Q(a, s / y) = q, solved for y."""
        from scipy.special import gammainccinv

        # Q(a, s / y) = q: Y is small where 1 / Y is large.
        gammas = gammainccinv(self.concentration[:, None], np.asarray(q))
        with np.errstate(divide="ignore", over="ignore"):
            quantiles: Floats = self.scale[:, None] / gammas
        return quantiles

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent draws; infinite beyond the largest number."""
        gammas = rng.standard_gamma(self.concentration, (draws, len(self.scale)))
        with np.errstate(divide="ignore", over="ignore"):
            return {self.name: self.scale / gammas}

    def log_normaliser(self) -> Floats:
        """Return log Z = log Gamma(a) - a log s."""
        return gamma_log_normaliser(self.concentration, self.scale)

    def coordinate(self) -> Coordinate:
        """Return the logarithm, of density (3)."""
        concentration, scale = self.concentration, self.scale
        return Coordinate(
            centre=np.log(scale / concentration),
            width=1.0 / np.sqrt(concentration),
            # P(Y <= y) = P(1 / Y >= 1 / y).
            cdf=lambda position: 1.0 - gamma_cdf(concentration, times_exp(scale, -position)),
            log_density=lambda position: log_gamma(concentration, np.log(scale / concentration) - position),
            line=Line.LOGARITHM,
        )


def gamma_log_normaliser(concentration: Floats, rate: Floats) -> Floats:
    """Return the log of the integral of x^(a - 1) exp(-r x)."""
    from scipy.special import gammaln

    log_z: Floats = gammaln(concentration) - concentration * np.log(rate)
    return log_z


def log_gamma(concentration: Floats, delta: Floats) -> Floats:
    """Log density of the logarithm of a gamma at this distance from its mode: large numbers cancel."""
    with np.errstate(over="ignore"):
        # e^delta - 1 - delta without the cancellation of large a log r.
        deviance = np.expm1(delta) - delta
    return log_height(concentration) - concentration * deviance


def gamma_cdf(concentration: Floats, value: Floats) -> Floats:
    """Probability that a standard gamma is below a value."""
    from scipy.special import gammainc, ndtr

    a, x = np.maximum(concentration, LARGE), np.maximum(value, 1e-300)
    # Peizer and Pratt for the gamma: s = a - 1/2, g = x - s, D = 2 (x - s - s log(x / s)) and d = x - a + 1/3
    # - 0.02 / a.
    s = a - 0.5
    deviance = 2.0 * s * excess((x - s) / s)
    d = x - a + 1.0 / 3.0 - 0.02 / a
    result: Floats = ndtr(d * root_over(deviance, x - s, np.sqrt(s)))
    small = np.flatnonzero(concentration < LARGE)
    # Few and wide ones: P of DLMF 8.2.4 itself.
    result[small] = gammainc(concentration[small], value[small])
    return result
