"""Pictures of a fitted hidden Markov model: states over time, what they emit, how they follow, the sampler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import MissingExtraError
from suffice.pipeline.posterior.draws import MASS
from suffice.pipeline.posterior.parameter_posterior import ends_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from suffice.pipeline.models.hidden_markov_fit import HiddenMarkovFit
    from suffice.typing import Floats

    Colours = list[tuple[float, ...]]

FIGURES = ("states", "emissions", "transitions", "trace")
_MOST_NAMED_CHAINS, _MOST_NAMED_TIMES = 120, 24
_MOST_NAMED_CATEGORIES = 60
_LEAST_ARROW = 0.03
"""Transitions that are less probable have no arrow."""


def state_figures(fit: HiddenMarkovFit, title: str) -> dict[str, Figure]:
    """Return the pictures of a fit by name: ``states``, ``emissions``, ``transitions`` and ``trace``.

    Raises
    ------
    MissingExtraError
        Where matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - the plot extra
    except ModuleNotFoundError:
        raise MissingExtraError("plots of models", "plot") from None
    colours = _colours(fit.n_states)
    draw = {"states": _states, "emissions": _emissions, "transitions": _transitions, "trace": _trace}
    figures = {}
    for name in FIGURES:
        figure = Figure(layout="constrained")
        draw[name](figure, fit, colours)
        figure.suptitle(f"{title}\n{_subtitle(fit, name)}", fontsize="medium")
        figures[name] = figure
    return figures


def _subtitle(fit: HiddenMarkovFit, name: str) -> str:
    texts = {
        "states": "most probable path; the paler a cell, the less sure its state; dotted: not observed",
        "emissions": "posterior means and 95 % intervals by state; grey: all cells together",
        "transitions": f"area: share of cells; width: probability of the next state (from {_LEAST_ARROW:g} on)",
        "trace": "log joint of parameters, states and released counts, sweep by sweep",
    }
    method = "" if fit.settings.method == "noise-aware" else f"{fit.settings.method}, not calibrated: "
    return method + texts[name]


def _colours(n_states: int) -> Colours:
    """Return one colour a state, told apart as well as so many can be."""
    from matplotlib import colormaps  # noqa: PLC0415 - the plot extra

    if n_states <= 10:
        return [tuple(colormaps["tab10"](state)) for state in range(n_states)]
    if n_states <= 20:
        return [tuple(colormaps["tab20"](state)) for state in range(n_states)]
    return [tuple(colormaps["turbo"](share)) for share in np.linspace(0.03, 0.97, n_states)]


def _states(figure: Figure, fit: HiddenMarkovFit, colours: Colours) -> None:
    """Draw a heat map of chains and time steps."""
    table = fit.table
    figure.set_size_inches(
        min(24.0, max(7.0, 0.16 * table.n_times + 2.5)), min(40.0, max(2.6, 0.15 * table.n_chains + 1.8))
    )
    axis = figure.subplots()
    path = fit.most_probable_path
    shape = (table.n_chains, table.n_times, fit.n_states)
    sure = np.take_along_axis(fit.state_probability.reshape(shape), path[:, :, None], axis=2)
    least = 1.0 / fit.n_states
    weight = 0.15 + 0.85 * np.clip((sure - least) / max(1.0 - least, 1e-9), 0.0, 1.0)
    if fit.n_states == 1:
        weight = np.ones_like(sure)
    image = 1.0 - weight * (1.0 - np.array(colours)[path][:, :, :3])
    axis.imshow(image, aspect="auto", interpolation="nearest")
    chains, times = np.nonzero(~table.counts.is_observed)
    if chains.size:
        axis.plot(times, chains, ".", markersize=2.5, color="black")
    _name_ticks(axis, fit)
    axis.set_xlabel(", ".join(table.time_keys))
    axis.set_ylabel(", ".join(table.chain_keys))
    axis.set_xticks(np.arange(table.n_times + 1) - 0.5, minor=True)
    axis.set_yticks(np.arange(table.n_chains + 1) - 0.5, minor=True)
    axis.grid(which="minor", color="white", linewidth=0.4)
    axis.tick_params(which="minor", length=0)
    axis.tick_params(which="major", length=2)
    for side in axis.spines.values():
        side.set_visible(False)
    _state_legend(figure, fit, colours)


