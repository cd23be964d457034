"""``suffice table``: a statistic's unbiased estimates with the noise of each, or the draws of a sample."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import typer

from suffice.cli import options, output
from suffice.cli.files import OverwriteOption, new_file
from suffice.cli.output import say
from suffice.cli.pooled import (
    AskedPooling,
    check_pooled,
    names_alone,
    pooling_of,
    series_asked,
    with_pooling,
)
from suffice.cli.pooled_table import print_beside_alone
from suffice.errors import AdoptedReleaseError, UsageError
from suffice.pipeline.terms.declaration.documents import Count, Exact, Rows, document, printed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from suffice.data_files.source import Provenance
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.terms.released.sample import ReleasedSample
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan


@with_pooling
def table(
    release: options.ReleaseArgument,
    pooling: AskedPooling,
    statistic: Annotated[
        str | None,
        typer.Argument(help="A statistic of the release. Without one: the only one, or which there are."),
    ] = None,
    where: options.WhereOption = None,
    out: options.OutOption = None,
    plot: options.PlotOption = None,
    store: options.StoreOption = options.DEFAULT_STORE,
    public_keys: options.PublicKeyOption = None,
    *,
    allow_withdrawn: options.AllowWithdrawnOption = False,
    overwrite: OverwriteOption = False,
    every_cell: options.AllOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Print a statistic's unbiased estimates and the standard deviations of their noise; a sample's draws."""
    output.check_out(out, overwrite=overwrite)
    output.check_picture(plot, overwrite=overwrite)
    series = series_asked(pooling, release, store, public_keys)
    try:
        opened = (
            series.releases[-1]
            if series
            else options.open_for_reading(release, store, public_keys, allow_withdrawn=allow_withdrawn)
        )
    except AdoptedReleaseError:
        from suffice.cli import adopt  # few releases are adopted

        adopt.table(
            adopt.opened(release),
            statistic,
            options.parse_pairs("--where", where),
            refused={"--out": out, "--plot": plot, "--pooled": names_alone(pooling)},
            as_json=as_json,
        )
        return
    pooled = pooling_of(pooling)
    if pooled:
        check_pooled({"--plot": plot})
    if statistic is None:
        if len(opened) > 1:
            _print_names(release, opened, has_files=out is not None or plot is not None, as_json=as_json)
            return
        statistic = next(iter(opened))
    wanted = options.parse_pairs("--where", where)
    if pooled:
        kept = opened.about.in_names(wanted, opened.group_columns)
        print_beside_alone(
            series or opened,
            series.windows_of(statistic, kept).releases if series else [opened],
            statistic,
            kept,
            pooled,
            out=out,
            overwrite=overwrite,
            every_cell=every_cell,
            as_json=as_json,
        )
        return
    whole = every_cell or as_json or out is not None or plot is not None
    statistic_table = (
        _sample(opened, opened.samples(statistic, wanted), whole=whole)
        if statistic in opened.sampled
        else _estimates(opened, statistic, wanted, whole=whole)
    )
    stated = statistic_table.stated
    if out is not None:
        from suffice.data_files.tables import columns_of

        output.write_table(columns_of(stated.rows), out, stated.source, overwrite=overwrite)
    if plot is not None:
        from suffice.plots.style import footer_of

        footer = footer_of(stated.source, [opened])
        with new_file("--plot", plot, overwrite=overwrite) as written:
            statistic_table.draw(written, title=opened.titled(statistic), footer=footer)
    if as_json:
        output.print_json(document(stated))
        return
    if out is None:
        output.print_part(statistic_table.shown, statistic_table.n_cells)
        limit = len(stated.rows) if every_cell else output.MOST_ROWS
        output.print_rows(opened.in_words(statistic, stated.rows), limit=limit)
        output.print_left_out(statistic_table.shown, statistic_table.n_cells)
        statistic_table.say_more()
        output.print_rows_of(stated.plan.rows_of, statistic_table.what)
    output.print_written(out, plot)


@printed("source statistic=plan.name family=plan.family rows_of=plan.rows_of saturated rows")
@dataclass(frozen=True, slots=True, kw_only=True)
class StatedEstimates:
    """What ``suffice table`` prints of noisy components."""

    source: Provenance
    plan: StatisticPlan
    saturated: Count
    rows: Annotated[list[dict[str, Any]], Rows(quantity=str, estimate=float, noise_sd=float)]


