r"""Posteriors of shares of categories, from published noisy counts.

Model. L is that of ``published_counts``. Counts of categories whose probabilities have a Dirichlet prior are
those of independent Poisson variables:

.. math::
    \lambda_k \sim \mathrm{Gamma}(a_k, \beta), \quad n_k \sim \mathrm{Poisson}(\lambda_k), \quad
    p = \lambda / \textstyle\sum_j \lambda_j \sim \mathrm{Dirichlet}(a), \qquad (1)

independent of their sum. With the density :math:`1 / \beta (1 + \beta)` and A the sum of a, the prior of
:math:`N = \sum n_k` is

.. math::
    \pi(N) \propto \frac{\Gamma(N + A)}{\Gamma(A) N!}
    \int \frac{\beta^{A - 1}}{(1 + \beta)^{N + A + 1}} d \beta = \frac{1}{N + A}, \qquad (2)

as far as the range of beta goes: with A = 1 that of ``record_count.Reciprocal``. Given beta the categories
are apart from each other, and each n_k has a table: negative binomial times L.

Symbols:

- n, N: ``counts``, whole numbers; L: ``log_likelihood``
- a: ``concentration``, (n_categories,), > 0; log beta: ``scales``, (n_scales,)

Method. Beta is on a grid of half a standard deviation of what is summed there, which leaves next to nothing,
the range below the grid counts to its first point, where nothing changes any more, and everything else is
drawn: independent draws, exact but for the grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import PriorError, UsageError
from suffice.pipeline.math.distributions.composite import Draws
from suffice.pipeline.math.engines.published_counts import MILLION, MOST_NATS, NATS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.engines.published_counts import PublishedCount
    from suffice.typing import Floats

LARGEST_TABLE = 1 << 15
"""Counts of one category: 80 MB for 300 values of beta."""
_DRAWS = 20_000
_HIGHEST = 22.0
"""Log of beta over A up to which it is summed: the rest of its prior is 3e-10."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharesDistribution(Draws):
    """Probabilities of categories from published counts, by draws; made by ``shares_posterior``.

    Attributes
    ----------
    concentration : ndarray of shape (n_categories,), float64
        Of the Dirichlet prior.
    cells : tuple of tuple of PublishedCount
        Every cell's counts, category by category.
    scales : tuple of (ndarray, ndarray, float)
        Of every cell log beta, the posterior probabilities of these, and the nats that are looked at.
    log_evidence : ndarray of shape (n_cells,), float64
        But for a constant of the prior of N.
    """

    concentration: Floats
    cells: tuple[tuple[PublishedCount, ...], ...] = field(repr=False)
    scales: tuple[tuple[Floats, Floats, float], ...] = field(repr=False)
    log_evidence: Floats
    _moments: list[tuple[Floats, Floats]] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return ("probability",)

    def mean(self, parameter: str) -> Floats:  # noqa: ARG002 - distributions share one interface
        """Means of 20,000 draws, the same at every call."""
        return self._known()[0]

    def sd(self, parameter: str) -> Floats:  # noqa: ARG002
        """Standard deviations of the same draws."""
        return self._known()[1]

    def _known(self) -> tuple[Floats, Floats]:
        if not self._moments:
            drawn = self.sample(_DRAWS, np.random.default_rng(0))["probability"]
            self._moments.append((np.mean(drawn, axis=0), np.std(drawn, axis=0)))
        return self._moments[0]

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent draws, (draws, n_cells, n_categories)."""
        drawn = [self._draw(cell, draws, rng) for cell in range(len(self.cells))]
        return {"probability": np.stack(drawn, axis=1)}

    def _draw(self, cell: int, draws: int, rng: np.random.Generator) -> Floats:
        log_beta, probability, nats = self.scales[cell]
        index = rng.choice(len(probability), draws, p=probability)
        chosen = np.empty((draws, len(self.concentration)))
        for category, published in enumerate(self.cells[cell]):
            counts, below, _ = _given_scales(published, float(self.concentration[category]), log_beta, nats)
            uniform = rng.random(draws)
            for scale in np.unique(index):
                here = index == scale
                place = np.searchsorted(below[scale], uniform[here])
                chosen[here, category] = counts[np.minimum(place, len(counts) - 1)]
        # (1): a Dirichlet distribution given the counts, whatever beta is.
        return _drawn_shares(chosen + self.concentration, rng)


def _drawn_shares(concentration: Floats, rng: np.random.Generator) -> Floats:
    """Draw from Dirichlet distributions, (n_draws, n_categories); in logarithms, where all may be near 0."""
    # G(a) is G(a + 1) U^(1 / a).
    log_weight = np.log(rng.standard_gamma(concentration + 1.0))
    log_weight += np.log1p(-rng.random(concentration.shape)) / concentration
    weight = np.exp(log_weight - np.max(log_weight, axis=1, keepdims=True))
    shares: Floats = weight / np.sum(weight, axis=1, keepdims=True)
    return shares


def shares_tails(cells: Sequence[Sequence[PublishedCount]], concentration: Floats) -> Floats:
    """Return how far out a Dirichlet prior puts what was published, (n_cells,), at most 1.

    Twice the prior probability of a category's shares up to the largest that its counts admit, or from the
    smallest, whichever is smaller, times the number of categories. What counts admit is the range of
    ``_DRAWS`` draws without that prior, some four standard deviations or 8 nats: of counts by their
    likelihood alone, and shares given these. The draws are the same at every call.
    """
    from scipy.stats import beta

    total, size = float(np.sum(concentration)), len(concentration)
    tails = np.ones(len(cells))
    for row, cell in enumerate(cells):
        rng = np.random.default_rng(0)
        counts = np.stack([_alone(published, rng) for published in cell], axis=1)
        shares = _drawn_shares(counts + 1.0, rng)
        below = beta.cdf(np.max(shares, axis=0), concentration, total - concentration)
        above = beta.sf(np.min(shares, axis=0), concentration, total - concentration)
        tails[row] = min(1.0, 2.0 * size * float(np.min([below, above])))
    return tails


def _alone(published: PublishedCount, rng: np.random.Generator) -> Floats:
    """Draw counts by their likelihood alone."""
    first, last = published.window()
    counts = np.arange(first, last + 1.0)
    log_likelihood = published.log_likelihood(counts)
    below = np.cumsum(np.exp(log_likelihood - np.max(log_likelihood)))
    drawn: Floats = counts[np.searchsorted(below, below[-1] * rng.random(_DRAWS))]
    return drawn


def shares_posterior(cells: Sequence[Sequence[PublishedCount]], concentration: Floats) -> SharesDistribution:
    """Return the posterior of probabilities of categories, given their published counts in every cell.

    The prior of N is (2) up to all that the counts allow.

    Raises
    ------
    UsageError
        Where counts are known so vaguely that their tables are too large.
    """
    scales, evidences = [], []
    for cell in cells:
        nats = NATS
        log_beta, log_mass, left_out = _of_scales(cell, concentration, nats)
        while left_out > nats - MILLION:
            nats *= 4.0
            if nats > MOST_NATS:
                message = (
                    "the prior and what was published disagree so much that the posterior cannot be "
                    "resolved: give a prior closer to what is possible"
                )
                raise PriorError(message)
            log_beta, log_mass, left_out = _of_scales(cell, concentration, nats)
        top = float(np.max(log_mass))
        weight = np.exp(log_mass - top)
        kept = weight > 1e-9
        scales.append((log_beta[kept], weight[kept] / np.sum(weight[kept]), nats))
        evidences.append(top + math.log(float(np.sum(weight))))
    return SharesDistribution(
        concentration=concentration,
        cells=tuple(tuple(cell) for cell in cells),
        scales=tuple(scales),
        log_evidence=np.array(evidences),
    )


def _length(window: tuple[float, float]) -> float:
    return window[1] - window[0]


def _of_scales(
    cell: Sequence[PublishedCount], concentration: Floats, nats: float
) -> tuple[Floats, Floats, float]:
    """Return values of log beta, the log masses about them, and how far below its largest a category is.

    First on a coarse grid, and then on a fine one where that has anything.
    """
    if max(map(_length, (published.window(nats) for published in cell))) > LARGEST_TABLE:
        message = (
            "noise of a scale this large, or a prior this far from what was published, makes tables of "
            "counts too large for categories: give another prior, or declare the columns as statistics of "
            "the family poisson or count"
        )
        raise UsageError(message)
    total = float(np.sum(concentration))
    most = sum(published.window(nats)[1] for published in cell) + 1.0
    # Given N, log beta varies by sqrt(1 / A + 1 / N), and bends within 1; below e^first its prior falls as
    # beta^A, and probabilities of counts do not change any more.
    step = 0.5 * min(1.0, math.sqrt(1.0 / total + 1.0 / most))
    first = math.log(min(total, 1.0) / most) - 25.0
    last = max(math.log(total), 0.0) + _HIGHEST

    def masses(log_beta: Floats, width: float) -> tuple[Floats, Floats]:
        parts = np.array(
            [
                _given_scales(published, a, log_beta, nats)[2] - published.largest
                for published, a in zip(cell, concentration.tolist(), strict=True)
            ]
        )
        # dbeta / beta (1 + beta) is d(log beta) / (1 + beta).
        log_mass = np.sum(parts, axis=0) - np.logaddexp(0.0, log_beta) + math.log(width)
        if log_beta[0] == first:
            log_mass[0] += math.log(0.5 + 1.0 / (total * width))  # half a step, and all that is below
        return log_mass, parts

    width, ends = 0.5, (first, last)
    while True:
        log_beta = ends[0] + width * np.arange(math.ceil((ends[1] - ends[0]) / width) + 1.0)
        if width <= step:
            break
        log_mass, _ = masses(log_beta, width)
        likely = np.flatnonzero(log_mass > np.max(log_mass) - 60.0)
        ends = log_beta[max(likely[0] - 1, 0)], log_beta[min(likely[-1] + 1, len(log_beta) - 1)]
        width = max(step, width / 4.0)
    log_mass, parts = masses(log_beta, width)
    left_out = float(-np.min(parts[:, np.argmax(log_mass)]))
    return log_beta, log_mass + sum(published.largest for published in cell), left_out


def _given_scales(
    published: PublishedCount, concentration: float, log_beta: Floats, nats: float
) -> tuple[Floats, Floats, Floats]:
    """Return counts, their distribution functions given every beta, and log evidences, (n_scales, ...)."""
    first, last = published.window(nats)
    counts = np.arange(first, last + 1.0)
    log_mass = _negative_binomial(counts, concentration, log_beta)
    log_mass += published.log_likelihood(counts)
    top = np.max(log_mass, axis=1, keepdims=True)
    log_mass -= top
    below = np.cumsum(np.exp(log_mass, out=log_mass), axis=1, out=log_mass)
    log_evidence = top[:, 0] + np.log(below[:, -1])
    below /= below[:, -1:]
    return counts, below, log_evidence


def _negative_binomial(counts: Floats, concentration: float, log_beta: Floats) -> Floats:
    """Return log probabilities of counts under (1), (n_scales, n_counts)."""
    from scipy.special import gammaln

    of_counts = gammaln(counts + concentration) - gammaln(concentration) - gammaln(counts + 1.0)
    # beta / (1 + beta), and 1 / (1 + beta).
    log_share, log_rest = -np.logaddexp(0.0, -log_beta), -np.logaddexp(0.0, log_beta)
    probability: Floats = of_counts + concentration * log_share[:, None] + np.multiply.outer(log_rest, counts)
    return probability
