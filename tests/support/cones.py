"""Whether matrices lie in the cone of moments, in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.terms.statistics.cone_noise import ConeNoise

Matrix = list[list[Fraction]]


def is_semidefinite(matrix: Sequence[Sequence[int | Fraction]]) -> bool:
    """Tell whether a symmetric matrix is positive semidefinite, by symmetric elimination in fractions.

    A pivot below 0 refutes it, and so does a pivot of 0 beside another entry of its row.
    """
    left = [[Fraction(entry) for entry in row] for row in matrix]
    while left:
        (pivot, *row), *rest = left
        if pivot < 0 or (pivot == 0 and any(row)):
            return False
        if pivot == 0:
            left = [list(each[1:]) for each in rest]
            continue
        left = [
            [entry - each[0] * other / pivot for entry, other in zip(each[1:], row, strict=True)]
            for each in rest
        ]
    return True


def in_cone(components: Sequence[int | Fraction], noise: ConeNoise) -> bool:
    """Tell whether components are a point of the cone."""
    entries = dict(zip(noise.pairs, components, strict=True))
    rows = range(0 if noise.linear else 1, noise.columns + 1)
    matrix = [[entries[min(i, j), max(i, j)] for j in rows] for i in rows]
    return is_semidefinite(matrix) and all(entries[i, i] <= entries[0, 0] for i in rows)


def records_of(components: Sequence[int | Fraction], noise: ConeNoise) -> Fraction:
    """Return l, which is 1 for a record."""
    return Fraction(components[0]) / noise.steps**2
