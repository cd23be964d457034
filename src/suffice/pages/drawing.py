"""SVG by hand: figures with a width of their own, and charts that fill the width they are given.

Elements, axes with round steps, and labels that fit their place serve both. Classes say what things are, and
style sheets how these look: nothing here is a colour, a script or a reference. Texts are escaped here.

Charts put places along the width as percentages, so that one fills a telephone and a wide screen with text of
the same size.
"""

from __future__ import annotations

import itertools
import math
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suffice.pages.rendering import escape, markup, visible
from suffice.pipeline.terms.released.table import number_beside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from markupsafe import Markup

_LARGEST_PLAIN, _SMALLEST_PLAIN = 1e7, 1e-5
_POINT = 1e-9
"""An interval that is shorter, as a share of its ends, is drawn as a point."""
_NOTHING = 1e-300
"""A span or a middle that is no more than this is 0: smaller floats have lost their digits."""


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
        Between ticks: 1, 2 or 5 times a power of ten; of a logarithmic scale the ratio of two.
    is_logarithmic : bool
        Whether equal ratios are equally far apart; its ticks are powers of ten.
    """

    low: float
    high: float
    start: float
    stop: float
    step: float
    is_logarithmic: bool = False

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

    @classmethod
    def logarithmic(
        cls, low: float, high: float, start: float = 0.0, stop: float = 1.0, *, about: float = 6.0
    ) -> Scale:
        """Return a scale of logarithms from a number above 0 to a greater one.

        Examples
        --------
        >>> Scale.logarithmic(0.02, 3000.0).labels()
        ['0.1', '1', '10', '100', '1,000']
        """
        decades = max(1, math.ceil(math.log10(high / low) / about))
        return cls(low=low, high=high, start=start, stop=stop, step=10.0**decades, is_logarithmic=True)

    def at(self, number: float) -> float:
        """Return where a number stands; one beyond an end stands there."""
        inside = min(max(number, self.low), self.high)
        if self.is_logarithmic:
            share = math.log(inside / self.low) / math.log(self.high / self.low)
        else:
            share = (inside - self.low) / (self.high - self.low)
        return self.start + share * (self.stop - self.start)

    @property
    def ticks(self) -> list[float]:
        """The multiples of the step from one end to the other; of a logarithmic scale its powers."""
        if self.is_logarithmic:
            low, high = (math.log(end, self.step) for end in (self.low, self.high))
            return [self.step**power for power in range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)]
        first, last = math.ceil(self.low / self.step - 1e-9), math.floor(self.high / self.step + 1e-9)
        return [self.step * tick for tick in range(first, last + 1)]

    def labels(self) -> list[str]:
        """Return the ticks as texts; see :func:`written_alike`."""
        if self.is_logarithmic:
            return [number(tick) for tick in self.ticks]
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
    if high - low > max(_POINT * max(abs(low), abs(high)), _NOTHING):
        return low, high
    middle = (low + high) / 2.0
    reach = 0.1 * abs(middle) if abs(middle) > _NOTHING else 0.5
    return middle - reach, middle + reach


def _step(span: float, about: float) -> float:
    unit = 10.0 ** math.floor(math.log10(span / about))
    return next((unit * factor for factor in (1.0, 2.0, 5.0) if span / (unit * factor) <= about), 10.0 * unit)


def _minus(number: str) -> str:
    return number.replace("-", "\N{MINUS SIGN}")


def number(value: float, digits: int = 4) -> str:
    """Return a number as people read it: so many significant digits, thousands set apart.

    Examples
    --------
    >>> number(0.0123456), number(1234567.0), number(1000.5, 6), number(3.2e-9)
    ('0.01235', '1,235,000', '1,000.5', '3.2e-09')
    """
    if not math.isfinite(value):
        return "none"
    text = f"{value:.{digits}g}"
    size = abs(value)
    if size >= 1000 and size < 1e15:
        decimals = 0 if "e" in text else len(text.partition(".")[2])
        text = f"{float(text):,.{decimals}f}"
    return text.replace("-", "\N{MINUS SIGN}", 1) if text.startswith("-") else text


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


_LEFT, _RIGHT, _LEFT_OF_WIDE = 13.0, 98.0, 5.0
_TOP = 24.0
"""Of the numbers of a chart, below what they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnInterval:
    """The five marks of an interval: its ends, the ends of its inner half, and its middle."""

    low: float
    lower_half: float
    middle: float
    upper_half: float
    high: float

    @property
    def is_finite(self) -> bool:
        """Whether there is something to draw."""
        return all(map(math.isfinite, (self.low, self.lower_half, self.middle, self.upper_half, self.high)))


