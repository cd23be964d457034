r"""Noisy counts of categories, and the weights of one unknown count behind discrete Laplace noise.

Model: counts :math:`c_k` of N rows in K categories are released as :math:`y_k = c_k + \mathrm{DLap}(b)`.
Their probabilities have a :math:`\mathrm{Dirichlet}(\alpha)` prior, N a public one. With the probabilities
integrated out, the question is the joint weight of the latent counts, up to a constant,

.. math::
    W(c) = g(N) \prod_k w_k(c_k), \qquad g(N) = \pi(N) \frac{N!}{\Gamma(A + N)}, \quad
    N = \sum_k c_k, \; A = \sum_k \alpha_k \qquad (1)

For any tilt :math:`\theta`, W(c) is also the product of tilted rows :math:`w_k(c_k) e^{-\theta c_k}` and of
the link :math:`g(N) e^{\theta N}`: the tilt does not change W, only how well the rows alone match it. A row
is an unnormalised distribution on c = 0..n, with n the largest N, and N itself where two counts sum to it,

.. math::
    \log w(c) = \log\frac{\Gamma(a + c)}{\Gamma(a)\, c!} - \rho |c - y|
              + \log\frac{\Gamma(a' + n - c)}{\Gamma(a')\, (n - c)!} - \rho' |n - c - y'| - \theta c \;\; (2)

where :math:`\rho` is 1 / b (0 where the count was not released); the primed symbols belong to the remainder
n - c (a' = 1 and rho' = 0 where there is none). The balanced tilt makes the link level where N is likely:

.. math:: \theta = -\frac{d \log g}{dN} \Big|_{N = \sum_k E_\theta c_k} \qquad (3)

Method: between its kinks (y and n - y') log w is concave where both concentrations are at least 1; w has a
spike at 0 where a is less, at n where a' is. Its window is the hull of all counts within ``NATS`` of its
highest peak. A window too long for a table is cut into blocks, finer towards the spikes. The sum of f over a
block of L counts, with the middle :math:`\bar c`, is that of the three point Gauss rule of the discrete
uniform distribution: exact up to L = 3, and beyond for f of degree five. Callers choose how long blocks are,
and so the error,

.. math:: d^2 = \frac{3 L^2 - 7}{20}, \quad \frac{s}{L} = \frac{L^2 - 1}{24 d^2}, \quad
    \sum_c f(c) \approx s f(\bar c - d) + (L - 2 s) f(\bar c) + s f(\bar c + d) \qquad (4)

``sampling`` draws exactly whatever the blocks, by rejection from ``block_bounds``.

============ ======================= ================================ ===================== =====
symbol       in the code             meaning                          shape                 unit
============ ======================= ================================ ===================== =====
c            ``count``               a count                          (n_rows, n)           rows
y, n - y'    ``kinks``               where the noise's slope jumps    (n_kinks, n_rows)     rows
rho, rho'    ``rates``               one over the noise's scale       (n_kinks,)            1/row
a, a'        ``concentration``,      of the prior of the count, and   (n_rows,)             none
             ``rest_concentration``  of the remainder
theta        ``tilt``                tilt of the rows                 (n_rows,)             1/row
============ ======================= ================================ ===================== =====
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.errors import PriorError, UsageError
from suffice.pipeline.math.priors.record_count import Fixed, NPrior, Reciprocal
from suffice.pipeline.terms.released.noise_distribution import log_laplace

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
    from suffice.typing import Cells, Floats, Rows

NATS = 45.0
"""How far below its peak a weight may fall before it is left out."""

_SLACK = 1e-7
"""Added to the logarithm of every block's bound, for rounding."""


def log_rising(concentration: Floats, count: Floats) -> Floats:
    r"""Log of :math:`\Gamma(a + c) / (\Gamma(a)\, c!)` without the cancellation between large log gammas.

    A series in odd Bernoulli polynomials of a / 2 over even powers of w = c + a / 2 where w is well above a.
    """
    from scipy.special import gammaln

    if np.all(concentration == 1.0):
        return np.zeros(np.broadcast_shapes(concentration.shape, count.shape))
    # log Gamma(c + a) - log Gamma(c + 1) = (a - 1) log w - a series in 1 / w^2, w = c + a / 2: DLMF 5.11.8
    # at w, twice. The terms left out, from w^-10 on, are under 1e-14 of the result where `near` is false.
    middle = count + concentration / 2.0
    near = middle < 10.0 + 10.0 * concentration
    if np.all(near):
        return _log_rising_near(concentration, count)
    with np.errstate(over="ignore"):
        inverse = 1.0 / (middle * middle)
    series = np.zeros_like(inverse)
    for coefficient in _series(concentration / 2.0):
        series = (series + coefficient) * inverse
    result: Floats = (concentration - 1.0) * np.log(middle) - gammaln(concentration) - series
    if np.any(near):
        where = np.broadcast_to(concentration, near.shape), np.broadcast_to(count, near.shape)
        result[near] = _log_rising_near(where[0][near], where[1][near])
    return result


