r"""Posteriors of a connected part of a network: latent tables by MCMC, then Dirichlets.

Model, density (1) and moves as in ``table_network``. The question is the posterior of the probabilities,

.. math:: p(\theta \mid z) = \sum_n P(n \mid z) \prod_v \prod_{\mathrm{pa}}
    \mathrm{Dirichlet}(\theta_{v, \mathrm{pa}}; \alpha + n_{\mathrm{pa}}) \qquad (1)

Method: Metropolis chains of n, over many cells and chains at once (``table_chains``). They start at whole
numbers that agree on separators, scattered about the projected noisy tables.

Error: that of Monte Carlo. R-hat and effective draws are stated; chains of cells with R-hat above
``SETTLED`` or fewer than ``ENOUGH_EFFECTIVE`` effective draws are run on, ``DOUBLINGS`` times, twice as
long each time.

======== ================ ======================================= ====================================
symbol   in the code      meaning                                 shape
======== ================ ======================================= ====================================
n        ``counts``       latent tables, margin by margin         (n_entries, n_cells * n_chains)
alpha    ``prior``        concentrations                          (n_entries,)
======== ================ ======================================= ====================================
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from suffice.pipeline.math.distributions.composite import states_in_turn
from suffice.pipeline.math.distributions.dirichlet import block_starts, block_totals, sample_blocks
from suffice.pipeline.math.engines.multivariate.hmc import effective_draws, split_r_hat
from suffice.pipeline.math.engines.network.table_chains import Chains, first_tables
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
