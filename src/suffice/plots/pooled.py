"""A picture of cells that borrow strength: each beside itself alone, and where their population is."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.ask.borrowing.over_time import WalkedPosterior
from suffice.pipeline.ask.borrowing.side_by_side import populations
from suffice.pipeline.ask.posterior.curves import in_words, spans_decades
from suffice.plots.rows import HEIGHT, Intervals, draw_intervals, draw_ranked, put_in_logs
from suffice.plots.style import NOISE, POSTERIOR, PRIOR, new_figure

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from suffice.pipeline.ask.borrowing.pooled_posterior import PooledPosterior

MOST_ROWS = 200


def draw_pooled(together: PooledPosterior, intervals: Callable[..., Intervals]) -> tuple[Figure, str]:
    """Return a figure of every cell alone beside itself pooled, and what it shows in words.

    Parameters
    ----------
    together : PooledPosterior
    intervals : callable
        Takes a posterior and a parameter, and returns medians and intervals of its cells.
    """
    (parameter,) = together.parameters
    names = together.entry_names(parameter)
    pooled = _coloured(intervals(together, parameter), POSTERIOR, "together", "|")
    alone = _coloured(intervals(together.alone, parameter), NOISE, "alone", "o")
    marks = np.stack([alone.lower, alone.upper, pooled.lower, pooled.upper], axis=-1)
    in_logs = spans_decades(together, parameter, marks)
    label = in_words(together, parameter) + (" (logarithmic axis)" if in_logs else "")
    is_ranked = len(names) > MOST_ROWS
    figure = new_figure(6.8, 3.6 if is_ranked else 0.75 + len(names) * HEIGHT)
    axis = figure.subplots()
    if in_logs:
        put_in_logs(axis, upwards=is_ranked)
    if is_ranked:
        draw_ranked(axis, [pooled, alone], label)
        return figure, "in the order of the medians together"
    axis.set_xlabel(label)
    if isinstance(together, WalkedPosterior):  # of no population: its cells stay in their order
        draw_intervals(axis, names, [alone, pooled])
        return figure, "in their order"
    order = _draw_rows(axis, together, names, pooled, alone)
    within = "" if len(order) == 1 else ", within each population"
    return figure, f"by their medians together{within}; dotted: the population"


def _draw_rows(
    axis: Axes, together: PooledPosterior, names: Any, pooled: Intervals, alone: Intervals
) -> list[Any]:
    """Draw rows population by population, the greatest on top, and where each population is."""
    parts, centres = [], []
    for pool in populations(together):
        keys = {column: pool[column] for column in pool if column in together.groups}
        mine = np.array(
            [
                cell
                for cell in range(len(names))
                if all(together.groups[column][cell] == key for column, key in keys.items())
            ]
        )
        parts.append(mine[np.argsort(-pooled.middle[mine], kind="stable")])
        centres.append(pool["centre"])
    order = np.concatenate(parts)
    draw_intervals(axis, [names[cell] for cell in order], [alone.take(order), pooled.take(order)])
    first = 0.0
    for part, centre in zip(parts, centres, strict=True):
        axis.vlines(centre, first - 0.5, first + len(part) - 0.5, color=PRIOR, linestyle=":", linewidth=1.4)
        first += len(part)
    return parts


def _coloured(intervals: Intervals, colour: str, label: str, marker: str) -> Intervals:
    """Return intervals without middle halves, which two kinds in one row have no room for."""
    return dataclasses.replace(
        intervals, colour=colour, label=label, marker=marker, first=None, third=None, is_dashed=False
    )
