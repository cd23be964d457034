"""What a pass over the data computes for one statistic, and how it reads the columns that takes.

A family states one measure; the engine knows nothing else about families. A column is read as one 32-bit
integer a row: the code of a declared key, a lattice value, or the side on which a value lies beyond its
bounds. Measures of rows take the rows that each unit keeps. Measures of units see every row of a unit that
has a known cell, and bound by themselves what a unit adds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction

    from suffice.pipeline.terms.declaration.domains import Domain
    from suffice.pipeline.terms.statistics.histogram_bins import HistogramBins
    from suffice.pipeline.terms.statistics.lattice import Quantiser, Transform

N_PRODUCTS = 3
"""Products of two numbers, each with itself and with the other."""
LARGEST_UNIT_SUM = 1 << 31
"""What a unit may add to a sum of a cell at most, in magnitude, for int64 to hold products of two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfRows:
    """A measure of units that is made of what rows add."""

    of: CodeCounts | PowerSums

    @property
    def reads(self) -> tuple[ReadColumn, ...]:
        """The columns read, in order."""
        return self.of.reads

    @property
    def width(self) -> int:
        """Number of sums in a cell."""
        return self.of.width


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRow(_OfRows):
    """Sum one row of each unit: of the rows that enter, the first by the run's keyed hash.

    Parameters
    ----------
    of : CodeCounts or PowerSums
        What is summed of that row.
    """

    @property
    def is_wide(self) -> bool:
        """Whether sums may exceed int64."""
        return self.of.is_wide


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitMean(_OfRows):
    r"""Sum powers of the mean of each unit's lattice values, rounded to the lattice, ties to even.

    .. math:: X_u = \mathrm{rint}\Big(\frac{1}{k} \sum_{i=1}^k X_i\Big)

    over the k rows of the unit that have a value, in the cell of the first of them by the run's keyed hash.

    Parameters
    ----------
    of : PowerSums
        The powers summed.
    """

    is_wide: ClassVar[bool] = True
    """Whether sums may exceed int64: those of powers may."""

    of: PowerSums


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    r"""Sum, or count, the number k of rows of each unit, in the cell of its first row by the keyed hash.

    .. math:: \min(k, K), \quad \min(k, C) - \min(k, K), \quad C - \min(k, C)

    or the units with :math:`\min(k, C) = 1, \dots, C`.

    Parameters
    ----------
    kept : int
        K, the rows that a unit keeps.
    upper : int
        C, from which on numbers of rows are not told apart.
    counts_each : bool
        Whether to count the units with each number of rows, in place of the three sums.
    """

    kept: int
    upper: int
    counts_each: bool

    @property
    def reads(self) -> tuple[ReadColumn, ...]:
        """The columns read: none beside the unit's."""
        return ()

    @property
    def width(self) -> int:
        """Number of sums in a cell."""
        return self.upper if self.counts_each else 3

    @property
    def is_wide(self) -> bool:
        """Whether sums may exceed int64: counts never do."""
        return not self.counts_each


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitProducts(_OfRows):
    """Sum what the rows kept add to each cell, and products of two of what each unit's rows add to it.

    With (a, b) what the kept rows of a unit add to two sums of a cell, the products are a^2, ab and b^2.

    Parameters
    ----------
    of : CodeCounts or PowerSums
        What rows add; a and b are the counts of its two codes, or its n and sum X.
    """

    is_wide: ClassVar[bool] = True
    """Whether sums may exceed int64: those of products may."""

    @property
    def width(self) -> int:
        """Number of sums in a cell: those of rows, then three of products."""
        return self.of.width + N_PRODUCTS


UnitMeasure = FirstRow | UnitMean | RowCounts | UnitProducts


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeColumn:
    """A column read as codes of declared keys.

    Parameters
    ----------
    column : str
        The column read.
    domain : Domain
        The declared keys, in order: codes ``0..len(domain)-1``.
    fallback : int or None
        The code that null and unlisted values are counted under, ``len(domain)`` being a code of its
        own; None: the row does not enter.
    """

    column: str
    domain: Domain
    fallback: int | None

    @property
    def n_codes(self) -> int:
        """Number of codes."""
        return len(self.domain) + (self.fallback == len(self.domain))


