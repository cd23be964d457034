r"""Counts of the records that clipping moved, beside the sums of clipped records and on one lattice with them.

A record strictly below its lower bound adds a public weight a to one more component, one strictly above the
upper bound to another:

.. math:: n_{\text{below}} = S_{\text{below}} / a, \quad n_{\text{above}} = S_{\text{above}} / a

Sensitivity in `sensitivity.md`: counts-beside.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from suffice.pipeline.statistics.block import Quantity
from suffice.pipeline.statistics.sensitivity import (
    Design,
    count_weight,
    counts_beside_sums,
    minimal_with_counts,
)

if TYPE_CHECKING:
    from suffice.pipeline.statistics.block import Block
    from suffice.pipeline.statistics.measure import PowerSums, ReadColumn

N_BELOW, N_ABOVE = "n_below", "n_above"
COUNT_COMPONENTS = ("a count(x<lower)", "a count(x>upper)")
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

    @property
    def is_wide(self) -> bool:
        """Whether sums may exceed int64: those of powers may."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedClipping:
    """How a statistic's block is shared by sums and counts.

    Attributes
    ----------
    weight : int
        a, what a record that clipping moved adds to its count, in lattice units.
    sums : int
        How many components are those of sums; the two others are the counts.
    partition_total : int or None
        What every record that enters adds over the components of sums, for a partition of unity.
    """

    weight: int
    sums: int
    partition_total: int | None


def beside_sums(block: Block, share: Fraction) -> Block:
    """Return the block of sums and counts.

    Parameters
    ----------
    block : Block
        Of sums alone: a partition of unity, or minimal.
    share : Fraction
        What a record may add to its count, as a share of what it may change the sums by.
    """
    sums = len(block.components)
    replaced, record_l1 = block.minimal_sensitivity, block.record_l1
    weight = count_weight(replaced or record_l1 or 1, share)
    return replace(
        block,
        design=Design.MINIMAL if block.design is Design.MINIMAL else Design.BOUNDED,
        components=(*block.components, *COUNT_COMPONENTS),
        largest_value=max(block.largest_value, weight),
        record_l1=None if record_l1 is None else counts_beside_sums(record_l1, weight),
        minimal_sensitivity=None
        if replaced is None
        else minimal_with_counts(replaced, block.between_ends, weight),
        quantities=(
            *block.quantities,
            *(
                Quantity(name=name, coefficients={sums + side: Fraction(1, weight)})
                for side, name in enumerate((N_BELOW, N_ABOVE))
            ),
        ),
        counted=CountedClipping(weight=weight, sums=sums, partition_total=block.partition_total),
    )
