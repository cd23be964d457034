r"""What the families of several columns share: their columns and lattice, block, totals and quantities.

.. math:: T(z) = (z_i, \; z_i z_j \text{ for } i \le j)

Every column lies on a lattice of its own, an integer X in ``-M..M`` with ``M = 2**lattice_bits``. Sensitivity
in `sensitivity.md`: rotated-moments, from which n follows; minimal-moments or minimal-products beside a
public N.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from pydantic import model_validator

from suffice.pipeline.families.contract import Block, ColumnBounds, Parameters, Quantity, combination
from suffice.pipeline.families.normal import DEFAULT_WEIGHT, first_moment
from suffice.pipeline.fields import Bound, Column, Nulls, NullsField, SpecModel
from suffice.pipeline.lattice import Quantiser, require_interval
from suffice.pipeline.sensitivity import Design, minimal_moments, minimal_products, rotated_moments
from suffice.pipeline.sums import LatticeColumn, MomentSums

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

MOST_COLUMNS = 64
"""The noise on every number grows with the square of the number of columns."""

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


Columns: TypeAlias = dict[Column, BoundedColumn]


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """Several bounded columns on lattices of equally many steps.

    Parameters
    ----------
    columns : dict of str to BoundedColumn
        In order.
    bits : int
        ``lattice_bits``.
    linear : bool
        Whether first moments are released. Without them X = 0 stands for 0, so that products of lattice
        values are those of values; with them it stands for the middle of the bounds.
    weight : Fraction or None
        Of second moments beside first ones in the minimal design; None: the default.
    """

    columns: Mapping[str, BoundedColumn]
    bits: int
    linear: bool = True
    weight: Fraction | None = None

    @property
    def steps(self) -> int:
        """M."""
        return 1 << self.bits

    def minimal_weight(self, n_is_public: bool) -> Fraction | None:
        """Return the weight of second moments where the minimal design is released, else None."""
        every_row_counts = all(column.nulls.value is not None for column in self.columns.values())
        return (self.weight or DEFAULT_WEIGHT) if n_is_public and every_row_counts else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    """A block's components as integer combinations of moments, and back.

    Attributes
    ----------
    components : tuple of str
        Their names.
    matrix : ndarray of object, shape (n_components, n_moments)
        Python integers: components from moments, which stand in the order of ``MomentSums``.
    moments : dict of Pair to Quantity
        The moments from components, exactly.
    """

    components: tuple[str, ...]
    matrix: NDArray[Any]
    moments: Mapping[Pair, Quantity]


def require_columns(columns: Sequence[str], least: int) -> None:
    """Refuse too few or too many columns, and names of which two pairs would read alike.

    Raises
    ------
    ValueError
        Naming the rule.
    """
    if not least <= len(columns) <= MOST_COLUMNS:
        message = f"{least} to {MOST_COLUMNS} columns are taken together, not {len(columns)}"
        raise ValueError(message)
    labels = [*columns, *(pair_name(*pair) for pair in combinations(columns, 2))]
    designs = (moment_map(tuple(columns), 4, linear=True, weight=weight) for weight in (None, Fraction(1)))
    for names in (labels, *(design.components for design in designs)):
        if len(set(names)) < len(names):
            message = "the columns' names have to differ, and so do those of their pairs, written as 'x, y'"
            raise ValueError(message)


def pair_name(first: str, second: str) -> str:
    """Return how a pair of columns is named in tables and posteriors."""
    return f"{first}, {second}"


def lattice_of(column: BoundedColumn | ColumnBounds, *, linear: bool) -> tuple[Fraction, Fraction]:
    """Return what X = 0 stands for and what M steps stand for, in the column's unit."""
    if linear:
        return (column.lower + column.upper) / 2, (column.upper - column.lower) / 2
    return Fraction(0), max(abs(column.lower), abs(column.upper))


def measure(box: Box) -> MomentSums:
    """Sum n, values and products of two over the rows in which every column has a value."""
    of = []
    for name, column in box.columns.items():
        centre, half_range = lattice_of(column, linear=box.linear)
        quantiser = Quantiser(
            centre=float(centre),
            half_range=float(half_range),
            steps=box.steps,
            lowest=round((column.lower - centre) / half_range * box.steps),
            highest=round((column.upper - centre) / half_range * box.steps),
        )
        of.append(LatticeColumn.of(name, quantiser, nulls=column.nulls.value))
    return MomentSums(of=tuple(of))


