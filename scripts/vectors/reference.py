"""Posteriors of one parameter by plain summation: slow, dense, and right to more than eight digits.

The engines of the package choose few nodes, and their quantiles are right to 10^-4 standard deviations. A
test vector needs better ones. So here every N that matters is taken, and of S every whole number; or, of
sums that are no counts, Gauss-Legendre nodes between all kinks of the noise.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import optimize, special, stats

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.dirichlet import BetaDistribution
from suffice.pipeline.math.distributions.gamma import GammaDistribution, InverseGammaDistribution
from suffice.pipeline.math.distributions.normal import NormalDistribution
from suffice.pipeline.math.distributions.within_limits import NEGLIGIBLE
from suffice.pipeline.math.engines.one_sum.noisy_sum import SumSupport
from suffice.pipeline.math.priors.mixtures import Mixture
from suffice.pipeline.math.priors.record_count import Fixed, Reciprocal, parse_n_prior
from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.engines.one_sum.noisy_sum import NoisySums
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

LEVELS = (0.025, 0.5, 0.975)
_NATS = 45.0
"""What is less likely than the best by more than this is left out: e^-45 is 3e-20."""
_NODES, _PARTS, _LONGEST = 24, 16, 0.25
"""Gauss-Legendre nodes in each part of a range between kinks; its parts; the longest, of logarithms."""
_LEAST_LOG = -110.0
"""Logarithms of sums are followed so far below the largest: half a record's gamma density falls as e^x/2."""


@dataclass(frozen=True, slots=True)
class Marginal:
    """Mean, standard deviation and quantiles of one parameter in one cell."""

    mean: float
    sd: float
    quantiles: tuple[float, ...]


def sum_marginals(statistic: NoisyStatistic, prior: Any, n_prior: str | None) -> list[Marginal]:
    """Return the exact posterior of a family with one sum, cell by cell."""
    family = FAMILIES[statistic.plan.family]
    if family.latent is None:
        message = f"{family.name} has no latent sums"
        raise TypeError(message)
    components = prior.components if isinstance(prior, Mixture) else (prior,)
    shares = np.array(prior.weights if isinstance(prior, Mixture) else (1.0,))
    limits = None if family.limits is None else family.limits(statistic.plan.parameters)
    latent = [family.latent(statistic, component, n_prior_of(statistic, n_prior)) for component in components]
    parts = []
    for cell in range(len(statistic.values)):
        laws, weights = [], []
        for (sums, update), share in zip(latent, shares / shares.sum(), strict=True):
            n, total, log_weight = _latent(sums.take(np.array([cell])))
            laws.append(update(n, total))
            weights.append(log_weight + np.log(share))
        log_weight = np.concatenate(weights)
        weight = np.exp(log_weight - log_weight.max())
        kept = np.flatnonzero(weight > np.exp(-_NATS))
        parts.append(_within(_joined(laws).at(kept), weight[kept], limits))
    return parts


def _within(law: Any, weight: Floats, limits: tuple[float, float] | None) -> Marginal:
    r"""Return a mixture given that its parameter lies within what records within the bounds can have.

    With F and f of a component, and its moments :math:`m_k(x) = \int_{-\infty}^x t^k f(t) \, dt`,

    .. math:: E(t^k \mid l < t < u) = \frac{\sum_j w_j (m_{jk}(u) - m_{jk}(l))}{\sum_j w_j (F_j(u) - F_j(l))}.

    Cells stay as they are where less than ``NEGLIGIBLE`` lies outside, on either side.
    """
    plain = _mixture(law, weight)
    if limits is None:
        return plain
    weight = weight / weight.sum()
    below, _ = _functions(law, law.parameters[0])
    low, high = (float(weight @ below(end)) for end in limits)
    if low <= NEGLIGIBLE and high >= 1 - NEGLIGIBLE:
        return plain
    inside = high - low
    first, second = (
        float(weight @ (_moment(law, power, limits[1]) - _moment(law, power, limits[0]))) / inside
        for power in (1, 2)
    )
    ends = (
        max(limits[0], float(np.min(_functions(law, law.parameters[0])[1](1e-12)))),
        min(limits[1], float(np.max(_functions(law, law.parameters[0])[1](1 - 1e-12)))),
    )
    quantiles = tuple(
        float(
            optimize.brentq(
                lambda x, q=q: float(weight @ below(x)) - (low + q * inside), *ends, xtol=1e-15, rtol=1e-14
            )
        )
        for q in LEVELS
    )
    return Marginal(first, float(np.sqrt(second - first**2)), quantiles)


