r"""Metropolis chains of latent tables that agree on their margins; see ``table_network`` for the density.

What is proposed to all chains at a time is the same, but for how many rows; whether they accept is
independent: given the proposals, so are chains. With a symmetric k,

.. math:: P(\text{accept}) = \min(1, P(n' \mid z) / P(n \mid z)) \qquad (1)

By arrays, or in the compiled loops of ``table_kernel``, which make the same of the same random numbers.

======== ================ ======================================= ====================================
symbol   in the code      meaning                                 shape
======== ================ ======================================= ====================================
n        ``counts``       latent tables, margin by margin         (n_entries, n_cells * n_chains)
k        ``k``            rows that a move shifts                 (n_moves, n_cells * n_chains)
======== ================ ======================================= ====================================
"""

from __future__ import annotations

import importlib
import math
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.distributions.many_cells import TABLE_MOVES
from suffice.pipeline.math.engines.network.table_moves import Moves, disjoint_moves, kinds
from suffice.pipeline.math.priors.record_count import Reciprocal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.math.engines.network.table_network import Scope, TableNetwork
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.typing import Floats, Rows

ACCEPTED = 0.3
"""The share of accepted moves that their sizes are tuned for."""
_RARELY = 0.02
"""Moves at several combinations that are accepted less often in every cell are left out after the warm-up."""
_MEMORY = 0.05
_LEAST_SIZE, _MOST_SIZE = 0.25, 1e15
_LEAST_WEIGHT = 0.1
_LEAST_UNIFORM = 1e-300
_LENGTHS = (1.0, 0.1)
"""Factors of the tuned length, for sets of moves in turn: rows with few counts need short moves."""


