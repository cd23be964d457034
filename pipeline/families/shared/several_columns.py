r"""What the families of several columns share: their columns and lattice, block, totals and quantities.

.. math:: T(z) = (z_i, \; z_i z_j \text{ for } i \le j)

Every column lies on a lattice of its own, an integer X in ``-M..M`` with ``M = 2**lattice_bits``. Sensitivity
in `sensitivity.md`: two-column-moments or rotated-moments, from which n follows; minimal-moments or
minimal-products beside a public N; cone-moments where noise is on their cone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from typing import TYPE_CHECKING, Any, TypeAlias

from suffice.pipeline.terms.declaration.fields import Column
from suffice.pipeline.terms.statistics import l2_sensitivity, moment_columns, sensitivity
from suffice.pipeline.terms.statistics.cone_noise import ConeNoise
from suffice.pipeline.terms.statistics.lattice import Quantiser
from suffice.pipeline.terms.statistics.measure import LatticeColumn, MomentSums

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.terms.statistics.sensitivity import NeighboringRelation

MOST_COLUMNS = 64
"""The noise on every number grows with the square of the number of columns."""


Columns: TypeAlias = dict[Column, moment_columns.BoundedColumn]


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
    on_cone : bool
        Whether moments are released as they are, with noise on the cone that they lie in.
    """

    columns: Mapping[str, moment_columns.BoundedColumn]
    bits: int
    linear: bool = True
    weight: Fraction | None = None
    on_cone: bool = False

    @property
    def cone(self) -> ConeNoise:
        """The noise on the cone of its moments, at a rate of 1."""
        return ConeNoise(rate=Fraction(1), columns=len(self.columns), linear=self.linear, steps=self.steps)

    def released(self, *, n_is_public: bool) -> moment_columns.Map:
        """Return the components, and moments as maps of them."""
        weight, names = self.minimal_weight(n_is_public), tuple(self.columns)
        if self.on_cone:
            return moment_columns.cone_map(names, self.cone, n_is_public=weight is not None)
        return moment_columns.moment_map(names, self.steps, linear=self.linear, weight=weight)

    @property
    def steps(self) -> int:
        """M."""
        return 1 << self.bits

    def minimal_weight(self, n_is_public: bool) -> Fraction | None:
        """Return the weight of second moments where the minimal design is released, else None."""
        every_row_counts = all(column.nulls.value is not None for column in self.columns.values())
        return (self.weight or moment_columns.DEFAULT_WEIGHT) if n_is_public and every_row_counts else None


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
    labels = [*columns, *(moment_columns.pair_name(*pair) for pair in combinations(columns, 2))]
    names_of = tuple(columns)
    designs = (
        moment_columns.moment_map(names_of, 4, linear=True, weight=None),
        moment_columns.moment_map(names_of, 4, linear=True, weight=Fraction(1)),
        moment_columns.cone_map(
            names_of,
            ConeNoise(rate=Fraction(1), columns=len(columns), linear=True, steps=4),
            n_is_public=False,
        ),
    )
    for names in (labels, *(design.components for design in designs)):
        if len(set(names)) < len(names):
            message = "the columns' names have to differ, and so do those of their pairs, written as 'x, y'"
            raise ValueError(message)


def measure(box: Box) -> MomentSums:
    """Sum n, values and products of two over the rows in which every column has a value."""
    of = []
    for name, column in box.columns.items():
        centre, half_range = moment_columns.lattice_of(column, linear=box.linear)
        quantiser = Quantiser(
            centre=float(centre),
            half_range=float(half_range),
            steps=box.steps,
            lowest=round((column.lower - centre) / half_range * box.steps),
            highest=round((column.upper - centre) / half_range * box.steps),
        )
        of.append(LatticeColumn.of(name, quantiser, nulls=column.nulls.value))
    return MomentSums(of=tuple(of))


