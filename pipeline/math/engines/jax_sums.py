r"""Likelihoods of noisy sums and counts, as JAX traces them: everything latent is summed or integrated out.

The question is the likelihood of parameters given a release, for a sampler that needs its gradient.

**One sum** S of N records, whose distribution given the parameter is a ``Total``:

.. math::
    p(y \mid \theta) = \sum_N \pi(N) \int p(S \mid N, \theta) \, e^{-|y_1 - S| / b}
        e^{-|y_2 - (R N - S)| / b} \, dS \qquad (1)

Counts are summed; a continuous S is integrated between the kinks of the noise by a tanh-sinh rule of 129
nodes. Where N is public the second factor is left out.

**Vectors and tables of counts.** Given N the counts c are multinomial, so that

.. math:: p(y \mid p) = \sum_N \pi(N)\, N! \sum_{c:\, \sum_k c_k = N} \prod_k w_k(c_k), \qquad
          w_k(c) = \frac{p_k^c}{c!} \, e^{-|y_k - c| / b} \qquad (2)

The inner sum is a convolution of the rows :math:`w_k`, in logarithms. Features d that are independent given
a class y have that class's count m as the sum of each of their rows,

.. math:: p(y \mid p) = \sum_N \pi(N)\, N! \sum_{m:\, \sum_y m_y = N} \prod_y \frac{p_y^{m_y}}{m_y!}
          \prod_d m_y! \, (w_{dy1} * \dots * w_{dyK})(m_y) \qquad (3)

Both are exact but for the windows of the latent numbers, which are fixed by the released values and the
noise so that one compiled function serves all parameters: a count lies within ``NATS`` scales of its noisy
value but for a chance of e^-45. Where parameters are so far from the data that the sum lives outside, the
value is a lower bound that still rises towards the data.

========= ====================== ================================= ======================== =============
symbol    in the code            meaning                           shape                    unit
========= ====================== ================================= ======================== =============
theta     ``parameter``          the parameter                     (n_cells, 1, 1)          of the family
N         ``n``                  number of records                 (n_cells, n_numbers)     records
S         ``total``              the sum above ``lower`` N         (n_cells, n_n, n_totals) that of T
y         ``observed``           released sums or counts           (n_cells, n_components)  that of T
b         ``scale``              scale of the noise                scalar                   that of T
R         ``width``              range of T                        scalar                   that of T
log w     ``Masses.log``         rows of (2)                       (n_cells, n_counts)      nats
========= ====================== ================================= ======================== =============
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, logsumexp

from suffice.errors import UsageError
from suffice.pipeline.math.engines.network.decomposition import by_class, families
from suffice.pipeline.terms.statistics.count_table import released_tables
from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.count_table import CountTable
    from suffice.typing import Floats

NATS = 45.0
MOST_TERMS = 50_000_000
"""Of all sums together: some gigabytes, gradients included."""


def window_of_n(centre: Floats, reach: int, prior: NPrior, least: int = 0) -> tuple[Floats, Floats]:
    """Return numbers of rows about each cell's centre, and the logs of their prior: (n_cells, n_numbers)."""
    low, high = max(prior.support[0], least), prior.support[1]
    if high - low <= 2 * reach:
        n = np.broadcast_to(np.arange(low, high + 1.0), (len(centre), high - low + 1))
    else:
        first = np.maximum(low, np.minimum(np.rint(centre), high) - reach)
        n = first[:, None] + np.arange(2.0 * reach + 1.0)
    return n, log_prior_of_n(n, prior, least)


def log_prior_of_n(n: Floats, prior: NPrior, least: int = 0) -> Floats:
    """Return the log prior of numbers of rows, minus infinity below `least` and outside of its support."""
    low, high = prior.support
    inside = (n >= max(low, least)) & (n <= high)
    return np.where(inside, prior.log_prob(np.clip(n, low, high)), -np.inf)


def require_terms(terms: int) -> None:
    """Refuse sums that would not fit into memory.

    Raises
    ------
    UsageError
    """
    if terms > MOST_TERMS:
        message = (
            f"the exact likelihood would take {terms} terms, more than {MOST_TERMS}: the noise is wide. Keep "
            "fewer cells with where, or use release.posterior, whose cost does not grow with the noise"
        )
        raise UsageError(message)


_SDS = 12.0
"""Within so many standard deviations of the mean lies all but 4e-33 of a normal distribution."""


