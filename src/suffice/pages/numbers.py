"""Numbers on pages: round ticks that enclose what is shown, and texts of a few digits."""

from __future__ import annotations

import math
from dataclasses import dataclass

_MINUS = "\u2212"


def number(value: float, digits: int = 4) -> str:
    """Return a number as people read it: so many significant digits, thousands set apart.

    Examples
    --------
    >>> number(0.0123456), number(1234567.0), number(12.0), number(3.2e-9)
    ('0.01235', '1,235,000', '12', '3.2e-09')
    """
    if not math.isfinite(value):
        return "none"
    text = f"{value:.{digits}g}"
    size = abs(value)
    if size >= 1000 and size < 1e15:
        text = f"{float(text):,.0f}"
    return text.replace("-", _MINUS, 1) if text.startswith("-") else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A linear scale with round ticks that enclose what is shown.

    Attributes
    ----------
    ticks : tuple of float
        Increasing; the first and the last are the ends of the scale.
    """

    ticks: tuple[float, ...]

    def share(self, value: float) -> float:
        """Return where a value lies between the ends, 0 to 1; what lies beyond is put at an end."""
        low, high = self.ticks[0], self.ticks[-1]
        return min(max((value - low) / (high - low), 0.0), 1.0)

    def labels(self) -> tuple[str, ...]:
        """Return the ticks as texts with equally many decimals."""
        step = self.ticks[1] - self.ticks[0]
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        if decimals > 6 or abs(self.ticks[-1]) >= 1e15:
            return tuple(f"{tick:.3g}".replace("-", _MINUS, 1) for tick in self.ticks)
        return tuple(f"{tick + 0.0:,.{decimals}f}".replace("-", _MINUS) for tick in self.ticks)


def scale(low: float, high: float, most: float = 5.0) -> Scale:
    """Return a scale of at most about so many steps that encloses an interval.

    Examples
    --------
    >>> scale(0.02, 0.97).labels()
    ('0.0', '0.2', '0.4', '0.6', '0.8', '1.0')
    """
    span = high - low
    if not span > abs(high) * 1e-9:
        middle, span = (low + high) / 2, max(abs(high) * 0.2, 1e-300)
        low, high = middle - span / 2, middle + span / 2
    unit = 10.0 ** math.floor(math.log10(span))
    step = next(unit * factor for factor in (0.2, 0.5, 1.0, 2.0, 5.0, 10.0) if span / (unit * factor) <= most)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return Scale(ticks=tuple(step * tick for tick in range(first, max(last, first + 1) + 1)))
