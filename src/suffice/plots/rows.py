"""Rows that pictures share: intervals one below the other, smooth densities on their base lines, bands."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from suffice.plots.style import POSTERIOR, QUIET, TEXT, only_across, shortened_label

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from suffice.typing import Cells, Floats

HEIGHT = 0.27
"""Inches of an interval's row."""
TALL = 0.62
"""Inches of a density's."""
_LEAST_STEM = 0.002
"""Probability of a value from which it is drawn."""
_HIGHEST = 1.15
"""Times the highest posterior density up to which a prior is drawn."""
_BEYOND = 0.45
"""Lengths of an interval that its density is shown for on either side."""
_ROOM = 0.03
"""Share of a logarithmic axis beyond what is drawn: few of its marks stand in the middle."""
_RING: dict[str, Any] = {"markersize": 4.6, "markerfacecolor": "white", "markeredgewidth": 1.3}
TICK, _LEVEL = "|", "_"
_TICK: dict[str, Any] = {"markersize": 9.0, "markeredgewidth": 1.7}
"""Across an interval, of which it hides nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """Intervals of one kind, a row each.

    Attributes
    ----------
    lower, middle, upper : ndarray of shape (n_rows,), float64
    first, third : ndarray of shape (n_rows,), float64, or None
        The ends of middle halves.
    colour : str
    label : str
        What they are, in a legend; none where it is empty.
    marker : str
        Matplotlib's, of the middle: a tick, or of points without intervals another.
    is_dashed : bool
        Whether the line of an interval is dashed: what takes the noise for data.
    """

    lower: Floats
    middle: Floats
    upper: Floats
    first: Floats | None = None
    third: Floats | None = None
    colour: str = POSTERIOR
    label: str = ""
    marker: str = TICK
    is_dashed: bool = False

    def take(self, rows: Cells) -> Self:
        """Return some of the rows."""
        return dataclasses.replace(self, **_taken(self, rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """Densities of one kind, a row each.

    Attributes
    ----------
    points, density : ndarray of shape (n_rows, n_points), float64
    colour, line : str
        And whether lines are dashed.
    is_filled : bool
    label : str
    """

    points: Floats
    density: Floats
    colour: str
    line: str = "-"
    is_filled: bool = False
    label: str = ""

    def take(self, rows: Cells) -> Self:
        """Return some of the rows."""
        return dataclasses.replace(self, **_taken(self, rows))


def _taken(kind: Intervals | Curves, rows: Cells) -> dict[str, Any]:
    values = {field.name: getattr(kind, field.name) for field in dataclasses.fields(kind)}
    return {name: value[rows] for name, value in values.items() if isinstance(value, np.ndarray)}


def draw_intervals(axis: Axes, labels: Sequence[str], kinds: Sequence[Intervals]) -> None:
    """Draw kinds of intervals in rows, the first row on top, kinds one below the other within a row."""
    middle = np.arange(float(len(labels)))
    apart = min(0.26, 0.6 / max(len(kinds), 1))
    for number, kind in enumerate(kinds):
        at = middle + apart * (number - (len(kinds) - 1) / 2.0)
        known = np.isfinite(kind.lower) & np.isfinite(kind.upper)
        style: dict[str, Any] = {"color": kind.colour, "linestyle": "--" if kind.is_dashed else "-"}
        axis.hlines(at[known], kind.lower[known], kind.upper[known], linewidth=1.3, **style)
        if kind.first is not None and kind.third is not None:
            axis.hlines(at[known], kind.first[known], kind.third[known], color=kind.colour, linewidth=3.6)
        axis.plot(
            kind.middle[known],
            at[known],
            kind.marker,
            color=kind.colour,
            **(_TICK if kind.marker == TICK else _RING),
            label=kind.label or None,
        )
    _name_rows(axis, labels)
    axis.set_ylim(len(labels) - 0.4, -0.6)
    _legend(axis, [kind.label for kind in kinds])


def draw_points(axis: Axes, labels: Sequence[str], values: Floats) -> None:
    """Draw points in rows, (n_rows, n_points), the first row on top."""
    at = np.repeat(np.arange(float(len(labels))), values.shape[1])
    axis.plot(values.ravel(), at, "o", color=POSTERIOR, **_RING)
    _name_rows(axis, labels)
    axis.set_ylim(len(labels) - 0.4, -0.6)


def draw_curves(axis: Axes, labels: Sequence[str], kinds: Sequence[Curves], below: Intervals) -> None:
    """Draw densities on the base lines of rows, each row to its own height, and intervals below them."""
    rows = np.arange(float(len(labels)))
    highest = np.max([np.max(kind.density, axis=1) for kind in kinds if kind.line != ":"], axis=0)
    for kind in kinds:
        share = kind.density / np.where(highest > 0.0, highest, 1.0)[:, None]
        share[share > _HIGHEST] = np.nan  # a prior may leave the picture, and is not drawn as flat there
        for row in rows.astype(int):
            heights = row - 0.72 * share[row]
            if kind.is_filled:
                axis.fill_between(
                    kind.points[row], heights, row, color=kind.colour, alpha=0.13, linewidth=0.0
                )
                inside = (kind.points[row] >= below.lower[row]) & (kind.points[row] <= below.upper[row])
                axis.fill_between(
                    kind.points[row], heights, row, where=inside, color=kind.colour, alpha=0.2, linewidth=0.0
                )
            axis.plot(
                kind.points[row],
                heights,
                color=kind.colour,
                linestyle=kind.line,
                linewidth=1.5,
                label=kind.label if row == 0 else None,
            )
    axis.hlines(
        rows, 0.0, 1.0, color="#c9d0d7", linewidth=0.8, transform=axis.get_yaxis_transform(), zorder=1
    )
    at = rows + 0.1
    axis.hlines(at, below.lower, below.upper, color=below.colour, linewidth=1.3)
    if below.first is not None and below.third is not None:
        axis.hlines(at, below.first, below.third, color=below.colour, linewidth=3.6)
    axis.plot(below.middle, at, TICK, color=below.colour, **_TICK)
    _name_rows(axis, labels)
    axis.set_ylim(len(labels) - 0.72, -0.95)
    low, high = _seen(kinds, below, in_logs=axis.get_xscale() == "log")
    axis.set_xlim(low, high)
    _legend(axis, [kind.label for kind in kinds])


def draw_point_masses(axis: Axes, masses: Mapping[float, Floats], colour: str) -> None:
    """Draw a stem at every value with a probability of its own, as high as a row where that is 1.

    Parameters
    ----------
    axis : matplotlib.axes.Axes
    masses : mapping of float to ndarray of shape (n_rows,), float64
    colour : str
    """
    for value, chances in masses.items():
        rows = np.flatnonzero(chances >= _LEAST_STEM)
        tops = rows - 0.72 * chances[rows]
        axis.vlines(np.full(len(rows), value), tops, rows, color=colour, linewidth=1.6)
        axis.plot(np.full(len(rows), value), tops, "o", color=colour, markersize=4.0)


def put_in_logs(axes: Axes, *, upwards: bool) -> None:
    """Make the axis of numbers logarithmic, with powers of ten that are written as numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator  # the plot extra

    (axes.set_yscale if upwards else axes.set_xscale)("log")
    axis = axes.yaxis if upwards else axes.xaxis
    axis.set_major_locator(LogLocator(numticks=8))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(_grouped))


