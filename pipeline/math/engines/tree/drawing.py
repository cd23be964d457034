r"""Joint draws of all counts of a tree, from the root's total down.

Of the sum t of two parts the first is l with chance in proportion to :math:`L(l) R(t - l)`, given t
independent of all else that is outside of both. What families add up to was cut where it weighs next to
nothing; so is what is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.engines.tree.messages import Block, Sums
    from suffice.pipeline.math.engines.tree.passes import Upward
    from suffice.typing import Counts, Floats, Rows

_AT_A_TIME = 1 << 20
"""Weights that are held at a time."""


def draw_tree(upward: Upward, drawn: Sequence[Counts], places: Rows, rng: np.random.Generator) -> None:
    """Draw the counts of a tree given what was released, at one point.

    Parameters
    ----------
    upward : Upward
    drawn : sequence of ndarray of int64, shapes (n_draws, n_nodes)
        Of every level; filled in.
    places : ndarray of int64
        The draws to fill in.
    rng : numpy.random.Generator
    """
    root = upward.inner[0].block(np.zeros(1, np.int64))
    cumulated = np.cumsum(root.weights[0])
    drawn[0][places, 0] = root.low[0] + _inverse(
        cumulated[None], rng.random(len(places))[None] * cumulated[-1]
    )
    draw_below(upward, drawn, places, rng)


def draw_below(upward: Upward, drawn: Sequence[Counts], places: Rows, rng: np.random.Generator) -> None:
    """Draw the counts below the root, as :func:`draw_tree`, given draws of the root's."""
    for level in range(1, upward.tree.depth + 1):
        families = upward.families[level - 1]
        for group in families.groups:
            parents, children = group
            rounds, _ = upward.sums(level, group)
            # A row for each sum, a column for each draw.
            totals = drawn[level - 1][np.ix_(places, parents)].T
            for sums in reversed(rounds):
                totals = divided(sums, totals, rng)
            drawn[level][np.ix_(places, families.order[children])] = totals.T


def divided(sums: Sums, totals: Counts, rng: np.random.Generator) -> Counts:
    """Draw the parts of sums, (n_parts, n_draws), given draws of these, (n_sums, n_draws)."""
    halving, row, parts = sums.halving, sums.row, sums.parts
    n_draws = totals.shape[1]
    result = np.empty((len(row), n_draws), np.int64)
    result[halving.alone] = totals[halving.single]
    step = max(1, _AT_A_TIME // (n_draws * parts.width))
    for begin in range(0, len(halving.pairs), step):
        pairs = slice(begin, begin + step)
        left, right = halving.left[pairs], halving.right[pairs]
        of_sums = totals[halving.pairs[pairs]]
        first = _first_part(parts, row[left], row[right], of_sums, rng)
        result[left], result[right] = first, of_sums - first
    return result


def _first_part(parts: Block, left: Rows, right: Rows, totals: Counts, rng: np.random.Generator) -> Counts:
    """Draw first parts, (n_pairs, n_draws), given totals."""
    low = parts.low[left]
    # Where the second part's weight of t - l is, for l from low on.
    start = (totals - low[:, None]) - parts.low[right][:, None]
    places = start[:, :, None] - np.arange(parts.width)
    inside = (places >= 0) & (places < parts.width)
    places += (right * parts.width)[:, None, None]
    weights = np.where(inside, parts.weights.take(np.where(inside, places, 0)), 0.0)
    weights *= parts.weights[left][:, None, :]
    cumulated = np.cumsum(weights, axis=2)
    threshold = rng.random(totals.shape) * cumulated[:, :, -1]
    # The first whose cumulated weight is above: it weighs something itself.
    first: Counts = low[:, None] + (cumulated <= threshold[:, :, None]).sum(axis=2)
    return first


def _inverse(cumulated: Floats, threshold: Floats) -> Counts:
    """Return the first place of each row whose cumulated weight is above each of its thresholds."""
    return np.array(
        [np.searchsorted(row, value, side="right") for row, value in zip(cumulated, threshold, strict=True)]
    )
