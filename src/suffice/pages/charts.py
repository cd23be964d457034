"""Charts as inline SVG: fluid in width, without styles of their own; classes of ``style.css`` colour them.

Places along the width are percentages, so that a chart fills a telephone and a wide screen with text of the
same size. Texts in charts are escaped here; charts hold no script and refer to nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from suffice.pages.drawing import Scale
from suffice.pages.rendering import escape, markup

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from markupsafe import Markup


_LEFT, _RIGHT, _LEFT_OF_WIDE = 13.0, 98.0, 5.0


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


def common_scale(intervals: Sequence[DrawnInterval | None], most: float = 5.0) -> Scale:
    """Return the scale on which all intervals fit."""
    shown = [interval for interval in intervals if interval is not None and interval.is_finite]
    if not shown:
        return Scale.enclosing(0.0, 1.0, about=most)
    return Scale.enclosing(
        min(interval.low for interval in shown), max(interval.high for interval in shown), about=most
    )


def series(
    labels: Sequence[str],
    intervals: Sequence[DrawnInterval | None],
    *,
    title: str,
    description: str,
    y: Scale | None = None,
    height: int = 150,
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
    y : Scale, optional
        Where several charts share one.
    height : int
        In pixels, with the labels of the axis.
    """
    y = common_scale(intervals, 3.0) if y is None else y
    bottom = height - 18.0

    def up(value: float) -> float:
        return 6.0 + (1.0 - y.at(value)) * (bottom - 6.0)

    def across(place: int) -> float:
        return _LEFT + (place + 0.5) / max(len(labels), 1) * (_RIGHT - _LEFT)

    parts = _levels(y, up)
    places = [
        place for place, interval in enumerate(intervals) if interval is not None and interval.is_finite
    ]
    for before, after in pairwise(places):
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
            parts.append(f'<circle class="point" cx="{x:.2f}%" cy="{up(interval.middle):.1f}" r="2.4"/>')
    parts += [
        f'<text x="{across(place):.2f}%" y="{height - 3}" text-anchor="middle">{escape(labels[place])}</text>'
        for place in _labelled(labels)
    ]
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
            f'<circle class="point" cx="{middle:.2f}%" cy="12" r="4"/>',
        ]
    return markup(f'<svg class="chart" height="24" aria-hidden="true">{"".join(parts)}</svg>')


def points(values: Sequence[float], x: Scale) -> Markup:
    """Return single values on a line, for a row of a table; hidden from readers of text, as ``row`` is."""
    parts = [_line("grid", at, 0, at, 24) for at in (100 * x.at(tick) for tick in x.ticks)]
    parts += [f'<circle class="point" cx="{100 * x.at(value):.2f}%" cy="12" r="4"/>' for value in values]
    return markup(f'<svg class="chart" height="24" aria-hidden="true">{"".join(parts)}</svg>')


def row_axis(x: Scale) -> Markup:
    """Return the axis above such rows."""
    shown = x.labels()
    minor = ' class="minor"'  # left out on narrow screens
    anchors = ["start", *["middle"] * (len(shown) - 2), "end"]
    parts = [
        f'<text{"" if anchor != "middle" else minor} x="{100 * x.at(tick):.2f}%" y="12" '
        f'text-anchor="{anchor}">{label}</text>'
        for tick, label, anchor in zip(x.ticks, shown, anchors, strict=True)
    ]
    return markup(f'<svg class="chart" height="18" aria-hidden="true">{"".join(parts)}</svg>')


def ranked(intervals: Sequence[DrawnInterval], *, title: str, description: str, height: int = 260) -> Markup:
    """Return many intervals side by side, in rising order of their middles."""
    y = common_scale(intervals, 5.0)
    bottom = height - 18.0

    def up(value: float) -> float:
        return 6.0 + (1.0 - y.at(value)) * (bottom - 6.0)

    parts = _levels(y, up, _LEFT_OF_WIDE)
    ordered = sorted(
        (interval for interval in intervals if interval.is_finite), key=lambda interval: interval.middle
    )
    step = (_RIGHT - 7.0) / max(len(ordered), 1)
    for place, interval in enumerate(ordered):
        x = 7.0 + place * step
        top, base = up(interval.high), up(interval.low)
        parts.append(
            f'<rect class="bar" x="{x:.2f}%" width="{step * 0.8:.2f}%" y="{top:.1f}" '
            f'height="{base - top:.1f}"/>'
        )
        parts.append(
            _line("interval-half", x, up(interval.middle), x + step * 0.8, up(interval.middle), width=2)
        )
    parts.append(f'<text x="7%" y="{height - 3}">lowest</text>')
    parts.append(f'<text x="{_RIGHT}%" y="{height - 3}" text-anchor="end">highest</text>')
    return _chart(parts, height, title, description)


def steps(
    times: Sequence[float],
    totals: Sequence[float],
    *,
    labels: tuple[str, str],
    title: str,
    description: str,
    limits: Sequence[float] = (),
    height: int = 150,
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
    limits : sequence of float
        What was granted at each of the times; drawn as a line of its own. Empty where it is not known.
    height : int
        In pixels.
    is_wide : bool
        Whether the chart has the width of a page.
    """
    y = Scale.enclosing(0.0, max([*totals, *limits, 1e-9]), about=3.0)
    bottom = height - 18.0

    def up(value: float) -> float:
        return 6.0 + (1.0 - y.at(value)) * (bottom - 6.0)

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
    parts.append(f'<text x="{left}%" y="{height - 3}">{escape(labels[0])}</text>')
    if labels[1] not in {"", labels[0]}:
        parts.append(f'<text x="{_RIGHT}%" y="{height - 3}" text-anchor="end">{escape(labels[1])}</text>')
    return _chart(parts, height, title, description)


def _levels(y: Scale, up: Callable[[float], float], left: float = _LEFT) -> list[str]:
    """Return a line and a label for every tick."""
    parts = []
    for tick, label in zip(y.ticks, y.labels(), strict=True):
        parts.append(_line("grid", left, up(tick), _RIGHT, up(tick)))
        parts.append(f'<text x="{left - 1.2:.2f}%" y="{up(tick) + 4:.1f}" text-anchor="end">{label}</text>')
    return parts


def _labelled(labels: Sequence[str]) -> range:
    """Return the places that get a label, so that labels do not run into each other."""
    longest = max(map(len, labels), default=1)
    most = max(2, 34 // (longest + 1))
    return range(0, len(labels), max(1, math.ceil(len(labels) / most)))


def _line(kind: str, x1: float, y1: float, x2: float, y2: float, *, width: int | None = None) -> str:
    thickness = "" if width is None else f' stroke-width="{width}"'
    return f'<line class="{kind}" x1="{x1:.2f}%" y1="{y1:.1f}" x2="{x2:.2f}%" y2="{y2:.1f}"{thickness}/>'


def _chart(parts: Sequence[str], height: int, title: str, description: str) -> Markup:
    label = f"{escape(title)}. {escape(description)}"
    return markup(
        f'<svg class="chart" role="img" height="{height}" aria-label="{label}">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>{''.join(parts)}</svg>"
    )
