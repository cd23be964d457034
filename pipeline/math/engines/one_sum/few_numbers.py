r"""Blocks of sums where few numbers of records count, as where N is known or its prior ends early.

Model. Given the parameter, S of N records has a standard deviation :math:`\sigma_S`, and the likelihood of a
parameter sees sums about its expectation alone. Of many likely N the nodes lie between each other's. Of few,

.. math:: \nu = 1 / \sum_N p(N \mid y)^2, \qquad (1)

those of a single N have to resolve :math:`\sigma_S`, though what is released may not bend for many of it.

Symbols:

- sigma_S: ``sums.spread``; nu: ``number``

Method. A block is cut into parts of ``_WIDE`` standard deviations, but into no more than ``_PARTS`` over nu.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from suffice.pipeline.math.distributions.adaptive_blocks import Blocks
    from suffice.pipeline.math.engines.one_sum.noisy_sum import NoisySums
    from suffice.typing import Cells, Floats

_PARTS = 16
_WIDE = 8.0
"""Standard deviations of S given a parameter that the nodes of a block resolve."""


def parts_of(sums: NoisySums, blocks: Blocks, cell: Cells, n: Floats, log_weights: Floats) -> Floats:
    """Return into how many parts blocks (n_blocks,) of rows with N (n_rows,) and these weights are cut."""
    if len(n) == sums.n_cells:
        return np.full(len(blocks.row), float(_PARTS))
    row, last = blocks.row, blocks.right - 1.0 if sums.is_sum else blocks.right
    ends = np.stack([blocks.left, last], axis=1)
    rows = np.maximum(n[row], 1.0)[:, None]
    long_enough = _WIDE * np.min(sums.spread(rows, ends), axis=1)
    wanted: Floats = np.maximum(np.ceil(blocks.length / long_enough), 1.0)
    long = np.flatnonzero(wanted > 1.0)
    if not long.size:
        return wanted
    # So many equally likely N, 1 / sum_N p(N)^2: their nodes lie between each other's.
    middle = np.mean(ends, axis=1, keepdims=True)
    log_mass = sums.log_joint(cell[row], n[row], middle)[:, 0] + np.log(blocks.length) + log_weights[row]
    mass = np.bincount(row, np.exp(log_mass - blocks.top[cell[row]]), len(n))
    with np.errstate(invalid="ignore", divide="ignore"):
        number = np.bincount(cell, mass, sums.n_cells) ** 2 / np.bincount(cell, mass**2, sums.n_cells)
    most = np.maximum(np.floor(_PARTS / np.nan_to_num(number, nan=1.0)), 1.0)
    parts: Floats = np.minimum(wanted, most[cell[row]])
    return parts
