"""Moments of bounded columns: names, lattices, and exact maps between moments and components."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from pydantic import model_validator

from suffice.pipeline.terms.declaration.fields import Bound, Nulls, NullsField, SpecModel
from suffice.pipeline.terms.statistics import l2_sensitivity
from suffice.pipeline.terms.statistics.lattice import require_interval
from suffice.pipeline.terms.statistics.sensitivity import (
    ColumnBounds,
    Constants,
    Quantity,
    combination,
    rotated_moments,
    two_column_moments,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from suffice.pipeline.terms.statistics.cone_noise import ConeNoise
    from suffice.typing import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalSums:
    """Projected sums of a normal statistic, of z = (x - centre) / half_range.

    Attributes
    ----------
    n, total, total_of_squares : ndarray of shape (n_cells,), float64
        Rows, sum of z, sum of z^2; all zero where the noisy n is not positive.
    centre, half_range : float
        In the column's unit.
    """

    n: Floats
    total: Floats
    total_of_squares: Floats
    centre: float
    half_range: float


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
    largest_value : int
        The largest magnitude that one record adds to one component.
    record_l1 : int or None
        The largest L1 norm of what one record adds over all components; None beside a public N, where
        sensitivities are those of a replaced record.
    record_l2_squared : int or None
        The largest squared L2 norm of that, where `record_l1` is given.
    opposed : int
        How far two records' vectors point away from each other, as `Block` has it.
    """

    components: tuple[str, ...]
    rows: tuple[Mapping[Pair, int], ...]
    size: int
    moments: Mapping[Pair, Quantity]
    largest_value: int
    record_l1: int | None = None
    record_l2_squared: int | None = None
    opposed: int = 0

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
    """Return the components of a block: those with the least noise on what is read from them.

    Parameters
    ----------
    names : tuple of str
        The columns.
    steps : int
        M.
    linear : bool
        Whether first moments are released.
    weight : Fraction or None
        Of second moments beside a public N; None: N is private, and follows from the components.
    """
    if weight is not None:
        return minimal_map(names, steps, weight, linear=linear)
    if linear and len(names) == 2:
        return two_column_map(names, steps)
    return rotated_map(names, steps, linear=linear)


def cone_map(names: tuple[str, ...], noise: ConeNoise, *, n_is_public: bool) -> Map:
    r"""Return the entries of the matrix z z^T of z = (M, X), as noise on their cone needs them.

    Where N is public, the noise on :math:`N M^2` is known, and its covariance with that on a square is c
    times its variance: :math:`\sum X_i^2` is estimated by the square less c times that noise, which is
    without bias and varies least.
    """
    # proof: cone-moments
    building, steps = _Building(names=names, steps=noise.steps), noise.steps
    for i, j in noise.pairs:
        if i > 0:
            building.alone((i, j), f"sum({building.text((i, j))})")
        elif j > 0:
            building.alone((0, j), f"sum(2^m * {names[j - 1]})", steps)
        else:
            building.alone((0, 0), "sum(4^m)", steps**2)
    if n_is_public:
        building.moments[0, 0] = Quantity(name="n", coefficients={}, public_n_coefficient=Fraction(1))
        c = noise.covariance_of((0, 0), (1, 1)) / noise.covariance_of((0, 0), (0, 0))
        for i in building.columns:
            square = building.moments[i, i]
            building.moments[i, i] = replace(
                square, coefficients={0: -c, **square.coefficients}, public_n_coefficient=c * steps**2
            )
    return building.built(steps**2)


def minimal_map(names: tuple[str, ...], steps: int, weight: Fraction, *, linear: bool) -> Map:
    """Return first moments, weighted, and second ones, beside a public N."""
    building = _Building(names=names, steps=steps)
    building.moments[0, 0] = Quantity(name="n", coefficients={}, public_n_coefficient=Fraction(1))
    factor = int(steps / weight) if linear else 0
    if linear:
        for i, name in enumerate(names, start=1):
            building.alone((0, i), first_moment(steps, weight, name), factor)
    for pair in combinations_with_replacement(building.columns, 2):
        building.alone(pair, f"sum({building.text(pair)})")
    return building.built(steps * max(steps, factor))


def rotated_map(names: tuple[str, ...], steps: int, *, linear: bool) -> Map:
    """Return the slack of the squares, then what is bounded alike by twos, as sum and difference."""
    # proof: rotated-moments
    building, size = _Building(names=names, steps=steps), len(names)
    slack = {(0, 0): size * steps**2, **{(i, i): -1 for i in building.columns}}
    building.release(f"sum({size} * 4^m - squares)", slack)
    for i, name in enumerate(names, start=1):
        if linear:
            building.rotated((i, i), (0, i), f"2^m * {name}", steps)
        else:
            building.alone((i, i), f"sum({building.text((i, i))})")
    products = list(combinations(building.columns, 2))
    for first, second in zip(products[::2], products[1::2], strict=False):
        building.rotated(first, second, building.text(second))
    if len(products) % 2:
        building.alone(products[-1], f"sum({building.text(products[-1])})")
    record = Fraction(1, size * steps**2)
    squares = [(record, building.moments[i, i]) for i in building.columns]
    building.moments[0, 0] = combination("n", [(record, _quantity({0: Fraction(1)})), *squares])
    return building.built(
        max(2, size) * steps**2,
        rotated_moments(steps, columns=size, linear=linear),
        l2_sensitivity.rotated_moments(steps, columns=size, linear=linear),
        l2_sensitivity.rotated_opposed(steps, linear=linear),
    )


