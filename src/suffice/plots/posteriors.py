"""Pictures of posteriors: densities of a few cells, a forest of intervals of many, a band of very many."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.borrowing.pooled_posterior import PooledPosterior
from suffice.pipeline.ask.inference.posterior_terms import NOISE_AWARE, PLUG_IN
from suffice.pipeline.ask.posterior.curves import (
    curve_points,
    in_words,
    on_shared_axes,
    prior_points,
    smoothing_of,
    spans_decades,
)
from suffice.pipeline.ask.posterior.notes import conflict_lines
from suffice.pipeline.ask.posterior.shown_columns import shows_column
from suffice.pipeline.math.parameters.parameter_posterior import MASS
from suffice.plots.columns import plot_column
from suffice.plots.moved import plot_moved
from suffice.plots.pooled import draw_pooled
from suffice.plots.rows import (
    HEIGHT,
    TALL,
    Curves,
    Intervals,
    draw_curves,
    draw_intervals,
    draw_point_masses,
    draw_ranked,
    put_in_logs,
)
from suffice.plots.style import BESIDE, POSTERIOR, PRIOR, check_plot, finish, new_figure, save, styled

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.typing import Cells, Floats

DENSITY = "density"
FOREST = "forest"
ROBUSTNESS = "robustness"
MOST_DENSITIES = 12
MOST_INTERVALS = 200
_POINTS = 161
_BINS = 60


def check_kind(kind: str | None) -> None:
    """Refuse a kind of picture that there is not.

    Raises
    ------
    UsageError
    """
    if kind not in {None, DENSITY, FOREST, ROBUSTNESS}:
        message = f"kind of plot {kind!r} (--plot-kind): there are {DENSITY}, {FOREST} and {ROBUSTNESS}"
        raise UsageError(message)


def plot_posterior(  # noqa: C901, PLR0915 - a kind of picture after the other
    posterior: Posterior,
    path: Path,
    *,
    title: str,
    footer: str,
    draws: int,
    rng: np.random.Generator,
    mass: float = MASS,
    interval: str | None = None,
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
    title, footer : str
        Over the picture, and its sources below.
    draws : int
        Posterior draws per cell, where quantiles rest on draws.
    rng : numpy.random.Generator
        For the draws.
    mass : float
        Of the intervals.
    interval : {"central", "highest-density"}, optional
        Their kind, the posterior's default otherwise; middle halves are central.
    kind : {"density", "forest", "robustness"}, optional
        A density per cell and category, or the median, the middle half and the interval of each, one under
        the other, or how far mean and interval move; densities for at most 12 of them otherwise.
        Of a histogram, where none is asked for, the density and the distribution function of the column.
        Of more than 200 a forest has no keys: medians and intervals stand in the order of the medians, as
        the picture then says.
    beside : Posterior, optional
        Of the same cells by another method, drawn beside it.

    Raises
    ------
    UsageError
        Where the ending or the kind is another, or there are too many cells to draw as densities.
    MissingExtraError
        Where matplotlib is not installed.
    """
    check_plot(path)
    check_kind(kind)
    if kind == ROBUSTNESS:
        if beside is not None:
            message = f"--beside: a picture of the kind {ROBUSTNESS} shows one method"
            raise UsageError(message)
        plot_moved(posterior, path, title=title, footer=footer, draws=draws, rng=rng, mass=mass)
        return
    if kind is None and beside is None and shows_column(posterior):
        plot_column(posterior, path, title=title, footer=footer, draws=draws, rng=rng, mass=mass)
        return
    is_plain = kind in {None, FOREST} and beside is None
    if is_plain and isinstance(posterior, PooledPosterior) and posterior.entries == 1:
        _plot_pooled(posterior, path, title, footer, draws=draws, rng=rng, mass=mass, interval=interval)
        return
    labels = [posterior.entry_names(parameter) for parameter in posterior.parameters]
    most = max(map(len, labels))
    chosen = kind or (DENSITY if most <= MOST_DENSITIES else FOREST)
    if chosen == DENSITY and most > MOST_DENSITIES:
        message = f"--plot: {most} cells are too many to draw as a {chosen}: keep some with --where"
        raise UsageError(message)
    is_ranked = most > MOST_INTERVALS
    height = 3.6 if is_ranked else 0.75 + most * (TALL if chosen == DENSITY else HEIGHT) + (most == 1) * 1.4
    from_draws = False
    with styled():
        shared = [on_shared_axes(posterior, parameter) for parameter in posterior.parameters]
        across = sum(map(len, shared))
        figure = new_figure(6.8 * across if is_ranked else max(6.8, 5.6 * across), height)
        axes = iter(figure.subplots(1, across, squeeze=False)[0])
        for parameter, names, parts in zip(posterior.parameters, labels, shared, strict=True):
            shown = intervals_of(posterior, parameter, mass, draws, rng, interval=interval)
            other = (
                None
                if beside is None
                else intervals_of(beside, parameter, mass, draws, rng, interval=interval)
            )
            kinds = [shown] if other is None else [shown, other]
            marks = [np.stack([each.lower, each.upper], axis=-1) for each in kinds]
            in_logs = spans_decades(posterior, parameter, np.concatenate(marks))
            for of, rows in parts:
                axis = next(axes)
                if in_logs:
                    put_in_logs(axis, upwards=is_ranked)
                words = ": ".join(filter(None, (in_words(posterior, parameter), of)))
                axis_label = words + (" (logarithmic axis)" if in_logs else "")
                part = [each.take(rows) for each in kinds]
                if is_ranked:
                    draw_ranked(axis, part, axis_label)
                    continue
                axis.set_xlabel(axis_label)
                some_names = [names[row] for row in rows]
                if chosen == FOREST:
                    draw_intervals(axis, some_names, part)
                    continue
                from_draws |= _draw_densities(
                    axis, parameter, some_names, posterior, beside, part[0], rows, draws, rng, in_logs=in_logs
                )
        about = f"{100 * mass:g} % {posterior.interval_kind(interval)} interval"
        subtitle = _subtitle(posterior, chosen, about, is_ranked, from_draws)
        shown_beside = [] if beside is None else [beside]
        finish(figure, title, subtitle, footer, conflicts_of([posterior, *shown_beside]))
        save(figure, path)


