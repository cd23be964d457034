"""Moments of several bounded columns: names, lattices, and exact maps between moments and components."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from pydantic import model_validator

from suffice.pipeline.declaration.fields import Bound, Nulls, NullsField, SpecModel
from suffice.pipeline.statistics.block import ColumnBounds, Parameters, Quantity, combination
from suffice.pipeline.statistics.lattice import require_interval

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


Pair: TypeAlias = tuple[int, int]
"""A moment: (0, 0) is n, (0, i) the sum of column i, (i, j) that of the products of columns i and j."""


class BoundedColumn(SpecModel):
    """A numeric column clipped to ``lower..upper``; nulls do not enter, or count as a public value."""

    lower: Bound
    upper: Bound
    nulls: NullsField = Nulls()

    @model_validator(mode="after")
    def _bounds_are_an_interval(self) -> Self:
        require_interval(self.lower, self.upper)
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    """A block's components as integer combinations of moments, and back.

    Attributes
    ----------
    components : tuple of str
        Their names.
    rows : tuple of dict of Pair to int
        Each component as integer factors of moments; what is left out is 0.
    size : int
        Number of columns.
    moments : dict of Pair to Quantity
        The moments from components, exactly.
    """

    components: tuple[str, ...]
    rows: tuple[Mapping[Pair, int], ...]
    size: int
    moments: Mapping[Pair, Quantity]

    @property
    def matrix(self) -> NDArray[Any]:
        """Components from moments, which stand in the order of ``MomentSums``, as Python integers.

        Shape (n_components, n_moments): made when totals are formed, as a plan has no need of it.
        """
        pairs = combinations_with_replacement(range(self.size + 1), 2)
        columns = {pair: position for position, pair in enumerate(pairs)}
        matrix = np.zeros((len(self.rows), len(columns)), dtype=object)
        for position, row in enumerate(self.rows):
            for moment, factor in row.items():
                matrix[position, columns[moment]] = factor
        return matrix


def pair_name(first: str, second: str) -> str:
    """Return how a pair of columns is named in tables and posteriors."""
    return f"{first}, {second}"


def lattice_of(column: BoundedColumn | ColumnBounds, *, linear: bool) -> tuple[Fraction, Fraction]:
    """Return what X = 0 stands for and what M steps stand for, in the column's unit."""
    if linear:
        return (column.lower + column.upper) / 2, (column.upper - column.lower) / 2
    return Fraction(0), max(abs(column.lower), abs(column.upper))


def moment_map(names: tuple[str, ...], steps: int, *, linear: bool, weight: Fraction | None) -> Map:
    """Return the components of a block.

    Parameters
    ----------
    names : tuple of str
        The columns.
    steps : int
        M.
    linear : bool
        Whether first moments are released.
    weight : Fraction or None
        Of second moments in the minimal design; None: the rotated design.
    """
    building = _Building(names=names, steps=steps, rows=[], moments={})
    if weight is None:
        building.rotated(linear=linear)
    else:
        building.minimal(weight, linear=linear)
    return Map(
        components=tuple(name for name, _ in building.rows),
        rows=tuple(row for _, row in building.rows),
        size=len(names),
        moments=building.moments,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Building:
    """Components under way: each a name and its integer coefficients; and the way back to moments."""

    names: tuple[str, ...]
    steps: int
    rows: list[tuple[str, dict[Pair, int]]]
    moments: dict[Pair, Quantity]

    @property
    def columns(self) -> range:
        return range(1, len(self.names) + 1)

    def minimal(self, weight: Fraction, *, linear: bool) -> None:
        """Release first moments, weighted, and second ones, beside a public N."""
        self.moments[0, 0] = Quantity(name="n", coefficients={}, public_n_coefficient=Fraction(1))
        if linear:
            for i, name in enumerate(self.names, start=1):
                self._alone((0, i), first_moment(self.steps, weight, name), int(self.steps / weight))
        for pair in combinations_with_replacement(self.columns, 2):
            self._alone(pair, f"sum({self._text(pair)})")

    def rotated(self, *, linear: bool) -> None:
        """Release the slack of the squares, then what is bounded alike by twos, as sum and difference."""
        # proof: rotated-moments
        size = len(self.names)
        slack = {(0, 0): size * self.steps**2, **{(i, i): -1 for i in self.columns}}
        self._release(f"sum({size} * 4^m - squares)", slack)
        for i, name in enumerate(self.names, start=1):
            if linear:
                self._rotated((i, i), (0, i), f"2^m * {name}", self.steps)
            else:
                self._alone((i, i), f"sum({self._text((i, i))})")
        products = list(combinations(self.columns, 2))
        for first, second in zip(products[::2], products[1::2], strict=False):
            self._rotated(first, second, self._text(second))
        if len(products) % 2:
            self._alone(products[-1], f"sum({self._text(products[-1])})")
        record = Fraction(1, size * self.steps**2)
        squares = [(record, self.moments[i, i]) for i in self.columns]
        self.moments[0, 0] = combination("n", [(record, _quantity({0: Fraction(1)})), *squares])

    def _text(self, pair: Pair) -> str:
        return f"{self.names[pair[0] - 1]} * {self.names[pair[1] - 1]}"

    def _release(self, name: str, row: dict[Pair, int]) -> int:
        self.rows.append((name, row))
        return len(self.rows) - 1

    def _alone(self, moment: Pair, name: str, factor: int = 1) -> None:
        self.moments[moment] = _quantity({self._release(name, {moment: factor}): Fraction(1, factor)})

    def _rotated(self, first: Pair, second: Pair, text: str, factor: int = 1) -> None:
        plus = self._release(f"sum({self._text(first)} + {text})", {first: 1, second: factor})
        minus = self._release(f"sum({self._text(first)} - {text})", {first: 1, second: -factor})
        half = Fraction(1, 2)
        self.moments[first] = _quantity({plus: half, minus: half})
        self.moments[second] = _quantity({plus: half / factor, minus: -half / factor})


def _quantity(coefficients: dict[int, Fraction]) -> Quantity:
    return Quantity(name="moment", coefficients=coefficients)


def least_rows(parameters: Parameters) -> int:
    """Return the fewest rows whose moments have a density."""
    return len(parameters.columns) + 2


def is_linear(parameters: Parameters) -> bool:
    """Return whether a statistic has first moments: all but a regression without an intercept."""
    return bool(parameters.constants.get("intercept", True))


def n_moments(parameters: Parameters) -> int:
    """Return how many first and second moments a statistic has."""
    size = max(1, len(parameters.columns))
    return (size if is_linear(parameters) else 0) + size * (size + 1) // 2


def first_moment(steps: int, weight: Fraction, value: str = "X") -> str:
    """Return the name of the component of a weighted first moment."""
    shift = (steps / weight).numerator.bit_length() - steps.bit_length()
    exponent = f"(m{shift:+d})" if shift else "m"
    return f"2^{exponent} sum({value})"