def _series(x: Floats) -> tuple[Floats, ...]:
    """Coefficients of the eighth to the second inverse power: 2 B(k + 1, x) / (k (k + 1))."""
    odd = x * (x - 1.0) * (x - 0.5)
    square = x * (x - 1.0)
    return (
        odd * (((square - 2.0) * square + 9.0 / 5.0) * square - 3.0 / 5.0) / 36.0,
        odd * ((square - 1.0) * square + 1.0 / 3.0) / 21.0,
        odd * (square - 1.0 / 3.0) / 10.0,
        odd / 3.0,
    )


def _log_rising_near(concentration: Floats, count: Floats) -> Floats:
    """The same where neither number is far above the other."""
    from scipy.special import gammaln

    following = count + 1.0
    if np.max(concentration, initial=0.0) + np.max(count, initial=0.0) < 1e4:
        direct: Floats = gammaln(concentration + count) - gammaln(concentration) - gammaln(following)
        return direct
    # Gamma(a + c) / (Gamma(a) c!) is symmetric in a and c + 1.
    large = np.maximum(concentration, following)
    small = np.minimum(concentration, following)
    gap = small - 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        # Stirling for both large gammas: what they share is subtracted before rounding.
        stirling = (large - 0.5) * np.log1p(gap / large) + gap * np.log(large + gap) - gap
        stirling += stirling_tail(large + gap) - stirling_tail(large)
    ratio = np.where(large < 32.0, gammaln(large + gap) - gammaln(large), stirling)
    result: Floats = ratio - gammaln(small)
    return result


def stirling_tail(x: Floats) -> Floats:
    """Return what Stirling's formula leaves of log gamma(x)."""
    square = x * x
    return (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * square)) / square) / x


