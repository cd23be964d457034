r"""Posteriors of latent counts themselves, and of shares of categories, from published noisy counts.

Model. With L of ``published_counts``, a count has the posterior

.. math:: p(n \mid y) \propto \pi(n) \, L(n). \qquad (1)

Counts of categories whose probabilities have a Dirichlet prior are those of independent Poisson variables:

.. math::
    \lambda_k \sim \mathrm{Gamma}(a_k, \beta), \quad n_k \sim \mathrm{Poisson}(\lambda_k), \quad
    p = \lambda / \textstyle\sum_j \lambda_j \sim \mathrm{Dirichlet}(a), \qquad (2)

independent of their sum. With the density :math:`1 / \beta (1 + \beta)` and A the sum of a, the prior of
:math:`N = \sum n_k` is

.. math::
    \pi(N) \propto \frac{\Gamma(N + A)}{\Gamma(A) N!}
    \int \frac{\beta^{A - 1}}{(1 + \beta)^{N + A + 1}} d \beta = \frac{1}{N + A}, \qquad (3)

as far as the range of beta goes: with A = 1 that of ``record_count.Reciprocal``. Given beta the categories
are apart from each other, and each n_k has a table: negative binomial times L.

Symbols:

- n, N: ``counts``, whole numbers; L: ``log_likelihood``
- a: ``concentration``, (n_categories,), > 0; log beta: ``scales``, (n_scales,)

Method. (1) is summed singly, or at every so-manieth count where there are more than ``_LARGEST_WINDOW``. Of
(2) beta is on a grid of half a standard deviation of what is summed there, which leaves next to nothing, and
everything else is drawn: independent draws, exact but for the grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import PriorError, UsageError
from suffice.pipeline.math.distributions.composite import Draws
from suffice.pipeline.math.engines.published_counts import MILLION, MOST_NATS, NATS, JudgedCells

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.engines.published_counts import PublishedCount
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.typing import Floats

_LARGEST_WINDOW = 1 << 22
"""Counts of one cell that are looked at singly: 32 MB."""
_LARGEST_TABLE = 1 << 15
"""Counts of one category: 80 MB for 300 values of beta."""
_DRAWS = 20_000
_HIGHEST = 22.0
"""Log of beta over A up to which it is summed: the rest of its prior is 3e-10."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountDistribution:
    """Latent counts themselves; made by ``count_posterior``.

    Attributes
    ----------
    first, step : ndarray of shape (n_cells,), float64
        The first count of every cell, and the distance between neighbours: 1 but where they are very many.
    below : tuple of ndarray
        Distribution function at these counts, by cell.
    means, sds : ndarray of shape (n_cells,), float64
    log_evidence : ndarray of shape (n_cells,), float64
    """

    first: Floats
    step: Floats
    below: tuple[Floats, ...] = field(repr=False)
    means: Floats
    sds: Floats
    log_evidence: Floats
    is_whole = True

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return ("count",)

    def mean(self, parameter: str) -> Floats:  # noqa: ARG002 - distributions share one interface
        """Means."""
        return self.means

    def sd(self, parameter: str) -> Floats:  # noqa: ARG002
        """Standard deviations."""
        return self.sds

    def quantiles(
        self,
        parameter: str,  # noqa: ARG002
        q: Sequence[float],
        draws: int,  # noqa: ARG002
        rng: np.random.Generator,  # noqa: ARG002
    ) -> Floats:
        """Quantiles: the least count whose probability of this or less is q; they rest on no draws."""
        return np.stack([self._at(cell, np.asarray(q)) for cell in range(len(self.below))])

    def density(self, parameter: str, points: Floats) -> Floats:  # noqa: ARG002
        """Probabilities of the counts next to points, over the distance between neighbours."""
        values = np.zeros(points.shape)
        for cell, below in enumerate(self.below):
            index = np.rint((points[cell] - self.first[cell]) / self.step[cell]).astype(np.int64)
            inside = (index >= 0) & (index < len(below))
            mass = np.diff(below, prepend=0.0)
            values[cell, inside] = mass[index[inside]] / self.step[cell]
        return values

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent draws."""
        drawn = [self._at(cell, rng.random(draws)) for cell in range(len(self.below))]
        return {"count": np.stack(drawn, axis=1)}

    def _at(self, cell: int, q: Floats) -> Floats:
        index = np.minimum(np.searchsorted(self.below[cell], q - 1e-12), len(self.below[cell]) - 1)
        counts: Floats = self.first[cell] + self.step[cell] * index
        return counts


def count_posterior(cells: Sequence[PublishedCount], prior: NPrior) -> JudgedCells:
    """Return the posterior of every cell's count.

    Raises
    ------
    PriorError
        Where the prior excludes what was published, or nearly so.
    """
    first, step, below, means, sds, evidence, tails = [], [], [], [], [], [], []
    for cell in cells:
        counts, log_likelihood, log_mass = _counts_of(cell, prior)
        top = float(np.max(log_mass))
        mass = np.exp(log_mass - top)
        total = float(np.sum(mass))
        share = mass / total
        mean = float(np.sum(counts * share))
        first.append(counts[0])
        step.append(counts[1] - counts[0] if len(counts) > 1 else 1.0)
        below.append(np.cumsum(share))
        means.append(mean)
        sds.append(math.sqrt(float(np.sum((counts - mean) ** 2 * share))))
        evidence.append(top + math.log(total))
        tails.append(_count_tail(prior, counts[log_likelihood > cell.largest - 8.0]))
    return JudgedCells(
        distribution=CountDistribution(
            first=np.array(first),
            step=np.array(step),
            below=tuple(below),
            means=np.array(means),
            sds=np.array(sds),
            log_evidence=np.array(evidence),
        ),
        tails=np.array(tails),
    )


def _counts_of(cell: PublishedCount, prior: NPrior) -> tuple[Floats, Floats, Floats]:
    """Return counts, their log likelihoods, and these with the prior; as many as matter under it."""
    nats = NATS
    while nats <= MOST_NATS:
        first, last = cell.window(nats)
        low, high = max(first, prior.support[0]), min(last, prior.support[1])
        if low <= high:
            stride = max(1.0, math.ceil((high - low + 1.0) / _LARGEST_WINDOW))
            counts = low + stride * np.arange(math.floor((high - low) / stride) + 1.0)
            log_likelihood = cell.log_likelihood(counts)
            if cell.largest - np.max(log_likelihood) < nats - MILLION:
                return counts, log_likelihood, log_likelihood + prior.log_prob(counts) + math.log(stride)
        nats *= 4.0
    message = (
        f"prior of the count {prior} and what was published disagree so much that the posterior cannot be "
        "resolved: give a prior closer to what is possible"
    )
    raise PriorError(message)


def _count_tail(prior: NPrior, likely: Floats) -> float:
    """Return twice the smaller prior probability of counts up to the last likely one, or from the first."""
    least, most = prior.support
    if not len(likely) or likely[-1] < least or likely[0] > most:
        return 0.0
    grid = np.unique(np.rint(np.geomspace(1.0, most - least + 1.0, 4096)) - 1.0 + least)
    mass = np.exp(prior.log_prob(grid)) * np.diff(np.append(grid, most + 1.0))
    below, above = np.sum(mass[grid <= likely[-1]]), np.sum(mass[grid >= likely[0]])
    return float(min(1.0, 2.0 * min(below, max(above, mass[-1]))))


@dataclass(frozen=True, slots=True, kw_only=True)
class SharesDistribution(Draws):
    """Probabilities of categories from published counts, by draws; made by ``shares_posterior``.

    Attributes
    ----------
    concentration : ndarray of shape (n_categories,), float64
        Of the Dirichlet prior.
    cells : tuple of tuple of PublishedCount
        Every cell's counts, category by category.
    scales : tuple of (ndarray, ndarray)
        Of every cell log beta, and the posterior probabilities of these.
    log_evidence : ndarray of shape (n_cells,), float64
        But for a constant of the prior of N.
    """

    concentration: Floats
    cells: tuple[tuple[PublishedCount, ...], ...] = field(repr=False)
    scales: tuple[tuple[Floats, Floats], ...] = field(repr=False)
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
        log_beta, probability = self.scales[cell]
        index = rng.choice(len(probability), draws, p=probability)
        chosen = np.empty((draws, len(self.concentration)))
        for category, published in enumerate(self.cells[cell]):
            counts, below, _ = _given_scales(published, float(self.concentration[category]), log_beta)
            uniform = rng.random(draws)
            for scale in np.unique(index):
                here = index == scale
                place = np.searchsorted(below[scale], uniform[here])
                chosen[here, category] = counts[np.minimum(place, len(counts) - 1)]
        # (2): a Dirichlet distribution given the counts, whatever beta is.
        weights = rng.standard_gamma(chosen + self.concentration)
        shares: Floats = weights / np.sum(weights, axis=1, keepdims=True)
        return shares


def shares_posterior(cells: Sequence[Sequence[PublishedCount]], concentration: Floats) -> SharesDistribution:
    """Return the posterior of probabilities of categories, given their published counts in every cell.

    The prior of N is (3) up to all that the counts allow.

    Raises
    ------
    UsageError
        Where counts are known so vaguely that their tables are too large.
    """
    scales, evidences = [], []
    total = float(np.sum(concentration))
    step = 0.5 / math.sqrt(1.0 + total)
    for cell in cells:
        if max(last - first for first, last in (published.window() for published in cell)) > _LARGEST_TABLE:
            message = (
                "noise of a scale this large makes tables of counts too large for categories: declare the "
                "columns as statistics of the family poisson or count"
            )
            raise UsageError(message)
        most = sum(published.window()[1] for published in cell) + 1.0
        # The expected N is a / beta; towards small beta weights fall as beta^a.
        log_beta = np.arange(
            math.log(total / most) - max(3.0, 20.0 / total), math.log(total) + _HIGHEST, step
        )
        parts = [
            _given_scales(published, a, log_beta)[2] - published.largest
            for published, a in zip(cell, concentration.tolist(), strict=True)
        ]
        # dbeta / beta (1 + beta) is d(log beta) / (1 + beta).
        log_evidence = np.sum(parts, axis=0) - np.logaddexp(0.0, log_beta)
        best = int(np.argmax(log_evidence))
        if min(part[best] for part in parts) < MILLION - NATS:
            message = (
                "the prior and what was published disagree so much that the posterior cannot be resolved: "
                "give a prior closer to what is possible"
            )
            raise PriorError(message)
        log_evidence += sum(published.largest for published in cell)
        top = float(log_evidence[best])
        weight = np.exp(log_evidence - top)
        kept = weight > 1e-9
        scales.append((log_beta[kept], weight[kept] / np.sum(weight[kept])))
        evidences.append(top + math.log(float(np.sum(weight)) * step))
    return SharesDistribution(
        concentration=concentration,
        cells=tuple(tuple(cell) for cell in cells),
        scales=tuple(scales),
        log_evidence=np.array(evidences),
    )


def _given_scales(
    published: PublishedCount, concentration: float, log_beta: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return counts, their distribution functions given every beta, and log evidences, (n_scales, ...)."""
    first, last = published.window()
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
    """Return log probabilities of counts under (2), (n_scales, n_counts)."""
    from scipy.special import gammaln

    of_counts = gammaln(counts + concentration) - gammaln(concentration) - gammaln(counts + 1.0)
    # beta / (1 + beta), and 1 / (1 + beta).
    log_share, log_rest = -np.logaddexp(0.0, -log_beta), -np.logaddexp(0.0, log_beta)
    probability: Floats = of_counts + concentration * log_share[:, None] + np.multiply.outer(log_rest, counts)
    return probability
