"""Pictures of Markov chains, and of a fitted hidden Markov model: its states over time and its sampler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError, shortened
from suffice.pipeline.ask.inference.posterior_terms import NOISE_AWARE
from suffice.pipeline.math.parameters.arguments import ends_of
from suffice.pipeline.math.parameters.contrasts import in_words
from suffice.pipeline.math.parameters.parameter_posterior import MASS
from suffice.pipeline.terms.declaration.wording import counted
from suffice.plots import style
from suffice.plots.rows import Intervals, draw_intervals

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from suffice.pipeline.ask.models.chain import MarkovChains
    from suffice.pipeline.ask.models.chain_tables import Keys
    from suffice.pipeline.ask.models.hidden_markov_fit import HiddenMarkovFit
    from suffice.typing import Floats, Rows

    Colours = list[tuple[float, float, float, float]]

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
    style.check_plot(path)
    n_cells = chain.posterior.n_groups
    if n_cells > _MOST_CELLS:
        message = f"--plot: {n_cells} cells are too many: keep at most {_MOST_CELLS} with --where"
        raise UsageError(message)
    side = max(3.4, 0.45 * len(chain.states))
    law = chain.stationary().summary(mass)
    with style.styled():
        figure = style.new_figure(2.0 * side + 1.2, (side + 0.3) * n_cells)
        axes = figure.subplots(n_cells, 2, squeeze=False)
        for cell, (matrix, shares) in enumerate(axes):
            _draw_matrix(figure, matrix, chain, cell)
            _draw_shares(shares, chain.states, {name: values[cell] for name, values in law.items()}, mass)
        caution = "" if chain.posterior.method == NOISE_AWARE else ", not calibrated"
        subtitle = f"{chain.posterior.method} posterior{caution}, prior {chain.posterior.prior}"
        style.finish(figure, title, f"{subtitle[0].upper()}{subtitle[1:]}", footer)
        style.save(figure, path)


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
    shares = Intervals(lower=law["lower"], middle=law["median"], upper=law["upper"], colour=style.POSTERIOR)
    draw_intervals(axis, states, [shares])
    axis.set_xlim(left=0.0)
    axis.set_xlabel(f"share of time in the long run, {100 * mass:g} % interval")


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


FIGURES = ("states", "emissions", "transitions", "trace")
_MOST_NAMED_CHAINS, _MOST_NAMED_TIMES = 120, 40
_FEW_CATEGORIES, _LEAST_BAR = 12, 0.01
"""Of features with more categories, those that are less probable in every state have no bars."""
_LONGEST_CATEGORY = 20
_LONGEST_FLAT = 4
"""Characters of labels of time that stand side by side."""


def state_figures(fit: HiddenMarkovFit, title: str, footer: str) -> dict[str, Figure]:
    """Return the pictures of a fit by name: ``states``, ``emissions``, ``transitions`` and ``trace``.

    Raises
    ------
    MissingExtraError
        Where matplotlib is not installed.
    """
    style.require_matplotlib("plots of models")
    colours = _colours(fit.n_states)
    draw = {"states": _states, "emissions": _emissions, "transitions": draw_transitions, "trace": _trace}
    figures = {}
    for name in FIGURES:
        with style.styled():
            figure = style.new_figure(7.0, 4.0)
            draw[name](figure, fit, colours)
            style.finish(figure, f"{title}: {counted(fit.n_states, 'state')}", _subtitle(fit, name), footer)
        figures[name] = figure
    return figures


def _subtitle(fit: HiddenMarkovFit, name: str) -> str:
    texts = {
        "states": "most probable path; the paler a cell, the less sure its state; dotted: not observed",
        "emissions": "posterior mean probabilities and 95 % intervals; grey: all cells together",
        "transitions": f"circles: share of cells; arrows: chance of the next state, from {LEAST_ARROW:g} on",
        "trace": "log joint of parameters, states and released counts, sweep by sweep",
    }
    method = "" if fit.settings.method == "noise-aware" else f"{fit.settings.method}, not calibrated: "
    said = method + texts[name]
    return f"{said[0].upper()}{said[1:]}"


def _colours(n_states: int) -> Colours:
    """Return one colour a state, told apart as well as so many can be."""
    from matplotlib import colormaps  # the plot extra
    from matplotlib.colors import to_rgba

    if n_states <= len(style.COLOURS):
        return [to_rgba(colour) for colour in style.COLOURS[:n_states]]
    if n_states <= 20:
        named = colormaps["tab10" if n_states <= 10 else "tab20"]
        return [named(state) for state in range(n_states)]
    return [colormaps["turbo"](share) for share in np.linspace(0.03, 0.97, n_states)]


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
    columns, labels = np.arange(0, table.n_times, every), _time_labels(table.time_keys)
    longest = max(len(line) for label in labels for line in label.split("\n"))
    axis.set_xticks(
        columns,
        [labels[column] for column in columns],
        fontsize="xx-small",
        rotation=0 if longest <= _LONGEST_FLAT else 90,
    )


def _time_labels(keys: Keys) -> list[str]:
    """Name time steps by their fastest key, and by the slower ones below where these change."""
    *slower, fastest = keys.values()
    above = [", ".join(map(str, parts)) for parts in zip(*slower, strict=True)] if slower else []
    return [
        f"{key}\n{above[step]}" if above and (step == 0 or above[step] != above[step - 1]) else str(key)
        for step, key in enumerate(fastest)
    ]


def _state_legend(figure: Figure, fit: HiddenMarkovFit, colours: Colours) -> None:
    from matplotlib.patches import Patch  # the plot extra

    share = fit.state_share.mean(axis=0)
    patches = [
        Patch(color=colour, label=f"{state + 1}  ({100 * share[state]:.0f} %)")
        for state, colour in enumerate(colours)
    ]
    figure.legend(
        handles=patches, loc="outside right center", title="state (cells)", fontsize="small", frameon=False
    )


def _emissions(figure: Figure, fit: HiddenMarkovFit, colours: Colours) -> None:
    """Draw bars of every state and feature, with intervals."""
    features = fit.table.features
    samples = list(fit.emissions.values())
    shown = [_shown_categories(sample.mean(axis=0)) for sample in samples]
    sizes = [max(3, len(each)) for each in shown]
    figure.set_size_inches(
        min(30.0, max(6.0, 0.26 * sum(sizes) + 0.7 * len(features) + 1.0)),
        min(40.0, 0.95 * fit.n_states + 1.9),
    )
    grid = figure.subplots(
        fit.n_states, len(features), squeeze=False, sharex="col", sharey="col", width_ratios=sizes
    )
    share = fit.state_share.mean(axis=0)
    for column, (feature, sample, kept) in enumerate(zip(features, samples, shown, strict=True)):
        _emission_column(list(grid[:, column]), sample[:, :, kept], share, colours)
        grid[0, column].set_title(feature.name, fontsize="small")
        names = [shortened(feature.categories[category], _LONGEST_CATEGORY) for category in kept]
        grid[-1, column].set_xticks(np.arange(len(kept)), names, rotation=90, fontsize="xx-small")
        left_out = len(feature.categories) - len(kept)
        if left_out:
            grid[-1, column].set_xlabel(
                f"{left_out} others: below {100 * _LEAST_BAR:g} % in every state", fontsize="xx-small"
            )
    for state, axis in enumerate(grid[:, 0]):
        look = {"color": colours[state], "fontweight": "bold", "rotation": 0, "va": "center", "labelpad": 10}
        axis.set_ylabel(f"{state + 1}", **look)


def _shown_categories(mean: Floats) -> Rows:
    """Return which categories have bars: all of a few, else those that are not rare in every state."""
    size = mean.shape[1]
    return np.flatnonzero((mean.max(axis=0) >= _LEAST_BAR) | (size <= _FEW_CATEGORIES))


def _emission_column(axes: Sequence[Axes], sample: Floats, share: Floats, colours: Colours) -> None:
    """Draw one feature's bars, a state below the other."""
    mean, (lower, upper) = sample.mean(axis=0), np.quantile(sample, ends_of(MASS), axis=0)
    positions = np.arange(mean.shape[1])
    for state, axis in enumerate(axes):
        axis.bar(positions, mean[state], width=0.72, color=colours[state], zorder=2)
        axis.vlines(positions, lower[state], upper[state], color="0.15", linewidth=0.9, zorder=3)
        axis.hlines(share @ mean, positions - 0.45, positions + 0.45, color="0.55", linewidth=1.1, zorder=4)
        _bare(axis)
        axis.set_xlim(-0.7, len(positions) - 0.3)
        axis.tick_params(labelsize="xx-small", length=2)
    axes[0].set_ylim(0.0, None)


def _bare(axis: Axes) -> None:
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


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
            linewidth=0.8,
            alpha=0.85,
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
    figure.legend(loc="outside right center", fontsize="small", frameon=False)
    _bare(axis)
