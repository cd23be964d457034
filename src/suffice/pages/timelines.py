"""Figures over time: intervals of series over windows, and what was spent of a budget."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pages.drawing import (
    CHARACTER,
    WIDTH,
    Scale,
    columns_of,
    element,
    figure,
    numbers_beside,
    path,
    rounded_out,
    text,
)
from suffice.pages.marks import LEGEND, beside, extent, legend, many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.typing import Floats

SERIES = 6
"""Series that are told apart by their looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One series over windows: lower end, middle and upper end in each; NaN where there is none.

    Attributes
    ----------
    label : str
    lower, middle, upper : ndarray of shape (n_windows,), float64
    """

    label: str
    lower: Floats
    middle: Floats
    upper: Floats


def series(
    windows: Sequence[str], lines: Sequence[Line], *, title: str, axis: str, mass: float | None = None
) -> str:
    """Return intervals over windows in their order, up to ``SERIES`` lines.

    Parameters
    ----------
    windows : sequence of str
        In order; their labels are thinned out where they are many.
    lines : sequence of Line
    title, axis
        As in ``densities``.
    mass : float, optional
        Of the intervals, which are noise intervals, say, where it is left out.
    """
    every = np.concatenate([part for line in lines for part in (line.lower, line.middle, line.upper)])
    ends = rounded_out(*extent([float(value) for value in every[np.isfinite(every)]]))
    top = 34.0 + (LEGEND if len(lines) > 1 else 0.0)
    height = top + 236.0
    scale = Scale.over(*ends, height, top)
    left = beside(scale)
    step = (WIDTH - 24.0 - left) / max(len(windows), 1)
    parts = [numbers_beside(scale, left, WIDTH - 12.0, axis)]
    if len(lines) > 1:
        parts.append(legend([(f"series-{1 + n % SERIES}", line.label) for n, line in enumerate(lines)]))
    for number, line in enumerate(lines):
        shift = (number - (len(lines) - 1) / 2.0) * min(step / (len(lines) + 1.0), 9.0)
        xs = [left + step * (place + 0.5) + shift for place in range(len(windows))]
        parts.append(_over_windows(line, xs, scale, f"series-{1 + number % SERIES}"))
    parts.append(_window_labels(windows, left, step, height))
    of = "noise intervals" if mass is None else f"{100 * mass:g} % intervals"
    description = (
        f"{axis} over {many(len(windows), 'window', 'windows')}, with {of}, of "
        f"{many(len(lines), 'cell', 'cells')}; the table has the numbers."
    )
    return figure("series", height + 30.0, title, description, *parts)


def budget(
    positions: Sequence[float],
    labels: Sequence[str],
    spent: Sequence[float],
    *,
    title: str,
    limit: float | None = None,
) -> str:
    """Return what was spent of a privacy budget over time, as steps, and the limit where there is one.

    Parameters
    ----------
    positions : sequence of float
        When each release was charged, ascending, in any unit.
    labels : sequence of str
        How these times are written.
    spent : sequence of float
        Epsilon spent in all from then on.
    title : str
    limit : float, optional
        The budget.
    """
    most = max([*spent, *([] if limit is None else [limit])])
    scale = Scale.over(0.0, rounded_out(0.0, most * 1.04 or 1.0)[1], 210.0, 34.0)
    left, right = beside(scale), WIDTH - 12.0
    first, last = positions[0], positions[-1]
    time = Scale.over(first, last + max(last - first, 1.0) * 0.08, left + 6.0, right)
    base = scale.at(0.0)
    steps = [(time.at(positions[0]), base)]
    for position, value in zip(positions, spent, strict=True):
        steps += [(time.at(position), steps[-1][1]), (time.at(position), scale.at(value))]
    steps.append((right, steps[-1][1]))
    shown = [0] if len(labels) == 1 else [0, len(labels) - 1]
    parts = [
        numbers_beside(scale, left, right, "epsilon spent"),
        element("path", d=path([*steps, (right, base)], closed=True), class_="area series-1"),
        element("path", d=path(steps), class_="line series-1"),
    ]
    if limit is not None:
        at = scale.at(limit)
        parts.append(element("line", x1=left, x2=right, y1=at, y2=at, class_="limit"))
        parts.append(text(right, at - 6.0, f"budget {limit:g}", "limit-label end"))
    for place in shown:
        x = time.at(positions[place])
        end = place and x > right - 60.0
        parts.append(
            text(x, base + 18.0, labels[place], f"tick {'end' if end else 'middle' if place else ''}")
        )
    of = "" if limit is None else f" of {limit:g}"
    description = f"Epsilon spent from {labels[0]} to {labels[-1]}: {spent[-1]:g}{of}."
    return figure("budget", 236.0, title, description, *parts)


def _over_windows(line: Line, xs: Sequence[float], scale: Scale, class_: str) -> str:
    parts: list[str] = []
    run: list[list[tuple[float, float]]] = []
    for x, lower, middle, upper in zip(xs, line.lower, line.middle, line.upper, strict=True):
        if not np.isfinite([lower, middle, upper]).all():
            run = [*run, []]
            continue
        run = [*run[:-1], [*(run[-1] if run else []), (x, scale.at(float(middle)))]]
        ends = scale.at(float(lower)), scale.at(float(upper))
        parts.append(element("line", x1=x, x2=x, y1=ends[0], y2=ends[1], class_=f"interval {class_}"))
    joined = [element("path", d=path(part), class_=f"line {class_}") for part in run if len(part) > 1]
    dots = [element("circle", cx=x, cy=y, r=3.4, class_=f"median {class_}") for part in run for x, y in part]
    return element("g", *joined, *parts, *dots, class_="row")


def _window_labels(windows: Sequence[str], left: float, step: float, bottom: float) -> str:
    widest = max((columns_of(window) for window in windows), default=1)
    every = max(1, math.ceil(CHARACTER * (min(widest, 18) + 2) / step)) if windows else 1
    return "".join(
        text(left + step * (place + 0.5), bottom + 20.0, windows[place], "tick middle", longest=18)
        for place in range(0, len(windows), every)
    )
