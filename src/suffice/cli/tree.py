"""``suffice tree``: the counts, or totals, at all nodes of a tree, inferred together."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice.cli import options, output
from suffice.cli.answers import INTERVAL
from suffice.cli.files import OverwriteOption  # noqa: TC001 - Typer reads it
from suffice.cli.output import in_line, say
from suffice.errors import UnknownNameError, UsageError
from suffice.pipeline.terms.declaration.documents import Count, Measured, Rows, document, printed
from suffice.pipeline.terms.declaration.wording import wrapped
from suffice.pipeline.terms.released.table import Table, number_beside
from suffice.profile.settings import pinned_certificates, pinned_profile, setting

if TYPE_CHECKING:
    from suffice.data_files.source import Provenance
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.trees.count_tree import CountTree
    from suffice.pipeline.terms.declaration.key_tree import KeyTree


@printed("source release tree levels population mass draws? seed? error notes rows ranks? roll_up?")
@dataclass(frozen=True, slots=True, kw_only=True)
class TreeAnswer:
    """What ``suffice tree`` prints; ``draws`` and ``seed`` where numbers are from draws.

    Where there are several trees, rows have the keys of the groups that were left open. Chances are off by
    ``error`` at most, about.
    """

    source: Provenance
    release: str
    tree: str
    levels: tuple[str, ...]
    population: str
    mass: float
    draws: Count | None
    seed: Count | None
    error: float
    notes: tuple[str, ...]
    rows: Annotated[list[dict[str, Any]], Rows(level=str, key=str, lower=Measured, upper=Measured)]
    ranks: Annotated[list[dict[str, Any]], Rows(level=str, key=str, probability=float)] | None
    roll_up: Annotated[list[dict[str, Any]], Rows(**INTERVAL)] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """What is asked of each tree: one of the answers, or a table of all nodes where none is named."""

    level: str | None
    component: str | None
    ratio: str | None
    rank: int | None
    nodes: dict[str, list[str]]
    share: bool
    sum: bool
    released: bool
    mass: float
    draws: int
    seed: int | None

    @property
    def answers(self) -> list[str]:
        """The options of the answers that are asked for."""
        wanted = {
            "--share": self.share,
            "--ratio": self.ratio is not None,
            "--sum": self.sum,
            "--rank": self.rank is not None,
            "--roll-up": bool(self.nodes),
            "--released": self.released,
        }
        return [name for name, is_wanted in wanted.items() if is_wanted]

    @property
    def is_drawn(self) -> bool:
        """Whether numbers are from joint draws."""
        return bool(self.answers) and not self.released

    @property
    def in_words(self) -> str:
        """What rows do not say themselves: among how many nodes each is ranked, and what is rolled up."""
        if self.rank is not None:
            return f"among the {self.rank} highest" + (f", {self.component}" if self.component else "")
        return ", ".join(f"{level}={key}" for level, keys in self.nodes.items() for key in keys)

    def check(self) -> None:
        """Refuse options that do not go together, and a mass that is no chance.

        Raises
        ------
        UsageError
        """
        from suffice.pipeline.math.parameters.contrasts import require_share  # help needs no numbers

        require_share("mass", self.mass)
        if not self.answers:
            return
        answer, *others = self.answers
        if others:
            message = f"{' and '.join(self.answers)} are different answers: ask for one of them"
        elif answer == "--roll-up" and self.level is not None:
            message = "--roll-up names levels itself: leave --level out"
        elif answer not in {"--roll-up", "--released"} and self.level is None:
            message = f"{answer} is of the nodes of one level: name it with --level"
        elif answer in {"--ratio", "--sum"} and self.component is not None:
            message = f"{answer} is of all components: leave --component out"
        else:
            return
        raise UsageError(message)

    def check_names(self, levels: list[str], components: tuple[str, ...]) -> None:
        """Refuse levels and components that a tree does not have, before it is inferred.

        Raises
        ------
        UnknownNameError
        """
        from suffice.pipeline.terms.declaration.hierarchy import level_place  # help needs no numbers

        for level in (*self.nodes, *filter(None, [self.level])):
            level_place(levels, level)
        stray = next((name for name in (self.component, self.ratio) if name not in {None, *components}), None)
        if stray is not None:
            message = f"the tree has no component {stray!r}: it has {', '.join(components)}"
            raise UnknownNameError(message)
        if self.share and self.level == levels[0]:
            message = f"{self.level} is the root, of which there is no share: name a level below it"
            raise UsageError(message)
        if self.rank is not None and self.component is None and len(components) > 1:
            message = f"--rank is of one component: name it with --component, one of {', '.join(components)}"
            raise UsageError(message)

    def check_nodes(self, tree: KeyTree) -> None:
        """Refuse keys and ranks that a tree does not have, before it is inferred.

        Raises
        ------
        UsageError
        """
        from suffice.pipeline.ask.trees.wanted_nodes import checked_highest, marked_leaves

        if self.nodes:
            marked_leaves(tree, self.nodes)
        if self.rank is not None and self.level is not None:
            checked_highest(tree, self.level, self.rank)

    def of(self, counts: CountTree) -> Table:
        """Answer it of one tree."""
        drawn: Any = {"draws": self.draws, "rng": self.seed}
        level = self.level or ""  # `check` has seen to it where an answer needs one
        answers = {
            "--share": lambda: counts.share(level, component=self.component, mass=self.mass, **drawn),
            "--ratio": lambda: counts.ratio(str(self.ratio), level, mass=self.mass, **drawn),
            "--sum": lambda: counts.sum(level, mass=self.mass, **drawn),
            "--rank": lambda: counts.rank_probabilities(
                level, within=self.rank or 0, component=self.component, **drawn
            ),
            "--roll-up": lambda: counts.roll_up(self.nodes, mass=self.mass, **drawn),
            "--released": lambda: counts.least_squares(self.mass),
        }
        rows = answers[self.answers[0]]() if self.answers else counts.table(self.mass, level=self.level)
        wanted = {"level": self.level, "component": self.component}
        kept = [
            row for row in rows if all(of is None or row.get(name, of) == of for name, of in wanted.items())
        ]
        return Table(kept, title=rows.title)


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
    component: Annotated[
        str | None, typer.Option("--component", help="One component's rows alone, as true of a truth value.")
    ] = None,
    rank: Annotated[
        int | None,
        typer.Option("--rank", metavar="N", help="How probably each node is among the N highest."),
    ] = None,
    roll_up: Annotated[
        list[str] | None,
        typer.Option("--roll-up", metavar="LEVEL=KEY", help="What these nodes hold together. May repeat."),
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
    sum_: Annotated[bool, typer.Option("--sum", help="What all components of a node have together.")] = False,
    released: Annotated[
        bool,
        typer.Option("--released", help="What was released, and least squares, beside the posterior."),
    ] = False,
    allow_withdrawn: options.AllowWithdrawnOption = False,
    overwrite: OverwriteOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Print the counts, or totals, at all nodes of a tree, which add up. Costs no privacy."""
    asked = _Question(
        level=level,
        component=component,
        ratio=ratio,
        rank=rank,
        nodes=_nodes(roll_up),
        share=share,
        sum=sum_,
        released=released,
        mass=mass,
        draws=draws,
        seed=seed,
    )
    asked.check()
    output.check_out(out, overwrite=overwrite)
    options.check_draws(draws, seed)
    opened = options.open_for_reading(release, store, public_keys, allow_withdrawn=allow_withdrawn)
    from suffice.data_files.source import SUMMARIES, Provenance, ReleaseSource
    from suffice.data_files.tables import columns_of

    with ExitStack() as clusters:
        stated = options.parse_pairs("--where", where)
        trees = _trees(opened, name, stated, asked, population, cluster, clusters)
        tables = [(keys, asked.of(counts)) for keys, counts in trees]
    _, counts = max(trees, key=lambda keyed: keyed[1].error)  # the least exact one
    table: list[dict[str, Any]] = [{**keys, **row} for keys, rows in tables for row in rows]
    which = f"; {asked.in_words}" if asked.in_words else ""
    source = Provenance(
        what=SUMMARIES,
        releases=(ReleaseSource.of(opened),),
        statistic=name,
        where=", ".join(where or ()) or None,
        model=f"tree; levels {', '.join(counts.tree.levels)}; leaves {population}{which}",
        mass=mass,
        draws=draws if asked.is_drawn else None,
        seed=seed if asked.is_drawn else None,
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
            draws=draws if asked.is_drawn else None,
            seed=seed if asked.is_drawn else None,
            error=counts.error,
            notes=counts.notes,
            rows=[] if out is not None or rank is not None or roll_up else table,
            ranks=table if out is None and rank is not None else None,
            roll_up=table if out is None and roll_up else None,
        )
        output.print_json(document(answer))
        return
    if out is None:
        for keys, rows in tables:
            heads = [asked.in_words, *(where or ()), *(f"{column}={key}" for column, key in keys.items())]
            _print(rows, ", ".join(filter(None, heads)), output.MOST_ROWS // len(tables), released=released)
    for note in counts.notes:
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
    asked: _Question,
    population: str,
    cluster: str | None,
    clusters: ExitStack,
) -> list[tuple[dict[str, object], CountTree]]:
    """Return each tree that is asked for, by the keys of groups that were left open; none of a single one."""
    from suffice.pipeline.ask.batches.open_tree import open_tree  # Dask and the spec are slow to read
    from suffice.pipeline.ask.pooling.released_tree import released_tree, tree_choices
    from suffice.pipeline.ask.trees.released_levels import components_of
    from suffice.pipeline.terms.declaration.hierarchy import level_name

    if name not in opened.trees:
        opened.tree(name)  # it refuses it
    stated = opened.in_names(where) or {}
    levels = opened.trees[name]
    leaves = opened.plan_of(level_name(name, levels[-1]))
    asked.check_names(levels, components_of(leaves))
    choices = tree_choices(stated, levels[-1], leaves.groups, _MOST_TREES)
    left = [{column: key for column, key in choice.items() if column not in stated} for choice in choices]
    twice = next((column for column in left[0] if column in _COLUMNS), None)
    if twice is not None:
        message = f"a column of the table is called {twice} too: choose one tree, as --where {twice}=KEY"
        raise UsageError(message)
    if asked.nodes or asked.rank is not None:
        keys, _ = released_tree(opened, name, choices[0])
        asked.check_nodes(keys)
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
    return list(zip(left, trees, strict=True))


_COLUMNS = frozenset(
    {"component", "level", "key", "mean", "sd", "lower", "upper", "probability", "released", "below"}
)


def _nodes(pairs: list[str] | None) -> dict[str, list[str]]:
    """Read repeated LEVEL=KEY."""
    nodes: dict[str, list[str]] = {}
    for pair in pairs or ():
        level, equals, key = pair.partition("=")
        if not equals:
            message = f"--roll-up {pair}: write it as LEVEL=KEY"
            raise UsageError(message)
        nodes.setdefault(level, []).append(key)
    return nodes


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
