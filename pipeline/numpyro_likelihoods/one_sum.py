r"""Likelihoods of families with one sum: N summed, and the sum itself summed or integrated.

.. math:: p(y \mid \theta) = \sum_N \pi(N) \int p(S \mid N, \theta) \prod_j e^{-|y_j - s_j| / b}\, dS
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, logsumexp

from suffice.pipeline.numpyro_likelihoods.windows import NATS, require_terms, window_of_n
from suffice.pipeline.statistics.sensitivity import Design

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from suffice.pipeline.priors.record_count import NPrior
    from suffice.pipeline.released.noisy_statistic import NoisyStatistic

_LEVEL, _REACH = 64, 3.2
"""Nodes of the tanh-sinh rule on either side of the middle, and where it ends."""

Terms = dict[str, Any]


def one_sum(statistic: NoisyStatistic, prior: NPrior, parameters: Terms) -> Any:
    """Sum over N, and over or along the total given N."""
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
    cells = len(observed)
    terms = {name: jnp.broadcast_to(value, (cells,))[:, None, None] for name, value in parameters.items()}
    along = _over_counts if plan.family in COUNT_DISTRIBUTIONS else _along_continuum
    given_n = along(statistic, terms, n, observed, scale, width)
    return logsumexp(given_n + log_pi, axis=1)


def _noise(observed: Any, scale: float, width: float, n: Any, total: Any) -> Any:
    """Log density of the noise at totals (n_cells, n_n, n_totals), but for a constant."""
    log_noise = -jnp.abs(observed[:, 0, None, None] - total) / scale
    if observed.shape[1] == 2:
        log_noise -= jnp.abs(observed[:, 1, None, None] - (width * n[:, :, None] - total)) / scale
    return log_noise


def _over_counts(
    statistic: NoisyStatistic, terms: Terms, n: Any, observed: Any, scale: float, width: float
) -> Any:
    """Log p(y | N), (n_cells, n_n), of an integer total: a sum over all that the noise allows."""
    half = math.ceil(NATS * scale)
    require_terms(n.size * (2 * half + 1))
    first = np.maximum(0.0, np.rint(observed[:, :1]) - half)
    total = (first + np.arange(2.0 * half + 1.0))[:, None, :]
    distribution = COUNT_DISTRIBUTIONS[statistic.plan.family]
    constants = {name: float(value) for name, value in statistic.plan.parameters.constants.items()}
    records = n[:, :, None]
    log_distribution = distribution(terms, total, np.maximum(records, 1.0), {**constants, "upper": width})
    log_distribution = jnp.where(records > 0.0, log_distribution, jnp.where(total == 0.0, 0.0, -jnp.inf))
    return logsumexp(log_distribution + _noise(observed, scale, width, n, total), axis=2)


def _along_continuum(
    statistic: NoisyStatistic, terms: Terms, n: Any, observed: Any, scale: float, width: float
) -> Any:
    """Log p(y | N), (n_cells, n_n), of a continuous total: an integral between the kinks of the noise."""
    nodes, weights = _tanh_sinh()
    require_terms(n.size * 3 * nodes.size)
    parameters = statistic.plan.parameters
    constants = {name: float(value) for name, value in parameters.constants.items()}
    records = np.maximum(n, 1.0)[:, :, None]
    lower = float(parameters.lower or 0)
    log_density, first, last = SUM_DISTRIBUTIONS[statistic.plan.family](terms, records, constants, lower)
    kinks = [jnp.broadcast_to(observed[:, 0, None, None], records.shape)]
    if observed.shape[1] == 2:
        kinks.append(width * n[:, :, None] - observed[:, 1, None, None])
    inner = jnp.sort(jnp.clip(jnp.concatenate(kinks, axis=2), first, last), axis=2)
    edges = jnp.concatenate([first, inner, last], axis=2)
    parts = []
    for piece in range(edges.shape[2] - 1):
        start, end = edges[:, :, piece, None], edges[:, :, piece + 1, None]
        span = end - start
        # Distances from both ends, so that neither is rounded away.
        total = jnp.where(nodes < 0.5, start + span * nodes, end - span * (1.0 - nodes))
        log_weight = jnp.log(weights) + jnp.log(jnp.maximum(span, 1e-300))
        value = log_density(total) + _noise(observed, scale, width, n, total) + log_weight
        parts.append(jnp.where(span > 0.0, value, -jnp.inf))
    integral = logsumexp(jnp.concatenate(parts, axis=2), axis=2)
    nothing = _noise(observed, scale, width, n, jnp.zeros((1, 1, 1)))[:, :, 0]
    return jnp.where(n > 0.0, integral, nothing)


def _tanh_sinh() -> tuple[Any, Any]:
    """Nodes and weights on 0..1 that crowd at both ends as fast as any power or exponential needs."""
    t = np.linspace(-_REACH, _REACH, 2 * _LEVEL + 1)
    u = np.pi / 2 * np.sinh(t)
    nodes = 1.0 / (1.0 + np.exp(-2.0 * u))
    weights = np.pi / 4 * np.cosh(t) / np.cosh(u) ** 2 * (t[1] - t[0])
    return nodes, weights


def _binomial(terms: Terms, total: Any, n: Any, constants: Mapping[str, float]) -> Any:
    trials, p = n * constants["upper"], terms["probability"]
    left = np.maximum(trials - total, 0.0)
    log_distribution = gammaln(trials + 1.0) - gammaln(total + 1.0) - gammaln(left + 1.0)
    log_distribution = log_distribution + total * jnp.log(p) + left * jnp.log1p(-p)
    return jnp.where(total <= trials, log_distribution, -jnp.inf)


def _poisson(terms: Terms, total: Any, n: Any, _constants: Mapping[str, float]) -> Any:
    mean = n * terms["rate"]
    return total * jnp.log(mean) - mean - gammaln(total + 1.0)


def _negative_binomial(terms: Terms, total: Any, n: Any, constants: Mapping[str, float]) -> Any:
    successes, p = n * constants.get("successes", 1.0), terms["probability"]
    log_distribution = gammaln(total + successes) - gammaln(successes) - gammaln(total + 1.0)
    return log_distribution + successes * jnp.log(p) + total * jnp.log1p(-p)


def _gamma_of(shape: str | float, rate: Callable[[Terms], Any]) -> Callable[..., Any]:
    """Return the distribution of a sum of gammas: of this shape a record, a number or a constant's name."""

    def distribution(terms: Terms, n: Any, constants: Mapping[str, float], _lower: float) -> Any:
        a = n * (constants[shape] if isinstance(shape, str) else shape)
        r = rate(terms) + jnp.zeros_like(n)
        mean, sd = a / r, jnp.sqrt(a) / r

        def log_density(total: Any) -> Any:
            positive = jnp.maximum(total, 1e-300)
            return a * jnp.log(r) - gammaln(a) + (a - 1.0) * jnp.log(positive) - r * positive

        return log_density, jnp.maximum(mean - 12.0 * sd, 0.0), mean + 12.0 * sd + NATS / r

    return distribution


