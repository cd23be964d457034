"""The picture of what a page shows of a statistic: rows on axes, small panels, or a ranked band."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pages.drawing import (
    DrawnInterval,
    Scale,
    common_scale,
    number,
    points,
    row,
    row_axis,
    series,
)
from suffice.pages.posterior_figures import ranked
from suffice.pages.rendering import markup
from suffice.pages.statistic_view import MASS, POSTERIOR, SAMPLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markupsafe import Markup

    from suffice.pages.statistic_view import StatisticView

MOST_SPANS = 12.0
"""How many times the span of a chart an axis in common may have."""
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
    forests : tuple of (Markup, tuple of ForestRow)
        Rows, and the axis above them.
    band : Markup or None
        Of ranked cells.
    densities : Markup or None
        Smooth densities, over a forest or over panels.
    caption : str
    """

    panels: tuple[tuple[str, Markup], ...] = ()
    forests: tuple[tuple[Markup, tuple[ForestRow, ...]], ...] = ()
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
            along = f" along {view.about.column(axis)}"
            caption = _caption(view, along) + panels[1]
            # Quantiles along a group, below the columns that they are of.
            densities = _smooth(view) if view.reading else None
            return Picture(panels=panels[0], densities=densities, caption=caption)
    if len(labelled) <= MOST_FOREST_ROWS:
        together = view.entries if view.has_axes_apart else ("",)
        forests = tuple(
            _forest(view, [row for row in labelled if not of or row[1] == of], of) for of in together
        )
        return Picture(forests=forests, densities=_smooth(view), caption=_caption(view, ""))
    intervals = [interval for _, _, interval in labelled]
    ends = np.array([[interval.low, interval.middle, interval.high] for interval in intervals])
    band = ranked(
        *ends.T,
        title=f"{view.label}: {len(intervals)} intervals of {view.shown_in_words}, ranked",
        axis=_numbers(view),
        mass=MASS,
        in_logs=view.in_logs,
        cells="cells" if len(view.entries) == 1 else "entries",
        middles="medians" if view.kind == POSTERIOR else "estimates",
    )
    return Picture(
        band=markup(band), caption=_caption(view, ", from the lowest to the highest", is_band=True)
    )


def _smooth(view: StatisticView) -> Markup | None:
    return markup(view.densities) if view.densities else None


def _forest(
    view: StatisticView, labelled: Sequence[tuple[int, str, DrawnInterval]], of: str
) -> tuple[Markup, tuple[ForestRow, ...]]:
    """Return rows on one axis, and the axis; `of` says which entries these are, where not all."""
    x = common_scale([interval for _, _, interval in labelled], in_logs=view.in_logs)
    rows = tuple(
        ForestRow(
            # The axis names the quantile.
            label=_label(view, view.cell_label(cell), "" if of and view.is_column else entry),
            chart=row(interval, x),
            middle=view.text(interval.middle, interval),
            interval=f"{view.text(interval.low, interval)} to {view.text(interval.high, interval)}",
        )
        for cell, entry, interval in labelled
    )
    return row_axis(x, ": ".join(filter(None, (_numbers(view), view.entry_label(of) if of else "")))), rows


def _points(view: StatisticView) -> Picture:
    """Return the draws of a sample, a row for each cell.

    Over the whole grid, which is public: pictures of releases that ask alike have the same axis.
    """
    x = Scale.enclosing(*view.within, about=5.0)
    rows = tuple(
        ForestRow(
            label=view.cell_label(cell) or view.shown_in_words,
            chart=points(draws, x),
            middle=number(sum(draws) / len(draws)),
            interval=f"{number(min(draws))} to {number(max(draws))}",
        )
        for cell, draws in enumerate(view.draws)
    )
    return Picture(forests=((row_axis(x, _numbers(view)), rows),), caption=_caption(view, ""))


def _axis(view: StatisticView, ordered: Sequence[str]) -> str | None:
    """Return the ordered group with most keys, where all cells are shown and it has keys enough."""
    if view.selection or not view.keys:
        return None
    counts = {
        column: len({keys[column] for keys in view.keys}) for column in ordered if column in view.keys[0]
    }
    axis = max(counts, key=lambda column: counts[column], default=None)
    return axis if axis is not None and counts[axis] >= FEWEST_PLACES else None