def common_scale(
    intervals: Sequence[DrawnInterval | None], most: float = 5.0, *, in_logs: bool = False
) -> Scale:
    """Return the scale on which all intervals fit, logarithmic where they are above 0 and that is asked."""
    shown = [interval for interval in intervals if interval is not None and interval.is_finite]
    if not shown:
        return Scale.enclosing(0.0, 1.0, about=most)
    low, high = min(interval.low for interval in shown), max(interval.high for interval in shown)
    return Scale.logarithmic(low, high, about=most) if in_logs else Scale.enclosing(low, high, about=most)


def series(
    labels: Sequence[str],
    intervals: Sequence[DrawnInterval | None],
    *,
    title: str,
    description: str,
    axes: tuple[str, str],
    y: Scale | None = None,
    height: int = 186,
) -> Markup:
    """Return intervals over an ordered axis, joined by a thin line through their middles.

    Parameters
    ----------
    labels : sequence of str
        Of the places along the axis, in order.
    intervals : sequence of Interval or None
        One a place; None leaves a gap.
    title, description : str
        For those who do not see the picture.
    axes : tuple of str
        What stands along the axis, and what the numbers are.
    y : Scale, optional
        Where several charts share one.
    height : int
        In pixels, with the labels of the axis.
    """
    y = common_scale(intervals, 3.0) if y is None else y
    bottom, low, short = height - 36.0, height - 21, _shortened(labels)

    def up(value: float) -> float:
        return _TOP + (1.0 - y.at(value)) * (bottom - _TOP)

    def across(place: int) -> float:
        return _LEFT + (place + 0.5) / max(len(labels), 1) * (_RIGHT - _LEFT)

    parts = _levels(y, up)
    places = [
        place for place, interval in enumerate(intervals) if interval is not None and interval.is_finite
    ]
    for before, after in itertools.pairwise(places):
        if after == before + 1:
            ends = (intervals[before], intervals[after])
            first, last = (interval.middle if interval is not None else math.nan for interval in ends)
            parts.append(_line("connection", across(before), up(first), across(after), up(last)))
    for place in places:
        interval = intervals[place]
        if interval is not None:
            x = across(place)
            parts.append(_line("interval", x, up(interval.low), x, up(interval.high)))
            parts.append(_line("interval-half", x, up(interval.lower_half), x, up(interval.upper_half)))
            # A tick, that no interval be hidden: a line as short as it is to be thin.
            parts.append(_line("level", x, up(interval.middle) - 0.9, x, up(interval.middle) + 0.9))
    parts += [
        f'<text x="{across(place):.2f}%" y="{low}" text-anchor="middle">{escape(short[place])}</text>'
        for place in _labelled(short)
    ]
    parts += _axis_titles(*axes, height)
    return _chart(parts, height, title, description)


def row(interval: DrawnInterval, x: Scale) -> Markup:
    """Return one interval on a line, for a row of a table; hidden from readers of text, who have the numbers.

    Parameters
    ----------
    interval : Interval
    x : Scale
        Shared by the rows.
    """
    parts = [_line("grid", at, 0, at, 24) for at in (100 * x.at(tick) for tick in x.ticks)]
    if interval.is_finite:
        low, lower, middle, upper, high = (
            100 * x.at(value)
            for value in (
                interval.low,
                interval.lower_half,
                interval.middle,
                interval.upper_half,
                interval.high,
            )
        )
        parts += [
            _line("interval", low, 12, high, 12),
            _line("interval-half", lower, 12, upper, 12),
            _line("middle", middle, 5, middle, 19),
        ]
    return markup(f'<svg class="chart" height="24" aria-hidden="true">{"".join(parts)}</svg>')


def points(values: Sequence[float], x: Scale) -> Markup:
    """Return single values on a line, for a row of a table; hidden from readers of text, as ``row`` is."""
    parts = [_line("grid", at, 0, at, 24) for at in (100 * x.at(tick) for tick in x.ticks)]
    parts += [f'<circle class="point" cx="{100 * x.at(value):.2f}%" cy="12" r="4"/>' for value in values]
    return markup(f'<svg class="chart" height="24" aria-hidden="true">{"".join(parts)}</svg>')


def row_axis(x: Scale, title: str) -> Markup:
    """Return the axis above such rows, and over it what its numbers are."""
    shown = x.labels()
    minor = ' class="minor"'  # left out on narrow screens
    anchors = ["start", *["middle"] * (len(shown) - 2), "end"]
    parts = [
        f'<text{"" if anchor != "middle" else minor} x="{100 * x.at(tick):.2f}%" y="12" '
        f'text-anchor="{anchor}">{label}</text>'
        for tick, label, anchor in zip(x.ticks, shown, anchors, strict=True)
    ]
    # A narrow screen breaks the title, as it does no text of a picture.
    return markup(
        f'<span class="axis-title">{escape(title)}</span>'
        f'<svg class="chart" height="18" aria-hidden="true">{"".join(parts)}</svg>'
    )


