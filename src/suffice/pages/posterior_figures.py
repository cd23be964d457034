"""Figures of posteriors as static SVG: densities of a few cells, a forest of many, a band of very many.

Every function takes numbers and labels and returns SVG text without any colour, script or style: classes say
what a mark is (``noise-aware``, ``plug-in``, ``prior``, ``series-1`` to ``series-6``), ``figures.css`` how
it looks, in light, in dark and on paper. Labels are hostile text, and escaped here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pages import drawing
from suffice.pages.column_figures import column_figure
from suffice.pipeline.ask.posterior.curves import (
    curve_points,
    in_words,
    on_shared_axes,
    prior_points,
    smoothing_of,
    spans_decades,
)
from suffice.pipeline.ask.posterior.shown_columns import MOST_CELLS, cell_names, shows_column

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.typing import Floats

LEGEND = 30.0
"""Height of a legend."""


def interval(quantiles: Sequence[float], scale: drawing.Scale, y: float, kind: str) -> str:
    """Draw an interval, its middle half and its median; nothing of what is not finite."""
    if not all(math.isfinite(value) for value in quantiles):
        return ""
    lower, first, middle, third, upper = (scale.at(float(value)) for value in quantiles)
    return (
        drawing.element("line", x1=lower, x2=upper, y1=y, y2=y, class_=f"interval {kind}")
        + drawing.element("line", x1=first, x2=third, y1=y, y2=y, class_=f"half {kind}")
        + drawing.element("line", x1=middle, x2=middle, y1=y - 6.5, y2=y + 6.5, class_=f"median {kind}")
    )


def legend(entries: Iterable[tuple[str, str]]) -> str:
    """Draw what kinds of lines are called, side by side."""
    parts, x = [], 0.0
    for class_, label in entries:
        parts.append(drawing.element("line", x1=x, x2=x + 22.0, y1=12.0, y2=12.0, class_=f"line {class_}"))
        parts.append(drawing.text(x + 29.0, 16.0, label, "legend", longest=24))
        x += 29.0 + drawing.CHARACTER * min(drawing.columns_of(label), 24) + 24.0
    return "".join(parts)


def beside(scale: drawing.Scale) -> float:
    """Room for the numbers on the left."""
    return drawing.label_width(scale.labels(), 14) + 14.0


def extent(values: Sequence[float]) -> tuple[float, float]:
    """Return the least and the greatest of what is finite; 0 and 1 where nothing is."""
    known = [value for value in values if math.isfinite(value)]
    return (min(known), max(known)) if known else (0.0, 1.0)


def many(number: int, singular: str, plural: str) -> str:
    """Return a number with its noun."""
    return f"{number} {singular if number == 1 else plural}"


NOISE_AWARE, PLUG_IN, PRIOR = "noise-aware", "plug-in", "prior"
_LONGEST = 34
_NUMBERS_BELOW = 46.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One density.

    Attributes
    ----------
    kind : {"noise-aware", "plug-in", "prior"}
    points, density : ndarray of shape (n_points,), float64
        Ascending values of the parameter, and the density there; of a logarithmic axis that of the logarithm.
    """

    kind: str
    points: Floats
    density: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What is known of one cell, a line of a figure.

    Attributes
    ----------
    label : str
        The cell's; may be empty where it is the only one.
    quantiles : tuple of float
        Lower end, lower quartile, median, upper quartile and upper end of intervals.
    curves : tuple of Curve
        Of a figure of densities, in the order in which they are drawn.
    """

    label: str
    quantiles: tuple[float, float, float, float, float]
    curves: tuple[Curve, ...] = ()


def densities(
    rows: Sequence[Row], *, title: str, axis: str, mass: float, heading: str = "", in_logs: bool = False
) -> str:
    """Return smooth densities, a row a cell, over their intervals; each is drawn to its own height.

    Parameters
    ----------
    rows : sequence of Row
        At least one, with curves.
    title : str
    axis : str
        What the numbers are, with their unit.
    mass : float
        Of the intervals.
    heading : str
        What the labels are: the names of the group columns.
    in_logs : bool
        Whether the axis is logarithmic; all that is shown is then above 0.
    """
    alone = len(rows) == 1
    tall, each = (150.0, 190.0) if alone else (44.0, 58.0)
    left = 8.0 if alone else drawing.label_width([heading, *(row.label for row in rows)], _LONGEST) + 14.0
    over = drawing.Scale.logarithmic if in_logs else drawing.Scale.over
    scale = over(*_seen(rows, in_logs=in_logs), left, drawing.WIDTH - 12.0)
    top = LEGEND + (6.0 if alone else 22.0)
    bottom = top + each * len(rows)
    kinds = [kind for kind in (NOISE_AWARE, PLUG_IN, PRIOR) if any(_has(row, kind) for row in rows)]
    parts = [legend([(kind, kind) for kind in kinds]), drawing.numbers_below(scale, top, bottom, axis)]
    if not alone:
        parts.append(drawing.text(left - 14.0, top - 2.0, heading, "axis end", longest=_LONGEST))
    for number, row in enumerate(rows):
        base = top + each * (number + 1) - 12.0
        parts.append(_ridge(row, scale, base, tall))
        if not alone:
            parts.append(drawing.text(left - 14.0, base - 4.0, row.label, "label end", longest=_LONGEST))
    description = (
        f"{many(len(rows), 'density', 'densities')} of {axis}, each with its median, its middle half and "
        f"its {100 * mass:g} % interval; the table has the numbers."
    )
    return drawing.figure("densities", bottom + _NUMBERS_BELOW, title, description, *parts)


def forest(
    rows: Sequence[Row],
    *,
    title: str,
    axis: str,
    mass: float,
    kind: str = NOISE_AWARE,
    heading: str = "",
    in_logs: bool = False,
) -> str:
    """Return medians with middle halves and intervals, a line a cell; parameters as ``densities``."""
    left = drawing.label_width([heading, *(row.label for row in rows)], _LONGEST) + 16.0
    known = [value for row in rows for value in row.quantiles if math.isfinite(value)]
    places = left, drawing.WIDTH - 12.0
    scale = (
        drawing.Scale.logarithmic(*extent(known), *places)
        if in_logs
        else drawing.Scale.over(*drawing.rounded_out(*extent(known)), *places)
    )
    top, each = 26.0 if heading else 10.0, 24.0
    bottom = top + each * len(rows) + 4.0
    parts = [drawing.numbers_below(scale, top, bottom, axis)]
    if heading:
        parts.append(drawing.text(left - 16.0, top - 10.0, heading, "axis end", longest=_LONGEST))
    for number, row in enumerate(rows):
        y = top + each * number + each / 2.0 + 2.0
        parts.append(drawing.text(left - 16.0, y + 4.0, row.label, "label end", longest=_LONGEST))
        parts.append(interval(row.quantiles, scale, y, kind))
    description = (
        f"{many(len(rows), 'interval', 'intervals')} of {100 * mass:g} % for {axis}, with medians and "
        "middle halves; the table has the numbers."
    )
    return drawing.figure("forest", bottom + _NUMBERS_BELOW, title, description, *parts)


def ranked(
    lower: Floats,
    middle: Floats,
    upper: Floats,
    *,
    title: str,
    axis: str,
    mass: float,
    cells: str = "cells",
    middles: str = "medians",
    in_logs: bool = False,
) -> str:
    """Return intervals of very many cells in the order of their medians, as a band.

    Parameters
    ----------
    lower, middle, upper : ndarray of shape (n_cells,), float64
        Ends and medians; cells with one that is not finite are left out.
    title, axis, mass, in_logs
        As in ``densities``.
    cells : str
        What is ranked, in the plural.
    middles : str
        What they are in the order of, in the plural.
    """
    known = np.isfinite(lower) & np.isfinite(middle) & np.isfinite(upper)
    order = np.flatnonzero(known)[np.argsort(middle[known], kind="stable")]
    ends = extent([*lower[order].tolist(), *upper[order].tolist()])
    scale = (
        drawing.Scale.logarithmic(*ends, 300.0, 34.0, about=5.0)
        if in_logs
        else drawing.Scale.over(*drawing.rounded_out(*ends), 300.0, 34.0, about=5.0)
    )
    left = beside(scale)
    across = drawing.Scale.over(1.0, float(max(len(order), 2)), left, drawing.WIDTH - 12.0)
    groups = np.array_split(order, min(len(order), 600)) if len(order) else []
    ranks = np.cumsum([len(group) for group in groups]) - [len(group) / 2.0 - 0.5 for group in groups]
    xs = [across.at(float(rank)) for rank in ranks]
    up = [scale.at(float(np.max(upper[group]))) for group in groups]
    down = [scale.at(float(np.min(lower[group]))) for group in groups]
    centre = [scale.at(float(np.median(middle[group]))) for group in groups]
    band = [*zip(xs, up, strict=True), *zip(xs[::-1], down[::-1], strict=True)]
    ticks = [tick for tick in across.ticks if tick >= 1.0]
    marks = (
        drawing.element("path", d=drawing.path(band, closed=True), class_="band"),
        drawing.element("path", d=drawing.path(zip(xs, centre, strict=True)), class_="line noise-aware"),
    )
    parts = [
        drawing.numbers_beside(scale, left, drawing.WIDTH - 12.0, axis),
        *(marks if groups else ()),
        *(
            drawing.text(across.at(tick), 318.0, written, "tick middle")
            for tick, written in zip(ticks, drawing.written_alike(ticks), strict=True)
        ),
        drawing.text(
            (left + drawing.WIDTH) / 2.0, 338.0, f"{cells}, in the order of their {middles}", "axis middle"
        ),
    ]
    description = (
        f"{middles.capitalize()} of {axis} of {len(order)} {cells}, ascending, within their "
        f"{100 * mass:g} % intervals"
        + (
            f"; each point of the band spans {len(groups[0])} of them."
            if 0 < len(groups) < len(order)
            else "."
        )
    )
    return drawing.figure("ranked", 346.0, title, description, *parts)


def _seen(rows: Sequence[Row], *, in_logs: bool) -> tuple[float, float]:
    """Return the interval that densities are shown over: of their intervals, and some of their tails."""
    curves = [[curve.points[[0, -1]] for curve in row.curves if curve.kind != PRIOR] for row in rows]
    known = [value for row in rows for value in row.quantiles if math.isfinite(value)]
    whole = extent([float(end) for ends in curves for points in ends for end in points])
    if not known:
        return whole
    share = 0.35 if len(rows) == 1 else 0.12
    if in_logs:
        beyond, room = (max(known) / min(known)) ** share, (whole[1] / whole[0]) ** 0.03
        return max(whole[0] / room, min(known) / beyond), min(whole[1] * room, max(known) * beyond)
    reach = share * (max(known) - min(known))
    return max(whole[0], min(known) - reach), min(whole[1], max(known) + reach)


def _ridge(row: Row, scale: drawing.Scale, base: float, tall: float) -> str:
    """Draw the densities of a row on its base line, and its interval below."""
    shown = [curve for curve in row.curves if curve.kind != PRIOR] or list(row.curves)
    highest = max(float(np.max(curve.density[np.isfinite(curve.density)], initial=0.0)) for curve in shown)
    lower, _, _, _, upper = row.quantiles
    strongest = next((kind for kind in (NOISE_AWARE, PLUG_IN) if _has(row, kind)), NOISE_AWARE)
    parts = [drawing.element("line", x1=scale.start, x2=scale.stop, y1=base, y2=base, class_="base")]
    for curve in row.curves:
        inside = (curve.points >= scale.low) & (curve.points <= scale.high) & np.isfinite(curve.density)
        xs, ys = curve.points[inside], curve.density[inside] / (highest or 1.0)
        # A prior may be higher than the posterior, and then leaves the picture.
        points = [(scale.at(x), base - tall * y) for x, y in zip(xs, ys, strict=True) if y <= 1.15]
        if len(points) < 2:
            continue
        if curve.kind == strongest:
            closed = [(points[0][0], base), *points, (points[-1][0], base)]
            parts.append(
                drawing.element("path", d=drawing.path(closed, closed=True), class_=f"area {strongest}")
            )
            within = [point for point, x in zip(points, xs, strict=True) if lower <= x <= upper]
            if within:
                closed = [(within[0][0], base), *within, (within[-1][0], base)]
                parts.append(
                    drawing.element("path", d=drawing.path(closed, closed=True), class_=f"mass {strongest}")
                )
        parts.append(drawing.element("path", d=drawing.path(points), class_=f"line {curve.kind}"))
    return drawing.element("g", *parts, interval(row.quantiles, scale, base + 6.0, strongest), class_="row")


def _has(row: Row, kind: str) -> bool:
    return any(curve.kind == kind for curve in row.curves)


MOST_DENSITIES = 12
MOST_INTERVALS = 60
_POINTS = 161


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterFigure:
    """A figure of one parameter, and what it shows in words.

    Attributes
    ----------
    heading : str
        The parameter, with what it is of.
    svg : str
    caption : str
        How it is to be read.
    is_smooth : bool
        Whether it shows densities.
    """

    heading: str
    svg: str
    caption: str
    is_smooth: bool = False


def parameter_figure(
    posterior: Posterior,
    parameter: str,
    *,
    mass: float,
    interval: str | None = None,
    draws: int,
    rng: np.random.Generator,
    most_intervals: int = MOST_INTERVALS,
) -> ParameterFigure:
    """Return the figure of one parameter of every cell, category or component.

    Smooth densities for up to ``MOST_DENSITIES`` of them where the law is known, medians and intervals
    otherwise, and beyond `most_intervals` a band in the order of the medians.

    Parameters
    ----------
    posterior : Posterior
    parameter : str
    mass : float
        Of the intervals.
    interval : {"central", "highest-density"}, optional
        Their kind, the posterior's default otherwise.
    draws, rng
        Of quantiles, where they rest on draws.
    most_intervals : int
    """
    if shows_column(posterior) and posterior.n_groups <= MOST_CELLS:
        return _of_column(posterior, mass=mass, draws=draws, rng=rng)
    marks = posterior.five_numbers(parameter, mass, interval=interval, draws=draws, rng=rng)
    in_logs = spans_decades(posterior, parameter, marks)
    axis = in_words(posterior, parameter) + (" (logarithmic axis)" if in_logs else "")
    flat = marks.reshape(-1, 5)
    labels = posterior.entry_names(parameter)
    kind = NOISE_AWARE if posterior.method == NOISE_AWARE else PLUG_IN
    heading = ", ".join(posterior.about.groups(posterior.groups))
    about = f"{axis[0].upper()}{axis[1:]}"
    ends_text = f"{100 * mass:g} % {posterior.interval_kind(interval)} interval"
    if len(labels) > most_intervals:
        svg = ranked(
            flat[:, 0],
            flat[:, 2],
            flat[:, 4],
            title=about,
            axis=axis,
            mass=mass,
            cells=_cells(posterior),
            in_logs=in_logs,
        )
        return ParameterFigure(
            heading=about,
            svg=svg,
            caption=f"Medians in ascending order within their {ends_text}s; keys stand in the table.",
        )
    curves = (
        _curves(posterior, parameter, kind, draws, rng, in_logs=in_logs)
        if len(labels) <= MOST_DENSITIES
        else None
    )
    terms: dict[str, Any] = {"title": about, "mass": mass, "heading": heading, "in_logs": in_logs}
    parts = [
        (": ".join(filter(None, (axis, of))), places.tolist())
        for of, places in on_shared_axes(posterior, parameter)
    ]
    if curves is None:
        rows = [
            Row(label=label, quantiles=_five(quantiles))
            for label, quantiles in zip(labels, flat, strict=True)
        ]
        svg = "".join(
            forest([rows[place] for place in places], axis=words, kind=kind, **terms)
            for words, places in parts
        )
        return ParameterFigure(
            heading=about, svg=svg, caption=f"Medians, middle halves (thick) and {ends_text}s (thin)."
        )
    rows = [
        Row(label=label, quantiles=_five(quantiles), curves=entry_curves)
        for label, quantiles, entry_curves in zip(labels, flat, curves, strict=True)
    ]
    smoothed = f", {said}" if (said := smoothing_of(posterior)) else ""
    svg = "".join(
        densities([rows[place] for place in places], axis=words, **terms) for words, places in parts
    )
    densities_of = "Densities of the logarithm" if in_logs else "Densities"
    return ParameterFigure(
        heading=about,
        svg=svg,
        caption=(
            f"{densities_of}, with the {ends_text} darker; below each its median, middle half and "
            f"{ends_text}. "
            f"Curves are the posterior's own, not of draws{smoothed}; each is drawn to its own height."
        ),
        is_smooth=True,
    )


def _of_column(posterior: Posterior, *, mass: float, draws: int, rng: np.random.Generator) -> ParameterFigure:
    """Return the figure of the column behind a histogram."""
    law = posterior.column(draws=draws, rng=rng)
    unit = posterior.about.words(posterior.statistic).unit
    axis = ", ".join(filter(None, (posterior.about.label(posterior.statistic), unit)))
    return ParameterFigure(
        heading=f"Distribution of {axis}",
        svg=column_figure(law, cell_names(posterior, len(law.lower)), axis=axis, mass=mass),
        caption=(
            "The density, a step for each bin, and the share of values up to each number, within "
            f"{100 * mass:g} % intervals. Bars: intervals of the 10, 50 and 90 % quantiles. The table has "
            "the share of every bin."
        ),
        is_smooth=True,
    )


def _curves(
    posterior: Posterior,
    parameter: str,
    kind: str,
    draws: int,
    rng: np.random.Generator,
    *,
    in_logs: bool,
) -> list[tuple[Curve, ...]] | None:
    """The prior's and the posterior's density of every entry; None where draws alone are known."""
    points = curve_points(posterior, parameter, _POINTS, in_logs=in_logs, draws=draws, rng=rng)
    if not np.isfinite(points).all():
        return None
    density = posterior.density(parameter, points)
    if density is None:
        return None
    flat_points, flat = points.reshape(-1, _POINTS), density.reshape(-1, _POINTS)
    everywhere = prior_points(points, _POINTS, in_logs=in_logs)
    prior = posterior.prior_density(parameter, everywhere)
    priors: Floats | None = None if prior is None else prior.reshape(-1, len(everywhere))
    if in_logs:
        # The density of log x is x times that of x.
        flat = flat * flat_points
        priors = None if priors is None else priors * everywhere
    by_entry = []
    for entry, (entry_points, density) in enumerate(zip(flat_points, flat, strict=True)):
        curves = [Curve(kind=kind, points=entry_points, density=density)]
        if priors is not None:
            curves.insert(0, Curve(kind=PRIOR, points=everywhere, density=priors[entry % len(priors)]))
        by_entry.append(tuple(curves))
    return by_entry


def _five(quantiles: Floats) -> tuple[float, float, float, float, float]:
    lower, first, middle, third, upper = quantiles.tolist()
    return lower, first, middle, third, upper


def _cells(posterior: Posterior) -> str:
    return "entries" if posterior.categories or posterior.components else "cells"
