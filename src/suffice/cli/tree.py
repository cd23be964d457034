"""``suffice tree``: the counts at all nodes of a tree, inferred together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice.cli import options, output
from suffice.cli.files import OverwriteOption  # noqa: TC001 - Typer reads it
from suffice.cli.output import in_line, say
from suffice.errors import UsageError
from suffice.pipeline.terms.declaration.documents import Count, CountOrNone, Measured, Rows, document, printed

if TYPE_CHECKING:
    from suffice.data_files.source import Provenance
    from suffice.pipeline.ask.trees.count_tree import CountTree
    from suffice.pipeline.terms.released.table import Table

_ANSWERS = ("--share", "--ratio", "--released")


@printed("source release tree levels population mass draws seed notes rows")
@dataclass(frozen=True, slots=True, kw_only=True)
class TreeAnswer:
    """What ``suffice tree`` prints."""

    source: Provenance
    release: str
    tree: str
    levels: tuple[str, ...]
    population: str
    mass: float
    draws: Count
    seed: CountOrNone
    notes: tuple[str, ...]
    rows: Annotated[list[dict[str, Any]], Rows(level=str, key=str, lower=Measured, upper=Measured)]


def tree(
    release: options.ReleaseArgument,
    name: Annotated[str, typer.Argument(help="A tree of the release: what its spec calls the statistic.")],
    where: options.WhereOption = None,
    level: Annotated[str | None, typer.Option("--level", help="One level's nodes alone.")] = None,
    ratio: Annotated[
        str | None,
        typer.Option(
            "--ratio", metavar="COMPONENT", help="Its part of all components, as true of a truth value."
        ),
    ] = None,
    population: Annotated[
        str,
        typer.Option(
            "--population",
            metavar="contaminated|negative-binomial|reciprocal",
            help="What the leaves' counts are drawn from.",
        ),
    ] = "contaminated",
    mass: options.MassOption = 0.95,
    draws: options.NumberOfDrawsOption = 2000,
    seed: options.SeedOption = None,
    out: options.OutOption = None,
    store: options.StoreOption = options.DEFAULT_STORE,
    public_keys: options.PublicKeyOption = None,
    *,
    share: Annotated[bool, typer.Option("--share", help="Each node's share of its parent.")] = False,
    released: Annotated[
        bool,
        typer.Option("--released", help="What was released, and least squares, beside the posterior."),
    ] = False,
    allow_withdrawn: options.AllowWithdrawnOption = False,
    overwrite: OverwriteOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Print the counts at all nodes of a tree: whole numbers that add up. Costs no privacy."""
    asked = [name for name, wanted in zip(_ANSWERS, (share, ratio, released), strict=True) if wanted]
    if len(asked) > 1:
        message = f"{' and '.join(asked)} are different answers: ask for one of them"
        raise UsageError(message)
    if (share or ratio is not None) and level is None:
        message = f"{asked[0]} is of the nodes of one level: name it with --level"
        raise UsageError(message)
    output.check_out(out, overwrite=overwrite)
    options.check_draws(draws, seed)
    opened = options.open_for_reading(release, store, public_keys, allow_withdrawn=allow_withdrawn)
    from suffice.data_files.source import SUMMARIES, Provenance, ReleaseSource
    from suffice.data_files.tables import columns_of

    counts = opened.tree(name, options.parse_pairs("--where", where), population=population)
    table = _answer(counts, level, ratio, mass, draws, seed, share=share, released=released)
    is_drawn = share or ratio is not None
    source = Provenance(
        what=SUMMARIES,
        releases=(ReleaseSource.of(opened),),
        statistic=name,
        where=", ".join(where or ()) or None,
        model=f"tree; levels {', '.join(counts.tree.levels)}; leaves {population}",
        mass=mass,
        draws=draws if is_drawn else None,
        seed=seed if is_drawn else None,
        notes=counts.notes,
    )
    if out is not None:
        output.write_table(columns_of(table), out, source, overwrite=overwrite)
    if as_json:
        answer = TreeAnswer(
            source=source,
            release=opened.label,
            tree=name,
            levels=counts.tree.levels,
            population=population,
            mass=mass,
            draws=draws,
            seed=seed,
            notes=counts.notes,
            rows=[] if out is not None else table,
        )
        output.print_json(document(answer))
        return
    if out is None:
        if where:
            say(f"{in_line(', '.join(where))}\n")
        output.print_rows(table, digits=output.DIGITS, others="--level, --json or --out")
        say("")
    for note in counts.notes:
        say(in_line(note))
    say(f"release: {opened.label}")
    output.print_rows_of(opened.plan_of(f"{name}.{counts.tree.levels[-1]}").rows_of, "counts")
    output.print_written(table=out)


def _answer(
    counts: CountTree,
    level: str | None,
    ratio: str | None,
    mass: float,
    draws: int,
    seed: int | None,
    *,
    share: bool,
    released: bool,
) -> Table:
    """Return the table that was asked for."""
    if share and level is not None:
        return counts.share(level, mass=mass, draws=draws, rng=seed)
    if ratio is not None and level is not None:
        return counts.ratio(ratio, level, mass=mass, draws=draws, rng=seed)
    if released:
        beside = counts.least_squares(mass)
        kept = [row for row in beside if level is None or row["level"] == level]
        if level is not None and not kept:
            counts.table(mass, level=level)  # refuses a level that there is not
        return type(beside)(kept, title=beside.title)
    return counts.table(mass, level=level)