def two_column_map(names: tuple[str, ...], steps: int) -> Map:
    r"""Return parabolas in the sum and the difference of two columns, and the slack of each square.

    .. math:: 2 S^2 \pm 3 M S \text{ for } S = X_1 + X_2 \text{ and } S = X_1 - X_2, \quad 5 (M^2 - X_i^2)

    The parabolas give :math:`S^2` and :math:`S` of both, so :math:`X_i`, :math:`X_1 X_2` and
    :math:`X_1^2 + X_2^2`; with the slacks these give n and the difference of the squares.
    """
    # proof: two-column-moments
    building, signs = _Building(names=names, steps=steps), (Fraction(1), Fraction(-1))
    for sign, text in ((1, "+"), (-1, "-")):
        square = {(1, 1): 2, (1, 2): 4 * sign, (2, 2): 2}
        both = f"({names[0]} {text} {names[1]})"
        for end, plus in ((3 * steps, "+"), (-3 * steps, "-")):
            row = {**square, (0, 1): end, (0, 2): sign * end}
            building.release(f"sum(2 * {both}^2 {plus} 3 * 2^m * {both})", row)
    for i in building.columns:
        building.release(f"sum(5 * (4^m - {names[i - 1]}^2))", {(0, 0): 5 * steps**2, (i, i): -5})
    parabolas = dict.fromkeys(range(4), Fraction(1, 16))
    record, tenth = Fraction(1, steps**2), Fraction(1, 10)
    building.moments[0, 0] = combination("n", [(record, _quantity({**parabolas, 4: tenth, 5: tenth}))])
    of_value = Fraction(1, 12 * steps)
    for i, of_second in enumerate(signs, start=1):
        values = {0: of_value, 1: -of_value, 2: of_second * of_value, 3: -of_second * of_value}
        building.moments[0, i] = _quantity(values)
        building.moments[i, i] = _quantity({**parabolas, 4: -of_second * tenth, 5: of_second * tenth})
    building.moments[1, 2] = _quantity({j: signs[j // 2] / 16 for j in range(4)})
    return building.built(
        14 * steps**2,
        two_column_moments(steps),
        l2_sensitivity.two_column_moments(steps),
        l2_sensitivity.two_column_opposed(steps),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Building:
    """Components under way: each a name and its integer coefficients; and the way back to moments."""

    names: tuple[str, ...]
    steps: int
    rows: list[tuple[str, dict[Pair, int]]] = field(default_factory=list)
    moments: dict[Pair, Quantity] = field(default_factory=dict)

    @property
    def columns(self) -> range:
        return range(1, len(self.names) + 1)

    def built(
        self,
        largest_value: int,
        record_l1: int | None = None,
        record_l2_squared: int | None = None,
        opposed: int = 0,
    ) -> Map:
        return Map(
            components=tuple(name for name, _ in self.rows),
            rows=tuple(row for _, row in self.rows),
            size=len(self.names),
            moments=self.moments,
            largest_value=largest_value,
            record_l1=record_l1,
            record_l2_squared=record_l2_squared,
            opposed=opposed,
        )

    def text(self, pair: Pair) -> str:
        return f"{self.names[pair[0] - 1]} * {self.names[pair[1] - 1]}"

    def release(self, name: str, row: dict[Pair, int]) -> int:
        self.rows.append((name, row))
        return len(self.rows) - 1

    def alone(self, moment: Pair, name: str, factor: int = 1) -> None:
        self.moments[moment] = _quantity({self.release(name, {moment: factor}): Fraction(1, factor)})

    def rotated(self, first: Pair, second: Pair, text: str, factor: int = 1) -> None:
        plus = self.release(f"sum({self.text(first)} + {text})", {first: 1, second: factor})
        minus = self.release(f"sum({self.text(first)} - {text})", {first: 1, second: -factor})
        half = Fraction(1, 2)
        self.moments[first] = _quantity({plus: half, minus: half})
        self.moments[second] = _quantity({plus: half / factor, minus: -half / factor})


def _quantity(coefficients: dict[int, Fraction]) -> Quantity:
    return Quantity(name="moment", coefficients=coefficients)


def least_rows(parameters: Constants) -> int:
    """Return the fewest rows whose moments have a density."""
    return len(parameters.columns) + 2


def is_linear(parameters: Constants) -> bool:
    """Return whether a statistic has first moments: all but a regression without an intercept."""
    return bool(parameters.constants.get("intercept", True))


def n_moments(parameters: Constants) -> int:
    """Return how many first and second moments a statistic has."""
    size = max(1, len(parameters.columns))
    return (size if is_linear(parameters) else 0) + size * (size + 1) // 2


DEFAULT_WEIGHT = Fraction(2)
"""Weight of the second moment in the minimal design: within about 8 percent of the best choice where the
standard deviation is a fifth of the half range (Foulds et al. 2016 leave it open)."""


def first_moment(steps: int, weight: Fraction, value: str = "X") -> str:
    """Return the name of the component of a weighted first moment."""
    shift = (steps / weight).numerator.bit_length() - steps.bit_length()
    exponent = f"(m{shift:+d})" if shift else "m"
    return f"2^{exponent} sum({value})"
