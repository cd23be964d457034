"""Metropolis chains of latent tables, over many cells and chains at once.

What is proposed to all chains at a time is the same, but for how many rows; whether they accept is their own
affair. So given the proposals chains are independent of each other.
"""

from __future__ import annotations

import math
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.engines.network.moves import disjoint_moves, kinds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.math.engines.network.connected import Scope
    from suffice.pipeline.math.engines.network.log_posterior import Network
    from suffice.pipeline.math.engines.network.moves import Moves
    from suffice.typing import Floats, Rows


ACCEPTED = 0.3
"""The share of accepted moves that their sizes are tuned for."""
_RARELY = 0.02
"""Moves at several combinations that are accepted less often in every cell are left out after the warm-up."""
_MEMORY = 0.05
_LEAST_SIZE, _MOST_SIZE = 0.25, 1e15
_LEAST_WEIGHT = 0.1
_LENGTHS = (1.0, 0.1)
"""Factors of the tuned length, for sets of moves in turn: rows with few counts need short moves."""


class Chains:
    """The latent tables of all chains, and how far they move.

    Parameters
    ----------
    network : Network
    noisy : sequence of sequence of (mapping of Scope to ndarray of shape (size, n_cells), float)
        Of every data set, released tables and the scale of their noise; several where several releases are
        of the same data.
    start : sequence of ndarray of shape (n_own, n_cells * n_chains), float64
        Counts of all margins of every data set, the chains of a cell side by side.
    rng : numpy.random.Generator
    """

    def __init__(
        self,
        network: Network,
        noisy: Sequence[Sequence[tuple[Mapping[Scope, Floats], float]]],
        start: Sequence[Floats],
        rng: np.random.Generator,
    ) -> None:
        self._network, self._rng = network, rng
        self._kinds = kinds(network)
        self._n_cells = next(iter(noisy[0][0][0].values())).shape[1]
        self._n_chains = start[0].shape[1] // self._n_cells
        total = np.sum(start, axis=0)
        self._counts = np.concatenate([*start, total] if len(start) > 1 else start)
        self._noisy = [
            (np.zeros_like(self._counts), np.zeros((network.n_entries, 1))) for _ in max(noisy, key=len)
        ]
        for number, observations in enumerate(noisy):
            for (observed, rate), (tables, scale) in zip(self._noisy, observations, strict=False):
                for scope, table in tables.items():
                    observed[network.within(scope, number)] = np.repeat(table, self._n_chains, axis=1)
                    rate[network.within(scope, number)] = 1.0 / scale
        everything = network.sites(np.arange(network.n_entries))
        self._densities = network.log_density(everything, self._counts, self._noisy)
        rows = self._per_cell(np.array([own[network.starts[()]] for own in start])) + 1.0
        self._shares = np.repeat(rows / rows.max(axis=0), self._n_chains, axis=1)[:, None]
        scale = math.hypot(*(observations[0][1] for observations in noisy))
        # Entries that hold something are picked more often; they are known from where all chains start.
        averages = {clique: total[network.within(clique)].mean(axis=1) for clique in network.tree.cliques}
        self._log_weights = {
            clique: np.log(average / (average + 2.0 * scale) + _LEAST_WEIGHT)
            for clique, average in averages.items()
        }
        self._moves: list[list[Moves]] = [[] for _ in self._kinds]
        self._sizes = np.full((len(self._kinds), self._n_cells), max(scale, 1.0))
        self._accepted = np.zeros((len(self._kinds), self._n_cells))

    def warm_up(self, sweeps: int) -> None:
        """Sweep, and tune how far moves go; then leave out those that are hardly ever accepted."""
        for sweep in range(sweeps):
            self._sweep(2.0 / np.sqrt(sweep + 4.0))
            np.clip(self._sizes, _LEAST_SIZE, _MOST_SIZE, out=self._sizes)
        kept = [
            number
            for number, kind in enumerate(self._kinds)
            if kind.width == 1 or self._accepted[number].max() > _RARELY
        ]
        self._kinds = [self._kinds[number] for number in kept]
        self._sizes, self._accepted = self._sizes[kept], self._accepted[kept]
        self._moves = [self._moves[number] for number in kept]

    def run(self, iterations: int, thin: int) -> NDArray[Any]:
        """Return tables as released, of every `thin` sweeps, (iterations, n_chains, n_cells, n_entries).

        They are as small integers as hold them; of several data sets, sums.
        """
        kept = []
        for _ in range(iterations):
            for _ in range(thin):
                self._sweep(0.0)
            tables = self._released()
            narrow = np.int32 if tables.max() <= np.iinfo(np.int32).max else np.int64
            by_cell = tables.reshape(-1, self._n_cells, self._n_chains).astype(narrow)
            kept.append(by_cell.transpose(2, 1, 0))
        return np.array(kept)

    def keep(self, cells: Rows) -> None:
        """Go on with some of the cells."""
        columns = (cells[:, None] * self._n_chains + np.arange(self._n_chains)).ravel()
        self._n_cells = len(cells)
        self._counts, self._densities = self._counts[:, columns], self._densities[:, columns]
        self._noisy = [(observed[:, columns], rate) for observed, rate in self._noisy]
        self._shares = self._shares[..., columns]
        self._sizes, self._accepted = self._sizes[:, cells], self._accepted[:, cells]

    def _released(self) -> Floats:
        tables = []
        for scope, positions in zip(self._network.scopes, self._network.positions, strict=True):
            counts = self._counts[self._network.within(scope, -1)]
            table = np.empty_like(counts)
            table[positions] = counts
            tables.append(table)
        return np.concatenate(tables)

    def _sweep(self, rate: float) -> None:
        """Propose moves of every kind, of which one set is new and the oldest is forgotten."""
        for number, kind in enumerate(self._kinds):
            moves = self._moves[number]
            moves.append(disjoint_moves(kind, self._network, self._log_weights, self._rng))
            del moves[: -kind.times]
            for proposed, length in zip(moves, cycle(_LENGTHS), strict=False):
                share = self._propose(proposed, length * self._sizes[number])
                if rate and length == 1.0:
                    self._sizes[number] *= np.exp(rate * (share - ACCEPTED))
                    self._accepted[number] += _MEMORY * (share - self._accepted[number])

    def _propose(self, moves: Moves, sizes: Floats) -> Floats:
        """Propose disjoint moves; return the share accepted in each cell."""
        shape = (len(moves.starts), self._counts.shape[1])
        uniform = 1.0 - 2.0 * self._rng.random(shape)
        length = -np.log(np.maximum(np.abs(uniform), 1e-300)) * np.repeat(sizes, self._n_chains)
        k = np.copysign(1.0 + np.floor(length), uniform)
        if moves.together:
            own = np.rint(self._shares * k)
            k = np.concatenate([*own, own.sum(axis=0)])
        sites, entries = moves.sites, moves.sites.entries
        old_counts, old_densities = self._counts[entries], self._densities[entries]
        counts = old_counts + moves.factors * k[moves.steps]
        densities = self._network.log_density(
            sites, counts, [(observed[entries], rate[entries]) for observed, rate in self._noisy]
        )
        gain = np.add.reduceat(densities - old_densities, moves.starts, axis=0)
        accepted = gain > -self._rng.standard_exponential(shape)
        taken = accepted[moves.of_entry]
        self._counts[entries] = np.where(taken, counts, old_counts)
        self._densities[entries] = np.where(taken, densities, old_densities)
        share: Floats = self._per_cell(accepted).mean(axis=0)
        return share

    def _per_cell(self, values: NDArray[Any]) -> Floats:
        """Average (n, n_cells * n_chains) over the chains of a cell."""
        mean: Floats = values.reshape(len(values), self._n_cells, -1).mean(axis=2)
        return mean
