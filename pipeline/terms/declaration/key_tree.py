"""Public trees of keys: nodes level by level, each below one node of the level above."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyTree:
    """A public tree of keys, the root's level first.

    Parameters
    ----------
    levels : tuple of str
        What each level is called; two at least, the leaves' last.
    keys : tuple of tuple of str
        The keys of every level's nodes, in their order in the release; of the first level one, the root.
    parents : tuple of tuple of int
        Of every level but the first: where each node's parent stands among the keys of the level above.

    Raises
    ------
    UsageError
        Where the levels do not fit each other, a node has no parent, or one above the leaves no child.
    """

    levels: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]
    parents: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if len(self.levels) < 2:
            message = "a tree has at least two levels: the root, and the leaves below it"
            raise UsageError(message)
        if len(self.keys) != len(self.levels) or len(self.parents) != len(self.levels) - 1:
            message = (
                f"a tree of {len(self.levels)} levels has the keys of each, and parents of all but the first"
            )
            raise UsageError(message)
        if len(self.keys[0]) != 1:
            message = f"the first level, {self.levels[0]}, is the root: one node"
            raise UsageError(message)
        for level, parents, (above, below) in zip(
            self.levels[1:], self.parents, pairwise(self.keys), strict=True
        ):
            if len(parents) != len(below):
                message = f"every node of the level {level} has one parent"
                raise UsageError(message)
            if set(parents) != set(range(len(above))):
                message = (
                    f"every node above the level {level} has a child in it, and its parents are no others"
                )
                raise UsageError(message)

    @property
    def n_leaves(self) -> int:
        """How many leaves there are."""
        return len(self.keys[-1])

    def parent_of(self, level: int) -> NDArray[np.int64]:
        """Return where the parents of a level's nodes, (n_nodes,), stand in the level above it."""
        return np.array(self.parents[level - 1], dtype=np.int64)

    def leaves_below(self, level: int) -> NDArray[np.int64]:
        """Return the node of a level that each leaf, (n_leaves,), stands below."""
        nodes = np.arange(self.n_leaves, dtype=np.int64)
        for below in range(len(self.levels) - 1, level, -1):
            nodes = self.parent_of(below)[nodes]
        return nodes
