"""What a page shows of a tree: counts of its root and of the level below it, inferred together."""

from __future__ import annotations

import itertools
import math
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suffice.errors import SufficeError
from suffice.pages.drawing import DrawnInterval, Scale, number, row, row_axis
from suffice.pipeline.terms.declaration.hierarchy import level_name
from suffice.pipeline.terms.declaration.wording import counted
from suffice.pipeline.terms.statistics.total_step import total_step

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from markupsafe import Markup

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.trees.count_tree import CountTree
    from suffice.pipeline.spec.about import About

MASS = 0.95
MOST_TREES, MOST_NODES = 4, 40
"""Of a statistic with further groups: trees on its page; and nodes of a table's second level."""
_READING = (
    "Bars hold 95 % of the posterior probability, thick ones the middle half; ticks are means. What was "
    "released has noise, and may be negative or contradict the others."
)
MOST_LEAVES = 1200
"""Of a tree that a page works out: some seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeRow:
    """One node: its key, its interval as a picture, what was released, and the posterior."""

    key: str
    chart: Markup | str
    released: str
    mean: str
    interval: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeTable:
    """Nodes of one component of one tree.

    Attributes
    ----------
    name : str
        The tree's further keys, and the component; empty where there is one.
    axis : Markup
    rows : tuple of TreeRow
    """

    name: str
    axis: Markup
    rows: tuple[TreeRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeSection:
    """A tree as a page shows it.

    Attributes
    ----------
    name : str
    sentences : tuple of str
        What it is, and where it was not worked out, why.
    levels : tuple of str
        The first two.
    tables : tuple of TreeTable
    caption : str
    command : str
    """

    name: str
    sentences: tuple[str, ...]
    levels: tuple[str, ...]
    tables: tuple[TreeTable, ...]
    caption: str
    command: str


def tree_section(release: Release, name: str, uri: str) -> TreeSection:
    """Work out what a page shows of a tree; it rests on no draws.

    Parameters
    ----------
    release : Release
    name : str
        Of the tree.
    uri : str
        Of the release, for the command.
    """
    levels = release.trees[name]
    leaves = release.plan_of(level_name(name, levels[-1]))
    groups = leaves.groups
    beside = {column: domain for column, domain in groups.items() if column != levels[-1]}
    n_nodes = [
        math.prod(len(domain) for column, domain in plan.groups.items() if column not in beside)
        for plan in (release.plan_of(level_name(name, level)) for level in levels)
    ]
    n_trees = math.prod(map(len, beside.values()))
    keys = itertools.islice(itertools.product(*beside.values()), MOST_TREES)
    wheres = [dict(zip(beside, each, strict=True)) for each in keys]
    what = "counts of records" if total_step(leaves) is None else f"totals of {leaves.columns[0]}"
    sentences = [_what_it_is(levels, n_nodes, beside, n_trees, what)]
    tables: list[TreeTable] = []
    of_unit: tuple[str, ...] = ()
    left_out = max(0, n_nodes[1] - MOST_NODES)
    if n_nodes[-1] > MOST_LEAVES:
        sentences.append(f"This page does not infer a tree of {n_nodes[-1]:,} leaves: the command does.")
    else:
        try:
            for where in wheres:
                tree = release.tree(name, where)
                of_unit = tree.unit.notes
                tables += _tables(tree, release.about, name, where)
        except SufficeError as error:
            tables, left_out = [], 0
            sentences.append(f"It is not inferred here: {error}.")
    notes = [
        *(of_unit if tables else ()),
        *([f"Shown: the first {MOST_TREES} of {n_trees} trees."] if tables and n_trees > MOST_TREES else []),
        *([f"Of level {levels[1]} the first {MOST_NODES} of {n_nodes[1]:,} nodes."] if left_out else []),
    ]
    chosen = "".join(f" --where {shlex.quote(f'{column}={key}')}" for column, key in wheres[0].items())
    return TreeSection(
        name=name,
        sentences=tuple(sentences),
        levels=tuple(levels[:2]),
        tables=tuple(tables),
        caption=" ".join([_READING, *notes]),
        command=f"suffice tree {shlex.quote(uri)} {shlex.quote(name)}{chosen}",
    )


def _what_it_is(
    levels: list[str], n_nodes: list[int], beside: Mapping[str, object], n_trees: int, what: str
) -> str:
    """Say what levels a tree has, and what adds up."""
    sizes = [f"{level} ({counted(n, 'node')})" for level, n in zip(levels, n_nodes, strict=True)]
    of = f"of {len(levels)} levels: {', '.join(sizes[:-1])} and {sizes[-1]}"
    which = f"{n_trees} trees, one for each key of {', '.join(beside)}, each" if beside else "A tree"
    return (
        f"{which} {of}. "
        f"All levels are inferred together from their noisy {what}: never negative, and those below a node "
        "add up to its own in every draw."
    )


def _tables(tree: CountTree, about: About, name: str, where: Mapping[str, object]) -> Iterator[TreeTable]:
    """Give a table for each component of a tree."""
    keyed = ", ".join(about.key(column, key) for column, key in where.items())
    leaf = level_name(name, tree.tree.levels[-1])
    for component, posterior in tree.posteriors.items():
        named = component if len(tree.components) > 1 else ""
        several = about.value(leaf, named) if named else ""
        released = tree.released[component]
        marks: list[tuple[str, str, DrawnInterval]] = []
        for place in (0, 1):
            means = tree.unit.values(posterior.means(place))
            low, high = tree.unit.ends(*posterior.interval(place, MASS))
            first, third = tree.unit.ends(*posterior.interval(place, 0.5))
            wholes = released.values[place]
            noisy = None if wholes is None else tree.unit.values(wholes)
            for node, key in enumerate(tree.tree.keys[place][:MOST_NODES]):
                interval = DrawnInterval(
                    low=float(low[node]),
                    lower_half=float(first[node]),
                    middle=float(means[node]),
                    upper_half=float(third[node]),
                    high=float(high[node]),
                )
                label = tree.tree.levels[0] if place == 0 else about.key(tree.tree.levels[1], key)
                marks.append((label, "" if noisy is None else _count(float(noisy[node])), interval))
        # The root is as large as all others together: beside it they would be dots.
        below = [interval for _, _, interval in marks[1:]]
        axis = Scale.enclosing(
            min(0.0, *(each.low for each in below)), max(1.0, *(each.high for each in below)), about=5.0
        )
        yield TreeTable(
            name=", ".join(filter(None, (keyed, several))),
            axis=row_axis(axis, "count" if tree.unit.upper is None else "total"),
            rows=tuple(
                TreeRow(
                    key=label,
                    chart=row(interval, axis) if place else "",
                    released=noisy,
                    mean=_count(interval.middle),
                    interval=f"{_count(interval.low)} to {_count(interval.high)}",
                )
                for place, (label, noisy, interval) in enumerate(marks)
            ),
        )


def _count(value: float) -> str:
    """Return a count as people read it: whole, but for means of small ones."""
    text = f"{value:,.0f}" if abs(value) >= 10.0 or value == round(value) else number(value, 2)
    return text.replace("-", "\N{MINUS SIGN}", 1)