class Total(Protocol):
    """The distribution of a total given N."""

    def log_prob(self, total: Any) -> Any:
        """Log of the probability or the density of a total inside of the support."""


@runtime_checkable
class ContinuousTotal(Total, Protocol):
    """One that has a density."""

    @property
    def ends(self) -> tuple[Any, Any]:
        """Where the density is integrated from and to."""


@dataclass(frozen=True, slots=True)
class BinomialTotal:
    """Successes among `trials`."""

    trials: Any
    probability: Any

    def log_prob(self, total: Any) -> Any:
        """Log probability of a count, minus infinity above the number of trials."""
        left = np.maximum(self.trials - total, 0.0)
        # log of n! / (k! (n - k)!) p^k (1 - p)^(n - k).
        log_ways = gammaln(self.trials + 1.0) - gammaln(total + 1.0) - gammaln(left + 1.0)
        log_prob = log_ways + total * jnp.log(self.probability) + left * jnp.log1p(-self.probability)
        return jnp.where(total <= self.trials, log_prob, -jnp.inf)


@dataclass(frozen=True, slots=True)
class PoissonTotal:
    """Events of which there are `mean` on average."""

    mean: Any

    def log_prob(self, total: Any) -> Any:
        """Log probability of a count."""
        return total * jnp.log(self.mean) - self.mean - gammaln(total + 1.0)


@dataclass(frozen=True, slots=True)
class NegativeBinomialTotal:
    """Failures before so many successes."""

    successes: Any
    probability: Any

    def log_prob(self, total: Any) -> Any:
        """Log probability of a count."""
        # log of (r)_k / k! p^r (1 - p)^k.
        log_ways = gammaln(total + self.successes) - gammaln(self.successes) - gammaln(total + 1.0)
        return log_ways + self.successes * jnp.log(self.probability) + total * jnp.log1p(-self.probability)


@dataclass(frozen=True, slots=True)
class GammaTotal:
    """A gamma variable of this shape and rate."""

    shape: Any
    rate: Any

    @property
    def ends(self) -> tuple[Any, Any]:
        """From 0, or far below the mean, to where the tail is ruled out."""
        rate = self.rate + jnp.zeros_like(self.shape)
        mean, sd = self.shape / rate, jnp.sqrt(self.shape) / rate
        # The right tail of a gamma falls as e^(-rate x) at last: e^-NATS after NATS / rate more.
        return jnp.maximum(mean - _SDS * sd, 0.0), mean + _SDS * sd + NATS / rate

    def log_prob(self, total: Any) -> Any:
        """Log density."""
        positive = jnp.maximum(total, 1e-300)
        log_power = (self.shape - 1.0) * jnp.log(positive)
        return self.shape * jnp.log(self.rate) - gammaln(self.shape) + log_power - self.rate * positive


@dataclass(frozen=True, slots=True)
class NormalTotal:
    """A normal variable."""

    mean: Any
    variance: Any

    @property
    def ends(self) -> tuple[Any, Any]:
        """Far on either side of the mean."""
        sd = jnp.sqrt(self.variance) + jnp.zeros_like(self.mean)
        return self.mean - _SDS * sd, self.mean + _SDS * sd

    def log_prob(self, total: Any) -> Any:
        """Log density."""
        sd = jnp.sqrt(self.variance)
        return -(((total - self.mean) / sd) ** 2 + math.log(2.0 * math.pi)) / 2.0 - jnp.log(sd)


_NOTHING = -1e30
"""Replaces the log of 0: finite, so that gradients are finite too."""
_LEAST = 1e-300
"""Probabilities are treated as at least this."""


@dataclass(frozen=True, slots=True)
class Masses:
    """Log weights of consecutive counts: from `first` (n_cells,) on, (n_cells, n_counts)."""

    first: Floats
    log: Any

    def between(self, first: Floats, size: int) -> Any:
        """Return the log weights of `size` counts from `first` on, (n_cells, size)."""
        # Counts outside of a row have weight 0: a finite log keeps gradients finite.
        before = max(0, math.ceil(np.max(self.first - first)))
        after = max(0, math.ceil(np.max(first + size - self.first - self.log.shape[1])))
        padded = jnp.pad(self.log, ((0, 0), (before, after)), constant_values=_NOTHING)
        start = (first - self.first).astype(np.int64) + before
        return jnp.take_along_axis(padded, start[:, None] + np.arange(size), axis=1)


