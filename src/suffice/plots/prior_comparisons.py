"""The picture of a comparison of priors: log Bayes factors by cell, and of all cells together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UsageError
from suffice.plots.rows import HEIGHT, Intervals, draw_intervals
from suffice.plots.style import COLOURS, QUIET, check_plot, finish, new_figure, only_across, save, styled

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from suffice.pipeline.ask.pooling.comparison import PriorComparison
    from suffice.typing import Floats

MOST_CELLS, MOST_PRIORS = 60, 6
_MARKERS = ("o", "s", "D", "^", "v")
_TEN = float(np.log(10.0))


def plot_prior_comparison(comparison: PriorComparison, path: Path, *, title: str, footer: str) -> None:
    """Draw every prior's log Bayes factor against the first one into a PNG or SVG file.

    Raises
    ------
    UsageError
        Where the ending is another, or there are more than 60 cells or 6 priors.
    MissingExtraError
        Where matplotlib is not installed.
    """
    check_plot(path)
    factors = comparison.log_bayes_factors
    n_cells, n_priors = factors.shape
    if n_cells > MOST_CELLS or n_priors > MOST_PRIORS:
        message = (
            f"--plot: {n_cells} cells and {n_priors} priors are too many for one picture, which takes "
            f"{MOST_CELLS} and {MOST_PRIORS}: keep some cells with --where"
        )
        raise UsageError(message)
    panels: list[tuple[Sequence[str], Floats]] = [
        (["all cells together"], comparison.total_log_bayes_factors[None, :])
    ]
    if n_cells > 1:
        panels.insert(0, (_labels(comparison), factors))
    heights = [0.75 + len(labels) * HEIGHT for labels, _ in panels]
    with styled():
        figure = new_figure(8.4, sum(heights))
        axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
        for place, (axis, (labels, medians)) in enumerate(zip(axes, panels, strict=True)):
            kinds = [
                _points(medians[:, number], number, comparison.priors[number] if place == 0 else "")
                for number in range(1, n_priors)
            ]
            draw_intervals(axis, labels, kinds)
            _lines(axis)
        axes[-1].set_xlabel(f"log Bayes factor against {comparison.priors[0]}, in nats")
        subtitle = (
            f"Right of 0 the released values speak for the prior of the mark, left of it for "
            f"{comparison.priors[0]}; dotted lines: 10 to 1"
        )
        finish(figure, title, subtitle, footer)
        save(figure, path)


def _points(values: Floats, number: int, label: str) -> Intervals:
    return Intervals(
        lower=values,
        middle=values,
        upper=values,
        colour=COLOURS[(number - 1) % len(COLOURS)],
        label=label,
        marker=_MARKERS[(number - 1) % len(_MARKERS)],
    )


def _labels(comparison: PriorComparison) -> list[str]:
    return [", ".join(map(str, keys)) for keys in zip(*comparison.groups.values(), strict=True)]


def _lines(axis: Axes) -> None:
    """Mark where both priors do equally well, and where one does ten times better."""
    only_across(axis)
    axis.axvline(0.0, color=QUIET, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    for at in (-_TEN, _TEN):
        axis.axvline(at, color=QUIET, linewidth=0.8, linestyle=":", zorder=1)
