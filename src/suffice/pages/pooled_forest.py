"""Cells that borrow strength as dot plots: each alone beside itself pooled, and where its population is.

A plot is of one population of one parameter, and of one category; cells that walk stay in their order.

Rows may be of a file that others wrote: numbers are looked at, texts are cut before; templates escape them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from suffice.pages.drawing import DrawnInterval, Scale, common_scale, interval_text, row_axis
from suffice.pages.rendering import markup
from suffice.pipeline.ask.borrowing.pool import MEANS
from suffice.pipeline.ask.borrowing.pooled_conflict import OUTSIDE
from suffice.pipeline.ask.borrowing.side_by_side import ALONE
from suffice.pipeline.ask.borrowing.walk import WINDOW

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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
    """The cells of one population, by their pooled means, the greatest first; those of a walk in their order.

    Attributes
    ----------
    name : str
        The keys that its cells have in common; empty where there is one population.
    heading : str
        What cells are called by: the names of group columns.
    axis : Markup
    rows : tuple of PairedRow
    n_rows : int
        How many cells there are; those that stand in `rows` are evenly spaced by rank, or in their order.
    centre : str
        The population's location, as the parameter; empty where it is not known.
    is_identified : bool
        Whether the cells tell the spread; each alone is shown first where they do not.
    is_ordered : bool
        Whether cells stand in the order in which they walk.
    """

    name: str
    heading: str
    axis: Markup
    rows: tuple[PairedRow, ...]
    n_rows: int
    centre: str
    is_identified: bool
    is_ordered: bool = False


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


def forests_of_parameters(
    rows: Sequence[Mapping[str, Any]],
    pools: Sequence[Mapping[str, Any]],
    *,
    axis: Callable[[str], str],
    heading: str,
    names: Sequence[str],
    digits: Callable[[str], int | None] = lambda _: None,
    most: int = MOST_ROWS,
) -> list[PairedForest]:
    """Return pictures of every parameter, each on a scale of its own.

    Parameters
    ----------
    axis, digits : callable
        Take a parameter, and return what its numbers are and how many digits they have after the point.
    rows, pools, heading, names, most
        As :func:`paired_forests` takes them.
    """
    parameters = list(dict.fromkeys(str(row.get("parameter", "")) for row in rows))
    forests: list[PairedForest] = []
    for parameter in parameters:
        mine = [place for place, row in enumerate(rows) if str(row.get("parameter", "")) == parameter]
        made = paired_forests(
            [rows[place] for place in mine],
            _pools_of(pools, is_first=parameter == parameters[0]),
            axis=axis(parameter),
            heading=heading,
            names=[names[place] for place in mine],
            digits=digits(parameter),
            most=most,
        )
        if len(parameters) > 1:
            called = parameter.replace("_", " ")
            made = [replace(each, name=f"{called}, {each.name}" if each.name else called) for each in made]
        forests += made
    return forests


def _pools_of(pools: Sequence[Mapping[str, Any]], *, is_first: bool) -> list[Mapping[str, Any]]:
    """Return the populations of the first parameter, or of the others.

    Of means and log standard deviations the second have a place that is on no axis of variances.
    """
    if not any(pool.get("parameter") for pool in pools):
        return list(pools)
    if is_first:
        return [pool for pool in pools if pool.get("parameter") == MEANS]
    return [{**pool, "centre": None} for pool in pools if pool.get("parameter") != MEANS]


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
    is_ordered = "step" in pool
    ordered = _in_order(drawn) if is_ordered else sorted(drawn, key=lambda each: -each[2][1].middle)
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
        "is_ordered": is_ordered,
    }


def _in_order(drawn: Sequence[_Drawn]) -> list[_Drawn]:
    """Return cells that walk in their order; over windows, those of one series below each other."""
    columns = [column for column in drawn[0][1] if column not in _NO_KEYS and column != WINDOW]
    seen: dict[tuple[Any, ...], int] = {}
    places = [seen.setdefault(tuple(row[column] for column in columns), len(seen)) for _, row, _ in drawn]
    if WINDOW not in drawn[0][1]:
        return list(drawn)
    order = sorted(range(len(drawn)), key=places.__getitem__)
    return [drawn[place] for place in order]


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