def _panels(view: StatisticView, axis: str) -> tuple[tuple[tuple[str, Markup], ...], str] | None:
    """Return a chart for each label, and a sentence on their axes; None where there are too many."""
    places = list(dict.fromkeys(keys[axis] for keys in view.keys))
    by_label: dict[str, dict[Any, DrawnInterval]] = {}
    entry_of: dict[str, str] = {}
    for position, entry in enumerate(view.entries):
        for cell, keys in enumerate(view.keys):
            others = ", ".join(view.about.key(column, key) for column, key in keys.items() if column != axis)
            label = _label(view, others, entry)
            entry_of[label] = entry
            by_label.setdefault(label, {})[keys[axis]] = view.intervals[cell][position]
    if len(by_label) > MOST_PANELS:
        return None
    panels = {label: [by_place.get(place) for place in places] for label, by_place in by_label.items()}
    axes, named = (view.about.column(axis), _numbers(view)), [view.about.key(axis, place) for place in places]
    # Rare and frequent categories share no axis: the intervals of both would be dots.
    together = [{label: panels[label] for label in panels if entry_of[label] == of} for of in view.entries]
    several = "quantile" if view.is_column else "category"
    said = f" Each {several} has an axis of its own." if len(view.entries) > 1 else ""
    if not view.in_logs and any(map(_would_be_dots, together)):
        together = [{label: intervals} for label, intervals in panels.items()]
        said = " Each chart has an axis of its own: on a common one, intervals would be dots."
    return tuple(
        panel for several in together for panel in panels_of(several, named, axes, in_logs=view.in_logs)
    ), said


def _would_be_dots(by_label: Mapping[str, Sequence[DrawnInterval | None]]) -> bool:
    """Tell whether charts differ by far more than one of them spans, which would be a line of dots."""
    ends = [
        [
            end
            for interval in intervals
            if interval is not None and interval.is_finite
            for end in (interval.low, interval.high)
        ]
        for intervals in by_label.values()
    ]
    known = [(min(of_chart), max(of_chart)) for of_chart in ends if of_chart]
    if not known:
        return False
    least = min(high - low for low, high in known)
    return max(high for _, high in known) - min(low for low, _ in known) > MOST_SPANS * least


def panels_of(
    by_label: Mapping[str, Sequence[DrawnInterval | None]],
    places: Sequence[str],
    axes: tuple[str, str],
    *,
    in_logs: bool = False,
) -> tuple[tuple[str, Markup], ...]:
    """Return small panels that share their axes, one for each label.

    Parameters
    ----------
    by_label : mapping of str to sequence
        The intervals of each panel, one a place; None leaves a gap.
    places : sequence of str
    axes : tuple of str
        What the places are of, and what the numbers are.
    in_logs : bool
        Whether the numbers stand on a logarithmic scale.
    """
    shown = [interval for intervals in by_label.values() for interval in intervals]
    y = common_scale(shown, 3.0, in_logs=in_logs)
    return tuple(
        (
            label,
            series(
                places,
                intervals,
                title=f"{label} along {axes[0]}",
                axes=axes,
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


def _numbers(view: StatisticView) -> str:
    """Return what the numbers of a picture are."""
    return view.shown_in_words.replace("_", " ") + (" (logarithmic axis)" if view.in_logs else "")


def _label(view: StatisticView, cell: str, entry: str) -> str:
    return ", ".join(filter(None, (cell, view.entry_label(entry)))) or view.shown_in_words


def _caption(view: StatisticView, along: str, *, is_band: bool = False) -> str:
    if view.kind == SAMPLE:
        shown = f" Shown: {view.selection}." if view.selection else ""
        if view.law:
            return (
                f"Draws of the {view.shown_of} of {view.label}, a circle for the middle of each bin. Each "
                f"{view.law}.{shown}"
            )
        law = (
            "a flatter law than the data's posterior, and their spread is no interval of it"
            if view.is_tempered
            else "the data's own posterior, under the prior named below"
        )
        return (
            f"Draws of the {view.shown_of.replace('_', ' ')} of {view.label}, a circle each, over the "
            f"whole grid. They are of {law}.{shown}"
        )
    noise = "as at least 95 % of the noise that was added for privacy."
    caution = "They are no posterior intervals: sampling variation is not in them."
    if view.kind == POSTERIOR and is_band:
        what = "The line joins medians; the band holds 95 % of the posterior probability of each."
    elif view.kind == POSTERIOR:
        what = (
            "Thin bars hold 95 % of the posterior probability, thick ones the middle half; ticks are medians."
        )
    elif is_band:
        what = f"The line joins unbiased estimates; the band reaches as far {noise} {caution}"
    else:
        what = f"Ticks are unbiased estimates; bars reach as far {noise} {caution}"
    shown = f" Shown: {view.selection}." if view.selection else ""
    along = f"{along}, on a logarithmic scale" if view.in_logs else along
    said = f"{view.number_label}{along}. {what}{shown}"
    return f"{view.reading} Below: {said[0].lower()}{said[1:]}" if view.reading else said
