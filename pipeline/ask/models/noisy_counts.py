r"""The law of one released count: a Poisson number behind discrete Laplace noise.

.. math::
    n \sim \mathrm{Pois}(\mu), \qquad
    y \mid n \sim \mathrm{DLap}_b, \quad P(y \mid n) = \frac{1 - q}{1 + q} q^{|y - n|}, \qquad q = e^{-1/b}

Two questions are answered: how probable is a released y, the exact count n summed out; and what was n, given
y.

**Log emissions**, :math:`\log f(y; \mu)` with :math:`f(y; \mu) = P(y)`. The sum over n splits at y into two
incomplete gamma functions, as :math:`P(\mathrm{Pois}(x) \le y) = Q(y + 1, x)`:

.. math::
    f(y; \mu) = \frac{1 - q}{1 + q} \left(
    q^y e^{\mu (1/q - 1)} Q(y + 1, \mu / q) + q^{-y} e^{-\mu (1 - q)} P(y + 1, \mu q) \right)

Of y <= 0 only :math:`q^{-y} e^{-\mu (1 - q)}` is left in the brackets. Where one of the functions is small,
or far from its mean, it is the sum that it stands for, as multiples of Pois(y; mu): there are no differences
of large numbers then. ``log_emission`` is right to about ten digits.

**Tables of them.** As a function of :math:`u = \sqrt\mu` a log emission is smooth on one scale, whatever y
and b are. Far below y its chance is all noise, far above it all shrunken counts: there it is a quadratic
function of u exactly, but for 1e-15. In between it is a cubic on every interval of ``_WIDTH``, with its value
and slope exact at the ends; the slope is known from the released count one below:

.. math:: \frac{d}{d\mu} \log f(y; \mu) = \frac{f(y - 1; \mu)}{f(y; \mu)} - 1

Little noise bends sharply near :math:`\mu = q`: behind a scale below ``_LITTLE`` the intervals are even in
:math:`u + \operatorname{asinh}(u / \sqrt q)`. Logs above -60 are right to 2e-4, from a scale of 2 on to 1e-5.

**Exact counts** behind released ones are independent given y and mu:

.. math:: P(n \mid y) \propto \mathrm{Pois}(n; \mu)\, q^{|y - n|}

Of y <= 0 that is Poisson(mu q). Of other y and a small mu a draw of Poisson(mu / q) is kept with chance
:math:`q^{2 \max(n - y, 0)}`. Elsewhere the law is drawn by rejection: its log is concave, so that it is
nowhere above its mode, and beyond any point falls at least as fast as there. All three are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from suffice.typing import Counts, Floats, Mask, Rows

_NEGLIGIBLE = 1e-17
_LEAST = 1e-250
"""Of an incomplete gamma function: below it its sum is taken."""
_FAR = 0.9
"""The ratio of neighbouring terms from which on down a sum is taken: it ends after 400 terms at most."""


def log_noise_at_zero(b: float) -> float:
    """Return the log chance of no noise, log((1 - q) / (1 + q)) = log tanh(1 / (2 b)); 0 at scale 0."""
    return 0.0 if b == 0.0 else float(np.log(np.tanh(0.5 / b)))


def log_emission(y: ArrayLike, mu: ArrayLike, b: float) -> Floats:
    """Return log f(y; mu) of released counts, exact to about ten digits; y and mu broadcast.

    At scale b = 0 the released count is the exact one, and a negative one has chance 0.
    """
    y, mu = np.broadcast_arrays(np.asarray(y, dtype=np.float64), np.asarray(mu, np.float64))
    shape = y.shape
    y, mu = y.ravel(), mu.ravel()
    if b == 0.0:
        exact: Floats = _log_poisson(y, mu).reshape(shape)
        return exact
    # y <= 0: log c + y/b - mu (1 - q), with c = (1 - q) / (1 + q).
    log_f = log_noise_at_zero(b) + np.minimum(y, 0.0) / b + mu * np.expm1(-1.0 / b)
    above = np.flatnonzero((y > 0.0) & (mu > 0.0))
    if len(above):
        log_f[above] = log_noise_at_zero(b) + _log_brackets(y[above], mu[above], b)
    # At mu = 0 nothing but the noise is left: log c - y/b.
    none = (y > 0.0) & (mu == 0.0)
    log_f[none] -= y[none] / b
    noisy: Floats = log_f.reshape(shape)
    return noisy


def _log_brackets(y: Floats, mu: Floats, b: float) -> Floats:
    """Return the log of the brackets of f(y; mu), of y > 0 and mu > 0."""
    from scipy.special import gammainc, gammaincc

    poisson = _log_poisson(y, mu)
    mu_over_q = np.exp(np.minimum(np.log(mu) + 1.0 / b, 700.0))
    with np.errstate(divide="ignore"):
        # n <= y: q^y exp(mu (1/q - 1)) Q(y + 1, mu/q).
        ratio = y / mu_over_q
        chance = gammaincc(y + 1.0, mu_over_q)
        below = mu * np.expm1(min(1.0 / b, 700.0)) - y / b + np.log(chance)
        # Its sum is Pois(y; mu) (1 + y/x + y (y - 1)/x^2 + ...) with x = mu/q, which ends by itself.
        far = (ratio < _FAR) | (chance < _LEAST)
        y_far, x = y[far], mu_over_q[far]
        terms = _sum_of_products(lambda step, rows: np.maximum(y_far[rows] - step, 0.0) / x[rows], len(x))
        below[far] = poisson[far] + np.log1p(terms)
        # n > y: q^-y exp(-mu (1 - q)) P(y + 1, mu q).
        mu_q = mu * np.exp(-1.0 / b)
        chance = gammainc(y + 1.0, mu_q)
        above = mu * np.expm1(-1.0 / b) + y / b + np.log(chance)
        # Its sum is Pois(y; mu) (x/(y + 1) + x^2/((y + 1) (y + 2)) + ...) with x = mu q, below y + 1.
        far = (mu_q / (y + 1.0) < _FAR) | (chance < _LEAST)
        y_above, x_above = y[far], mu_q[far]
        terms = _sum_of_products(
            lambda step, rows: x_above[rows] / (y_above[rows] + (step + 1.0)), len(x_above)
        )
        above[far] = poisson[far] + np.log(terms)
    result: Floats = np.logaddexp(below, above)
    return result


def _sum_of_products(ratio: Callable[[int, Rows], Floats], size: int) -> Floats:
    """Return r_0 + r_0 r_1 + ... of every row, up to terms that change no digit."""
    total, rows, step = np.zeros(size), np.arange(size), 0
    term = np.ones(size)
    while len(rows):
        term = term * ratio(step, rows)
        total[rows] += term
        going: Mask = term > _NEGLIGIBLE * total[rows]
        rows, term, step = rows[going], term[going], step + 1
    return total


def _log_poisson(n: Floats, mu: Floats) -> Floats:
    from scipy.special import gammaln, xlogy

    with np.errstate(invalid="ignore"):
        log_poisson = xlogy(n, mu) - mu - gammaln(n + 1.0)
    result: Floats = np.where(n < 0.0, -np.inf, log_poisson)
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
    def of(cls, y: Counts, b: float) -> EmissionTable:
        """Tabulate released counts above 0 behind noise of a scale above 0."""
        one_over_root_q = float(np.exp(min(0.5 / b, 300.0)))
        bend = one_over_root_q if b < _LITTLE else 0.0
        # The middle of the table: from where mu/q is about y up to where mu q is.
        root_y = np.sqrt(y)
        shrunken, farthest = (np.sqrt(y + 1.0) + _REACH) * one_over_root_q, root_y + _FARTHEST
        lowest = np.maximum((root_y - _REACH) / one_over_root_q, 0.0)
        first = np.zeros_like(root_y) if bend else np.floor(lowest / _WIDTH)
        last = np.ceil(_coordinate(np.minimum(shrunken, farthest), bend) / _WIDTH)
        intervals = (last - first).astype(np.int64)
        # The nodes of all rows, one row after the other; a row has an interval more at either end.
        offsets = np.cumsum(intervals + 2) - (intervals + 2)
        row = np.repeat(np.arange(len(y)), intervals + 1)
        node = np.arange(len(row)) - (offsets - np.arange(len(y)))[row]
        u = _root((first[row] + node) * _WIDTH, bend)
        value = log_emission(y[row], u**2, b)
        below = log_emission(y[row] - 1, u**2, b)
        # d/du log f = 2 u (f(y - 1) / f(y) - 1), by the width of an interval and the slope of the coordinate.
        stretch = 1.0 + bend / np.hypot(1.0, bend * u) if bend else 1.0
        slope = 2.0 * _WIDTH * u * np.expm1(np.minimum(below - value, 700.0)) / stretch
        coefficients = tuple(np.zeros(int(np.sum(intervals + 2))) for _ in range(4))
        constant, linear, quadratic, cubic = coefficients
        # The cubic with these values and slopes at both ends (Hermite).
        lower = np.flatnonzero(node < intervals[row])
        rise = value[lower + 1] - value[lower]
        place = offsets[row[lower]] + 1 + node[lower]
        constant[place], linear[place] = value[lower], slope[lower]
        quadratic[place] = 3.0 * rise - 2.0 * slope[lower] - slope[lower + 1]
        cubic[place] = slope[lower] + slope[lower + 1] - 2.0 * rise
        # Below: log c - y/b + mu (1/q - 1), a quadratic about one width before the first node.
        growth = 0.0 if bend else float(np.expm1(1.0 / b)) * _WIDTH**2
        before = first - 1.0
        constant[offsets] = log_noise_at_zero(b) - y / b + growth * before**2
        linear[offsets] = 2.0 * growth * before
        quadratic[offsets] = growth
        # Above: log c + y/b - mu (1 - q), about the last node; at the farthest end the Poisson chance's bend.
        ends, above = np.cumsum(intervals + 1) - 1, offsets + intervals + 1
        constant[above], linear[above] = value[ends], slope[ends]
        bends = np.where(shrunken <= farthest, np.expm1(-1.0 / b), -1.0 - y / farthest**2)
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

    def log_emission(self, u: Floats, part: slice = _ALL) -> Floats:
        """Return the log chance of every row in a part of the table, (n_rows,), at a root of mu each."""
        distance = _coordinate(u, self.bend) * (1.0 / _WIDTH)
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


def _coordinate(u: Floats, bend: float) -> Floats:
    return u + np.arcsinh(bend * u) if bend else u


def _root(coordinate: Floats, bend: float) -> Floats:
    """Return the inverse of the coordinate, by bisection of its exponential part."""
    if not bend:
        return coordinate
    low, high = np.zeros_like(coordinate), coordinate.copy()
    for _ in range(_STEPS):
        # In x with u = sinh(x) / bend the coordinate is u + x, which rises by at least 1 for 1.
        middle = 0.5 * (low + high)
        over = middle + np.sinh(np.minimum(middle, 700.0)) / bend > coordinate
        high, low = np.where(over, middle, high), np.where(over, low, middle)
    u: Floats = np.sinh(np.minimum(0.5 * (low + high), 700.0)) / bend
    return u


_SMALL = 1.0
"""The largest mu/q of which a Poisson number is drawn and kept by chance."""
_LOG_FACTORIALS = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, 1 << 13)))])


def draw_latent_counts(y: Counts, mu: Floats, b: float, rng: np.random.Generator) -> Counts:
    """Draw an exact count n for each released y, with mu above 0 and up to 1e15; y itself at scale b = 0."""
    if b == 0.0:
        return y.copy()
    mu_over_q = mu * np.exp(min(1.0 / b, 600.0))
    is_above = y > 0
    is_many = is_above & (mu_over_q > _SMALL)
    rate = np.where(is_above, mu_over_q, mu * np.exp(-1.0 / b))
    # y <= 0: Poisson(mu q). Nothing is drawn of a rate of 0: counts of the third kind follow below.
    n: Counts = np.asarray(rng.poisson(np.where(is_many, 0.0, rate)), dtype=np.int64)
    # A small mu/q: a draw above y is kept with chance q^(2 (n - y)), or drawn anew.
    few = np.flatnonzero(is_above & ~is_many)
    few = few[n[few] > y[few]]
    while len(few):
        excess = n[few] - y[few]
        few = few[rng.standard_exponential(len(few)) * b < 2.0 * excess]
        n[few] = rng.poisson(rate[few])
        few = few[n[few] > y[few]]
    many = np.flatnonzero(is_many)
    n[many] = _draw_log_concave(y[many], mu[many], mu_over_q[many], b, rng)
    return n


def _draw_log_concave(y: Counts, mu: Floats, mu_over_q: Floats, b: float, rng: np.random.Generator) -> Counts:
    r"""Draw n by rejection from a flat middle with a geometric tail on either side.

    Its log weight is :math:`w(n) = n \log\mu - \log n! - |n - y| / b`.
    """
    log_mu, tilt = np.log(mu), 1.0 / b
    mu_q = mu * np.exp(-tilt)
    # The mode: of y the nearest between the modes with all of the noise on either side, of mu q and mu/q.
    lower, upper = np.floor(mu_q), np.floor(np.minimum(mu_over_q, 2.0**62))
    mode = np.clip(y, lower.astype(np.int64), upper.astype(np.int64))

    def fall_up(n: Counts) -> Floats:
        """Return w(n) - w(n + 1)."""
        fall: Floats = np.log(n + 1.0) - log_mu + np.where(n < y, -tilt, tilt)
        return fall

    def fall_down(n: Counts) -> Floats:
        """Return w(n) - w(n - 1); infinite of 0."""
        with np.errstate(divide="ignore"):
            fall: Floats = log_mu - np.log(np.maximum(n, 0)) + np.where(n > y, -tilt, tilt)
        return fall

    # The middle ends about where w has fallen by 1; any distance above 0 is right.
    slope_up, slope_down = np.maximum(fall_up(mode), 0.0), np.maximum(fall_down(mode), 0.0)
    wide_up = 2.0 / (slope_up + np.sqrt(slope_up**2 + 2.0 / (mode + 1.0)))
    wide_down = 2.0 / (slope_down + np.sqrt(slope_down**2 + 2.0 / np.maximum(mode, 1.0)))
    right = mode + np.ceil(wide_up).astype(np.int64)
    left = np.maximum(mode - np.maximum(np.ceil(wide_down), 1.0).astype(np.int64), -1)
    height = _log_weight(mode, y, log_mu, tilt)
    # Tails fall by the rate that w has where they begin. Nothing is below 0: there the fall is infinite.
    rate_up, rate_down = fall_up(right), np.minimum(fall_down(left), 700.0)
    height_up = _log_weight(right, y, log_mu, tilt) - height
    height_down = np.where(left < 0, -np.inf, _log_weight(np.maximum(left, 0), y, log_mu, tilt) - height)
    # The mass of the hat, over its height in the middle: a geometric sum is exp(height) / (1 - exp(-rate)).
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
        # Kept with chance exp(w(n) - hat(n)).
        weight = _log_weight(np.maximum(proposed, 0), y[rows], log_mu[rows], tilt) - height[rows]
        kept = (rng.standard_exponential(len(rows)) > hat - weight) & (proposed >= 0)
        drawn[rows[kept]] = proposed[kept]
        open_rows = rows[~kept]
    return drawn


def _log_weight(n: Counts, y: Counts, log_mu: Floats, tilt: float) -> Floats:
    if not len(n) or n.max() < len(_LOG_FACTORIALS):
        log_factorial = _LOG_FACTORIALS.take(n)
    else:
        from scipy.special import gammaln

        log_factorial = gammaln(n + 1.0)
    weight: Floats = n * log_mu - log_factorial - np.abs(n - y) * tilt
    return weight
