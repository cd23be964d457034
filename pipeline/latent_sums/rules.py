r"""Quadrature over one block of a smooth weight, for integrals and for sums over integers.

Blocks of up to ``POINTS`` integers are summed one by one. A longer one takes ``POINTS`` nodes: the Gauss rule
of the discrete uniform law, exact to degree ``2 POINTS - 1``, where the weight is smooth between integers; or
``POINTS`` of the integers themselves, exact to degree ``POINTS - 1``, where it is not.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

POINTS = 12
LONGEST = 1024
"""Integers in a block beyond which rules are interpolated towards those of integrals."""


def integral_rule(left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """Nodes and weights (n_blocks, POINTS) of integrals from left to right."""
    nodes, weights = np.polynomial.legendre.leggauss(POINTS)
    half = (right - left)[:, None] / 2.0
    return (left + right)[:, None] / 2.0 + half * nodes, half * weights


def sum_rule(left: Floats, right: Floats, *, at_integers: bool = False) -> tuple[Floats, Floats]:
    """Nodes and weights (n_blocks, POINTS) of sums over left..right - 1; surplus nodes have weight 0.

    Parameters
    ----------
    left, right : ndarray of shape (n_blocks,), float64 integers
    at_integers : bool
        Take integers for nodes, in blocks of up to ``LONGEST``.
    """
    table_nodes, table_weights = _integer_table() if at_integers else _gauss_table()
    length = right - left
    index = np.minimum(length, LONGEST).astype(np.int64)
    nodes, weights = table_nodes[index], table_weights[index]
    long = length > LONGEST
    if np.any(long):
        # Nodes and weights in units of the block are smooth in one over the square of its length.
        gauss_nodes, gauss_weights = _gauss_table()
        limit_nodes, limit_weights = np.polynomial.legendre.leggauss(POINTS)
        near = (LONGEST / length[long, None]) ** 2
        at_longest = (2.0 * gauss_nodes[LONGEST] + 1.0) / LONGEST - 1.0
        relative = limit_nodes + (at_longest - limit_nodes) * near
        nodes[long] = (length[long, None] * (relative + 1.0) - 1.0) / 2.0
        limit = limit_weights / 2.0
        weights[long] = length[long, None] * (limit + (gauss_weights[LONGEST] / LONGEST - limit) * near)
    return left[:, None] + nodes, weights


@cache
def _gauss_table() -> tuple[Floats, Floats]:
    """Gauss rules of 0..length - 1 by length, from the recurrence of the discrete Chebyshev polynomials."""
    nodes, weights = _short_rules()
    lengths = np.arange(POINTS + 1.0, LONGEST + 1.0)
    degree = np.arange(1.0, POINTS)
    square = degree**2 * (lengths[:, None] ** 2 - degree**2) / (4.0 * (4.0 * degree**2 - 1.0))
    matrix = np.zeros((len(lengths), POINTS, POINTS))
    place = np.arange(POINTS - 1)
    matrix[:, place, place + 1] = matrix[:, place + 1, place] = np.sqrt(square)
    values, vectors = np.linalg.eigh(matrix)
    nodes[POINTS + 1 :] = values + (lengths[:, None] - 1.0) / 2.0
    weights[POINTS + 1 :] = lengths[:, None] * vectors[:, 0, :] ** 2
    return nodes, weights


@cache
def _integer_table() -> tuple[Floats, Floats]:
    """Rules of 0..length - 1 by length whose nodes are the integers next to those of Gauss and Legendre."""
    nodes, weights = _short_rules()
    gauss, _ = np.polynomial.legendre.leggauss(POINTS)
    for length in range(POINTS + 1, LONGEST + 1):
        chosen = np.rint(length / 2.0 * (1.0 + gauss) - 0.5)
        for place in range(1, POINTS // 2):  # near the ends they may coincide
            chosen[place] = max(chosen[place], chosen[place - 1] + 1.0)
        chosen[POINTS // 2 :] = length - 1.0 - chosen[: POINTS // 2][::-1]
        centres = (2.0 * np.arange(length) + 1.0) / length - 1.0
        averages = np.polynomial.legendre.legvander(centres, POINTS - 1).mean(axis=0)
        at_nodes = np.polynomial.legendre.legvander((2.0 * chosen + 1.0) / length - 1.0, POINTS - 1)
        nodes[length], weights[length] = chosen, length * np.linalg.solve(at_nodes.T, averages)
    return nodes, weights


def _short_rules() -> tuple[Floats, Floats]:
    """Tables by length, filled for lengths up to ``POINTS``: every integer has weight 1."""
    nodes, weights = np.zeros((LONGEST + 1, POINTS)), np.zeros((LONGEST + 1, POINTS))
    for length in range(1, POINTS + 1):
        nodes[length, :length] = np.arange(length)
        weights[length, :length] = 1.0
    return nodes, weights