class Chains:
    """The latent tables of all chains, and how far they move.

    Parameters
    ----------
    network : TableNetwork
    noisy : sequence of sequence of (mapping of Scope to ndarray of shape (size, n_cells), float)
        Of every data set, released tables and the scale of their noise; several where several releases are
        of the same data.
    start : sequence of ndarray of shape (n_per_set, n_cells * n_chains), float64
        Counts of all margins of every data set, the chains of a cell side by side.
    rng : numpy.random.Generator
    """

    def __init__(
        self,
        network: TableNetwork,
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
        n_releases = max(map(len, noisy))
        self._observed = np.zeros((n_releases, *self._counts.shape))
        self._rates = np.zeros((n_releases, network.n_entries))
        for number, observations in enumerate(noisy):
            for observed, rate, (tables, scale) in zip(
                self._observed, self._rates, observations, strict=False
            ):
                for scope, table in tables.items():
                    observed[network.within(scope, number)] = np.repeat(table, self._n_chains, axis=1)
                    rate[network.within(scope, number)] = 1.0 / scale
        everything = network.sites(np.arange(network.n_entries))
        # All entries' parts of the density are kept, and a move changes its own.
        self._densities = network.log_density(everything, self._counts, self._observed, self._rates)
        rows = self._per_cell(np.array([first_tables[network.starts[()]] for first_tables in start])) + 1.0
        self._shares = np.repeat(rows / rows.max(axis=0), self._n_chains, axis=1)
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
        self._set_of_n = np.full(network.n_entries, -1)
        self._set_of_n[network.starts[()] + network.n_per_set * np.arange(network.n_sets)] = np.arange(
            network.n_sets
        )
        self._n_priors = np.array([numbers_of(prior) for prior in network.n_priors])
        self.accept = self.by_loops if TABLE_MOVES.pay(self._counts.size) else self.by_arrays

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
        self._counts, self._densities, self._observed = (
            np.ascontiguousarray(each[..., columns])
            for each in (self._counts, self._densities, self._observed)
        )
        self._shares = np.ascontiguousarray(self._shares[:, columns])
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
                    # Robbins and Monro: steps of 1 / sqrt(sweep) until the share accepted is ACCEPTED; none
                    # after the warm-up.
                    self._sizes[number] *= np.exp(rate * (share - ACCEPTED))
                    self._accepted[number] += _MEMORY * (share - self._accepted[number])

    def _propose(self, moves: Moves, sizes: Floats) -> Floats:
        """Propose disjoint moves; return the share accepted in each cell."""
        shape = (len(moves.starts), self._counts.shape[1])
        uniform, exponentials = self._rng.random(shape), self._rng.standard_exponential(shape)
        return self.accept(moves, sizes, uniform, exponentials)

    def by_arrays(self, moves: Moves, sizes: Floats, uniform: Floats, exponentials: Floats) -> Floats:
        """Make those moves that are accepted; return their share in each cell.

        Parameters
        ----------
        moves : Moves
        sizes : ndarray of shape (n_cells,), float64
            How far moves go.
        uniform, exponentials : ndarray of shape (n_moves, n_cells * n_chains), float64
            Standard random numbers: of how many rows move, and of what is accepted.
        """
        signed = 1.0 - 2.0 * uniform
        # A geometric number of rows with a random sign: k and -k are equally likely.
        length = -np.log(np.maximum(np.abs(signed), _LEAST_UNIFORM)) * np.repeat(sizes, self._n_chains)
        k = np.copysign(1.0 + np.floor(length), signed)
        if moves.together:
            # Proportional to rows: the same change of probabilities in every data set; -k gives -steps.
            steps = np.rint(self._shares[:, None] * k)
            k = np.concatenate([*steps, steps.sum(axis=0)])
        sites, entries = moves.sites, moves.sites.entries
        old_counts, old_densities = self._counts[entries], self._densities[entries]
        counts = old_counts + moves.factors * k[moves.steps]
        densities = self._network.log_density(
            sites, counts, self._observed[:, entries], self._rates[:, entries]
        )
        # (1), in logarithms: the sum over the entries that a move touches.
        gain = np.add.reduceat(densities - old_densities, moves.starts, axis=0)
        # P(gain > -Exp(1)) = min(1, e^gain).
        accepted = gain > -exponentials
        taken = accepted[moves.of_entry]
        self._counts[entries] = np.where(taken, counts, old_counts)
        self._densities[entries] = np.where(taken, densities, old_densities)
        share: Floats = self._per_cell(accepted).mean(axis=0)
        return share

    def by_loops(self, moves: Moves, sizes: Floats, uniform: Floats, exponentials: Floats) -> Floats:
        """Do what ``by_arrays`` does in compiled loops."""
        kernel: Any = importlib.import_module(TABLE_MOVES.module)
        share = np.empty(self._n_cells)
        kernel.accept(
            self._counts, self._densities, moves.sites.entries, moves.starts, moves.factors, moves.steps,
            moves.together, sizes, self._shares, uniform, exponentials, self._network.shifts,
            self._network.coefficients, self._observed, self._rates, self._set_of_n, self._n_priors, share,
        )  # fmt: skip
        return share

    def _per_cell(self, values: NDArray[Any]) -> Floats:
        """Average (n, n_cells * n_chains) over the chains of a cell."""
        mean: Floats = values.reshape(len(values), self._n_cells, -1).mean(axis=2)
        return mean


def numbers_of(prior: NPrior) -> tuple[float, float, float, float]:
    """Return c, f, l and u: the log prior of N is c - f log(1 + N) from l to u."""
    lowest, highest = map(float, prior.support)
    falls = float(isinstance(prior, Reciprocal))
    constant = float(prior.log_prob(np.array([lowest]))[0]) + falls * math.log1p(lowest)
    return constant, falls, lowest, highest


_LEAST = 0.01
"""Added so that shares are defined where a row has no counts."""


def first_tables(
    network: TableNetwork,
    projected: Mapping[Scope, Floats],
    n_prior: NPrior,
    scale: float,
    rng: np.random.Generator,
) -> Floats:
    """Return the counts of all margins of one data set, (n_per_set, b).

    Every clique's table is shaken by noise of the release's scale, and split in its proportions what it
    shares with those before it, rounded at random.

    Parameters
    ----------
    network : TableNetwork
    projected : mapping of Scope to ndarray of shape (size, b), float64
        Possible counts of each clique.
    n_prior : NPrior
        Of the data set.
    scale : float, > 0
        b of its noise.
    rng : numpy.random.Generator
    """
    cliques = network.tree.cliques
    tables: dict[Scope, Floats] = {}
    for clique, separator in zip(cliques, ((), *network.tree.separators), strict=True):
        noise = rng.laplace(0.0, scale, projected[clique].shape)
        # As far apart as the release leaves them, so that R-hat can tell.
        shaken = np.maximum(projected[clique] + noise, 0.0) + _LEAST
        if not tables:
            shared = np.clip(np.rint(shaken.sum(axis=0)), *n_prior.support)[None]
        else:
            before = next(other for other in tables if set(separator) <= set(other))
            shared = network.margin(tables[before], before, separator)
        others = [variable for variable in clique if variable not in separator]
        axes = [*(clique.index(variable) for variable in (*separator, *others)), len(clique)]
        table = shaken.reshape(*network.shape(clique), -1).transpose(axes)
        split = _split(shared, table.reshape(len(shared), -1, table.shape[-1]), rng)
        tables[clique] = split.reshape(table.shape).transpose(np.argsort(axes)).reshape(shaken.shape)
    first = np.empty((network.n_per_set, shared.shape[1]))
    for scope in network.starts:
        holder = next(clique for clique in cliques if set(scope) <= set(clique))
        first[network.within(scope)] = network.margin(tables[holder], holder, scope)
    return first


def _split(totals: Floats, table: Floats, rng: np.random.Generator) -> Floats:
    """Split totals (rows, b) in about the proportions of a table (rows, entries, b), in whole numbers."""
    below = np.cumsum(table, axis=1)
    share = below / below[:, -1:]
    # Systematic rounding: every part has its expectation, and they add up.
    bounds = np.floor(share * totals[:, None] + rng.random(totals.shape)[:, None])
    bounds[:, -1] = totals
    return np.diff(bounds, axis=1, prepend=0.0)
