"""Plots of posteriors: densities over a few cells, a forest of intervals over many, bands over very many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import MissingExtraError, UsageError
from suffice.model_files import save_figure
from suffice.pipeline.calibration.ranks import BINS

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from suffice.pipeline.calibration.result import Calibration
    from suffice.pipeline.posterior.posterior import Posterior

    Lines = dict[str, NDArray[np.float64]]

DENSITY = "density"
FOREST = "forest"
_MOST_DENSITIES = 8
_MOST_INTERVALS = 200
_BINS = 60
_MOST_HISTOGRAMS = 8


def plot_posterior(
    posterior: Posterior,
    path: Path,
    *,
    title: str,
    draws: int,
    rng: np.random.Generator,
    kind: str | None = None,
    beside: Posterior | None = None,
) -> None:
    """Draw every parameter's posterior into a PNG or SVG file.

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
    kind : {"density", "forest"}, optional
        A density per cell and category, or the median and the 95 % interval of each, one under the other;
        densities for at most 8 of them otherwise. Of more than 200 a forest has no keys: medians and
        intervals stand in the order of the medians, as the plot then says.
    beside : Posterior, optional
        Of the same cells by another method, drawn in grey beside it.

    Raises
    ------
    UsageError
        Where the ending or the kind is another, or there are too many cells to draw as densities.
    MissingExtraError
        Where matplotlib is not installed.
    """
    figure_class = check_plot(path, kind)
    n_lines = max(
        posterior.n_groups * max(1, len(posterior.labels(name)[1])) for name in posterior.parameters
    )
    chosen = kind or (DENSITY if n_lines <= _MOST_DENSITIES else FOREST)
    if chosen == DENSITY and n_lines > _MOST_DENSITIES:
        message = f"--plot: {n_lines} cells are too many to draw as a {chosen}: keep some with --where"
        raise UsageError(message)
    is_ranked = n_lines > _MOST_INTERVALS
    height = max(4.0, 0.2 * n_lines) if chosen == FOREST and not is_ranked else 4.0
    figure = figure_class(figsize=(6.5 * len(posterior.parameters), height), layout="constrained")
    axes = figure.subplots(1, len(posterior.parameters), squeeze=False)[0]
    if is_ranked:
        for axis, parameter in zip(axes, posterior.parameters, strict=True):
            _ranked(axis, parameter, posterior, beside, draws, rng)
    else:
        series = _series(posterior, draws, rng)
        others = {} if beside is None else _series(beside, draws, rng)
        for axis, (parameter, lines) in zip(axes, series.items(), strict=True):
            (_densities if chosen == DENSITY else _forest)(axis, lines, others.get(parameter, {}))
            axis.set_xlabel(parameter)
    grey = f" (in grey: {beside.method})" if beside is not None else ""
    subtitle = f"{posterior.method} posterior{grey}, prior {posterior.prior}"
    if is_ranked:
        subtitle += "\nevery cell's median and 95 % interval, in the order of the medians"
    figure.suptitle(f"{title}\n{subtitle}", fontsize="medium")
    save(figure, path)


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
        f"{title}\n{calibration.method} posterior, prior {calibration.prior}: {calibration.conclusion}",
        fontsize="medium",
    )
    save(figure, path)


def check_plot(path: Path, kind: str | None = None) -> type[Figure]:
    """Return matplotlib's figure, before any work is done.

    Raises
    ------
    UsageError
        Where the file's ending is neither ``.png`` nor ``.svg``, or there is no such kind of plot.
    MissingExtraError
        Where matplotlib is not installed.
    """
    if path.suffix not in {".png", ".svg"}:
        message = f"--plot {path}: the file's name must end in .png or .svg"
        raise UsageError(message)
    if kind not in {None, DENSITY, FOREST}:
        message = f"--plot-kind {kind}: a plot is a {DENSITY} or a {FOREST}"
        raise UsageError(message)
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - the plot extra
    except ModuleNotFoundError:
        raise MissingExtraError("--plot", "plot") from None
    return Figure


def save(figure: Figure, path: Path) -> None:
    """Write a figure, as :func:`save_figure`.

    Raises
    ------
    UsageError
        Where the file cannot be written.
    """
    try:
        save_figure(figure, path)
    except OSError:
        message = f"--plot {path}: the file cannot be written"
        raise UsageError(message) from None


def _series(posterior: Posterior, draws: int, rng: np.random.Generator) -> dict[str, Lines]:
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
                for index, category in enumerate(posterior.labels(parameter)[1])
            }
        else:
            series[parameter] = {label: sample[:, cell] for cell, label in enumerate(labels)}
    return series


def _densities(axis: Axes, lines: Lines, others: Lines) -> None:
    for sample in others.values():
        axis.stairs(*_histogram(sample), color="grey", alpha=0.8, linestyle="--")
    for label, sample in lines.items():
        axis.stairs(*_histogram(sample), fill=True, alpha=0.35, label=label or None)
    axis.set_yticks([])
    axis.set_ylabel("posterior density")
    if any(lines):
        axis.legend(fontsize="small")


def _histogram(sample: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    low, high = np.quantile(sample, [0.001, 0.999])
    reach = (float(low), float(max(high, np.nextafter(low, np.inf))))
    density, edges = np.histogram(sample, bins=_BINS, range=reach, density=True)
    return density.astype(np.float64), edges


def _forest(axis: Axes, lines: Lines, others: Lines) -> None:
    positions = np.arange(float(len(lines)))[::-1]
    for series, below, colour in ((others, 0.3, "grey"), (lines, 0.0, "C0")):
        if series:
            quantiles = np.array([np.quantile(sample, [0.025, 0.5, 0.975]) for sample in series.values()])
            heights = positions - below
            axis.hlines(heights, quantiles[:, 0], quantiles[:, 2], linewidth=1.5, color=colour)
            axis.plot(quantiles[:, 1], heights, "o", markersize=3, color=colour)
    axis.set_yticks(positions, list(lines), fontsize="x-small")


def _ranked(
    axis: Axes,
    parameter: str,
    posterior: Posterior,
    beside: Posterior | None,
    draws: int,
    rng: np.random.Generator,
) -> None:
    """Draw a band of intervals, all cells and categories in the order of their medians."""
    low, median, high = _quantiles(posterior, parameter, draws, rng)
    order = np.argsort(median, kind="stable")
    rank = np.arange(1, len(order) + 1)
    axis.fill_between(rank, low[order], high[order], color="C0", alpha=0.3, linewidth=0.0, step="mid")
    axis.plot(rank, median[order], ".", markersize=1, color="C0")
    if beside is not None:
        _, other, _ = _quantiles(beside, parameter, draws, rng)
        axis.plot(rank, other[order], ".", markersize=1, color="grey", zorder=1)
    axis.set_xlabel("rank")
    axis.set_ylabel(parameter)


def _quantiles(
    posterior: Posterior, parameter: str, draws: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Ends of 95 % intervals and medians, (3, n_lines)."""
    found = posterior.distribution.quantiles(parameter, [0.025, 0.5, 0.975], draws, rng)
    return found.reshape(-1, 3).T
