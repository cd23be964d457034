"""SVG by hand: elements with escaped text, round numbers along an axis, and labels that fit their place.

Figures state what things are by classes, and style sheets say how these look: nothing here is a colour.
"""

from __future__ import annotations

import itertools
import math
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suffice.pages.rendering import escape, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WIDTH = 720.0
"""Of every figure, in its own units; pages scale it."""
CHARACTER = 7.2
"""Width of a character of a label, about, at the size that style sheets give it."""
_LARGEST_PLAIN, _SMALLEST_PLAIN = 1e7, 1e-5


def element(name: str, *content: str, **attributes: object) -> str:
    """Return an SVG element; content is SVG already, values of attributes are text that is escaped.

    Underscores of attributes' names stand for hyphens, but a last one is dropped: ``class_``.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{''.join(content)}</{name}>" if content else f"<{name}{written}/>"


def text(x: float, y: float, value: object, class_: str, *, longest: int | None = None) -> str:
    """Return a line of text; one that is cut to `longest` characters keeps the whole as its title."""
    whole = visible(value)
    cut = fitted(whole, longest) if longest is not None else whole
    if cut == whole:
        return element("text", escape(whole), x=x, y=y, class_=class_)
    return element("text", element("title", escape(whole)), escape(cut), x=x, y=y, class_=class_)


def columns_of(value: str) -> int:
    """Return how many characters wide a text is: those of East Asia count as two."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in value)


def fitted(value: str, longest: int) -> str:
    """Cut a text to a width in characters."""
    if columns_of(value) <= longest:
        return value
    kept = value[: longest - 1]
    while columns_of(kept) > longest - 1:
        kept = kept[:-1]
    return f"{kept}…"


def label_width(labels: Iterable[str], longest: int) -> float:
    """Return the room that labels take, cut to `longest` characters."""
    most = max((min(columns_of(visible(label)), longest) for label in labels), default=0)
    return CHARACTER * most


def path(points: Iterable[tuple[float, float]], *, closed: bool = False) -> str:
    """Return the ``d`` of a line through points."""
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) + ("Z" if closed else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Where numbers stand along an axis.

    Attributes
    ----------
    low, high : float
        The numbers at its ends; ``low < high``.
    start, stop : float
        Where these stand.
    """

    low: float
    high: float
    start: float
    stop: float

    @classmethod
    def over(cls, low: float, high: float, start: float, stop: float) -> Scale:
        """Return a scale of an interval that may be a point."""
        if not low < high:
            middle, reach = (low + high) / 2.0, max(abs(low), 1e-9) * 0.05
            low, high = middle - reach, middle + reach
        return cls(low=low, high=high, start=start, stop=stop)

    def at(self, number: float) -> float:
        """Return where a number stands; one beyond an end stands there."""
        share = min(max((number - self.low) / (self.high - self.low), 0.0), 1.0)
        return self.start + share * (self.stop - self.start)

    def ticks(self, about: int = 6) -> list[float]:
        """Return round numbers inside of the ends, about so many."""
        span = self.high - self.low
        unit = 10.0 ** math.floor(math.log10(span / about))
        step = unit * next(factor for factor in (1.0, 2.0, 5.0, 10.0) if span / (unit * factor) <= about)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [step * tick for tick in range(first, last + 1)]


def rounded_out(low: float, high: float) -> tuple[float, float]:
    """Widen an interval a little, to round numbers near its ends."""
    ticks = Scale.over(low, high, 0.0, 1.0).ticks(20)
    step = ticks[1] - ticks[0] if len(ticks) > 1 else 0.0
    if not step:
        return low, high
    return step * math.floor(low / step + 1e-9), step * math.ceil(high / step - 1e-9)


def numbers(values: Sequence[float]) -> list[str]:
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


def _minus(number: str) -> str:
    return number.replace("-", "\N{MINUS SIGN}")


def _attribute(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else escape(value)


def figure(kind: str, height: float, title: str, description: str, *parts: str) -> str:
    """Return a whole figure: a picture with a name and a description for who does not see it."""
    return element(
        "svg",
        element("title", escape(title)),
        element("desc", escape(description)),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        class_=f"figure figure-{kind}",
        role="img",
        aria_label=f"{title}. {description}",
        viewBox=f"0 0 {WIDTH:.0f} {height:.0f}",
    )


def numbers_below(scale: Scale, top: float, bottom: float, label: str) -> str:
    """Return grid lines from top to bottom, their numbers below, and what these are below them."""
    ticks = scale.ticks()
    parts = [
        element("line", x1=scale.at(tick), x2=scale.at(tick), y1=top, y2=bottom, class_="grid")
        + text(scale.at(tick), bottom + 17.0, written, "tick middle")
        for tick, written in zip(ticks, numbers(ticks), strict=True)
    ]
    middle = (scale.start + scale.stop) / 2.0
    return "".join([*parts, text(middle, bottom + 37.0, label, "axis middle", longest=90)])


def numbers_beside(scale: Scale, left: float, right: float, label: str) -> str:
    """Return grid lines from left to right, their numbers on the left, and what these are above."""
    ticks = scale.ticks(5)
    parts = [
        element("line", x1=left, x2=right, y1=scale.at(tick), y2=scale.at(tick), class_="grid")
        + text(left - 8.0, scale.at(tick) + 4.0, written, "tick end")
        for tick, written in zip(ticks, numbers(ticks), strict=True)
    ]
    return "".join([*parts, text(0.0, scale.stop - 14.0, label, "axis", longest=100)])
