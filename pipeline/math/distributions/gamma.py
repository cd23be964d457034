"""The gamma distribution of a rate: as a prior, and of many cells as their posterior.

The inverse gamma distribution of a variance: as a prior, and of many cells as their posterior.
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
    excess,
    log_height,
    moment_above,
    root_over,
    times_exp,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.typing import Floats


@dataclass(frozen=True, slots=True)
class Gamma(Prior):
    r"""Gamma distribution of a rate.

    .. math:: p(x) \propto x^{a - 1} e^{-r x}

    Parameters
    ----------
    concentration : float, > 0
        a: the shape.
    rate : float, > 0
        r, in units of one over the parameter; the mean is a / r.
    """

    concentration: float
    rate: float

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
        """Means."""
        return self.concentration / self.rate

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        return np.sqrt(self.concentration) / self.rate

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Exact quantiles."""
        from scipy.special import gammaincinv

        quantiles: Floats = gammaincinv(self.concentration[:, None], np.asarray(q)) / self.rate[:, None]
        return quantiles

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent joint draws."""
        size = (draws, len(self.rate))
        return {self.name: rng.standard_gamma(self.concentration, size) / self.rate}

    def log_normaliser(self) -> Floats:
        """Return the log of the normaliser, up to a constant."""
        return gamma_log_normaliser(self.concentration, self.rate)

    def coordinate(self) -> Coordinate:
        """Return the logarithm."""
        concentration, rate = self.concentration, self.rate
        return Coordinate(
            centre=np.log(concentration / rate),
            width=1.0 / np.sqrt(concentration),
            cdf=lambda position: gamma_cdf(concentration, times_exp(rate, position)),
            log_density=lambda position: log_gamma(concentration, position - np.log(concentration / rate)),
            line=Line.LOGARITHM,
        )


@dataclass(frozen=True, slots=True)
class InverseGamma(Prior):
    r"""Inverse gamma distribution of a variance.

    .. math:: p(x) \propto x^{-a - 1} e^{-s / x}

    Parameters
    ----------
    concentration : float, > 0
        a: the shape.
    scale : float, > 0
        s, in units of the parameter; the mean is s / (a - 1) for a > 1.
    """

    concentration: float
    scale: float

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
        """Means; infinite where there is none."""
        return moment_above(1.0, self.concentration, self.scale, self.concentration - 1.0)

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations; infinite where there is none."""
        root = np.sqrt(np.maximum(self.concentration - 2.0, 0.0))
        return moment_above(2.0, self.concentration, self.mean(parameter), root)

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Exact quantiles."""
        from scipy.special import gammainccinv

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
        """Return the log of the normaliser, up to a constant."""
        return gamma_log_normaliser(self.concentration, self.scale)

    def coordinate(self) -> Coordinate:
        """Return the logarithm."""
        concentration, scale = self.concentration, self.scale
        return Coordinate(
            centre=np.log(scale / concentration),
            width=1.0 / np.sqrt(concentration),
            cdf=lambda position: 1.0 - gamma_cdf(concentration, times_exp(scale, -position)),
            log_density=lambda position: log_gamma(concentration, np.log(scale / concentration) - position),
            line=Line.LOGARITHM,
        )


def gamma_log_normaliser(concentration: Floats, rate: Floats) -> Floats:
    """Return the log of the integral of x^(a - 1) exp(-r x)."""
    from scipy.special import gammaln

    log_z: Floats = gammaln(concentration) - concentration * np.log(rate)
    return log_z


def log_gamma(concentration: Floats, distance: Floats) -> Floats:
    """Log density of the logarithm of a gamma at this distance from its mode: large numbers cancel."""
    with np.errstate(over="ignore"):
        deviance = np.expm1(distance) - distance
    return log_height(concentration) - concentration * deviance


def gamma_cdf(concentration: Floats, value: Floats) -> Floats:
    """Probability that a standard gamma is below a value."""
    from scipy.special import gammainc, ndtr

    a, x = np.maximum(concentration, LARGE), np.maximum(value, 1e-300)
    half = a - 0.5
    deviance = 2.0 * half * excess((x - half) / half)
    distance = x - a + 1.0 / 3.0 - 0.02 / a
    result: Floats = ndtr(distance * root_over(deviance, x - half, np.sqrt(half)))
    small = np.flatnonzero(concentration < LARGE)
    result[small] = gammainc(concentration[small], value[small])
    return result
