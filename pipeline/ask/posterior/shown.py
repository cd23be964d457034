"""A posterior as people look at it: rows of numbers, text, and what a notebook shows.

Intervals never stand without what contradicts them: every row says whether its cell is in conflict with a
prior, and text and HTML say it in words above the numbers.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from suffice.pipeline.ask.posterior.notes import (
    conflict_lines,
    default_lines,
    described,
    draws_text,
    model_lines,
    plug_in_lines,
    unsettled_warning,
)
from suffice.pipeline.ask.posterior.summaries import summarise
from suffice.pipeline.math.distributions.composite import RepeatedCells, blocks_of
from suffice.pipeline.math.parameters.arguments import interval_in_words
from suffice.pipeline.math.parameters.contrasts import DIFFERENCE, in_words, tidy_rows
from suffice.pipeline.math.parameters.parameter_posterior import MASS
from suffice.pipeline.terms.declaration.wording import counted
from suffice.pipeline.terms.released.table import (
    MOST_SHOWN,
    Table,
    card,
    html_table,
    markup,
    number_beside,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.math.parameters.contrasts import Contrast

_SEED = 0
"""Of the draws behind numbers that are only shown: the same object shows the same."""
_DRAWS = 4000
_MOST_RELEASES = 12
_NUMBERS = ("mean", "sd", "lower", "upper")
_WIDTH, _HEIGHT, _EDGE = 170, 16, 5
_COLOUR, _CONTRADICTED = "#3f83c8", "#d9822b"


@runtime_checkable
class KnowsOwnShare(Protocol):
    """A posterior whose cells borrow from each other."""

    def with_own(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return rows of cells with how much of each answer is the cell's own."""