@printed(
    "source statistic=plan.name family=plan.family rows_of=plan.rows_of prior grid within temperature rows"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class StatedSample:
    """What it prints of a sample."""

    source: Provenance
    plan: StatisticPlan
    prior: str
    grid: Count
    within: tuple[Exact, Exact]
    temperature: Exact
    rows: Annotated[list[dict[str, Any]], Rows(parameter=str, draw=Count, value=float)]


@printed(
    "source statistic=plan.name family=plan.family rows_of=plan.rows_of quantile rank_scale rank_bound rows"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class StatedQuantile:
    """What it prints of a drawn quantile."""

    source: Provenance
    plan: StatisticPlan
    quantile: Exact
    rank_scale: Exact
    rank_bound: float
    rows: Annotated[list[dict[str, Any]], Rows(parameter=str, draw=Count, lower=float, upper=float)]


class AskableStatistic(TypedDict):
    """A statistic of a release, and what can be asked of it."""

    statistic: str
    family: str
    columns: str
    cells: Count
    epsilon: Exact
    estimates: str
    posterior_of: str


class StatisticList(TypedDict):
    """What ``suffice table`` prints of a release alone."""

    release: str
    statistics: list[AskableStatistic]


def _askable(row: dict[str, Any]) -> AskableStatistic:
    """Return a row of a release's table by keys without blanks."""
    return {
        "statistic": row["statistic"],
        "family": row["family"],
        "columns": row["columns"],
        "cells": row["cells"],
        "epsilon": row["epsilon"],
        "estimates": row["estimates"],
        "posterior_of": row["posterior of"],
    }


def _print_names(reference: str, opened: Release, *, has_files: bool, as_json: bool) -> None:
    """Print which statistics there are; a file is of one of them, which has to be named."""
    if has_files:
        message = f"{opened.label} has several statistics, {', '.join(opened)}: name the one that is written"
        raise UsageError(message)
    rows = opened.statistics.table()
    if as_json:
        statistics = [_askable(row) for row in rows]
        output.print_json(document(StatisticList(release=opened.label, statistics=statistics)))
        return
    output.print_rows(rows)
    say(f"\none of them: suffice table {output.in_line(shlex.quote(reference))} {next(iter(opened))}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """A statistic's table, whichever mechanism made it, and how the rest of the output speaks of it.

    Of all cells that were asked for, the first ``shown`` are in it.
    """

    shown: int
    n_cells: int
    stated: StatedEstimates | StatedSample | StatedQuantile
    draw: Callable[..., None]
    say_more: Callable[[], None]
    what: str


def _estimates(release: Release, statistic: str, where: dict[str, str], *, whole: bool) -> _Table:
    from suffice.data_files.source import table_source

    cells = release.cells(statistic, where)
    first = None if whole else max(1, output.MOST_ROWS // len(cells.plan.quantities))
    chosen = release.selected(statistic, where, first=first)

    def draw(path: Path, **texts: str) -> None:
        from suffice.plots.tables import plot_table  # the plot extra

        plot_table(chosen, path, about=release.about, **texts)

    return _Table(
        shown=len(chosen.values),
        n_cells=len(cells),
        stated=StatedEstimates(
            source=table_source(release, chosen.plan.name),
            plan=chosen.plan,
            saturated=chosen.n_saturated,
            rows=chosen.table(),
        ),
        draw=draw,
        say_more=lambda: output.print_saturation(chosen),
        what="quantities",
    )


def _sample(release: Release, asked: ReleasedSample, *, whole: bool) -> _Table:
    import numpy as np

    from suffice.data_files.source import sample_source
    from suffice.pipeline.terms.declaration.exact_numbers import format_number
    from suffice.pipeline.terms.released.sample import ReleasedQuantile
    from suffice.pipeline.terms.statistics.drawn_quantile import LEVEL

    n_cells, n_draws = asked.indices.shape
    shown = n_cells if whole else min(n_cells, max(1, output.MOST_ROWS // n_draws))
    chosen = asked.take(np.arange(shown))
    source = sample_source(release, chosen)

    def draw(path: Path, **texts: str) -> None:
        from suffice.plots.tables import plot_sample  # the plot extra

        plot_sample(chosen, path, about=release.about, **texts)

    if isinstance(chosen, ReleasedQuantile):
        quantile, bound = chosen.quantile, chosen.rank_bound()
        return _Table(
            shown=shown,
            n_cells=n_cells,
            stated=StatedQuantile(
                source=source,
                plan=chosen.plan,
                quantile=format_number(quantile.quantile),
                rank_scale=format_number(quantile.rank_scale),
                rank_bound=bound,
                rows=chosen.table(),
            ),
            draw=draw,
            say_more=lambda: say(
                f"\n{source.notes[0]}; whatever the data are, a draw is within {math.ceil(bound):,} records "
                f"of that rank with probability {LEVEL:g} at least"
            ),
            what="parameters",
        )
    drawn = chosen.sample
    return _Table(
        shown=shown,
        n_cells=n_cells,
        stated=StatedSample(
            source=source,
            plan=chosen.plan,
            prior=drawn.prior,
            grid=drawn.grid,
            within=(format_number(drawn.within[0]), format_number(drawn.within[1])),
            temperature=format_number(drawn.temperature),
            rows=chosen.table(),
        ),
        draw=draw,
        say_more=lambda: say(f"\nprior: {drawn.prior}\n{source.notes[0]}"),
        what="parameters",
    )
