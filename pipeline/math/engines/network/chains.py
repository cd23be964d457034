r"""Metropolis chains of latent tables, over many cells and chains at once.

What is proposed to all chains at a time is the same, but for how many rows; whether they accept is their own
affair. So given the proposals chains are independent of each other.

Moves keep latent tables consistent. A *kind* of move is a set M of variables of one clique. A move adds k
to the counts of rows with category i and takes k from those with j, for every variable of M, at one or
several combinations of the others: for M empty, rows come or go; for one variable, rows change its
category; for two and more, an interaction changes, and every smaller margin stays. Just those margins
change that contain M.

Moves of one kind that touch no entry in common are proposed together and accepted one by one: the categories
of M are paired off at random, and each combination of those variables that all changing margins have beside
M has moves of its own. Combinations of further variables are picked by fixed weights. So k and -k are
equally likely whatever the tables are, and a move is accepted as in Metropolis' rule.

Where data sets share their probabilities, moves are of the tables of one, or of all at once in proportion to
their rows: where noise says little of each of many tables, these go together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations, cycle, product
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.math.engines.network.log_posterior import Network, Scope, Sites
    from suffice.typing import Floats, Rows

_MOST_MOVED = 4
_WIDER = 4
"""Every width of moves is so many times the one before."""
_TIMES, _MOST_TIMES = 4, 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A set of variables that moves, and at how many combinations of the others a move does.

    Attributes
    ----------
    moved : Scope
        M.
    parallel : Scope
        Each combination of these variables has moves of its own.
    picked : tuple of (Scope, Scope)
        Cliques that contain M, and their further variables that are not in one before.
    changing : tuple of Scope
        Margins that contain M.
    width : int
        At how many combinations of the picked variables a move changes counts.
    times : int
        How many sets of moves of this kind a sweep proposes.
    data_sets : tuple of int
        Whose tables move together.
    """

    moved: Scope
    parallel: Scope
    picked: tuple[tuple[Scope, Scope], ...]
    changing: tuple[Scope, ...]
    width: int
    times: int
    data_sets: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """Moves that touch no entry in common.

    Attributes
    ----------
    sites : Sites
        All entries that may change, move by move.
    of_entry : ndarray of shape (n_entries,), int64
        Each entry's move.
    factors : ndarray of shape (n_entries, 1), float64
        By how many times its step an entry changes.
    steps : ndarray of shape (n_entries,), int64
        Each entry's step: its move's, where one data set moves. Otherwise the steps of all moves stand data
        set by data set, those of the sums last.
    together : bool
        Whether the tables of all data sets move.
    starts : ndarray of shape (n_moves,), int64
        Where the entries of every move begin.
    """

    sites: Sites
    of_entry: Rows
    factors: Floats
    steps: Rows
    together: bool
    starts: Rows