def marked(posterior: Posterior, rows: Sequence[Mapping[str, Any]], n_cells: int) -> Table:
    """Return rows of the first cells, each with whether its cell is in conflict with a prior.

    It is None where that is not known.
    """
    is_contradicted = contradicted(posterior)
    entries = len(rows) // n_cells
    return Table(
        (
            {**row, "conflict": None if is_contradicted is None else bool(is_contradicted[number // entries])}
            for number, row in enumerate(rows)
        ),
        title=heading(posterior),
        notes=warnings_of(posterior),
        in_words=partial(posterior.about.rows, posterior.statistic, columns=posterior.groups),
        digits=partial(posterior.about.digits, posterior.statistic),
    )


def beside_conflicts(posterior: Posterior, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return rows of all cells, each with whether it is in conflict, where any is."""
    return without_conflicts(marked(posterior, rows, posterior.n_groups))


def without_conflicts(table: Table) -> Table:
    """Return a table, without the column of conflicts where it has none."""
    if not any(row["conflict"] for row in table):
        for row in table:
            del row["conflict"]
    return table


def change_table(
    before: Posterior, after: Posterior, rows: Sequence[Mapping[str, Any]], *, title: str
) -> Table:
    """Return rows of all cells of two posteriors, each with whether its cell is in conflict in either."""
    sides = [marked(posterior, rows, posterior.n_groups) for posterior in (before, after)]
    last = sides[-1]
    table = Table(
        last,
        title=f"{after.about.label(after.statistic)}: {title}",
        notes=tuple(dict.fromkeys(note for side in sides for note in side.notes)),
        in_words=last.in_words,
        digits=last.digits,
    )
    for row, *both in zip(table, *sides, strict=True):
        known = {each["conflict"] for each in both}
        row["conflict"] = True if True in known else None if None in known else False
    return table


def highest_table(
    posterior: Posterior, k: int, parameter: str, draws: int, rng: np.random.Generator
) -> Table:
    """Return how probable it is that each cell is among the k highest; entries in turn, cells by it."""
    shares = posterior.among_highest(k, parameter, draws=draws, rng=rng)
    numbers = {"mean": posterior.mean(parameter), "sd": posterior.sd(parameter), "probability": shares}
    rows = tidy_rows(posterior.groups, posterior.label_columns, {parameter: numbers}, posterior.components)
    table = marked(posterior, rows, posterior.n_groups)
    entries = len(table) // posterior.n_groups
    ordered = sorted(range(len(table)), key=lambda row: (row % entries, -table[row]["probability"]))
    about, among = posterior.about, "highest" if k == 1 else f"among the {k} highest"
    cells = counted(posterior.n_groups, "cell")
    return Table(
        (table[row] for row in ordered),
        title=f"{about.of(posterior.statistic, parameter)}: which of {cells} is {among}",
        notes=table.notes,
        in_words=table.in_words,
        digits=table.digits,
        foot=[f"probability: that the cell is {among}, of {draws} joint draws of all {cells}"],
    )


def _first_and_last(releases: Sequence[str]) -> str:
    """Name releases; of many the first and the last."""
    if len(releases) > _MOST_RELEASES:
        releases = [releases[0], f"{len(releases) - 2} more", releases[-1]]
    return ", ".join(releases)


def contradicted(posterior: Posterior) -> Any:
    """Return which cells are in conflict with a prior, (n_groups,); None where that is not known."""
    if not posterior.observed:
        return None
    conflict = posterior.conflict
    if not conflict.quantities:  # as of totals of merged cells
        return None
    return np.any(conflict.is_said, axis=1) | conflict.is_against_all


def contrast_table(
    posterior: Posterior, contrast: Contrast, sides: Sequence[Mapping[str, object]]
) -> Callable[[Iterable[dict[str, Any]]], Table]:
    """Return what makes a table of a contrast's rows, in words, below what contradicts them."""
    about, statistic, parameter = posterior.about, posterior.statistic, contrast.parameter
    first, second = (
        in_words({about.column(column): about.key(column, key) for column, key in side.items()})
        for side in sides
    )
    is_difference = contrast.kind == DIFFERENCE
    of = about.axis(statistic, parameter) if is_difference else about.of(statistic, parameter)
    named = "the difference is above 0" if is_difference else "the ratio is above 1"

    def rows_in_words(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        shown = about.rows(statistic, rows, posterior.groups)
        return [{name: value for name, value in row.items() if name != "parameter"} for row in shown]

    return partial(
        Table,
        title=f"{of}: {first} {'minus' if is_difference else 'over'} {second}",
        notes=warnings_of(posterior),
        in_words=rows_in_words,
        digits=partial(about.digits, statistic) if is_difference else lambda _: None,
        foot=[f"probability_above: that {named}, of {len(contrast.draws)} draws"],
    )


def heading(posterior: Posterior) -> str:
    """Return what a posterior is of."""
    about, statistic = posterior.about, posterior.statistic
    columns = f" by {', '.join(map(about.column, posterior.groups))}" if posterior.groups else ""
    label = about.words(statistic).label
    of = label or f"{statistic} ({posterior.family})"
    parameters = ", ".join(
        about.parameter(statistic, name) if label else name for name in posterior.parameters
    )
    return f"Posterior of {of}: {parameters} in {counted(posterior.n_groups, 'cell')}{columns}"


def as_text(posterior: Posterior) -> str:
    """Return what ``print`` shows of a posterior."""
    table, left = _first_rows(posterior)
    return "\n".join([str(table), *left, "", *_foot(posterior)])


def as_html(posterior: Posterior) -> str:
    """Return what a notebook shows of a posterior."""
    table, left = _first_rows(posterior)
    rows, named = list(table), table.in_words(table)
    several = len(posterior.parameters) > 1
    labels = [
        name for name in named[0] if name not in {*_NUMBERS, "conflict"} and (several or name != "parameter")
    ]
    spans = {
        parameter: _span([row for row in rows if row["parameter"] == parameter])
        for parameter in posterior.parameters
    }
    cells = [
        [
            *(markup(text_of(called[name])) for name in labels),
            _number(row, "mean", digits := table.digits(row["parameter"])),
            _number(row, "sd", None),
            f"{_number(row, 'lower', digits)} to {_number(row, 'upper', digits)}",
            _bar(row, spans[row["parameter"]]),
        ]
        for row, called in zip(rows, named, strict=True)
    ]
    names = [*labels, "mean", "sd", f"{100 * MASS:g} % interval", "drawn"]
    numbers = [*(False for _ in labels), True, True, True, False]
    return card(
        heading(posterior),
        lead=_sentence(posterior.estimand),
        warnings=table.notes,
        body=html_table(names, cells, numbers),
        foot=[*left, *_foot(posterior)],
    )


def _first_rows(posterior: Posterior) -> tuple[Table, list[str]]:
    """Return the rows of the first cells, and how many are left out; of very many one block is worked out."""
    first = posterior
    if not isinstance(posterior.distribution, RepeatedCells):
        block = next(iter(blocks_of(posterior.distribution)))
        length = len(block.mean(posterior.parameters[0]))
        groups = {column: keys[:length] for column, keys in posterior.groups.items()}
        first = dataclasses.replace(posterior, distribution=block, groups=groups)
    rows: Sequence[Mapping[str, Any]] = summarise(first, MASS, _DRAWS, _SEED)
    if isinstance(posterior, KnowsOwnShare):
        rows = posterior.with_own(rows)
    entries = len(rows) // first.n_groups
    shown = max(1, MOST_SHOWN // entries)
    left = posterior.n_groups - min(shown, posterior.n_groups)
    table = marked(posterior, rows[: shown * entries], min(shown, first.n_groups))
    return table, [f"... and {counted(left, 'more cell')}: summary() has all"] if left else []


def warnings_of(posterior: Posterior) -> list[str]:
    """Return what must not be overlooked beside the numbers."""
    lines = plug_in_lines(posterior)
    if posterior.observed:
        lines += conflict_lines(posterior)
    return [_sentence(line) for line in [*lines, unsettled_warning(posterior)] if line]


def _foot(posterior: Posterior) -> list[str]:
    """Return what else there is to say."""
    judged = default_lines(posterior) if posterior.observed else []
    terms = {
        "prior": posterior.prior,
        "prior of N": posterior.n_prior,
        "prior of predictors": posterior.predictor_prior,
        **described(posterior.diagnostics),
    }
    lines = [
        *model_lines(posterior),
        *judged,
        f"{posterior.method}; "
        + "; ".join(f"{name} {value}" for name, value in terms.items() if value is not None),
        f"intervals: {interval_in_words(posterior.interval_kind(None), MASS)}",
        draws_text(posterior),
        posterior.rows_of and f"parameters: {posterior.rows_of}",
        posterior.releases and f"release: {_first_and_last(posterior.releases)}",
    ]
    return [_sentence(str(line)) for line in lines if line]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _number(row: Mapping[str, Any], name: str, digits: int | None) -> str:
    """Return a number to as many digits as its standard deviation tells, or that there is none."""
    if row[name] is None:
        return '<span title="it does not exist">none</span>'
    return markup(number_beside(row[name], row["sd"], digits))


def _span(rows: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    ends = [row[name] for row in rows for name in ("lower", "upper") if row[name] is not None]
    return (min(ends), max(ends)) if ends else (0.0, 0.0)


def _bar(row: Mapping[str, Any], span: tuple[float, float]) -> str:
    """Draw an interval and its mean between the ends that all rows share; the numbers stand beside it."""
    low, high = span
    if row["lower"] is None or row["upper"] is None or not high > low:
        return ""

    def place(value: float) -> float:
        return _EDGE + (_WIDTH - 2 * _EDGE) * (min(max(value, low), high) - low) / (high - low)

    colour = _CONTRADICTED if row["conflict"] else _COLOUR
    dashes = ' stroke-dasharray="4 3"' if row["conflict"] else ""
    middle = _HEIGHT / 2
    dot = (
        f'<circle cx="{place(row["mean"]):.1f}" cy="{middle:g}" r="4" fill="{colour}"/>'
        if row["mean"] is not None
        else ""
    )
    ends = f'x1="{place(row["lower"]):.1f}" x2="{place(row["upper"]):.1f}" y1="{middle:g}" y2="{middle:g}"'
    line = f'<line {ends} stroke="{colour}" stroke-width="2.5" stroke-linecap="round"{dashes}/>'
    return f'<svg width="{_WIDTH}" height="{_HEIGHT}" aria-hidden="true">{line}{dot}</svg>'
