"""Noise of a statistic's own law, drawn in float64 from a generator: for consumers, never for privacy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.terms.statistics.cone_noise import ConeNoise, Pair
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.typing import Floats

_LARGE = 1 << 56
"""Noise that may be larger is not added up in 64 bits."""


def simulated_noise(
    plan: StatisticPlan,
    shape: tuple[int, ...],
    rng: np.random.Generator,
    terms: int = 1,
    components: Sequence[int] | None = None,
) -> NDArray[Any]:
    """Simulated noise of a statistic's own law, which protects nobody, (*shape, n_components).

    A generator in the same state gives noise that grows in step with its scale, before it is rounded.

    Parameters
    ----------
    plan : StatisticPlan
    shape : tuple of int
        Of cells: the components of one are drawn together.
    rng : numpy.random.Generator
    terms : int
        Of so many noises it is the sum.
    components : sequence of int, optional
        Only these, in this order.

    Returns
    -------
    ndarray of int64, or of Python integers where noise on a cone may exceed them
    """
    chosen = range(len(plan.components)) if components is None else components
    if plan.cone is None:
        return discrete_laplace(plan.scale, (*shape, len(chosen)), rng, terms)
    return _noise_on_cone(plan.cone, shape, rng, terms, [plan.cone.pairs[place] for place in chosen])


def _noise_on_cone(
    noise: ConeNoise, shape: tuple[int, ...], rng: np.random.Generator, terms: int, pairs: Sequence[Pair]
) -> NDArray[Any]:
    """Differences of two rounded matrices t G / rate, in float64 before they are rounded."""
    total: NDArray[Any] = np.zeros((*shape, len(pairs)), dtype=object if noise.reach >= _LARGE else np.int64)
    rows = sorted({row for pair in pairs for row in pair} - (set() if noise.linear else {0}))
    unit = float(noise.steps**2 / noise.rate)
    for sign in (1, -1) * terms:
        t = unit * rng.standard_gamma(noise.n_components, shape)
        points = {row: _point(noise.dimension, shape, rng, in_ball=row > 0) for row in rows}
        for place, (i, j) in enumerate(pairs):
            entry = t if j == 0 else t * np.sum(points[i] * points[j], axis=-1)
            total[..., place] += sign * _integers_of(entry, total.dtype)
    return total


def _point(dimension: int, shape: tuple[int, ...], rng: np.random.Generator, *, in_ball: bool) -> Floats:
    """Uniform points of the unit ball, or of the unit sphere, (*shape, dimension)."""
    normal = rng.standard_normal((*shape, dimension))
    squares = np.sum(normal**2, axis=-1, keepdims=True)
    # The first coordinates of a point of the sphere of two more dimensions are uniform in the ball.
    more = 2.0 * rng.standard_exponential((*shape, 1)) if in_ball else 0.0
    return np.asarray(normal / np.sqrt(squares + more))


def _integers_of(values: Floats, kind: np.dtype[Any]) -> NDArray[Any]:
    rounded = np.rint(values)
    if kind == np.int64:
        return rounded.astype(np.int64)
    integers = np.empty(rounded.shape, dtype=object)
    integers.ravel()[:] = [int(value) for value in rounded.ravel().tolist()]
    return integers
