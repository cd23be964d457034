"""A release's trees: keys by the maps of its plan and the calendar, and the statistics of their levels."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

from suffice.errors import UnknownNameError, UsageError
from suffice.pipeline.spec.entry_reading import read_derived_columns
from suffice.pipeline.spec.hierarchies import tree_of
from suffice.pipeline.terms.declaration.hierarchy import level_name
from suffice.pipeline.terms.declaration.spec_text import read_mapping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.terms.declaration.domains import Domain
    from suffice.pipeline.terms.declaration.key_tree import KeyTree
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic


def released_tree(
    release: Any, name: str, where: Mapping[str, object] | None
) -> tuple[KeyTree, list[NoisyStatistic]]:
    """Return the keys of a release's tree, and the statistic of every level, the root's first.

    Parameters
    ----------
    release : Release
    name : str
    where : mapping, optional
        A key of each group beside the leaves'.

    Raises
    ------
    UsageError
        Where there is no such tree, or groups beside it are left open.
    """
    if name not in release.trees:
        known = f"its trees are {', '.join(release.trees)}" if release.trees else "it has none"
        message = f"the release has no tree {name!r}: {known}; a spec states one as a hierarchy"
        for tree, levels in release.trees.items():
            for level in levels:
                if level_name(tree, level) == name:
                    message = f"{name} is a level of the tree {tree}: ask the tree, with the level {level}"
        raise UnknownNameError(message)
    levels = release.trees[name]
    groups = release.cells(level_name(name, levels[-1])).plan.groups
    chosen = beside_leaves(release.in_names(where), levels[-1], groups)
    plan = release.manifest["plan"]
    document = read_mapping({"derived": plan["derived"]}, "plan")
    derived = read_derived_columns(document, document.content, None)
    keys = tree_of(f"hierarchies.{name}", levels, groups, derived).keys
    return keys, [release.selected(level_name(name, level), chosen) for level in levels]


def beside_leaves(
    where: Mapping[str, object] | None, leaf: str, groups: Mapping[str, Domain]
) -> dict[str, object]:
    """Return the wanted key of every group beside the leaves', of which there is a tree for each.

    Raises
    ------
    UsageError
        Where a group has no key chosen, or a key is of no such group.
    """
    chosen = dict(where or {})
    stray = next((column for column in chosen if column == leaf or column not in groups), None)
    if stray is not None:
        beside = ", ".join(column for column in groups if column != leaf) or "none"
        message = (
            f"{stray!r} is no group beside the tree's, which are: {beside}. "
            "A tree has all of its nodes: choose a level, and take the rows of the keys that you want"
        )
        raise UsageError(message)
    left = {column: of for column, of in groups.items() if column != leaf and column not in chosen}
    if left:
        raise UsageError(_to_choose(left))
    return chosen


def tree_choices(
    where: Mapping[str, object], leaf: str, groups: Mapping[str, Domain], most: int
) -> list[dict[str, object]]:
    """Return the keys of each tree that is asked for: those chosen, with every one of groups left open.

    Parameters
    ----------
    where : mapping
        Keys by group column; what is no group is left for whoever refuses it.
    leaf : str
    groups : mapping
        Of the leaves' statistic.
    most : int
        How many trees there may be.

    Raises
    ------
    UsageError
        Where there are more.
    """
    left = {column: of for column, of in groups.items() if column != leaf and column not in where}
    if math.prod(map(len, left.values())) > most:
        raise UsageError(_to_choose(left))
    return [
        {**where, **dict(zip(left, map(str, keys), strict=True))}
        for keys in itertools.product(*left.values())
    ]


_NAMED = 6
"""Keys that a sentence names, of more."""


def _to_choose(left: Mapping[str, Domain]) -> str:
    """Say which keys there are to choose from, and how."""
    example = {column: str(domain[0]) for column, domain in left.items()}
    options = " ".join(f"--where {column}={key}" for column, key in example.items())
    keys = [
        f"{column} ({', '.join(map(str, domain[:_NAMED]))}"
        + (f" and {len(domain) - _NAMED} more)" if len(domain) > _NAMED else ")")
        for column, domain in left.items()
    ]
    each = f"there is a tree for each key of {', '.join(keys)}"
    return f"{each}: choose one, as {options} or where={example}"
