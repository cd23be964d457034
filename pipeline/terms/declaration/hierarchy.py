"""A statistic's hierarchy as a spec states it: a public tree's levels, and perhaps a table of its keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from suffice.errors import UnknownNameError
from suffice.pipeline.terms.declaration.domain_entries import read_key_table
from suffice.pipeline.terms.declaration.scalars import read_text
from suffice.pipeline.terms.declaration.wording import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from suffice.pipeline.terms.declaration.domains import Domain

MOST_LEVELS = 20
COUNTED = ("bernoulli", "categorical")
"""Families that count records, which add up from level to level."""
SUMMED = ("binomial", "poisson", "geometric", "negative_binomial", "exponential")
"""Families whose first component sums values from 0 on, clipped at a public bound: these add up too."""
_FORM = "a list of levels, root first, as [nation, state, county], or {levels: [...], keys: {file: keys.csv}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyTable:
    """A public table of keys: of each leaf the nodes that it stands below.

    Parameters
    ----------
    levels : tuple of str
        The levels that have a column: all, or all but the root; the leaves' last.
    rows : tuple of tuple of str
        A row for every leaf, in the order of its column.
    """

    levels: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def keys(self) -> tuple[str, ...]:
        """Return the leaves, in order."""
        return tuple(row[-1] for row in self.rows)

    def parents(self, level: int) -> dict[str, str]:
        """Return where each key of the level below a column leads to.

        Raises
        ------
        ValueError
            Where a key stands below two: of keys it names none, as they may be of a file.
        """
        parents: dict[str, str] = {}
        for row in self.rows:
            above, below = row[level : level + 2]
            if parents.setdefault(below, above) != above:
                message = (
                    f"the table of keys has a {self.levels[level + 1]} below two keys of "
                    f"{self.levels[level]}: a node has one parent, so call them otherwise"
                )
                raise ValueError(message)
        return parents


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """The levels of a public tree, the root's first, and its keys where a table states them.

    Parameters
    ----------
    levels : tuple of str
        Two at least. The last is a group; the others are derived columns, lengths of periods, or the root.
    table : KeyTable or None
    """

    levels: tuple[str, ...]
    table: KeyTable | None = None


def level_name(statistic: str, level: str) -> str:
    """Return how a level's own statistic is called."""
    return f"{statistic}.{level}"


def level_place(levels: Sequence[str], level: str) -> int:
    """Return where a level stands among a tree's, the root being 0.

    Raises
    ------
    UnknownNameError
        Where the tree has no such level.
    """
    if level not in levels:
        message = f"the tree has no level {level!r}: it has {', '.join(levels)}"
        raise UnknownNameError(message)
    return levels.index(level)


def by_level(
    groups: Mapping[str, Mapping[str, Domain]], trees: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, Domain]]:
    """Return groups of statistics; of a tree's levels by the level's name, be the column the leaves'.

    Parameters
    ----------
    groups : mapping of str to mapping
        By statistic.
    trees : mapping of str to sequence of str
        The levels of every tree, root first.
    """
    named = {statistic: dict(of) for statistic, of in groups.items()}
    for name, levels in trees.items():
        for level in levels:
            of_level = named[level_name(name, level)]
            called = {levels[-1]: level} if level not in of_level else {}
            named[level_name(name, level)] = {
                called.get(column, column): domain for column, domain in of_level.items()
            }
    return named


def read_hierarchy(value: object, directory: Path | None) -> Hierarchy:
    """Read a hierarchy; without a directory no table is read from a file.

    Raises
    ------
    ValueError
        Naming the rule.
    """
    if isinstance(value, list):
        return Hierarchy(levels=read_levels(value))
    if not isinstance(value, dict) or value.keys() != {"levels", "keys"}:
        message = f"a hierarchy is {_FORM}"
        raise ValueError(message)
    levels, keys = read_levels(value["levels"]), value["keys"]
    if directory is None or not isinstance(keys, dict) or keys.keys() != {"file"}:
        message = "the keys of a hierarchy are a file beside the spec, as keys: {file: keys.csv}"
        raise ValueError(message)
    columns, rows = read_key_table(read_text(keys["file"]), directory, levels)
    return Hierarchy(levels=levels, table=KeyTable(levels=columns, rows=rows))


def read_levels(value: object) -> tuple[str, ...]:
    """Read the names of levels, the root's first.

    Raises
    ------
    ValueError
        Where there are too few or too many, or two share a name.
    """
    if not isinstance(value, list) or not 2 <= len(value) <= MOST_LEVELS:
        message = f"a hierarchy has 2 to {MOST_LEVELS} levels: {_FORM}"
        raise ValueError(message)
    levels = tuple(map(read_text, value))
    folded = [level.lower() for level in levels]
    twice = next((level for level in levels if folded.count(level.lower()) > 1), None)
    if twice is not None:
        message = (
            f"the level '{shown(twice)}' occurs twice, in whatever letter case: levels have different names"
        )
        raise ValueError(message)
    return levels
