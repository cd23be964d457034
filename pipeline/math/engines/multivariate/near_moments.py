"""Moments that some rows could have, near those that were released: where chains start."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.multivariate.evidence import outer

if TYPE_CHECKING:
    from suffice.pipeline.math.distributions.normal_inverse_wishart import Moments
    from suffice.pipeline.math.engines.multivariate.log_posterior import LatentTarget
    from suffice.typing import Floats

_LEAST_SPREAD = 1e-12
"""Added so that a start is positive definite where there is next to no noise."""


def near(target: LatentTarget, sums: Moments) -> tuple[Floats, Floats, Floats, Floats]:
    """Return n (c,), the noise of products (c,), means (d, c) and S / n (d, d, c) near the noisy moments."""
    size, latent_n = target.size, target.latent_n
    if latent_n.fixed:
        n = np.full(len(sums.n), latent_n.lowest)
    else:
        room = min(1.0, (latent_n.highest - latent_n.lowest) / 4.0)
        n = np.clip(sums.n, latent_n.lowest + room, latent_n.highest - room)
    if target.cone:
        noise_of_products = target.noise_sds[1 + size :].max() / n
    else:
        noise_of_products = (
            math.sqrt(2.0) / np.abs(target.scaled.coefficients[:, 1 + size :]).max(axis=0).min() / n
        )
    average, spread = _possible(sums, n, noise_of_products, linear=target.linear)
    # Noise leaves less than it adds: a spread of a tenth of the half range is mixed in where it is large.
    mixed = _LEAST_SPREAD + 0.1 * np.minimum(1.0, noise_of_products)
    return n, noise_of_products, average, spread + mixed * np.eye(size)[:, :, None]


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
    # The nearest positive semidefinite matrix: noise may leave none.
    values, vectors = np.linalg.eigh(np.moveaxis(spread, 2, 0))
    spread = np.moveaxis((vectors * np.maximum(values, 0.0)[:, None, :]) @ np.swapaxes(vectors, 1, 2), 0, 2)
    variance = np.einsum("iic->ic", spread)
    # Variances of records in -1..1 are at most 1, but for a few times the noise.
    shrink = np.sqrt(np.divide(within(variance), variance, out=np.ones_like(variance), where=variance > 0.0))
    return average, spread * outer(shrink, shrink)
