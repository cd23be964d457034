"""Where numbers stand along an axis: round steps, and labels that read alike."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_LARGEST_PLAIN, _SMALLEST_PLAIN = 1e7, 1e-5
_POINT = 1e-9
"""An interval that is shorter, as a share of its ends, is drawn as a point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Where numbers stand along an axis.

    Attributes
    ----------
    low, high : float
        The numbers at its ends; ``low < high``.
    start, stop : float
        Where these stand.
    step : float
        Between ticks: 1, 2 or 5 times a power of ten.
    """

    low: float
    high: float
    start: float
    stop: float
    step: float

    @classmethod
    def over(
        cls, low: float, high: float, start: float = 0.0, stop: float = 1.0, *, about: float = 6.0
    ) -> Scale:
        """Return a scale of an interval, which may be a point, with at most `about` steps inside of it."""
        low, high = _widened(low, high)
        return cls(low=low, high=high, start=start, stop=stop, step=_step(high - low, about))

    @classmethod
    def enclosing(
        cls, low: float, high: float, start: float = 0.0, stop: float = 1.0, *, about: float = 5.0
    ) -> Scale:
        """Return a scale whose ends are ticks, and that an interval lies within.

        Examples
        --------
        >>> Scale.enclosing(0.02, 0.97).labels()
        ['0.0', '0.2', '0.4', '0.6', '0.8', '1.0']
        """
        low, high = _widened(low, high)
        step = _step(high - low, about)
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        return cls(low=step * first, high=step * max(last, first + 1), start=start, stop=stop, step=step)

    def at(self, number: float) -> float:
        """Return where a number stands; one beyond an end stands there."""
        share = min(max((number - self.low) / (self.high - self.low), 0.0), 1.0)
        return self.start + share * (self.stop - self.start)

    @property
    def ticks(self) -> list[float]:
        """The multiples of the step from one end to the other."""
        first, last = math.ceil(self.low / self.step - 1e-9), math.floor(self.high / self.step + 1e-9)
        return [self.step * tick for tick in range(first, last + 1)]

    def labels(self) -> list[str]:
        """Return the ticks as texts; see :func:`written_alike`."""
        return written_alike(self.ticks)


def rounded_out(low: float, high: float) -> tuple[float, float]:
    """Widen an interval a little, to round numbers near its ends."""
    fine = Scale.enclosing(low, high, about=20.0)
    return fine.low, fine.high


def written_alike(values: Sequence[float]) -> list[str]:
    """Write numbers of one axis alike: as many decimals as their steps need, a proper minus."""
    largest = max((abs(value) for value in values), default=0.0)
    steps = [abs(second - first) for first, second in itertools.pairwise(values)]
    step = min(steps, default=largest) or 1.0
    if largest >= _LARGEST_PLAIN or step < _SMALLEST_PLAIN:
        digits = max(1, math.ceil(math.log10(largest / step) - 1e-9) + 1)
        return [_minus(f"{0.0 if abs(value) < step / 2.0 else value:.{digits}g}") for value in values]
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    decimals += round(step * 10**decimals, 6) != round(step * 10**decimals)
    return [_minus(f"{0.0 if abs(value) < step / 2.0 else value:,.{decimals}f}") for value in values]


def _widened(low: float, high: float) -> tuple[float, float]:
    """Return an interval around a point; any other as it is."""
    if high - low > _POINT * max(abs(low), abs(high)):
        return low, high
    middle = (low + high) / 2.0
    reach = 0.1 * abs(middle) or 0.5
    return middle - reach, middle + reach


def _step(span: float, about: float) -> float:
    unit = 10.0 ** math.floor(math.log10(span / about))
    return next((unit * factor for factor in (1.0, 2.0, 5.0) if span / (unit * factor) <= about), 10.0 * unit)


def _minus(number: str) -> str:
    return number.replace("-", "\N{MINUS SIGN}")
