r"""The law of noise on a cone in JAX, its two matrices made of latent standard normal numbers.

The coordinates x of ``latent_noise`` are :math:`c + s u` of numbers u, with c and s about their means and
standard deviations. Given them the density is normal, (2) there, at moments that are multiples of N:

.. math:: -\tfrac 1 2 (r - \delta b)^T W (r - \delta b), \qquad r = y - N_0 b -
    \sqrt{1 - h} (P - Q) / \lambda, \quad \delta = N - N_0 \qquad (1)

for every N at once, about an N_0 near by, so that no digits are lost where N is large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from suffice.pipeline.math.engines.cone.latent_noise import SHARE

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.cone.latent_noise import ConePoints, LatentConeNoise
    from suffice.typing import Floats


def log_density(noise: LatentConeNoise, x: Any, per_row: Any, n: Floats) -> Any:
    """Return the log density of noise and coordinates for every N, up to a constant.

    Parameters
    ----------
    noise : LatentConeNoise
    x : array of shape (n_cells, n_coordinates)
    per_row : array of shape (n_cells, n_moments)
        Moments over N.
    n : ndarray of shape (n_cells, n_numbers), float64

    Returns
    -------
    array of shape (n_cells, n_numbers)
    """
    half = x.shape[1] // 2
    (first, log_first), (second, log_second) = (
        _matrix(noise.points, part) for part in (x[:, :half], x[:, half:])
    )
    slope = per_row @ noise.coefficients.T
    near = n[:, n.shape[1] // 2, None]
    apart = noise.values - near * slope - noise.unit * np.sqrt(1.0 - SHARE) * (first - second)
    weighted, of_slope = apart @ noise.precision, slope @ noise.precision
    moved = n - near
    # (1), multiplied out.
    square = jnp.sum(apart * weighted, axis=1)[:, None]
    cross, bend = (jnp.sum(each * slope, axis=1)[:, None] for each in (weighted, of_slope))
    of_coordinates = (log_first + log_second)[:, None]
    return of_coordinates - 0.5 * (square - 2.0 * moved * cross + moved**2 * bend)


def _matrix(points: ConePoints, x: Any) -> tuple[Any, Any]:
    """Return components (n_cells, D) of a matrix at coordinates, and the log density of these (n_cells,)."""
    d, off = points.columns, points.n_coordinates - 1 - 2 * points.columns
    log_t, beside, log_chi, log_e = jnp.split(x, np.cumsum([1, off, d]), axis=1)
    raw = jnp.zeros((len(x), d, points.size))
    raw = raw.at[:, *points.off].set(beside).at[:, *points.last].set(jnp.exp(log_chi))
    length = jnp.sqrt(jnp.sum(raw**2, axis=2) + 2.0 * jnp.exp(log_e))
    unit = raw / length[:, :, None]
    gram = unit @ jnp.swapaxes(unit, 1, 2)
    parts = [jnp.ones((len(x), 1)), *([unit[:, :, 0]] if points.linear else []), gram[:, *points.above]]
    value = points.n_components * log_t[:, 0] - jnp.exp(log_t[:, 0]) - 0.5 * jnp.sum(beside**2, axis=1)
    value += log_chi @ points.freedom - 0.5 * jnp.sum(jnp.exp(2.0 * log_chi), axis=1)
    value += jnp.sum(log_e - jnp.exp(log_e), axis=1)
    return jnp.exp(log_t) * jnp.concatenate(parts, axis=1), value
