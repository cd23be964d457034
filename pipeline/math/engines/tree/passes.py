r"""Exact message passing over the counts of a tree, at one point of the hyperparameters.

The message of a node is the chance of all that was released at and below it, with the count n there:

.. math::
    U_v(n) = p(y_v \mid n) \, \pi(n) \; \text{of leaves}, \qquad
    U_v = p(y_v \mid \cdot) \, (U_{c_1} * \dots * U_{c_k}) \; \text{of others}, \qquad
    p(y \mid n) = \frac{1 - q}{1 + q} q^{|y - n|}, \quad q = e^{-1/b}. \qquad (1)

Children are added two by two (``messages``). The sum of the root's message is the evidence. What the rest of
the tree says of a node goes down: of the root 1, of a part of a family what :math:`p(y_v \mid \cdot)` times
the family's own says through the other parts. A marginal is the product of both messages,

.. math:: P(n_v = n \mid y) \propto U_v(n) \, O_v(n). \qquad (2)

Joint draws go down, too: of two parts with the sum t the first is drawn from :math:`L(l) R(t - l)`. They are
whole numbers, none is negative, and children add up in every draw.

Families are worked on in groups of some thousands of children. What lies between a level's messages and the
next one's is worked out again on the way down: memory holds the messages of inner nodes, and one group.

Leaves of equal values have equal messages, whose spectra are worked out once.

Accuracy. FFTs err by about 1e-16 of the largest weights. With both messages divided by their norms, the sum
of (2) says what share of that is left of the answer: ``rounding`` is 2e-16 over the least such sum. ``cut``
is the largest posterior chance that is left at an end of a window which was cut, times the window's width.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.math.engines.tree.messages import Block, Ragged, Sums, normalised, placed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.math.engines.tree.noisy_tree import NoisyTree
    from suffice.pipeline.math.engines.tree.populations import Population
    from suffice.typing import Counts, Floats, Rows

GROUP_WEIGHTS = 1 << 19
"""Weights of the children that are worked on at a time: 4 MB, which stay near the processor."""
_ROOT = np.zeros(1, np.int64)
_FAR = 12.0
"""Nats beyond those of ``tail`` at which windows of single messages begin before they are cut."""
_TABLE = 1 << 22
"""The largest count up to which a law of leaves is tabulated once for all of them."""


@dataclass(frozen=True, slots=True)
class Families:
    """A level's nodes in the order of their parents, in groups.

    Attributes
    ----------
    order : ndarray of int64
        The nodes, those of one parent together.
    groups : tuple of (ndarray, slice)
        Parents, and where their children are in the order.
    counts : ndarray of int64
        Of every parent: its children.
    """

    order: Rows
    groups: tuple[tuple[Rows, slice], ...]
    counts: Rows

    @classmethod
    def of(cls, parents: Rows, n_parents: int, widths: Counts) -> Self:
        """Group families until a group's weights are many; families with like widths are neighbours.

        Parameters
        ----------
        parents : ndarray of int64, shape (n_nodes,)
        n_parents : int
        widths : ndarray of int64, shape (n_nodes,)
            Of the nodes' windows.
        """
        counts = np.bincount(parents, minlength=n_parents)
        widest = np.zeros(n_parents, np.int64)
        np.maximum.at(widest, parents, widths)
        # By width in powers of 2, since all windows of a group are as wide as its widest.
        sequence = np.lexsort((np.arange(n_parents), np.ceil(np.log2(widest + 1.0)).astype(np.int64)))
        rank = np.empty(n_parents, np.int64)
        rank[sequence] = np.arange(n_parents)
        order = np.argsort(rank[parents], kind="stable")
        groups, begin, taken, weights, width = [], 0, 0, 0, 0
        children = counts[sequence]
        stops = np.cumsum(children)
        for place, (n_children, wide) in enumerate(
            zip(children.tolist(), widest[sequence].tolist(), strict=True)
        ):
            is_wider = wide > 2 * width
            if place > begin and (is_wider or weights + n_children * wide > GROUP_WEIGHTS):
                groups.append((sequence[begin:place], slice(taken, int(stops[place - 1]))))
                begin, taken, weights, width = place, int(stops[place - 1]), 0, 0
            width = max(width, wide)
            weights += n_children * wide
        groups.append((sequence[begin:], slice(taken, len(order))))
        return cls(order, tuple(groups), counts)


@dataclass(frozen=True, slots=True)
class Leaves:
    """Messages of the leaves: a row for each that differs, and the row of every leaf."""

    block: Block
    log_sums: Floats
    row: Rows


def log_noise(values: Counts, scale: float, counts: Counts) -> Floats:
    """Return log chances of noisy values, (n_rows,), given counts, (n_rows, width)."""
    noise: Floats = -np.abs(counts - values[:, None]) / scale + np.log(np.tanh(0.5 / scale))
    return noise


@dataclass(frozen=True, slots=True)
class LeafKeys:
    """What the messages of leaves depend on, each once.

    Attributes
    ----------
    values, bounds : ndarray, shape (n_keys,)
        Released values, 0 where there are none; counts beyond which there is no weight.
    sizes : ndarray, shape (n_keys,)
    row : ndarray of int64, shape (n_leaves,)
    number : ndarray of int64, shape (n_keys,)
        How many leaves have each.
    """

    values: Counts
    bounds: Counts
    sizes: Floats
    row: Rows
    number: Counts

    @classmethod
    def of(cls, tree: NoisyTree, tail: float) -> Self:
        """Find the leaves that differ."""
        reach = _FAR - np.log(tail)
        released, scale = tree.values[-1], tree.scales[-1]
        values = np.zeros(tree.n_leaves, np.int64) if released is None else released
        if scale is None:
            bounds = tree.bounds(reach).astype(np.int64)
        else:
            bounds = np.maximum(values, 0) + int(np.ceil(reach * scale))
        sizes = np.ones(tree.n_leaves) if tree.sizes is None else tree.sizes
        # Sizes as whole numbers of their bits: all columns are then of one kind.
        columns = np.stack([values, bounds, sizes.view(np.int64)], axis=1)
        distinct, row, number = np.unique(columns, axis=0, return_inverse=True, return_counts=True)
        values, bounds, bits = np.ascontiguousarray(distinct.T)
        return cls(values, bounds, bits.view(np.float64), row.ravel(), number)

    def of_leaves(self, leaves: Rows) -> Self:
        """Return the keys of some leaves."""
        rows, row, number = np.unique(self.row[leaves], return_inverse=True, return_counts=True)
        return type(self)(self.values[rows], self.bounds[rows], self.sizes[rows], row.ravel(), number)

    def of_keys(self, rows: Rows) -> Self:
        """Return some keys, of no leaf in particular."""
        no_leaves = np.zeros(0, np.int64)
        return type(self)(
            self.values[rows], self.bounds[rows], self.sizes[rows], no_leaves, self.number[rows]
        )

    def low(self, scale: float | None, tail: float) -> Counts:
        """Return counts below which there is no weight."""
        if scale is None:
            return np.zeros(len(self.values), np.int64)
        reach = int(np.ceil((_FAR - np.log(tail)) * scale))
        low: Counts = np.maximum(np.minimum(self.values, self.bounds) - reach, 0)
        return low

    def messages(
        self, scale: float | None, population: Population, point: Floats, tail: float
    ) -> tuple[Block, Floats]:
        """Return the message of every key, (1), and the logarithms of their sums."""
        low = self.low(scale, tail)
        width = int((self.bounds - low).max()) + 1
        counts = low[:, None] + np.arange(width)
        largest = int(self.bounds.max())
        is_equal = bool((self.sizes == self.sizes[0]).all())
        if is_equal and largest < min(_TABLE, 4 * counts.size):
            table = population.log_weight(np.arange(largest + width + 1.0), point, float(self.sizes[0]))
            log_weights = table.take(counts)
        else:
            log_weights = population.log_weight(counts.astype(np.float64), point, self.sizes[:, None])
        if scale is not None:
            log_weights = log_weights + log_noise(self.values, scale, counts)
        log_weights[counts > self.bounds[:, None]] = -np.inf
        highest = log_weights.max(axis=1)
        block, log_sums = normalised(low, np.exp(log_weights - highest[:, None]), tail)
        return block, log_sums + highest


@dataclass(frozen=True, slots=True, kw_only=True)
class Upward:
    """The messages of all inner nodes, at one point.

    Attributes
    ----------
    tree, families, leaves, tail
        What was passed on; families of every level but the first. No leaves where messages of the last level
        were given: its nodes stand for trees of their own.
    inner : tuple of Ragged
        Messages of every level but the leaves', their own released values included; of the last level, too,
        where they were given.
    log_evidence : float
        The logarithm of the chance of all released values.
    """

    tree: NoisyTree
    families: tuple[Families, ...] = field(repr=False)
    leaves: Leaves | None = field(repr=False)
    inner: tuple[Ragged, ...] = field(repr=False)
    log_evidence: float
    tail: float

    def children(self, level: int, members: Rows) -> tuple[Block, Rows]:
        """Return the messages of some nodes of a level, and the row of each."""
        if self.leaves is not None and level == self.tree.depth:
            rows, row = np.unique(self.leaves.row[members], return_inverse=True)
            return self.leaves.block.take(rows), row
        return self.inner[level].block(members), np.arange(len(members), dtype=np.int64)

    def windows(self, level: int) -> tuple[Counts, Counts]:
        """Return where the window of each of a level's messages begins, and its width."""
        if self.leaves is None or level < self.tree.depth:
            return self.inner[level].low, self.inner[level].width
        block = self.leaves.block
        return block.low[self.leaves.row], np.full(self.tree.n_leaves, block.width)

    def sums(self, level: int, group: tuple[Rows, slice]) -> tuple[list[Sums], Block]:
        """Add up the families of a group two by two; also return the messages of the sums."""
        families = self.families[level - 1]
        block, row = self.children(level, families.order[group[1]])
        return added(block, row, families.counts[group[0]], self.tail)


