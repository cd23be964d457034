r"""Posteriors of latent counts, of their totals, and of shares of categories, from published noisy counts.

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

The total of cells whose counts come from one population, of the mean lambda and the shape h of
``varying_counts`` or of one Poisson rate, is a sum of counts that are independent given these:

.. math:: p(n_1, \dots, n_C \mid y) = \sum_h \int p(\lambda, h \mid y) \prod_c p(n_c \mid y_c, \lambda, h)
    \, d \lambda, \qquad p(n_c \mid y_c, \lambda, h) \propto p(n_c \mid \lambda, h) \, L_c(n_c). \qquad (4)

Symbols:

- n, N: ``counts``, whole numbers; L: ``log_likelihood``
- a: ``concentration``, (n_categories,), > 0; log beta: ``scales``, (n_scales,)

Method. (1) is summed singly, or at every so-manieth count where there are more than ``_LARGEST_WINDOW``. Of
(2) beta is on a grid of half a standard deviation of what is summed there, which leaves next to nothing, the
range below the grid counts to its first point, where nothing changes any more, and everything else is drawn:
independent draws, exact but for the grid. Of (4) lambda is at ``_STATES`` quantiles, a
Gauss-Legendre rule of its distribution function; moments follow from those given lambda and h, and
everything else is drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import PriorError, UsageError
from suffice.pipeline.math.distributions.composite import Draws
from suffice.pipeline.math.distributions.quadrature import integral_rule
from suffice.pipeline.math.engines.published_counts import MILLION, MOST_NATS, NATS, JudgedCells

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.pipeline.math.engines.published_counts import PublishedCount, SharedLikelihood
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.typing import Floats, Rows

_LARGEST_WINDOW = 1 << 22
"""Counts of one cell that are looked at singly: 32 MB."""
_LARGEST_TABLE = 1 << 15
"""Counts of one category: 80 MB for 300 values of beta."""
_DRAWS = 20_000
_STATES = 64
"""Values of lambda that totals are worked out at."""
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
        # (2): a Dirichlet distribution given the counts, whatever beta is.
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

    The prior of N is (3) up to all that the counts allow.

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
    if max(map(_length, (published.window(nats) for published in cell))) > _LARGEST_TABLE:
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
    """Return log probabilities of counts under (2), (n_scales, n_counts)."""
    from scipy.special import gammaln

    of_counts = gammaln(counts + concentration) - gammaln(concentration) - gammaln(counts + 1.0)
    # beta / (1 + beta), and 1 / (1 + beta).
    log_share, log_rest = -np.logaddexp(0.0, -log_beta), -np.logaddexp(0.0, log_beta)
    probability: Floats = of_counts + concentration * log_share[:, None] + np.multiply.outer(log_rest, counts)
    return probability


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalDistribution(Draws):
    """Totals of counts of one population, by draws: (4); made by ``total_posterior``.

    Attributes
    ----------
    cells : tuple of _Tables
        Of every total the counts that are added.
    states : tuple of (ndarray, ndarray, ndarray)
        Of every total the positions of lambda, the shapes, and the posterior probabilities of these pairs.
    of_states : tuple of (ndarray, ndarray)
        Means and variances given these.
    log_evidence : ndarray of shape (n_totals,), float64
    """

    cells: tuple[_Tables, ...] = field(repr=False)
    states: tuple[tuple[Floats, Rows, Floats], ...] = field(repr=False)
    of_states: tuple[tuple[Floats, Floats], ...] = field(repr=False)
    log_evidence: Floats
    is_whole = True

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return ("total",)

    def mean(self, parameter: str) -> Floats:  # noqa: ARG002 - distributions share one interface
        """Means."""
        pairs = zip(self.states, self.of_states, strict=True)
        return np.array([np.sum(states[2] * means) for states, (means, _) in pairs])

    def sd(self, parameter: str) -> Floats:
        """Standard deviations: the law of total variance."""
        variances_in_all = [
            np.sum(states[2] * (variances + (means - mean) ** 2))
            for states, (means, variances), mean in zip(
                self.states, self.of_states, self.mean(parameter), strict=True
            )
        ]
        return np.asarray(np.sqrt(np.array(variances_in_all)), dtype=np.float64)

    def mean_under(self, weight: Callable[[Floats], Floats]) -> Floats:
        """Means with the prior of lambda weighted by a function of its logarithm."""
        means = []
        for (position, _, probability), (of_state, _) in zip(self.states, self.of_states, strict=True):
            weights = probability * weight(position)
            means.append(np.sum(weights * of_state) / np.sum(weights))
        return np.array(means)

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Independent draws."""
        drawn = np.zeros((draws, len(self.cells)))
        for total, (tables, (position, shape, probability)) in enumerate(
            zip(self.cells, self.states, strict=True)
        ):
            index = rng.choice(len(probability), draws, p=probability)
            for state in np.unique(index):
                here = np.flatnonzero(index == state)
                drawn[here, total] = tables.drawn(position[state], int(shape[state]), len(here), rng)
        return {"total": drawn}


