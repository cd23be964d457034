"""L1 sensitivities, exact integers in lattice units, and the blocks of components that have one.

A function returns the largest L1 change of one statistic's vector of totals between neighbouring data sets.
The comments ``proof: LABEL`` name claims of ``sensitivity.md``, where their proofs are. A block shares one
lattice and one draw of noise: :meth:`Block.l1_sensitivity` is that of a statistic, and
:meth:`Block.l2_squared` that by Euclidean distance (``l2_sensitivity.py``). A family's file in ``families/``
says which function is its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING

from suffice.pipeline.terms.statistics import l2_sensitivity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.terms.declaration.contribution import Contribution
    from suffice.pipeline.terms.statistics.cone_noise import ConeNoise
    from suffice.pipeline.terms.statistics.count_table import CountTable, Label
    from suffice.pipeline.terms.statistics.histogram_bins import HistogramBins


class NeighboringRelation(StrEnum):
    """Which pairs of data sets are neighbours.

    ``add_or_remove_one``: one has one record more. ``replace_one``: equally many records, one differs.
    """

    ADD_OR_REMOVE_ONE = "add_or_remove_one"
    REPLACE_ONE = "replace_one"


class Design(StrEnum):
    """How a statistic is released.

    ``partition_of_unity``: components that are never negative and whose sum is the same for every
    record that enters. ``bounded``: components of either sign, from which n follows, whose vector is
    bounded for every record. ``minimal``: beside a public number of records, and fewer numbers unless their
    noise is on a cone.
    """

    PARTITION_OF_UNITY = "partition_of_unity"
    BOUNDED = "bounded"
    MINIMAL = "minimal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    r"""A number people ask for, as an exact linear map of a statistic's components.

    .. math:: \text{quantity} = \sum_j a_j \, \text{value}_j + a_N N

    Parameters
    ----------
    name : str
        ``n``, ``total``, ``total_of_squares``, or ``count`` of a category.
    category : str or None
        The category that a ``count`` is of.
    component : str or None
        The column, or the pair of columns, that it is of, where a statistic has several.
    labels : tuple of (str, str)
        Names and values that its rows carry beside, in order: the table and the categories that a
        ``count`` is of.
    coefficients : dict of int to Fraction
        ``a_j`` by the component's position, in the column's unit per lattice unit; 0 is left out.
    public_n_coefficient : Fraction
        ``a_N``, of the public number of records; 0 in a partition of unity.
    """

    name: str
    category: str | None = None
    component: str | None = None
    labels: Label = ()
    coefficients: Mapping[int, Fraction]
    public_n_coefficient: Fraction = Fraction(0)


def combination(
    name: str, parts: Sequence[tuple[Fraction, Quantity]], component: str | None = None
) -> Quantity:
    """Return a weighted sum of quantities as a quantity."""
    coefficients: dict[int, Fraction] = {}
    for weight, quantity in parts:
        products: dict[tuple[int, int], Fraction] = {}  # many coefficients are alike: each product is one
        for position, coefficient in quantity.coefficients.items() if weight else ():
            ratio = (coefficient.numerator, coefficient.denominator)
            product = products.setdefault(ratio, products.get(ratio) or weight * coefficient)
            standing = coefficients.get(position)
            coefficients[position] = product if standing is None else standing + product
    return Quantity(
        name=name,
        component=component,
        coefficients={position: weight for position, weight in coefficients.items() if weight},
        public_n_coefficient=sum(
            (weight * quantity.public_n_coefficient for weight, quantity in parts), Fraction(0)
        ),
    )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class WithinUnit:
    """How a statistic's block is shared by rows and units.

    Attributes
    ----------
    max_rows : int
        K, the rows that a unit keeps at most.
    row_weight : int
        Rows' components are multiplied by it, a power of two.
    rows : int
        How many components are those of rows; the others are of units.
    unit_total : int
        What the components of a unit with one kept row in a cell add up to there.
    """

    max_rows: int
    row_weight: int
    rows: int
    unit_total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One jointly calibrated vector of components on one lattice.

    Parameters
    ----------
    design : Design
        Partition of unity, bounded, or minimal beside a public N.
    components : tuple of str
        Their names, in the order released.
    largest_value : int
        The largest magnitude that one record adds to one component, in lattice units.
    record_l1 : int or None
        The largest L1 norm of what one record adds over all components, in lattice units; None for the
        minimal design, and where noise is on a cone.
    unit_l1 : int or None
        The largest L1 norm of what one unit adds, where the statistic bounds units by itself; None where it
        takes the rows that each unit keeps.
    minimal_sensitivity : int or None
        The sensitivity of the minimal design under ``replace_one``.
    record_l2_squared : int or None
        The largest squared L2 norm of what one record adds, or one unit where `unit_l1` is given; None: the
        square of its L1 norm, as where one record may add all of it to one component.
    opposed : int
        How far vectors of two records point away from each other, as ``l2_sensitivity.replaced_rows`` has it;
        0 where no component is ever negative.
    minimal_l2_squared : int or None
        The squared L2 sensitivity of the minimal design; None: the square of `minimal_sensitivity`, as where
        one component is released.
    between_ends : int
        What the minimal design's components change by between the lowest value and the highest, which is one
        component's change.
    moment_weight : Fraction or None
        The weight of second moments beside first ones, where the minimal design has one.
    quantities : tuple of Quantity
        The exact maps to the quantities of the family.
    counted : CountedClipping or None
        How sums and counts of moved records share the block, where both are in it.
    within_unit : WithinUnit or None
        How rows and units share the block, where both are in it.
    cone : ConeNoise or None
        Noise on the cone that records lie in, at a rate of 1, where such noise is added; a record is 1 there.
    """

    design: Design
    components: tuple[str, ...]
    largest_value: int
    record_l1: int | None = None
    unit_l1: int | None = None
    minimal_sensitivity: int | None = None
    record_l2_squared: int | None = None
    opposed: int = 0
    minimal_l2_squared: int | None = None
    between_ends: int = 0
    moment_weight: Fraction | None = None
    quantities: tuple[Quantity, ...]
    counted: CountedClipping | None = None
    within_unit: WithinUnit | None = None
    cone: ConeNoise | None = None

    @property
    def partition_total(self) -> int | None:
        """What every entering record adds over all components, for a partition of unity."""
        return self.record_l1 if self.design is Design.PARTITION_OF_UNITY else None

    def l1_sensitivity(self, neighboring: NeighboringRelation, max_rows: int = 1) -> int:
        """Return the block's joint sensitivity per unit of at most `max_rows` records, in lattice units.

        Of a statistic these are :attr:`Contribution.rows`.
        """
        if self.cone is not None:
            message = "noise on a cone follows from the records that a unit changes"
            raise ValueError(message)
        if self.unit_l1 is not None:
            return bounded_units(self.unit_l1, neighboring)
        if self.record_l1 is not None:
            return bounded_records(self.record_l1, neighboring, max_rows)
        replaces = neighboring is NeighboringRelation.REPLACE_ONE
        if self.minimal_sensitivity is None or not replaces or max_rows != 1:
            message = "minimal statistics are for replace_one and single records only"
            raise ValueError(message)
        return self.minimal_sensitivity

    def l2_squared(
        self, neighboring: NeighboringRelation, max_rows: int = 1, max_rows_per_cell: int | None = None
    ) -> int:
        """Return the largest squared L2 change of the totals, in squared lattice units.

        At most the square of :meth:`l1_sensitivity`; under ``replace_one`` at least twice that under
        ``add_or_remove_one``.

        Parameters
        ----------
        neighboring : NeighboringRelation
        max_rows : int
            The most records that a unit keeps; a block that bounds units by itself does not look at it.
        max_rows_per_cell : int or None
            The most of them in one cell; None: all may be in one.

        Raises
        ------
        ValueError
            For a minimal block under another relation or of several records, or for less than one row.
        """
        if max_rows < 1 or (max_rows_per_cell is not None and max_rows_per_cell < 1):
            message = f"a unit keeps one row at least, not {max_rows}, and {max_rows_per_cell} in a cell"
            raise ValueError(message)
        l1 = self.unit_l1 or self.record_l1
        if l1 is None:
            # proof: l2-minimal
            minimal = self.l1_sensitivity(neighboring, max_rows)
            return self.minimal_l2_squared or minimal**2
        record, products = self.record_l2_squared or l1**2, 0
        if self.within_unit is not None:
            max_rows = max(max_rows, self.within_unit.max_rows)
            max_rows_per_cell = min(max_rows_per_cell or max_rows, self.within_unit.max_rows)
            products = self.within_unit.unit_total**2
        elif self.unit_l1 is not None:
            # proof: l2-units
            max_rows = 1
        per_cell = min(max_rows_per_cell or max_rows, max_rows)
        if neighboring is NeighboringRelation.ADD_OR_REMOVE_ONE:
            return l2_sensitivity.kept_rows(record, max_rows, per_cell, products)
        # proof: l2-windows
        return l2_sensitivity.replaced_rows(record, max_rows, per_cell, products, self.opposed)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnBounds:
    """A column of a statistic of several, and the public bounds of its values."""

    name: str
    lower: Fraction
    upper: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """The public constants that a family's posterior needs.

    Parameters
    ----------
    categories : tuple of str
        All released categories, ``other`` included; empty where there are none.
    lower, upper : Fraction or None
        Bounds of T on one record, in T's unit: of x where T is x, of log x where it is log x.
    lattice_bits : int or None
        The half range is ``2**lattice_bits`` lattice steps; the whole range where it begins at 0.
    constants : dict of str to Fraction
        Known parameters, as ``shape``, that the posterior needs beside the bounds.
    columns : tuple of ColumnBounds
        The columns of a statistic of several, in order; the outcome of a regression is the last.
    tables : tuple of CountTable
        The tables counted; the components are their entries, table by table.
    bins : HistogramBins or None
        The bins counted, of a histogram: the components are their counts, in order, and so are categories.
    """

    categories: tuple[str, ...] = ()
    lower: Fraction | None = None
    upper: Fraction | None = None
    lattice_bits: int | None = None
    constants: Mapping[str, Fraction] = field(default_factory=dict)
    columns: tuple[ColumnBounds, ...] = ()
    tables: tuple[CountTable, ...] = ()
    bins: HistogramBins | None = None


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