def kinds(network: Network) -> list[Kind]:
    """Return all kinds of moves: of every set of variables of a clique, at one combination and at several."""
    sets = {
        moved
        for clique in network.tree.cliques
        for size in range(min(len(clique), _MOST_MOVED) + 1)
        for moved in combinations(clique, size)
    }
    together = tuple(range(network.n_sets))
    movers = [(number,) for number in together] + ([together] if network.n_sets > 1 else [])
    n_is_known = [prior.support[0] == prior.support[1] for prior in network.n_priors]
    kinds = []
    for moved in sorted(sets, key=lambda scope: (len(scope), scope)):
        if any(network.sizes[variable] == 1 for variable in moved):
            continue
        moving = [
            movers_of_width
            for movers_of_width in movers
            if moved or not any(n_is_known[number] for number in movers_of_width)
        ]
        changing = tuple(scope for scope in network.starts if set(moved) <= set(scope))
        parallel = set.intersection(*map(set, changing)) - set(moved)
        cliques = [clique for clique in network.tree.cliques if set(moved) <= set(clique)]
        picked, known = [], parallel | set(moved)
        for clique in cliques:
            further = tuple(variable for variable in clique if variable not in known)
            known |= set(further)
            if further:
                picked.append((clique, further))
        most = max(network.size(clique) for clique in cliques) // math.prod(
            network.sizes[variable] for variable in (*parallel, *moved)
        )
        widths = [1]
        while widths[-1] * _WIDER <= most:
            widths.append(widths[-1] * _WIDER)
        for width, movers_of_width in product(widths, moving):
            times = min(_MOST_TIMES, 2 * -(-most // width)) if picked else _TIMES
            kinds.append(
                Kind(
                    moved=moved,
                    parallel=tuple(sorted(parallel)),
                    picked=tuple(picked),
                    changing=changing,
                    width=width,
                    times=times,
                    data_sets=movers_of_width,
                )
            )
    return kinds


def disjoint_moves(
    kind: Kind, network: Network, log_weights: Mapping[Scope, Floats], rng: np.random.Generator
) -> Moves:
    """Pair off categories and pick combinations, for moves that touch no entry in common.

    Parameters
    ----------
    kind : Kind
    network : Network
    log_weights : mapping of Scope to ndarray of shape (size,), float64
        Of the entries of each clique.
    rng : numpy.random.Generator
    """
    pairs = [rng.permutation(size)[: size // 2 * 2].reshape(-1, 2) for size in network.shape(kind.moved)]
    lengths = (*map(len, pairs), *network.shape(kind.parallel))
    n_moves = math.prod(lengths)
    grid = np.indices(lengths).reshape(len(lengths), n_moves)
    corners = np.array(list(product((0, 1), repeat=len(pairs))), dtype=np.int64)
    # Categories by variable: (corners or 1, moves, width or 1).
    levels: dict[int, Rows] = {
        variable: pairs[axis][grid[axis], corners[:, axis, None]][:, :, None]
        for axis, variable in enumerate(kind.moved)
    }
    for axis, variable in enumerate(kind.parallel, len(pairs)):
        levels[variable] = grid[axis][None, :, None]
    for clique, further in kind.picked:
        given = tuple(variable for variable in clique if variable not in further)
        order = [clique.index(variable) for variable in (*given, *further)]
        weights = log_weights[clique].reshape(network.shape(clique)).transpose(order)
        at = weights.reshape(*network.shape(given), -1)[tuple(levels[variable] for variable in given)]
        at = at.mean(axis=0) if given else at
        picked = _pick(np.broadcast_to(at, (n_moves, kind.width, at.shape[-1])), rng)
        for variable, level in zip(further, np.unravel_index(picked, network.shape(further)), strict=True):
            levels[variable] = level[None]
    shape = (len(corners), n_moves, kind.width)
    blocks = [*kind.data_sets, *([network.n_sets] if network.n_sets > 1 else [])]
    keys = []
    for scope, block in product(kind.changing, blocks):
        entry = np.zeros((1, 1, 1), dtype=np.int64)
        for variable in scope:
            entry = entry * network.sizes[variable] + levels[variable]
        keys.append(np.broadcast_to(entry + network.starts[scope] + block * network.n_own, shape))
    signs = np.broadcast_to((1.0 - 2.0 * (corners.sum(axis=1) % 2))[:, None, None], (len(keys), *shape))
    by_move = np.array(keys) + network.n_entries * np.arange(n_moves)[:, None]
    distinct, which = np.unique(by_move, return_inverse=True)
    of_entry, entries = np.divmod(distinct, network.n_entries)
    together = len(kind.data_sets) > 1
    return Moves(
        sites=network.sites(entries),
        of_entry=of_entry,
        factors=np.bincount(which.ravel(), signs.ravel())[:, None].astype(np.float64),
        steps=of_entry + (entries // network.n_own * n_moves if together else 0),
        together=together,
        starts=np.searchsorted(of_entry, np.arange(n_moves)),
    )


def _pick(log_weights: Floats, rng: np.random.Generator) -> Rows:
    """Pick along the last axis."""
    below = np.cumsum(np.exp(log_weights), axis=-1)
    drawn = rng.random((*below.shape[:-1], 1)) * below[..., -1:]
    picked: Rows = np.sum(below[..., :-1] <= drawn, axis=-1)
    return picked


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
        rows = self._per_cell(np.array([first_tables[network.starts[()]] for first_tables in start])) + 1.0
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
            steps = np.rint(self._shares * k)
            k = np.concatenate([*steps, steps.sum(axis=0)])
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
