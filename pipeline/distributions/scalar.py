"""Distributions of one real parameter over many cells, beside the gamma of `conjugate.py`."""

# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.typing import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalDistribution:
    """Normal distributions of a mean.

    Attributes
    ----------
    loc, scale : ndarray of shape (n_cells,), float64
        As in ``Normal``.
    """

    loc: Floats
    scale: Floats

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return ("mean",)

    def mean(self, parameter: str) -> Floats:
        """Means."""
        return self.loc

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        return self.scale

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Exact quantiles."""
        from scipy.special import ndtri  # noqa: PLC0415 - slow to import

        quantiles: Floats = self.loc[:, None] + self.scale[:, None] * ndtri(np.asarray(q))
        return quantiles

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent draws."""
        size = (draws, len(self.loc))
        return {"mean": self.loc + self.scale * rng.standard_normal(size)}


@dataclass(frozen=True, slots=True, kw_only=True)
class InverseGammaDistribution:
    """Inverse gamma distributions of one parameter.

    Attributes
    ----------
    concentration, scale : ndarray of shape (n_cells,), float64
        As in ``InverseGamma``.
    name : str
        The parameter's.
    """

    concentration: Floats
    scale: Floats
    name: str

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return (self.name,)

    def mean(self, parameter: str) -> Floats:
        """Means; infinite where there is none."""
        over = self.concentration - 1.0
        return np.divide(self.scale, over, out=np.full_like(self.scale, np.inf), where=over > 0.0)

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations; infinite where there is none."""
        over = self.concentration - 2.0
        root = np.sqrt(np.maximum(over, 0.0))
        return np.divide(self.mean(parameter), root, out=np.full_like(self.scale, np.inf), where=over > 0.0)

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Exact quantiles."""
        from scipy.special import gammainccinv  # noqa: PLC0415 - slow to import

        gammas = gammainccinv(self.concentration[:, None], np.asarray(q))
        with np.errstate(divide="ignore", over="ignore"):
            quantiles: Floats = self.scale[:, None] / gammas
        return quantiles

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent draws; infinite beyond the largest number."""
        gammas = rng.standard_gamma(self.concentration, (draws, len(self.scale)))
        with np.errstate(divide="ignore", over="ignore"):
            return {self.name: self.scale / gammas}
