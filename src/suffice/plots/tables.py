"""Pictures of tables: unbiased estimates with noise intervals, or the draws of a released sample."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.spec.about import NOTHING
from suffice.pipeline.terms.released.noise_distribution import noise_half_width
from suffice.pipeline.terms.released.sample import ReleasedQuantile
from suffice.pipeline.terms.statistics.drawn_quantile import LEVEL
from suffice.plots.rows import HEIGHT, Intervals, draw_intervals, draw_points, draw_ranked, draw_series
from suffice.plots.style import COLOURS, NOISE, QUIET, check_plot, finish, new_figure, save, styled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from suffice.pipeline.spec.about import About
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.released.sample import ReleasedSample
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.typing import Floats

MASS = 0.95
"""What an interval holds of the noise, at least."""
_MOST_PANELS, _MOST_ROWS, _MOST_LINES = 9, 200, len(COLOURS)
_FEWEST_STEPS = 3
_ORDERED = re.compile(r"\d{4}(-\d{2}(-\d{2})?|-?Q[1-4]|-?W\d{2})?")
_IN_WORDS = {"n": "number of records", "count": "records"}
_NOT_LABELS = {"quantity", "component", "estimate", "noise_sd"}


@dataclass(frozen=True, slots=True)
class _Panel:
    """One quantity's estimates: keys of its rows, and labels of its entries, as the table has them."""

    name: str
    rows: list[Mapping[str, Any]]
    reach: Floats
    words: Callable[[str, object], str]

    @property
    def estimates(self) -> Floats:
        return np.array([row["estimate"] for row in self.rows])

    def labels(self, without: str | None = None) -> list[str]:
        return [
            ", ".join(
                self.words(name, value)
                for name, value in row.items()
                if _is_label(name, value) and name != without
            )
            for row in self.rows
        ]


def plot_table(
    statistic: NoisyStatistic, path: Path, *, title: str, footer: str, about: About = NOTHING
) -> None:
    """Draw a statistic's estimates with noise intervals into a PNG or SVG file, a panel for each quantity.

    A line over an ordered group column, of whole numbers or of dates, where there are at most 6 cells
    beside it; otherwise rows one below the other, and beyond 200 a band in the order of the estimates.

    Parameters
    ----------
    statistic : NoisyStatistic
    path : Path
        Ends in ``.png`` or ``.svg``.
    title, footer : str
        Over the picture, and its sources below.
    about : About
        What the release's owner calls things.

    Raises
    ------
    UsageError
        Where the ending is another, or there are more than 9 quantities.
    MissingExtraError
        Where matplotlib is not installed.
    """
    check_plot(path)
    panels = _panels(statistic, about)
    if len(panels) > _MOST_PANELS:
        message = (
            f"--plot: {len(panels)} quantities are too many for one picture: --out writes them as a table"
        )
        raise UsageError(message)
    ordered = _ordered_column(statistic, panels[0])
    rows = max(len(panel.rows) for panel in panels)
    is_ranked = ordered is None and rows > _MOST_ROWS
    across = 1 if len(panels) == 1 else 2 if len(panels) in {2, 4} else 3
    down = math.ceil(len(panels) / across)
    each = 2.9 if ordered is not None or is_ranked else 0.75 + rows * HEIGHT
    with styled():
        figure = new_figure(max(7.2, 4.7 * across), each * down)
        axes = figure.subplots(down, across, squeeze=False).ravel()
        for axis, panel in zip(axes, panels, strict=False):
            estimates, reach = panel.estimates, panel.reach
            noise = Intervals(
                lower=estimates - reach, middle=estimates, upper=estimates + reach, colour=NOISE
            )
            if ordered is not None:
                keys, lines = _lines(panel, ordered)
                draw_series(axis, keys, lines)
                # Over the panel: beside it, a long name would run into its neighbours'.
                axis.set_title(panel.name, color=QUIET, pad=22.0 if len(lines) > 1 else 6.0)
                axis.set_xlabel(about.column(ordered))
            elif is_ranked:
                draw_ranked(axis, [noise], panel.name)
            else:
                draw_intervals(axis, panel.labels(), [noise])
                axis.set_xlabel(panel.name)
        for axis in axes[len(panels) :]:
            axis.set_axis_off()
        subtitle = (
            "Unbiased estimates with noise intervals, which hold at least "
            f"{100 * MASS:g} % of the noise and tell of nothing else"
        )
        finish(figure, title, subtitle, footer)
        save(figure, path)


def _panels(statistic: NoisyStatistic, about: About) -> list[_Panel]:
    """The table's rows by quantity and component."""
    panels: dict[tuple[str, str], list[tuple[Mapping[str, Any], float]]] = {}
    plan = statistic.plan

    def words(column: str, value: object) -> str:
        return about.value(plan.name, str(value)) if column == "category" else about.key(column, value)

    # Rows have all quantities of a cell, then those of the next.
    widths = [noise_half_width(plan, quantity, MASS) for quantity in plan.quantities]
    for row, width in zip(statistic.table(), itertools.cycle(widths), strict=False):
        panels.setdefault((row["quantity"], row.get("component") or ""), []).append((row, width))
    return [
        _Panel(
            _name(plan, *which, about),
            [row for row, _ in rows],
            np.array([width for _, width in rows]),
            words,
        )
        for which, rows in panels.items()
    ]


