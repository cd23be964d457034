r"""Likelihoods of a table's probabilities, and of a mean and a standard deviation, in JAX.

Model. As in ``counts_likelihood`` and ``moments_likelihood``: sums over the same nodes and grids, over all of
them, for JAX closes in on none. What a logarithm is taken of is kept above the least number that there is, so
that gradients are finite.

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
    from collections.abc import Sequence

    from suffice.pipeline.math.engines.mean_variance.likelihood import LatentRows
    from suffice.pipeline.math.engines.mean_variance.slices import Slice
    from suffice.pipeline.math.engines.several_counts import SeveralCounts
    from suffice.typing import Floats

_TINY = float(np.finfo(np.float64).tiny)
_LOWEST = -1e290


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


def of_counts(counts: SeveralCounts, probabilities: Any) -> Any:
    """Return (1) of ``several_counts`` at probabilities (n, K) or (n_cells, n, K): (n_cells, n)."""
    jax, jnp = jax_numpy()
    tables = counts.tables
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

    return jax.lax.map(of_cell, (jnp.asarray(counts.row), log_share))


def of_moments(
    cells: Sequence[LatentRows], middle: Floats, unit: tuple[float, float], mean: Any, sd: Any
) -> Any:
    """Return log likelihoods of pairs, (n,) or (n_cells, n) each, less those at the middles: (n_cells, n).

    Parameters
    ----------
    cells : sequence of LatentRows
        One a cell.
    middle : ndarray of shape (n_cells, 2), float64
        A mean and a log variance, in half ranges.
    unit : (float, float)
        The centre of the bounds, and half of their range.
    mean, sd : array
        In the column's unit.
    """
    (centre, half_range), n_cells = unit, len(cells)
    jax, jnp = jax_numpy()
    first, second = (jnp.atleast_1d(jnp.asarray(each, dtype=jnp.float64)) for each in (mean, sd))
    try:
        shape = np.broadcast_shapes(first.shape, second.shape)
        shape = np.broadcast_shapes(shape, (n_cells, shape[-1]))
    except ValueError:
        shape = ()
    if len(shape) != 2 or shape[0] != n_cells:
        message = (
            f"mean and sd have to be of shape (n,) or ({n_cells}, n), not {first.shape} and {second.shape}"
        )
        raise UsageError(message)
    place = jnp.broadcast_to((first - centre) / half_range, shape)
    log_variance = jnp.broadcast_to(2.0 * jnp.log(jnp.maximum(second, _TINY) / half_range), shape)
    groups = _padded(cells)
    parts, places = [], [each["cell"] for each in groups]
    # Of all slices at once: it is what takes JAX seconds to compile.
    all_small = _log_small(jax, jnp, groups, log_variance[np.concatenate(places)])
    for padded, small in zip(
        groups, jnp.split(all_small, np.cumsum([len(each) for each in places])[:-1]), strict=True
    ):
        arrays = {name: jnp.asarray(values) for name, values in padded.items()}
        parts.append(
            jax.lax.map(
                lambda of: _of_slice(
                    jax, jnp, of[0], of[1], place[of[0]["cell"]], log_variance[of[0]["cell"]]
                ),
                (arrays, small),
            )
        )
    # No rows at all are a part of every cell.
    parts.append(jnp.broadcast_to(np.array([[rows.log_empty] for rows in cells]), shape))
    places.append(np.arange(shape[0]))
    value, segment = jnp.concatenate(parts), np.concatenate(places)
    top = jax.lax.stop_gradient(jax.ops.segment_max(value, segment, num_segments=shape[0]))
    share = jax.ops.segment_sum(jnp.exp(value - top[segment]), segment, num_segments=shape[0])
    at_middle = [
        rows.log_likelihood(at[None, :1], at[None, 1:])[0, 0, 0]
        for rows, at in zip(cells, middle, strict=True)
    ]
    return top + jnp.log(share) - np.array(at_middle)[:, None]


def _padded(cells: Sequence[LatentRows]) -> list[dict[str, Any]]:
    """Return slices of all cells as arrays of few shapes, each compiled once; padding weighs nothing."""
    by_shape: dict[tuple[int, int], list[tuple[int, Slice]]] = {}
    for cell, rows in enumerate(cells):
        for each in rows.slices:
            shape = (_power(each.weight.shape[0]), _power(each.weight.shape[1]))
            by_shape.setdefault(shape, []).append((cell, each))
    padded = []
    for (deviations, means), slices in by_shape.items():
        arrays: dict[str, Any] = {
            "cell": np.array([cell for cell, _ in slices]),
            "n": np.array([each.n for _, each in slices]),
            "alpha": np.array([max(each.alpha, 0.5) for _, each in slices]),
            "log_e": np.zeros((len(slices), deviations)),
            "mean": np.zeros((len(slices), means)),
            "blur": np.ones((len(slices), means)),
            "weight": np.zeros((len(slices), deviations, means)),
        }
        for place, (_, each) in enumerate(slices):
            rows_of, columns = each.weight.shape
            # A single row has E = 0, of which there is no density.
            arrays["log_e"][place, :rows_of] = np.where(np.isfinite(each.log_e), each.log_e, 0.0)
            arrays["mean"][place, :columns] = each.mean
            arrays["blur"][place, :columns] = each.blur
            arrays["weight"][place, :rows_of, :columns] = each.weight
        arrays["height"] = log_height(arrays["alpha"])
        arrays["least"] = arrays["log_e"][:, 0].copy()
        arrays["has_small"] = np.any(arrays["weight"][:, 0], axis=1)
        padded.append(arrays)
    return padded


def _power(count: int) -> int:
    return 1 << (count - 1).bit_length()


def _log_small(jax: Any, jnp: Any, groups: list[dict[str, Any]], log_variance: Any) -> Any:
    """Return log P(E <= e | N) of the least deviations of slices, at log variances (n_slices, n)."""
    n, log_e, has_small = (
        np.concatenate([each[name] for each in groups])[:, None] for name in ("n", "least", "has_small")
    )
    several = np.maximum(n, 2.0)
    below = jax.scipy.special.gammainc(
        jnp.asarray((several - 1.0) / 2.0), several / 2.0 * jnp.exp(jnp.minimum(log_e - log_variance, 600.0))
    )
    # A single row has E = 0.
    log_below = jnp.where(n < 2.0, 0.0, jnp.log(jnp.maximum(below, _TINY)))
    return jnp.where(has_small, log_below, _LOWEST)


def _of_slice(jax: Any, jnp: Any, of: dict[str, Any], small: Any, mean: Any, log_variance: Any) -> Any:
    """Return ``Slice.log_likelihood`` at pairs (n,)."""
    n = jnp.maximum(of["n"], 2.0)
    distance = of["log_e"][1:] + jnp.log(n / (n - 1.0)) - log_variance[:, None]
    # (2).
    distribution = of["height"] - of["alpha"] * (jnp.expm1(jnp.minimum(distance, 600.0)) - distance)
    distribution = jnp.concatenate([small[:, None], jnp.maximum(distribution, _LOWEST)], axis=1)
    has_weight = jnp.any(of["weight"] > 0.0, axis=1)
    top = jax.lax.stop_gradient(jnp.max(jnp.where(has_weight, distribution, _LOWEST), axis=1, keepdims=True))
    sums = jnp.exp(jnp.minimum(distribution - top, 0.0)) @ of["weight"]
    along = top + jnp.log(jnp.maximum(sums, _TINY))
    width = of["blur"] + jnp.exp(log_variance)[:, None] / of["n"]
    parts = along - jnp.log(2.0 * math.pi * width) / 2.0 - (mean[:, None] - of["mean"]) ** 2 / (2.0 * width)
    return jax.scipy.special.logsumexp(parts, axis=1)