def cone_records(neighboring: NeighboringRelation, max_rows: int = 1) -> int:
    """Return how many records one unit changes at most: the sum of l over what neighbours differ by.

    Parameters
    ----------
    neighboring : NeighboringRelation
        Replacing a unit is removing one and adding one, perhaps in other cells.
    max_rows : int
        The most records that a unit keeps; 1 where a record is the unit.
    """
    # proof: cone-units
    return max_rows if neighboring is NeighboringRelation.ADD_OR_REMOVE_ONE else 2 * max_rows


def bounded_units(unit_l1: int, neighboring: NeighboringRelation) -> int:
    """Return the sensitivity of totals to which no unit adds more than a public L1 norm.

    Parameters
    ----------
    unit_l1 : int
        The largest L1 norm of what one unit adds over all components and cells together.
    neighboring : NeighboringRelation
        Replacing a unit is removing one and adding one, perhaps in other cells.
    """
    # proof: bounded-units
    return unit_l1 if neighboring is NeighboringRelation.ADD_OR_REMOVE_ONE else 2 * unit_l1


def row_weight(rows_in_cell: int) -> int:
    """Return the least power of two from 4 `rows_in_cell` on: what rows weigh beside their units."""
    # proof: within-unit
    return 1 << (4 * rows_in_cell - 1).bit_length()