def _moment(law: Any, power: int, end: float) -> Floats:
    """Return the integrals of a power times each component's density up to an end.

    Of gamma, inverse gamma and beta densities the power leads to another of the family.
    """
    name = law.parameters[0]
    if isinstance(law, NormalDistribution):
        mean, sd = law.mean(name), law.sd(name)
        z = (end - mean) / sd
        below, density = stats.norm.cdf(z), stats.norm.pdf(z)
        if power == 1:
            return np.asarray(mean * below - sd * density)
        return np.asarray((mean**2 + sd**2) * below - sd * (mean + end) * density)
    if isinstance(law, GammaDistribution):
        a, rate = law.concentration, law.rate
        factor = special.poch(a, power) / rate**power
        return np.asarray(factor * stats.gamma.cdf(end, a + power, scale=1 / rate))
    if isinstance(law, InverseGammaDistribution):
        a, scale = law.concentration, law.scale
        if np.any(a <= power):
            message = "a component without this moment: no reference yet"
            raise ValueError(message)
        factor = scale**power / special.poch(a - power, power)
        return np.asarray(factor * stats.invgamma.cdf(end, a - power, scale=scale))
    a, b = law.concentration1, law.concentration0
    factor = special.poch(a, power) / special.poch(a + b, power)
    return np.asarray(factor * stats.beta.cdf(end, a + power, b))


def _joined(laws: list[Any]) -> Any:
    """Return conjugate distributions of several priors' as those of one."""
    columns = {
        field.name: np.concatenate([getattr(law, field.name) for law in laws])
        for field in fields(laws[0])
        if field.name != "name"
    }
    return replace(laws[0], **columns)


def category_marginals(statistic: NoisyStatistic, prior: Any, n_prior: str | None) -> list[list[Marginal]]:
    """Return the exact posterior of each category's probability, cell by cell.

    A category's count and N are summed over all counts of the others, which are convolved.
    """
    concentration = np.asarray(prior.concentration, dtype=np.float64)
    concentration = np.broadcast_to(concentration, (len(statistic.plan.components),))
    believed = n_prior_of(statistic, n_prior)
    scale = statistic.plan.scale
    reach = int(_NATS * scale) + 2
    cells = []
    for row in statistic.values:
        noisy = np.array([float(value) for value in row])
        counts = np.arange(max(0, int(noisy.max())) + 2 * reach, dtype=np.float64)
        weights = [
            np.exp(
                special.gammaln(counts + a)
                - special.gammaln(counts + 1)
                - np.abs(counts - y) / scale
                + max(0.0, -y) / scale
            )
            for y, a in zip(noisy, concentration, strict=True)
        ]
        cell = []
        for category in range(len(noisy)):
            others = np.ones(1)
            for other, weight in enumerate(weights):
                if other != category:
                    others = np.convolve(others, weight)
            joint = weights[category][:, None] * others[None, :]
            n = counts[:, None] + np.arange(len(others))[None, :]
            of_n = believed.log_prob(n) + special.gammaln(n + 1) - special.gammaln(n + concentration.sum())
            joint = joint * np.exp(of_n - of_n.max())
            counted = np.broadcast_to(counts[:, None], joint.shape).ravel()
            keep = joint.ravel() > joint.max() * np.exp(-_NATS)
            law = BetaDistribution(
                concentration1=concentration[category] + counted[keep],
                concentration0=concentration.sum() - concentration[category] + (n.ravel() - counted)[keep],
            )
            cell.append(_mixture(law, joint.ravel()[keep]))
        cells.append(cell)
    return cells


def conjugate_marginals(distribution: Any, parameter: str, n_cells: int) -> list[Marginal]:
    """Return the marginals of a distribution that is known in closed form."""
    return [_mixture(distribution.at(np.array([cell])), np.ones(1), parameter) for cell in range(n_cells)]


def n_prior_of(statistic: NoisyStatistic, n_prior: str | None) -> NPrior:
    """Return the prior of N that ``Release.posterior`` takes."""
    if statistic.plan.design is Design.MINIMAL:
        return Fixed(statistic.known_n)
    return Reciprocal(statistic.max_total_rows) if n_prior is None else parse_n_prior(n_prior)


