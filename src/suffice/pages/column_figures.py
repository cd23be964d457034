"""Figures of a histogram's column as static SVG: its density, and its distribution function, with bands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.pages import drawing
from suffice.pipeline.ask.posterior.shown_columns import SHOWN, seen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.engines.histogram.column_law import ColumnLaw, Estimate
    from suffice.typing import Cells, Floats

_TALL, _NAMED, _BELOW, _APART = 150.0, 26.0, 46.0, 44.0
_KIND = "noise-aware"


def column_figure(law: ColumnLaw, names: Sequence[str], *, axis: str, mass: float) -> str:
    """Return the density and the distribution function of every cell, side by side, a row each.

    Parameters
    ----------
    law : ColumnLaw
    names : sequence of str
        The cells', at most ``MOST_CELLS``.
    axis : str
        What the column is, with its unit.
    mass : float
        Of the bands, and of quantiles' intervals.
    """
    low, high = seen(law, mass)
    density, below = law.density(mass), law.distribution_function(mass)
    quantiles = [(q, law.quantile(q, mass)) for q in SHOWN]
    inner = np.flatnonzero((law.upper > law.lower) & (law.upper > low) & (law.lower < high))
    highest = float(np.max(density.upper[:, inner], initial=0.0)) or 1.0
    middle = drawing.WIDTH / 2.0
    parts = []
    for cell, name in enumerate(names):
        top = _NAMED + cell * (_TALL + _NAMED + _BELOW)
        bottom = top + _TALL
        across = [
            drawing.Scale.over(low, high, start, stop)
            for start, stop in ((_APART, middle - 16.0), (middle + _APART, drawing.WIDTH - 12.0))
        ]
        heights = drawing.Scale.over(0.0, highest, bottom, top, about=4.0)
        shares = drawing.Scale.over(0.0, 1.0, bottom, top, about=4.0)
        named = (" ".join(filter(None, (name, what))) for what in ("density", "share up to a number"))
        for scale, up, label in zip(across, (heights, shares), named, strict=True):
            parts.append(drawing.text(scale.start, top - 9.0, label, "label", longest=50))
            is_last = cell == len(names) - 1
            parts.append(drawing.numbers_below(scale, top, bottom, axis if is_last else ""))
            parts.append(drawing.numbers_beside(up, scale.start, scale.stop, ""))
        steps = _steps(law, density, cell, inner)
        parts += _band(across[0], heights, *steps)
        edges = np.append(law.lower[0], law.upper)
        lines = (np.append(0.0, of[cell]) for of in (below.lower, below.median, below.upper))
        parts += _band(across[1], shares, edges, *lines)
        for q, of in quantiles:
            ends = across[1].at(float(of.lower[cell])), across[1].at(float(of.upper[cell]))
            y = shares.at(q)
            parts.append(drawing.element("line", x1=ends[0], x2=ends[1], y1=y, y2=y, class_=f"half {_KIND}"))
    height = len(names) * (_TALL + _NAMED + _BELOW) + _NAMED
    description = (
        f"Of {axis}: the density, a step for each bin, and the share of values up to each number, within "
        f"{100 * mass:g} % intervals; bars are intervals of the 10, 50 and 90 % quantiles."
    )
    return drawing.figure("column", height, f"Distribution of {axis}", description, *parts)


def _steps(
    law: ColumnLaw, density: Estimate, cell: int, inner: Cells
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return edges and heights of steps, each twice."""
    edges = np.stack([law.lower[inner], law.upper[inner]], axis=1).ravel()
    lower, middle, upper = (
        np.repeat(of[cell, inner], 2) for of in (density.lower, density.median, density.upper)
    )
    return edges, lower, middle, upper


def _band(
    across: drawing.Scale, up: drawing.Scale, x: Floats, lower: Floats, middle: Floats, upper: Floats
) -> list[str]:
    """Draw a line within its band, of what lies within the scale."""
    inside = (x >= across.low) & (x <= across.high)
    at = [across.at(float(value)) for value in x[inside]]

    def line(of: Floats) -> list[tuple[float, float]]:
        return [(place, up.at(float(value))) for place, value in zip(at, of[inside], strict=True)]

    around = [*line(lower), *reversed(line(upper))]
    return [
        drawing.element("path", d=drawing.path(around, closed=True), class_=f"mass {_KIND}"),
        drawing.element("path", d=drawing.path(line(middle)), class_=f"line {_KIND}"),
    ]