@dataclass(frozen=True, slots=True, kw_only=True)
class CountWeights:
    """Rows of log weights as in the module's formula.

    Attributes
    ----------
    concentration, tilt, n, rest_concentration : ndarray of shape (n_rows,), float64
        a, theta, n and a'; integers where the formula has integers.
    kinks : ndarray of shape (n_kinks, n_rows), float64
        y of every release, and n - y' where the remainder was released or n where there is none.
    rates : ndarray of shape (n_kinks,), float64
        rho and rho'; 0 where nothing was released.
    """

    concentration: Floats
    tilt: Floats
    n: Floats
    rest_concentration: Floats
    kinks: Floats
    rates: Floats

    def log_weight(self, count: Floats) -> Floats:
        """Log weights at counts (n_rows, n_counts) inside of 0..n; not only at integers."""
        return self._of_count(count) + self._rest(count) + self._linear(count)

    def slope(self, count: Floats) -> Floats:
        """Return log w(c + 1) - log w(c) at integers 0 <= c < n."""
        # (2): w(c + 1) / w(c) has the factors (a + c) / (c + 1) and (n - c) / (a' + n - c - 1).
        rise = np.log1p((self.concentration - 1.0)[:, None] / (count + 1.0))
        remaining = np.maximum(self.n[:, None] - count, 1.0)
        rise -= np.log1p((self.rest_concentration - 1.0)[:, None] / remaining)
        return rise + self._linear(count + 1.0) - self._linear(count)

    def window(self, nats: float = NATS) -> tuple[Floats, Floats]:
        """First and last count of the hull of {c: log w(c) >= max - nats}."""
        peaks = self._peaks()
        heights = self.log_weight(peaks)
        level = np.max(heights, axis=1) - nats
        high = heights >= level[:, None]
        # Beyond its outermost high peak a row goes below the level once, for good: lower peaks do not reach
        # it. So bisection finds the end of the window.
        leftmost = np.min(np.where(high, peaks, np.inf), axis=1)
        rightmost = np.max(np.where(high, peaks, -np.inf), axis=1)

        def reaches(count: Floats) -> NDArray[np.bool_]:
            reached: NDArray[np.bool_] = self.log_weight(count[:, None])[:, 0] >= level
            return reached

        # Most rows end within so many scales of the noise: there is where bisection begins.
        reach = np.ceil(1.5 * nats / max(float(np.sum(self.rates)), 1e-300)) + 1.0
        below, above = np.maximum(leftmost - reach, 0.0), np.minimum(rightmost + reach, self.n)
        return (
            _first_true(reaches, np.where(reaches(below), 0.0, below), leftmost),
            -_first_true(lambda count: reaches(-count), -np.where(reaches(above), self.n, above), -rightmost),
        )

    def kinks_within(self) -> Floats:
        """Counts (n_rows, n_kinks), ascending, at which the slope of the noise's distribution may jump."""
        return np.sort(np.clip(self.kinks, 0.0, self.n).T, axis=1)

    def blocks(self, low: Floats, high: Floats, step: Floats) -> Floats:
        """Edges (n_rows, n_blocks + 1) of blocks up to ``step`` long that tile low..high and end at kinks."""
        kinks = self.kinks_within()
        anchor = np.where((kinks > low[:, None]) & (kinks <= high[:, None]), kinks, low[:, None])[:, 0]
        start = anchor - np.ceil((anchor - low) / step) * step
        number = int(np.max(np.ceil((high + 1.0 - start) / step)))
        edges = start[:, None] + step[:, None] * np.arange(number + 1)
        if np.any(step > 1.0):
            graded = _graded(8.0 * float(np.max(step)))
            parts = [edges, np.broadcast_to(graded, (len(low), len(graded))), kinks]
            if np.any(self.rest_concentration != 1.0):
                parts.append(self.n[:, None] + 1.0 - graded)
            edges = np.concatenate(parts, axis=1)
        edges = np.clip(edges, low[:, None], high[:, None] + 1.0)
        if np.any(step > 1.0):
            edges.sort(axis=1)
        return edges

    def block_bounds(self, edges: Floats) -> Floats:
        """Log of an upper bound of w on every block (n_rows, n_blocks); minus infinity on empty blocks."""
        first, length = edges[:, :-1], np.diff(edges, axis=1)
        last = np.maximum(first, edges[:, 1:] - 1.0)
        first = np.minimum(first, self.n[:, None])
        last = np.minimum(last, self.n[:, None])
        if np.all(length <= 1.0):
            bounds = self.log_weight(first)
        else:
            # Each of the three parts is monotone between kinks, so its maximum lies at an end.
            bounds = (
                # The maximum of a sum is at most the sum of maxima.
                np.maximum(self._of_count(first), self._of_count(last))
                + np.maximum(self._rest(first), self._rest(last))
                + np.maximum(self._linear(first), self._linear(last))
            )
            bounds = np.minimum(bounds, self._concave_bounds(first, last)) + _SLACK
        return np.where(length > 0.0, bounds, -np.inf)

    def _concave_bounds(self, first: Floats, last: Floats) -> Floats:
        """Bounds from the first and the last step, in the rows whose log is concave between their kinks."""
        at_first, at_last = self.log_weight(first), self.log_weight(last)
        span = last - first
        rising = self.slope(first)
        falling = -self.slope(np.maximum(last - 1.0, 0.0))
        # At integers it lies below the lines through its first two and its last two points: at most the
        # lower of where each reaches the other end, or the end from which one of them falls.
        crossing = np.minimum(at_first + rising * span, at_last + falling * span)
        bounds = np.where(rising <= 0.0, at_first, np.where(falling <= 0.0, at_last, crossing))
        bounds = np.where(span == 0.0, at_first, bounds)
        concave = (self.concentration >= 1.0) & (self.rest_concentration >= 1.0)
        return np.where(concave[:, None], bounds, np.inf)

    def _peaks(self) -> Floats:
        """Counts among which every local maximum is, (n_rows, n_peaks)."""
        ends = np.concatenate([np.zeros_like(self.n)[:, None], self.kinks_within(), self.n[:, None]], axis=1)
        if np.all(self.concentration == 1.0) and np.all(self.rest_concentration == 1.0):
            return ends
        low, high = self._concave_range()
        peaks = [ends]
        for piece in range(ends.shape[1] - 1):
            left = np.clip(ends[:, piece], low, high)
            right = np.maximum(np.clip(ends[:, piece + 1], low, high), left)
            falls = lambda count: self.slope(count[:, None])[:, 0] <= 0.0  # noqa: E731
            peaks.append(_first_true(falls, left, right)[:, None])
        return np.concatenate(peaks, axis=1)

    def _concave_range(self) -> tuple[Floats, Floats]:
        """Where the two log gamma ratios' sum is about concave: nowhere, from or up to one count, or all."""
        a, b = self.concentration - 1.0, self.rest_concentration - 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            # With a, b for the symbols' a - 1, a' - 1: the second derivative is about
            # -a / c^2 - b / (n - c)^2, which changes its sign at c = n / (1 + sqrt(-b / a)).
            inflection = np.floor(self.n / (1.0 + np.sqrt(np.abs(b / a))))
        low = np.where(a < 0.0, np.where(b < 0.0, self.n, inflection), 0.0)
        high = np.where((a > 0.0) & (b < 0.0), inflection, np.where((a == 0.0) & (b < 0.0), 0.0, self.n))
        return low, high

    def _of_count(self, count: Floats) -> Floats:
        return log_rising(self.concentration[:, None], count)

    def _rest(self, count: Floats) -> Floats:
        if np.all(self.rest_concentration == 1.0):
            return np.zeros_like(count)
        return log_rising(self.rest_concentration[:, None], self.n[:, None] - count)

    def _linear(self, count: Floats) -> Floats:
        released = np.flatnonzero(self.rates)
        linear = log_laplace(count, self.kinks[released, :, None], self.rates[released])
        linear -= self.tilt[:, None] * count
        return linear


