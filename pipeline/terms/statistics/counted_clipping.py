r"""Counts of the records that clipping moved, beside their sums and on one lattice with them.

A record strictly below its lower bound adds a public weight a to one more component, one strictly above the
upper bound to another:

.. math:: n_{\text{below}} = S_{\text{below}} / a, \quad n_{\text{above}} = S_{\text{above}} / a

Sensitivity in `sensitivity.md`: counts-beside.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from suffice.pipeline.terms.statistics.sensitivity import (
    Block,
    CountedClipping,
    Design,
    Quantity,
    count_weight,
    counts_beside_sums,
    minimal_with_counts,
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
