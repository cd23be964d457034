"""The inverse gamma distribution of a variance: as a prior, and of many cells as their posterior."""

# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from suffice.pipeline.math.distributions.distribution import (
    Coordinate,
    Line,
    OneParameter,
    Prior,
    moment_above,
    times_exp,
)
from suffice.pipeline.math.distributions.gamma import gamma_cdf, gamma_log_normaliser, log_gamma

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.typing import Floats


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