def take_rows(weights: CountWeights, rows: Rows) -> CountWeights:
    """The given rows, in the given order."""
    return CountWeights(
        concentration=weights.concentration[rows],
        tilt=weights.tilt[rows],
        n=weights.n[rows],
        rest_concentration=weights.rest_concentration[rows],
        kinks=weights.kinks[:, rows],
        rates=weights.rates,
    )


def block_step(width: Floats, max_blocks: int) -> Floats:
    """The least powers of two that cut ``width`` counts into at most ``max_blocks`` blocks."""
    steps: Floats = np.exp2(np.ceil(np.log2(np.maximum(width / max_blocks, 1.0))))
    return steps


def quadrature(edges: Floats) -> tuple[Floats, Floats]:
    """Nodes and weights (n_rows, n_nodes) that sum a smooth function over the integers of every block."""
    first, length = edges[:, :-1], np.diff(edges, axis=1)
    if np.all(length <= 1.0):
        return first, length
    square = length * length
    with np.errstate(divide="ignore", invalid="ignore"):
        # (4): d^2 is the fourth over the second central moment, (L^2 - 1)(3 L^2 - 7) / 240 over (L^2 - 1) /
        # 12.
        distance = np.sqrt(np.maximum((3.0 * square - 7.0) / 20.0, 0.0))
        side = np.where(length > 1.0, (square - 1.0) / (24.0 * distance * distance), 0.0)
    centre = first + np.maximum(length - 1.0, 0.0) / 2.0
    distance = np.where(length > 1.0, distance, 0.0)
    nodes = np.concatenate([centre - distance, centre, centre + distance], axis=1)
    return nodes, np.concatenate([length * side, length * (1.0 - 2.0 * side), length * side], axis=1)


def _graded(limit: float) -> Floats:
    """0, 1, ..., 8, then four edges an octave up to the limit."""
    octaves = max(0.0, np.log2(limit / 8.0))
    growing = np.floor(8.0 * np.exp2(np.arange(0.0, octaves, 0.25)))
    return np.unique(np.concatenate([np.arange(9.0), growing]))


def _first_true(predicate: Callable[[Floats], NDArray[np.bool_]], low: Floats, high: Floats) -> Floats:
    """The least integer in low..high from which on a monotone predicate holds; ``high`` at the latest."""
    low, high = low.copy(), high.copy()
    while np.any(low < high):
        middle = np.floor((low + high) / 2.0)
        holds = predicate(middle) | (low >= high)
        high = np.where(holds & (low < high), middle, high)
        low = np.where(holds, low, middle + 1.0)
    return low


