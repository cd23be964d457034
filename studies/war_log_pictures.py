"""Pictures of the war logs' stand-ins: states over time, emissions of each state, transitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from studies.plotting import picture
from suffice.plots.style import COLOURS, shortened_label

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from studies.event_log_states import States
    from studies.event_logs import EventLog

MOST_NAMED = 6
"""Categories of a feature that have bars of their own."""
OTHERS = "all others"


def draw_states(
    path: Path, log: EventLog, maps: Mapping[str, NDArray[np.int64]], n_states: int, footer: str
) -> None:
    """Draw the state of every cell: a panel for each map, regions down, time across."""
    from matplotlib.colors import ListedColormap  # noqa: PLC0415 - the plot extra
    from matplotlib.patches import Patch  # noqa: PLC0415

    colours = COLOURS[:n_states]
    with picture(
        path,
        title="The state of every cell of region and time",
        subtitle=f"{log.source}, {len(log.regions)} regions, {log.times[0]} to {log.times[-1]}",
        footer=footer,
        panels=len(maps),
        width=3.1,
        height=4.6,
    ) as axes:
        for axis, (name, states) in zip(axes, maps.items(), strict=True):
            axis.imshow(
                states,
                cmap=ListedColormap(list(colours)),
                vmin=-0.5,
                vmax=n_states - 0.5,
                aspect="auto",
                interpolation="nearest",
            )
            axis.set_title(name, fontsize="small")
            places = np.linspace(0, len(log.times) - 1, min(4, len(log.times))).round().astype(int)
            axis.set_xticks(places, [log.times[place] for place in places], fontsize="x-small")
            axis.set_yticks([])
            axis.grid(visible=False)
        axes[0].set_ylabel("region")
        patches = [Patch(color=colour, label=f"state {place + 1}") for place, colour in enumerate(colours)]
        axes[-1].legend(handles=patches, loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize="x-small")


def draw_state(path: Path, log: EventLog, found: Mapping[str, States], state: int, footer: str) -> None:
    """Draw the emissions of one state: a panel for each feature, bars for each method."""
    with picture(
        path,
        title=f"State {state + 1}: how probable each category is",
        subtitle=f"{log.source}; the most probable categories without privacy, and all others together",
        footer=footer,
        panels=len(log.features),
        width=3.2,
        height=4.2,
    ) as axes:
        for feature, axis in enumerate(axes):
            _draw_feature(axis, log, found, state, feature)
        axes[-1].legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize="x-small")


def _draw_feature(axis: Axes, log: EventLog, found: Mapping[str, States], state: int, feature: int) -> None:
    reference = next(iter(found.values())).emissions[feature][state]
    order = np.argsort(-reference, kind="stable")
    named, others = order[:MOST_NAMED], order[MOST_NAMED:]
    labels = [shortened_label(log.categories[feature][place], 16) for place in named]
    labels += [OTHERS] if others.size else []
    height = 0.8 / len(found)
    for row, (method, states) in enumerate(found.items()):
        chances = states.emissions[feature][state]
        bars = [*chances[named], *([chances[others].sum()] if others.size else [])]
        offsets = np.arange(len(bars)) + (row - (len(found) - 1) / 2) * height
        axis.barh(offsets, bars, height=height, color=COLOURS[row], label=method)
    axis.set_yticks(np.arange(len(labels)), labels, fontsize="x-small")
    axis.invert_yaxis()
    axis.set_title(log.features[feature].replace("_", " "), fontsize="small")
    axis.set_xlabel("chance")


def draw_transitions(path: Path, log: EventLog, found: Mapping[str, States], footer: str) -> None:
    """Draw the chances of the next state: a panel for each method."""
    with picture(
        path,
        title="The chance of the next state",
        subtitle=f"{log.source}; from the state of the row to that of the column",
        footer=footer,
        panels=len(found),
        width=2.7,
        height=3.2,
    ) as axes:
        for axis, (method, states) in zip(axes, found.items(), strict=True):
            axis.imshow(states.transitions, cmap="Blues", vmin=0.0, vmax=1.0)
            for (row, column), chance in np.ndenumerate(states.transitions):
                shade = "white" if chance > 0.5 else "black"
                axis.text(column, row, f"{chance:.2f}", ha="center", va="center", color=shade)
            names = [str(state + 1) for state in range(len(states.transitions))]
            axis.set_xticks(range(len(names)), names)
            axis.set_yticks(range(len(names)), names)
            axis.set_title(method, fontsize="x-small")
            axis.grid(visible=False)
