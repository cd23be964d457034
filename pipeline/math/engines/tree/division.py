r"""A tree divided into pieces, each a tree of its own, and what is above them.

Nodes of one level that are siblings are put together until they have so many leaves below them. Such a piece
gets a node of its own above it, of which nothing was released, so that the law of all counts stays what it
was. The *top* is the tree down to these nodes. Of a piece the top needs its root's message alone, and a piece
of the top what that says of its root:

.. math:: P(n_v \mid y) \propto U_v(n_v) \, O_v(n_v),

with U of ``passes`` worked out in the piece of every v that is in it, and O of its root given.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.math.engines.tree.noisy_tree import NoisyTree
from suffice.pipeline.math.engines.tree.passes import LeafKeys, Passer

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.tree.populations import Population
    from suffice.typing import Rows

PIECE_LEAVES = 1 << 15
"""Leaves of a piece at most, or of a task that has several."""
PIECE_WEIGHTS = 1 << 23
"""Counts in the windows of a piece's leaves: 64 MB of chances."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """A tree's pieces, and its top.

    Attributes
    ----------
    tree : NoisyTree
    level : int
        The level of which nodes are put together, the first below the pieces' roots.
    top : NoisyTree
        The levels above it, and the pieces' roots.
    nodes : tuple of ndarray of int64
        Of this level and each below it: all nodes, piece by piece.
    bounds : tuple of ndarray of int64, shape (n_pieces + 1,)
        Where each piece's nodes begin and end there.
    """

    tree: NoisyTree
    level: int
    top: NoisyTree
    nodes: tuple[Rows, ...] = field(repr=False)
    bounds: tuple[Rows, ...] = field(repr=False)

    @classmethod
    def of(cls, tree: NoisyTree, most: int) -> Self:
        """Divide at the first level whose nodes have no more leaves; a piece has less than twice as many."""
        below = [np.ones(tree.n_leaves, np.int64)]
        for parents in reversed(tree.parents):
            below.insert(0, np.bincount(parents, weights=below[0]).astype(np.int64))
        level = next(level for level in range(1, tree.depth + 1) if below[level].max() <= most)
        parents, leaves = tree.parents[level - 1], below[level]
        order = np.argsort(parents, kind="stable")
        before = np.cumsum(leaves[order]) - leaves[order]
        families = np.concatenate([[0], np.flatnonzero(np.diff(parents[order])) + 1])
        sizes = np.diff(np.append(families, len(order)))
        turn = (before - np.repeat(before[families], sizes)) // most
        is_first = np.concatenate([[True], (np.diff(parents[order]) != 0) | (np.diff(turn) != 0)])
        piece = np.empty(len(order), np.int64)
        piece[order] = np.cumsum(is_first) - 1
        top = NoisyTree(
            parents=(*tree.parents[: level - 1], parents[order][is_first]),
            values=(*tree.values[:level], None),
            scales=(*tree.scales[:level], None),
            is_part=True,
        )
        nodes, bounds = [], []
        for at in range(level, tree.depth + 1):
            if at > level:
                piece = piece[tree.parents[at - 1]]
            nodes.append(np.argsort(piece, kind="stable"))
            bounds.append(np.concatenate([[0], np.cumsum(np.bincount(piece))]))
        return cls(tree=tree, level=level, top=top, nodes=tuple(nodes), bounds=tuple(bounds))

    @property
    def n_pieces(self) -> int:
        """How many pieces there are."""
        return len(self.bounds[0]) - 1

    def nodes_of(self, start: int, stop: int) -> tuple[Rows, ...]:
        """Return the nodes of pieces from start to stop, of every level from ``level`` on."""
        return tuple(
            nodes[bounds[start] : bounds[stop]] for nodes, bounds in zip(self.nodes, self.bounds, strict=True)
        )

    def batches(self, most: int) -> list[tuple[int, int]]:
        """Return where batches of pieces with up to so many leaves begin and end, each of one at least."""
        ends, begin = [0], 0
        for piece in range(1, self.n_pieces):
            if self.bounds[-1][piece + 1] - self.bounds[-1][begin] > most:
                ends.append(piece)
                begin = piece
        return list(pairwise([*ends, self.n_pieces]))

    def passer(self, piece: int, keys: LeafKeys, population: Population, tail: float) -> Passer:
        """Return what passes over a piece need, with the keys of the whole tree's leaves."""
        tree, nodes = self.tree, self.nodes_of(piece, piece + 1)
        # Nodes of a piece are in the tree's order.
        parents = [np.zeros(len(nodes[0]), np.int64)]
        for place in range(1, len(nodes)):
            above = tree.parents[self.level + place - 1][nodes[place]]
            parents.append(np.searchsorted(nodes[place - 1], above))
        part = NoisyTree(
            parents=tuple(parents),
            values=(
                None,
                *(_taken(tree.values[self.level + place], each) for place, each in enumerate(nodes)),
            ),
            scales=(None, *tree.scales[self.level :]),
            is_part=True,
        )
        return Passer(part, population, tail, keys.of_leaves(nodes[-1]))


def _taken(values: Rows | None, nodes: Rows) -> Rows | None:
    return None if values is None else values[nodes]


def leaves_of_a_piece(keys: LeafKeys, scale: float | None, tail: float) -> int:
    """Return how many leaves a piece has, about, so that they have ``PIECE_WEIGHTS`` together.

    Leaves of a piece lie in one array, which is as wide as the widest window.
    """
    windows = keys.bounds - keys.low(scale, tail) + 1
    return max(1, min(PIECE_LEAVES, int(PIECE_WEIGHTS / windows.max())))
