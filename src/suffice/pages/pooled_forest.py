"""Cells that borrow strength as a dot plot: each alone beside itself pooled, and where its population is.

Rows may be of a file that others wrote: numbers are looked at, texts are cut before; templates escape them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suffice.pages.drawing import DrawnInterval, Scale, common_scale, interval_text, row_axis
from suffice.pages.rendering import markup
from suffice.pipeline.ask.borrowing.pooled_conflict import OUTSIDE
from suffice.pipeline.ask.borrowing.side_by_side import ALONE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markupsafe import Markup

MOST_ROWS = 100
"""Cells of one picture; of more, these are evenly spaced by rank."""
_MOST_POOLS = 40
_LONGEST_KEYS = 200
_HEIGHT, _UPPER, _LOWER = 26, 8, 18
_NUMBERS = ("mean", "sd", "lower", "upper")
_NO_KEYS = frozenset(
    {"parameter", "own_share", "outside", *_NUMBERS, *(f"{ALONE}{name}" for name in _NUMBERS)}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRow:
    """One cell: its name, its picture, and its numbers alone and pooled."""

    label: str
    chart: Markup
    pooled: tuple[str, str]
    alone: tuple[str, str]
    own_share: str
    is_outside: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedForest:
    """The cells of one population, by their pooled means, the greatest first.

    Attributes
    ----------
    name : str
        The keys that its cells have in common; empty where there is one population.
    heading : str
        What cells are called by: the names of group columns.
    axis : Markup
    rows : tuple of PairedRow
    n_rows : int
        How many cells there are; those that stand in `rows` are evenly spaced by rank.
    centre : str
        The population's location, as the parameter; empty where it is not known.
    is_identified : bool
        Whether the cells tell the spread; each alone is shown first where they do not.
    """

    name: str
    heading: str
    axis: Markup
    rows: tuple[PairedRow, ...]
    n_rows: int
    centre: str
    is_identified: bool


def paired_forests(
    rows: Sequence[Mapping[str, Any]],
    pools: Sequence[Mapping[str, Any]],
    *,
    axis: str,
    heading: str,
    names: Sequence[str],
    digits: int | None = None,
    most: int = MOST_ROWS,
) -> list[PairedForest]:
    """Return a picture of the cells of every population, on one scale.

    Parameters
    ----------
    rows : sequence of mapping
        As ``beside_alone`` returns them; cells with a number that is not finite are left out.
    pools : sequence of mapping
        As ``populations`` returns them.
    axis : str
        What the numbers are.
    heading : str
        What cells are called by.
    names : sequence of str
        What the cell of each row is called.
    digits : int, optional
        After the point.
    most : int
        Cells that a picture shows.
    """
    pairs = [(name, row, _pair(row)) for name, row in zip(names, rows, strict=True)]
    drawn = [(name, row, pair) for name, row, pair in pairs if pair is not None]
    if not drawn:
        return []
    scale = common_scale([interval for _, _, pair in drawn for interval in pair])
    forests = []
    for pool in pools[:_MOST_POOLS]:
        keys = {column: pool[column] for column in pool if column in rows[0] and column not in _NO_KEYS}
        mine = [each for each in drawn if all(each[1][column] == key for column, key in keys.items())]
        if mine:
            name = ", ".join(f"{column} {key}" for column, key in keys.items())[:_LONGEST_KEYS]
            forests.append(
                PairedForest(
                    name=name,
                    heading=heading,
                    axis=row_axis(scale, axis),
                    n_rows=len(mine),
                    **_drawn_rows(mine, pool, scale, digits, most),
                )
            )
    return forests


def cell_names(rows: Sequence[Mapping[str, Any]]) -> tuple[str, list[str]]:
    """Return what keys are of, and what each cell is called by its keys."""
    columns = [column for column in rows[0] if column not in _NO_KEYS]
    return ", ".join(columns) or "cell", [
        ", ".join(str(row[column]) for column in columns) or "all" for row in rows
    ]


_Drawn = tuple[str, "Mapping[str, Any]", tuple[DrawnInterval, DrawnInterval]]


def _drawn_rows(
    drawn: Sequence[_Drawn], pool: Mapping[str, Any], scale: Scale, digits: int | None, most: int
) -> dict[str, Any]:
    """Return the rows of one population, and what is known of it."""
    ordered = sorted(drawn, key=lambda each: -each[2][1].middle)
    count = min(len(ordered), most)
    # The greatest, the least, and evenly spaced ones between.
    places = [round(place * (len(ordered) - 1) / max(count - 1, 1)) for place in range(count)]
    centre = pool.get("centre")
    has_centre = isinstance(centre, int | float) and math.isfinite(centre)
    return {
        "rows": tuple(
            _row(*ordered[place], scale, centre if has_centre else None, digits) for place in places
        ),
        "centre": interval_text(float(centre), ordered[0][2][1], digits) if has_centre else "",  # type: ignore[arg-type]
        "is_identified": pool.get("identified") is True,
    }


def _row(
    label: str,
    row: Mapping[str, Any],
    pair: tuple[DrawnInterval, DrawnInterval],
    scale: Scale,
    centre: float | None,
    digits: int | None,
) -> PairedRow:
    alone, pooled = pair
    own_share, outside = (_share(row.get(name)) for name in ("own_share", "outside"))
    return PairedRow(
        label=label,
        chart=_chart(alone, pooled, scale, centre),
        pooled=_texts(pooled, digits),
        alone=_texts(alone, digits),
        own_share="" if own_share is None else f"{100 * own_share:.0f} %",
        is_outside=outside is not None and outside > OUTSIDE,
    )


def _texts(interval: DrawnInterval, digits: int | None) -> tuple[str, str]:
    low, middle, high = (
        interval_text(value, interval, digits) for value in (interval.low, interval.middle, interval.high)
    )
    return middle, f"{low} to {high}"


def _pair(row: Mapping[str, Any]) -> tuple[DrawnInterval, DrawnInterval] | None:
    alone, pooled = ([row.get(f"{of}{name}") for name in ("lower", "mean", "upper")] for of in (ALONE, ""))
    if not all(isinstance(mark, int | float) and math.isfinite(mark) for mark in (*alone, *pooled)):
        return None
    return _drawn(alone), _drawn(pooled)


def _drawn(marks: Sequence[Any]) -> DrawnInterval:
    low, middle, high = map(float, marks)
    return DrawnInterval(low=low, lower_half=middle, middle=middle, upper_half=middle, high=high)


def _share(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and 0.0 <= value <= 1.0 else None


def _chart(alone: DrawnInterval, pooled: DrawnInterval, scale: Scale, centre: float | None) -> Markup:
    """Return both intervals of a cell; hidden from readers of text, who have the numbers."""

    def at(value: float) -> str:
        return f"{100 * scale.at(value):.2f}%"

    def line(kind: str, low: float, high: float, top: float, bottom: float) -> str:
        return f'<line class="{kind}" x1="{at(low)}" x2="{at(high)}" y1="{top}" y2="{bottom}"/>'

    parts = [line("grid", tick, tick, 0, _HEIGHT) for tick in scale.ticks]
    if centre is not None:
        parts.append(line("centre", centre, centre, 0, _HEIGHT))
    # The way that a cell is drawn to the others.
    parts.append(
        f'<line class="drawn of-both" x1="{at(alone.middle)}" x2="{at(pooled.middle)}" y1="{_UPPER}" '
        f'y2="{_LOWER}"/>'
    )
    parts.append(
        f'<g class="of-alone">{line("interval", alone.low, alone.high, _UPPER, _UPPER)}'
        f'<circle class="dot" cx="{at(alone.middle)}" cy="{_UPPER}" r="3.4"/></g>'
        f'<g class="of-pooled">{line("interval", pooled.low, pooled.high, _LOWER, _LOWER)}'
        f'<circle class="dot" cx="{at(pooled.middle)}" cy="{_LOWER}" r="4"/></g>'
    )
    return markup(f'<svg class="chart" height="{_HEIGHT}" aria-hidden="true">{"".join(parts)}</svg>')
