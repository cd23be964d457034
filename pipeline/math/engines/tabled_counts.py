r"""Posteriors of latent counts, and of their totals, from published noisy counts.

Model. With L of ``published_counts``, a count has the posterior

.. math:: p(n \mid y) \propto \pi(n) \, L(n). \qquad (1)

The total of cells whose counts come from one population, of the mean lambda and the shape h of
``varying_counts`` or of one Poisson rate, is a sum of counts that are independent given these:

.. math:: p(n_1, \dots, n_C \mid y) = \sum_h \int p(\lambda, h \mid y) \prod_c p(n_c \mid y_c, \lambda, h)
    \, d \lambda, \qquad p(n_c \mid y_c, \lambda, h) \propto p(n_c \mid \lambda, h) \, L_c(n_c). \qquad (2)

Symbols:

- n: ``counts``, whole numbers; L: ``log_likelihood``

Method. (1) is summed singly, or at every so-manieth count where there are more than ``_LARGEST_WINDOW``. Of
(2) lambda is at ``_STATES`` quantiles, a Gauss-Legendre rule of its distribution function; moments follow
from those given lambda and h, and everything else is drawn.
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
from suffice.pipeline.math.engines.tabled_shares import LARGEST_TABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.pipeline.math.engines.published_counts import PublishedCount, SharedLikelihood
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.typing import Floats, Rows

_LARGEST_WINDOW = 1 << 22
"""Counts of one cell that are looked at singly: 32 MB."""
_STATES = 64
"""Values of lambda that totals are worked out at."""


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
class TotalDistribution(Draws):
    """Totals of counts of one population, by draws: (2); made by ``total_posterior``.

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
    stride = min(math.ceil((last - first) / LARGEST_TABLE), math.floor(0.2 * math.sqrt(first)))
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
