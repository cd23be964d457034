r"""Likelihoods of a table's probabilities, and of a mean and a standard deviation, in JAX.

Model. As in ``counts_likelihood`` and ``moments_likelihood``: the same sums over the same nodes and grids, all of
them, for JAX closes in on none. Numbers of which a logarithm is taken are kept above the least that there are,
so that gradients are finite.

Symbols:

- s, t: of ``several_counts``, (2)
- n, m, log E, w: of ``mean_variance.slices``, (1) and (2)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import MissingExtraError, UsageError
from suffice.pipeline.math.engines.mean_variance.slices import log_height
from suffice.pipeline.math.engines.several_counts import BEFORE, POINTS, SPACING

if TYPE_CHECKING:
    from suffice.pipeline.ask.posterior.counts_likelihood import CountsLikelihood
    from suffice.pipeline.ask.posterior.moments_likelihood import MomentsLikelihood
    from suffice.pipeline.math.engines.mean_variance.slices import Slice

_TINY = float(np.finfo(np.float64).tiny)


def jax_numpy() -> tuple[Any, Any]:
    """Return JAX and its NumPy.

    Raises
    ------
    MissingExtraError
        Where JAX is not installed.
    UsageError
        Where it computes in 32 bits.
    """
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        raise MissingExtraError("log_prob_jax()", "numpyro") from None
    if not jax.config.jax_enable_x64:
        message = "32 bits are not enough for log likelihoods: call numpyro.enable_x64() first"
        raise UsageError(message)
    return jax, jnp


def of_counts(likelihood: CountsLikelihood, probabilities: Any) -> Any:
    """Return log likelihoods of probabilities (n, K) or (n_cells, n, K): (n_cells, n)."""
    jax, jnp = jax_numpy()
    counts, tables = likelihood.counts, likelihood.counts.tables
    cells, entries = counts.row.shape
    given = jnp.asarray(probabilities, dtype=jnp.float64)
    if given.ndim not in {2, 3} or given.shape[-1] != entries or (given.ndim == 3 and len(given) != cells):
        message = (
            f"probabilities have to be of shape (n, {entries}) or ({cells}, n, {entries}), not {given.shape}"
        )
        raise UsageError(message)
    given = jnp.broadcast_to(given, (cells, *given.shape[-2:]))
    log_share = jnp.maximum(jnp.log(jnp.maximum(given, _TINY)) / 2.0, -400.0)
    root, log_root, log_weight = map(jnp.asarray, (counts.root, counts.log_root, counts.log_weight))
    powers, first = jnp.asarray(tables.powers), jnp.asarray(tables.first)
    length, start = jnp.asarray(tables.length), jnp.asarray(tables.start)

    def single(count: Any, position: Any) -> Any:
        """Return log A of one count at s."""
        place = (position - first[count]) / SPACING
        before = jnp.clip(place, BEFORE, length[count] - (POINTS - BEFORE)).astype(jnp.int64)
        share = place - before
        inside = jnp.clip(share, 0.0, 1.0)
        index = before + start[count]
        value = powers[POINTS - 1][index]
        for power in range(POINTS - 2, -1, -1):
            value = value * inside + powers[power][index]
        rise = jnp.sum(powers[1:, index], axis=0)
        return value + jnp.minimum(rise * (share - inside), 0.0)

    def of_cell(of: Any) -> Any:
        row, share = of
        total = jnp.broadcast_to(log_weight, (share.shape[0], len(counts.root)))
        for entry in range(entries):
            half = share[:, entry, None]
            total = total + single(row[entry], root * jnp.exp(half) + log_root + half)
        return jax.scipy.special.logsumexp(total, axis=-1)

    return jax.lax.map(of_cell, (jnp.asarray(counts.row), log_share)) + likelihood.constant


def of_moments(likelihood: MomentsLikelihood, mean: Any, sd: Any) -> Any:
    """Return log likelihoods of pairs, (n,) or (n_cells, n) each: (n_cells, n)."""
    jax, jnp = jax_numpy()
    first, second = (jnp.atleast_1d(jnp.asarray(each, dtype=jnp.float64)) for each in (mean, sd))
    try:
        shape = np.broadcast_shapes(first.shape, second.shape)
        shape = np.broadcast_shapes(shape, (len(likelihood), shape[-1]))
    except ValueError:
        shape = ()
    if len(shape) != 2 or shape[0] != len(likelihood):
        message = (
            f"mean and sd have to be of shape (n,) or ({len(likelihood)}, n), not {first.shape} and "
            f"{second.shape}"
        )
        raise UsageError(message)
    place = jnp.broadcast_to((first - likelihood.centre) / likelihood.half_range, shape)
    log_variance = jnp.broadcast_to(
        2.0 * jnp.log(jnp.maximum(second, _TINY) / likelihood.half_range), shape
    )
    answers = []
    for cell, rows in enumerate(likelihood.fine):
        middle = likelihood.middle[cell]
        at_middle = rows.log_likelihood(middle[None, :1], middle[None, 1:])[0, 0, 0]
        parts = [jnp.full(shape[1:], rows.log_empty)]
        parts += [_of_slice(jax, jnp, each, place[cell], log_variance[cell]) for each in rows.slices]
        answers.append(jax.scipy.special.logsumexp(jnp.stack(parts), axis=0) - at_middle)
    return jnp.stack(answers)


def _of_slice(jax: Any, jnp: Any, of: Slice, mean: Any, log_variance: Any) -> Any:
    """Return ``Slice.log_likelihood`` at pairs (n,)."""
    if of.n < 2.0:
        along = jnp.broadcast_to(np.log(np.maximum(of.weight[0], _TINY)), (*mean.shape, len(of.mean)))
    else:
        level = of.log_e[1:] + math.log(of.n / (of.n - 1.0))
        distance = level - log_variance[:, None]
        # (2).
        height = float(log_height(np.array(of.alpha)))
        distribution = height - of.alpha * (jnp.expm1(distance) - distance)
        below = jax.scipy.special.gammainc(
            (of.n - 1.0) / 2.0, of.n / 2.0 * jnp.exp(jnp.minimum(of.log_e[0] - log_variance, 600.0))
        )
        below = jnp.where(np.any(of.weight[0]), below, 0.0)
        distribution = jnp.concatenate([jnp.log(jnp.maximum(below, _TINY))[:, None], distribution], axis=1)
        top = jax.lax.stop_gradient(jnp.maximum(jnp.max(distribution, axis=1, keepdims=True), -1e300))
        sums = jnp.exp(distribution - top) @ of.weight
        along = top + jnp.log(jnp.maximum(sums, _TINY))
    width = of.blur + jnp.exp(log_variance)[:, None] / of.n
    parts = along - jnp.log(2.0 * math.pi * width) / 2.0 - (mean[:, None] - of.mean) ** 2 / (2.0 * width)
    return jax.scipy.special.logsumexp(parts, axis=1)