def steps(
    times: Sequence[float],
    totals: Sequence[float],
    *,
    labels: tuple[str, str],
    axis: str,
    title: str,
    description: str,
    limits: Sequence[float] = (),
    height: int = 186,
    is_wide: bool = False,
) -> Markup:
    """Return a running total over time, as steps.

    Parameters
    ----------
    times : sequence of float
        When it rose, 0 to 1 along the axis; increasing.
    totals : sequence of float
        What it rose to.
    labels : tuple of str
        Of both ends of the axis.
    axis : str
        What the total is of.
    limits : sequence of float
        What was granted at each of the times; drawn as a line of its own. Empty where it is not known.
    height : int
        In pixels.
    is_wide : bool
        Whether the chart has the width of a page.
    """
    y = Scale.enclosing(0.0, max([*totals, *limits, 1e-9]), about=3.0)
    bottom = height - 36.0

    def up(value: float) -> float:
        return _TOP + (1.0 - y.at(value)) * (bottom - _TOP)

    left = _LEFT_OF_WIDE if is_wide else _LEFT

    def across(time: float) -> float:
        return left + time * (_RIGHT - left)

    parts = _levels(y, up, left)
    corners = [(across(time), total) for time, total in zip(times, totals, strict=True)]
    before = 0.0
    for place, (x, total) in enumerate(corners):
        end = corners[place + 1][0] if place + 1 < len(corners) else _RIGHT
        parts.append(
            f'<rect class="step-area" x="{x:.2f}%" width="{max(end - x, 0):.2f}%" '
            f'y="{up(total):.1f}" height="{bottom - up(total):.1f}"/>'
        )
        parts.append(_line("step", x, up(before), x, up(total)))
        parts.append(_line("step", x, up(total), end, up(total)))
        before = total
    granted = [(across(time), limit) for time, limit in zip(times, limits, strict=False)]
    for place, (x, limit) in enumerate(granted):
        end = granted[place + 1][0] if place + 1 < len(granted) else _RIGHT
        parts.append(_line("granted", x, up(limit), end, up(limit)))
    parts.append(f'<text x="{left}%" y="{height - 21}">{escape(labels[0])}</text>')
    if labels[1] not in {"", labels[0]}:
        parts.append(f'<text x="{_RIGHT}%" y="{height - 21}" text-anchor="end">{escape(labels[1])}</text>')
    parts += _axis_titles("date of charge", axis, height)
    return _chart(parts, height, title, description)


def _levels(y: Scale, up: Callable[[float], float], left: float = _LEFT) -> list[str]:
    """Return a line and a label for every tick."""
    parts = []
    for tick, label in zip(y.ticks, y.labels(), strict=True):
        parts.append(_line("grid", left, up(tick), _RIGHT, up(tick)))
        parts.append(f'<text x="{left - 1.2:.2f}%" y="{up(tick) + 4:.1f}" text-anchor="end">{label}</text>')
    return parts


def _axis_titles(across: str, up: str, height: int) -> list[str]:
    """Return what stands along the axis, below it, and what the numbers are, above them."""
    middle = (_LEFT + _RIGHT) / 2.0
    return [
        f'<text class="title" x="0" y="11">{escape(fitted(visible(up), 40))}</text>',
        (
            f'<text class="title" x="{middle:.1f}%" y="{height - 4}" text-anchor="middle">'
            f"{escape(fitted(visible(across), 40))}</text>"
        ),
    ]


def _shortened(labels: Sequence[str]) -> Sequence[str]:
    """Return names by their first three letters, as of months, where these tell them apart."""
    firsts = [label[:3] for label in labels]
    is_needed = len(_labelled(labels)) < len(labels) and all(map(str.isalpha, labels))
    return firsts if is_needed and len(set(firsts)) == len(firsts) else labels


def _labelled(labels: Sequence[str]) -> range:
    """Return the places that get a label, so that labels do not run into each other."""
    longest = max(map(len, labels), default=1)
    most = max(2, 34 // (longest + 1))
    return range(0, len(labels), max(1, math.ceil(len(labels) / most)))


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.2f}%" y1="{y1:.1f}" x2="{x2:.2f}%" y2="{y2:.1f}"/>'


def _chart(parts: Sequence[str], height: int, title: str, description: str) -> Markup:
    label = f"{escape(title)}. {escape(description)}"
    return markup(
        f'<svg class="chart" role="img" height="{height}" aria-label="{label}">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>{''.join(parts)}</svg>"
    )


def interval_text(value: float, interval: DrawnInterval, digits: int | None = None) -> str:
    """Return a mark of an interval to as many digits as its width tells, or so many after the point."""
    if not math.isfinite(value):
        return number(value)
    text = number_beside(value, (interval.high - interval.low) / 4.0, digits)
    return text.replace("-", "\N{MINUS SIGN}", 1) if text.startswith("-") else text
