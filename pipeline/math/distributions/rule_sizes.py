r"""How much the logarithm of a weight may rise by in a block, for a rule of few nodes to be accurate.

Error. A rule of n nodes (``quadrature``) of a function that is analytic inside the ellipse with foci at the
ends of the block and sum of semi-axes :math:`\rho` (the block being two units long) errs as
:math:`\rho^{-2 n}`, at integers as :math:`\rho^{-n}`. An exponential weight

.. math:: w(x) = e^{-\sigma x / N},
    \qquad \epsilon_n(\sigma) = \bigl|\text{rule} - \text{exact}\bigr| / N, \qquad (1)

shows what a rise of :math:`\sigma` nats costs; the largest :math:`\sigma` with :math:`\epsilon_n \le 5 \cdot
10^{-9} e^{0.8 \delta}` is allowed where the block is :math:`\delta` nats below the mass of its group.

Symbols:

- n: ``points``, 3, 5, 8 or 12
- N: ``length``, integers in a block
- sigma, delta, log rho: ``size``, ``depth`` and ``pole``, (n_blocks,), in nats

References
----------
Trefethen. Approximation theory and approximation practice, chapter 19. 2013.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.distributions.quadrature import integral_rule, sum_rule

if TYPE_CHECKING:
    from suffice.typing import Floats

TOLERABLE, POWER = 5e-9, 0.8
"""Error of a block's mass over that of its group, and the power by which it falls with their ratio."""
DEPTHS = np.arange(-20.0, 41.0)
_SIZES = np.arange(0.0, 60.25, 0.25)
LENGTHS = np.array([24.0, 27.0, 33.0, 40.0])


def largest_size(
    points: int,
    depth: Floats,
    length: Floats,
    pole: Floats,
    *,
    at_integers: bool = False,
    tolerance: float = TOLERABLE,
) -> Floats:
    """Nats that a straight log weight may rise by in a block for a rule of so many nodes to be accurate.

    Parameters
    ----------
    points : int
        One of ``FEWER``.
    depth : ndarray of shape (n_blocks,), float64
        Nats by which the block is below the mass of its group: of this the error has to be a small share.
    length : ndarray of shape (n_blocks,), float64
        Integers in the block.
    pole : ndarray of shape (n_blocks,), float64
        Log of the sum of semi-axes of the ellipse about the block, one unit long on either side, that ends
        at the nearest pole: what a degree of accuracy gains. Sizes are negative where that is too little.
    at_integers : bool
        As in ``sum_rule``.
    tolerance : float
        Error of a block's mass over that of its group.
    """
    # log epsilon may be as high as log tolerance + .8 delta.
    depth = POWER * depth
    wanted = depth + np.log(tolerance)
    # rho^(-2 n) has to be below that as well.
    size = np.where(
        2.0 * points * pole + wanted >= 0.0, _looked_up(points, depth, tolerance, at_integers=False), -1.0
    )
    if at_integers:
        # The longer the block, the nearer are its integers to the nodes of Gauss and Legendre; errors of
        # short blocks are the largest of several lengths.
        near = np.log(10.0 * np.maximum(length / LENGTHS[-1], 1.0))
        near_nodes = _looked_up(points, depth + near, tolerance, at_integers=True)
        size = np.minimum(size, np.where(points * pole + wanted + near >= 0.0, near_nodes, -1.0))
    return size


def _looked_up(points: int, depth: Floats, tolerance: float, *, at_integers: bool) -> Floats:
    table = largest_sizes(points, at_integers=at_integers, tolerance=tolerance)
    step: Floats = table[(np.clip(depth, DEPTHS[0], DEPTHS[-1]) - DEPTHS[0]).astype(np.int64)]
    return step


@cache
def largest_sizes(points: int, *, at_integers: bool, tolerance: float = TOLERABLE) -> Floats:
    """Sizes that are allowed by depth, in nats."""
    tolerable = tolerance * np.exp(DEPTHS)
    sizes: Floats = _SIZES[np.searchsorted(_errors(points, at_integers), tolerable) - 1]
    return sizes


def _errors(points: int, at_integers: bool) -> Floats:
    """Largest error so far, for log weights that fall straight by ``_SIZES``, relative to the highest."""
    if at_integers:
        lengths = LENGTHS[points < LENGTHS]
        nodes, weights = sum_rule(np.zeros_like(lengths), lengths, points, at_integers=True)
        slopes = _SIZES[:, None] / (lengths - 1.0)
        integrals = np.sum(weights * np.exp(-slopes[:, :, None] * nodes), axis=2)
        steep = slopes > 0.0
        # A geometric sum.
        exact = np.tile(lengths, (len(slopes), 1))
        np.divide(np.expm1(-slopes * lengths), np.expm1(-slopes), out=exact, where=steep)
        error = np.max(np.abs(integrals - exact) / lengths, axis=1)
    else:
        (nodes,), (weights,) = integral_rule(np.zeros(1), np.ones(1), points)
        # (1 - e^-sigma) / sigma.
        exact = np.divide(-np.expm1(-_SIZES), _SIZES, out=np.ones_like(_SIZES), where=_SIZES > 0.0)
        error = np.abs(np.exp(-_SIZES[:, None] * nodes) @ weights - exact)
    error[0] = 0.0
    # Errors oscillate about 0: the largest so far is what a rise can cost.
    return np.maximum.accumulate(error)
