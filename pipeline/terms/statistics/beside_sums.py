r"""What is released beside the sums of rows, on one lattice with them.

Counts of the records that clipping moved: a record strictly below its lower bound adds a public weight a to
one more component, one strictly above the upper bound to another,

.. math:: n_{\text{below}} = S_{\text{below}} / a, \quad n_{\text{above}} = S_{\text{above}} / a

Second moments of unit totals: a record that enters adds the parts s and t - s of a public total t to a cell,
s of them to its last and t - s to its first part: bernoulli (false, true) with t = 1, normal (M - X, M + X)
with t = 2M. A unit's kept rows add (f, s) with f + s = t k in a cell where it keeps k, and

.. math:: f^2 + 2 f s + s^2 = (t k)^2 .

Sensitivity in `sensitivity.md`: counts-beside and within-unit; in `l2_sensitivity.md` by L2.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from suffice.pipeline.terms.statistics import l2_sensitivity
from suffice.pipeline.terms.statistics.sensitivity import (
    Block,
    CountedClipping,
    Design,
    Quantity,
    WithinUnit,
    combination,
    count_weight,
    counts_beside_sums,
    minimal_with_counts,
    row_weight,
    rows_and_units,
)

N_BELOW, N_ABOVE = "n_below", "n_above"
COUNT_COMPONENTS = ("a count(x<lower)", "a count(x>upper)")


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
    replaced, record_l1, ends = block.minimal_sensitivity, block.record_l1, block.between_ends
    weight = count_weight(replaced or record_l1 or 1, share)
    return replace(
        block,
        design=Design.MINIMAL if block.design is Design.MINIMAL else Design.BOUNDED,
        components=(*block.components, *COUNT_COMPONENTS),
        largest_value=max(block.largest_value, weight),
        record_l1=None if record_l1 is None else counts_beside_sums(record_l1, weight),
        minimal_sensitivity=None if replaced is None else minimal_with_counts(replaced, ends, weight),
        record_l2_squared=None
        if record_l1 is None
        else l2_sensitivity.counts_beside(block.record_l2_squared or record_l1**2, weight),
        minimal_l2_squared=None
        if replaced is None
        else l2_sensitivity.minimal_with_counts(block.minimal_l2_squared or replaced**2, ends, weight),
        quantities=(
            *block.quantities,
            *(
                Quantity(name=name, coefficients={sums + side: Fraction(1, weight)})
                for side, name in enumerate((N_BELOW, N_ABOVE))
            ),
        ),
        counted=CountedClipping(weight=weight, sums=sums, partition_total=block.partition_total),
    )


N_SQUARED = "n_squared_of_units"
N_TIMES_TOTAL = "n_times_total_of_units"
TOTAL_SQUARED = "total_squared_of_units"


def beside_rows(
    block: Block, max_rows: int, components: tuple[str, ...], *, lower: Fraction, upper: Fraction
) -> Block:
    """Return the block of rows and units.

    Parameters
    ----------
    block : Block
        Of rows alone: a partition of unity.
    max_rows : int
        The rows that a unit keeps at most.
    components : tuple of str
        What its units' components are called: of the square of the first part, twice the product, the square
        of the last part.
    lower, upper : Fraction
        The value of a record that adds all of t to its first part, and to its last.
    """
    unit_total = block.partition_total
    if unit_total is None:
        message = "rows and units share a block in partitions of unity only"
        raise ValueError(message)
    weight, rows = row_weight(max_rows), len(block.components)
    return replace(
        block,
        components=(*block.components, *components),
        largest_value=weight * block.largest_value,
        record_l1=None,
        record_l2_squared=(weight * unit_total) ** 2,
        unit_l1=rows_and_units(unit_total, max_rows),
        quantities=(
            *(_divided(quantity, weight) for quantity in block.quantities),
            *_of_units(rows, unit_total, lower, upper),
        ),
        within_unit=WithinUnit(max_rows=max_rows, row_weight=weight, rows=rows, unit_total=unit_total),
    )


def _divided(quantity: Quantity, weight: int) -> Quantity:
    coefficients = {position: number / weight for position, number in quantity.coefficients.items()}
    return replace(quantity, coefficients=coefficients)


def _of_units(first: int, unit_total: int, lower: Fraction, upper: Fraction) -> tuple[Quantity, ...]:
    """Map (f^2, 2 f s, s^2), from position `first` on, to sums over units of k^2, k x and x^2.

    k is the number of a unit's rows in the cell, and x their total, lower k + (upper - lower) s / t.
    """
    unit_share, half_share = Fraction(1, unit_total), Fraction(1, 2 * unit_total)
    n_squared = Quantity(
        name="k^2", coefficients={first: unit_share, first + 1: unit_share, first + 2: unit_share}
    )
    times = Quantity(name="k s / t", coefficients={first + 1: half_share, first + 2: unit_share})
    squared = Quantity(name="(s / t)^2", coefficients={first + 2: unit_share})
    width = upper - lower
    return (
        combination(N_SQUARED, [(Fraction(1), n_squared)]),
        combination(N_TIMES_TOTAL, [(lower, n_squared), (width, times)]),
        combination(TOTAL_SQUARED, [(lower**2, n_squared), (2 * lower * width, times), (width**2, squared)]),
    )
