r"""Noisy counts, the rows of weights that stand for them, and the tilt that balances the rows.

The joint weight of latent counts c given noisy counts y is

.. math::
    W(c) = g(N) \prod_k w_k(c_k), \qquad g(N) = \pi(N) \frac{N!}{\Gamma(A + N)}, \quad N = \sum_k c_k,

with w_k a row of ``CountWeights``. For any tilt, W(c) is also the product of the tilted rows and
g(N) exp(theta N).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.errors import PriorError, UsageError
from suffice.pipeline.math.engines.multinomial.noise_weights import (
    CountWeights,
    block_step,
    log_rising,
    quadrature,
)
from suffice.pipeline.math.priors.record_count import Fixed, NPrior, Reciprocal

if TYPE_CHECKING:
    from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
    from suffice.typing import Cells, Floats


_COARSE_BLOCKS = 96
_CLOSE = 0.25
"""Standard deviations of the rows' sum within which its mean has to be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyCounts:
    """Noisy counts and the distribution that they came from.

    Attributes
    ----------
    totals : NoisyTotals
        The counts of every category. Of infinite scale are those that were not released: one of two, at
        most, and where N is known.
    concentration : ndarray of shape (n_categories,), float64
        alpha of the Dirichlet prior, in 1e-6..1e9.
    n_prior : NPrior
        The prior of N; ``Fixed`` where N is public.
    support : ndarray of shape (n_cells, 2), float64
        First and last N of every cell: the prior's, or a part of it.
    """

    totals: NoisyTotals
    concentration: Floats
    n_prior: NPrior
    support: Floats

    def __post_init__(self) -> None:
        if not np.all(self.totals.rate) and not self.is_pair:
            message = "a count that was not released needs exactly two categories and a known N"
            raise UsageError(message)
        if np.max(self.concentration) > 1e9 or np.min(self.concentration) < 1e-6:
            message = "noise-aware posteriors need every concentration in 1e-6..1e9: choose another prior"
            raise PriorError(message)

    @classmethod
    def of(cls, totals: NoisyTotals, *, concentration: Floats, n_prior: NPrior) -> Self:
        """Noisy counts of which N may be anything that its prior allows."""
        support = np.tile(np.array(n_prior.support, dtype=np.float64), (totals.n_cells, 1))
        return cls(totals=totals, concentration=concentration, n_prior=n_prior, support=support)

    def take(self, cells: Cells, support: Floats | None = None) -> Self:
        """The given cells, in the given order, with another support where one is given."""
        support = self.support[cells] if support is None else support
        return replace(self, totals=self.totals.take(cells), support=support)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of cells and of categories."""
        return self.totals.n_cells, len(self.concentration)

    @property
    def rates(self) -> Floats:
        """One over the scale of every release, (n_releases,)."""
        rates: Floats = 1.0 / np.min(self.totals.scale_by_release, axis=1)
        return rates

    @property
    def is_pair(self) -> bool:
        """Two counts with a known sum: one row says it all."""
        return len(self.concentration) == 2 and isinstance(self.n_prior, Fixed)

    @property
    def total_concentration(self) -> float:
        """A, the sum of the prior's concentrations."""
        return float(np.sum(self.concentration))


def rows_of(counts: NoisyCounts, tilt: Floats) -> CountWeights:
    """One row for every cell and category, cell by cell, tilted by tilt (n_cells,)."""
    cells, categories = counts.shape
    n = np.repeat(counts.support[:, 1], categories)
    values = np.moveaxis(counts.totals.by_release, 1, 0).reshape(-1, cells * categories)
    return CountWeights(
        concentration=np.tile(counts.concentration, cells),
        tilt=np.repeat(tilt, categories),
        n=n,
        rest_concentration=np.ones(cells * categories),
        kinks=np.concatenate([values, n[None]]),
        rates=np.append(counts.rates, 0.0),
    )


def pair_rows(counts: NoisyCounts) -> CountWeights:
    """One row a cell: the first of two counts that sum to a known N."""
    cells, _ = counts.shape
    n = np.full(cells, float(counts.n_prior.support[0]))
    rates = counts.totals.rate
    values = np.where(rates > 0.0, counts.totals.values, 0.0).T
    values[1::2] = n - values[1::2]
    return CountWeights(
        concentration=np.full(cells, counts.concentration[0]),
        tilt=np.zeros(cells),
        n=n,
        rest_concentration=np.full(cells, counts.concentration[1]),
        kinks=values,
        rates=rates,
    )


