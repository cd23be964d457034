r"""Cut the ranges of many one-dimensional weights into blocks in which a quadrature rule is accurate.

Question. For weights :math:`w(x) = e^{g(x)}` of many rows, blocks of x in each of which a rule of
``quadrature.py`` integrates w, or sums it over integers, to a stated share of its group's mass.

Judgement. Of a block, g is taken at both ends, the middle and the quarters between, :math:`g_0, \dots, g_4`.
The parabola through the even ones has

.. math:: t = g_4 - g_0, \qquad b = g_2 - \tfrac 1 2 (g_0 + g_4), \qquad
    \max = g_2 + \frac{t^2}{16 b} \ \text{ where } |t| < 4 b, \qquad (1)

and misses the others by

.. math:: \rho = \max \bigl|g_{1, 3} - (\tfrac 1 8 (g_0 + g_4) + \tfrac 3 4 g_2 \mp \tfrac 1 4 t)\bigr|.
    \qquad (2)

A block is left out where not even its highest point plus :math:`\rho` comes within so many nats of its group.
Otherwise it is halved until it is smooth: ``divide`` asks for :math:`\rho \le 0.4`, :math:`|b| \le 6` and a
bounded rise everywhere. ``divide_by_mass`` is for averages over groups: there a block counts as a straight
rise of

.. math:: \sigma = \sqrt{(\max g - \min g)^2 + (36 + 25 |b|) |b| + (40 \rho)^2} \qquad (3)

nats, and may be the rougher, with the fewer nodes, the less of its group's mass it can have.

Poles. What is averaged may have a pole: a block from a distance p to 10 p of it is as long as allowed, and a
block of the share s of that length gains

.. math:: \log \rho_s = \operatorname{arcosh} \frac{R + 1}{R - 1} = 2 \operatorname{artanh} R^{-1/2},
    \qquad R = 1 + 9 s, \qquad (4)

nats with every degree of a rule's accuracy.

Symbols:

- g: ``evaluate``, log weights, finite
- t, b, rho: ``tilt``, ``bend`` and ``rough``, (n_blocks,), in nats
- sigma: ``size``, (n_blocks,), in nats
- log rho_s: ``pole``, (n_blocks,), in nats

Method. Numerical: (3) was fitted to the errors of all rules where g is a parabola, and five values do not see
what bends between them. Blocks must begin and end at kinks.

References
----------
Trefethen. Approximation theory and approximation practice, chapter 19. 2013.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.distributions import quadrature, rule_sizes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from suffice.typing import Floats, Mask, Rows


NATS = 25.0
"""How far below its group's highest weight a block may lie before it is left out: e^-25 is 1.4e-11."""

