r"""Draws of latent counts given their means and what was released of them.

Model. A count is Poisson given its mean, and was released with discrete Laplace noise, once or several times,
as in (1) of ``count_likelihoods``. Between its kinks the noise is :math:`e^{c k}`, so that there the count is
a Poisson one of the mean :math:`\mu e^c`, truncated:

.. math:: P(k \mid \mu, y) \propto \frac{(\mu e^c)^k}{k!}, \qquad y_{(l)} < k \le y_{(l + 1)}. \qquad (1)

Method. A piece is drawn by its probability, and a count in it by the inverse of the distribution function of
the Poisson law, from a normal approximation by steps of one. Where that function is 0 or 1 but for ``_FAR``,
the count lies next to the kink, and ratios of neighbouring probabilities hardly change: it is drawn from a
geometric law.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.count_likelihoods import log_above, log_below

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.count_likelihoods import NoisyCount
    from suffice.typing import Floats

_FAR = 1e-12
_FLOOR = 1e-300


def drawn_counts(count: NoisyCount, mean: Floats, rng: np.random.Generator) -> Floats:
    """Draw latent counts, (draws, n_counts), given means of that shape."""
    order = np.argsort(count.values, axis=1, kind="stable")
    kinks = np.take_along_axis(count.values, order, axis=1)
    rates = (1.0 / count.scales)[order]
    n_releases = kinks.shape[1]
    ends = [np.full(len(kinks), -1.0), *np.maximum(kinks.T, -1.0), np.full(len(kinks), np.inf)]
    log_piece, tilts = [], []
    for piece in range(n_releases + 1):
        sign = np.where(np.arange(n_releases) < piece, -1.0, 1.0)
        tilt, height = rates @ sign, -np.sum(sign * rates * kinks, axis=1)
        tilts.append(tilt)
        if piece == n_releases:
            log_piece.append(log_above(mean, ends[piece], tilt, height, np.zeros(len(kinks))))
            continue
        upper, lower = (
            log_below(mean, ends[place], tilt, height, np.zeros(len(kinks))) for place in (piece + 1, piece)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            log_piece.append(np.where(upper > lower, upper + np.log1p(-np.exp(lower - upper)), -np.inf))
    chance = np.exp(np.stack(log_piece) - np.max(log_piece, axis=0))
    ladder = np.cumsum(chance, axis=0)
    chosen = np.sum(ladder < rng.random(mean.shape) * ladder[-1], axis=0)
    cell = np.broadcast_to(np.arange(len(kinks)), mean.shape)
    low, high = (np.stack(ends)[chosen + step, cell] for step in (0, 1))
    return _truncated(mean * np.exp(np.stack(tilts)[chosen, cell]), low, high, rng)


def _truncated(mean: Floats, low: Floats, high: Floats, rng: np.random.Generator) -> Floats:
    """Draw Poisson counts that lie above `low` and up to `high`."""
    from scipy.special import pdtr

    mean = np.maximum(mean, _FLOOR)
    below = np.where(low < 0.0, 0.0, pdtr(np.maximum(low, 0.0), mean))
    upto = np.where(np.isinf(high), 1.0, pdtr(np.where(np.isinf(high), 0.0, high), mean))
    u = below + rng.random(mean.shape) * (upto - below)
    drawn = _inverse(np.clip(u, _FAR, 1.0 - _FAR), mean)
    steps = rng.random(mean.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        up = low + 1.0 + np.floor(np.log(steps) / np.log(np.minimum(mean / (low + 2.0), 1.0 - _FAR)))
        down = high - np.floor(np.log(steps) / np.log(np.minimum(high / mean, 1.0 - _FAR)))
    drawn = np.where(below > 1.0 - _FAR, up, drawn)
    drawn = np.where(upto < _FAR, np.maximum(down, 0.0), drawn)
    counts: Floats = np.clip(drawn, low + 1.0, high)
    return counts


def _inverse(u: Floats, mean: Floats) -> Floats:
    """Return the least counts whose Poisson distribution function is u or more."""
    from scipy.special import ndtri, pdtr

    z, mean = ndtri(u.ravel()), mean.ravel()
    count = np.maximum(np.floor(mean + np.sqrt(mean) * z + (z**2 - 1.0) / 6.0), 0.0)
    for step in (1.0, -1.0):
        moving = np.arange(len(count))
        while moving.size:
            at = count[moving] + min(step, 0.0)
            is_above = (at >= 0.0) & (pdtr(np.maximum(at, 0.0), mean[moving]) >= u.ravel()[moving])
            moving = moving[is_above == (step < 0.0)]
            count[moving] += step
    return count.reshape(u.shape)