def rows_and_units(record_l1: int, contribution: Contribution) -> int:
    """Return the largest L1 norm that a unit adds: weighted rows beside products of its sums in each cell.

    Parameters
    ----------
    record_l1 : int
        What every record that enters adds over the components of rows, before they are weighted.
    contribution : Contribution
        The most records that a unit keeps, in all and in a cell.
    """
    # proof: within-unit
    weighted = row_weight(contribution.rows_in_cell) * contribution.rows
    return (weighted + contribution.sum_of_squares) * record_l1


def count_weight(sensitivity: int, share: Fraction) -> int:
    """Return what a moved record adds to its count: a share of the sums' sensitivity, rounded up.

    Parameters
    ----------
    sensitivity : int
        What one record adds to the sums, or what replacing it changes them by where N is public.
    share : Fraction
        Above 0.
    """
    return math.ceil(sensitivity * share)


def counts_beside_sums(record_l1: int, weight: int) -> int:
    """Return the largest L1 norm of one record's sums and of its part in a count of moved records.

    Parameters
    ----------
    record_l1 : int
        Of its sums.
    weight : int
        What it adds to one of two counts where clipping moved it.
    """
    # proof: counts-beside
    return record_l1 + weight


def minimal_with_counts(minimal: int, between_ends: int, weight: int) -> int:
    r"""Return the sensitivity of minimal sums beside counts of moved records under ``replace_one``.

    .. math:: \max(\Delta + a, \Delta_\text{ends} + 2 a)

    Parameters
    ----------
    minimal : int
        Of the sums alone.
    between_ends : int
        What they change by where a record at the lowest value is replaced by one at the highest.
    weight : int
        ``a``.
    """
    # proof: counts-beside
    return max(minimal + weight, between_ends + 2 * weight)


