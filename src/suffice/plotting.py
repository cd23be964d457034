"""Plots of posteriors: densities over a few cells, intervals over many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import MissingExtraError, UsageError
from suffice.pipeline.verdict import BINS

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from suffice.pipeline.posterior import Posterior
    from suffice.pipeline.verdict import Calibration

_MOST_DENSITIES = 8
_MOST_INTERVALS = 200
_BINS = 60
_MOST_HISTOGRAMS = 8


def plot_posterior(
    posterior: Posterior, path: Path, *, title: str, draws: int, rng: np.random.Generator
) -> None:
    """Draw every parameter's posterior into a PNG or SVG file.

    One density per cell for at most 8 cells (and categories); above that, the median and the 95% interval
    of each.

    Parameters
    ----------
    posterior : Posterior
        Vectorised over cells.
    path : Path
        Ends in ``.png`` or ``.svg``.
    title : str
        Over the figure.
    draws : int
        Posterior draws per cell.
    rng : numpy.random.Generator
        For the draws.

    Raises
    ------
    UsageError
        Where the ending is another, or there are too many cells to draw.
    MissingExtraError
        Where matplotlib is not installed.
    """
    figure_class = check_plot(path)
    series = _series(posterior, draws, rng)
    n_lines = max(len(lines) for lines in series.values())
    if n_lines > _MOST_INTERVALS:
        message = f"--plot: {n_lines} cells are too many to draw: keep some with --where"
        raise UsageError(message)
    as_densities = n_lines <= _MOST_DENSITIES
    height = 4.0 if as_densities else max(4.0, 0.2 * n_lines)
    figure = figure_class(figsize=(6.5 * len(series), height), layout="constrained")
    axes = figure.subplots(1, len(series), squeeze=False)[0]
    for axis, (parameter, lines) in zip(axes, series.items(), strict=True):
        (_densities if as_densities else _intervals)(axis, lines)
        axis.set_xlabel(parameter)
    figure.suptitle(f"{title}\n{posterior.method} posterior, prior {posterior.prior}", fontsize="medium")
    _save(figure, path)


def plot_calibration(calibration: Calibration, path: Path, *, title: str) -> None:
    """Draw the histogram of ranks of every parameter into a PNG or SVG file, with and without clipping.

    A calibrated posterior's bars lie within the band but for one in a hundred.

    Raises
    ------
    UsageError, MissingExtraError
        As :func:`plot_posterior`.
    """
    figure_class = check_plot(path)
    shown = calibration.clipped[:_MOST_HISTOGRAMS]
    figure = figure_class(figsize=(5.0 * len(shown), 4.0), layout="constrained")
    axes = figure.subplots(1, len(shown), squeeze=False)[0]
    expected = calibration.simulations / BINS
    half_band = 2.576 * np.sqrt(expected * (1.0 - 1.0 / BINS))
    edges = np.linspace(0.0, 1.0, BINS + 1)
    for axis, ranks, unclipped in zip(axes, shown, calibration.unclipped, strict=False):
        axis.axhspan(
            expected - half_band, expected + half_band, color="0.88", label="99 % of calibrated bars"
        )
        axis.stairs(ranks.histogram, edges, fill=True, alpha=0.5, label="as released")
        if calibration.clipped_share > 0.0:
            axis.stairs(unclipped.histogram, edges, color="black", label="without clipping")
        axis.set_ylim(bottom=0.0)
        axis.set_xlabel(", ".join(filter(None, ("rank of the true " + ranks.parameter, ranks.category))))
    axes[0].set_ylabel("simulations")
    axes[0].legend(fontsize="small")
    figure.suptitle(
        f"{title}\n{calibration.method} posterior, prior {calibration.prior}: {calibration.verdict}",
        fontsize="medium",
    )
    _save(figure, path)


def check_plot(path: Path) -> type[Figure]:
    """Return matplotlib's figure, before any work is done.

    Raises
    ------
    UsageError
        Where the file's ending is neither ``.png`` nor ``.svg``.
    MissingExtraError
        Where matplotlib is not installed.
    """
    if path.suffix not in {".png", ".svg"}:
        message = f"--plot {path}: the file's name must end in .png or .svg"
        raise UsageError(message)
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - the plot extra
    except ModuleNotFoundError:
        raise MissingExtraError("--plot", "plot") from None
    return Figure


def _save(figure: Figure, path: Path) -> None:
    try:
        figure.savefig(path, dpi=150)
    except OSError:
        message = f"--plot {path}: the file cannot be written"
        raise UsageError(message) from None


def _series(
    posterior: Posterior, draws: int, rng: np.random.Generator
) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Return the draws of each parameter by the label of their cell and category."""
    columns = [[f"{column}={key}" for key in keys] for column, keys in posterior.groups.items()]
    series = {}
    for parameter, sample in posterior.sample(draws, rng).items():
        labels = (
            [", ".join(parts) for parts in zip(*columns, strict=True)] if columns else [""] * sample.shape[1]
        )
        if sample.ndim == 3:
            series[parameter] = {
                ", ".join(filter(None, (label, category))): sample[:, cell, index]
                for cell, label in enumerate(labels)
                for index, category in enumerate(posterior.categories)
            }
        else:
            series[parameter] = {label: sample[:, cell] for cell, label in enumerate(labels)}
    return series


def _densities(axis: Axes, lines: dict[str, NDArray[np.float64]]) -> None:
    for label, sample in lines.items():
        low, high = np.quantile(sample, [0.001, 0.999])
        density, edges = np.histogram(
            sample, bins=_BINS, range=(low, max(high, np.nextafter(low, np.inf))), density=True
        )
        axis.stairs(density, edges, fill=True, alpha=0.35, label=label or None)
    axis.set_yticks([])
    axis.set_ylabel("posterior density")
    if any(lines):
        axis.legend(fontsize="small")


def _intervals(axis: Axes, lines: dict[str, NDArray[np.float64]]) -> None:
    quantiles = np.array([np.quantile(sample, [0.025, 0.5, 0.975]) for sample in lines.values()])
    positions = np.arange(len(lines))[::-1]
    axis.hlines(positions, quantiles[:, 0], quantiles[:, 2], linewidth=1.5)
    axis.plot(quantiles[:, 1], positions, "o", markersize=3)
    axis.set_yticks(positions, list(lines), fontsize="x-small")
