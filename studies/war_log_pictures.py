"""Pictures of the war logs' stand-ins: states over time, emissions of each state, transitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from studies.plotting import MARKERS, picture
from suffice.plots.style import COLOURS, GRID, QUIET, shortened_label

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from studies.event_log_states import States
    from studies.event_logs import EventLog
    from suffice.typing import Floats

MOST_NAMED = 6
"""Categories of a feature that have a row of their own."""
OTHERS = "all others"
STATE_COLOURS = ("#d7dde3", "#7fa6c9", "#173a5e")
"""Of states, three at most: unlike those of methods."""
RARE_SHOWN = FREQUENT_SHOWN = 8


def draw_states(
    path: Path, log: EventLog, maps: Mapping[str, NDArray[np.int64]], n_states: int, footer: str
) -> None:
    """Draw the state of every cell: a panel for each map, the regions with most events on top."""
    from matplotlib.colors import ListedColormap  # the plot extra
    from matplotlib.patches import Patch

    order = np.argsort(-log.counts[0].sum(axis=(1, 2)), kind="stable")
    colours = STATE_COLOURS[:n_states]
    last = len(log.times) - 1
    with picture(
        path,
        title=f"The state of every cell: {title_of(log)}",
        subtitle=(
            f"{len(log.regions)} regions, those with most events on top; time from left to right. "
            "State 1 has most cells without privacy"
        ),
        footer=footer,
        panels=len(maps),
        width=2.15,
        height=max(4.6, 0.125 * len(log.regions)),
    ) as axes:
        for axis, (name, states) in zip(axes, maps.items(), strict=True):
            axis.imshow(
                states[order],
                cmap=ListedColormap(list(colours)),
                vmin=-0.5,
                vmax=n_states - 0.5,
                aspect="auto",
                interpolation="nearest",
            )
            axis.set_title(name, fontsize="small")
            axis.set_xticks([0, last], [log.times[0], log.times[last]])
            first, final = axis.get_xticklabels()
            first.set_horizontalalignment("left")
            final.set_horizontalalignment("right")
            axis.set_yticks([])
            axis.grid(visible=False)
        axes[0].set_yticks(range(len(order)), [log.regions[place] for place in order], fontsize=5.5)
        axes[0].tick_params(axis="y", length=0, pad=2)
        patches = [
            Patch(facecolor=colour, edgecolor=QUIET, linewidth=0.4, label=f"state {place + 1}")
            for place, colour in enumerate(colours)
        ]
        axes[-1].legend(handles=patches, loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize="small")


def draw_state(path: Path, log: EventLog, fits: Mapping[str, States], state: int, footer: str) -> None:
    """Draw the emissions of one state: a panel for each feature, a mark for each method."""
    with picture(
        path,
        title=f"State {state + 1} of {title_of(log)}: how probable each category is",
        subtitle="The most probable categories without privacy, and all others together",
        footer=footer,
        panels=len(log.features),
        width=2.55,
        height=3.6,
    ) as axes:
        for feature, axis in enumerate(axes):
            _draw_feature(axis, log, fits, state, feature)
        axes[-1].legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize="small")


def _draw_feature(axis: Axes, log: EventLog, fits: Mapping[str, States], state: int, feature: int) -> None:
    reference = next(iter(fits.values())).emissions[feature][state]
    order = np.argsort(-reference, kind="stable")
    named, others = order[:MOST_NAMED], order[MOST_NAMED:]
    labels = [shortened_label(log.categories[feature][place], 24) for place in named]
    labels += [OTHERS] if others.size else []
    chances = []
    for states in fits.values():
        probabilities = states.emissions[feature][state]
        chances.append([*probabilities[named], *([probabilities[others].sum()] if others.size else [])])
    places: Floats = np.arange(len(labels), dtype=np.float64)
    axis.hlines(places, np.min(chances, axis=0), np.max(chances, axis=0), color=GRID, linewidth=3, zorder=1)
    for row, (method, values) in enumerate(zip(fits, chances, strict=True)):
        _draw_marks(axis, values, places + 0.13 * (row - (len(fits) - 1) / 2), row, method)
    axis.set_yticks(places, labels, fontsize="small")
    axis.set_ylim(len(labels) - 0.5, -0.5)
    axis.set_xlim(left=0.0)
    axis.set_title(log.features[feature].replace("_", " "))
    axis.set_xlabel("chance")


def _draw_marks(axis: Axes, values: Sequence[float], places: Floats, row: int, name: str) -> None:
    axis.plot(
        values,
        places,
        linestyle="none",
        marker=MARKERS[row],
        markersize=5,
        color=COLOURS[row],
        markeredgecolor="white",
        markeredgewidth=0.5,
        label=name,
        zorder=2 + row,
    )


def draw_intervals(
    path: Path, log: EventLog, fits: Mapping[str, States], state: int, feature: int, footer: str
) -> None:
    """Draw 95 % intervals of one feature in one state: of frequent categories, and of rare ones."""
    names = list(fits)
    exact, clipped = (fits[name].emissions[feature][state] for name in names[:2])
    order = np.argsort(-exact, kind="stable")
    rare = order[FREQUENT_SHOWN:]
    raised = rare[np.argsort(-(clipped[rare] / exact[rare]), kind="stable")][:RARE_SHOWN]
    panels = {
        "the most frequent": order[:FREQUENT_SHOWN],
        "those that clipping raises most": raised[np.argsort(-exact[raised])],
    }
    with picture(
        path,
        title=f"What a reader would believe: state {state + 1} of {title_of(log)}",
        subtitle=f"{log.features[feature].replace('_', ' ').capitalize()}: chances with their 95 % intervals",
        footer=footer,
        panels=len(panels),
        width=5.0,
        height=4.2,
    ) as axes:
        for axis, (title, shown) in zip(axes, panels.items(), strict=True):
            for row, (method, states) in enumerate(fits.items()):
                mean, low, high = (
                    each[feature][state][shown] for each in (states.emissions, states.lower, states.upper)
                )
                places: Floats = np.arange(len(shown), dtype=np.float64) + 0.24 * (row - (len(fits) - 1) / 2)
                axis.hlines(places, low, high, color=COLOURS[row], linewidth=2)
                _draw_marks(axis, mean.tolist(), places, row, method)
            labels = [shortened_label(log.categories[feature][place], 20) for place in shown]
            axis.set_yticks(np.arange(len(shown)), labels)
            axis.set_ylim(len(shown) - 0.5, -0.5)
            axis.set_xlim(left=0.0)
            axis.set_title(title)
            axis.set_xlabel("chance")
        axes[1].legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize="small")


def draw_transitions(path: Path, log: EventLog, fits: Mapping[str, States], footer: str) -> None:
    """Draw the chances of the next state: a panel for each method."""
    with picture(
        path,
        title=f"The chance of the next state: {title_of(log)}",
        subtitle="From the state of the row to that of the column",
        footer=footer,
        panels=len(fits),
        width=2.15,
        height=2.5,
    ) as axes:
        for axis, (method, states) in zip(axes, fits.items(), strict=True):
            axis.imshow(states.transitions, cmap="Blues", vmin=0.0, vmax=1.0)
            for (row, column), chance in np.ndenumerate(states.transitions):
                shade = "white" if chance > 0.5 else "black"
                axis.text(column, row, f"{chance:.2f}", ha="center", va="center", color=shade)
            names = [str(state + 1) for state in range(len(states.transitions))]
            axis.set_xticks(range(len(names)), names)
            axis.set_yticks(range(len(names)), names)
            axis.set_title(method, fontsize="small")
            axis.grid(visible=False)


def title_of(log: EventLog) -> str:
    """Return what a log is called in pictures."""
    return f"{log.source}, {log.median_rows:,.0f} a cell"