def _normal(terms: Terms, n: Any, constants: Mapping[str, float], lower: float) -> Any:
    mean = n * (terms["mean"] - lower)
    sd = jnp.sqrt(n * constants["variance"]) + jnp.zeros_like(mean)

    def log_density(total: Any) -> Any:
        return -(((total - mean) / sd) ** 2 + math.log(2.0 * math.pi)) / 2.0 - jnp.log(sd)

    return log_density, mean - 12.0 * sd, mean + 12.0 * sd


COUNT_DISTRIBUTIONS: dict[str, Callable[..., Any]] = {
    "binomial": _binomial,
    "poisson": _poisson,
    "geometric": _negative_binomial,
    "negative_binomial": _negative_binomial,
}
"""Log distributions of integer totals given N >= 1."""

SUM_DISTRIBUTIONS: dict[str, Callable[..., Any]] = {
    "exponential": _gamma_of(1.0, lambda terms: terms["rate"]),
    "gamma": _gamma_of("shape", lambda terms: terms["rate"]),
    "weibull": _gamma_of(1.0, lambda terms: terms["rate"]),
    "pareto": _gamma_of(1.0, lambda terms: terms["shape"]),
    "laplace": _gamma_of(1.0, lambda terms: 1.0 / terms["scale"]),
    "normal_known_mean": _gamma_of(0.5, lambda terms: 0.5 / terms["variance"]),
    "normal_known_variance": _normal,
}
"""Log densities of continuous totals given N >= 1, and where they begin and end."""