def _latent(sums: NoisySums) -> tuple[Floats, Floats, Floats]:
    """Return every (N, S) of one cell that matters, with the logs of their weights."""
    low, high = sums.n_prior.support
    if low == high:
        counts = np.array([float(low)])
    else:
        reach = float(np.max(sums.totals.coefficients[:, 0]))
        centre = float(np.sum(sums.totals.values[0])) / reach
        room = 2 * _NATS / (float(np.min(sums.totals.rate)) * reach) + 60
        counts = np.arange(max(low, np.floor(centre - room)), min(high, max(centre, 0) + room) + 1)
        counts = counts if len(counts) else np.arange(low, min(high, room) + 1)
    parts = [_given_n(sums, n) for n in counts]
    n, position, log_weight = (np.concatenate(column) for column in zip(*parts, strict=True))
    kept = log_weight > log_weight.max() - _NATS
    n, position, log_weight = n[kept], position[kept], log_weight[kept]
    total = np.where(n < 1, 0.0, sums.total(n, sums.amount(position)))
    return n, total, log_weight


def _given_n(sums: NoisySums, n: float) -> tuple[Floats, Floats, Floats]:
    cell = np.zeros(1, dtype=np.int64)
    if n < 1:
        return np.zeros(1), np.zeros(1), sums.log_joint(cell, np.zeros(1), np.zeros((1, 1)))[0]
    breaks = sums.breaks(cell, np.array([n]))[0]
    if sums.is_sum:
        most = sums.marginal.most_per_row * n / sums.step
        margin = 2 * _NATS / sums.fall
        first = max(0.0, np.floor(breaks.min() - margin))
        nodes = np.arange(first, min(most, np.ceil(breaks.max() + margin)) + 1)
        log_weights = np.zeros(len(nodes))
    else:
        is_log = sums.marginal.support is SumSupport.POSITIVE
        if is_log:
            breaks = np.maximum(breaks, breaks.max() + _LEAST_LOG)
        nodes, log_weights = _between(np.unique(breaks), _LONGEST if is_log else np.inf)
    log_joint = sums.log_joint(cell, np.array([n]), nodes[None, :])[0]
    return np.full(len(nodes), n), nodes, log_joint + log_weights


def _between(breaks: Floats, longest: float) -> tuple[Floats, Floats]:
    edges = np.unique(
        np.concatenate(
            [
                np.linspace(start, end, _PARTS + 1 + int((end - start) / longest))
                for start, end in pairwise(breaks)
            ]
        )
    )
    node, weight = special.roots_legendre(_NODES)
    half = np.diff(edges)[:, None] / 2
    middle = (edges[:-1] + edges[1:])[:, None] / 2
    return (middle + half * node).ravel(), np.log(half * weight).ravel()


def _mixture(law: Any, weight: Floats, parameter: str | None = None) -> Marginal:
    name = parameter or law.parameters[0]
    weight = weight / weight.sum()
    means, sds = law.mean(name), law.sd(name)
    mean = float(weight @ means)
    sd = float(np.sqrt(weight @ (sds**2 + (means - mean) ** 2)))
    below, quantile = _functions(law, name)
    ends = quantile(1e-12), quantile(1 - 1e-12)
    low, high = float(np.min(ends[0])), float(np.max(ends[1]))
    quantiles = tuple(
        float(optimize.brentq(lambda x, q=q: float(weight @ below(x)) - q, low, high, xtol=1e-15, rtol=1e-14))
        for q in LEVELS
    )
    return Marginal(mean, sd, quantiles)


def _functions(law: Any, parameter: str) -> tuple[Callable[[float], Floats], Callable[[float], Floats]]:
    """Return the distribution function and its inverse of a conjugate distribution's components."""
    frozen: Any
    if isinstance(law, BetaDistribution):
        frozen = stats.beta(law.concentration1, law.concentration0)
    elif isinstance(law, GammaDistribution):
        frozen = stats.gamma(law.concentration, scale=1 / law.rate)
    elif isinstance(law, InverseGammaDistribution):
        frozen = stats.invgamma(law.concentration, scale=law.scale)
    elif isinstance(law, NormalDistribution):
        frozen = stats.norm(law.mean(parameter), law.sd(parameter))
    else:
        message = f"no distribution function of {type(law).__name__}"
        raise TypeError(message)
    return frozen.cdf, frozen.ppf