def block(box: Box, n_is_public: bool) -> sensitivity.Block:
    """Release the weighted moments beside a public N, or moments combined so that n follows."""
    weight, size = box.minimal_weight(n_is_public), len(box.columns)
    released = box.released(n_is_public=n_is_public)
    quantities = _in_column_units(box, released)
    if box.on_cone:
        return sensitivity.Block(
            design=sensitivity.Design.BOUNDED if weight is None else sensitivity.Design.MINIMAL,
            components=released.components,
            largest_value=released.largest_value,
            quantities=quantities,
            cone=box.cone,
        )
    if weight is None:
        return sensitivity.Block(
            design=sensitivity.Design.BOUNDED,
            components=released.components,
            largest_value=released.largest_value,
            record_l1=released.record_l1,
            record_l2_squared=released.record_l2_squared,
            opposed=released.opposed,
            quantities=quantities,
        )
    if not box.linear:
        return sensitivity.Block(
            design=sensitivity.Design.MINIMAL,
            components=released.components,
            largest_value=released.largest_value,
            minimal_sensitivity=sensitivity.minimal_products(box.steps, columns=size),
            minimal_l2_squared=l2_sensitivity.minimal_moments(box.steps, None, columns=size),
            quantities=quantities,
        )
    return sensitivity.Block(
        design=sensitivity.Design.MINIMAL,
        components=released.components,
        largest_value=released.largest_value,
        minimal_sensitivity=sensitivity.minimal_moments(box.steps, weight, columns=size),
        minimal_l2_squared=l2_sensitivity.minimal_moments(box.steps, weight, columns=size),
        moment_weight=weight,
        quantities=quantities,
    )


def cone_error(
    box: Box, related: Sequence[moment_columns.Pair], n_may_be_public: bool, neighboring: NeighboringRelation
) -> Fraction:
    r"""Return the expected squared error of relations by noise on a cone, over that by Laplace noise.

    .. math:: \sum_{ij} \operatorname{var}_\text{cone} S_{ij} \Big/
              \sum_{ij} \operatorname{var}_\text{Laplace} S_{ij}, \qquad S_{ij} = \sum X_i X_j

    over pairs of columns. Where columns are unrelated, have their means in the middle of their bounds, and
    are equally wide in their bounds, with a standard deviation of a third of the half range say, noise moves
    a coefficient or a correlation by that of :math:`S_{ij} / N \sigma^2`, to first order. So N, that
    deviation and epsilon are in no ratio, nor are the records that a unit keeps. Exact.

    Parameters
    ----------
    box : Box
    related : sequence of Pair
        Pairs of columns, counted from 1.
    n_may_be_public : bool
    neighboring : NeighboringRelation
    """
    on, off = replace(box, on_cone=True), replace(box, on_cone=False)
    moments = on.released(n_is_public=n_may_be_public).moments
    alone = off.released(n_is_public=n_may_be_public).moments
    of_cone = sensitivity.cone_records(neighboring) ** 2 * sum(
        (on.cone.variance_of(moments[pair].coefficients) for pair in related), Fraction(0)
    )
    squares = sum(
        (a**2 for pair in related for a in alone[pair].coefficients.values()),
        Fraction(0),
    )
    # A Laplace variable of scale b has the variance 2 b^2.
    return of_cone / (2 * block(off, n_may_be_public).l1_sensitivity(neighboring) ** 2 * squares)


def totals(box: Box, design: sensitivity.Design, sums: NDArray[Any]) -> NDArray[Any]:
    """Form the components from moments, in Python integers."""
    released = box.released(n_is_public=design is sensitivity.Design.MINIMAL)
    components: NDArray[Any] = sums @ released.matrix.T
    return components


def parameters(box: Box, **constants: Fraction) -> sensitivity.Constants:
    """Return the columns' bounds and the lattice."""
    return sensitivity.Constants(
        lattice_bits=box.bits,
        constants=constants,
        columns=tuple(
            sensitivity.ColumnBounds(name=name, lower=column.lower, upper=column.upper)
            for name, column in box.columns.items()
        ),
    )


def _in_column_units(box: Box, released: moment_columns.Map) -> tuple[sensitivity.Quantity, ...]:
    """Map the lattice's moments to n, total, total_of_squares and total_of_products of the columns."""
    moments, names = released.moments, tuple(box.columns)
    lattices = [moment_columns.lattice_of(column, linear=box.linear) for column in box.columns.values()]
    quantities = [sensitivity.combination("n", [(Fraction(1), moments[0, 0])])]
    if box.linear:
        quantities += [
            sensitivity.combination(
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
            else ("total_of_products", moment_columns.pair_name(names[i - 1], names[j - 1]))
        )
        quantities.append(sensitivity.combination(name, parts, component=component))
    return tuple(quantities)
