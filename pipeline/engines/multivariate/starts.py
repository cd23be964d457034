"""Where the chains of latent moments start."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.engines.multivariate.evidence import outer

if TYPE_CHECKING:
    from suffice.pipeline.distributions.moment_projection import Moments
    from suffice.pipeline.engines.multivariate.log_posterior import Target
    from suffice.pipeline.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats


_LEAST_SPREAD = 1e-12
"""Added so that a start is positive definite where there is next to no noise."""


def starts(
    target: Target, sums: Moments, statistic: NoisyStatistic, n_chains: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return overdispersed starts about the noisy moments, made possible, and a guess of the spread.

    Parameters
    ----------
    target : Target
    sums : Moments
        The unbiased estimates.
    statistic : NoisyStatistic
    n_chains : int
        Of each cell.
    rng : numpy.random.Generator

    Returns
    -------
    start : ndarray of shape (n_coordinates, n_cells, n_chains), float64
    guess : ndarray of shape (n_coordinates, n_cells), float64
        Of the posterior's standard deviations.
    """
    size, latent_n = target.size, target.latent_n
    noise = statistic.plan.quantity_noise_sd(statistic.plan.quantities[0])
    if latent_n.fixed:
        n = np.full(len(sums.n), latent_n.lowest)
    else:
        room = min(1.0, (latent_n.highest - latent_n.lowest) / 4.0)
        n = np.clip(sums.n, latent_n.lowest + room, latent_n.highest - room)
    # Noise leaves less than it adds: a spread of a tenth of the half range is mixed in where it is large.
    noise_of_products = (
        math.sqrt(2.0) / np.abs(target.scaled.coefficients[:, 1 + size :]).max(axis=0).min() / n
    )
    doubt = np.minimum(1.0, noise_of_products)
    average, spread = _possible(sums, n, noise_of_products, linear=target.linear)
    spread = spread + (_LEAST_SPREAD + 0.1 * doubt) * np.eye(size)[:, :, None]
    base_point = target.coordinates(n, average, spread)
    scales = [np.minimum(0.5, noise / n)[None]] if not latent_n.fixed else []
    if target.linear:
        scales.append(np.repeat(0.3 * doubt[None], size, axis=0))
    rows, columns = np.tril_indices(size)
    root = np.sqrt(np.einsum("iic->ic", spread))
    below = np.minimum(0.5 * root[rows], doubt / root[columns])
    relative = np.minimum(0.5, doubt / root[rows] ** 2)
    scales.append(np.where((rows == columns)[:, None], relative, below))
    guess = np.maximum(np.concatenate(scales), 1e-12)
    jitter = rng.standard_normal((target.n_coordinates, len(n), n_chains))
    return base_point[:, :, None] + guess[:, :, None] * jitter, guess


def _possible(sums: Moments, n: Floats, noise: Floats, *, linear: bool) -> tuple[Floats, Floats]:
    """Return means (d, c) and S / n (d, d, c) near unbiased moments, that some rows could have.

    What lies beyond the bounds by more than a few times the noise is left there: the distribution knows no
    bounds, and chains would not find their way back from them.
    """

    def within(values: Floats) -> Floats:
        size = np.abs(values)
        return np.sign(values) * np.minimum(size, np.maximum(1.0, size - 4.0 * noise))

    average = within(sums.total.T / n) if linear else np.zeros_like(sums.total.T)
    spread = np.moveaxis(sums.products, 0, 2) / n - outer(average, average)
    values, vectors = np.linalg.eigh(np.moveaxis(spread, 2, 0))
    spread = np.moveaxis((vectors * np.maximum(values, 0.0)[:, None, :]) @ np.swapaxes(vectors, 1, 2), 0, 2)
    variance = np.einsum("iic->ic", spread)
    shrink = np.sqrt(np.divide(within(variance), variance, out=np.ones_like(variance), where=variance > 0.0))
    return average, spread * outer(shrink, shrink)