@dataclass(frozen=True, slots=True)
class CountWindow:
    """The counts that the noise allows: within `half` of every observed one, (n_observed, n_cells)."""

    observed: Floats
    half: int

    @property
    def first(self) -> Floats:
        """The first count, (n_cells,)."""
        least: Floats = np.maximum(0.0, np.rint(np.min(self.observed, axis=0)) - self.half)
        return least

    @property
    def size(self) -> int:
        """The number of counts."""
        return int(np.ceil(np.max(np.ptp(self.observed, axis=0)))) + 2 * self.half + 1

    def counts(self) -> Floats:
        """Return the counts, (n_cells, size)."""
        return self.first[:, None] + np.arange(float(self.size))


def network(
    nodes: Sequence[CountTable], noisy: Sequence[Floats], probability: Any, scale: float, prior: NPrior
) -> Any:
    """Return the sum over families of nodes of the log likelihood of their own tables, (n_cells,).

    As in the posterior: each family has latent counts and an N of its own.
    """
    ends = np.cumsum([table.size for table in nodes])
    parts = jnp.split(entries(probability, len(noisy[0]), int(ends[-1])), ends[:-1], axis=1)
    observed = dict(zip([table.name for table in released_tables(nodes)], noisy, strict=True))
    total = jnp.zeros(len(noisy[0]))
    for root, children in families(nodes):
        if root is not None and not children:
            values = observed[nodes[root].name].reshape(len(noisy[0]), -1)
            total += vector(values, parts[root], np.full(nodes[root].size, 1.0 / scale), scale, prior)
            continue
        names = [variable.name for variable in nodes[children[0]].variables[:-1]]
        total += star(
            [by_class(nodes[child], observed[nodes[child].name], names) for child in children],
            [
                by_class(nodes[child], parts[child].reshape(-1, *nodes[child].shape), names)
                for child in children
            ],
            scale,
            prior,
            of_class=None if root is None else parts[root],
        )
    return total


def entries(probability: Any, n_cells: int, n_entries: int) -> Any:
    """Return probabilities of every cell, (n_cells, n_entries)."""
    return jnp.broadcast_to(probability, (n_cells, n_entries))


def vector(values: Floats, probability: Any, rates: Floats, scale: float, prior: NPrior) -> Any:
    """Return the log likelihood (n_cells,) of counts (n_cells, n_categories).

    Their noise has these rates, each 1 / `scale`, or 0 of a count that is what the others leave of N.
    """
    half = math.ceil(NATS * scale)
    probability = jnp.broadcast_to(probability, values.shape)
    # Beyond NATS b of its noisy value a count has e^-NATS of the noise: windows end there.
    require_terms(len(values) * (2 * half + 1) ** 2 * (values.shape[1] - 1))
    most = float(prior.support[1])
    rows, windows = _rows(values, probability, rates, half, most)
    total = _sum_of(rows, windows, most)
    n = total.first[:, None] + np.arange(float(total.log.shape[1]))
    # (2): N! times the convolution, summed over N.
    return logsumexp(total.log + gammaln(n + 1.0) + log_prior_of_n(n, prior), axis=1)


