"""Pictures of calibrations: histograms of the ranks of true parameters among posterior draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.ask.calibration.verdict import BINS
from suffice.plots.style import COLOURS, GRID, QUIET, TEXT, check_plot, finish, new_figure, save, styled

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.ask.calibration.calibrate import Calibration

_MOST_HISTOGRAMS = 8
_ACROSS = 4


def plot_calibration(calibration: Calibration, path: Path, *, title: str, footer: str) -> None:
    """Draw the histogram of ranks of every parameter into a PNG or SVG file, with and without clipping.

    A calibrated posterior's bars lie within the band but for one in a hundred.

    Raises
    ------
    UsageError
        Where the ending is another.
    MissingExtraError
        Where matplotlib is not installed.
    """
    check_plot(path)
    shown = calibration.clipped[:_MOST_HISTOGRAMS]
    down = -(-len(shown) // _ACROSS)
    across = min(len(shown), _ACROSS)
    expected = calibration.simulations / BINS
    half_band = 2.576 * np.sqrt(expected * (1.0 - 1.0 / BINS))
    edges = np.linspace(0.0, 1.0, BINS + 1)
    with styled():
        figure = new_figure(max(6.4, 3.6 * across), 3.1 * down)
        axes = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
        for axis, ranks, unclipped in zip(axes, shown, calibration.unclipped, strict=False):
            axis.grid(visible=False)
            axis.axhspan(
                expected - half_band, expected + half_band, color=GRID, label="99 % of calibrated bars"
            )
            axis.stairs(ranks.histogram, edges, fill=True, color=COLOURS[0], alpha=0.18, linewidth=0.0)
            axis.stairs(ranks.histogram, edges, color=COLOURS[0], linewidth=1.8, label="as released")
            if calibration.clipped_share > 0.0:
                axis.stairs(unclipped.histogram, edges, color=TEXT, linewidth=1.2, label="without clipping")
            axis.set_ylim(bottom=0.0)
            axis.set_xlim(0.0, 1.0)
            axis.set_xlabel(", ".join(filter(None, ("rank of the true " + ranks.parameter, ranks.category))))
        for axis in axes[len(shown) :]:
            axis.set_axis_off()
        axes[0].set_ylabel("simulated releases")
        axes[0].legend(
            loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, borderaxespad=0.2, labelcolor=QUIET
        )
        finish(
            figure,
            title,
            f"{calibration.method[0].upper()}{calibration.method[1:]} posterior, prior {calibration.prior}: "
            f"{calibration.conclusion}",
            footer,
        )
        save(figure, path)
