"""The command that draws synthetic rows from a joint model of released tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - Typer reads it
from typing import TYPE_CHECKING, Annotated

import typer

from suffice.cli import options, output
from suffice.cli.field import check_sds
from suffice.cli.files import OverwriteOption  # noqa: TC001 - Typer reads it
from suffice.cli.output import in_line, say
from suffice.errors import UsageError
from suffice.pipeline.terms.declaration.documents import Count, CountOrNone, document, printed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from suffice.data_files.source import Provenance
    from suffice.pipeline.ask.models.field import Field
    from suffice.pipeline.ask.models.network import Network
    from suffice.pipeline.ask.pooling.release import Release


@printed("source release statistics variables imputations rows draws seed notes")
@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesizeAnswer:
    """What ``suffice model synthesize`` prints; the rows are in the file."""

    source: Provenance
    release: str
    statistics: list[str]
    variables: Mapping[str, list[str]]
    imputations: Count
    rows: Count
    draws: Count
    seed: CountOrNone
    notes: list[str]


def synthesize(
    release: options.ReleaseArgument,
    statistic: Annotated[
        list[str],
        typer.Option(
            "--statistic",
            help="Several tables of one or two columns, of a field; or one network or table. May repeat.",
        ),
    ],
    rows: Annotated[int, typer.Option("--rows", help="Of each imputation.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The rows: a .parquet or .csv file.")],
    imputations: Annotated[
        int, typer.Option("--imputations", help="Data sets, each of a posterior draw of its own.")
    ] = 20,
    single_sd: Annotated[
        float | None,
        typer.Option("--single-sd", help="Of a field: as in suffice model field. Default: 2.5."),
    ] = None,
    pair_sd: Annotated[
        float | None, typer.Option("--pair-sd", help="Of a field: as in suffice model field. Default: 1.")
    ] = None,
    where: options.WhereOption = None,
    draws: options.NumberOfDrawsOption = 4000,
    seed: options.SeedOption = None,
    store: options.StoreOption = options.DEFAULT_STORE,
    public_keys: options.PublicKeyOption = None,
    *,
    allow_withdrawn: options.AllowWithdrawnOption = False,
    overwrite: OverwriteOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Write synthetic rows, as several data sets whose spread is what is not known. Costs no privacy."""
    output.check_out(out, overwrite=overwrite)
    options.check_draws(draws, seed)
    for option, number, least in (("--rows", rows, 1), ("--imputations", imputations, 2)):
        if number < least:
            message = f"{option} must be at least {least}, not {number}"
            raise UsageError(message)
    sds = {"single_sd": single_sd, "pair_sd": pair_sd}
    stated = {name: sd for name, sd in sds.items() if sd is not None}
    check_sds(stated)
    if stated and len(statistic) == 1:
        message = (
            f"--{next(iter(stated)).replace('_', '-')} is of a field, which is made of several statistics"
        )
        raise UsageError(message)
    cells = options.parse_pairs("--where", where)
    opened = options.open_for_reading(release, store, public_keys, allow_withdrawn=allow_withdrawn)
    from suffice.pipeline.math.parameters.arguments import generator  # numpy is slow to import

    rng = generator(seed)
    fit, prior, notes = _fit(opened, statistic, cells, stated, draws, rng)
    drawn = fit.synthesize(rows=rows, imputations=imputations, rng=rng)
    source = _source(opened, statistic, cells, prior=prior, draws=draws, seed=seed, notes=notes)
    output.write_table(drawn.columns(), out, source, overwrite=overwrite)
    if as_json:
        answer = SynthesizeAnswer(
            source=source,
            release=opened.label,
            statistics=statistic,
            variables={name: list(variable.categories) for name, variable in drawn.variables.items()},
            imputations=imputations,
            rows=rows,
            draws=draws,
            seed=seed,
            notes=list(notes),
        )
        output.print_json(document(answer))
        return
    named = ", ".join(drawn.variables)
    say(in_line(f"{imputations} imputations of {rows} rows of {named}: no row is of anybody"))
    say("estimate from each imputation alone; suffice.combine_imputations makes one interval of them")
    say("")
    for line in (f"prior: {prior}", *notes):
        say(in_line(line))
    say(f"wrote {out}: the rows, and which imputation each is of")


def _fit(
    opened: Release,
    statistics: Sequence[str],
    where: Mapping[str, str],
    sds: Mapping[str, float],
    draws: int,
    rng: np.random.Generator,
) -> tuple[Field | Network, str, tuple[str, ...]]:
    """Return a field of several tables, or the network of one statistic; its prior, and other words."""
    if len(statistics) > 1:
        from suffice.pipeline.ask.models.field import field_model  # numpy is slow to import

        field = field_model(opened, statistics, where=where, draws=draws, rng=rng, **sds)
        prior, *notes = field.lines
        told = ("model: field of pairs", *field.notes, *notes)
        return field, prior.removeprefix("prior of effects: "), told
    from suffice.pipeline.ask.models.network import network
    from suffice.pipeline.ask.posterior.notes import diagnostics_text

    graph = network(opened, statistics[0], where=where, draws=draws, rng=rng)
    told = tuple(f"{name}: {value}" for name, value in diagnostics_text(graph.posterior).items())
    return graph, str(graph.posterior.prior), (f"model: {graph.posterior.family}", *told)


def _source(
    opened: Release,
    statistics: Sequence[str],
    where: Mapping[str, str],
    *,
    prior: str,
    draws: int,
    seed: int | None,
    notes: Sequence[str],
) -> Provenance:
    """Return what the rows rest on."""
    from suffice.data_files.source import Provenance, ReleaseSource  # pydantic is slow to import

    return Provenance(
        what="synthetic rows, as several imputations: nobody's data",
        releases=(ReleaseSource.of(opened),),
        statistic=", ".join(statistics),
        method="noise-aware",
        prior=prior,
        where=", ".join(f"{column}={key}" for column, key in where.items()) or None,
        draws=draws,
        seed=seed,
        notes=tuple(notes),
    )