@dataclass(frozen=True, slots=True, kw_only=True)
class LatticeColumn:
    """A numeric column read as values of a public lattice.

    Parameters
    ----------
    column : str
        The column read; numeric.
    quantiser : Quantiser
        The public lattice.
    fallback : int or None
        The lattice value that stands for null and NaN; None: the row does not enter.
    transform : Transform or None
        What is taken of a value before the lattice; None: the value itself.
    """

    column: str
    quantiser: Quantiser
    fallback: int | None
    transform: Transform | None = None

    @classmethod
    def of(
        cls,
        column: str,
        quantiser: Quantiser,
        *,
        nulls: Fraction | None,
        transform: Transform | None = None,
    ) -> Self:
        """Return the column where null and NaN count as the value `nulls`, or do not enter."""
        fallback = None
        if nulls is not None:
            value = np.array([float(nulls)])
            fallback = int(quantiser.quantise(transform.apply(value) if transform else value)[0])
        return cls(column=column, quantiser=quantiser, fallback=fallback, transform=transform)


N_SIDES = 2
BELOW, ABOVE, NOT_MOVED = 0, 1, -1
"""Codes of a value: clipping moves it up to its lower bound, down to its upper bound, or not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideColumn:
    """A numeric column read as the side on which a value lies beyond its public bounds.

    Parameters
    ----------
    column : str
        The column read; numeric.
    lower, upper : float
        The bounds, in the column's unit: the nearest numbers in float64. A value at a bound is not beyond it.
    fallback : int
        The code of null and NaN.
    """

    column: str
    lower: float
    upper: float
    fallback: int = NOT_MOVED

    @classmethod
    def of(cls, column: str, lower: Fraction, upper: Fraction, nulls: Fraction | None) -> SideColumn:
        """Return the column where null and NaN count as the value `nulls`, or do not enter."""
        ends = float(lower), float(upper)
        fallback = NOT_MOVED
        if nulls is not None and not ends[0] <= float(nulls) <= ends[1]:
            fallback = BELOW if float(nulls) < ends[0] else ABOVE
        return cls(column=column, lower=ends[0], upper=ends[1], fallback=fallback)


@dataclass(frozen=True, slots=True, kw_only=True)
class BinColumn:
    """A numeric column read as the bin of a histogram that a value lies in.

    Parameters
    ----------
    column : str
        The column read; numeric.
    bins : HistogramBins
        The public bins, in order: codes ``0..len(bins)-1``.
    fallback : int or None
        The code that null and NaN are counted under; None: the row does not enter.
    """

    column: str
    bins: HistogramBins
    fallback: int | None

    @classmethod
    def of(cls, column: str, bins: HistogramBins, nulls: Fraction | None) -> Self:
        """Return the column where null and NaN count as the value `nulls`, or do not enter."""
        return cls(column=column, bins=bins, fallback=None if nulls is None else bins.position(nulls))

    @property
    def n_codes(self) -> int:
        """Number of bins."""
        return len(self.bins)


ReadColumn: TypeAlias = CodeColumn | BinColumn | LatticeColumn | SideColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeCounts:
    """Count the rows of each code of a column in each cell.

    Parameters
    ----------
    of : CodeColumn or BinColumn
        The column read.
    """

    is_wide: ClassVar[bool] = False
    """Whether sums may exceed int64: counts never do."""

    of: CodeColumn | BinColumn

    @property
    def reads(self) -> tuple[ReadColumn, ...]:
        """The columns read, in order."""
        return (self.of,)

    @property
    def width(self) -> int:
        """Number of counts in a cell."""
        return self.of.n_codes


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerSums:
    """Sum the powers 0 to `degree` of the lattice value in each cell: n, sum X, and sum X^2.

    Parameters
    ----------
    of : LatticeColumn
        The column read.
    degree : int
        1 or 2.
    """

    is_wide: ClassVar[bool] = True
    """Whether sums may exceed int64: those of powers may."""

    of: LatticeColumn
    degree: int

    @property
    def reads(self) -> tuple[ReadColumn, ...]:
        """The columns read, in order."""
        return (self.of,)

    @property
    def width(self) -> int:
        """Number of sums in a cell."""
        return self.degree + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedPowers:
    """Sum powers of the lattice value in each cell, and count the rows that clipping moved, by side.

    A row counts where its value lies beyond a bound and its lattice value is the end on that side.

    Parameters
    ----------
    of : PowerSums
        The powers summed.
    side : SideColumn
        The same column, read for its side.
    """

    is_wide: ClassVar[bool] = True
    """Whether sums may exceed int64: those of powers may."""

    of: PowerSums
    side: SideColumn

    @property
    def reads(self) -> tuple[ReadColumn, ...]:
        """The columns read, in order."""
        return (*self.of.reads, self.side)

    @property
    def width(self) -> int:
        """Number of sums in a cell: those of powers, then the two counts."""
        return self.of.width + N_SIDES


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentSums:
    """Sum 1, every lattice value and every product of two (i <= j) in each cell, over complete rows.

    A row enters where each of its columns has a lattice value, perhaps that of its nulls.

    Parameters
    ----------
    of : tuple of LatticeColumn
        The columns read, at least one.
    """

    is_wide: ClassVar[bool] = True
    """Whether sums may exceed int64: those of products may."""

    of: tuple[LatticeColumn, ...]

    @property
    def reads(self) -> tuple[ReadColumn, ...]:
        """The columns read, in order."""
        return self.of

    @property
    def width(self) -> int:
        """Number of sums in a cell: n, the sums, and the products by rows of the upper triangle."""
        return (len(self.of) + 1) * (len(self.of) + 2) // 2

    @property
    def largest_magnitude(self) -> int:
        """Largest absolute lattice value of any column."""
        return max(of.quantiser.largest_magnitude for of in self.of)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCounts:
    """Count the rows of each combination of codes, in several tables.

    A row enters all tables of its cell or none: every column of every table has to have a code. So each
    entering row adds 1 to exactly one count of each table.

    Parameters
    ----------
    tables : tuple of tuple of CodeColumn
        The columns of each table, the last running fastest; the tables' counts stand side by side.
    """

    is_wide: ClassVar[bool] = False
    """Whether sums may exceed int64: counts never do."""

    tables: tuple[tuple[CodeColumn, ...], ...]

    @property
    def reads(self) -> tuple[ReadColumn, ...]:
        """The columns read, in order of appearance, each once."""
        return tuple(dict.fromkeys(of for table in self.tables for of in table))

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of counts of each table in a cell."""
        return tuple(math.prod(of.n_codes for of in table) for table in self.tables)

    @property
    def width(self) -> int:
        """Number of counts in a cell."""
        return sum(self.widths)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionCounts:
    """Count steps from one code of a column to the next in each cell, along the rows of each unit.

    The rows of a unit that have a code and a place in the order are its sequence, by order, then code, then
    cell. Its first `most` + 1 rows are kept; a step counts in the cell that both of its rows belong to.

    Parameters
    ----------
    of : CodeColumn
        The column read.
    order : str
        The column that orders the rows of a unit.
    most : int
        Steps of a unit that are looked at.
    """

    is_wide: ClassVar[bool] = False
    """Whether sums may exceed int64: counts never do."""

    of: CodeColumn
    order: str
    most: int

    @property
    def reads(self) -> tuple[ReadColumn, ...]:
        """The columns read, in order."""
        return (self.of,)

    @property
    def width(self) -> int:
        """Number of counts in a cell."""
        return self.of.n_codes**2


Measure: TypeAlias = (
    CodeCounts
    | PowerSums
    | CountedPowers
    | MomentSums
    | TableCounts
    | TransitionCounts
    | FirstRow
    | UnitMean
    | RowCounts
    | UnitProducts
)


def orders_of(measures: Iterable[Measure]) -> tuple[str, ...]:
    """Return the columns by which measures order the rows of a unit, each once."""
    orders = (measure.order for measure in measures if isinstance(measure, TransitionCounts))
    return tuple(dict.fromkeys(orders))


def columns_of(measure: Measure) -> tuple[str, ...]:
    """Return the names of all columns that a measure rests on, each once."""
    return tuple(dict.fromkeys((*(of.column for of in measure.reads), *orders_of([measure]))))
