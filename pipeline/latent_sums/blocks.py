"""Cut the ranges of many one-dimensional weights into blocks in which a quadrature rule is accurate.

A block is judged by its log weight at five places. It is left out where not even the parabola through them
comes near the highest weight of its group, and halved until they are smooth and span few nats. Blocks must
begin and end at kinks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from suffice.pipeline.latent_sums.rules import POINTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Rows: TypeAlias = NDArray[np.int64]

NATS = 25.0
"""How far below its group's highest weight a block may lie before it is left out: e^-25 is 1.4e-11."""

_QUARTERS = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
_ROUGH = 0.4
"""Nats by which the second and fourth place may miss the parabola through the others."""
_BEND = 6.0
_MOST_ROUNDS = 200


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
        Rows (n_blocks,) and places (n_blocks, 5) -> log weights, finite.
    row, left, right : ndarray of shape (n_blocks,)
        Where to begin; ``right`` is excluded where the weight is summed.
    group : ndarray of shape (n_rows,), int64
        The group that a row is of: 0, 1, ...
    is_sum : bool
        Whether places are integers, so that blocks of up to ``POINTS`` are summed one by one.
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
    top = np.full(int(np.max(group, initial=-1)) + 1, -np.inf)
    found: list[tuple[Rows, Floats, Floats, Floats]] = []
    keep = left < right
    row, left, right = row[keep], left[keep], right[keep]
    for _ in range(_MOST_ROUNDS):
        if not row.size:
            break
        last = right - 1.0 if is_sum else right
        value = evaluate(row, left[:, None] + (last - left)[:, None] * _QUARTERS)
        most, least, bend, rough, highest = _shape(value)
        np.maximum.at(top, group[row], most)
        fine = (rough <= _ROUGH) & (np.abs(bend) <= _BEND) & (most - least <= most_rise)
        length, limit = right - left, longest(left)
        fine &= length <= limit
        middle = (left + right) / 2.0
        if is_sum:
            # The longest that is allowed is cut off, rather than halves until one is short enough.
            reach = np.where(length <= 16.0 * limit, limit, np.sqrt(limit * length))
            middle = np.floor(np.where(length > 1.5 * limit, left + reach, middle))
            fine |= length <= POINTS
        fine |= (middle <= left) | (middle >= right)
        near = highest + rough >= top[group[row]] - nats
        whole, halved = near & fine, near & ~fine
        found.append((row[whole], left[whole], right[whole], highest[whole]))
        row = np.concatenate([row[halved], row[halved]])
        left, right = (
            np.concatenate([left[halved], middle[halved]]),
            np.concatenate([middle[halved], right[halved]]),
        )
    row, left, right, highest = (np.concatenate(column) for column in zip(*found, strict=True))
    keep = highest >= top[group[row]] - nats
    return row[keep], left[keep], right[keep], top


def _shape(value: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Judge blocks by their values at five places, (n_blocks, 5).

    Returns
    -------
    most, least : ndarray of shape (n_blocks,)
        Highest and lowest value.
    bend, rough, highest : ndarray of shape (n_blocks,)
        Bend of the parabola through every second value, how far the others miss it, and its highest point.
    """
    first, second, third, fourth, fifth = np.ascontiguousarray(value.T)
    ends, tilt = first + fifth, fifth - first
    bend = third - ends / 2.0
    most = np.maximum(np.maximum(np.maximum(first, fifth), np.maximum(second, fourth)), third)
    least = np.minimum(np.minimum(np.minimum(first, fifth), np.minimum(second, fourth)), third)
    inside = np.abs(tilt) < 4.0 * bend
    vertex = third + np.divide(tilt * tilt, 16.0 * bend, out=np.zeros_like(bend), where=inside)
    even = 0.125 * ends + 0.75 * third
    rough = np.maximum(
        np.abs(second - even + 0.25 * tilt),
        np.abs(fourth - even - 0.25 * tilt),
    )
    return most, least, bend, rough, np.where(inside, np.maximum(most, vertex), most)


def divide_line(
    evaluate: Callable[[Floats], Floats], edges: Floats, *, most_rise: float
) -> tuple[Floats, Floats, float]:
    """Divide one weight over a line, from the blocks between ascending edges.

    Parameters
    ----------
    evaluate : callable
        Places -> log weights, finite, of the same shape.
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
        lambda _row, place: evaluate(place),
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
