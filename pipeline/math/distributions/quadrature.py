r"""Quadrature over one block of a smooth weight, for integrals and for sums over integers.

Blocks of up to so many integers as a rule has nodes are summed one by one. A longer one takes the Gauss rule
of the discrete uniform distribution, exact to degree ``2 points - 1``, where the weight is smooth between
integers; or that many of the integers themselves, exact to degree ``points - 1``, where it is not.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from suffice.typing import Floats


POINTS = 12
FEWER = (3, 5, 8, POINTS)
"""Numbers of nodes to choose from."""
LONGEST = 1024
"""Integers in a block beyond which rules are interpolated towards those of integrals."""
_TOLERABLE, _POWER = 5e-9, 0.8
"""Error of a block's mass over that of its group, and the power by which it falls with their ratio."""
_DEPTHS = np.arange(-20.0, 41.0)
_SIZES = np.arange(0.0, 60.25, 0.25)
_LENGTHS = np.array([24.0, 27.0, 33.0, 40.0])


def largest_size(
    points: int, depth: Floats, length: Floats, pole: Floats, *, at_integers: bool = False
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
    """
    depth = _POWER * depth
    wanted = depth + np.log(_TOLERABLE)
    size = np.where(2.0 * points * pole + wanted >= 0.0, _looked_up(points, depth, at_integers=False), -1.0)
    if at_integers:
        # The longer the block, the nearer are its integers to the nodes of Gauss and Legendre; errors of
        # short blocks are the largest of several lengths.
        near = np.log(10.0 * np.maximum(length / _LENGTHS[-1], 1.0))
        near_nodes = _looked_up(points, depth + near, at_integers=True)
        size = np.minimum(size, np.where(points * pole + wanted + near >= 0.0, near_nodes, -1.0))
    return size


def _looked_up(points: int, depth: Floats, *, at_integers: bool) -> Floats:
    table = _largest_sizes(points, at_integers=at_integers)
    step: Floats = table[(np.clip(depth, _DEPTHS[0], _DEPTHS[-1]) - _DEPTHS[0]).astype(np.int64)]
    return step


@cache
def _largest_sizes(points: int, *, at_integers: bool) -> Floats:
    """Sizes that are allowed by depth, in nats."""
    tolerable = _TOLERABLE * np.exp(_DEPTHS)
    sizes: Floats = _SIZES[np.searchsorted(_errors(points, at_integers), tolerable) - 1]
    return sizes


def _errors(points: int, at_integers: bool) -> Floats:
    """Largest error so far, for log weights that fall straight by ``_SIZES``, relative to the highest."""
    if at_integers:
        lengths = _LENGTHS[points < _LENGTHS]
        nodes, weights = sum_rule(np.zeros_like(lengths), lengths, points, at_integers=True)
        slopes = _SIZES[:, None] / (lengths - 1.0)
        integrals = np.sum(weights * np.exp(-slopes[:, :, None] * nodes), axis=2)
        steep = slopes > 0.0
        exact = np.tile(lengths, (len(slopes), 1))
        np.divide(np.expm1(-slopes * lengths), np.expm1(-slopes), out=exact, where=steep)
        error = np.max(np.abs(integrals - exact) / lengths, axis=1)
    else:
        (nodes,), (weights,) = integral_rule(np.zeros(1), np.ones(1), points)
        exact = np.divide(-np.expm1(-_SIZES), _SIZES, out=np.ones_like(_SIZES), where=_SIZES > 0.0)
        error = np.abs(np.exp(-_SIZES[:, None] * nodes) @ weights - exact)
    error[0] = 0.0
    return np.maximum.accumulate(error)


@cache
def _gauss(points: int) -> tuple[Floats, Floats]:
    """Nodes and weights on -1..1, worked out once."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return nodes, weights


def integral_rule(left: Floats, right: Floats, points: int = POINTS) -> tuple[Floats, Floats]:
    """Nodes and weights (n_blocks, points) of integrals from left to right."""
    nodes, weights = _gauss(points)
    half = (right - left)[:, None] / 2.0
    return (left + right)[:, None] / 2.0 + half * nodes, half * weights


def interpolate(values: Floats, share: Floats) -> Floats:
    """Return polynomials with these values (n, points) at the nodes, at shares 0..1 of the way: (n,)."""
    points = values.shape[1]
    basis = np.polynomial.legendre.legvander(2.0 * share - 1.0, points - 1)
    return np.asarray(np.sum((basis @ _to_legendre(points)) * values, axis=1), dtype=np.float64)


@cache
def _to_legendre(points: int) -> Floats:
    """Coefficients of Legendre polynomials from values at the nodes, (points, points)."""
    nodes, _ = _gauss(points)
    basis = np.polynomial.legendre.legvander(nodes, points - 1)
    return np.asarray(np.linalg.inv(basis), dtype=np.float64)


def sum_rule(
    left: Floats, right: Floats, points: int = POINTS, *, at_integers: bool = False
) -> tuple[Floats, Floats]:
    """Nodes and weights (n_blocks, points) of sums over left..right - 1; surplus nodes have weight 0.

    Parameters
    ----------
    left, right : ndarray of shape (n_blocks,), float64 integers
    points : int
        How many nodes.
    at_integers : bool
        Take integers for nodes.
    """
    length = right - left
    table_nodes, table_weights = _integer_table(points) if at_integers else _gauss_table(points)
    index = np.minimum(length, LONGEST).astype(np.int64)
    nodes, weights = table_nodes[index], table_weights[index]
    long = length > LONGEST
    if np.any(long):
        rule = _rule_at_integers if at_integers else _long_gauss_rule
        nodes[long], weights[long] = rule(length[long], points)
    return left[:, None] + nodes, weights


def _long_gauss_rule(length: Floats, points: int) -> tuple[Floats, Floats]:
    """Nodes and weights in units of the block are smooth in one over the square of its length."""
    gauss_nodes, gauss_weights = _gauss_table(points)
    limit_nodes, limit_weights = _gauss(points)
    near = (LONGEST / length[:, None]) ** 2
    at_longest = (2.0 * gauss_nodes[LONGEST] + 1.0) / LONGEST - 1.0
    relative = limit_nodes + (at_longest - limit_nodes) * near
    limit = limit_weights / 2.0
    weights = length[:, None] * (limit + (gauss_weights[LONGEST] / LONGEST - limit) * near)
    return (length[:, None] * (relative + 1.0) - 1.0) / 2.0, weights


def _rule_at_integers(length: Floats, points: int) -> tuple[Floats, Floats]:
    """Rules of 0..length - 1 whose nodes are the integers next to those of Gauss and Legendre."""
    legendre = np.polynomial.legendre
    gauss, _ = legendre.leggauss(points)
    nodes = np.rint(length[:, None] / 2.0 * (1.0 + gauss) - 0.5)
    half = points // 2
    for position in range(1, half):  # near the ends they may coincide
        nodes[:, position] = np.maximum(nodes[:, position], nodes[:, position - 1] + 1.0)
    nodes[:, points - half :] = length[:, None] - 1.0 - nodes[:, :half][:, ::-1]
    exact_nodes, exact_weights = sum_rule(np.zeros_like(length), length, points)
    unit = 2.0 / length[:, None]
    at_exact = legendre.legvander(unit * (exact_nodes + 0.5) - 1.0, points - 1)
    sums = np.sum(exact_weights[:, :, None] * at_exact, axis=1)
    at_nodes = legendre.legvander(unit * (nodes + 0.5) - 1.0, points - 1)
    return nodes, np.linalg.solve(np.swapaxes(at_nodes, 1, 2), sums[:, :, None])[:, :, 0]


@cache
def _gauss_table(points: int) -> tuple[Floats, Floats]:
    """Gauss rules of 0..length - 1 by length, from the recurrence of the discrete Chebyshev polynomials."""
    nodes, weights = _short_rules(points)
    lengths = np.arange(points + 1.0, LONGEST + 1.0)
    degree = np.arange(1.0, points)
    square = degree**2 * (lengths[:, None] ** 2 - degree**2) / (4.0 * (4.0 * degree**2 - 1.0))
    matrix = np.zeros((len(lengths), points, points))
    position = np.arange(points - 1)
    matrix[:, position, position + 1] = matrix[:, position + 1, position] = np.sqrt(square)
    values, vectors = np.linalg.eigh(matrix)
    nodes[points + 1 :] = values + (lengths[:, None] - 1.0) / 2.0
    weights[points + 1 :] = lengths[:, None] * vectors[:, 0, :] ** 2
    return nodes, weights


@cache
def _integer_table(points: int) -> tuple[Floats, Floats]:
    """The same with integers for nodes."""
    nodes, weights = _short_rules(points)
    lengths = np.arange(points + 1.0, LONGEST + 1.0)
    nodes[points + 1 :], weights[points + 1 :] = _rule_at_integers(lengths, points)
    return nodes, weights


def _short_rules(points: int) -> tuple[Floats, Floats]:
    """Tables by length, filled for lengths up to so many: every integer has weight 1."""
    nodes, weights = np.zeros((LONGEST + 1, points)), np.zeros((LONGEST + 1, points))
    for length in range(1, points + 1):
        nodes[length, :length] = np.arange(length)
        weights[length, :length] = 1.0
    return nodes, weights
