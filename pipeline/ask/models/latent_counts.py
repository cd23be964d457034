r"""Exact counts behind released ones: independent draws of n given y, mu and the noise.

.. math:: P(n \mid y) \propto \mathrm{Pois}(n; \mu)\, q^{|y - n|}

Of y <= 0 that is Poisson(mu q). Of other y and a small mu a draw of Poisson(mu/q) is kept with chance
:math:`q^{2 \max(n - y, 0)}`. Elsewhere the law is drawn by rejection: its log is concave, so that it is
nowhere above its mode, and beyond any point falls at least as fast as there. All three are exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from suffice.typing import Counts, Floats, Rows

_SMALL = 1.0
_LOG_FACTORIALS = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, 1 << 13)))])


def draw_latent_counts(released: Counts, expected: Floats, scale: float, rng: np.random.Generator) -> Counts:
    """Draw an exact count for each released one.

    Parameters
    ----------
    released : ndarray of shape (n,), int64
        y; at scale 0 the exact counts themselves.
    expected : ndarray of shape (n,), float64
        mu > 0, up to 1e15.
    scale : float, >= 0
        b of the noise.
    rng : numpy.random.Generator
    """
    if scale == 0.0:
        return released.copy()
    stretched = expected * np.exp(min(1.0 / scale, 600.0))
    is_above = released > 0
    is_many = is_above & (stretched > _SMALL)
    rate = np.where(is_above, stretched, expected * np.exp(-1.0 / scale))
    # Nothing is drawn of a rate of 0: the third kind follows below.
    drawn: Counts = np.asarray(rng.poisson(np.where(is_many, 0.0, rate)), dtype=np.int64)
    _redraw_above(drawn, np.flatnonzero(is_above & ~is_many), released, rate, scale, rng)
    many = np.flatnonzero(is_many)
    drawn[many] = _draw_log_concave(released[many], expected[many], stretched[many], scale, rng)
    return drawn


def _redraw_above(
    drawn: Counts, few: Rows, released: Counts, rate: Floats, scale: float, rng: np.random.Generator
) -> None:
    """Keep counts above the released one by chance, and draw the others anew until they are kept."""
    left = few[drawn[few] > released[few]]
    while len(left):
        excess = drawn[left] - released[left]
        left = left[rng.standard_exponential(len(left)) * scale < 2.0 * excess]
        drawn[left] = rng.poisson(rate[left])
        left = left[drawn[left] > released[left]]


def _draw_log_concave(
    released: Counts, expected: Floats, stretched: Floats, scale: float, rng: np.random.Generator
) -> Counts:
    """Draw by rejection from a flat middle with a geometric tail on either side."""
    y, log_rate, tilt = released, np.log(expected), 1.0 / scale
    shrunken = expected * np.exp(-tilt)
    # Of y the nearest between the modes that it would have with all of the noise on either side.
    lower, upper = np.floor(shrunken), np.floor(np.minimum(stretched, 2.0**62))
    mode = np.clip(y, lower.astype(np.int64), upper.astype(np.int64))

    def fall_up(n: Counts) -> Floats:
        """Return how much the log falls from n to n + 1."""
        fall: Floats = np.log(n + 1.0) - log_rate + np.where(n < y, -tilt, tilt)
        return fall

    def fall_down(n: Counts) -> Floats:
        """Return how much the log falls from n to n - 1; infinitely from 0."""
        with np.errstate(divide="ignore"):
            fall: Floats = log_rate - np.log(np.maximum(n, 0)) + np.where(n > y, -tilt, tilt)
        return fall

    # About where the log has fallen by 1; any distance above 0 is right.
    slope_up, slope_down = np.maximum(fall_up(mode), 0.0), np.maximum(fall_down(mode), 0.0)
    wide_up = 2.0 / (slope_up + np.sqrt(slope_up**2 + 2.0 / (mode + 1.0)))
    wide_down = 2.0 / (slope_down + np.sqrt(slope_down**2 + 2.0 / np.maximum(mode, 1.0)))
    right = mode + np.ceil(wide_up).astype(np.int64)
    left = np.maximum(mode - np.maximum(np.ceil(wide_down), 1.0).astype(np.int64), -1)
    height = _log_weight(mode, y, log_rate, tilt)
    # Nothing is below 0: there the fall is infinite.
    rate_up, rate_down = fall_up(right), np.minimum(fall_down(left), 700.0)
    height_up = _log_weight(right, y, log_rate, tilt) - height
    height_down = np.where(left < 0, -np.inf, _log_weight(np.maximum(left, 0), y, log_rate, tilt) - height)
    middle = (right - left - 1).astype(np.float64)
    up = middle + np.exp(height_up) / -np.expm1(-rate_up)
    total = up + np.exp(height_down) / -np.expm1(-rate_down)

    drawn, open_rows = np.empty_like(y), np.arange(len(y))
    while len(open_rows):
        rows = open_rows
        place, step = rng.random(len(rows)) * total[rows], rng.standard_exponential(len(rows))
        in_middle, is_up = place < middle[rows], place < up[rows]
        rate = np.where(is_up, rate_up[rows], rate_down[rows])
        away = np.floor(step / rate)
        proposed = np.where(is_up, right[rows] + away, left[rows] - away)
        proposed = np.where(in_middle, left[rows] + 1 + np.floor(place), proposed).astype(np.int64)
        hat = np.where(is_up, height_up[rows], height_down[rows]) - away * rate
        hat = np.where(in_middle, 0.0, hat)
        weight = _log_weight(np.maximum(proposed, 0), y[rows], log_rate[rows], tilt) - height[rows]
        kept = (rng.standard_exponential(len(rows)) > hat - weight) & (proposed >= 0)
        drawn[rows[kept]] = proposed[kept]
        open_rows = rows[~kept]
    return drawn


def _log_weight(count: Counts, released: Counts, log_rate: Floats, tilt: float) -> Floats:
    weight: Floats = count * log_rate - _log_factorial(count) - np.abs(count - released) * tilt
    return weight


def _log_factorial(count: Counts) -> Floats:
    if not len(count) or count.max() < len(_LOG_FACTORIALS):
        return _LOG_FACTORIALS.take(count)
    from scipy.special import gammaln

    factorial: Floats = gammaln(count + 1.0)
    return factorial