def masses(weights: CountWeights, edges: Floats) -> tuple[Floats, Floats, Floats]:
    """Nodes of every row, (n_rows, n_nodes), their probabilities, and the log of the row's sum, (n_rows,)."""
    nodes, lengths = quadrature(edges)
    log_weight = weights.log_weight(np.minimum(nodes, weights.n[:, None]))
    log_weight = np.where(lengths > 0.0, log_weight, -np.inf)
    top = np.max(log_weight, axis=1)
    mass = np.exp(log_weight - top[:, None]) * lengths
    total = np.sum(mass, axis=1)
    return nodes, mass / total[:, None], top + np.log(total)


def log_factor_of_n(counts: NoisyCounts, n: Floats) -> Floats:
    """Log of g(N) up to a constant, at N inside of the prior's support."""
    return counts.n_prior.log_prob(n) - log_rising(np.array([counts.total_concentration]), n)


def balanced_tilt(counts: NoisyCounts) -> Floats:
    """Tilts (n_cells,) at which the rows' means sum to an N where log g has the opposite slope."""
    low, high = counts.support.T
    guess = np.clip(np.sum(np.maximum(counts.totals.by_release[:, 0], 0.0), axis=1), low, high)
    return search_tilt(counts, np.where(low == high, 0.0, fall_of_factor(counts, guess)), low, high)


def fall_of_factor(counts: NoisyCounts, n: Floats) -> Floats:
    """How fast log g falls at n."""
    slope = np.log((counts.total_concentration + n) / (1.0 + n))
    return slope + np.log1p(1.0 / (1.0 + n)) if isinstance(counts.n_prior, Reciprocal) else slope


def search_tilt(counts: NoisyCounts, start: Floats, low: Floats, high: Floats) -> Floats:
    """Find tilts that equal the fall of log g at the sum of means, or put that sum at a bound of low..high.

    A fixed point iteration (Newton at the bounds), kept inside of a bracket that bisection shrinks.
    """
    tilt = start.copy()
    reach = 2.0 * np.sum(counts.rates) + 60.0 + np.log(counts.total_concentration + 1.0)
    bottom, top = np.full_like(tilt, -reach), np.full_like(tilt, reach)
    active = np.arange(len(tilt))
    for step in range(200):
        mean, variance = _sum_moments(counts, tilt[active], active)
        bound = np.clip(mean, low[active], high[active])
        inside = (bound == mean) & (low[active] < high[active])
        newton = tilt[active] + (mean - bound) / np.maximum(variance, 1e-12)
        wanted = np.where(inside, fall_of_factor(counts, mean), newton)
        rises = wanted > tilt[active]
        bottom[active] = np.where(rises, tilt[active], bottom[active])
        top[active] = np.where(rises, top[active], tilt[active])
        left, right = bottom[active], top[active]
        done = np.where(
            inside,
            np.abs(wanted - tilt[active]) * np.sqrt(variance + 1.0) <= _CLOSE,
            np.abs(mean - bound) <= _CLOSE * np.sqrt(variance),
        )
        done |= right - left <= 1e-12 * np.abs(left + right)
        usable = (wanted > left) & (wanted < right) & (step % 4 != 3)
        tilt[active] = np.where(done, tilt[active], np.where(usable, wanted, (left + right) / 2.0))
        active = active[~done]
        if not active.size:
            break
    return tilt


def _sum_moments(counts: NoisyCounts, tilt: Floats, cells: Cells) -> tuple[Floats, Floats]:
    """Mean and variance of the sum of the tilted rows of some cells."""
    categories = len(counts.concentration)
    weights = rows_of(counts.take(cells), tilt)
    low, high = weights.window()
    nodes, mass, _ = masses(weights, weights.blocks(low, high, block_step(high - low + 1.0, _COARSE_BLOCKS)))
    mean = np.sum(nodes * mass, axis=1)
    variance = np.sum((nodes - mean[:, None]) ** 2 * mass, axis=1)
    shape = (len(cells), categories)
    return np.sum(mean.reshape(shape), axis=1), np.sum(variance.reshape(shape), axis=1)
