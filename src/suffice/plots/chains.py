"""Pictures of Markov chains: transitions as a heat map, the stationary distribution with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.posterior.posterior import NOISE_AWARE
from suffice.pipeline.math.parameters.contrasts import in_words
from suffice.plots.rows import Intervals, draw_intervals
from suffice.plots.style import POSTERIOR, check_plot, finish, new_figure, save, styled

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from suffice.pipeline.ask.models.chain import MarkovChains
    from suffice.typing import Floats

_MOST_CELLS = 8
_MOST_NUMBERS = 12


def plot_chain(chain: MarkovChains, path: Path, *, title: str, footer: str, mass: float) -> None:
    """Draw each cell's mean transition matrix and its stationary distribution into a PNG or SVG file.

    Raises
    ------
    UsageError
        Where the ending is another, or there are more than 8 cells.
    MissingExtraError
        Where matplotlib is not installed.
    """
    check_plot(path)
    n_cells = chain.posterior.n_groups
    if n_cells > _MOST_CELLS:
        message = f"--plot: {n_cells} cells are too many: keep at most {_MOST_CELLS} with --where"
        raise UsageError(message)
    side = max(3.4, 0.45 * len(chain.states))
    law = chain.stationary().summary(mass)
    with styled():
        figure = new_figure(2.0 * side + 1.2, (side + 0.3) * n_cells)
        axes = figure.subplots(n_cells, 2, squeeze=False)
        for cell, (matrix, shares) in enumerate(axes):
            _draw_matrix(figure, matrix, chain, cell)
            _draw_shares(shares, chain.states, {name: values[cell] for name, values in law.items()}, mass)
        caution = "" if chain.posterior.method == NOISE_AWARE else ", not calibrated"
        subtitle = f"{chain.posterior.method} posterior{caution}, prior {chain.posterior.prior}"
        finish(figure, title, f"{subtitle[0].upper()}{subtitle[1:]}", footer)
        save(figure, path)


def _draw_matrix(figure: Figure, axis: Axes, chain: MarkovChains, cell: int) -> None:
    """Draw the mean probabilities of the next state."""
    states, mean = list(chain.states), chain.transitions.mean[cell]
    positions = np.arange(len(states))
    image = axis.imshow(mean, vmin=0.0, vmax=1.0, cmap="Blues")
    axis.grid(visible=False)
    axis.spines[:].set_visible(False)
    axis.set_xticks(positions, states, rotation=90)
    axis.set_yticks(positions, states)
    axis.set_xlabel("to")
    axis.set_ylabel("from")
    for i, j in np.ndindex(mean.shape if len(states) <= _MOST_NUMBERS else (0, 0)):
        value = float(mean[i, j])
        colour = "white" if value > 0.6 else "black"
        axis.text(j, i, f"{value:.2f}", ha="center", va="center", color=colour)
    bar = figure.colorbar(image, ax=axis, label="mean probability", shrink=0.82)
    bar.outline.set_visible(False)
    axis.set_title(in_words({column: keys[cell] for column, keys in chain.posterior.groups.items()}))


def _draw_shares(axis: Axes, states: Sequence[str], law: dict[str, Floats], mass: float) -> None:
    """Draw the shares of time in the long run."""
    shares = Intervals(lower=law["lower"], middle=law["median"], upper=law["upper"], colour=POSTERIOR)
    draw_intervals(axis, states, [shares])
    axis.set_xlim(left=0.0)
    axis.set_xlabel(f"share of time in the long run, {100 * mass:g} % interval")
