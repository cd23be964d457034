"""SVG by hand: elements with escaped text, axes with round steps, and labels that fit their place.

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


WIDTH = 720.0
"""Of every figure, in its own units; pages scale it."""
CHARACTER = 7.2
"""Width of a character of a label, about, at the size that style sheets give it."""


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
    parts = [
        element("line", x1=scale.at(tick), x2=scale.at(tick), y1=top, y2=bottom, class_="grid")
        + text(scale.at(tick), bottom + 17.0, written, "tick middle")
        for tick, written in zip(scale.ticks, scale.labels(), strict=True)
    ]
    middle = (scale.start + scale.stop) / 2.0
    return "".join([*parts, text(middle, bottom + 37.0, label, "axis middle", longest=90)])


def numbers_beside(scale: Scale, left: float, right: float, label: str) -> str:
    """Return grid lines from left to right, their numbers on the left, and what these are above."""
    parts = [
        element("line", x1=left, x2=right, y1=scale.at(tick), y2=scale.at(tick), class_="grid")
        + text(left - 8.0, scale.at(tick) + 4.0, written, "tick end")
        for tick, written in zip(scale.ticks, scale.labels(), strict=True)
    ]
    return "".join([*parts, text(0.0, scale.stop - 14.0, label, "axis", longest=100)])
