"""Blocks of components that share one lattice and one draw of noise, and exact maps to quantities."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from suffice.pipeline.terms.statistics.sensitivity import (
    Design,
    NeighboringRelation,
    bounded_records,
    bounded_units,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.terms.statistics.count_table import CountTable, Label


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
        minimal design.
    unit_l1 : int or None
        The largest L1 norm of what one unit adds, where the statistic bounds units by itself; None where it
        takes the rows that each unit keeps.
    minimal_sensitivity : int or None
        The sensitivity of the minimal design under ``replace_one``.
    between_ends : int
        What the minimal design's components change by, in L1, between the lowest value and the highest.
    moment_weight : Fraction or None
        The weight of second moments beside first ones, where the minimal design has one.
    quantities : tuple of Quantity
        The exact maps to the quantities of the family.
    counted : CountedClipping or None
        How sums and counts of moved records share the block, where both are in it.
    """

    design: Design
    components: tuple[str, ...]
    largest_value: int
    record_l1: int | None = None
    unit_l1: int | None = None
    minimal_sensitivity: int | None = None
    between_ends: int = 0
    moment_weight: Fraction | None = None
    quantities: tuple[Quantity, ...]
    counted: CountedClipping | None = None

    @property
    def partition_total(self) -> int | None:
        """What every entering record adds over all components, for a partition of unity."""
        return self.record_l1 if self.design is Design.PARTITION_OF_UNITY else None

    def l1_sensitivity(self, neighboring: NeighboringRelation, max_rows: int = 1) -> int:
        """Return the block's joint sensitivity per unit of at most `max_rows` records, in lattice units."""
        if self.unit_l1 is not None:
            return bounded_units(self.unit_l1, neighboring)
        if self.record_l1 is not None:
            return bounded_records(self.record_l1, neighboring, max_rows)
        replaces = neighboring is NeighboringRelation.REPLACE_ONE
        if self.minimal_sensitivity is None or not replaces or max_rows != 1:
            message = "minimal statistics are for replace_one and single records only"
            raise ValueError(message)
        return self.minimal_sensitivity


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
    """

    categories: tuple[str, ...] = ()
    lower: Fraction | None = None
    upper: Fraction | None = None
    lattice_bits: int | None = None
    constants: Mapping[str, Fraction] = field(default_factory=dict)
    columns: tuple[ColumnBounds, ...] = ()
    tables: tuple[CountTable, ...] = ()
