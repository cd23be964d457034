r"""Likelihoods of families with one sum: N summed, and the sum itself summed or integrated.

.. math:: p(y \mid \theta) = \sum_N \pi(N) \int p(S \mid N, \theta) \prod_j e^{-|y_j - s_j| / b}\, dS
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from suffice.pipeline.math.engines.jax.totals import NATS, ContinuousTotal, require_terms, window_of_n
from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.engines.jax.totals import Total
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic

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
    total = total_of(parameter, np.maximum(n, 1.0)[:, :, None])
    if isinstance(total, ContinuousTotal):
        given_n = _along_continuum(total, n, observed, scale, width)
    else:
        given_n = _over_counts(total, n, observed, scale, width)
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
    u = np.pi / 2 * np.sinh(t)
    nodes = 1.0 / (1.0 + np.exp(-2.0 * u))
    weights = np.pi / 4 * np.cosh(t) / np.cosh(u) ** 2 * (t[1] - t[0])
    return nodes, weights
