"""Other answers to noisy counts of a tree: points and intervals of every level.

- least squares, with normal intervals; the same with leaves below 0 set to 0 and added up;
- noise alone: each value by itself;
- InfTDA: from the root down, children's values are made to add up to their parent by the whole numbers from 0
  on that are nearest in the largest difference, of these with the fewest above 0. Written anew from the
  description (Boninsegna, Silvestri 2025, arXiv:2412.09256); what breaks ties is ours. Points alone: it has
  no intervals.
- truncated: each node by itself, whole numbers from 0 on under a normal law whose mean and variance are those
  of its level's values without their noise. So are counts that are constrained node by node, by a model and
  rejection (in the manner of Janicki and others, Journal of Privacy and Confidentiality, article 936, of
  which the abstract alone was at hand). The law is summed here, where they draw;
- flat: all counts from 0 on that add up are equally probable before anything is released.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from suffice.pipeline.math.engines.tree.least_squares import least_squares
from suffice.pipeline.math.engines.tree.populations import Population

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.tree.noisy_tree import NoisyTree
    from suffice.typing import Counts, Floats

NORMAL = float(ndtri(0.975))
MASS = 0.95
Answer = tuple["Floats", "Floats", "Floats"]
"""Points, and lower and upper ends: nan where there are none."""


class Flat(Population):
    """No weight is different: shown failing."""

    name, n_hyperparameters = "flat", 0

    def log_weight(self, counts: Floats, point: Floats, sizes: Floats | float = 1.0) -> Floats:  # noqa: ARG002
        """Return zeros."""
        return np.zeros_like(counts)


def of_least_squares(tree: NoisyTree) -> list[Answer]:
    """Return normal intervals about least squares."""
    return [
        (points, points - NORMAL * sds, points + NORMAL * sds)
        for points, sds in zip(*least_squares(tree), strict=True)
    ]


def of_clipped(tree: NoisyTree) -> list[Answer]:
    """Set least squares of leaves to 0 where they are below, and add these up; widths stay."""
    points, sds = least_squares(tree)
    clipped = [np.maximum(points[-1], 0.0)]
    for above in reversed(tree.parents):
        clipped.insert(0, np.bincount(above, clipped[0]))
    return [
        (point, np.maximum(point - NORMAL * sd, 0.0), np.maximum(point + NORMAL * sd, 0.0))
        for point, sd in zip(clipped, sds, strict=True)
    ]


def of_noise(tree: NoisyTree) -> list[Answer]:
    """Return intervals of each value's noise alone."""
    answers = []
    for values, scale in zip(tree.values, tree.scales, strict=True):
        q = np.exp(-1.0 / scale)
        reach = np.ceil(scale * (np.log(1.0 / (1.0 - MASS)) + np.log(2.0 / (1.0 + q))) - 1.0 - 1e-9)
        answers.append((values.astype(float), values - reach, values + reach))
    return answers


def nearest(values: Counts, total: int) -> Counts:
    """Return whole numbers from 0 on that add up, nearest in the largest difference, few of them above 0."""
    raised = np.maximum(values, 0)
    excess = int(raised.sum()) - total
    if excess > 0:
        # The least step down that is enough, then back up by one where it was too much.
        low, high = 0, int(raised.max())
        while low < high:
            step = (low + high) // 2
            low, high = (low, step) if np.maximum(raised - step, 0).sum() <= total else (step + 1, high)
        result = np.maximum(raised - low, 0)
        back = np.argsort(-raised, kind="stable")
        back = back[raised[back] >= low][: total - int(result.sum())]
        result[back] += 1
        return result
    # The least step up that all together can make; the largest go first, so that zeros stay where they can.
    step = -(excess // len(raised))
    result = raised.copy()
    for place in np.argsort(-raised, kind="stable"):
        move = min(step, -excess)
        result[place] += move
        excess += move
    return result


def of_inftda(tree: NoisyTree) -> list[Answer]:
    """Go down the tree."""
    points = [np.maximum(tree.values[0], 0)]
    for level, parents in enumerate(tree.parents):
        below = np.empty(len(parents), np.int64)
        for parent in range(tree.n_nodes(level)):
            children = parents == parent
            below[children] = nearest(tree.values[level + 1][children], int(points[-1][parent]))
        points.append(below)
    return [(each.astype(float), np.full(len(each), np.nan), np.full(len(each), np.nan)) for each in points]


def of_truncated(tree: NoisyTree) -> list[Answer]:
    """Answer node by node."""
    answers = []
    for values, scale in zip(tree.values, tree.scales, strict=True):
        variance = 0.5 / np.sinh(0.5 / scale) ** 2
        middle = float(values.mean())
        # A root is one value: no variance is known, and its prior is flat.
        spread = np.inf if len(values) == 1 else max(float(values.var(ddof=1)) - variance, 1.0)
        reach = int(np.ceil(30.0 * scale))
        rows = []
        for value in values.tolist():
            counts = np.arange(max(value - reach, 0), max(value, 0) + reach + 1)
            log_weight = -np.abs(counts - value) / scale - 0.5 * (counts - middle) ** 2 / spread
            weight = np.exp(log_weight - log_weight.max())
            chance = np.cumsum(weight / weight.sum())
            rows.append(
                (
                    counts @ weight / weight.sum(),
                    counts[np.searchsorted(chance, 0.5 * (1.0 - MASS), side="right")],
                    counts[np.searchsorted(chance, 0.5 * (1.0 + MASS), side="left")],
                )
            )
        answers.append(tuple(np.array(rows, dtype=float).T))
    return answers


RIVALS = {
    "least squares": of_least_squares,
    "clipped and summed": of_clipped,
    "InfTDA": of_inftda,
    "truncated": of_truncated,
    "noise": of_noise,
}
