"""The picture of a statistic: small panels along an ordered group, a forest, or a band of ranked cells."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suffice.pages.charts import common_scale, points, ranked, row, row_axis, series
from suffice.pages.drawing import Scale
from suffice.pages.rendering import markup
from suffice.pages.statistic_view import POSTERIOR, SAMPLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markupsafe import Markup

    from suffice.pages.charts import DrawnInterval
    from suffice.pages.statistic_view import StatisticView

MOST_PANELS = 24
FEWEST_PLACES = 4
"""Along the axis of a panel."""
MOST_FOREST_ROWS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestRow:
    """One line of a forest: what it is of, its picture, and its numbers."""

    label: str
    chart: Markup
    middle: str
    interval: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A statistic's picture; exactly one of its parts is there.

    Attributes
    ----------
    panels : tuple of (str, Markup)
        A label and a chart each, which share their axes.
    axis : Markup or None
        Above the rows of a forest.
    forest : tuple of ForestRow
    band : Markup or None
        Of ranked cells.
    densities : Markup or None
        Smooth densities, over a forest or over panels.
    caption : str
    """

    panels: tuple[tuple[str, Markup], ...] = ()
    axis: Markup | None = None
    forest: tuple[ForestRow, ...] = ()
    band: Markup | None = None
    densities: Markup | None = None
    caption: str


def picture(view: StatisticView, ordered: Sequence[str]) -> Picture:
    """Return the picture of a statistic.

    Parameters
    ----------
    view : StatisticView
    ordered : sequence of str
        The groups whose keys have an order: numbers and periods.
    """
    if view.kind == SAMPLE:
        return _points(view)
    labelled = [
        (cell, entry, interval)
        for cell, entries in enumerate(view.intervals)
        for entry, interval in zip(view.entries, entries, strict=True)
    ]
    axis = _axis(view, ordered)
    if axis is not None:
        panels = _panels(view, axis)
        if panels is not None:
            return Picture(panels=panels, caption=_caption(view, f" along {axis}"))
    if len(labelled) <= MOST_FOREST_ROWS:
        x = common_scale([interval for _, _, interval in labelled])
        rows = tuple(
            ForestRow(
                label=", ".join(filter(None, (view.cell_label(cell), entry))) or view.shown_of,
                chart=row(interval, x),
                middle=number(interval.middle),
                interval=f"{number(interval.low)} to {number(interval.high)}",
            )
            for cell, entry, interval in labelled
        )
        smooth = markup(view.densities) if view.densities else None
        return Picture(axis=row_axis(x), forest=rows, densities=smooth, caption=_caption(view, ""))
    intervals = [interval for _, _, interval in labelled]
    title = f"{view.name}: {len(intervals)} intervals of {view.shown_of}, ranked"
    band = ranked(intervals, title=title, description=_span(intervals))
    return Picture(band=band, caption=_caption(view, ", from the lowest to the highest"))


def _points(view: StatisticView) -> Picture:
    """Return the draws of a sample, a row for each cell.

    Over the whole grid, which is public: pictures of releases that ask alike have the same axis.
    """
    x = Scale.enclosing(*view.within, about=5.0)
    rows = tuple(
        ForestRow(
            label=view.cell_label(cell) or view.shown_of,
            chart=points(draws, x),
            middle=number(sum(draws) / len(draws)),
            interval=f"{number(min(draws))} to {number(max(draws))}",
        )
        for cell, draws in enumerate(view.draws)
    )
    return Picture(axis=row_axis(x), forest=rows, caption=_caption(view, ""))


def _axis(view: StatisticView, ordered: Sequence[str]) -> str | None:
    """Return the ordered group with most keys, where all cells are shown and it has keys enough."""
    if view.selection or not view.keys:
        return None
    counts = {
        column: len({keys[column] for keys in view.keys}) for column in ordered if column in view.keys[0]
    }
    axis = max(counts, key=lambda column: counts[column], default=None)
    return axis if axis is not None and counts[axis] >= FEWEST_PLACES else None


def _panels(view: StatisticView, axis: str) -> tuple[tuple[str, Markup], ...] | None:
    places = list(dict.fromkeys(keys[axis] for keys in view.keys))
    by_label: dict[str, dict[Any, DrawnInterval]] = {}
    for position, entry in enumerate(view.entries):
        for cell, keys in enumerate(view.keys):
            others = ", ".join(str(key) for column, key in keys.items() if column != axis)
            label = ", ".join(filter(None, (others, entry))) or view.shown_of
            by_label.setdefault(label, {})[keys[axis]] = view.intervals[cell][position]
    if len(by_label) > MOST_PANELS:
        return None
    labels = [str(place) for place in places]
    return panels_of(
        {label: [by_place.get(place) for place in places] for label, by_place in by_label.items()},
        labels,
        axis,
    )


def panels_of(
    by_label: Mapping[str, Sequence[DrawnInterval | None]], places: Sequence[str], axis: str
) -> tuple[tuple[str, Markup], ...]:
    """Return small panels that share their axes, one for each label.

    Parameters
    ----------
    found : mapping of str to sequence
        The intervals of each panel, one a place; None leaves a gap.
    places : sequence of str
    axis : str
        What the places are of.
    """
    y = common_scale([interval for intervals in by_label.values() for interval in intervals], 3.0)
    return tuple(
        (
            label,
            series(
                places,
                intervals,
                title=f"{label} along {axis}",
                description=_span([interval for interval in intervals if interval is not None]),
                y=y,
            ),
        )
        for label, intervals in by_label.items()
    )


def _span(intervals: Sequence[DrawnInterval]) -> str:
    """Say in words what a chart shows; the numbers stand in the table beside it."""
    shown = [interval for interval in intervals if interval.is_finite]
    if not shown:
        return "There is no finite interval."
    middles = [interval.middle for interval in shown]
    low, high = min(interval.low for interval in shown), max(interval.high for interval in shown)
    return (
        f"{len(shown)} intervals; middles from {number(min(middles))} to {number(max(middles))}, ends from "
        f"{number(low)} to {number(high)}."
    )


def _caption(view: StatisticView, along: str) -> str:
    if view.kind == SAMPLE:
        shown = f" Shown: {view.selection}." if view.selection else ""
        law = (
            "a flatter law than the data's posterior, and their spread is no interval of it"
            if view.is_tempered
            else "the data's own posterior, under the prior named below"
        )
        return (
            f"Draws of the {view.shown_of.replace('_', ' ')} of {view.name}, a circle each, over the "
            f"whole grid. They are of {law}.{shown}"
        )
    what = (
        "Light bars hold 95 % of the posterior probability, dark ones the middle half; circles are medians."
        if view.kind == POSTERIOR
        else "Circles are unbiased estimates; bars reach as far as at least 95 % of the noise that was added "
        "for privacy. They are no posterior intervals: sampling variation is not in them."
    )
    shown = f" Shown: {view.selection}." if view.selection else ""
    of = view.shown_of.replace("_", " ")
    return f"{of[0].upper()}{of[1:]} of {view.name}{along}. {what}{shown}"


_MINUS = "\u2212"


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
    return text.replace("-", _MINUS, 1) if text.startswith("-") else text
