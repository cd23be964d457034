r"""Epsilons that reach a width: the smallest one, and what it takes if clipped records are counted as well.

The smallest epsilon at which a median width is within a target is searched for with as few posteriors as tell
it. Noise as large as :math:`1 / \varepsilon` on top of exact statistics, whose own median width is w_0, gives
about

.. math:: w(\varepsilon)^2 \approx w_0^2 + (c / \varepsilon)^2

so that :math:`\tfrac12 \log(w^2 - w_0^2)` falls about as a straight line against :math:`\log \varepsilon`:
the secant method finds where it crosses the target in a few steps, first over a few of the simulations.

Of a loss of rho epsilon is :math:`\sqrt{2 \rho}`. Noise is a sensitivity over epsilon. The same width with
counts of clipped records takes epsilon times the ratio of two sensitivities by L1, or rho times that of two
squares by L2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import SpecError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.terms.declaration.documents import printed
from suffice.pipeline.terms.declaration.exact_numbers import MICRO, format_number
from suffice.pipeline.terms.declaration.fields import DEFAULT_COUNT_WEIGHT, CountClipped, RowsOf
from suffice.pipeline.terms.declaration.wording import text_table
from suffice.pipeline.terms.statistics.beside_sums import N_ABOVE

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.typing import Floats, Rows

WEIGHTS = (DEFAULT_COUNT_WEIGHT, Fraction(1, 4), Fraction(1))
"""The default, the largest, and one between: the wider the noise of counts, the cheaper they are."""


@printed("weight epsilon?=loss.epsilon rho?=loss.rho noise_sd")
@dataclass(frozen=True, slots=True, kw_only=True)
class CountedPrice:
    """What a target takes where moved records are counted with a weight.

    Attributes
    ----------
    weight : Fraction
        As in ``count_clipped: {weight: 0.25}``.
    loss : PrivacyLoss
        Of the whole release, rounded up to what accounts count.
    noise_sd : float
        Of ``n_below`` and of ``n_above`` at that loss, in records.
    """

    weight: Fraction
    loss: PrivacyLoss
    noise_sd: float


@printed("stated epsilon_without?=without.epsilon rho_without?=without.rho weights=prices")
@dataclass(frozen=True, slots=True, kw_only=True)
class CountsBeside:
    """The losses at which a target is reached without counts of moved records, and with them.

    Noise is a sensitivity over epsilon, so that one is the other times the ratio of two sensitivities, or in
    rho of two squares.

    Attributes
    ----------
    stated : Fraction or None
        The weight in the spec; None where it does not count them.
    without : PrivacyLoss
        Of the whole release, rounded up to what accounts count.
    prices : tuple of CountedPrice
        By ascending weight, that of the spec among them.
    """

    stated: Fraction | None
    without: PrivacyLoss
    prices: tuple[CountedPrice, ...]

    def __str__(self) -> str:
        stated = "none" if self.stated is None else format_number(self.stated)
        rows = [["none", self.without.text, ""]]
        rows += [
            [format_number(price.weight), price.loss.text, f"{price.noise_sd:.4g}"] for price in self.prices
        ]
        return (
            "the same width, with counts of the records that clipping moves (count_clipped, by weight; the "
            f"spec has {stated}):\n\n"
            + text_table(["weight", str(self.without.measure), "noise sd of n_below, n_above"], rows)
        )


def counts_beside(spec: Spec, statistic: str, loss: PrivacyLoss) -> CountsBeside | None:
    """Return all prices of what a loss reaches under the spec; None where nothing can be counted."""
    entry = spec.statistics[statistic]
    can_be = FAMILIES[entry.family].clipping_bounds is not None and entry.within_unit is None
    if not can_be or entry.rows_of is RowsOf.UNITS:
        return None
    stated = None if entry.count_clipped is None else entry.count_clipped.weight
    weights = sorted({*WEIGHTS, *(() if stated is None else (stated,))})
    try:
        as_stated = _plan(spec, statistic, stated, loss)
        without = _plan(spec, statistic, None, loss)
        with_counts = [_plan(spec, statistic, weight, loss) for weight in weights]
    except SpecError:  # with counts the noise would be beyond what is drawn
        return None

    def same_width(plan: StatisticPlan) -> PrivacyLoss:
        return loss * (_paid_by(plan) / _paid_by(as_stated))

    prices = []
    for weight, plan in zip(weights, with_counts, strict=True):
        above = next(quantity for quantity in plan.quantities if quantity.name == N_ABOVE)
        at_same_width = float(loss.amount / same_width(plan).amount) ** (1.0 if loss.rho is None else 0.5)
        prices.append(
            CountedPrice(
                weight=weight,
                loss=same_width(plan).rounded_up,
                noise_sd=plan.quantity_noise_sd(above) * at_same_width,
            )
        )
    return CountsBeside(stated=stated, without=same_width(without).rounded_up, prices=tuple(prices))


def _paid_by(plan: StatisticPlan) -> Fraction:
    """Return what the loss at a given noise is proportional to."""
    return Fraction(plan.l1_sensitivity if plan.l2_squared is None else plan.l2_squared)


def _plan(spec: Spec, name: str, weight: Fraction | None, loss: PrivacyLoss) -> StatisticPlan:
    """Return the plan of a statistic with or without counts, in a release of this loss."""
    counted = None if weight is None else CountClipped.model_construct(weight=weight)
    entry = spec.statistics[name]
    changed = spec.bound(entry.model_copy(update={"count_clipped": counted}))
    other = spec.model_copy(
        update={
            "statistics": {**spec.statistics, name: changed},
            "privacy": spec.privacy.model_copy(update={"epsilon": loss.epsilon, "rho": loss.rho}),
        }
    )
    return next(plan for plan in compile_plan(other).statistics if plan.name == name)


LARGEST_EPSILON = 100
"""Beyond this there is hardly any privacy; a target that needs more is refused."""
_MOST = LARGEST_EPSILON * MICRO
PRECISION = 0.01
"""Part of the answer by which it may exceed the smallest epsilon of its own simulations, besides rounding."""
_FEW = 24
"""Simulations while the target is far."""
_SHARE = 4
"""At most one of so many simulations, while the target is far."""
_MARGIN = 0.1
"""Of all simulations, on either side of the median: worked out at every epsilon."""
_DIGITS = 3
"""Of the answer, which is rounded up."""
_NEAR, _FAR = 0.1, math.log(16.0)
"""Of log epsilon: a step that ends the search over few simulations, and the longest step."""
_BEYOND = 0.002
"""Of log epsilon, beyond where the crossing is expected."""
_STEEPEST, _FLATTEST = -2.0, -0.25
_NARROWEST, _WIDEST = 1e-300, 1e300
"""Widths, so that all have a logarithm."""
_MOST_STEPS = 20


class MedianWidth:
    """The median width of simulated intervals at one epsilon after another, from as few of them as tell it.

    All epsilons share their random numbers, so that widths move together. Once every width is known at one
    epsilon, those near the median are worked out at the next; what these moves, and a margin, could not carry
    to the median stays on its side of it, and is moved along unseen.

    Parameters
    ----------
    widths : callable
        An epsilon and which simulations -> the widths of their intervals.
    size : int, > 0
        How many simulations there are.
    """

    def __init__(self, widths: Callable[[Fraction, Rows], Floats], size: int) -> None:
        self.size = size
        self._widths = widths
        self._log_width: Floats | None = None
        self._position = 0.0

    def at(self, epsilon: Fraction) -> tuple[float, float]:
        """Return the median width, and its Monte Carlo standard error.

        The latter is half the distance of the order statistics that lie a standard deviation from the middle.
        """
        middle, reach = self.size / 2, math.sqrt(self.size) / 2
        first = max(0, math.floor(middle - reach))
        last = min(self.size - 1, math.ceil(middle + reach))
        position = math.log(epsilon)
        if self._log_width is None:
            self._log_width = self._worked_out(epsilon, np.arange(self.size))
        elif position != self._position:
            self._log_width = self._moved(self._log_width, epsilon, first, last)
        self._position = position
        ordered = np.exp(np.sort(self._log_width))
        return float(np.median(ordered)), float(ordered[last] - ordered[first]) / 2.0

    def _moved(self, before: Floats, epsilon: Fraction, first: int, last: int) -> Floats:
        """Log widths at an epsilon, given those at another: right as to ranks from first to last."""
        after, known = before.copy(), np.zeros(self.size, dtype=bool)
        margin = math.ceil(_MARGIN * self.size)
        wanted = np.argsort(before)[max(0, first - margin) : last + 1 + margin]
        while wanted.size:
            after[wanted] = self._worked_out(epsilon, wanted)
            known[wanted] = True
            moves = (after - before)[known]
            slack = (np.ptp(moves) + abs(math.log(epsilon) - self._position) / 2.0) / 2.0
            lowest = np.where(known, after, before + np.min(moves) - slack)
            highest = np.where(known, after, before + np.max(moves) + slack)
            bottom, top = np.sort(lowest)[first], np.sort(highest)[last]
            wanted = np.flatnonzero(~known & (highest >= bottom) & (lowest <= top))
        after[~known] += np.median(moves)
        return after

    def _worked_out(self, epsilon: Fraction, rows: Rows) -> Floats:
        log_width: Floats = np.log(np.clip(self._widths(epsilon, rows), _NARROWEST, _WIDEST))
        return log_width


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """Where the median width is within its target.

    Attributes
    ----------
    epsilon : Fraction
    width, width_error : float
        The median there, and its Monte Carlo standard error.
    slope : float, < 0
        Of log width against log epsilon there.
    """

    epsilon: Fraction
    width: float
    width_error: float
    slope: float


@dataclass(slots=True, kw_only=True)
class _Secant:
    """A search along log epsilon for where a median width comes down to a target.

    Attributes
    ----------
    target, without : float
        The width aimed at, and the median without noise.
    least : int
        The smallest epsilon to try, in millionths.
    slope : float
        Of the transformed width; kept up to date.
    positions, heights : list of float
        Log epsilons tried, and the transformed widths there.
    """

    target: float
    without: float
    least: int
    slope: float = -1.0
    positions: list[float] = field(default_factory=list)
    heights: list[float] = field(default_factory=list)

    def next_position(self, epsilon: Fraction, width: float) -> float:
        """Take in a median width, and return where to look next."""
        position, height, goal = math.log(epsilon), self._height(width), self._height(self.target)
        if self.positions and math.isfinite(height - self.heights[-1]) and position != self.positions[-1]:
            slope = (height - self.heights[-1]) / (position - self.positions[-1])
            self.slope = min(max(slope, _STEEPEST), _FLATTEST)
        self.positions.append(position)
        self.heights.append(height)
        after = position + min(max((goal - height) / self.slope, -_FAR), _FAR)
        tried = list(zip(self.positions, self.heights, strict=True))
        left = max((position for position, height in tried if height > goal), default=-math.inf)
        right = min((position for position, height in tried if height <= goal), default=math.inf)
        if left < right and not left < after < right:
            after = (left + right) / 2.0
        return min(max(after, math.log(self.least / MICRO)), math.log(LARGEST_EPSILON))

    def slope_at(self, width: float) -> float:
        """The slope of log width itself."""
        return self.slope * (1.0 - min(self.without / width, 0.999) ** 2)

    def _height(self, width: float) -> float:
        above = width**2 - self.without**2
        return 0.5 * math.log(above) if above > 0.0 else -math.inf


def smallest(
    widths: Callable[[Fraction, Rows], Floats], without: Floats, target: float, least: int = 1
) -> Crossing | None:
    """Find the smallest epsilon, up to ``PRECISION`` and rounding, whose median width is within a target.

    Widths are a function of an epsilon and of which simulations, by the same random numbers; those without
    noise are of all simulations, and their median is below the target. Epsilons begin at `least` millionths.
    None where ``LARGEST_EPSILON`` does not reach the target.
    """
    size = len(without)
    few = min(_FEW, -(-size // _SHARE))
    start = _Secant(target=target, without=min(float(np.median(without[:few])), 0.99 * target), least=least)
    position = _about(MedianWidth(widths, few), start)
    search = _Secant(target=target, without=float(np.median(without)), least=least, slope=start.slope)
    every = MedianWidth(widths, size)
    low, high, best = least - 1, _MOST + 1, (math.nan, math.nan)
    tried = _rounded_up(position, least)
    while True:
        epsilon = Fraction(tried, MICRO)
        width, error = every.at(epsilon)
        position = search.next_position(epsilon, width)
        if width <= target:
            high, best = tried, (width, error)
        elif tried == _MOST:
            return None
        else:
            low = tried
        is_near = tried == high and position >= math.log(high / MICRO) - PRECISION
        if high <= _MOST and (is_near or high - low <= max(_unit(high), PRECISION * high)):
            return Crossing(
                epsilon=Fraction(high, MICRO),
                width=best[0],
                width_error=best[1],
                slope=search.slope_at(best[0]),
            )
        most = _MOST if high > _MOST else high - _unit(high - 1)
        tried = min(max(_rounded_up(position, least), low + _unit(low + 1)), most)


def _about(few: MedianWidth, search: _Secant) -> float:
    """Log epsilon about where few simulations reach the target."""
    position = 0.0
    for _ in range(_MOST_STEPS):
        epsilon = Fraction(max(search.least, round(math.exp(position) * MICRO)), MICRO)
        after = search.next_position(epsilon, few.at(epsilon)[0])
        if abs(after - position) < _NEAR:
            return after
        position = after
    return position


def _rounded_up(position: float, least: int) -> int:
    """An epsilon of a few digits, in millionths, a little beyond a log epsilon."""
    if position <= math.log(least / MICRO):
        return least
    exact = math.ceil(math.exp(position + _BEYOND) * MICRO)
    unit = _unit(exact)
    return min(-(-exact // unit) * unit, _MOST)


def _unit(epsilon: int) -> int:
    """One in the last digit of an answer."""
    return int(10 ** max(0, len(str(epsilon)) - _DIGITS))
