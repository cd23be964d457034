r"""Posteriors of a connected part of a network: latent tables by MCMC, then Dirichlets.

Model, density (1) and moves as in ``table_network``. The question is the posterior of the probabilities,

.. math:: p(\theta \mid z) = \sum_n P(n \mid z) \prod_v \prod_{\mathrm{pa}}
    \mathrm{Dirichlet}(\theta_{v, \mathrm{pa}}; \alpha + n_{\mathrm{pa}}) \qquad (1)

Method: Metropolis chains of n, over many cells and chains at once. What is proposed to all chains at a time
is the same, but for how many rows; whether they accept is independent: given the proposals, so are chains.
They start at whole numbers that agree on separators, scattered about the projected noisy tables. With a
symmetric k,

.. math:: P(\text{accept}) = \min(1, P(n' \mid z) / P(n \mid z)) \qquad (2)

Error: that of Monte Carlo. R-hat and effective draws are stated; chains of cells with R-hat above
``SETTLED`` or fewer than ``ENOUGH_EFFECTIVE`` effective draws are run on, ``DOUBLINGS`` times, twice as
long each time.

======== ================ ======================================= ====================================
symbol   in the code      meaning                                 shape
======== ================ ======================================= ====================================
n        ``counts``       latent tables, margin by margin         (n_entries, n_cells * n_chains)
k        ``k``            rows that a move shifts                 (n_moves, n_cells * n_chains)
alpha    ``prior``        concentrations                          (n_entries,)
======== ================ ======================================= ====================================
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from itertools import cycle
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from suffice.pipeline.math.distributions.composite import states_in_turn
from suffice.pipeline.math.distributions.dirichlet import block_starts, block_totals, sample_blocks
from suffice.pipeline.math.engines.multivariate.hmc import effective_draws, split_r_hat
from suffice.pipeline.math.engines.network.table_moves import Moves, disjoint_moves, kinds
from suffice.pipeline.math.engines.network.table_network import TableNetwork
from suffice.pipeline.terms.statistics.count_table import released_tables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.math.distributions.dirichlet import Starts
    from suffice.pipeline.math.engines.network.table_network import Scope
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
    from suffice.pipeline.terms.statistics.count_table import CountTable
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
        self._noisy = [
            (np.zeros_like(self._counts), np.zeros((network.n_entries, 1))) for _ in max(noisy, key=len)
        ]
        for number, observations in enumerate(noisy):
            for (observed, rate), (tables, scale) in zip(self._noisy, observations, strict=False):
                for scope, table in tables.items():
                    observed[network.within(scope, number)] = np.repeat(table, self._n_chains, axis=1)
                    rate[network.within(scope, number)] = 1.0 / scale
        everything = network.sites(np.arange(network.n_entries))
        # All entries' parts of the density are kept, and a move changes its own.
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
                    # Robbins and Monro: steps of 1 / sqrt(sweep) until the share accepted is ACCEPTED; none
                    # after the warm-up.
                    self._sizes[number] *= np.exp(rate * (share - ACCEPTED))
                    self._accepted[number] += _MEMORY * (share - self._accepted[number])

    def _propose(self, moves: Moves, sizes: Floats) -> Floats:
        """Propose disjoint moves; return the share accepted in each cell."""
        shape = (len(moves.starts), self._counts.shape[1])
        uniform = 1.0 - 2.0 * self._rng.random(shape)
        # A geometric number of rows with a random sign: k and -k are equally likely.
        length = -np.log(np.maximum(np.abs(uniform), 1e-300)) * np.repeat(sizes, self._n_chains)
        k = np.copysign(1.0 + np.floor(length), uniform)
        if moves.together:
            # Proportional to rows: the same change of probabilities in every data set; -k gives -steps.
            steps = np.rint(self._shares * k)
            k = np.concatenate([*steps, steps.sum(axis=0)])
        sites, entries = moves.sites, moves.sites.entries
        old_counts, old_densities = self._counts[entries], self._densities[entries]
        counts = old_counts + moves.factors * k[moves.steps]
        densities = self._network.log_density(
            sites, counts, [(observed[entries], rate[entries]) for observed, rate in self._noisy]
        )
        # (2), in logarithms: the sum over the entries that a move touches.
        gain = np.add.reduceat(densities - old_densities, moves.starts, axis=0)
        # P(gain > -Exp(1)) = min(1, e^gain).
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


_MOST_NUMBERS = 1 << 20
"""Counts of all chains that are worked on together."""
_FEW_CELLS = 8
_CHAINS, _ITERATIONS = 32, 128
_CHAINS_OF_MANY, _ITERATIONS_OF_MANY = 8, 256
"""Chains of a cell, and states kept of each: where cells are few, more chains cost little."""
_ENTRIES_PER_SWEEP = 16
"""A state is kept after one sweep for so many entries of the largest table: large tables mix slower."""
_LEAST_THIN = 3
_WARM_UP, _SWEEPS_PER_THIN = 64, 32
SETTLED = 1.01
"""The largest R-hat of a cell that is not drawn for longer."""
ENOUGH_EFFECTIVE = 400.0
"""The fewest effective draws of one."""
DOUBLINGS = 2
"""How often chains that have not settled are run on, twice as long each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkPosterior:
    """A mixture of Dirichlet distributions over latent tables that MCMC drew.

    Attributes
    ----------
    counts : ndarray of shape (n_states, n_cells, n_entries), integers
        Latent tables, one after the other.
    concentration : ndarray of shape (n_entries,), float64
        Of the prior.
    starts : ndarray of shape (n_blocks,), int64
        The first entry of each distribution.
    mean, sd : ndarray of shape (n_cells, n_entries), float64
        Of the mixture.
    diagnostics : mapping of str to int, float or str
        What the chains were, the largest R-hat, and the fewest effective draws over parameters and cells.
    """

    counts: NDArray[Any]
    concentration: Floats
    starts: Starts
    mean: Floats
    sd: Floats
    diagnostics: Mapping[str, Any]

    def sample(self, draws: int, rng: np.random.Generator) -> Floats:
        """Draws, (draws, n_cells, n_entries); no latent state comes back before all have been taken."""
        chosen = self.counts[states_in_turn(len(self.counts), draws, rng)]
        return sample_blocks(self.concentration + chosen, self.starts, rng)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyTables:
    """Tables of (parents, node) of one data set, released once or several times.

    Attributes
    ----------
    tables : sequence of NoisyTotals or None
        The counts of every table; None of a root that is left out, since others have it as a margin.
    n_prior : NPrior
        The prior of N.
    """

    tables: Sequence[NoisyTotals | None]
    n_prior: NPrior

    @classmethod
    def of(cls, nodes: Sequence[CountTable], noisy: Sequence[NoisyTotals], n_prior: NPrior) -> Self:
        """Return the tables of all nodes, given those that are released in their order."""
        in_order = iter(noisy)
        released = {table.name for table in released_tables(nodes)}
        return cls(
            tables=[next(in_order) if node.name in released else None for node in nodes], n_prior=n_prior
        )

    @property
    def released(self) -> list[NoisyTotals]:
        """The tables that are there."""
        return [table for table in self.tables if table is not None]

    def table(self, position: int) -> NoisyTotals:
        """Return a table that is there.

        Raises
        ------
        LookupError
        """
        table = self.tables[position]
        if table is None:
            message = "a root that is an only parent has no table of its own"
            raise LookupError(message)
        return table

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.released[0].n_cells

    @property
    def scales(self) -> list[float]:
        """The scale b of the noise of every release, in their order."""
        return [float(scale) for scale in self.released[0].scale_by_release[:, 0]]

    def part(self, positions: Sequence[int]) -> NoisyTables:
        """The tables at some positions."""
        return replace(self, tables=[self.tables[position] for position in positions])

    def take(self, cells: slice | Rows) -> NoisyTables:
        """Some cells."""
        return replace(self, tables=[None if table is None else table.take(cells) for table in self.tables])


