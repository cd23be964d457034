r"""Posteriors from published noisy counts: what a rounded, clamped or suppressed number says of a count.

Model. A latent count n got the noise Z, and what was published is T(n + Z) with T rounding, clamping and
suppression. Of T no more matters than which noisy numbers it turns into the published one, an interval:

.. math::
    L(n) = P(l - n \le Z \le u - n), \qquad L(n) = p_Z(y - n) \text{ where } l = u = y. \qquad (1)

A suppressed cell has the interval of all that is below its threshold. What was done before the noise is
done to the count: a threshold there leaves a range of counts, and rounding puts the rounded one in the place
of n. Counts given a parameter are

.. math::
    n \sim \mathrm{Poisson}(\lambda E), \qquad n \sim \mathrm{Binomial}(N, p), \qquad (2)

with a public exposure E or total N; a total that is noisy too is summed over, under its prior. Cells that
share a parameter multiply,

.. math:: p(y \mid \theta) = \prod_c \sum_{n \ge 0} p(n \mid \theta) \, L_c(n). \qquad (3)

Symbols:

- l, u: ``low`` and ``high``, infinite where there is no end
- L: ``log_likelihood``, its logarithm
- E, N: ``exposure`` and ``total``, > 0
- lambda, p: the parameter, by its position on the line (``Line``)

Method. L is log-concave in n, so that it is largest at the n next to the interval, and falls from there.
Counts at which it is lower by more than ``NATS`` = 36 nats are left out: of a cell's likelihood at most
2.4e-16 of the largest L. Where the posterior's mode has a likelihood so low that this could be a millionth of
it, four times as many nats are looked at, and again, and what is not resolved then is refused. Counts are
summed in blocks cut where L has a kink, of at most two spreads of the noise and two standard deviations of
n, by the rules of ``sum_rule`` at whole numbers: relative errors below 1e-8 (tests, against plain sums).
Densities are integrated on adaptive panels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from suffice.errors import PriorError, UsageError
from suffice.pipeline.math.distributions.adaptive_blocks import divide_line
from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.distributions.quadrature import (
    POINTS,
    GriddedDistribution,
    integral_rule,
    sum_rule,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.pipeline.math.distributions.quadrature import Cell
    from suffice.pipeline.math.engines.noise_laws import NoiseLaw
    from suffice.pipeline.math.priors.density import DensityOnLine
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.declaration.declared_law import Rounded
    from suffice.typing import Floats

NATS = 36.0
"""Counts whose likelihood is lower than the largest by so much are left out."""
MILLION = math.log(1e6)
"""What is left out is a millionth of a likelihood at most: nearer to it, more is looked at."""
MOST_NATS = NATS * 4.0**5
_NEGATIVE = 19
"""The only length of a block whose rule at whole numbers has weights below 0."""
_LARGEST_PAIRS = 1 << 21
_TOO_MANY = (
    "noise of a scale this large leaves too many counts to sum: declare the column as a statistic of the "
    "family count too and ask that one, or give a prior that ends earlier"
)
_MOST_BLOCKS = 1 << 12
"""Of counts of one cell: 200,000 terms, some seconds a posterior."""
BATCH = 1 << 22
"""Terms of (3) that are in memory at a time: 32 MB."""
_FARTHEST = 100.0
"""Times a rate: farther counts are rarer than e^-36, under any spread of rates that is not as rare."""
_RISE = 6.0
_FLOOR = -1e9


def round_counts(counts: Floats, rounded: Rounded) -> Floats:
    """Return counts as they were rounded, to a whole number."""
    scaled = counts / rounded.to
    if rounded.direction != "nearest":
        whole = np.floor(scaled) if rounded.direction == "down" else np.ceil(scaled)
    else:  # counts are 0 or more: away from zero is up
        whole = np.rint(scaled) if rounded.ties == "even" else np.floor(scaled + 0.5)
    return np.asarray(rounded.to * whole, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class PublishedCount:
    """What was published of one count: which noisy numbers it came from.

    Attributes
    ----------
    law : NoiseLaw
    low, high : float
        Ends of the interval, both included; the same where the noisy number itself was published.
    first, last : float
        The counts that what was done before the noise leaves.
    rounded : Rounded, optional
        How the count was rounded before the noise.
    """

    law: NoiseLaw
    low: float
    high: float
    first: float = 0.0
    last: float = math.inf
    rounded: Rounded | None = None

    @property
    def nearest(self) -> float:
        """The count at which the likelihood is largest."""
        if self.low == -math.inf:
            return self.first
        middle = self.low if self.high == math.inf else self.middle
        nearest = min(max(math.floor(middle + 0.5), self.first), self.last)
        if self.rounded is None:
            return nearest
        near = np.rint(nearest + self._step * np.linspace(-2.0, 2.0, 65))
        near = np.unique(np.clip(near, self.first, self.last))
        return float(near[np.argmax(self.log_likelihood(near))])

    @property
    def _step(self) -> float:
        return 0.0 if self.rounded is None else self.rounded.to

    @property
    def middle(self) -> float:
        """The middle of the interval."""
        return (self.low + self.high) / 2.0

    def window(self, nats: float = NATS) -> tuple[float, float]:
        """Return the first and the last count whose likelihood is not lower than the largest by so much."""
        if self.low == -math.inf and self.high == math.inf:
            return self.first, self.last
        reach = self.law.reach(nats) + self._step
        last = max(self.high if math.isfinite(self.high) else self.low, self.first) + reach
        first = self.first if self.low == -math.inf else max(self.low - reach, self.first)
        return math.floor(first), min(math.ceil(last), self.last)

    def log_likelihood(self, counts: Floats) -> Floats:
        """Return log L of whole numbers."""
        at = counts if self.rounded is None else round_counts(counts, self.rounded)
        if self.low == self.high:
            likelihood = self.law.log_density(self.low - at)
        elif self.low == -math.inf and self.high == math.inf:
            likelihood = np.zeros(at.shape)
        else:
            likelihood = self.law.log_between(self.low - at, self.high - at)
        return np.where((counts < self.first) | (counts > self.last), -np.inf, likelihood)

    @property
    def largest(self) -> float:
        """The largest log likelihood of any count."""
        return float(self.log_likelihood(np.array([self.nearest]))[0])

    def _stairs(self, first: float, end: float) -> list[float]:
        """Return the counts at which rounded ones step up, and the next."""
        if self.rounded is None:
            return []
        if end - first > _MOST_BLOCKS * self._step:
            raise UsageError(_TOO_MANY)
        half = self._step / 2.0
        at = half * np.arange(math.floor(first / half), math.ceil(end / half) + 1.0)
        return [*np.ceil(at).tolist(), *(np.floor(at) + 1.0).tolist()]

    def nodes(
        self,
        width: Callable[[float], float],
        nats: float,
        largest: float = math.inf,
        others: tuple[float, ...] = (),
    ) -> tuple[Floats, Floats]:
        """Return counts and weights that sum what is as smooth as counts with standard deviations ``width``.

        Weights hold the likelihood: their logarithms are returned. ``others`` are further kinks of what is
        summed.
        """
        first, last = self.window(nats)
        end = min(last, largest) + 1.0
        kinks = [each for each in (self.low, self.high, self.high + 1.0, *others) if math.isfinite(each)]
        kinks += self._stairs(first, end)
        cuts = sorted({first, end, *(float(math.ceil(kink)) for kink in kinks if first < kink < end)})
        edges = [first]
        for cut in cuts:
            while edges[-1] < cut:
                if len(edges) > 4 * _MOST_BLOCKS:
                    raise UsageError(_TOO_MANY)
                step = max(float(POINTS), 2.0 * min(self.law.spread, width(edges[-1])))
                after = min(math.floor(edges[-1] + step), cut)
                edges.append(after - POINTS if after - edges[-1] == _NEGATIVE else after)
        edge = np.array(edges)
        counts, weights = sum_rule(edge[:-1], edge[1:], at_integers=True)
        kept = weights > 0.0
        counts, weights = counts[kept], weights[kept]
        log_weight = self.log_likelihood(counts) + np.log(weights)
        kept = log_weight > np.max(log_weight) - nats - 5.0
        return counts[kept], log_weight[kept]


Shared: TypeAlias = "Sequence[LatentCount]"
"""Cells that share one parameter."""


@dataclass(frozen=True, slots=True)
class LatentCount:
    """The count behind one cell, given a parameter: (2).

    Attributes
    ----------
    published : PublishedCount
    size : float
        The exposure of a rate, or the public total of a probability.
    total : PublishedCount, optional
        A noisy total; then ``size`` is not used.
    total_prior : NPrior, optional
        Of that total.
    most : float
        The count beyond which there is next to nothing under the prior, whatever was published.
    """

    published: PublishedCount
    size: float = 1.0
    total: PublishedCount | None = None
    total_prior: NPrior | None = None
    most: float = math.inf

    @property
    def largest(self) -> float:
        """The largest log likelihood of any counts."""
        return self.published.largest + (self.total.largest if self.total is not None else 0.0)

    def terms(self, line: Line, nats: float) -> tuple[Floats, Floats, Floats]:
        """Return n, m and c of the terms that the likelihood is a sum of.

        Of a rate n log(lambda) - m lambda + c, of a probability n log(p) + m log(1 - p) + c.
        """
        from scipy.special import gammaln

        if line is Line.LOGARITHM:
            counts, weights = self.published.nodes(lambda count: math.sqrt(count + 1.0), nats, self.most)
            constants = weights + counts * math.log(self.size) - gammaln(counts + 1.0)
            return counts, np.full_like(counts, self.size), constants
        if self.total is None:
            return self._of_total(self.size, nats)
        # The successes are at most the total: about their own published number the sum over them is no
        # smoother in the total than their noise.
        low, high, law = self.published.low, self.published.high, self.published.law
        reach = law.reach(nats)

        def width(total: float) -> float:
            is_near = low - reach <= total <= high + reach
            return min(math.sqrt(total + 1.0), law.spread if is_near else math.inf)

        ends = (low - reach, low, high, high + 1.0, high + reach)
        totals, weights = self.total.nodes(width, nats, others=ends)
        assert self.total_prior is not None  # noqa: S101 - a noisy total has a prior
        weights = weights + self.total_prior.log_prob(totals)
        first, _ = self.published.window(nats)
        kept = (totals >= first) & np.isfinite(weights)
        parts = [
            (counts, others, constants + weight)
            for total, weight in zip(totals[kept].tolist(), weights[kept].tolist(), strict=True)
            for counts, others, constants in [self._of_total(total, nats)]
        ]
        if sum(len(part[0]) for part in parts) > _LARGEST_PAIRS:
            message = (
                "a noisy total and noisy successes of a scale this large make too many pairs to sum: give "
                "the total as public, or the two columns as a categorical statistic"
            )
            raise UsageError(message)
        counts, others, constants = (np.concatenate(each) for each in zip(*parts, strict=True))
        return counts, others, constants

    def _of_total(self, total: float, nats: float) -> tuple[Floats, Floats, Floats]:
        from scipy.special import gammaln

        def width(count: float) -> float:
            return math.sqrt(min(count, max(total - count, 0.0)) + 1.0)

        first, _ = self.published.window(nats)
        if first > total:  # all that is possible is far out: the total itself is nearest
            counts, weights = np.array([total]), self.published.log_likelihood(np.array([total]))
        else:
            counts, weights = self.published.nodes(width, nats, total)
        others = total - counts
        return counts, others, weights + gammaln(total + 1.0) - gammaln(counts + 1.0) - gammaln(others + 1.0)


class SharedLikelihood:
    """The log likelihood of one parameter that some cells share: (3); cells that are alike count together."""

    def __init__(self, cells: Shared, line: Line, nats: float = NATS) -> None:
        self._line = line
        times: dict[LatentCount, int] = {}
        for cell in cells:
            times[cell] = times.get(cell, 0) + 1
        self._terms = [(count, *cell.terms(line, nats)) for cell, count in times.items()]
        self._largest = [cell.largest for cell in times]

    def __call__(self, position: Floats) -> Floats:
        """Return the log likelihood at positions of any shape."""
        flat = position.ravel()
        total = np.zeros(flat.shape)
        for number, (times, *_) in enumerate(self._terms):
            total += times * self._of_cell(number, flat)
        return total.reshape(position.shape)

    def by_shape(self, position: Floats) -> Floats:
        """Return the log likelihood by the shape of the counts' law, (n_shapes, n_positions): one here."""
        return self(position)[None]

    def log_counts(self, counts: Floats, position: float, shape: int) -> Floats:  # noqa: ARG002
        """Return log probabilities of counts of one unit of exposure, given a rate and a shape."""
        from scipy.special import gammaln

        log_count: Floats = counts * position - math.exp(position) - gammaln(counts + 1.0)
        return log_count

    def left_out(self, position: float) -> float:
        """Return how far a cell's likelihood is below its largest at a position, in nats: the farthest."""
        at = np.array([position])
        return max(
            largest - float(self._of_cell(number, at)[0]) for number, largest in enumerate(self._largest)
        )

    def _of_cell(self, number: int, flat: Floats) -> Floats:
        _, counts, others, constants = self._terms[number]
        if self._line is Line.LOGARITHM:
            first, second = flat, -np.exp(flat)
        else:
            # log p and log(1 - p) of a logit.
            first, second = -np.logaddexp(0.0, -flat), -np.logaddexp(0.0, flat)
        value = np.empty(flat.shape)
        step = max(1, BATCH // len(counts))
        for start in range(0, len(flat), step):
            part = slice(start, start + step)
            log_term = np.multiply.outer(first[part], counts)
            log_term += np.multiply.outer(second[part], others)
            log_term += constants
            top = np.max(log_term, axis=1)
            log_term -= top[:, None]
            value[part] = top + np.log(np.sum(np.exp(log_term, out=log_term), axis=1))
        return value

    @property
    def around(self) -> Floats:
        """Positions about which panels begin: the estimate of every cell, and shoulders about it."""
        centres = []
        for _, counts, others, constants in self._terms:
            if self._line is Line.LOGARITHM:
                best = int(np.argmax(constants + _highest(counts) - counts * np.log(others)))
                centres.append(math.log((counts[best] + 0.5) / others[best]))
            else:
                highest = _highest(counts) + _highest(others) - _highest(counts + others)
                best = int(np.argmax(constants + highest))
                centres.append(math.log((counts[best] + 0.5) / (others[best] + 0.5)))
        ends = np.array([min(centres), max(centres), float(np.mean(centres))])
        return np.unique(np.add.outer(ends, np.array([-3.0, -1.0, -0.3, -0.1, 0.0, 0.1, 0.3, 1.0, 3.0])))


LikelihoodOf: TypeAlias = "Callable[[Shared, float, Callable[[Floats], Floats], Floats], SharedLikelihood]"
"""Makes the likelihood of cells, of nats that are looked at, and the prior with its edges."""


def _highest(counts: Floats) -> Floats:
    """Return the largest n log(m) - m, which is at m = n."""
    return np.where(counts > 0.0, counts * np.log(np.maximum(counts, 1.0)) - counts, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCells:
    """The distribution of a parameter in every cell, and how far out its prior puts what was published.

    Attributes
    ----------
    distribution : GriddedDistribution or CountDistribution
    tails : ndarray of shape (n_cells,), float64
        Twice the prior probability of parameters at which the likelihood is not 8 nats lower than where it
        is highest, or farther out on the same side: at most 1.
    likelihoods : tuple of SharedLikelihood
        Of what every cell shares; empty of counts by themselves.
    """

    distribution: Any
    tails: Floats
    likelihoods: tuple[SharedLikelihood, ...] = ()


def parameter_posterior(
    name: str,
    line: Line,
    cells: Sequence[Shared],
    log_prior: Callable[[Floats], Floats],
    edges: Floats,
    *,
    is_judged: bool = True,
    likelihood_of: LikelihoodOf | None = None,
) -> JudgedCells:
    """Return the posterior of one parameter in every cell, each given what its published counts share.

    Parameters
    ----------
    name : str
        The parameter's.
    line : Line
    cells : sequence of sequences of LatentCount
    log_prior : callable
        Log density of the prior at positions, normalised.
    edges : ndarray of shape (n_edges,), float64
        Positions between which the prior is smooth, ascending; its support.
    is_judged : bool
        Whether to work out the tails; they are 1 otherwise.
    likelihood_of : callable, optional
        Makes the likelihood of cells, nats, prior and edges; a ``SharedLikelihood`` otherwise.

    Raises
    ------
    PriorError
        Where prior and published counts disagree so much that the posterior cannot be resolved.
    """

    def alike(shared: Shared, nats: float, *_: object) -> SharedLikelihood:
        return SharedLikelihood(shared, line, nats)

    panels, tails, likelihoods = [], np.ones(len(cells)), []
    for row, each in enumerate(cells):
        shared = _ended(each, log_prior, edges) if line is Line.LOGARITHM else each
        panel, likelihood = _panels(shared, likelihood_of or alike, log_prior, edges)
        panels.append(panel)
        likelihoods.append(likelihood)
        if is_judged:
            tails[row] = _tail(likelihood, log_prior, edges)
    distribution = GriddedDistribution.of(name, line, panels)
    return JudgedCells(
        distribution=replace(distribution, log_evidence=distribution.log_mass),
        tails=tails,
        likelihoods=tuple(likelihoods),
    )


def _ended(shared: Shared, log_prior: Callable[[Floats], Floats], edges: Floats) -> Shared:
    """Return cells with the count beyond which the prior of their rate leaves nothing.

    No rate is more likely than what was published allows at the best count of every cell, so that rates whose
    prior is lower than anywhere by more than a rate near there would lose do not matter.
    """
    position = np.linspace(max(edges[0], -40.0), min(edges[-1], 40.0), 1601)
    value = log_prior(position)
    best = int(np.argmax(value))
    rate = math.exp(position[best])
    lost = sum(
        cell.published.largest - float(cell.published.log_likelihood(np.array([round(rate * cell.size)]))[0])
        for cell in shared
    )
    last = position[min(int(np.flatnonzero(value > value[best] - lost - NATS)[-1]) + 1, 1600)]
    if not math.isfinite(lost) or last == position[-1]:
        return shared
    ends = [_FARTHEST * (math.exp(last) * cell.size + 1.0) for cell in shared]
    return [
        replace(cell, most=math.ceil(max(end, cell.published.nearest)))
        for cell, end in zip(shared, ends, strict=True)
    ]


def _panels(
    shared: Shared, likelihood_of: LikelihoodOf, log_prior: Callable[[Floats], Floats], edges: Floats
) -> tuple[Cell, SharedLikelihood]:
    """Return the panels of one posterior and its log density; and the likelihood in it."""
    nats = NATS
    while nats <= MOST_NATS:
        likelihood = likelihood_of(shared, nats, log_prior, edges)

        def log_density(position: Floats, likelihood: SharedLikelihood = likelihood) -> Floats:
            return np.maximum(likelihood(position) + log_prior(position), _FLOOR)

        start = np.unique(np.clip(np.concatenate([edges, likelihood.around]), edges[0], edges[-1]))
        left, right, top = divide_line(log_density, start, most_rise=_RISE)
        ends = np.append(left, right[-1])
        value = log_density(ends)
        # Where a prior, or other cells, hold the parameter far from a cell, farther counts have to be seen.
        if likelihood.left_out(float(ends[np.argmax(value)])) < nats - MILLION:
            kept = np.maximum(value[:-1], value[1:]) > top - 45.0
            kept[[0, -1]] = True
            return (left[kept], right[kept], log_density), likelihood
        nats *= 4.0
    message = (
        "the prior, or the cells that share a parameter, and what was published disagree so much that the "
        "posterior cannot be resolved: give a prior closer to what is possible, or pool fewer cells"
    )
    raise PriorError(message)


def _tail(likelihood: SharedLikelihood, log_prior: Callable[[Floats], Floats], edges: Floats) -> float:
    """Return twice the prior probability up to the last likely position, or from the first: the smaller."""
    near = np.geomspace(1e-3, 2.0, 16)
    places = np.add.outer(likelihood.around, np.concatenate([-near, near])).ravel()
    places = np.unique(np.concatenate([edges, np.clip(places, edges[0], edges[-1])]))
    value = likelihood(places)
    likely = np.flatnonzero(value > np.max(value) - 8.0)
    nodes, weights = integral_rule(places[:-1], places[1:])
    share = np.sum(np.exp(log_prior(nodes)) * weights, axis=1)
    # One panel more on either side: the tail errs on the large side.
    below, above = np.sum(share[: likely[-1] + 1]), np.sum(share[max(likely[0] - 1, 0) :])
    return float(min(1.0, 2.0 * min(below, above)))


def prior_on_line(density: DensityOnLine) -> tuple[Callable[[Floats], Floats], Floats]:
    """Return a prior's log density at positions, normalised, and the edges between which it is smooth."""
    panels = (density.edges[:-1], density.edges[1:], density.log_density)
    mass = float(GriddedDistribution.of("parameter", density.line, [panels]).log_mass[0])
    return (lambda position: density.log_density(position) - mass), density.edges
