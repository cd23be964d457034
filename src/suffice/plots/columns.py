"""Pictures of a histogram's column: density and distribution function, or quantiles of many cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.ask.posterior.curves import in_words
from suffice.pipeline.ask.posterior.shown_columns import MOST_CELLS, SHOWN, cell_names, seen
from suffice.plots.rows import HEIGHT, Intervals, draw_intervals
from suffice.plots.style import (
    COLOURS,
    POSTERIOR,
    QUIET,
    TEXT,
    finish,
    new_figure,
    save,
    shortened_label,
    styled,
)

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.math.engines.histogram.column_law import ColumnLaw, Estimate
    from suffice.typing import Floats

_PANEL = 2.1
"""Inches of a cell."""
_ROOM = 1.15
"""Of the highest density, for labels."""


def plot_column(
    posterior: Posterior,
    path: Path,
    *,
    title: str,
    footer: str,
    draws: int,
    rng: np.random.Generator,
    mass: float,
) -> None:
    """Draw the density and the distribution function of every cell's column, or quantiles of many cells.

    Parameters
    ----------
    posterior : Posterior
        Noise-aware, of a histogram.
    path, title, footer, draws, rng, mass
        As in ``plot_posterior``.
    """
    law = posterior.column(draws=draws, rng=rng)
    names = cell_names(posterior, len(law.lower))
    words = _axis(posterior)
    with styled():
        if len(names) > MOST_CELLS:
            figure = new_figure(7.2, 0.75 + len(names) * HEIGHT * 1.6)
            axis = figure.subplots()
            kinds = [
                _intervals(law.quantile(q, mass), COLOURS[at], f"{100 * q:g} % quantile")
                for at, q in enumerate(SHOWN)
            ]
            draw_intervals(axis, names, kinds)
            axis.set_xlabel(words)
            what = f"Quantiles of each cell, with {100 * mass:g} % intervals"
        else:
            figure = new_figure(9.6, 0.5 + _PANEL * len(names))
            axes = figure.subplots(len(names), 2, squeeze=False)
            density, below = law.density(mass), law.distribution_function(mass)
            low, high = seen(law, mass)
            for cell, (left, right) in enumerate(axes):
                _draw_density(left, law, density, cell)
                _draw_distribution(right, law, below, cell, mass)
                for axis in (left, right):
                    axis.set_xlim(low, high)
                left.set_title(shortened_label(names[cell], 40))
            axes[-1][0].set_xlabel(words)
            axes[-1][1].set_xlabel(words)
            what = (
                f"Left the density, a step for each bin; right the share of values up to each number. Bands: "
                f"{100 * mass:g} % intervals. Bars: intervals of the 10, 50 and 90 % quantiles"
            )
            if np.any(law.lower == law.upper):
                what += ". Dotted lines: single values, with their shares"
        finish(figure, title, f"Noise-aware posterior, prior {posterior.prior}\n{what}", footer)
        save(figure, path)


def _axis(posterior: Posterior) -> str:
    """Return what the column is, with its unit where its owner says one."""
    column = in_words(posterior, "probability").removeprefix("probability of ")
    unit = posterior.about.words(posterior.statistic).unit
    return f"{posterior.about.label(posterior.statistic)}, {unit}" if unit else column


def _intervals(of: Estimate, colour: str, label: str) -> Intervals:
    return Intervals(lower=of.lower, middle=of.median, upper=of.upper, colour=colour, label=label)


def _draw_density(axis: Axes, law: ColumnLaw, density: Estimate, cell: int) -> None:
    inner = np.flatnonzero(law.upper > law.lower)
    edges = np.append(law.lower[inner], law.upper[inner[-1]])
    lower, middle, upper = (of[cell, inner] for of in (density.lower, density.median, density.upper))
    axis.fill_between(
        edges, _ends(lower), _ends(upper), step="post", color=POSTERIOR, alpha=0.25, linewidth=0.0
    )
    axis.step(edges, _ends(middle), where="post", color=POSTERIOR, linewidth=1.4)
    # A single value has a share and no density: its line goes to the top, whatever that is.
    top = _ROOM * float(np.nanmax(upper, initial=0.0)) or 1.0
    for atom in np.flatnonzero(law.upper == law.lower):
        axis.axvline(law.lower[atom], color=TEXT, linewidth=1.4, linestyle=":")
        axis.annotate(
            f"{law.lower[atom]:g}: {100 * float(density.median[cell, atom]):.2g} %",
            (law.lower[atom], top),
            xytext=(5.0, -10.0),
            textcoords="offset points",
            fontsize=8.0,
        )
    axis.set_ylim(0.0, top)
    axis.set_ylabel("density")


def _ends(values: Floats) -> Floats:
    """Repeat the last of the values of steps, whose edges are one more."""
    return np.append(values, values[-1])


def _draw_distribution(axis: Axes, law: ColumnLaw, below: Estimate, cell: int, mass: float) -> None:
    edges = np.append(law.lower[0], law.upper)
    lower, middle, upper = (np.append(0.0, of[cell]) for of in (below.lower, below.median, below.upper))
    axis.fill_between(edges, lower, upper, color=POSTERIOR, alpha=0.25, linewidth=0.0)
    axis.plot(edges, middle, color=POSTERIOR, linewidth=1.4)
    for q in SHOWN:
        of = law.quantile(q, mass)
        axis.hlines(q, of.lower[cell], of.upper[cell], color=TEXT, linewidth=2.2)
        axis.axhline(q, color=QUIET, linewidth=0.5, linestyle=":")
    axis.set_ylim(0.0, 1.0)
    axis.set_yticks([0.0, *SHOWN, 1.0])
    axis.set_ylabel("share up to")
