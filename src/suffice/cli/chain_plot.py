"""Plots of Markov chains: the transition matrix as a heat map beside the stationary law with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.cli.plotting import check_plot, save
from suffice.errors import UsageError
from suffice.pipeline.posterior.contrasts import in_words
from suffice.pipeline.posterior.posterior import NOISE_AWARE

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.models.chain import Chain

_MOST_CELLS = 8
_MOST_NUMBERS = 12


def plot_chain(chain: Chain, path: Path, *, title: str, mass: float) -> None:
    """Draw each cell's mean transition matrix and its stationary law into a PNG or SVG file.

    Raises
    ------
    UsageError
        Where the ending is another, or there are more than 8 cells.
    MissingExtraError
        Where matplotlib is not installed.
    """
    figure_class = check_plot(path)
    posterior, states = chain.posterior, list(chain.states)
    if posterior.n_groups > _MOST_CELLS:
        message = f"--plot: {posterior.n_groups} cells are too many: keep at most {_MOST_CELLS} with --where"
        raise UsageError(message)
    side = max(3.5, 0.45 * len(states))
    figure = figure_class(figsize=(2 * side + 1.0, side * posterior.n_groups + 0.8), layout="constrained")
    axes = figure.subplots(posterior.n_groups, 2, squeeze=False)
    means, law = chain.transitions.mean, chain.stationary().summary(mass)
    positions = np.arange(len(states))
    for cell, (matrix, shares) in enumerate(axes):
        image = matrix.imshow(means[cell], vmin=0.0, vmax=1.0, cmap="Blues")
        matrix.set_xticks(positions, states, rotation=90)
        matrix.set_yticks(positions, states)
        matrix.set_xlabel("to")
        matrix.set_ylabel("from")
        for i, j in np.ndindex(means[cell].shape if len(states) <= _MOST_NUMBERS else (0, 0)):
            value = means[cell, i, j]
            matrix.text(
                j, i, f"{value:.2f}", ha="center", va="center", color="white" if value > 0.6 else "black"
            )
        figure.colorbar(image, ax=matrix, label="mean probability")
        shares.hlines(positions, law["lower"][cell], law["upper"][cell], linewidth=1.5, color="C0")
        shares.plot(law["median"][cell], positions, "o", markersize=4, color="C0")
        shares.set_yticks(positions, states)
        shares.set_ylim(len(states) - 0.5, -0.5)
        shares.spines[["top", "right"]].set_visible(False)
        shares.set_xlim(left=0.0)
        shares.set_xlabel(f"share of time in the long run, {100 * mass:g} % interval")
        matrix.set_title(in_words({column: keys[cell] for column, keys in posterior.groups.items()}))
    caution = "" if posterior.method == NOISE_AWARE else ", not calibrated"
    figure.suptitle(
        f"{title}\n{posterior.method} posterior{caution}, prior {posterior.prior}", fontsize="medium"
    )
    save(figure, path)