def network_posterior(
    released: Sequence[CountTable],
    data_sets: Sequence[NoisyTables],
    projected: Sequence[Floats],
    concentrations: Sequence[Floats],
) -> NetworkPosterior:
    """Draw latent tables that agree on every margin they share, and sum up the probabilities that follow.

    Parameters
    ----------
    released : sequence of CountTable
        The tables of (parents, node) of a connected part; see ``parts``.
    data_sets : sequence of NoisyTables
        These tables of data sets that share the probabilities.
    projected : sequence of ndarray of shape (n_cells, n_entries), float64
        Of every data set, possible counts to start from, table by table.
    concentrations : sequence of ndarray of shape (n_rows, n_categories), float64
        The prior of each node given each combination of its parents.
    """
    network = TableNetwork.of(released, concentrations, [each.n_prior for each in data_sets])
    rng = generator_of(data_sets, concentrations)
    n_cells = len(projected[0])
    few = n_cells <= _FEW_CELLS
    n_chains, iterations = (_CHAINS, _ITERATIONS) if few else (_CHAINS_OF_MANY, _ITERATIONS_OF_MANY)
    thin = max(_LEAST_THIN, -(-max(table.size for table in released) // _ENTRIES_PER_SWEEP))
    prior = np.concatenate([concentration.ravel() for concentration in concentrations])
    starts = block_starts(released)
    size = max(1, _MOST_NUMBERS // (n_chains * len(prior) * len(data_sets)))
    states, moments, judged = [], [], []
    for first in range(0, n_cells, size):
        cells = slice(first, first + size)
        chains = _chains(
            network,
            [each.take(cells) for each in data_sets],
            [each[cells] for each in projected],
            n_chains,
            rng,
        )
        chains.warm_up(_SWEEPS_PER_THIN * thin + _WARM_UP)
        kept, diagnostics = _run(chains, iterations, thin, prior, starts, rng)
        judged.append(diagnostics)
        states.append(kept.reshape(-1, *kept.shape[2:]))
        moments.append(_moments(prior + states[-1], starts))
    mean, sd = (np.concatenate(parts) for parts in zip(*moments, strict=True))
    r_hat, effective = np.concatenate(judged, axis=1)
    return NetworkPosterior(
        counts=np.concatenate(states, axis=1),
        concentration=prior,
        starts=starts,
        mean=mean,
        sd=sd,
        diagnostics={
            "sampler": "MCMC (Metropolis, over consistent tables)",
            "chains": n_chains,
            "draws": n_chains * iterations,
            "largest_r_hat": round(float(r_hat.max()), 4),
            "fewest_effective_draws": math.floor(effective.min()),
        },
    )


def _run(
    chains: Chains, iterations: int, thin: int, prior: Floats, starts: Starts, rng: np.random.Generator
) -> tuple[NDArray[Any], Floats]:
    """Draw latent tables, (iterations, n_chains, n_cells, n_entries), and judge the chains, (2, n_cells).

    Cells that have not settled are run on, at twice the distance between states that are kept: then what
    came before is warm-up, and only the last of it is kept.
    """
    result = chains.run(iterations, thin)
    judged = _judged(result, prior, starts, rng)
    cells = np.arange(result.shape[2])
    for doubling in range(1, DOUBLINGS + 1):
        r_hat, effective = judged[:, cells]
        # What came before is warm-up of chains that have not settled.
        left = np.flatnonzero((r_hat > SETTLED) | (effective < ENOUGH_EFFECTIVE))
        if not left.size:
            break
        chains.keep(left)
        cells = cells[left]
        kept = chains.run(iterations, thin << doubling)
        result = result.astype(np.promote_types(result.dtype, kept.dtype), copy=False)
        result[:, :, cells] = kept
        judged[:, cells] = _judged(kept, prior, starts, rng)
    return result, judged


def _judged(kept: NDArray[Any], prior: Floats, starts: Starts, rng: np.random.Generator) -> Floats:
    """Return the largest R-hat and the fewest effective draws of each cell's probabilities, (2, n_cells)."""
    drawn = sample_blocks(prior + kept, starts, rng)
    # Of drawn probabilities, not of counts: it is these that are asked for.
    return np.array([split_r_hat(drawn).max(axis=-1), effective_draws(drawn).min(axis=-1)])


def _chains(
    network: TableNetwork,
    data_sets: Sequence[NoisyTables],
    projected: Sequence[Floats],
    n_chains: int,
    rng: np.random.Generator,
) -> Chains:
    """Start chains at the projected tables, shaken."""
    ends = np.cumsum([len(positions) for positions in network.positions])[:-1]

    def by_scope(tables: Sequence[Floats | None]) -> dict[Scope, Floats]:
        return {
            scope: table.reshape(len(table), -1).T[positions]
            for scope, positions, table in zip(network.scopes, network.positions, tables, strict=True)
            if table is not None
        }

    start = []
    for each, possible in zip(data_sets, projected, strict=True):
        repeated = by_scope(np.split(np.repeat(possible, n_chains, axis=0), ends, axis=1))
        start.append(first_tables(network, repeated, each.n_prior, each.scales[0], rng))
    noisy = [
        [
            (
                by_scope([None if table is None else table.by_release[:, release] for table in each.tables]),
                scale,
            )
            for release, scale in enumerate(each.scales)
        ]
        for each in data_sets
    ]
    return Chains(network, noisy, start, rng)


def _moments(concentration: Floats, starts: Starts) -> tuple[Floats, Floats]:
    """Means and standard deviations of a mixture of Dirichlets, (n_states, n_cells, n_entries)."""
    total = block_totals(concentration, starts)
    share = concentration / total
    # Var theta = E Var(theta | n) + Var E(theta | n), over the states of the chains.
    within = np.mean(share * (1.0 - share) / (total + 1.0), axis=0)
    return share.mean(axis=0), np.sqrt(within + share.var(axis=0))


def generator_of(data_sets: Sequence[NoisyTables], concentrations: Sequence[Floats]) -> np.random.Generator:
    """Return a generator that releases and priors determine: who asks again gets the same chains."""
    stated = [(each.scales, str(each.n_prior)) for each in data_sets]
    digest = hashlib.sha256(repr(stated).encode())
    noisy = (
        table.by_release[:, release]
        for each in data_sets
        for release in range(len(each.scales))
        for table in each.released
    )
    for values in (*noisy, *concentrations):
        digest.update(np.ascontiguousarray(values, dtype=np.float64).tobytes())
    return np.random.default_rng(int.from_bytes(digest.digest()[:16], "big"))
