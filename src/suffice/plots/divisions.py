"""A picture of a division of epsilon: each statistic's error at the spec's shares beside the divided ones."""

from __future__ import annotations

import importlib.metadata
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UsageError
from suffice.plots.style import (
    BESIDE,
    GRID,
    POSTERIOR,
    QUIET,
    check_plot,
    finish,
    new_figure,
    only_across,
    save,
    shortened_label,
    styled,
)

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.ask.planning.divided_plan import DividedPlan

MOST_STATISTICS = 60
_HEIGHT = 0.36
"""Inches of a statistic's row."""


def plot_division(division: DividedPlan, path: Path, *, title: str) -> None:
    """Draw how much noise widens each posterior, at the spec's shares and divided, into a PNG or SVG file.

    Raises
    ------
    UsageError
        Where the ending is another, or there are more than 60 statistics.
    MissingExtraError
        Where matplotlib is not installed.
    """
    check_plot(path)
    rows = division.statistics
    if len(rows) > MOST_STATISTICS:
        message = f"--plot: {len(rows)} statistics are too many for one picture: it takes {MOST_STATISTICS}"
        raise UsageError(message)
    now = np.array([row.inflation_now for row in rows])
    divided = np.array([row.inflation_divided for row in rows])
    places = np.arange(len(rows))[::-1]
    with styled():
        figure = new_figure(8.4, 1.1 + _HEIGHT * len(rows))
        axis = figure.subplots()
        axis.set_xscale("log")
        axis.hlines(places, np.minimum(now, divided), np.maximum(now, divided), color=GRID, linewidth=5.0)
        totals = (division.total_now, BESIDE), (division.total_divided, POSTERIOR)
        for total, colour in totals:
            axis.axvline(total, color=colour, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
        axis.plot(
            now, places, "s", color=BESIDE, markersize=6.0, markerfacecolor="white", markeredgewidth=1.5,
            label="shares of the spec",
        )  # fmt: skip
        axis.plot(divided, places, "o", color=POSTERIOR, markersize=6.5, label="divided")
        axis.set_yticks(places, [shortened_label(f"{row.statistic}: {row.parameter}") for row in rows])
        only_across(axis)
        highest = float(max(now.max(), divided.max(), 1.1))
        axis.set_xlim(0.97, highest * 1.12)
        marks = _marks(highest)
        axis.set_xticks(marks, [f"{mark:g}" for mark in marks])
        axis.minorticks_off()
        axis.set_xlabel("standard deviation of the posterior, over that without noise")
        axis.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, borderaxespad=0.2, labelcolor=QUIET)
        kind = "root mean square" if division.criterion == "sum" else "largest"
        subtitle = (
            f"The {kind} goes from {division.total_now:.3g} to {division.total_divided:.3g} (dashed), at the "
            f"same {division.loss.measure}"
        )
        version = importlib.metadata.version("suffice")
        finish(figure, title, subtitle, f"{division.expectations}. suffice {version}.")
        save(figure, path)


def _marks(highest: float) -> list[float]:
    """Return round numbers from 1 on, few enough to be read."""
    steps = [1.0, 1.2, 1.5, 2.0, 3.0, 5.0] if highest < 10.0 else [1.0, 2.0, 5.0]
    marks = [step * 10.0**power for power in range(12) for step in steps if power == 0 or step in (1, 2, 5)]
    return [mark for mark in marks if mark <= highest * 1.1]
