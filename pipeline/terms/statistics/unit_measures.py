"""What a pass over the data computes of whole units: all rows of one unit make one contribution.

The other measures take the rows that each unit keeps. These see every row of a unit that has a known cell,
however many there are, and bound by themselves what a unit adds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from suffice.pipeline.terms.statistics.measure import CodeCounts, PowerSums, ReadColumn


N_PRODUCTS = 3
"""Products of two numbers, each with itself and with the other."""
LARGEST_UNIT_SUM = 1 << 31
"""What a unit may add to a sum of a cell at most, in magnitude, for int64 to hold products of two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRow:
    """Sum one row of each unit: of the rows that enter, the first by the run's keyed hash.

    Parameters
    ----------
    of : CodeCounts or PowerSums
        What is summed of that row.
    """

    of: CodeCounts | PowerSums

    @property
    def reads(self) -> tuple[ReadColumn, ...]:
        """The columns read, in order."""
        return self.of.reads

    @property
    def width(self) -> int:
        """Number of sums in a cell."""
        return self.of.width

    @property
    def is_wide(self) -> bool:
        """Whether sums may exceed int64."""
        return self.of.is_wide


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitMean:
    r"""Sum powers of the mean of each unit's lattice values, rounded to the lattice, ties to even.

    .. math:: X_u = \mathrm{rint}\Big(\frac{1}{k} \sum_{i=1}^k X_i\Big)

    over the k rows of the unit that have a value, in the cell of the first of them by the run's keyed hash.

    Parameters
    ----------
    of : PowerSums
        The powers summed.
    """

    of: PowerSums

    @property
    def reads(self) -> tuple[ReadColumn, ...]:
        """The columns read, in order."""
        return self.of.reads

    @property
    def width(self) -> int:
        """Number of sums in a cell."""
        return self.of.width

    @property
    def is_wide(self) -> bool:
        """Whether sums may exceed int64: those of powers may."""
        return True


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
class UnitProducts:
    """Sum what the rows kept add to each cell, and products of two of what each unit's rows add to it.

    With (a, b) what the kept rows of a unit add to two sums of a cell, the products are a^2, ab and b^2.

    Parameters
    ----------
    of : CodeCounts or PowerSums
        What rows add; a and b are the counts of its two codes, or its n and sum X.
    """

    of: CodeCounts | PowerSums

    @property
    def reads(self) -> tuple[ReadColumn, ...]:
        """The columns read, in order."""
        return self.of.reads

    @property
    def width(self) -> int:
        """Number of sums in a cell: those of rows, then three of products."""
        return self.of.width + N_PRODUCTS

    @property
    def is_wide(self) -> bool:
        """Whether sums may exceed int64: those of products may."""
        return True


UnitMeasure = FirstRow | UnitMean | RowCounts | UnitProducts