def minimal_sum(lowest: int, highest: int) -> int:
    """Return the sensitivity of one bounded sum under ``replace_one``: the range of a record's value."""
    # proof: minimal-sum
    return highest - lowest


def minimal_counts() -> int:
    """Return the sensitivity of a vector of category counts under ``replace_one``."""
    # proof: minimal-counts
    return 2


def minimal_tables(n_tables: int) -> int:
    """Return the sensitivity of several tables' counts under ``replace_one``, where every record enters."""
    # proof: minimal-tables
    return n_tables * minimal_counts()


def minimal_moments(steps: int, weight: Fraction, *, columns: int = 1) -> int:
    r"""Return the sensitivity of weighted first and second moments of a box under ``replace_one``.

    The components are ``steps * sum(X_i) / weight`` and ``sum(X_i X_j)`` for i <= j.

    .. math:: \Delta_1 = \left\lfloor \frac{d M^2 (1 / w + d + 1)^2}{2 (d + 1)} \right\rfloor

    where ``M`` is `steps`, ``w`` is `weight`, ``d`` is `columns` and every X_i lies in ``-M..M``.

    Parameters
    ----------
    steps : int
        ``M``.
    weight : Fraction
        ``w``, of second moments beside first ones, at least 1/2; ``steps / weight`` is an integer.
    columns : int
        ``d``.
    """
    # proof: minimal-moments
    if weight < Fraction(1, 2) or (steps / weight).denominator != 1:
        message = f"weight {weight} does not fit a lattice of {steps} steps"
        raise ValueError(message)
    bound = Fraction(columns * steps**2, 2 * (columns + 1)) * (1 / weight + columns + 1) ** 2
    return math.floor(bound)


def moments_between_ends(steps: int, weight: Fraction) -> int:
    r"""Return what weighted moments change by between ``-M`` and ``M``: :math:`2 M^2 / w`."""
    # proof: counts-beside
    return 2 * steps * int(steps / weight)


def minimal_products(steps: int, *, columns: int) -> int:
    r"""Return the sensitivity of all ``sum(X_i X_j)``, i <= j, under ``replace_one``.

    .. math:: \Delta_1 = M^2 d (d + 1) / 2
    """
    # proof: minimal-products
    return steps**2 * columns * (columns + 1) // 2


def rotated_moments(steps: int, *, columns: int, linear: bool) -> int:
    r"""Return the largest L1 norm of one record's rotated moments.

    .. math:: M^2 \left(2 d + \frac{d (d - 1)} 2\right) \text{, or without linear terms }
              M^2 \frac{d (d + 1)} 2

    Parameters
    ----------
    steps : int
        ``M``: every X_i lies in ``-M..M``.
    columns : int
        ``d``.
    linear : bool
        Whether first moments are among them.
    """
    # proof: rotated-moments
    return steps**2 * ((2 if linear else 1) * columns + columns * (columns - 1) // 2)


def two_column_moments(steps: int) -> int:
    r"""Return the largest L1 norm of one record's moments of two columns, with linear terms.

    .. math:: 17 M^2

    Parameters
    ----------
    steps : int
        ``M``: both X_i lie in ``-M..M``.
    """
    # proof: two-column-moments
    return 17 * steps**2
