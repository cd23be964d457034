"""The command that reports what cells have in common, and what public covariates explain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice.cli import options, output
from suffice.cli.answers import INTERVAL, MODEL, OF_A_MODEL, ModelAnswer, answer_terms
from suffice.cli.files import OverwriteOption  # noqa: TC001 - Typer reads it
from suffice.cli.output import in_line, say
from suffice.cli.pooled import COEFFICIENT, AskedPooling, pooling_of, with_pooling
from suffice.data_files.tables import columns_of
from suffice.errors import UsageError
from suffice.pipeline.terms.declaration.documents import Count, Rows, document, printed

if TYPE_CHECKING:
    from suffice.pipeline.terms.released.table import Table

CELL: dict[str, Any] = {"parameter": str, **INTERVAL, "own_share": float, "outside": float}
_WITHOUT = ("prior", "method", "clipping", "within_unit", "predictor_prior")


@printed(f"{OF_A_MODEL} population explained coefficients misfits least_own rows?")
@dataclass(frozen=True, slots=True, kw_only=True)
class SmallAreasAnswer(ModelAnswer):
    """What ``suffice model small-areas`` prints."""

    population: Annotated[
        list[dict[str, Any]],
        Rows(cells=Count, identified=bool),  # the others are a population's or, of cells in order, a walk's
    ]
    explained: list[str]
    coefficients: Annotated[list[dict[str, Any]], Rows(**COEFFICIENT)]
    misfits: Annotated[list[dict[str, Any]], Rows(**CELL)]
    least_own: Annotated[list[dict[str, Any]], Rows(**CELL)]
    rows: Annotated[list[dict[str, Any]], Rows(**CELL)] | None


@options.with_terms(without=_WITHOUT)
@with_pooling
def small_areas(
    release: options.ReleaseArgument,
    statistic: options.StatisticArgument,
    terms: options.Terms,
    pooling: AskedPooling,
    least: Annotated[
        int, typer.Option("--least", metavar="K", help="How many of the least own answers are listed.")
    ] = 10,
    mass: options.MassOption = 0.95,
    draws: options.NumberOfDrawsOption = 4000,
    seed: options.SeedOption = None,
    out: options.OutOption = None,
    store: options.StoreOption = options.DEFAULT_STORE,
    public_keys: options.PublicKeyOption = None,
    *,
    allow_withdrawn: options.AllowWithdrawnOption = False,
    overwrite: OverwriteOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Report what cells have in common, and what public covariates explain. Costs no privacy."""
    from suffice.pipeline.math.distributions.interval_kinds import CENTRAL
    from suffice.pipeline.math.parameters.arguments import ends_of, interval_in_words

    if least < 1:
        message = f"--least is a number of cells, at least 1, not {least}"
        raise UsageError(message)
    output.check_out(out, overwrite=overwrite)
    options.check_draws(draws, seed)
    ends_of(mass)
    opened = options.open_for_reading(release, store, public_keys, allow_withdrawn=allow_withdrawn)
    from suffice.pipeline.ask.models.small_areas import small_areas as report_of

    terms["where"] = opened.about.in_names(terms["where"], opened.group_columns)
    report = report_of(opened, statistic, pooling_of(pooling) or True, **terms)
    cells = report.cells(mass, draws=draws, rng=seed)
    if out is not None:
        source = output.model_source(MODEL, [opened], report.posterior, mass=mass, draws=draws, seed=seed)
        output.write_table(columns_of(cells), out, source, overwrite=overwrite)
    if as_json:
        answer = SmallAreasAnswer(
            **answer_terms(opened, report.posterior, mass=mass, draws=draws, seed=seed),
            population=report.population(),
            explained=list(report.lines),
            coefficients=report.coefficients(),
            misfits=report.misfits(cells),
            least_own=report.least_own(cells, least),
            rows=None if out is not None else cells,
        )
        output.print_json(document(answer))
        return
    for table in (
        report.population(),
        report.coefficients(),
        report.misfits(cells),
        report.least_own(cells, least),
    ):
        _print_table(table)
    for line in report.lines:
        say(in_line(line))
    output.print_saturation(opened.statistic(statistic))
    output.print_conflicts(report.posterior)
    output.print_diagnostics(report.posterior)
    say(f"\nrelease: {opened.label}")
    output.print_rows_of(report.posterior.rows_of)
    say(f"prior: {report.posterior.prior}")
    say(f"prior of N: {report.posterior.n_prior}")
    say(f"intervals: {interval_in_words(CENTRAL, mass)}")
    output.print_written(table=out)


def _print_table(table: Table) -> None:
    """Print a table below its title, where it has a row."""
    if table:
        say(in_line(table.title) + "\n")
        output.print_rows(table.in_words(table), digits=output.DIGITS, others="--json or --out")
        say("")