def draw_ranked(axis: Axes, kinds: Sequence[Intervals], label: str) -> None:
    """Draw a band of intervals, in the order of the medians of the first kind."""
    first = kinds[0]
    order = np.argsort(first.middle, kind="stable")
    rank = np.arange(1, len(order) + 1)
    ends = first.lower[order], first.upper[order]
    axis.fill_between(rank, *ends, color=first.colour, alpha=0.25, linewidth=0.0, step="mid")
    axis.plot(rank, first.middle[order], color=first.colour, linewidth=1.4, label=first.label or None)
    for kind in kinds[1:]:
        style: dict[str, Any] = {"color": kind.colour, "label": kind.label or None}
        axis.plot(rank, kind.middle[order], ".", markersize=1.6, zorder=1, **style)
    axis.set_xlabel("cells, in the order of their middles")
    axis.set_ylabel(label)
    if axis.get_yscale() != "log":
        axis.yaxis.set_major_formatter(_grouped)
    axis.set_xlim(1, max(len(order), 2))
    _legend(axis, [kind.label for kind in kinds])


def draw_series(axis: Axes, keys: Sequence[str], kinds: Sequence[Intervals]) -> None:
    """Draw intervals over ordered keys, a line each kind."""
    places = np.arange(float(len(keys)))
    for number, kind in enumerate(kinds):
        at = places + 0.07 * (number - (len(kinds) - 1) / 2.0)
        axis.vlines(at, kind.lower, kind.upper, color=kind.colour, linewidth=1.6)
        axis.plot(
            at,
            kind.middle,
            f"{_LEVEL}-",
            color=kind.colour,
            linewidth=0.9,
            **_TICK | {"markersize": 7.0},
            label=kind.label or None,
        )
    axis.yaxis.set_major_formatter(_grouped)
    every = -(-len(keys) // 12)
    axis.set_xticks(places[::every], [shortened_label(key, 14) for key in keys[::every]])
    axis.grid(visible=False, axis="x")
    _legend(axis, [kind.label for kind in kinds])


def _grouped(tick: float, _: float) -> str:
    """Write a number of an axis with its thousands set apart."""
    return f"{tick:,.10g}"


def _seen(kinds: Sequence[Curves], below: Intervals, *, in_logs: bool) -> tuple[float, float]:
    """The numbers that are shown: intervals, and some of the tails."""
    known = np.isfinite(below.lower) & np.isfinite(below.upper)
    lower, upper = below.lower[known], below.upper[known]
    shown = [kind.points for kind in kinds if kind.line != ":"]
    whole = min(float(points.min()) for points in shown), max(float(points.max()) for points in shown)
    if not len(lower):
        return whole
    if in_logs:
        least, most, share = float(lower.min()), float(upper.max()), 0.35 if len(below.middle) == 1 else 0.14
        beyond, room = (most / least) ** share, (whole[1] / whole[0]) ** _ROOM
        return max(whole[0] / room, least / beyond), min(whole[1] * room, most * beyond)
    reach = _BEYOND * np.where(upper > lower, upper - lower, 1.0)  # of each row: no curve is cut off
    return max(whole[0], float(np.min(lower - reach))), min(whole[1], float(np.max(upper + reach)))


def _name_rows(axis: Axes, labels: Sequence[str]) -> None:
    only_across(axis)
    axis.set_yticks(np.arange(len(labels)), [shortened_label(label) for label in labels], color=TEXT)


_ACROSS, _MOST_COLUMNS, _MARK = 90, 4, 8
"""Letters that fit across a figure, and columns of a legend; letters that a mark takes."""


def legend_rows(labels: Sequence[str]) -> int:
    """How many rows the legend of a picture takes, in as many columns as fit across."""
    return -(-len(labels) // _columns(labels)) if len(labels) > 1 else 0


def _columns(labels: Sequence[str]) -> int:
    return max(1, min(_MOST_COLUMNS, _ACROSS // (max(map(len, labels)) + _MARK)))


def _legend(axis: Axes, labels: Sequence[str]) -> None:
    shown = [label for label in labels if label]
    if len(shown) > 1:
        axis.legend(
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            ncols=_columns(shown),
            borderaxespad=0.2,
            labelcolor=QUIET,
        )