def _plot_pooled(
    together: PooledPosterior,
    path: Path,
    title: str,
    footer: str,
    *,
    draws: int,
    rng: np.random.Generator,
    mass: float,
    interval: str | None,
) -> None:
    """Draw every cell alone beside itself pooled."""
    kind = together.interval_kind(interval)
    with styled():
        figure, order = draw_pooled(
            together,
            lambda posterior, parameter: intervals_of(posterior, parameter, mass, draws, rng, interval=kind),
        )
        population = f", population {together.population}" if together.pools else ""
        subtitle = (
            f"{(together.rows_of or '').partition(';')[0]}{population}\n"
            f"Medians and {100 * mass:g} % {kind} intervals of each cell alone and together, {order}"
        )
        finish(figure, title, subtitle, footer, conflicts_of([together]))
        save(figure, path)


def conflicts_of(posteriors: Iterable[Posterior]) -> list[str]:
    """Return what contradicts the intervals of posteriors, each sentence once."""
    known = (posterior for posterior in posteriors if posterior.observed)
    return list(dict.fromkeys(line for posterior in known for line in conflict_lines(posterior)))


def intervals_of(
    posterior: Posterior,
    parameter: str,
    mass: float,
    draws: int,
    rng: np.random.Generator,
    label: str = "",
    *,
    interval: str | None = None,
) -> Intervals:
    """Return medians, middle halves and intervals of every entry of a parameter."""
    marks = posterior.five_numbers(parameter, mass, interval=interval, draws=draws, rng=rng).reshape(-1, 5)
    lower, first, middle, third, upper = marks.T
    return Intervals(
        lower=lower,
        first=first,
        middle=middle,
        third=third,
        upper=upper,
        colour=colour_of(posterior),
        label=label or posterior.method,
        is_dashed=posterior.method == PLUG_IN,
    )


def colour_of(posterior: Posterior) -> str:
    """Return the colour of a method."""
    return POSTERIOR if posterior.method == NOISE_AWARE else BESIDE


