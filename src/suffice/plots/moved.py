"""A picture of how far a posterior moves: its mean and interval under every prior of a neighbourhood."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.judging.robustness import AS_STATED
from suffice.pipeline.ask.posterior.curves import in_words, spans_decades
from suffice.pipeline.ask.posterior.notes import conflict_lines
from suffice.plots.rows import put_in_logs
from suffice.plots.style import (
    POSTERIOR,
    PRIOR,
    QUIET,
    TEXT,
    finish,
    new_figure,
    only_across,
    save,
    shortened_label,
    styled,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from suffice.pipeline.ask.posterior.posterior import Posterior

MOST_MOVED = 12
"""Entries in one picture."""
_ROW, _APART = 0.235, 0.42
"""Inches of a row, and what is left between entries, in rows."""
_END = {"linewidth": 5.0, "solid_capstyle": "butt"}
_MEAN = {"linewidth": 8.0, "solid_capstyle": "butt"}
_TICK = {"color": POSTERIOR, "markersize": 7.2, "markeredgewidth": 2.0, "zorder": 4}
"""In the middle of a range, which shows where the range itself is too narrow to be seen."""


def plot_moved(
    posterior: Posterior,
    path: Path,
    *,
    title: str,
    footer: str,
    draws: int,
    rng: np.random.Generator,
    mass: float,
) -> None:
    """Draw what means and both ends of central intervals lie between, entry by entry, into a file.

    Behind the rows of an entry are its interval and mean as stated. In each row a bar is what the mean lies
    between, and two thinner ones what the ends of the interval do.

    Raises
    ------
    UsageError
        Where there are more than 12 entries, or how far they move is not told.
    """
    most = max(len(posterior.entry_names(parameter)) for parameter in posterior.parameters)
    if most > MOST_MOVED:
        message = f"--plot: {most} cells are too many to show how far they move: keep some with --where"
        raise UsageError(message)
    tables = {
        parameter: posterior.robustness(parameter, mass=mass, draws=draws, rng=rng)
        for parameter in posterior.parameters
    }
    kinds = list(dict.fromkeys(row["prior"] for row in tables[posterior.parameters[0]]))
    moved = [kind for kind in kinds if kind != AS_STATED]
    entries = {parameter: _by_entry(table, len(kinds)) for parameter, table in tables.items()}
    pitch = len(moved) + 1.0 + _APART
    across = len(posterior.parameters)
    with styled():
        figure = new_figure(max(7.4, 5.8 * across), 0.62 + _ROW * pitch * most)
        axes = figure.subplots(1, across, squeeze=False)[0]
        for axis, parameter in zip(axes, posterior.parameters, strict=True):
            names = posterior.entry_names(parameter)
            _draw(axis, posterior, parameter, names, entries[parameter], pitch)
        subtitle = (
            f"Prior {posterior.prior}\n"
            f"Line and band: mean and central {100 * mass:g} % interval as stated. Bars: what the mean "
            "(dark) and both ends of the interval (light) lie between in each neighbourhood"
        )
        conflicts = conflict_lines(posterior) if posterior.observed else []
        finish(figure, title, subtitle, footer, conflicts)
        save(figure, path)


def _by_entry(table: Sequence[Mapping[str, Any]], kinds: int) -> list[list[Mapping[str, Any]]]:
    return [list(table[start : start + kinds]) for start in range(0, len(table), kinds)]


def _draw(
    axis: Axes,
    posterior: Posterior,
    parameter: str,
    names: Sequence[str],
    entries: Sequence[Sequence[Mapping[str, Any]]],
    pitch: float,
) -> None:
    """Draw all entries of a parameter, the first on top."""
    ends = np.array([[row["lower_least"], row["upper_most"]] for rows in entries for row in rows])
    in_logs = spans_decades(posterior, parameter, ends)
    if in_logs:
        put_in_logs(axis, upwards=False)
    axis.set_xlabel(in_words(posterior, parameter) + (" (logarithmic axis)" if in_logs else ""))
    shown = _shown(ends, in_logs=in_logs)
    ticks: list[tuple[float, str, bool]] = []
    for number, (name, (stated, *moved)) in enumerate(zip(names, entries, strict=True)):
        top = number * pitch
        ticks.append((top, shortened_label(name), True))
        reach = (top + 0.55, top + len(moved) + 0.45)
        axis.fill_betweenx(
            reach, stated["lower_least"], stated["upper_least"], color=POSTERIOR, alpha=0.09, linewidth=0.0
        )
        mean = stated["mean_least"]
        if mean is not None:
            axis.vlines(mean, *reach, color=POSTERIOR, linewidth=1.1, zorder=3)
            at = top + np.arange(1.0, len(moved) + 1.0)
            axis.vlines(
                np.full(len(moved), mean), at - 0.17, at + 0.17, color="white", linewidth=1.1, zorder=5
            )
        for row, ranges in enumerate(moved, start=1):
            _draw_row(axis, top + row, ranges, shown)
            ticks.append((top + row, ranges["prior"], False))
    only_across(axis)
    axis.set_yticks([at for at, _, _ in ticks], [label for _, label, _ in ticks])
    for label, (_, _, is_entry) in zip(axis.get_yticklabels(), ticks, strict=True):
        label.set_color(TEXT if is_entry else QUIET)
        label.set_fontweight("bold" if is_entry else "normal")
    axis.set_ylim(len(entries) * pitch - 0.55 - _APART / 2.0, -0.6)
    axis.set_xlim(*shown)


def _draw_row(axis: Axes, at: float, ranges: Mapping[str, Any], shown: tuple[float, float]) -> None:
    """Draw the ranges of a mean and of both ends; what has no bound goes on to the edge of the picture."""
    lowest, highest = (
        ranges[name] if ranges[name] is not None else end
        for name, end in (("lower_least", shown[0]), ("upper_most", shown[1]))
    )
    axis.hlines(at, lowest, highest, color=PRIOR, linewidth=0.9, zorder=2)
    for end in ("lower", "upper"):
        low, high = _known(ranges, end, shown)
        axis.plot([low, high], [at, at], color=PRIOR, alpha=0.55, zorder=3, **_END)  # type: ignore[arg-type]
    low, high = _known(ranges, "mean", shown)
    axis.plot([low, high], [at, at], color=POSTERIOR, zorder=4, **_MEAN)  # type: ignore[arg-type]
    axis.plot([(low + high) / 2.0], [at], "|", **_TICK)  # type: ignore[arg-type]


def _known(ranges: Mapping[str, Any], name: str, shown: tuple[float, float]) -> tuple[float, float]:
    low, high = ranges[f"{name}_least"], ranges[f"{name}_most"]
    return (
        shown[0] if low is None or not np.isfinite(low) else low,
        shown[1] if high is None or not np.isfinite(high) else high,
    )


def _shown(ends: Any, *, in_logs: bool) -> tuple[float, float]:
    """Return the numbers of the axis: all intervals, and a little beyond."""
    known = ends[np.isfinite(np.array(ends, dtype=np.float64)).all(axis=1)].astype(np.float64)
    low, high = float(known[:, 0].min()), float(known[:, 1].max())
    if in_logs:
        room = (high / low) ** 0.03
        return low / room, high * room
    room = 0.03 * (high - low)
    return low - room, high + room