def added(block: Block, row: Rows, counts: Rows, tail: float) -> tuple[list[Sums], Block]:
    """Add the members of families, one after the other, until each is one sum."""
    rounds: list[Sums] = []
    if counts.max() == 1:
        return rounds, block.take(row)
    while counts.max() > 1:
        sums = Sums.of(block, row, counts, tail)
        rounds.append(sums)
        block, counts = sums.block, sums.halving.counts
        row = np.arange(len(block), dtype=np.int64)
    return rounds, block


def with_noise(block: Block, values: Counts, scale: float) -> tuple[Floats, Floats]:
    """Multiply messages by the chances of their nodes' released values; also return what was divided by."""
    counts = block.low[:, None] + np.arange(block.width)
    log_chance = log_noise(values, scale, counts)
    # Where a window is far from its value all chances are small.
    highest = np.where(block.weights > 0.0, log_chance, -np.inf).max(axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        chance = np.where(block.weights > 0.0, np.exp(log_chance - highest[:, None]), 0.0)
    return block.weights * chance, highest


@dataclass(frozen=True, slots=True)
class Passer:
    """What passes over a tree have in common at all points.

    Attributes
    ----------
    tree : NoisyTree
    population : Population
    tail : float
        The share of a message that is cut at most, on either side.
    keys : LeafKeys
    """

    tree: NoisyTree
    population: Population
    tail: float
    keys: LeafKeys

    @classmethod
    def of(cls, tree: NoisyTree, population: Population, tail: float) -> Self:
        """Prepare passes."""
        return cls(tree, population, tail, LeafKeys.of(tree, tail))

    def log_evidence_of_leaves(self, point: Floats) -> float:
        """Return the log chance of the leaves' released values alone."""
        _, log_sums = self.keys.messages(self.tree.scales[-1], self.population, point, self.tail)
        return float(log_sums @ self.keys.number)

    def up(self, point: Floats) -> Upward:
        """Pass messages up to the root."""
        leaf_block, leaf_sums = self.keys.messages(self.tree.scales[-1], self.population, point, self.tail)
        widths = np.minimum(leaf_block.width, self.keys.bounds + 1)[self.keys.row]
        leaves = Leaves(leaf_block, leaf_sums, self.keys.row)
        return passed_up(self.tree, leaves, widths, float(leaf_sums @ self.keys.number), self.tail)

    def ups(self, points: Floats) -> tuple[Upward, ...]:
        """Pass messages up at several points."""
        return tuple(self.up(point) for point in points)


def passed_up(
    tree: NoisyTree, last: Leaves | Ragged, widths: Counts, log_evidence: float, tail: float
) -> Upward:
    """Pass the messages of the last level up to the root.

    Parameters
    ----------
    tree : NoisyTree
    last : Leaves or Ragged
        Messages of the last level, its own released values included.
    widths : ndarray of int64
        Of their windows.
    log_evidence : float
        The logarithm of what they were divided by.
    tail : float
    """
    inner: list[Ragged] = [last] if isinstance(last, Ragged) else []
    all_families: list[Families] = []
    for level in range(tree.depth, 0, -1):
        n_parents = tree.n_nodes(level - 1)
        families = Families.of(tree.parents[level - 1], n_parents, widths)
        values, scale = tree.values[level - 1], tree.scales[level - 1]
        parts = Ragged.empty(n_parents)
        for parents, children in families.groups:
            members = families.order[children]
            if level == tree.depth and isinstance(last, Leaves):
                rows, row = np.unique(last.row[members], return_inverse=True)
                block = last.block.take(rows)
            else:
                block, row = inner[-1].block(members), np.arange(len(members), dtype=np.int64)
            rounds, block = added(block, row, families.counts[parents], tail)
            log_evidence += sum(float(sums.log_sums.sum()) for sums in rounds)
            if values is not None and scale is not None:
                weights, highest = with_noise(block, values[parents], scale)
                block, log_sums = normalised(block.low, weights, tail)
                log_evidence += float(log_sums.sum() + highest.sum())
            parts.put(parents, block)
        ragged = parts.done()
        inner.append(ragged)
        all_families.append(families)
        widths = ragged.width
    return Upward(
        tree=tree,
        families=tuple(reversed(all_families)),
        leaves=last if isinstance(last, Leaves) else None,
        inner=tuple(reversed(inner)),
        log_evidence=log_evidence,
        tail=tail,
    )


class Downward:
    """Marginals of a pass, level by level from the root on.

    Parameters
    ----------
    upward : Upward
    outside : Ragged, optional
        What the rest says of the root, where it is a node of a larger tree; 1 of a tree by itself.
    """

    def __init__(self, upward: Upward, outside: Ragged | None = None) -> None:
        self.upward = upward
        self.rounding = self.cut = 0.0
        root = upward.inner[0]
        alone = Ragged(root.low, root.width, root.offset, np.ones_like(root.weights))
        self.outside = alone if outside is None else outside
        """What the rest says of the level's nodes that was given last; of leaves, of the level above them."""

    def level(self, level: int) -> Iterator[tuple[Rows, Block]]:
        """Give the marginals of a level's nodes, group by group; levels come in their order."""
        upward = self.upward
        if level == 0:
            root = upward.inner[0].block(_ROOT)
            outside = placed(self.outside.block(_ROOT), root.low, root.width)
            yield _ROOT, self._marginal(root, outside)
            return
        families = upward.families[level - 1]
        is_inner = upward.leaves is None or level < upward.tree.depth
        parts = Ragged.empty(upward.tree.n_nodes(level))
        for group in families.groups:
            parents, children = group
            members = families.order[children]
            rounds, block = upward.sums(level, group)
            # What the rest says of the families' sums, their own released values included.
            outside = self._of_sums(level - 1, parents, block)
            for sums in reversed(rounds):
                outside = sums.back(outside)
            parts_block, row = upward.children(level, members)
            if not rounds:
                outside = placed(Block(block.low, outside), parts_block.low[row], parts_block.width)
            messages = parts_block.take(row)
            yield members, self._marginal(messages, outside)
            if is_inner:
                parts.put(members, Block(messages.low, outside))
        if is_inner:
            self.outside = parts.done()

    def _of_sums(self, level: int, nodes: Rows, block: Block) -> Floats:
        """Return what the rest and the nodes' released values say of sums, on their windows, at most 1."""
        tree = self.upward.tree
        values, scale = tree.values[level], tree.scales[level]
        outside = placed(self.outside.block(nodes), block.low, block.width)
        if values is not None and scale is not None:
            outside, _ = with_noise(Block(block.low, outside), values[nodes], scale)
        # Nothing is outside of the window that the message was cut to.
        largest = outside.max(axis=1, keepdims=True)
        outside /= np.where(largest > 0.0, largest, 1.0)
        return outside

    def _marginal(self, messages: Block, outside: Floats) -> Block:
        """Return posterior chances, (2), and keep what they may be off by."""
        joint = messages.weights * outside
        total = joint.sum(axis=1, keepdims=True)
        norms = np.sqrt((messages.weights**2).sum(axis=1) * (outside**2).sum(axis=1))
        with np.errstate(divide="ignore", invalid="ignore"):
            rounding = np.finfo(np.float64).eps * norms / total[:, 0]
        self.rounding = max(self.rounding, float(np.nan_to_num(rounding, nan=np.inf).max()))
        joint /= np.where(total > 0.0, total, 1.0)
        at_low = np.where(messages.low > 0, joint[:, 0], 0.0)
        width = (messages.weights > 0.0).sum(axis=1)
        last = np.take_along_axis(joint, np.maximum(width - 1, 0)[:, None], axis=1)[:, 0]
        self.cut = max(self.cut, float(((at_low + last) * width).max()))
        return Block(messages.low, joint)
