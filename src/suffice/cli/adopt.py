"""``suffice adopt``, and what other commands show of a release that was adopted."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, cast

import typer

from suffice.cli import options, output
from suffice.cli.answers import IntervalKind, Summaries  # noqa: TC001 - schemas are made of them
from suffice.cli.output import say
from suffice.errors import ReleaseCorruptError, UsageError
from suffice.pipeline.ask.inference.posterior_terms import TERMS
from suffice.pipeline.terms.declaration.documents import Count, CountOrNone, Rows, document

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.ask.pooling.adopted import AdoptedRelease


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptedStatistics:
    """A statistic of an adopted release."""

    statistic: str
    family: str
    columns: str
    cells: Count
    suppressed: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAdopted:
    """What is shown of an adopted release."""

    status: Literal["adopted"] = "adopted"
    name: str
    release_id: str
    uri: str
    publisher: str
    source: str
    licence: str
    privacy: str
    keys: list[str]
    law: dict[str, str]
    statistics: list[AdoptedStatistics]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptedTable:
    """What ``suffice table`` prints of an adopted release."""

    status: Literal["adopted"] = "adopted"
    release: str
    statistic: str
    family: str
    rows: Annotated[
        list[dict[str, Any]],
        Rows(
            column=str,
            published=str,
            status=str,
            noisy_from=float | None,
            noisy_to=float | None,
            noise_sd=float,
        ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptedAnswer:
    """What ``suffice posterior`` prints of an adopted release."""

    status: Literal["adopted"] = "adopted"
    release: str
    statistic: str
    family: str
    rows_of: str
    pooled: list[str]
    cells: Literal["vary", "alike"] | None
    prior: str
    n_prior: str | None
    mass: float
    interval: IntervalKind
    draws: Count
    seed: CountOrNone
    rows: Summaries
    conflicts: list[str]
    decided_by_default: list[str]


def adopt(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="A published noisy table: CSV or Parquet.")],
    law: Annotated[
        Path, typer.Argument(metavar="LAW", help="What its publisher says of the noise: YAML or JSON.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="A new folder for the adopted release.")
    ] = None,
    *,
    as_json: options.JsonOption = False,
) -> None:
    """Read somebody else's published noisy table, with its declared law, as a release. Needs no ledger."""
    from suffice.pipeline.ask.pooling.adopted import adopt as adopt_table
    from suffice.storage.releases.adopted_files import write_adopted

    adopted = adopt_table(table, law)
    adopted = write_adopted(adopted, Path(adopted.name) if out is None else out)
    show(adopted, as_json=as_json)


def opened(reference: str) -> AdoptedRelease:
    """Open the adopted release that a command names."""
    from suffice.storage.releases.adopted_files import open_adopted

    return open_adopted(reference)


