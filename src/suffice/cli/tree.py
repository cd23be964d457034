"""``suffice tree``: the counts, or totals, at all nodes of a tree, inferred together."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice.cli import options, output
from suffice.cli.files import OverwriteOption  # noqa: TC001 - Typer reads it
from suffice.cli.output import in_line, say
from suffice.errors import UsageError
from suffice.pipeline.terms.declaration.documents import Count, Measured, Rows, document, printed
from suffice.pipeline.terms.declaration.wording import wrapped
from suffice.pipeline.terms.released.table import number_beside
from suffice.profile.settings import pinned_certificates, pinned_profile, setting

if TYPE_CHECKING:
    from suffice.data_files.source import Provenance
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.trees.count_tree import CountTree
    from suffice.pipeline.terms.released.table import Table

_ANSWERS = ("--share", "--ratio", "--released")


@printed("source release tree levels population mass draws? seed? notes rows")
@dataclass(frozen=True, slots=True, kw_only=True)
class TreeAnswer:
    """What ``suffice tree`` prints; ``draws`` and ``seed`` where numbers are from draws.

    Where there are several trees, rows have the keys of the groups that were left open.
    """

    source: Provenance
    release: str
    tree: str
    levels: tuple[str, ...]
    population: str
    mass: float
    draws: Count | None
    seed: Count | None
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
            metavar="contaminated|zero-inflated|negative-binomial|reciprocal",
            help="What the leaves' counts are drawn from.",
        ),
    ] = "contaminated",
    mass: options.MassOption = 0.95,
    draws: options.NumberOfDrawsOption = 2000,
    seed: options.SeedOption = None,
    out: options.OutOption = None,
    store: options.StoreOption = options.DEFAULT_STORE,
    public_keys: options.PublicKeyOption = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="threads|local|ADDRESS|MODULE:FUNCTION",
            help="Where pieces of a very large tree are worked out; all of it here otherwise.",
        ),
    ] = None,
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
    """Print the counts, or totals, at all nodes of a tree, which add up. Costs no privacy."""
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

    is_drawn = share or ratio is not None
    with ExitStack() as clusters:
        trees = _trees(opened, name, options.parse_pairs("--where", where), population, cluster, clusters)
        tables = [
            (keys, _answer(of, level, ratio, mass, draws, seed, share=share, released=released))
            for keys, of in trees
        ]
    _, counts = trees[0]
    table: list[dict[str, Any]] = [{**keys, **row} for keys, rows in tables for row in rows]
    notes = max((of for _, of in trees), key=lambda of: of.error).notes  # of the least exact one
    source = Provenance(
        what=SUMMARIES,
        releases=(ReleaseSource.of(opened),),
        statistic=name,
        where=", ".join(where or ()) or None,
        model=f"tree; levels {', '.join(counts.tree.levels)}; leaves {population}",
        mass=mass,
        draws=draws if is_drawn else None,
        seed=seed if is_drawn else None,
        notes=notes,
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
            draws=draws if is_drawn else None,
            seed=seed if is_drawn else None,
            notes=notes,
            rows=[] if out is not None else table,
        )
        output.print_json(document(answer))
        return
    if out is None:
        for keys, rows in tables:
            heads = [*(where or ()), *(f"{column}={key}" for column, key in keys.items())]
            _print(rows, ", ".join(heads), output.MOST_ROWS // len(tables), released=released)
    for note in notes:
        say(wrapped(in_line(note)))
    say(f"release: {opened.label}")
    rows_of = opened.plan_of(f"{name}.{counts.tree.levels[-1]}").rows_of
    if rows_of is not None:
        say(wrapped(f"counts: {rows_of}"))
    output.print_written(table=out)


_MOST_TREES = 20
"""That are shown where no key of other groups is chosen."""


def _trees(
    opened: Release,
    name: str,
    where: dict[str, str],
    population: str,
    cluster: str | None,
    clusters: ExitStack,
) -> list[tuple[dict[str, object], CountTree]]:
    """Return each tree that is asked for, by the keys of groups that were left open; none of a single one."""
    from suffice.pipeline.ask.batches.open_tree import open_tree  # Dask and the spec are slow to read
    from suffice.pipeline.ask.pooling.released_tree import tree_choices
    from suffice.pipeline.terms.declaration.hierarchy import level_name

    if name not in opened.trees:
        opened.tree(name)  # it refuses it
    stated = opened.in_names(where) or {}
    leaf = opened.trees[name][-1]
    choices = tree_choices(stated, leaf, opened.plan_of(level_name(name, leaf)).groups, _MOST_TREES)
    if cluster is None:
        trees = [opened.tree(name, choice, population=population) for choice in choices]
    else:
        placed, certificates = (
            setting("cluster", cluster, profile=pinned_profile()).value,
            pinned_certificates(),
        )
        trees = [
            clusters.enter_context(
                open_tree(
                    opened,
                    name,
                    choice,
                    cluster=placed or cluster,
                    certificates=certificates,
                    population=population,
                )
            )
            for choice in choices
        ]
    left = [{column: key for column, key in choice.items() if column not in stated} for choice in choices]
    twice = next((column for column in left[0] if column in _COLUMNS), None)
    if twice is not None:
        message = f"a column of the table is called {twice} too: choose one tree, as --where {twice}=KEY"
        raise UsageError(message)
    return list(zip(left, trees, strict=True))


_COLUMNS = frozenset({"component", "level", "key", "mean", "sd", "lower", "upper", "released", "below"})


def _print(rows: Table, heading: str, limit: int, *, released: bool) -> None:
    """Print the numbers of one tree under the keys that it is of."""
    others = "--level, --json or --out"
    if not released:
        if heading:
            say(f"{in_line(heading)}\n")
        output.print_rows(rows, digits=output.DIGITS, limit=limit, others=others)
        say("")
        return
    by_level: dict[str, list[dict[str, Any]]] = {}
    for row in rows[:limit]:
        heads = [heading, row.get("component", ""), row["level"]]
        by_level.setdefault(", ".join(filter(None, heads)), []).append(_beside(row))
    for name, of_level in by_level.items():
        say(f"{in_line(name)}\n")
        output.print_rows(of_level)
        say("")
    if len(rows) > limit:
        say(f"... and {len(rows) - limit} more rows: use {others}\n")
    say(
        "below: what was released right below, added up; mean, lower and upper: of the\n"
        "posterior; --json has normal intervals of least squares too\n"
    )


def _beside(row: dict[str, Any]) -> dict[str, str]:
    """Return what was released, least squares and the posterior of a node, as narrow as it goes."""

    def whole(value: float | None) -> str:
        if value is None:
            return ""
        return f"{value:,}" if isinstance(value, int) else number_beside(value, row["sd"])

    texts = {
        "key": str(row["key"]),
        "released": whole(row["released"]),
        "below": whole(row["below"]),
        "least_squares": number_beside(row["least_squares"], row["sd"]),
        "mean": number_beside(row["mean"], row["sd"]),
        "lower": whole(row["posterior_lower"]),
        "upper": whole(row["posterior_upper"]),
    }
    if row["below"] is None:
        del texts["below"]
    return texts


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
