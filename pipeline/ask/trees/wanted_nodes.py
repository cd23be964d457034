"""Which nodes of a tree a question is about: known by its keys alone, before anything is inferred."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UnknownNameError, UsageError
from suffice.pipeline.math.parameters.arguments import is_integer
from suffice.pipeline.terms.declaration.hierarchy import level_place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.terms.declaration.key_tree import KeyTree
    from suffice.typing import Counts


def marked_leaves(tree: KeyTree, nodes: Mapping[str, Sequence[str]]) -> Counts:
    """Return 1 for every leaf that is below one of the nodes, and 0 for others.

    Raises
    ------
    UsageError
        Where there are no nodes, or they are not lists of keys by level.
    UnknownNameError
        Where the tree has no such level or key.
    """
    if not isinstance(nodes, Mapping):
        message = f"a roll-up is of keys by level, as {{{tree.levels[-1]!r}: [KEY, ...]}}"
        raise UsageError(message)
    is_below = np.zeros(tree.n_leaves, np.int64)
    for level, keys in nodes.items():
        place = level_place(tree.levels, level)
        if isinstance(keys, str):
            message = f"a roll-up is of a list of keys by level: of {level} there is one text"
            raise UsageError(message)
        wanted = set(keys)
        if unknown := wanted - set(tree.keys[place]):
            message = f"the level {level} has no key {min(unknown)!r}"
            raise UnknownNameError(message)
        numbers = [node for node, key in enumerate(tree.keys[place]) if key in wanted]
        is_below[np.isin(tree.leaves_below(place), numbers)] = 1
    if not is_below.any():
        message = "a roll-up is of one node at least: name a level and its keys"
        raise UsageError(message)
    return is_below


def checked_highest(tree: KeyTree, level: str, within: object) -> int:
    """Return among how many highest nodes of a level each is ranked.

    Raises
    ------
    UsageError
        Where it is no integer from 1 to the number of nodes.
    """
    n_nodes = len(tree.keys[level_place(tree.levels, level)])
    if not is_integer(within, 1) or within > n_nodes:
        message = f"a rank is within 1 to {n_nodes} highest nodes of {level}, not {within!r}"
        raise UsageError(message)
    return int(within)