class _Tables:
    """The counts of cells that are added, each as often as it occurs, with their likelihoods."""

    def __init__(self, cells: Sequence[PublishedCount], likelihood: SharedLikelihood) -> None:
        times: dict[PublishedCount, int] = {}
        for cell in cells:
            times[cell] = times.get(cell, 0) + 1
        self._times = np.array(list(times.values()))
        self._likelihood = likelihood
        counts = [_added(cell) for cell in times]
        size = max(map(len, counts))
        if size * len(counts) > _LARGEST_WINDOW:
            message = (
                "noise of a scale this large makes tables of counts too large to add: pool fewer cells, or "
                "ask for the rate"
            )
            raise UsageError(message)
        # Rows end with counts of the likelihood 0.
        self._counts = np.stack([np.append(each, np.full(size - len(each), each[-1])) for each in counts])
        self._weight = np.zeros(self._counts.shape)
        for row, (cell, each) in enumerate(zip(times, counts, strict=True)):
            self._weight[row, : len(each)] = np.exp(cell.log_likelihood(each) - cell.largest)
        self._every, place = np.unique(self._counts, return_inverse=True)
        self._place = place.reshape(self._counts.shape)

    def _probability(self, position: float, shape: int) -> Floats:
        log_count = self._likelihood.log_counts(self._every, position, shape)[self._place]
        with np.errstate(divide="ignore"):
            log_count += np.log(self._weight)
        log_count -= np.max(log_count, axis=1, keepdims=True)
        probability: Floats = np.exp(log_count, out=log_count)
        probability /= np.sum(probability, axis=1, keepdims=True)
        return probability

    def moments(self, position: float, shape: int) -> tuple[float, float]:
        """Return the mean and the variance of the total, given lambda and its shape."""
        probability = self._probability(position, shape)
        means = np.sum(probability * self._counts, axis=1)
        variances = np.sum(probability * (self._counts - means[:, None]) ** 2, axis=1)
        return float(self._times @ means), float(self._times @ variances)

    def drawn(self, position: float, shape: int, draws: int, rng: np.random.Generator) -> Floats:
        """Draw the total, given lambda and its shape."""
        below = np.cumsum(self._probability(position, shape), axis=1)
        total = np.zeros(draws)
        for row, times in enumerate(self._times.tolist()):
            level = rng.random((draws, times)) * below[row, -1]
            total += np.sum(self._counts[row, np.searchsorted(below[row], level, side="right")], axis=1)
        return total


def _added(cell: PublishedCount) -> Floats:
    """Return the counts of a cell that matter: every so-manieth where that is less than they vary by."""
    first, last = cell.window()
    stride = min(math.ceil((last - first) / _LARGEST_TABLE), math.floor(0.2 * math.sqrt(first)))
    stride = max(1, stride)
    counts: Floats = first + stride * np.arange(math.floor((last - first) / stride) + 1.0)
    return counts


def total_posterior(cells: Sequence[Sequence[PublishedCount]], judged: JudgedCells) -> TotalDistribution:
    """Return the posterior of totals of counts, given that of the rate that each total's counts are about.

    Raises
    ------
    UsageError
        Where counts are known so vaguely that their tables are too large.
    """
    # An integral over the distribution function of lambda.
    (level,), (mass,) = integral_rule(np.zeros(1), np.ones(1), _STATES)
    rates = judged.distribution.quantiles("rate", level.tolist(), 0, np.random.default_rng(0))
    tables, states, of_states = [], [], []
    for each, likelihood, rate in zip(cells, judged.likelihoods, rates, strict=True):
        position = np.log(np.maximum(rate, 1e-290))
        value = likelihood.by_shape(position)
        share = np.exp(value - np.logaddexp.reduce(value, axis=0)) * mass
        shape, place = np.nonzero(share > 1e-3 * mass)
        probability = share[shape, place] / np.sum(share[shape, place])
        added = _Tables(each, likelihood)
        moments = [added.moments(position[at], int(of)) for of, at in zip(shape, place, strict=True)]
        tables.append(added)
        states.append((position[place], shape, probability))
        of_states.append((np.array([mean for mean, _ in moments]), np.array([var for _, var in moments])))
    return TotalDistribution(
        cells=tuple(tables),
        states=tuple(states),
        of_states=tuple(of_states),
        log_evidence=judged.distribution.log_evidence,
    )
