"""Equally weighted mixtures of conjugate distributions, one for every draw of latent statistics."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from suffice.pipeline.math.distributions.composite import Draws

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.math.distributions.distribution import DistributionOfCells
    from suffice.typing import Cells, Floats, Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class ConjugateMixture(Draws):
    """A mixture of conjugate distributions in every cell, each given one state of the latent statistics.

    Means and standard deviations are those of the mixture; draws take a state and draw from its
    distribution.

    Attributes
    ----------
    conditional : DistributionOfCells
        Given every state, state by state and then cell by cell.
    n_states, n_cells : int
    diagnostics : dict of str to int, float or str
        How the states were drawn, and how many of them count.
    in_turn : bool
        Whether no state comes back before all have been taken, in all cells at once; else every draw in
        every cell takes one at random.
    """

    conditional: DistributionOfCells
    n_states: int
    n_cells: int
    diagnostics: Mapping[str, Any]
    in_turn: bool

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.conditional.parameters

    @property
    def components(self) -> Mapping[str, tuple[str, ...]]:
        """What each parameter is of, where it is of several."""
        components: Mapping[str, tuple[str, ...]] = getattr(self.conditional, "components", {})
        return components

    def take(self, cells: Cells) -> Self:
        """Return the mixture of some cells."""
        rows = (np.arange(self.n_states)[:, None] * self.n_cells + cells).ravel()
        return replace(self, conditional=self.conditional.at(rows), n_cells=len(cells))

    def mean(self, parameter: str) -> Floats:
        """Means, averaged over the conditional distributions' own."""
        mean: Floats = self._by_state(self.conditional.mean(parameter)).mean(axis=0)
        return mean

    def sd(self, parameter: str) -> Floats:
        """Standard deviations, from the conditional distributions' own."""
        within = np.mean(self._by_state(self.conditional.sd(parameter)) ** 2, axis=0)
        sd: Floats = np.sqrt(within + self._by_state(self.conditional.mean(parameter)).var(axis=0))
        return sd

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Joint draws."""
        parts = []
        for states in self._chosen(draws, rng):
            taken = np.arange(self.n_cells) + states * self.n_cells
            drawn = self.conditional.at(taken.ravel()).sample(1, rng)
            parts.append(
                {name: values[0].reshape(*taken.shape, *values.shape[2:]) for name, values in drawn.items()}
            )
        return {name: np.concatenate([part[name] for part in parts]) for name in self.parameters}

    def _chosen(self, draws: int, rng: np.random.Generator) -> list[Rows]:
        """States to draw from, (n, n_cells) or one for all cells (n, 1)."""
        if not self.in_turn:
            return [rng.integers(0, self.n_states, (draws, self.n_cells))]
        chosen = states_in_turn(self.n_states, draws, rng)[:, None]
        return [chosen[start : start + self.n_states] for start in range(0, draws, self.n_states)]

    def _by_state(self, values: Floats) -> Floats:
        return values.reshape(self.n_states, self.n_cells, *values.shape[1:])


def states_in_turn(n_states: int, draws: int, rng: np.random.Generator) -> Rows:
    """Return the states that draws take, (draws,); none comes back before all have been taken."""
    return np.concatenate([rng.permutation(n_states) for _ in range(-(-draws // n_states))])[:draws]