def star(
    features: Sequence[Floats],
    probabilities: Sequence[Any],
    scale: float,
    prior: NPrior,
    *,
    of_class: Any = None,
) -> Any:
    """Return the log likelihood of tables (n_cells, n_classes, n_categories), independent given the class.

    Without probabilities of the classes their frequencies have a flat prior.
    """
    most = float(prior.support[1])
    half = math.ceil(NATS * scale)
    n_cells, n_classes = features[0].shape[:2]
    per_class = sum(table.shape[2] - 1 for table in features) + 1
    require_terms(n_cells * n_classes * per_class * (2 * half + 1) ** 2)
    sums, margins = [], []
    for noisy, probability in zip(features, probabilities, strict=True):
        flat = noisy.reshape(-1, noisy.shape[2])
        rows, windows = _rows(
            flat, probability.reshape(flat.shape), np.full(flat.shape[1], 1.0 / scale), half, most
        )
        sums.append(_sum_of(rows, windows, most))
        margins.append(_reached(windows, most)[0].reshape(n_cells, n_classes))
    window = CountWindow(np.stack(margins).reshape(len(margins), -1), half)
    m = window.counts()
    # (3): every feature gives m_y! times its convolution at m_y; the tables are independent given m.
    log_weight = sum(each.between(window.first, window.size) + gammaln(m + 1.0) for each in sums)
    if of_class is not None:
        log_class = jnp.log(jnp.maximum(of_class, _LEAST)).reshape(-1, 1)
        # (3): p_y^m_y / m_y!.
        log_weight += m * log_class - gammaln(m + 1.0)
    by_cell = log_weight.reshape(n_cells, n_classes, -1)
    first = window.first.reshape(n_cells, n_classes)
    total = _sum_of(
        [Masses(first[:, y], by_cell[:, y]) for y in range(n_classes)],
        [CountWindow(np.stack([margin[:, y] for margin in margins]), half) for y in range(n_classes)],
        most,
    )
    n = total.first[:, None] + np.arange(float(total.log.shape[1]))
    # Of N rows: a multinomial coefficient, or one over the number of vectors of class counts.
    link = gammaln(n + 1.0) if of_class is not None else gammaln(n + 1.0) - gammaln(n + n_classes)
    return logsumexp(total.log + link + log_prior_of_n(n, prior), axis=1)


def _rows(
    values: Floats, probability: Any, rates: Floats, half: int, most: float
) -> tuple[list[Masses], list[CountWindow]]:
    """Weights of every category's counts, and the windows that they are over."""
    rows, windows = [], []
    for category, rate in enumerate(rates):
        observation = values[:, category]
        window = CountWindow(np.clip(observation, 0.0, most)[None], half)
        counts = window.counts()
        log_p = jnp.log(jnp.maximum(probability[:, category], _LEAST))[:, None]
        # log w_k of (2).
        log_weight = counts * log_p - gammaln(counts + 1.0) - rate * np.abs(counts - observation[:, None])
        rows.append(Masses(window.first, log_weight))
        windows.append(window)
    return rows, windows


def _sum_of(rows: Sequence[Masses], windows: Sequence[CountWindow], most: float) -> Masses:
    """Convolve rows; a sum has moved by at most what its parts have moved, so windows do not grow."""
    total = rows[0]
    for used in range(1, len(rows)):
        window = CountWindow(_reached(windows[: used + 1], most), windows[0].half)
        total = _convolved(total, rows[used], window)
    return total


def _reached(windows: Sequence[CountWindow], most: float) -> Floats:
    """Sums of what was observed, (n_observed, n_cells), none above the largest N."""
    reached: Floats = np.minimum(sum(window.observed for window in windows), most)
    return reached


def _convolved(left: Masses, right: Masses, window: CountWindow) -> Masses:
    """Weights of sums within a window."""
    width = right.log.shape[1]
    first = np.maximum(window.first, left.first + right.first)
    shifted = left.between(first - right.first - (width - 1), window.size + width - 1)
    # (v * w)(s) = sum_c v(s - c) w(c).
    position = np.arange(window.size)[:, None] - np.arange(width) + (width - 1)
    return Masses(first, logsumexp(shifted[:, position] + right.log[:, None, :], axis=2))


_LEVEL, _REACH = 64, 3.2
"""Nodes of the tanh-sinh rule on either side of the middle, and where it ends."""


def one_sum(
    statistic: NoisyStatistic, prior: NPrior, parameter: Any, total_of: Callable[[Any, Any], Total]
) -> Any:
    """Sum over N, and over or along the total given N: the log likelihood of every cell, (n_cells,).

    `total_of` gives the distribution of a total of the parameter, (n_cells, 1, 1), and of numbers of records,
    at least 1, (n_cells, n_numbers, 1); what each record adds is counted from T's lower bound.
    """
    plan = statistic.plan
    lower, upper = float(plan.parameters.lower or 0), float(plan.parameters.upper or 0)
    width = upper - lower
    # What is seen, in T's unit above `lower` a record: S, and width N - S where N is private.
    if plan.design is Design.MINIMAL:
        totals, noise_sd = statistic.quantity("total")
        observed = (totals - lower * statistic.known_n)[:, None]
        scale = plan.scale * noise_sd / plan.component_noise_sd
        n, log_pi = window_of_n(np.full(len(observed), float(statistic.known_n)), 0, prior)
    else:
        step = width / float(plan.partition_total or 1)
        observed, scale = statistic.values.astype(np.float64) * step, plan.scale * step
        reach = math.ceil(2.0 * NATS * scale / width)
        n, log_pi = window_of_n(np.sum(observed, axis=1) / width, reach, prior)
    parameter = jnp.broadcast_to(parameter, (len(observed),))[:, None, None]
    # p(S | N) for N >= 1; N = 0 has the sum 0 for certain.
    total = total_of(parameter, np.maximum(n, 1.0)[:, :, None])
    if isinstance(total, ContinuousTotal):
        given_n = _along_continuum(total, n, observed, scale, width)
    else:
        given_n = _over_counts(total, n, observed, scale, width)
    # (1): the sum over N.
    return logsumexp(given_n + log_pi, axis=1)


