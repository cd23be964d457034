r"""Log emissions of fixed released counts as functions of the root of the expected count, tabulated.

As a function of :math:`u = \sqrt\mu` a log emission is smooth on one scale, whatever y and b are. Far below
y its chance is all noise, far above it all shrunken counts: there it is a quadratic function of u exactly,
but for 1e-15. In between it is a cubic on every interval of ``_WIDTH``, with its value and slope exact at the
ends; the slope is known from the released count one below:

.. math:: \frac{d}{d\mu} \log f(y; \mu) = \frac{f(y - 1; \mu)}{f(y; \mu)} - 1

Little noise bends sharply near :math:`\mu = q`: behind a scale below ``_LITTLE`` the intervals are even in
:math:`u + \operatorname{asinh}(u / \sqrt q)`. Logs above -60 are right to 2e-4, from a scale of 2 on to 1e-5.

The latent count is summed out. With n Poisson(mu), noise of scale b and :math:`q = e^{-1/b}`, the sum
splits at y into two incomplete gamma functions, P(Poisson(x) <= y) = Q(y + 1, x):

.. math::
    \sum_n \mathrm{Pois}(n; \mu)\, \mathrm{DLap}_b(y - n) = \frac{1 - q}{1 + q} \left(
    q^y e^{\mu (1/q - 1)} Q(y + 1, \mu / q) + q^{-y} e^{-\mu (1 - q)} P(y + 1, \mu q) \right)

Of y <= 0 only :math:`q^{-y} e^{-\mu (1 - q)}` is left in the brackets: given such a y the exact count is
Poisson(mu q). Where one of the functions is small, or far from its mean, it is the sum that it stands for, as
multiples of Pois(y; mu): there are no differences of large numbers then.

MOVED.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from suffice.typing import Counts, Floats, Mask, Rows

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


_NEGLIGIBLE = 1e-17
_LEAST = 1e-250
"""Of an incomplete gamma function: below it its sum is taken."""
_FAR = 0.9
"""The ratio of neighbouring terms from which on down a sum is taken: it ends after 400 terms at most."""


def log_noise_at_zero(scale: float) -> float:
    """Return the log chance of no noise, log((1 - q) / (1 + q)); 0 at scale 0."""
    return 0.0 if scale == 0.0 else float(np.log(np.tanh(0.5 / scale)))


def log_emission(released: ArrayLike, expected: ArrayLike, scale: float) -> Floats:
    """Return the log chance of released counts, exact to about ten digits.

    Parameters
    ----------
    released : array_like
        y, whole numbers; negative ones are normal.
    expected : array_like
        mu >= 0, of a shape that broadcasts with `released`.
    scale : float, >= 0
        b of the noise; at 0 the released count is the exact one, and a negative one has chance 0.
    """
    y, mu = np.broadcast_arrays(np.asarray(released, dtype=np.float64), np.asarray(expected, np.float64))
    shape = y.shape
    y, mu = y.ravel(), mu.ravel()
    if scale == 0.0:
        exact: Floats = _log_poisson(y, mu).reshape(shape)
        return exact
    shrunk = np.exp(-1.0 / scale)
    log_chance = log_noise_at_zero(scale) + np.minimum(y, 0.0) / scale + mu * np.expm1(-1.0 / scale)
    above = np.flatnonzero((y > 0.0) & (mu > 0.0))
    if len(above):
        # At mu = 0 nothing but the noise is left.
        log_chance[above] = log_noise_at_zero(scale) + _log_brackets(y[above], mu[above], scale, shrunk)
    none = (y > 0.0) & (mu == 0.0)
    log_chance[none] -= y[none] / scale
    noisy: Floats = log_chance.reshape(shape)
    return noisy


def _log_brackets(y: Floats, mu: Floats, scale: float, shrunk: float) -> Floats:
    from scipy.special import gammainc, gammaincc

    poisson = _log_poisson(y, mu)
    stretched = np.exp(np.minimum(np.log(mu) + 1.0 / scale, 700.0))
    with np.errstate(divide="ignore"):
        ratio = y / stretched
        chance = gammaincc(y + 1.0, stretched)
        below = mu * np.expm1(min(1.0 / scale, 700.0)) - y / scale + np.log(chance)
        summed = (ratio < _FAR) | (chance < _LEAST)
        below[summed] = poisson[summed] + np.log1p(_sum_below(y[summed], stretched[summed]))
        shrunken = mu * shrunk
        chance = gammainc(y + 1.0, shrunken)
        above = mu * np.expm1(-1.0 / scale) + y / scale + np.log(chance)
        summed = (shrunken / (y + 1.0) < _FAR) | (chance < _LEAST)
        above[summed] = poisson[summed] + np.log(_sum_above(y[summed], shrunken[summed]))
    result: Floats = np.logaddexp(below, above)
    return result


def _sum_below(y: Floats, x: Floats) -> Floats:
    """Return y/x + y(y - 1)/x^2 + ..., which ends by itself."""
    return _sum_of_products(lambda step, rows: np.maximum(y[rows] - step, 0.0) / x[rows], len(y))


def _sum_above(y: Floats, x: Floats) -> Floats:
    """Return x/(y + 1) + x^2/((y + 1)(y + 2)) + ..., of x below y + 1."""
    return _sum_of_products(lambda step, rows: x[rows] / (y[rows] + (step + 1.0)), len(y))


def _sum_of_products(ratio: Callable[[int, Rows], Floats], size: int) -> Floats:
    total, rows, step = np.zeros(size), np.arange(size), 0
    term = np.ones(size)
    while len(rows):
        term = term * ratio(step, rows)
        total[rows] += term
        going: Mask = term > _NEGLIGIBLE * total[rows]
        rows, term, step = rows[going], term[going], step + 1
    return total


def _log_poisson(count: Floats, expected: Floats) -> Floats:
    from scipy.special import gammaln, xlogy

    with np.errstate(invalid="ignore"):
        log_poisson = xlogy(count, expected) - expected - gammaln(count + 1.0)
    result: Floats = np.where(count < 0.0, -np.inf, log_poisson)
    return result


_WIDTH = 0.1
_ALL = slice(None)
_LITTLE = 0.6
_REACH = 4.5
"""How far from the middle of the table its ends are: the root of a Poisson number has deviation 1/2."""
_FARTHEST = 24.0
"""From the root of y up to the end: chances are below e^-1000 there."""
_STEPS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class EmissionTable:
    """Piecewise cubics, one for each of some released counts, all above 0, behind one noise.

    Attributes
    ----------
    starts : ndarray of shape (n_rows,), float64
        Where the first interval of a row begins, in widths.
    lasts, offsets : ndarray of shape (n_rows,), int64
        The last interval of a row, and where its first one stands in `coefficients`.
    coefficients : tuple of four ndarray of shape (n_intervals,), float64
        Constant, linear, quadratic, cubic, of the distance from the interval's lower end in widths.
    bend : float
        One over the root of q where the noise is little, else 0.
    """

    starts: Floats
    lasts: Rows
    offsets: Rows
    coefficients: tuple[Floats, Floats, Floats, Floats]
    bend: float

    @classmethod
    def of(cls, released: Counts, scale: float) -> EmissionTable:
        """Tabulate released counts above 0 behind noise of a scale above 0."""
        half = float(np.exp(min(0.5 / scale, 300.0)))
        bend = half if scale < _LITTLE else 0.0
        roots = np.sqrt(released)
        shrunken, farthest = (np.sqrt(released + 1.0) + _REACH) * half, roots + _FARTHEST
        first = np.zeros_like(roots) if bend else np.floor(np.maximum((roots - _REACH) / half, 0.0) / _WIDTH)
        last = np.ceil(_coordinate(np.minimum(shrunken, farthest), bend) / _WIDTH)
        intervals = (last - first).astype(np.int64)
        # The nodes of all rows, one row after the other; a row has an interval more at either end.
        offsets = np.cumsum(intervals + 2) - (intervals + 2)
        row = np.repeat(np.arange(len(released)), intervals + 1)
        node = np.arange(len(row)) - (offsets - np.arange(len(released)))[row]
        root = _root((first[row] + node) * _WIDTH, bend)
        value = log_emission(released[row], root**2, scale)
        below = log_emission(released[row] - 1, root**2, scale)
        slope = 2.0 * _WIDTH * root * np.expm1(np.minimum(below - value, 700.0)) / _stretch(root, bend)
        coefficients = tuple(np.zeros(int(np.sum(intervals + 2))) for _ in range(4))
        constant, linear, quadratic, cubic = coefficients
        lower = np.flatnonzero(node < intervals[row])
        rise = value[lower + 1] - value[lower]
        place = offsets[row[lower]] + 1 + node[lower]
        constant[place], linear[place] = value[lower], slope[lower]
        quadratic[place] = 3.0 * rise - 2.0 * slope[lower] - slope[lower + 1]
        cubic[place] = slope[lower] + slope[lower + 1] - 2.0 * rise
        # Below: log c - y/b + mu (1/q - 1), a quadratic about one width before the first node.
        growth = 0.0 if bend else float(np.expm1(1.0 / scale)) * _WIDTH**2
        before = first - 1.0
        constant[offsets] = log_noise_at_zero(scale) - released / scale + growth * before**2
        linear[offsets] = 2.0 * growth * before
        quadratic[offsets] = growth
        # Above: log c + y/b - mu (1 - q), about the last node; at the farthest end the Poisson chance's bend.
        ends, above = np.cumsum(intervals + 1) - 1, offsets + intervals + 1
        constant[above], linear[above] = value[ends], slope[ends]
        bends = np.where(shrunken <= farthest, np.expm1(-1.0 / scale), -1.0 - released / farthest**2)
        quadratic[above] = bends * _WIDTH**2
        return cls(
            starts=before,
            lasts=intervals + 1,
            offsets=offsets,
            coefficients=(constant, linear, quadratic, cubic),
            bend=bend,
        )

    def take(self, rows: Rows) -> EmissionTable:
        """Return the rows in the given order, once for each time that they are asked for."""
        return EmissionTable(
            starts=self.starts[rows],
            lasts=self.lasts[rows],
            offsets=self.offsets[rows],
            coefficients=self.coefficients,
            bend=self.bend,
        )

    def log_emission(self, root: Floats, part: slice = _ALL) -> Floats:
        """Return the log chance of every row in a part of the table, (n_rows,), at a root of mu each."""
        distance = _coordinate(root, self.bend) * (1.0 / _WIDTH)
        distance -= self.starts[part]
        interval = distance.astype(np.int64)
        np.minimum(interval, self.lasts[part], out=interval)
        np.maximum(interval, 0, out=interval)
        distance -= interval
        interval += self.offsets[part]
        constant, linear, quadratic, cubic = self.coefficients
        value: Floats = cubic.take(interval)
        value *= distance
        value += quadratic.take(interval)
        value *= distance
        value += linear.take(interval)
        value *= distance
        value += constant.take(interval)
        return value


def _coordinate(root: Floats, bend: float) -> Floats:
    return root + np.arcsinh(bend * root) if bend else root


def _stretch(root: Floats, bend: float) -> Floats | float:
    """Return the slope of the coordinate."""
    return 1.0 + bend / np.hypot(1.0, bend * root) if bend else 1.0


def _root(coordinate: Floats, bend: float) -> Floats:
    """Return the inverse of the coordinate, by bisection of its exponential part."""
    if not bend:
        return coordinate
    low, high = np.zeros_like(coordinate), coordinate.copy()
    for _ in range(_STEPS):
        # In x with u = sinh(x) / bend the sum is u + x, which rises by at least 1 for 1.
        middle = 0.5 * (low + high)
        over = middle + np.sinh(np.minimum(middle, 700.0)) / bend > coordinate
        high, low = np.where(over, middle, high), np.where(over, low, middle)
    root: Floats = np.sinh(np.minimum(0.5 * (low + high), 700.0)) / bend
    return root