def _name_ticks(axis: Axes, fit: HiddenMarkovFit) -> None:
    """Name chains and time steps, as many as can be read."""
    table = fit.table
    rows = np.arange(0, table.n_chains, -(-table.n_chains // _MOST_NAMED_CHAINS))
    names = table.chain_names
    axis.set_yticks(rows, [names[row] for row in rows], fontsize="xx-small")
    every = -(-table.n_times // _MOST_NAMED_TIMES)
    columns, labels = np.arange(0, table.n_times, every), table.time_names
    axis.set_xticks(columns, [labels[column] for column in columns], fontsize="xx-small", rotation=90)


def _state_legend(figure: Figure, fit: HiddenMarkovFit, colours: Colours) -> None:
    from matplotlib.patches import Patch  # noqa: PLC0415 - the plot extra

    share = fit.state_share.mean(axis=0)
    patches = [
        Patch(color=colour, label=f"{state + 1}  ({100 * share[state]:.0f} %)")
        for state, colour in enumerate(colours)
    ]
    figure.legend(
        handles=patches, loc="outside right upper", title="state (cells)", fontsize="small", frameon=False
    )


def _emissions(figure: Figure, fit: HiddenMarkovFit, colours: Colours) -> None:
    """Draw bars of every state and feature, with intervals."""
    features = fit.table.features
    sizes = [max(3, len(feature.categories)) for feature in features]
    named = [len(feature.categories) <= _MOST_NAMED_CATEGORIES for feature in features]
    longest = max(
        (
            len(name)
            for feature, shown in zip(features, named, strict=True)
            if shown
            for name in feature.categories
        ),
        default=1,
    )
    figure.set_size_inches(
        min(30.0, max(6.0, 0.19 * sum(sizes) + 0.7 * len(features) + 1.0)),
        min(40.0, 0.95 * fit.n_states + 1.3 + 0.07 * min(longest, 20)),
    )
    grid = figure.subplots(
        fit.n_states, len(features), squeeze=False, sharex="col", sharey="col", width_ratios=sizes
    )
    ends = ends_of(MASS)
    share = fit.state_share.mean(axis=0)
    for column, feature in enumerate(features):
        sample = fit.emissions[feature.name]
        mean, (lower, upper) = sample.mean(axis=0), np.quantile(sample, ends, axis=0)
        overall = share @ mean
        positions = np.arange(len(feature.categories))
        for state in range(fit.n_states):
            axis = grid[state, column]
            axis.bar(positions, mean[state], width=0.72, color=colours[state], zorder=2)
            axis.vlines(positions, lower[state], upper[state], color="0.15", linewidth=0.9, zorder=3)
            axis.hlines(overall, positions - 0.45, positions + 0.45, color="0.55", linewidth=1.1, zorder=4)
            _bare(axis)
            axis.set_xlim(-0.7, len(positions) - 0.3)
            axis.tick_params(labelsize="xx-small", length=2)
            if column == 0:
                axis.set_ylabel(
                    f"{state + 1}",
                    rotation=0,
                    fontweight="bold",
                    color=colours[state],
                    va="center",
                    labelpad=10,
                )
        grid[0, column].set_ylim(0.0, None)
        grid[0, column].set_title(feature.name, fontsize="small")
        if named[column]:
            names = [name if len(name) <= 20 else f"{name[:18]}.." for name in feature.categories]
            grid[-1, column].set_xticks(positions, names, rotation=90, fontsize="xx-small")
        else:
            grid[-1, column].set_xticks([])
            grid[-1, column].set_xlabel(f"{len(positions)} categories", fontsize="x-small")


def _bare(axis: Axes) -> None:
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def _transitions(figure: Figure, fit: HiddenMarkovFit, colours: Colours) -> None:
    """Draw states on a circle, and arrows between them."""
    figure.set_size_inches(7.2, 7.4)
    axis = figure.subplots()
    axis.set_aspect("equal")
    axis.axis("off")
    n_states = fit.n_states
    angle = np.pi / 2 - 2 * np.pi * np.arange(n_states) / n_states
    place = np.stack([np.cos(angle), np.sin(angle)], axis=1) if n_states > 1 else np.zeros((1, 2))
    share, matrix = fit.state_share.mean(axis=0), fit.transitions.mean(axis=0)
    most = 0.30 if n_states <= 6 else 1.6 / n_states
    radius = np.maximum(most * np.sqrt(share / max(share.max(), 1e-9)), 0.055)
    _draw_arrows(axis, place, radius, matrix, colours)
    for state in range(n_states):
        axis.add_patch(_circle(place[state], radius[state], colours[state]))
        outside = place[state] * (1.0 + (radius[state] + 0.10)) if n_states > 1 else np.array([0.0, -0.45])
        big = radius[state] >= 0.09
        axis.text(
            *place[state],
            f"{state + 1}",
            ha="center",
            va="center",
            color="white",
            fontsize="large" if big else "small",
            fontweight="bold",
            zorder=5,
        )
        axis.text(
            *outside,
            f"stays {matrix[state, state]:.2f}\n{100 * share[state]:.0f} % of cells",
            ha="center",
            va="center",
            fontsize="x-small",
            color="0.25",
            zorder=5,
        )
    reach = 1.0 + radius.max() + 0.25
    axis.set_xlim(-reach, reach)
    axis.set_ylim(-reach, reach)


def _circle(centre: Floats, radius: float, colour: tuple[float, ...]) -> Any:
    from matplotlib.patches import Circle  # noqa: PLC0415 - the plot extra

    return Circle((float(centre[0]), float(centre[1])), radius, color=colour, zorder=4)


def _draw_arrows(axis: Axes, place: Floats, radius: Floats, matrix: Floats, colours: Colours) -> None:
    from matplotlib.patches import FancyArrowPatch  # noqa: PLC0415 - the plot extra

    for state, other in np.argwhere(matrix >= _LEAST_ARROW).tolist():
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
                connectionstyle="arc3,rad=0.16",
                arrowstyle="-|>",
                mutation_scale=7 + 9 * probability,
                linewidth=0.6 + 7.0 * probability,
                color=colours[state],
                alpha=0.75,
                zorder=2,
                shrinkA=0,
                shrinkB=0,
            )
        )
        normal = np.array([way[1], -way[0]]) / length
        label = place[state] + 0.42 * way + normal * 0.16 * length / 2
        if probability >= 0.1:
            axis.text(
                *label,
                f"{probability:.2f}",
                fontsize="xx-small",
                ha="center",
                va="center",
                zorder=6,
                color="0.15",
                bbox={"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none", "alpha": 0.85},
            )


def _trace(figure: Figure, fit: HiddenMarkovFit, _colours: Colours) -> None:
    """Draw the log joint of every restart."""
    figure.set_size_inches(8.0, 4.2)
    axis = figure.subplots()
    trace = fit.all_draws.trace
    n_sweeps = trace.shape[1]
    sweeps = np.arange(1, n_sweeps + 1)
    for restart, values in enumerate(trace):
        poorer = restart in fit.diagnostics.poorer
        axis.plot(
            sweeps,
            values,
            linewidth=1.0,
            color="0.6" if poorer else f"C{restart % 10}",
            linestyle="--" if poorer else "-",
            label=f"restart {restart + 1}" + (" (poorer mode)" if poorer else ""),
        )
    axis.axvspan(1, n_sweeps / 2, color="0.94", zorder=0, label="warm-up")
    axis.set_xlim(1, n_sweeps)
    low, high = np.quantile(trace[:, max(1, n_sweeps // 20) :], [0.0, 1.0])
    margin = 0.05 * (high - low) or 1.0
    axis.set_ylim(low - margin, high + margin)
    axis.set_xlabel("sweep")
    axis.set_ylabel("log joint")
    axis.legend(fontsize="small", frameon=False)
    _bare(axis)