def block(box: Box, n_is_public: bool) -> Block:
    """Release the weighted moments beside a public N, or rotated moments from which n follows."""
    weight, size = box.minimal_weight(n_is_public), len(box.columns)
    released = moment_map(tuple(box.columns), box.steps, linear=box.linear, weight=weight)
    quantities = _in_column_units(box, released)
    if weight is None:
        return Block(
            design=Design.BOUNDED,
            components=released.components,
            largest_value=max(2, size) * box.steps**2,
            record_l1=rotated_moments(box.steps, columns=size, linear=box.linear),
            quantities=quantities,
        )
    if not box.linear:
        return Block(
            design=Design.MINIMAL,
            components=released.components,
            largest_value=box.steps**2,
            minimal_sensitivity=minimal_products(box.steps, columns=size),
            quantities=quantities,
        )
    return Block(
        design=Design.MINIMAL,
        components=released.components,
        largest_value=max(box.steps**2, int(box.steps**2 / weight)),
        minimal_sensitivity=minimal_moments(box.steps, weight, columns=size),
        moment_weight=weight,
        quantities=quantities,
    )


def totals(box: Box, design: Design, sums: NDArray[Any]) -> NDArray[Any]:
    """Form the components from moments, in Python integers."""
    weight = box.minimal_weight(design is Design.MINIMAL)
    released = moment_map(tuple(box.columns), box.steps, linear=box.linear, weight=weight)
    components: NDArray[Any] = sums @ released.matrix.T
    return components


def parameters(box: Box, **constants: Fraction) -> Parameters:
    """Return the columns' bounds and the lattice."""
    return Parameters(
        lattice_bits=box.bits,
        constants=constants,
        columns=tuple(
            ColumnBounds(name=name, lower=column.lower, upper=column.upper)
            for name, column in box.columns.items()
        ),
    )


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
    pairs = list(combinations_with_replacement(range(len(names) + 1), 2))
    matrix = np.zeros((len(building.rows), len(pairs)), dtype=object)
    for position, (_, row) in enumerate(building.rows):
        for moment, factor in row.items():
            matrix[position, pairs.index(moment)] = factor
    return Map(components=tuple(name for name, _ in building.rows), matrix=matrix, moments=building.moments)


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


def _in_column_units(box: Box, released: Map) -> tuple[Quantity, ...]:
    """Map the lattice's moments to n, total, total_of_squares and total_of_products of the columns."""
    moments, names = released.moments, tuple(box.columns)
    lattices = [lattice_of(column, linear=box.linear) for column in box.columns.values()]
    quantities = [combination("n", [(Fraction(1), moments[0, 0])])]
    if box.linear:
        quantities += [
            combination(
                "total", [(centre, moments[0, 0]), (half_range / box.steps, moments[0, i])], component=name
            )
            for i, (name, (centre, half_range)) in enumerate(zip(names, lattices, strict=True), start=1)
        ]
    for i, j in sorted(
        combinations_with_replacement(range(1, len(names) + 1), 2), key=lambda pair: pair[0] != pair[1]
    ):
        (centre, half_range), (other_centre, other_half_range) = lattices[i - 1], lattices[j - 1]
        step, other_step = half_range / box.steps, other_half_range / box.steps
        parts = [(step * other_step, moments[i, j])]
        if box.linear:
            parts += [
                (centre * other_centre, moments[0, 0]),
                (centre * other_step, moments[0, j]),
                (other_centre * step, moments[0, i]),
            ]
        name, component = (
            ("total_of_squares", names[i - 1])
            if i == j
            else ("total_of_products", pair_name(names[i - 1], names[j - 1]))
        )
        quantities.append(combination(name, parts, component=component))
    return tuple(quantities)


def least_rows(parameters: Parameters) -> int:
    """Return the fewest rows whose moments have a density."""
    return len(parameters.columns) + 2


def is_linear(parameters: Parameters) -> bool:
    """Return whether a statistic has first moments: all but a regression without an intercept."""
    return bool(parameters.constants.get("intercept", True))
