"""Pictures of posterior samples: every draw as a point, a row for each cell, or a band of ranked cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.plots.rows import HEIGHT, draw_points
from suffice.plots.style import check_plot, finish, new_figure, save, styled

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.terms.released.sample import ReleasedSample

_MOST_ROWS = 200


def plot_sample(sample: ReleasedSample, path: Path, *, title: str, footer: str) -> None:
    """Draw a sample into a PNG or SVG file, a point for each draw, over the whole grid.

    A row for each cell; beyond 200, cells side by side in the order of the means of their draws.

    Parameters
    ----------
    sample : ReleasedSample
    path : Path
        Ends in ``.png`` or ``.svg``.
    title, footer : str
        Over the picture, and its sources below.

    Raises
    ------
    UsageError
        Where the ending is another.
    MissingExtraError
        Where matplotlib is not installed.
    """
    check_plot(path)
    values = sample.values
    is_ranked = len(values) > _MOST_ROWS
    with styled():
        figure = new_figure(7.2, 2.9 if is_ranked else 0.75 + len(values) * HEIGHT)
        axis = figure.subplots()
        lower, upper = (float(end) for end in sample.sample.within)
        if is_ranked:
            order = np.argsort(values.mean(axis=1), kind="stable")
            ranks = np.repeat(np.arange(1, len(order) + 1), values.shape[1])
            axis.plot(ranks, values[order].ravel(), ".", markersize=1.6)
            axis.set_xlabel("rank of the mean of a cell's draws")
            axis.set_ylabel(sample.parameter)
            axis.set_ylim(lower, upper)
        else:
            draw_points(axis, _labels(sample), values)
            axis.set_xlabel(sample.parameter)
            axis.set_xlim(lower, upper)
        temperature = float(sample.sample.temperature)
        subtitle = f"Draws of the posterior at temperature {temperature:.4g}: " + (
            "their spread tells of privacy as well as of the parameter, and is no credible interval"
            if sample.sample.is_tempered
            else "each of the data's own posterior under its prior"
        )
        finish(figure, title, subtitle, footer)
        save(figure, path)


def _labels(sample: ReleasedSample) -> list[str]:
    """Return the keys of every cell in words; the statistic's name where there are no groups."""
    if not sample.groups:
        return [sample.plan.name]
    return [", ".join(map(str, keys)) for keys in zip(*sample.groups.values(), strict=True)]
