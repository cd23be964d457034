r"""Probabilities of categories behind latent counts, as a posterior shows them.

The density of a single probability follows from the joint posterior of a count and of N:

.. math::
    p(p_k \mid y) = \sum_{m, N} P(c_k = m, N \mid y) \, \mathrm{Beta}(p_k; \alpha_k + m, A - \alpha_k + N - m)

with :math:`P(c_k = m, N) \propto t_k(m) \, r_k(N - m) \, l(N)`: the tilted row of the count, the sum of the
other rows by FFT, and the link of N. Pairs whose Betas all but coincide are merged, as in ``merged``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.distributions.composite import Probabilities
from suffice.pipeline.math.distributions.dirichlet import BetaDistribution, DirichletDistribution
from suffice.pipeline.math.distributions.merged import FINE, Components
from suffice.pipeline.math.engines.multinomial.convolution import CountSums, products_of_others
from suffice.pipeline.math.engines.multinomial.noisy_counts import masses, pair_rows
from suffice.pipeline.math.engines.multinomial.posterior import pair_blocks, piece_posterior
from suffice.pipeline.math.priors.record_count import Fixed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.math.engines.multinomial.noisy_counts import NoisyCounts
    from suffice.pipeline.math.engines.multinomial.posterior import CountPosterior
    from suffice.typing import Floats

_RARE = 1e-9
"""Probability, relative to the likeliest, below which a number of rows is left out."""
_MOST = 512
"""Values of a count, and of the sum of the others, of which all pairs are formed."""


def marginal_densities(counts: NoisyCounts, points: Floats) -> Floats | None:
    """Return densities of every probability, at points (n_cells, n_categories, n_points), cell by cell.

    None where a cell's posterior of N needs more pieces than is sensible.
    """
    values = np.empty(points.shape)
    concentration, total = counts.concentration, counts.total_concentration
    for cell in range(len(points)):
        of_cell = counts.take(np.array([cell]))
        try:
            parts = list(_pair(of_cell) if of_cell.is_pair else _pieces(of_cell))
        except PriorError:
            return None
        for category, prior in enumerate(concentration.tolist()):

            def update(n: Floats, count: Floats, prior: float = prior) -> BetaDistribution:
                return BetaDistribution(
                    concentration1=prior + count, concentration0=total - prior + n - count
                )

            n, count, weight = (
                np.concatenate(column) for column in zip(*(part[category] for part in parts), strict=True)
            )
            pairs = Components(
                cell=np.zeros(len(n), dtype=np.int64),
                n=n,
                total=count,
                weight=weight / np.sum(weight),
                scatter=np.zeros(len(n)),
            )
            merged = Components.of(pairs, update, 1, fineness=FINE)
            values[cell, category] = merged.density(update, points[cell, category][None])[0]
    return values


def _pair(counts: NoisyCounts) -> Iterator[list[tuple[Floats, Floats, Floats]]]:
    """N, the count and their probability for both of two categories whose sum is known."""
    weights = pair_rows(counts)
    nodes, mass, _ = masses(weights, pair_blocks(weights))
    used = mass[0] > _RARE * np.max(mass[0])
    first, weight = nodes[0, used], mass[0, used]
    n = np.full(len(first), float(weights.n[0]))
    yield [(n, first, weight), (n, n - first, weight)]


def _pieces(counts: NoisyCounts) -> Iterator[list[tuple[Floats, Floats, Floats]]]:
    """The same of every category, by pieces of the range of N."""
    posterior = piece_posterior(counts)
    for piece, share in enumerate(posterior.share.tolist()):
        only = np.array([piece])
        sums = CountSums.of(posterior.pieces.take(only), posterior.tilt[only])
        before, after = products_of_others(sums.transforms)
        mixtures = []
        for category in range(sums.tables.shape[1]):
            others = sums.density_of(before[category] * after[category])[0]
            n, count, weight = _joint(sums, category, others)
            mixtures.append((n, count, weight * (share / np.sum(weight))))
        yield mixtures


def _joint(sums: CountSums, category: int, others: Floats) -> tuple[Floats, Floats, Floats]:
    """N, the count of a category and their weight, of the one cell of `sums`."""
    table = sums.tables[0, category]
    count = sums.base[0, category] + sums.step[0] * np.arange(len(table))
    base, mean = (np.sum(column, axis=1) - column[:, category] for column in (sums.base, sums.mean))
    rest = sums.grid(base, mean)[0]
    count, table = _used(count, table)
    if isinstance(sums.counts.n_prior, Fixed):
        order = np.argsort(rest)
        n = np.full(len(count), float(sums.counts.n_prior.support[0]))
        weight = table * np.interp(n - count, rest[order], others[order], left=0.0, right=0.0)
        return n, count, weight
    count, table = _thinned(count, table)
    rest, others = _thinned(*_used(rest, others))
    n = (count[:, None] + rest).ravel()
    link = sums.link(n[None])[0]
    weight = (table[:, None] * others).ravel() * np.exp(link - np.max(link))
    used = weight > _RARE * np.max(weight)
    return n[used], np.repeat(count, len(rest))[used], weight[used]


def _used(values: Floats, mass: Floats) -> tuple[Floats, Floats]:
    """Keep what is not all but impossible, in ascending order."""
    used = np.flatnonzero(mass > _RARE * np.max(mass))
    used = used[np.argsort(values[used])]
    return values[used], mass[used]


def _thinned(values: Floats, mass: Floats) -> tuple[Floats, Floats]:
    """Join neighbours at their mean, where there are more than ``_MOST``."""
    each = -(-len(values) // _MOST)
    if each == 1:
        return values, mass  # a mean would round, and a whole N at an end of its range would lie beyond it
    starts = np.arange(0, len(values), each)
    joined = np.add.reduceat(mass, starts)
    return np.add.reduceat(values * mass, starts) / joined, joined


# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it


@dataclass(frozen=True, slots=True)
class CountsDistribution(Probabilities):
    """Probabilities of all categories behind latent counts."""

    posterior: CountPosterior

    @property
    def log_evidence(self) -> Floats:
        """Log probabilities of the noisy counts under the prior, (n_cells,), up to one constant."""
        return self.posterior.log_evidence

    def density(self, parameter: str, points: Floats) -> Floats | None:
        """Marginal densities at points (n_cells, n_categories, n_points), worked out cell by cell."""
        return marginal_densities(self.posterior.counts, points)

    def prior_distribution(self) -> DirichletDistribution:
        """The prior, as the distribution of one cell."""
        return DirichletDistribution(concentration=self.posterior.prior_concentration[None])

    def mixture(self, draws: int, rng: np.random.Generator) -> DirichletDistribution:
        """Dirichlet distributions given draws of the latent counts, draw by draw, then by cell."""
        counts = self.posterior.sample_counts(draws, rng)
        concentration = self.posterior.prior_concentration + counts.reshape(-1, counts.shape[-1])
        return DirichletDistribution(concentration=concentration)