def _name(plan: StatisticPlan, quantity: str, component: str, about: About) -> str:
    """What a quantity is of, and its unit where it has one."""
    words = about.words(plan.name)
    if words.label and not component:
        power = "\N{SUPERSCRIPT TWO}" if quantity.startswith("total_of_") else ""
        unit = f" ({words.unit}{power})" if words.unit and quantity.startswith("total") else ""
        return f"{words.label}, {_IN_WORDS.get(quantity, quantity.replace('_', ' '))}{unit}"
    if quantity in {"n", "count"}:
        return f"{quantity}, records"
    of = f"{quantity.replace('_', ' ')} of {component or ', '.join(plan.columns)}"
    if plan.parameters.lower is None and not plan.parameters.columns:
        return of
    return f"{of}, in its unit squared" if quantity.startswith("total_of_") else f"{of}, in its unit"


def _ordered_column(statistic: NoisyStatistic, panel: _Panel) -> str | None:
    """The group column that has an order: whole numbers or dates, with few cells beside each."""
    for column, keys in statistic.groups.items():
        distinct = list(dict.fromkeys(keys))
        in_order = all(isinstance(key, int) for key in distinct) or all(
            isinstance(key, str) and _ORDERED.fullmatch(key) for key in distinct
        )
        beside = len(set(panel.labels(without=column)))
        if in_order and len(distinct) >= _FEWEST_STEPS and beside <= _MOST_LINES:
            return column
    return None


def _lines(panel: _Panel, ordered: str) -> tuple[Sequence[str], list[Intervals]]:
    """Keys in order, and a line for each of the other cells and categories."""
    keys = sorted({row[ordered] for row in panel.rows})
    place = {key: position for position, key in enumerate(keys)}
    names = panel.labels(without=ordered)
    distinct = list(dict.fromkeys(names))
    middle, reach = np.full((2, len(distinct), len(keys)), np.nan)
    for name, row, estimate, width in zip(names, panel.rows, panel.estimates, panel.reach, strict=True):
        where = distinct.index(name), place[row[ordered]]
        middle[where], reach[where] = estimate, width
    lines = [
        Intervals(
            lower=middle[line] - reach[line],
            middle=middle[line],
            upper=middle[line] + reach[line],
            colour=COLOURS[line],
            label=name,
        )
        for line, name in enumerate(distinct)
    ]
    return [panel.words(ordered, key) for key in keys], lines


def _is_label(name: str, value: object) -> bool:
    return name not in _NOT_LABELS and value not in (None, "")


def plot_sample(
    sample: ReleasedSample, path: Path, *, title: str, footer: str, about: About = NOTHING
) -> None:
    """Draw a sample into a PNG or SVG file, a point for each draw, over the whole grid.

    A row for each cell; beyond 200, cells side by side in the order of the means of their draws.

    Parameters
    ----------
    sample : ReleasedSample
    path : Path
        Ends in ``.png`` or ``.svg``.
    title, footer : str
        Over the picture, and its sources below.
    about : About
        What the release's owner calls things.

    Raises
    ------
    UsageError
        Where the ending is another.
    MissingExtraError
        Where matplotlib is not installed.
    """
    check_plot(path)
    values, name = sample.values, sample.parameter
    if about.words(sample.plan.name).label:
        name = about.axis(sample.plan.name, sample.parameter)
    is_ranked = len(values) > _MOST_ROWS
    with styled():
        figure = new_figure(7.2, 2.9 if is_ranked else 0.75 + len(values) * HEIGHT)
        axis = figure.subplots()
        drawn = sample.quantile if isinstance(sample, ReleasedQuantile) else sample.sample
        lower, upper = (float(end) for end in drawn.within)
        if is_ranked:
            order = np.argsort(values.mean(axis=1), kind="stable")
            ranks = np.repeat(np.arange(1, len(order) + 1), values.shape[1])
            axis.plot(ranks, values[order].ravel(), ".", markersize=1.6)
            axis.set_xlabel("rank of the mean of a cell's draws")
            axis.set_ylabel(name)
            axis.set_ylim(lower, upper)
        else:
            draw_points(axis, _cell_labels(sample, about), values)
            axis.set_xlabel(name)
            axis.set_xlim(lower, upper)
        finish(figure, title, _subtitle(sample), footer)
        save(figure, path)


def _subtitle(sample: ReleasedSample) -> str:
    """Say what the points are draws of."""
    if isinstance(sample, ReleasedQuantile):
        bound = math.ceil(sample.rank_bound())
        return (
            f"Middles of the bins drawn for the {sample.parameter}: within {bound:,} records of its rank "
            f"with probability {LEVEL:g} at least"
        )
    temperature = float(sample.sample.temperature)
    return f"Draws of the posterior at temperature {temperature:.4g}: " + (
        "their spread tells of privacy as well as of the parameter, and is no credible interval"
        if sample.sample.is_tempered
        else "each of the data's own posterior under its prior"
    )


def _cell_labels(sample: ReleasedSample, about: About) -> list[str]:
    """Return the keys of every cell in words; the statistic's name where there are no groups."""
    if not sample.groups:
        return [about.label(sample.plan.name)]
    groups = about.groups(sample.groups)
    return [", ".join(map(str, keys)) for keys in zip(*groups.values(), strict=True)]
