r"""Weighted least squares on a tree: points that add up, and the standard deviations of their noise.

Up the tree the values below a node are one estimate of it, with the variance of its noise. With the
children's estimates :math:`z_c` and variances :math:`v_c`, and the node's value y of variance
:math:`\sigma^2`,

.. math::
    s = \sum_c z_c, \quad S = \sum_c v_c, \quad
    v = \Bigl(\frac 1 S + \frac 1 {\sigma^2}\Bigr)^{-1}, \quad
    z = v \Bigl(\frac s S + \frac y {\sigma^2}\Bigr). \qquad (1)

Down the tree each child takes its share of what is left between the node and the sum,

.. math::
    x_c = z_c + \frac{v_c}{S} (x - s), \qquad
    V_c = v_c - \Bigl(\frac{v_c}{S}\Bigr)^2 (S - V), \qquad (2)

which is the smoother of a linear Gaussian model. It is what the US Census Bureau and others publish, with
counts below 0 set to 0 or not; intervals are normal ones. It knows nothing of what counts are like.

Symbols:

- s, S: ``sums``, ``sum_variances``; z, v: ``up``, ``up_variances``; x, V: the result

References
----------
Hay, Rastogi, Miklau, Suciu. Boosting the accuracy of differentially private histograms through consistency.
VLDB 2010.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UsageError

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.tree.noisy_tree import NoisyTree
    from suffice.typing import Floats


def least_squares(tree: NoisyTree) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
    """Return points and standard deviations of every level.

    Raises
    ------
    UsageError
        Where leaves were not released: nothing says then how a sum is divided.
    """
    leaves = tree.values[-1]
    if leaves is None:
        message = "least squares needs values of all leaves: nothing else says how a sum is divided"
        raise UsageError(message)
    up: list[Floats] = [np.empty(0)] * (tree.depth + 1)
    up_variances, sums, sum_variances = list(up), list(up), list(up)
    for level in range(tree.depth, -1, -1):
        values, scale = tree.values[level], tree.scales[level]
        variance = np.inf if scale is None else 0.5 / np.sinh(0.5 / scale) ** 2
        if level == tree.depth:
            up[level], up_variances[level] = leaves.astype(np.float64), np.full(tree.n_leaves, variance)
            continue
        parents, n_nodes = tree.parents[level], tree.n_nodes(level)
        sums[level] = np.bincount(parents, up[level + 1], n_nodes).astype(np.float64)
        sum_variances[level] = np.bincount(parents, up_variances[level + 1], n_nodes).astype(np.float64)
        # (1)
        up[level], up_variances[level] = sums[level], sum_variances[level]
        if values is not None:
            up_variances[level] = 1.0 / (1.0 / sum_variances[level] + 1.0 / variance)
            up[level] = up_variances[level] * (sums[level] / sum_variances[level] + values / variance)
    points, variances = [up[0]], [up_variances[0]]
    for level in range(1, tree.depth + 1):
        parents = tree.parents[level - 1]
        # (2)
        gain = up_variances[level] / sum_variances[level - 1][parents]
        points.append(up[level] + gain * (points[-1] - sums[level - 1])[parents])
        left = (sum_variances[level - 1] - variances[-1])[parents]
        variances.append(up_variances[level] - gain**2 * left)
    return tuple(points), tuple(np.sqrt(np.maximum(each, 0.0)) for each in variances)
