"""The transition graph of a hidden Markov model: states on a circle, arrows between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from suffice.pipeline.ask.models.hidden_markov_fit import HiddenMarkovFit
    from suffice.typing import Floats

    Colours = list[tuple[float, float, float, float]]

_BEND, _LABEL_AT = 0.16, 0.3
"""Of arrows: how far they bend, and where their number stands, as parts of their length."""
LEAST_ARROW, _LEAST_LABEL = 0.05, 0.15
"""Transitions that are less probable have no arrow, or no number at it."""
_FEW_STATES = 5
"""Of up to so many states every arrow has its number."""


def draw_transitions(figure: Figure, fit: HiddenMarkovFit, colours: Colours) -> None:
    """Draw states on a circle, and arrows between them."""
    figure.set_size_inches(7.2, 3.6 if fit.n_states <= 2 else 7.4)
    axis = figure.subplots()
    axis.set_aspect("equal")
    axis.axis("off")
    n_states = fit.n_states
    angle = (np.pi if n_states == 2 else np.pi / 2) - 2 * np.pi * np.arange(n_states) / n_states
    place = np.stack([np.cos(angle), np.sin(angle)], axis=1) if n_states > 1 else np.zeros((1, 2))
    share, matrix = fit.state_share.mean(axis=0), fit.transitions.mean(axis=0)
    most = 0.30 if n_states <= 6 else 1.6 / n_states
    radius = np.maximum(most * np.sqrt(share / max(share.max(), 1e-9)), 0.055)
    _draw_arrows(axis, place, radius, matrix, share, colours)
    for state in range(n_states):
        axis.add_patch(_circle(place[state], radius[state], colours[state]))
        aside = np.cos(angle[state]) if n_states > 2 else 0.0
        outside = (
            place[state] * (1.04 + radius[state])
            if n_states > 2
            else place[state] - [0.0, radius[state] + 0.1]
        )
        big = radius[state] >= 0.09
        axis.text(
            float(place[state][0]),
            float(place[state][1]),
            f"{state + 1}",
            ha="center",
            va="center",
            color="white",
            fontsize="large" if big else "small",
            fontweight="bold",
            zorder=5,
        )
        axis.text(
            float(outside[0]),
            float(outside[1]),
            f"stays {matrix[state, state]:.2f}\n{100 * share[state]:.0f} % of cells",
            ha="center" if abs(aside) < 0.3 else "left" if aside > 0 else "right",
            va="center" if abs(aside) >= 0.3 or n_states <= 2 else "bottom" if place[state][1] > 0 else "top",
            fontsize="x-small",
            color="0.25",
            zorder=5,
        )
    reach = 1.0 + radius.max() + 0.2
    axis.set_xlim(-reach - 0.15, reach + 0.15)
    margin = radius.max() + 0.25
    axis.set_ylim(place[:, 1].min() - margin, place[:, 1].max() + margin)


def _circle(centre: Floats, radius: float, colour: tuple[float, float, float, float]) -> Any:
    from matplotlib.patches import Circle  # the plot extra

    return Circle((float(centre[0]), float(centre[1])), radius, color=colour, zorder=4)


def _draw_arrows(
    axis: Axes, place: Floats, radius: Floats, matrix: Floats, share: Floats, colours: Colours
) -> None:
    from matplotlib.patches import FancyArrowPatch  # the plot extra

    for state, other in np.argwhere(matrix >= LEAST_ARROW).tolist():
        if state == other:
            continue
        way = place[other] - place[state]
        length = float(np.hypot(*way))
        begin = place[state] + way / length * radius[state]
        end = place[other] - way / length * (radius[other] + 0.015)
        probability = float(matrix[state, other])
        axis.add_patch(
            FancyArrowPatch(
                tuple(begin),
                tuple(end),
                connectionstyle=f"arc3,rad={_BEND}",
                arrowstyle="-|>",
                mutation_scale=7 + 9 * probability,
                linewidth=0.6 + 7.0 * probability,
                color=colours[state],
                alpha=0.12 + 0.7 * min(1.0, float(share[state]) * len(share)),
                zorder=2,
                shrinkA=0,
                shrinkB=0,
            )
        )
        normal = np.array([way[1], -way[0]]) / length
        chord = end - begin
        label = (
            begin + _LABEL_AT * chord + normal * 2 * _LABEL_AT * (1.0 - _LABEL_AT) * _BEND * np.hypot(*chord)
        )
        if probability >= (_LEAST_LABEL if len(share) > _FEW_STATES else LEAST_ARROW):
            axis.text(
                float(label[0]),
                float(label[1]),
                f"{probability:.2f}",
                fontsize="xx-small",
                ha="center",
                va="center",
                zorder=6,
                color="0.15",
                bbox={"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none", "alpha": 0.85},
            )
