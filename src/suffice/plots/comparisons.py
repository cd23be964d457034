"""Pictures of what changed between releases, of what several say together, and of compared priors."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.posterior.curves import in_words
from suffice.pipeline.math.distributions.interval_kinds import CENTRAL
from suffice.pipeline.math.parameters.parameter_posterior import MASS
from suffice.plots.posteriors import conflicts_of, intervals_of
from suffice.plots.rows import HEIGHT, Intervals, draw_intervals, legend_rows
from suffice.plots.style import (
    COLOURS,
    NOISE,
    QUIET,
    check_plot,
    finish,
    new_figure,
    only_across,
    save,
    styled,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from suffice.pipeline.ask.pooling.comparison import PriorComparison, ReleaseComparison
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.math.parameters.contrasts import Contrast
    from suffice.typing import Floats

MOST_CELLS, MOST_PRIORS = 60, 6
_MARKERS = ("o", "s", "D", "^", "v")
_TEN = float(np.log(10.0))
_ROW = 0.24
"""Inches of a row of a legend."""
_LONG = 40
"""Letters of a prior's name from which on an axis does not repeat it."""


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
    errors, total_errors = comparison.factor_errors, comparison.total_errors
    if errors is None or total_errors is None:
        errors, total_errors = np.zeros((n_cells, n_priors)), np.zeros(n_priors)
    panels: list[tuple[Sequence[str], Floats, Floats]] = [
        (["all cells together"], comparison.total_log_bayes_factors[None, :], total_errors[None, :])
    ]
    if n_cells > 1:
        panels.insert(0, (_labels(comparison), factors, errors))
    heights = [0.75 + len(labels) * HEIGHT for labels, _, _ in panels]
    first, *others = comparison.priors
    heights[0] += _ROW * max(legend_rows(others) - 1, 0)
    with styled():
        figure = new_figure(8.4, sum(heights))
        axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
        for place, (axis, (labels, medians, apart)) in enumerate(zip(axes, panels, strict=True)):
            kinds = [
                _points(
                    medians[:, number],
                    2.0 * apart[:, number],
                    number,
                    comparison.priors[number] if place == 0 else "",
                )
                for number in range(1, n_priors)
            ]
            draw_intervals(axis, labels, kinds)
            _lines(axis)
        short = first if len(first) <= _LONG else "the first prior"
        axes[-1].set_xlabel(f"log Bayes factor against {short}, in nats")
        subtitle = (
            f"Right of 0 the released values speak for the prior of the mark, left of it for {first}; "
            "dotted lines: 10 to 1"
        )
        finish(figure, title, subtitle, footer)
        save(figure, path)


