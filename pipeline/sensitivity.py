"""L1 sensitivities: exact integers in lattice units; claims and proofs in ``sensitivity.md``.

Every function returns the largest L1 change of one statistic's vector of totals between neighbouring
data sets. The comments ``proof: LABEL`` name the claims.
"""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction


class NeighboringRelation(StrEnum):
    """Which pairs of data sets are neighbours.

    ``add_or_remove_one``: one has one record more. ``replace_one``: equally many records, one differs.
    """

    ADD_OR_REMOVE_ONE = "add_or_remove_one"
    REPLACE_ONE = "replace_one"


class Design(StrEnum):
    """How a statistic is released.

    ``partition_of_unity``: components that are never negative and whose sum is the same for every
    record that enters. ``bounded``: components of either sign, n among them, that add up to at most a
    public number in magnitude for every record. ``minimal``: fewer numbers, beside a public number of
    records.
    """

    PARTITION_OF_UNITY = "partition_of_unity"
    BOUNDED = "bounded"
    MINIMAL = "minimal"


def bounded_records(record_l1: int, neighboring: NeighboringRelation, max_rows: int = 1) -> int:
    """Return the sensitivity of totals to which no record adds more than a public L1 norm.

    Parameters
    ----------
    record_l1 : int
        The largest L1 norm of what one record adds over all components together. In a partition of
        unity every entering record adds exactly this.
    neighboring : NeighboringRelation
        Replacing a unit is removing one and adding one, perhaps in other cells.
    max_rows : int
        The most records that a unit keeps; 1 where a record is the unit.
    """
    # proof: partition-of-unity
    # proof: bounded-contributions
    unit_l1 = max_rows * record_l1
    if neighboring is NeighboringRelation.ADD_OR_REMOVE_ONE:
        return unit_l1
    # proof: replacement
    return 2 * unit_l1


def minimal_sum(lowest: int, highest: int) -> int:
    """Return the sensitivity of one bounded sum under ``replace_one``: the range of a record's value."""
    # proof: minimal-sum
    return highest - lowest


def minimal_counts() -> int:
    """Return the sensitivity of a vector of category counts under ``replace_one``."""
    # proof: minimal-counts
    return 2


def minimal_moments(steps: int, weight: int) -> int:
    r"""Return the sensitivity of ``(steps * sum(X) / weight, sum(X^2))`` under ``replace_one``.

    .. math:: \Delta_1 = \frac{(1 + 2 w)^2 M^2}{4 w^2}

    where ``M`` is `steps`, ``w`` is `weight` and X lies in ``-M..M``.

    Parameters
    ----------
    steps : int
        ``M``, a power of two, at least 4 for the bound to be attained with ``weight = 2``.
    weight : int
        ``w``, a power of two, at most ``M``.
    """
    # proof: minimal-moments
    sensitivity = Fraction((1 + 2 * weight) ** 2 * steps**2, 4 * weight**2)
    if sensitivity.denominator != 1:
        message = f"weight {weight} does not fit a lattice of {steps} steps"
        raise ValueError(message)
    return sensitivity.numerator
