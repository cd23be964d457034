"""The keys of a release's tree: its plan holds the maps, and the calendar is everybody's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suffice.errors import UsageError
from suffice.pipeline.spec.hierarchies import tree_of
from suffice.pipeline.spec.spec import read_derived_columns
from suffice.pipeline.terms.declaration.spec_text import read_mapping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.terms.declaration.domains import Domain
    from suffice.pipeline.terms.declaration.key_tree import KeyTree


def released_keys(plan: Mapping[str, Any], name: str, groups: Mapping[str, Domain]) -> KeyTree:
    """Return the tree of keys that a canonical plan, as parsed, has under a name.

    Parameters
    ----------
    plan : mapping
    name : str
        One of its hierarchies.
    groups : mapping
        Of the leaves' statistic.
    """
    document = read_mapping({"derived": plan["derived"]}, "plan")
    derived = read_derived_columns(document, document.content, None)
    return tree_of(f"hierarchies.{name}", plan["hierarchies"][name], groups, derived).keys


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
        message = f"{stray!r} is no group beside the tree's: a tree has all of its nodes, level by level"
        raise UsageError(message)
    left = [column for column in groups if column != leaf and column not in chosen]
    if left:
        example = {column: str(groups[column][0]) for column in left}
        options = " ".join(f"--where {column}={key}" for column, key in example.items())
        each = f"there is a tree for each key of {', '.join(left)}"
        message = f"{each}: choose one, as {options} or where={example}"
        raise UsageError(message)
    return chosen
