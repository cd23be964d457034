"""The command that fits a Markov random field to released pair tables."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice.cli import options, output
from suffice.cli.answers import INTERVAL
from suffice.cli.files import OverwriteOption  # noqa: TC001 - Typer reads it
from suffice.cli.output import in_line, say
from suffice.data_files.tables import columns_of
from suffice.errors import ConflictWarning, UsageError
from suffice.pipeline.terms.declaration.documents import Count, CountOrNone, Measured, Rows, document, printed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.data_files.source import Provenance
    from suffice.pipeline.ask.models.field import Field
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.terms.released.table import Table


STRENGTH: dict[str, Any] = {
    "probability_below": float,
    "prior_lower": float,
    "prior_upper": float,
    "prior_probability_below": float,
}


@printed(
    "source release statistics target given mass below draws seed notes agreement "
    "agreement_together rows edges log_odds_ratios"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class FieldAnswer:
    """What ``suffice model field`` prints: of a question rows, and the edges of the field."""

    source: Provenance
    release: str
    statistics: list[str]
    target: list[str]
    given: Mapping[str, str]
    mass: float
    below: float
    draws: Count
    seed: CountOrNone
    notes: list[str]
    agreement: Mapping[str, float]
    agreement_together: float
    rows: Annotated[list[dict[str, Any]], Rows(parameter=str, **INTERVAL, median=Measured)]
    edges: Annotated[
        list[dict[str, Any]], Rows(first=str, second=str, **INTERVAL, median=Measured, **STRENGTH)
    ]
    log_odds_ratios: Annotated[
        list[dict[str, Any]],
        Rows(
            first=str,
            second=str,
            first_category=str,
            second_category=str,
            **INTERVAL,
            median=Measured,
            probability_above=float,
        ),
    ]


def field(
    release: options.ReleaseArgument,
    statistic: Annotated[
        list[str],
        typer.Option("--statistic", help="A contingency table of one or two columns; may repeat."),
    ],
    target: Annotated[
        list[str] | None,
        typer.Option("--target", metavar="VARIABLE", help="What is asked for; default: the edges."),
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option("--given", metavar="VARIABLE=CATEGORY", help="What is observed; may repeat."),
    ] = None,
    single_sd: Annotated[
        float, typer.Option("--single-sd", help="Prior standard deviation of effects of a variable.")
    ] = 2.5,
    pair_sd: Annotated[
        float, typer.Option("--pair-sd", help="Prior standard deviation of effects of a pair.")
    ] = 1.0,
    below: Annotated[
        float, typer.Option("--below", help="The strength of an edge that its probability is of.")
    ] = 0.1,
    where: options.WhereOption = None,
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
    """Fit a Markov random field to tables of pairs: how variables go together. Costs no privacy."""
    if given and not target:
        message = "--given says what is observed, of a question: name its --target too"
        raise UsageError(message)
    from suffice.pipeline.math.parameters.arguments import ends_of  # numpy is slow to import

    check_sds({"single_sd": single_sd, "pair_sd": pair_sd, "below": below})
    output.check_out(out, overwrite=overwrite)
    options.check_draws(draws, seed)
    ends_of(mass)
    observed = options.parse_pairs("--given", given)
    opened = options.open_for_reading(release, store, public_keys, allow_withdrawn=allow_withdrawn)
    from suffice.pipeline.ask.models.field import field_model

    cells = options.parse_pairs("--where", where)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConflictWarning)  # it is printed with the numbers
        fit = field_model(
            opened, statistic, where=cells, single_sd=single_sd, pair_sd=pair_sd, draws=draws, rng=seed
        )
    answer = fit.query(target, observed, mass) if target else None
    rows, edges = answer.rows() if answer else [], fit.edges(mass, below)
    source = _source(opened, fit, cells, mass=mass, seed=seed)
    if out is not None:
        output.write_table(columns_of(rows or edges), out, source, overwrite=overwrite)
    ratios = fit.log_odds_ratios(mass)
    if as_json:
        told = FieldAnswer(
            source=source,
            release=opened.label,
            statistics=list(fit.statistics),
            target=target or [],
            given=observed,
            mass=mass,
            below=below,
            draws=len(fit.rows),
            seed=seed,
            notes=[*fit.notes, *fit.lines],
            agreement=fit.agreement,
            agreement_together=fit.agreement_together,
            rows=rows,
            edges=edges,
            log_odds_ratios=ratios,
        )
        output.print_json(document(told))
        return
    for table in (answer.rows(),) if answer else (edges, ratios):
        _print_table(table)
    for line in (*fit.notes, *fit.lines):
        say(in_line(line))
    output.print_written(table=out)


def _print_table(table: Table) -> None:
    """Print a table below its title, and what its numbers are of."""
    say(in_line(table.title) + "\n")
    output.print_rows(table.in_words(table), digits=output.DIGITS, others="--json or --out")
    say("")
    for line in table.foot:
        say(in_line(line))
    if table.foot:
        say("")


def check_sds(stated: Mapping[str, float]) -> None:
    """Refuse prior standard deviations, and a strength, that are none."""
    for name, sd in stated.items():
        if not 0.0 < sd < math.inf:
            message = f"--{name.replace('_', '-')} must be a finite number above 0, not {sd!r}"
            raise UsageError(message)


def _source(
    opened: Release, fit: Field, where: Mapping[str, str], *, mass: float, seed: int | None
) -> Provenance:
    """Return what the numbers of a file rest on."""
    from suffice.data_files.source import Provenance, ReleaseSource  # pydantic is slow to import

    prior, *notes = fit.lines
    return Provenance(
        what="posterior summaries of a Markov random field",
        releases=(ReleaseSource.of(opened),),
        statistic=", ".join(fit.statistics),
        method="noise-aware",
        prior=prior,
        where=", ".join(f"{column}={key}" for column, key in where.items()) or None,
        mass=mass,
        interval="central",
        draws=len(fit.rows),
        seed=seed,
        notes=tuple(notes),
    )