_COARSE_BLOCKS = 96
_CLOSE = 0.25
"""How far, in its standard deviations, the mean of the rows' sum may be from where the tilt is to put it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyCounts:
    """Noisy counts and the distribution that they came from.

    Attributes
    ----------
    totals : NoisyTotals
        The counts of every category. Of infinite scale are those that were not released: one of two, at
        most, and where N is known.
    concentration : ndarray of shape (n_categories,), float64
        alpha of the Dirichlet prior, in 1e-6..1e9.
    n_prior : NPrior
        The prior of N; ``Fixed`` where N is public.
    support : ndarray of shape (n_cells, 2), float64
        First and last N of every cell: the prior's, or a part of it.
    """

    totals: NoisyTotals
    concentration: Floats
    n_prior: NPrior
    support: Floats

    def __post_init__(self) -> None:
        if not np.all(self.totals.rate) and not self.is_pair:
            message = "a count that was not released needs exactly two categories and a known N"
            raise UsageError(message)
        if np.max(self.concentration) > 1e9 or np.min(self.concentration) < 1e-6:
            message = "noise-aware posteriors need every concentration in 1e-6..1e9: choose another prior"
            raise PriorError(message)

    @classmethod
    def of(cls, totals: NoisyTotals, *, concentration: Floats, n_prior: NPrior) -> Self:
        """Noisy counts of which N may be anything that its prior allows."""
        support = np.tile(np.array(n_prior.support, dtype=np.float64), (totals.n_cells, 1))
        return cls(totals=totals, concentration=concentration, n_prior=n_prior, support=support)

    def take(self, cells: Cells, support: Floats | None = None) -> Self:
        """The given cells, in the given order, with another support where one is given."""
        support = self.support[cells] if support is None else support
        return replace(self, totals=self.totals.take(cells), support=support)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of cells and of categories."""
        return self.totals.n_cells, len(self.concentration)

    @property
    def rates(self) -> Floats:
        """One over the scale of every release, (n_releases,)."""
        rates: Floats = 1.0 / np.min(self.totals.scale_by_release, axis=1)
        return rates

    @property
    def is_pair(self) -> bool:
        """Two counts with a known sum: one row says it all."""
        return len(self.concentration) == 2 and isinstance(self.n_prior, Fixed)

    @property
    def total_concentration(self) -> float:
        """A, the sum of the prior's concentrations."""
        return float(np.sum(self.concentration))


def rows_of(counts: NoisyCounts, tilt: Floats) -> CountWeights:
    """One row for every cell and category, cell by cell, tilted by tilt (n_cells,)."""
    cells, categories = counts.shape
    n = np.repeat(counts.support[:, 1], categories)
    values = np.moveaxis(counts.totals.by_release, 1, 0).reshape(-1, cells * categories)
    return CountWeights(
        concentration=np.tile(counts.concentration, cells),
        tilt=np.repeat(tilt, categories),
        n=n,
        rest_concentration=np.ones(cells * categories),
        kinks=np.concatenate([values, n[None]]),
        rates=np.append(counts.rates, 0.0),
    )


def pair_rows(counts: NoisyCounts) -> CountWeights:
    """One row a cell: the first of two counts that sum to a known N."""
    cells, _ = counts.shape
    n = np.full(cells, float(counts.n_prior.support[0]))
    rates = counts.totals.rate
    values = np.where(rates > 0.0, counts.totals.values, 0.0).T
    # The noise of the second count, |n - c - y'|, has its kink at c = n - y'.
    values[1::2] = n - values[1::2]
    return CountWeights(
        concentration=np.full(cells, counts.concentration[0]),
        tilt=np.zeros(cells),
        n=n,
        rest_concentration=np.full(cells, counts.concentration[1]),
        kinks=values,
        rates=rates,
    )


PAIR_BLOCKS = 2**13


def pair_blocks(weights: CountWeights) -> Floats:
    """Blocks of the first of two counts that sum to a known N."""
    low, high = weights.window()
    return weights.blocks(low, high, block_step(high - low + 1.0, PAIR_BLOCKS))