def _noise(observed: Any, scale: float, width: float, n: Any, total: Any) -> Any:
    """Log density of the noise at totals (n_cells, n_n, n_totals), but for a constant."""
    log_noise = -jnp.abs(observed[:, 0, None, None] - total) / scale
    if observed.shape[1] == 2:
        log_noise -= jnp.abs(observed[:, 1, None, None] - (width * n[:, :, None] - total)) / scale
    return log_noise


def _over_counts(given_n: Total, n: Any, observed: Any, scale: float, width: float) -> Any:
    """Log p(y | N), (n_cells, n_n), of an integer total: a sum over all that the noise allows."""
    half = math.ceil(NATS * scale)
    require_terms(n.size * (2 * half + 1))
    first = np.maximum(0.0, np.rint(observed[:, :1]) - half)
    total = (first + np.arange(2.0 * half + 1.0))[:, None, :]
    records, log_distribution = n[:, :, None], given_n.log_prob(total)
    # N = 0 is a point mass at S = 0.
    log_distribution = jnp.where(records > 0.0, log_distribution, jnp.where(total == 0.0, 0.0, -jnp.inf))
    return logsumexp(log_distribution + _noise(observed, scale, width, n, total), axis=2)


def _along_continuum(given_n: ContinuousTotal, n: Any, observed: Any, scale: float, width: float) -> Any:
    """Log p(y | N), (n_cells, n_n), of a continuous total: an integral between the kinks of the noise."""
    nodes, weights = _tanh_sinh()
    require_terms(n.size * 3 * nodes.size)
    first, last = given_n.ends
    kinks = [jnp.broadcast_to(observed[:, 0, None, None], (*n.shape, 1))]
    if observed.shape[1] == 2:
        kinks.append(width * n[:, :, None] - observed[:, 1, None, None])
    # |y_1 - S| bends at S = y_1, |y_2 - (R N - S)| at S = R N - y_2.
    inner = jnp.sort(jnp.clip(jnp.concatenate(kinks, axis=2), first, last), axis=2)
    edges = jnp.concatenate([first, inner, last], axis=2)
    parts = []
    for piece in range(edges.shape[2] - 1):
        start, end = edges[:, :, piece, None], edges[:, :, piece + 1, None]
        span = end - start
        # Distances from both ends, so that neither is rounded away.
        total = jnp.where(nodes < 0.5, start + span * nodes, end - span * (1.0 - nodes))
        log_weight = jnp.log(weights) + jnp.log(jnp.maximum(span, 1e-300))
        value = given_n.log_prob(total) + _noise(observed, scale, width, n, total) + log_weight
        parts.append(jnp.where(span > 0.0, value, -jnp.inf))
    integral = logsumexp(jnp.concatenate(parts, axis=2), axis=2)
    nothing = _noise(observed, scale, width, n, jnp.zeros((1, 1, 1)))[:, :, 0]
    return jnp.where(n > 0.0, integral, nothing)


def _tanh_sinh() -> tuple[Any, Any]:
    """Nodes and weights on 0..1 that crowd at both ends as fast as any power or exponential needs."""
    t = np.linspace(-_REACH, _REACH, 2 * _LEVEL + 1)
    # x = tanh(pi/2 sinh t) on -1..1, here on 0..1; its derivative is the weight (Takahasi and Mori 1974).
    u = np.pi / 2 * np.sinh(t)
    nodes = 1.0 / (1.0 + np.exp(-2.0 * u))
    weights = np.pi / 4 * np.cosh(t) / np.cosh(u) ** 2 * (t[1] - t[0])
    return nodes, weights