def _points(values: Floats, apart: Floats, number: int, label: str) -> Intervals:
    return Intervals(
        lower=values - apart,
        middle=values,
        upper=values + apart,
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


MOST_ROWS = 60
_RATIOS, _FEWER_RATIOS, _WIDE = (1.0, 1.5, 2.0, 3.0, 5.0), (1.0, 3.0), 40.0


def plot_comparison(
    comparison: ReleaseComparison,
    path: Path,
    *,
    title: str,
    footer: str,
    mass: float = MASS,
    interval: str | None = None,
) -> None:
    """Draw differences with the probability of a rise, and ratios, into a PNG or SVG file.

    Raises
    ------
    UsageError
        Where the ending is another, or there are more than 60 rows.
    MissingExtraError
        Where matplotlib is not installed.
    """
    check_plot(path)
    parameters = comparison.before.parameters
    labels = {parameter: comparison.before.entry_names(parameter) for parameter in parameters}
    most = max(map(len, labels.values()))
    _require_few(most)
    with styled():
        figure = new_figure(9.6, (0.95 + most * HEIGHT * 1.25) * len(parameters))
        axes = figure.subplots(len(parameters), 2, squeeze=False, width_ratios=(1.35, 1.0))
        for (left, right), parameter in zip(axes, parameters, strict=True):
            name = in_words(comparison.before, parameter)
            change, ratio = comparison.differences[parameter], comparison.ratios[parameter]
            draw_intervals(
                left, labels[parameter], [_contrast(change, mass, interval), _apparent(comparison, parameter)]
            )
            _reference(left, 0.0)
            left.set_xlabel(f"difference of the {name}")
            _probabilities(left, change)
            draw_intervals(right, labels[parameter], [_contrast(ratio, mass, interval)])
            _reference(right, 1.0)
            right.set_yticklabels([])
            _in_logs(right, ratio.credible_interval(mass, interval=interval))
            right.set_xlabel(f"ratio of the {name}")
        kind = comparison.before.interval_kind(interval)
        subtitle = (
            f"Medians, middle halves and {100 * mass:g} % {kind} intervals; P: probability of a rise. "
            "Dashed: the change of the estimates as they stand, and 2 standard deviations of what noise "
            "alone gives to it"
        )
        finish(figure, title, subtitle, footer, conflicts_of([comparison.before, comparison.after]))
        save(figure, path)


def plot_pool(
    pooled: Posterior,
    parts: Sequence[tuple[str, Posterior]],
    path: Path,
    *,
    title: str,
    footer: str,
    draws: int,
    rng: np.random.Generator,
    mass: float = MASS,
    interval: str | None = None,
) -> None:
    """Draw the posterior of each release and the pooled one into a PNG or SVG file.

    Parameters
    ----------
    pooled : Posterior
    parts : sequence of (str, Posterior)
        Each release's label, and its own posterior of the same cells.
    path, title, footer, draws, rng, mass, interval
        As in ``plot_posterior``.

    Raises
    ------
    UsageError, MissingExtraError
        As ``plot_comparison``.
    """
    check_plot(path)
    labels = {parameter: pooled.entry_names(parameter) for parameter in pooled.parameters}
    most = max(map(len, labels.values())) * (len(parts) + 1)
    _require_few(most)
    with styled():
        figure = new_figure(max(6.8, 5.4 * len(labels)), 0.95 + most * HEIGHT * 0.8)
        axes = figure.subplots(1, len(labels), squeeze=False)[0]
        for axis, (parameter, names) in zip(axes, labels.items(), strict=True):
            kinds = [
                _recoloured(
                    intervals_of(part, parameter, mass, draws, rng, label, interval=interval),
                    COLOURS[1:][number % 5],
                )
                for number, (label, part) in enumerate(parts)
            ]
            whole = intervals_of(pooled, parameter, mass, draws, rng, "pooled", interval=interval)
            kinds.append(_recoloured(whole, COLOURS[0]))
            draw_intervals(axis, names, kinds)
            axis.set_xlabel(in_words(pooled, parameter))
        finish(
            figure,
            title,
            f"Each release's own posterior, and the pooled one: medians, middle halves and {100 * mass:g} % "
            f"{pooled.interval_kind(interval)} intervals",
            footer,
            conflicts_of([pooled, *(part for _, part in parts)]),
        )
        save(figure, path)


def _require_few(rows: int) -> None:
    if rows > MOST_ROWS:
        message = f"--plot: {rows} intervals are too many for one picture: keep some cells with --where"
        raise UsageError(message)


def _contrast(contrast: Contrast, mass: float, interval: str | None) -> Intervals:
    ends = contrast.credible_interval(mass, interval=interval)
    half = contrast.credible_interval(0.5, interval=CENTRAL)
    return Intervals(
        lower=ends[..., 0].ravel(),
        first=half[..., 0].ravel(),
        middle=contrast.quantile(0.5).ravel(),
        third=half[..., 1].ravel(),
        upper=ends[..., 1].ravel(),
        label=f"{contrast.kind}, given the noise" if contrast.kind == "difference" else "",
    )


def _apparent(comparison: ReleaseComparison, parameter: str) -> Intervals:
    change = comparison.apparent[parameter].ravel()
    reach = 2.0 * comparison.noise_sd[parameter].ravel()
    return Intervals(
        lower=change - reach,
        middle=change,
        upper=change + reach,
        colour=NOISE,
        label="as it stands",
        is_dashed=True,
    )


def _recoloured(intervals: Intervals, colour: str) -> Intervals:
    return dataclasses.replace(intervals, colour=colour)


def _probabilities(axis: Axes, change: Contrast) -> None:
    """Write the probability of a rise beside every row."""
    for row, probability in enumerate(change.probability().ravel().tolist()):
        axis.annotate(
            f"P {probability:.2f}",
            (1.0, row),
            xycoords=axis.get_yaxis_transform(),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.0,
            color=QUIET,
            annotation_clip=False,
        )


def _in_logs(axis: Axes, ends: Floats) -> None:
    """Let halves and doubles stand equally far from 1, where no interval reaches 0."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator  # the plot extra

    low, high = float(np.min(ends)), float(np.max(ends))
    if not (low > 0.0 and np.isfinite(high)):
        return
    low, high = min(low, 0.8) / 1.15, max(high, 1.25) * 1.15
    axis.set_xscale("log")
    axis.set_xlim(low, high)
    steps = _RATIOS if high / low < _WIDE else _FEWER_RATIOS
    shown = [factor * step for factor in 10.0 ** np.arange(-12.0, 13.0) for step in steps]
    axis.xaxis.set_major_locator(FixedLocator([tick for tick in shown if low <= tick <= high]))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda tick, _: f"{tick:.6g}"))


def _reference(axis: Axes, at: float) -> None:
    only_across(axis)
    axis.axvline(at, color=QUIET, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