def masses(weights: CountWeights, edges: Floats) -> tuple[Floats, Floats, Floats]:
    """Nodes of every row, (n_rows, n_nodes), their probabilities, and the log of the row's sum, (n_rows,)."""
    nodes, lengths = quadrature(edges)
    log_weight = weights.log_weight(np.minimum(nodes, weights.n[:, None]))
    # Sums by (4), relative to the highest node.
    log_weight = np.where(lengths > 0.0, log_weight, -np.inf)
    top = np.max(log_weight, axis=1)
    mass = np.exp(log_weight - top[:, None]) * lengths
    total = np.sum(mass, axis=1)
    return nodes, mass / total[:, None], top + np.log(total)


def log_factor_of_n(counts: NoisyCounts, n: Floats) -> Floats:
    """Log of g(N) up to a constant, at N inside of the prior's support."""
    # (1): N! / Gamma(A + N) is one over (A)_N / N!, but for Gamma(A).
    return counts.n_prior.log_prob(n) - log_rising(np.array([counts.total_concentration]), n)


def balanced_tilt(counts: NoisyCounts) -> Floats:
    """Tilts (n_cells,) at which the rows' means sum to an N where log g has the opposite slope."""
    low, high = counts.support.T
    guess = np.clip(np.sum(np.maximum(counts.totals.by_release[:, 0], 0.0), axis=1), low, high)
    return search_tilt(counts, np.where(low == high, 0.0, fall_of_factor(counts, guess)), low, high)


def fall_of_factor(counts: NoisyCounts, n: Floats) -> Floats:
    """How fast log g falls at n."""
    # Minus the log of g(N + 1) / g(N) = (N + 1) / (A + N), times (N + 1) / (N + 2) under 1 / (N + 1).
    slope = np.log((counts.total_concentration + n) / (1.0 + n))
    return slope + np.log1p(1.0 / (1.0 + n)) if isinstance(counts.n_prior, Reciprocal) else slope


def search_tilt(counts: NoisyCounts, start: Floats, low: Floats, high: Floats) -> Floats:
    """Find tilts that equal the fall of log g at the sum of means, or put that sum at a bound of low..high.

    A fixed point iteration (Newton at the bounds), kept inside of a bracket that bisection shrinks. It may
    end early: W is the same under any tilt.
    """
    tilt = start.copy()
    reach = 2.0 * np.sum(counts.rates) + 60.0 + np.log(counts.total_concentration + 1.0)
    bottom, top = np.full_like(tilt, -reach), np.full_like(tilt, reach)
    active = np.arange(len(tilt))
    for step in range(200):
        mean, variance = _sum_moments(counts, tilt[active], active)
        bound = np.clip(mean, low[active], high[active])
        inside = (bound == mean) & (low[active] < high[active])
        # d E_theta N / d theta = -Var_theta N: a Newton step puts the mean at the bound.
        newton = tilt[active] + (mean - bound) / np.maximum(variance, 1e-12)
        # (3) as a fixed point.
        wanted = np.where(inside, fall_of_factor(counts, mean), newton)
        rises = wanted > tilt[active]
        bottom[active] = np.where(rises, tilt[active], bottom[active])
        top[active] = np.where(rises, top[active], tilt[active])
        left, right = bottom[active], top[active]
        done = np.where(
            inside,
            np.abs(wanted - tilt[active]) * np.sqrt(variance + 1.0) <= _CLOSE,
            np.abs(mean - bound) <= _CLOSE * np.sqrt(variance),
        )
        done |= right - left <= 1e-12 * np.abs(left + right)
        usable = (wanted > left) & (wanted < right) & (step % 4 != 3)
        tilt[active] = np.where(done, tilt[active], np.where(usable, wanted, (left + right) / 2.0))
        active = active[~done]
        if not active.size:
            break
    return tilt


def _sum_moments(counts: NoisyCounts, tilt: Floats, cells: Cells) -> tuple[Floats, Floats]:
    """Mean and variance of the sum of the tilted rows of some cells."""
    categories = len(counts.concentration)
    weights = rows_of(counts.take(cells), tilt)
    low, high = weights.window()
    nodes, mass, _ = masses(weights, weights.blocks(low, high, block_step(high - low + 1.0, _COARSE_BLOCKS)))
    mean = np.sum(nodes * mass, axis=1)
    variance = np.sum((nodes - mean[:, None]) ** 2 * mass, axis=1)
    shape = (len(cells), categories)
    return np.sum(mean.reshape(shape), axis=1), np.sum(variance.reshape(shape), axis=1)
