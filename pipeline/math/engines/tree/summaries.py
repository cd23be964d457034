"""Moments and intervals of laws of whole numbers, some thousands of rows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.math.engines.tree.messages import Block, Ragged
    from suffice.typing import Counts, Floats, Rows

_AT_A_TIME = 1 << 19
_ROUNDED = 1e-11
"""What sums of chances may miss by rounding: an end moves only for more than that."""


def blocks(laws: Ragged) -> Iterator[tuple[Rows, Block]]:
    """Give rows of like widths together."""
    order = np.argsort(laws.width, kind="stable")
    begin = 0
    while begin < len(order):
        # Rows are by width: so many of the width of the first are no fewer than fit.
        stop = begin + max(1, _AT_A_TIME // max(int(laws.width[order[begin]]), 1))
        stop = min(
            stop, begin + int(np.searchsorted(laws.width[order[begin:]], 2 * laws.width[order[begin]] + 1))
        )
        rows = order[begin:stop]
        yield rows, laws.block(rows)
        begin = stop


def moments(laws: Ragged) -> tuple[Floats, Floats]:
    """Return means and standard deviations."""
    means, sds = np.empty(len(laws.low)), np.empty(len(laws.low))
    for rows, block in blocks(laws):
        steps = np.arange(block.width, dtype=np.float64)
        mean = block.weights @ steps
        means[rows] = block.low + mean
        sds[rows] = np.sqrt(np.einsum("ij,ij->i", block.weights, (steps - mean[:, None]) ** 2))
    return means, sds


def equal_tailed(laws: Ragged, mass: float) -> tuple[Counts, Counts]:
    """Return the narrowest ends with at most (1 - mass) / 2 of the chance beyond each."""
    lower, upper = np.empty(len(laws.low), np.int64), np.empty(len(laws.low), np.int64)
    outside = 0.5 * (1.0 - mass) + _ROUNDED
    for rows, block in blocks(laws):
        below = np.cumsum(block.weights, axis=1)
        above = np.cumsum(block.weights[:, ::-1], axis=1)
        lower[rows] = block.low + (below <= outside).sum(axis=1)
        upper[rows] = block.low + block.width - 1 - (above <= outside).sum(axis=1)
    return lower, upper


def shortest(laws: Ragged, mass: float) -> tuple[Counts, Counts]:
    """Return the shortest intervals with at least so much of the chance; of equal ones the likeliest."""
    lower, upper = np.empty(len(laws.low), np.int64), np.empty(len(laws.low), np.int64)
    for rows, block in blocks(laws):
        below = np.concatenate([np.zeros((len(rows), 1)), np.cumsum(block.weights, axis=1)], axis=1)
        # For each beginning the first end that holds enough: all rows in one sorted array, 2 apart.
        apart = 2.0 * np.arange(len(rows))[:, None]
        ends = np.searchsorted((below + apart).ravel(), (below[:, :-1] + apart + (mass - _ROUNDED)).ravel())
        ends = ends.reshape(len(rows), -1) - np.arange(len(rows))[:, None] * below.shape[1]
        lengths = np.where(ends <= block.width, ends - np.arange(block.width), block.width + 1)
        chance = np.take_along_axis(below, np.minimum(ends, block.width), axis=1) - below[:, :-1]
        is_shortest = lengths == lengths.min(axis=1, keepdims=True)
        begin = np.where(is_shortest, chance, -1.0).argmax(axis=1)
        lower[rows] = block.low + begin
        upper[rows] = lower[rows] + np.take_along_axis(lengths, begin[:, None], axis=1)[:, 0] - 1
    return lower, upper