QUARTERS = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
_ROUGH = 0.4
"""Nats by which the second and fourth location may miss the parabola through the others."""
_BEND = 6.0
"""Nats by which the middle may be above or below the middle of the ends."""
OF_ROUGH = 40.0
"""Nats of a straight rise that count as much as a roughness of one."""
OF_ROUGH_IF_APPROXIMATE, MARGIN = 400.0, 3.0
"""The same where log weights are approximate; nats by which blocks are then taken for more than they are."""
RATIO = 10.0
"""Of the ends of a block that is as long as allowed, counted from the nearest pole."""
SPARSE = 6.0
"""Nats below the mode beyond which a block's nodes may be fewer than it takes for a distribution:"""
DENSE = 8
_MOST_ROUNDS = 200
SLICE = 1 << 14
"""Blocks worked out at a time: their numbers stay in a processor's nearest caches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """Blocks of rows, in no order.

    Attributes
    ----------
    row : ndarray of shape (n_blocks,), int64
    left, right : ndarray of shape (n_blocks,), float64
        Where they begin and end; ``right`` is excluded where the weight is summed.
    size : ndarray of shape (n_blocks,), float64
        Nats of a straight log weight that takes about as many nodes.
    pole : ndarray of shape (n_blocks,), float64
        Nats that a node gains where functions have a pole as near as the block's length allows.
    depth : ndarray of shape (n_blocks,), float64
        Nats by which the most that a block can hold is below its group's mass, about.
    top : ndarray of shape (n_groups,), float64
        What depths are below.
    """

    row: Rows
    left: Floats
    right: Floats
    size: Floats
    pole: Floats
    depth: Floats
    top: Floats

    @property
    def length(self) -> Floats:
        """Lengths; numbers of integers where the weight is summed."""
        return self.right - self.left

    def take(self, chosen: Mask | Rows) -> Blocks:
        """The given blocks, in the given order."""
        return Blocks(
            row=self.row[chosen],
            left=self.left[chosen],
            right=self.right[chosen],
            size=self.size[chosen],
            pole=self.pole[chosen],
            depth=self.depth[chosen],
            top=self.top,
        )


def divide(
    evaluate: Callable[[Rows, Floats], Floats],
    row: Rows,
    left: Floats,
    right: Floats,
    *,
    group: Rows,
    is_sum: bool,
    most_rise: float,
    longest: Callable[[Floats], Floats],
    nats: float = NATS,
) -> tuple[Rows, Floats, Floats, Floats]:
    """Divide blocks until a rule of ``POINTS`` nodes is accurate in each.

    Parameters
    ----------
    evaluate : callable
        Rows (n_blocks,) and positions (n_blocks, 5) -> log weights, finite.
    row, left, right : ndarray of shape (n_blocks,)
        Where to begin; ``right`` is excluded where the weight is summed.
    group : ndarray of shape (n_rows,), int64
        The group that a row is of: 0, 1, ...
    is_sum : bool
        Whether positions are integers, so that blocks of up to ``POINTS`` are summed one by one.
    most_rise : float
        Nats that a block may span.
    longest : callable
        The left ends of blocks -> how long these may be, for what is to be averaged to be smooth there too.
    nats : float
        How far below its group's highest weight a block may lie before it is left out.

    Returns
    -------
    row, left, right, top : ndarrays
        The blocks, in no order, and the highest log weight seen of every group, (n_groups,).
    """

    def judge(value: Floats, _length: Floats) -> tuple[Floats, Floats, Floats]:
        most, least, bend, rough, highest = _shape(value)
        fine = (rough <= _ROUGH) & (np.abs(bend) <= _BEND) & (most - least <= most_rise)
        return most, highest + rough, np.where(fine, 0.0, np.inf)

    blocks = _divide(
        evaluate,
        judge,
        lambda blocks: blocks.size == 0.0,
        row,
        left,
        right,
        group=group,
        is_sum=is_sum,
        longest=longest,
        nats=nats,
    )
    return blocks.row, blocks.left, blocks.right, blocks.top


def divide_by_mass(
    evaluate: Callable[[Rows, Floats], Floats],
    row: Rows,
    left: Floats,
    right: Floats,
    *,
    group: Rows,
    is_sum: bool,
    longest: Callable[[Floats], Floats],
    nats: float,
    at_integers: bool = False,
    evenly: bool = False,
    approximate: bool = False,
) -> Blocks:
    """Divide blocks until a rule of ``POINTS`` nodes sums up their groups accurately.

    Parameters are those of ``divide``; `nats` are below a group's mass, and `at_integers` is that of
    ``sum_rule``. Blocks are resolved `evenly` where each has to be as accurate as if it were all. Where log
    weights are `approximate`, what is summed may be rougher than they are, and blocks have to be smoother.
    """
    share = 0.0 if evenly else 1.0
    of_rough, margin = (OF_ROUGH_IF_APPROXIMATE, MARGIN) if approximate else (OF_ROUGH, 0.0)

    def judge(value: Floats, length: Floats) -> tuple[Floats, Floats, Floats]:
        most, least, bend, rough, highest = _shape(value)
        bend = np.abs(bend)
        # (3).
        size = np.sqrt((most - least) ** 2 + (36.0 + 25.0 * bend) * bend + (of_rough * rough) ** 2)
        # Integers as nodes are exact to half the degree: short blocks are better summed singly.
        if at_integers:  # halves are summed one by one, with no more nodes in all
            size[length < 2 * quadrature.POINTS] = np.inf
        log_length = np.log(length)
        columns = np.ascontiguousarray(value.T)
        # A quarter of the block counts as high as its lower end: about a bound of its mass from below.
        ends = np.max(np.minimum(columns[1:], columns[:-1]), axis=0)
        # Bounds of a block's mass: from below, and from above by its highest point times its length.
        return ends + log_length - np.log(4.0), highest + rough + log_length, size

    def fits(blocks: Blocks) -> Mask:
        return _is_enough(
            quadrature.POINTS, replace(blocks, depth=share * blocks.depth - margin), at_integers=at_integers
        )

    blocks = _divide(
        evaluate, judge, fits, row, left, right, group=group, is_sum=is_sum, longest=longest, nats=nats
    )
    return replace(blocks, depth=share * blocks.depth - margin)


def nodes_of(
    blocks: Blocks, *, is_sum: bool, at_integers: bool = False, tolerance: float = rule_sizes.TOLERABLE
) -> Iterator[tuple[Rows, Floats, Floats]]:
    """Choose rules: for some blocks that share one, rows, and nodes and weights, (n_blocks, n_nodes)."""
    chosen = np.full(len(blocks.row), len(quadrature.FEWER) - 1)
    for position in range(len(quadrature.FEWER) - 2, -1, -1):
        points = quadrature.FEWER[position]
        enough = _is_enough(points, blocks, at_integers=at_integers, tolerance=tolerance)
        if points < DENSE:
            enough &= blocks.depth > SPARSE
        if is_sum:
            enough |= blocks.length <= points
        chosen[enough] = position
    for position, points in enumerate(quadrature.FEWER):
        of_rule = np.flatnonzero(chosen == position)
        most = 4 * SLICE // points
        for start in range(0, len(of_rule), most):
            in_slice = of_rule[start : start + most]
            left, right = blocks.left[in_slice], blocks.right[in_slice]
            if is_sum:
                nodes, weights = quadrature.sum_rule(left, right, points, at_integers=at_integers)
            else:
                nodes, weights = quadrature.integral_rule(left, right, points)
            yield blocks.row[in_slice], nodes, weights


def _is_enough(
    points: int, blocks: Blocks, *, at_integers: bool, tolerance: float = rule_sizes.TOLERABLE
) -> Mask:
    """Whether a rule of so many nodes is accurate in a block, for what its group has."""
    accurate: Mask = blocks.size <= rule_sizes.largest_size(
        points, blocks.depth, blocks.length, blocks.pole, at_integers=at_integers, tolerance=tolerance
    )
    return accurate


def _divide(
    evaluate: Callable[[Rows, Floats], Floats],
    judge: Callable[[Floats, Floats], tuple[Floats, Floats, Floats]],
    fits: Callable[[Blocks], Mask],
    row: Rows,
    left: Floats,
    right: Floats,
    *,
    group: Rows,
    is_sum: bool,
    longest: Callable[[Floats], Floats],
    nats: float,
) -> Blocks:
    """Divide blocks until they fit.

    `judge` takes values at five positions and lengths, and returns what a group has at least, what it can
    have at most in this block, and the block's size.
    """
    top = np.full(int(np.max(group, initial=-1)) + 1, -np.inf)
    refined: list[Blocks] = []
    keep = left < right
    row, left, right = row[keep], left[keep], right[keep]
    for _ in range(_MOST_ROUNDS):
        if not row.size:
            break
        last = right - 1.0 if is_sum else right
        length, limit = right - left, longest(left)
        least, bound, size = np.empty((3, len(row)))
        for start in range(0, len(row), SLICE):
            in_slice = slice(start, start + SLICE)
            positions = left[in_slice, None] + (last - left)[in_slice, None] * QUARTERS
            least[in_slice], bound[in_slice], size[in_slice] = judge(
                evaluate(row[in_slice], positions), length[in_slice]
            )
        # What a group has at least: the highest such bound so far.
        np.maximum.at(top, group[row], least)
        # (4): s, and log rho_s.
        part = np.minimum(length / limit, 1.0)
        pole = 2.0 * np.arctanh(1.0 / np.sqrt(1.0 + (RATIO - 1.0) * np.maximum(part, 1e-9)))
        # Both bounds together: a block cannot hold more than this far below its group.
        depth = top[group[row]] - bound
        blocks = Blocks(row=row, left=left, right=right, size=size, pole=pole, depth=depth, top=top)
        fine = fits(blocks) & (length <= limit)
        middle = (left + right) / 2.0
        if is_sum:
            # The longest that is allowed is cut off, rather than halves until one is short enough.
            # Near a pole blocks grow like its distance: cutting off allowed lengths takes fewer than halving.
            reach = np.where(length <= 16.0 * limit, limit, np.sqrt(limit * length))
            middle = np.floor(np.where(length > 1.5 * limit, left + reach, middle))
            fine |= length <= quadrature.POINTS
        fine |= (middle <= left) | (middle >= right)
        # Blocks far below their group are left out: each holds at most about e^-nats of it.
        near = depth <= nats
        # What the most that it can hold is below is not yet known.
        refined.append(replace(blocks.take(near & fine), depth=bound[near & fine]))
        halved = near & ~fine
        row = np.concatenate([row[halved], row[halved]])
        left, right = (
            np.concatenate([left[halved], middle[halved]]),
            np.concatenate([middle[halved], right[halved]]),
        )
    columns = ("row", "left", "right", "size", "pole", "depth")
    joined = {name: np.concatenate([getattr(blocks, name) for blocks in refined]) for name in columns}
    joined["depth"] = top[group[joined["row"]]] - joined["depth"]
    blocks = Blocks(**joined, top=top)
    return blocks.take(blocks.depth <= nats)


def _shape(value: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Judge blocks by their values at five positions, (n_blocks, 5).

    Returns
    -------
    most, least : ndarray of shape (n_blocks,)
        Highest and lowest value.
    bend, rough, highest : ndarray of shape (n_blocks,)
        Bend of the parabola through every second value, how far the others miss it, and its highest point.
    """
    first, second, third, fourth, fifth = np.ascontiguousarray(value.T)
    # (1): the parabola of the ends and the middle.
    ends, tilt = first + fifth, fifth - first
    bend = third - ends / 2.0
    most = np.maximum(np.maximum(np.maximum(first, fifth), np.maximum(second, fourth)), third)
    least = np.minimum(np.minimum(np.minimum(first, fifth), np.minimum(second, fourth)), third)
    inside = np.abs(tilt) < 4.0 * bend
    vertex = third + np.divide(tilt * tilt, 16.0 * bend, out=np.zeros_like(bend), where=inside)
    # (2): that parabola at a quarter and three quarters is 3/8 g_0 + 3/4 g_2 - 1/8 g_4 and its mirror image.
    even = 0.125 * ends + 0.75 * third
    rough = np.maximum(np.abs(second - even + 0.25 * tilt), np.abs(fourth - even - 0.25 * tilt))
    return most, least, bend, rough, np.where(inside, np.maximum(most, vertex), most)


def divide_line(
    evaluate: Callable[[Floats], Floats], edges: Floats, *, most_rise: float
) -> tuple[Floats, Floats, float]:
    """Divide one weight over a line, from the blocks between ascending edges.

    Parameters
    ----------
    evaluate : callable
        Positions -> log weights, finite, of the same shape.
    edges : ndarray of shape (n_blocks + 1,), float64
    most_rise : float
        As in ``divide``.

    Returns
    -------
    left, right : ndarrays
        The blocks, ascending.
    top : float
        The highest log weight seen.
    """
    _, left, right, top = divide(
        lambda _row, position: evaluate(position),
        np.zeros(len(edges) - 1, dtype=np.int64),
        edges[:-1],
        edges[1:],
        group=np.zeros(1, dtype=np.int64),
        is_sum=False,
        most_rise=most_rise,
        longest=lambda left: np.full_like(left, np.inf),
    )
    order = np.argsort(left)
    return left[order], right[order], float(top[0])