def show(adopted: AdoptedRelease, *, as_json: bool) -> None:
    """Print what an adopted release is, and what can be asked of it."""
    from suffice.pipeline.ask.pooling.adopted import in_words

    law = adopted.law
    if as_json:
        shown = ShownAdopted(
            name=adopted.name,
            release_id=adopted.release_id,
            uri=adopted.uri,
            publisher=law.publisher,
            source=law.source,
            licence=law.licence,
            privacy=law.privacy,
            keys=list(law.keys),
            law={name: in_words(column) for name, column in law.columns.items()},
            statistics=[AdoptedStatistics(**row) for row in adopted.statistics],
        )
        output.print_json(document(shown))
        return
    say(f"{adopted.label}  {adopted.release_id}\n{adopted.uri}\n")
    for line in adopted.about:
        say(line)
    say("")
    output.print_rows(adopted.statistics)
    place = adopted.uri if "/" in adopted.uri else f"./{adopted.uri}"
    say(f"\nask: suffice posterior {output.in_line(shlex.quote(place))} {next(iter(adopted))}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedAdopted:
    """An adopted release in a folder."""

    status: Literal["adopted"] = "adopted"
    name: str
    release_id: str
    publisher: str
    uri: str


class AdoptedList(TypedDict):
    """What ``suffice list`` prints of a folder of adopted releases."""

    folder: str
    adopted: list[ListedAdopted]
    problems: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedAdopted:
    """What ``suffice verify`` prints of an adopted release."""

    ok: bool
    status: Literal["adopted"] = "adopted"
    ledger: Literal["none"] = "none"
    problems: list[str]


def listed(place: str, *, as_json: bool) -> bool:
    """List the adopted releases of a local folder, or the one that it is; tell whether there are any."""
    from suffice.storage.releases.adopted_files import adopted_in

    rows, problems = [], []
    for folder in adopted_in(place):
        try:
            each = opened(str(folder))
        except ReleaseCorruptError as error:
            problems.append(str(error))
            continue
        rows.append(
            ListedAdopted(
                name=each.name, release_id=each.release_id, publisher=each.law.publisher, uri=each.uri
            )
        )
    if not rows and not problems:
        return False
    if as_json:
        output.print_json(document(AdoptedList(folder=place, adopted=rows, problems=problems)))
    else:
        if rows:
            output.print_rows([asdict(row) for row in rows])
        say("\nadopted: of other people's data, in no ledger; what can be asked: suffice show DIR")
        for problem in problems:
            say(f"not listed: {problem}")
    if problems:
        raise typer.Exit(ReleaseCorruptError.exit_status)
    return True


def verified(reference: str, ledger: str | None, *, as_json: bool) -> bool:
    """Verify a local adopted release; tell whether it is one."""
    from suffice.storage.releases.adopted_files import adopted_in, open_adopted

    if Path(reference) not in adopted_in(reference):
        return False
    if ledger is not None:
        message = (
            "--ledger: the release was adopted and cost nothing, so that no ledger knows of it: leave it out"
        )
        raise UsageError(message)
    problems = []
    try:
        open_adopted(reference)
    except ReleaseCorruptError as error:
        problems.append(str(error))
    if as_json:
        output.print_json(document(VerifiedAdopted(ok=not problems, problems=problems)))
    else:
        for problem in problems:
            say(problem)
        say(
            "not ok - adopted: law, table and id do not fit; no ledger"
            if problems
            else "ok - adopted: the table fits its declared law and its id; no ledger"
        )
    if problems:
        raise typer.Exit(ReleaseCorruptError.exit_status)
    return True


def table(
    adopted: AdoptedRelease,
    statistic: str | None,
    where: Mapping[str, str],
    *,
    refused: Mapping[str, object],
    as_json: bool,
) -> None:
    """Print what was published for a statistic, or which statistics there are."""
    _refuse(refused, "--where; in Python, suffice.open_adopted gives frames")
    if statistic is None and len(adopted) > 1:
        show(adopted, as_json=as_json)
        return
    name = next(iter(adopted)) if statistic is None else statistic
    rows = adopted.table(name, where)
    if as_json:
        answer = AdoptedTable(
            release=adopted.label, statistic=name, family=adopted[name].family, rows=list(rows)
        )
        output.print_json(document(answer))
        return
    output.print_rows(rows)
    say(f"\nrelease: {adopted.label}, law as its publisher declared it")


def posterior(
    adopted: AdoptedRelease,
    statistic: str,
    terms: Mapping[str, Any],
    *,
    pooled: list[str],
    cells: str | None,
    mass: float,
    interval: str | None,
    draws: int,
    seed: int | None,
    plot: Path | None,
    every_cell: bool,
    refused: Mapping[str, object],
    as_json: bool,
) -> None:
    """Print posterior means and intervals of an adopted release."""
    takes = ("where", "prior", "n_prior")
    others = {
        f"--{name.replace('_', '-')}": value != TERMS[name].default
        for name, value in terms.items()
        if name not in takes
    }
    _refuse(
        {**refused, **others},
        "--where, --pooled, --cells, --prior, --n-prior, --mass, --interval, --draws, --seed and --plot; "
        "in Python, suffice.open_adopted gives frames and draws",
    )
    import numpy as np

    from suffice.pipeline.ask.posterior.notes import conflict_lines, default_lines, draws_text
    from suffice.pipeline.ask.posterior.summaries import summarise
    from suffice.pipeline.math.parameters.arguments import interval_in_words

    answered = adopted.posterior(
        statistic,
        terms["prior"],
        where=terms["where"],
        pooled=pooled,
        n_prior=terms["n_prior"],
        cells=cast('Literal["vary", "alike"] | None', cells),  # it is checked there
    )
    rng = np.random.default_rng(seed)
    kind = answered.interval_kind(interval)
    rows = summarise(answered, mass, draws, rng, interval=kind)
    if plot is not None:
        answered.plot(mass=mass, interval=kind, draws=draws, rng=rng).save(plot)
    if as_json:
        answer = AdoptedAnswer(
            release=adopted.label,
            statistic=statistic,
            family=answered.family,
            rows_of=str(answered.rows_of),
            pooled=pooled,
            cells=answered.cells,
            prior=str(answered.prior),
            n_prior=None if answered.n_prior is None else str(answered.n_prior),
            mass=mass,
            interval=kind,
            draws=draws,
            seed=seed,
            rows=rows,
            conflicts=conflict_lines(answered),
            decided_by_default=default_lines(answered),
        )
        output.print_json(document(answer))
        return
    output.print_rows(rows, limit=len(rows) if every_cell else output.MOST_ROWS)
    output.print_conflicts(answered)
    output.print_default(answered)
    say(f"\nrelease: {adopted.label}")
    output.print_rows_of(answered.rows_of)
    say(f"prior: {answered.prior}")
    if answered.n_prior is not None:
        say(f"prior of N: {answered.n_prior}")
    say(f"intervals: {interval_in_words(kind, mass)}")
    if text := draws_text(answered):
        say(f"{text}; these are of {draws} draws")
    output.print_written(plot)


def _refuse(options_given: Mapping[str, object], takes: str) -> None:
    given = [option for option, value in options_given.items() if value]
    if given:
        message = f"{given[0]} is not of releases that were adopted, which take {takes}"
        raise UsageError(message)
