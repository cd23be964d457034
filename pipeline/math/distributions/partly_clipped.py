"""Distributions of cells of which some model clipping and the others need not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from suffice.pipeline.math.distributions.composite import from_draws

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.typing import Floats, Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class PartlyClipped:
    """Parameters in cells some of which model clipping.

    Attributes
    ----------
    plain : Distribution
        Of all cells, without clipping.
    clipped : Distribution
        Of the cells that model it, in their order.
    modelled : ndarray of shape (n_cells,), bool
        Which they are.
    """

    plain: Distribution
    clipped: Distribution
    modelled: Mask

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.plain.parameters

    def mean(self, parameter: str) -> Floats:
        """Means."""
        return self._joined(self.plain.mean(parameter), self.clipped.mean(parameter))

    def sd(self, parameter: str) -> Floats:
        """Posterior standard deviations."""
        return self._joined(self.plain.sd(parameter), self.clipped.sd(parameter))

    @property
    def is_from_draws(self) -> bool:
        """Whether quantiles of some cells are those of draws."""
        return from_draws(self.plain) or from_draws(self.clipped)

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Quantiles; they rest on draws only where those of the cells without clipping do."""
        plain, clipped = (
            distribution.quantiles(parameter, q, draws, rng) for distribution in (self.plain, self.clipped)
        )
        return self._joined(plain.T, clipped.T).T

    def density(self, parameter: str, points: Floats) -> Floats | None:
        """Marginal densities."""
        plain = self.plain.density(parameter, points)
        clipped = self.clipped.density(parameter, points[self.modelled])
        return None if plain is None or clipped is None else self._joined(plain.T, clipped.T).T

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent draws."""
        plain, clipped = (distribution.sample(draws, rng) for distribution in (self.plain, self.clipped))
        return {name: self._joined(plain[name], clipped[name]) for name in self.parameters}

    def _joined(self, plain: Floats, clipped: Floats) -> Floats:
        joined = plain.copy()
        joined[..., self.modelled] = clipped
        return joined