def curves_of(
    posterior: Posterior, parameter: str, draws: int, rng: np.random.Generator, *, in_logs: bool = False
) -> tuple[Curves, bool]:
    """Return densities of every entry of a parameter, or of its logarithm; and whether they are of draws."""
    dashed = "-" if posterior.method == NOISE_AWARE else "--"
    points = curve_points(posterior, parameter, _POINTS, in_logs=in_logs, draws=draws, rng=rng)
    density = posterior.density(parameter, points)
    if density is not None:
        # The density of log x is x times that of x.
        density = density * points if in_logs else density
        flat = points.reshape(-1, _POINTS), density.reshape(-1, _POINTS)
        colour, name = colour_of(posterior), posterior.method
        return Curves(points=flat[0], density=flat[1], colour=colour, line=dashed, label=name), False
    drawn = posterior.sample(draws, rng)[parameter].reshape(draws, -1).T
    histograms = [_histogram(entry_draws, in_logs=in_logs) for entry_draws in drawn]
    return (
        Curves(
            points=np.stack([edges for edges, _ in histograms]),
            density=np.stack([heights for _, heights in histograms]),
            colour=colour_of(posterior),
            line=dashed,
            label=posterior.method,
        ),
        True,
    )


def _draw_densities(
    axis: Axes,
    parameter: str,
    names: Sequence[str],
    posterior: Posterior,
    beside: Posterior | None,
    shown: Intervals,
    rows: Cells,
    draws: int,
    rng: np.random.Generator,
    *,
    in_logs: bool,
) -> bool:
    """Draw the prior, the posterior beside and the posterior; say whether any is of draws."""
    curves, from_draws = curves_of(posterior, parameter, draws, rng, in_logs=in_logs)
    kinds = [_filled(curves)]
    if beside is not None:
        other, also = curves_of(beside, parameter, draws, rng, in_logs=in_logs)
        kinds.append(other)
        from_draws |= also
    everywhere = prior_points(curves.points, _POINTS, in_logs=in_logs)
    prior = posterior.prior_density(parameter, everywhere)
    if prior is not None:
        each = prior.reshape(-1, len(everywhere))
        density = each[np.arange(len(curves.points)) % len(each)] * (everywhere if in_logs else 1.0)
        points = np.broadcast_to(everywhere, density.shape)
        kinds.append(Curves(points=points, density=density, colour=PRIOR, line=":", label="prior"))
    masses = {value: chances[rows] for value, chances in posterior.point_masses.items()}
    draw_point_masses(axis, masses, colour_of(posterior))
    draw_curves(axis, names, [kind.take(rows) for kind in kinds], shown)
    return from_draws


def _filled(curves: Curves) -> Curves:
    return dataclasses.replace(curves, is_filled=True)


def _histogram(sample: Floats, *, in_logs: bool) -> tuple[Floats, Floats]:
    """The outline of a histogram, of logarithms where they are drawn: positions and heights, each twice."""
    sample = np.log(sample) if in_logs else sample
    low, high = np.quantile(sample, [0.001, 0.999])
    reach = (float(low), float(max(high, np.nextafter(low, np.inf))))
    density, edges = np.histogram(sample, bins=_BINS, range=reach, density=True)
    points = np.repeat(np.exp(edges) if in_logs else edges, 2)[1:-1]
    return points, np.repeat(density.astype(np.float64), 2)


def _subtitle(posterior: Posterior, kind: str, interval: str, is_ranked: bool, from_draws: bool) -> str:
    caution = ", not calibrated" if posterior.method == PLUG_IN else ""
    method = (
        f"{posterior.method[0].upper()}{posterior.method[1:]} posterior{caution}, prior {posterior.prior}"
    )
    if is_ranked:
        return f"{method}\nEvery cell's median and {interval}, in the order of the medians"
    if kind == FOREST:
        return f"{method}\nMedians, middle halves and {interval}s"
    smoothed = f", {said}" if (said := smoothing_of(posterior)) else ""
    of = "Histograms, from draws" if from_draws else f"Densities{smoothed}"
    if posterior.point_masses:
        of += ", of what is at no point mass; dots: probabilities of single values, 1 at full height"
    return f"{method}\n{of}; each row has a height of its own. Below each: median, middle half, {interval}"
