"""One released statistic: its noisy values cell by cell, its plan, and tables of unbiased estimates.

A caller chooses cells by one key of each group column, compared as text. Cells are held in memory, or read
when they are asked for. What stands beside the sums of rows is taken apart from them: products of units, or
counts of the rows that clipping moved.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.terms.statistics.count_table import label_names
from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.terms.statistics.sensitivity import Quantity
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.typing import Floats


_KEYS_NAMED = 10
"""How many known keys the refusal of an unknown one names."""


def wanted_keys(where: Mapping[str, object], groups: Mapping[str, Iterable[str | int]]) -> dict[str, str]:
    """Return the key that is wanted of every column named, as text.

    Parameters
    ----------
    where : mapping
        Group column -> key.
    groups : mapping
        Group column -> its keys, at least one.

    Raises
    ------
    UsageError
        Where it is no mapping, a column is no group, or several keys are given for one.
    """
    if not isinstance(where, Mapping):
        message = f"where maps group columns to keys, as {{'origin': 'JFK'}}, not {where!r}"
        raise UsageError(message)
    for column, key in where.items():
        if column not in groups:
            known = ", ".join(groups) or "none"
            message = f"the statistic has no group {column!r}: its groups are {known}"
            raise UsageError(message)
        if isinstance(key, Iterable) and not isinstance(key, str):
            example = {column: str(next(iter(groups[column])))}
            message = (
                f"where takes one key for {column}, as {example}, not several: ask for one at a "
                f"time, or leave {column} out and choose among the rows"
            )
            raise UsageError(message)
    return {column: str(key) for column, key in where.items()}


def no_such_key(column: str, key: str, keys: Iterable[str | int]) -> UsageError:
    """Return the refusal of a key that no cell has; it names some that they have."""
    known = [str(entry) for entry in dict.fromkeys(keys)]
    more = f" and {len(known) - _KEYS_NAMED} more" if len(known) > _KEYS_NAMED else ""
    return UsageError(
        f"no cell of the release has {column}={key}: its keys are {', '.join(known[:_KEYS_NAMED])}{more}"
    )


def wanted_cells(
    where: Mapping[str, object], groups: Mapping[str, Sequence[str | int]], n_cells: int
) -> NDArray[np.int64]:
    """Return the places of the cells whose keys equal the wanted ones as text, ascending.

    Parameters
    ----------
    where : mapping
        Group column -> key.
    groups : mapping
        Group column -> the key of each cell.
    n_cells : int
        At least 1.

    Raises
    ------
    UsageError
        Where `wanted_keys` raises it, a key is of no cell, or the keys together are of none.
    """
    keep = np.ones(n_cells, dtype=bool)
    for column, key in wanted_keys(where, groups).items():
        is_wanted = np.array([str(entry) == key for entry in groups[column]], dtype=bool)
        if not is_wanted.any():
            raise no_such_key(column, key, groups[column])
        keep &= is_wanted
    if not keep.any():
        message = "no cell of the release has " + ", ".join(
            f"{column}={key}" for column, key in where.items()
        )
        raise UsageError(message)
    return np.flatnonzero(keep)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyStatistic:
    """One statistic's noisy components in every cell, and their distribution.

    Attributes
    ----------
    plan : StatisticPlan
        Components, scale, maps to quantities, constants.
    values : ndarray of object, shape (n_cells, n_components)
        Python integers: exact total plus discrete Laplace noise of scale ``plan.scale``.
    groups : dict of str to list
        The key of each cell, by group column; int for ``range`` domains, else text.
    public_n : int or None
        The public number of records, where there is one.
    max_total_rows : int
        Public bound on a cell's number of records.
    further : tuple of NoisyStatistic
        Other releases' noisy values of the very same exact totals, cells in the same order.
    cells_summed : int
        How many cells of the release each of these is the sum of: so many noises are added.
    """

    plan: StatisticPlan = field(repr=False)
    values: NDArray[np.object_] = field(repr=False)
    groups: Mapping[str, list[str | int]] = field(repr=False)
    public_n: int | None
    max_total_rows: int
    further: tuple[NoisyStatistic, ...] = field(default=(), repr=False)
    cells_summed: int = 1

    @property
    def observations(self) -> tuple[NoisyStatistic, ...]:
        """All noisy values of the exact totals: these, then those of other releases."""
        return (self, *self.further)

    def take(self, cells: NDArray[np.int64]) -> NoisyStatistic:
        """Return the given cells, in the given order."""
        return dataclasses.replace(
            self,
            values=self.values[cells],
            groups={column: [keys[cell] for cell in cells.tolist()] for column, keys in self.groups.items()},
            further=tuple(observation.take(cells) for observation in self.further),
        )

    def summed(self) -> NoisyStatistic:
        """Return all cells as one: values add up, and so do their noises."""
        return dataclasses.replace(
            self,
            values=np.sum(self.values, axis=0, keepdims=True, dtype=object),
            groups={},
            further=tuple(observation.summed() for observation in self.further),
            cells_summed=len(self.values) * self.cells_summed,
        )

    @property
    def known_n(self) -> int:
        """The public number of records.

        Raises
        ------
        ValueError
            Where it is private.
        """
        if self.public_n is None:
            message = "the number of records is private"
            raise ValueError(message)
        return self.public_n

    def estimates(self, quantity: Quantity) -> NDArray[np.float64]:
        """Return the unbiased estimates of a quantity, shape (n_cells,), in the column's unit.

        The map is carried out in integers and rounded once, so nothing cancels.
        """
        coefficients = (*quantity.coefficients.values(), quantity.public_n_coefficient)
        denominator = math.lcm(*(coefficient.denominator for coefficient in coefficients))
        *weights, public = (int(coefficient * denominator) for coefficient in coefficients)
        numerator = np.full(len(self.values), public * (self.public_n or 0), dtype=object)
        for component, weight in zip(quantity.coefficients, weights, strict=True):
            numerator = numerator + self.values[:, component] * weight
        return np.array([entry / denominator for entry in numerator], dtype=np.float64)

    @property
    def n_saturated(self) -> int:
        """Number of values at an end of their type: there were more records than ``max_total_rows``."""
        lowest, highest = self.plan.value_limits
        return sum(not lowest < value < highest for value in self.values.ravel().tolist())

    def quantity(self, name: str, component: str | None = None) -> tuple[NDArray[np.float64], float]:
        """Return a quantity's estimates, shape (n_cells,), and the standard deviation of their noise.

        Parameters
        ----------
        name : str
            ``n``, ``total``, ``total_of_squares`` or ``total_of_products``, as the family has it.
        component : str, optional
            The column, or the pair as ``x, y``, where the statistic is of several columns.

        Raises
        ------
        UsageError
            Where the family has no such quantity.
        """
        for quantity in self.plan.quantities:
            if (quantity.name, quantity.component, quantity.category) == (name, component, None) and (
                not quantity.labels
            ):
                return self.estimates(quantity), self.plan.quantity_noise_sd(quantity)
        known = ", ".join(sorted({quantity_label(quantity) for quantity in self.plan.quantities}))
        wanted = name if component is None else f"{name}[{component}]"
        message = f"{self.plan.name} has no quantity {wanted!r}: it has {known}"
        raise UsageError(message)

    def where(self, where: Mapping[str, object] | None) -> NoisyStatistic:
        """Keep the cells whose keys equal the given ones as text; nothing is ever summed.

        Raises
        ------
        UsageError
            Where a column is no group of the release, several keys are given for one, or no cell is left.
        """
        if not where:
            return self
        return self.take(wanted_cells(where, self.groups, len(self.values)))

    def table(self) -> list[dict[str, Any]]:
        """Return one row per cell and quantity: group keys, quantity, labels, estimate, noise_sd.

        Where categories are counted, ``category`` names that of a ``count``; or ``table`` and one key per
        variable do, None where the table lacks the variable. It is empty for n.

        Statistics of several columns have a ``component`` as well: the column, or the pair as ``x, y``; it
        is empty for n.

        Estimates are unbiased and in the column's unit; they may lie outside what is possible, as a
        negative count, because the noise is not cut off.
        """
        columns = [
            (quantity, self.estimates(quantity), self.plan.quantity_noise_sd(quantity))
            for quantity in self.plan.quantities
        ]
        several = any(quantity.component is not None for quantity in self.plan.quantities)
        counted = any(quantity.category is not None for quantity in self.plan.quantities)
        names = label_names(quantity.labels for quantity, _, _ in columns)
        labels = {
            quantity.labels: {**dict.fromkeys(names), **dict(quantity.labels)} for quantity, _, _ in columns
        }
        return [
            {
                **{column: keys[cell] for column, keys in self.groups.items()},
                "quantity": quantity.name,
                **({"category": quantity.category or ""} if counted else {}),
                **({"component": quantity.component or ""} if several else {}),
                **labels[quantity.labels],
                "estimate": float(estimates[cell]),
                "noise_sd": noise_sd,
            }
            for cell in range(len(self.values))
            for quantity, estimates, noise_sd in columns
        ]


def quantity_label(quantity: Quantity) -> str:
    """Return a quantity's name with what it is of, as ``total[x]``."""
    return quantity.name if quantity.component is None else f"{quantity.name}[{quantity.component}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyProducts:
    """Noisy sums over units of (f^2, 2 f s, s^2), f + s = k the unit's rows in the cell, in records.

    Attributes
    ----------
    values : ndarray of shape (n_cells, 3), float64
    scale : float
        Of the noise on each.
    max_rows : int
        The rows that a unit keeps at most in the cell.
    """

    values: Floats
    scale: float
    max_rows: int


def rows_alone(statistic: NoisyStatistic) -> NoisyStatistic:
    """Return the rows' sums, in the lattice of rows; the statistic itself where it has nothing beside them.

    The noise on them is discrete on a lattice that is finer by their weight, so values are no integers.
    """
    plan = statistic.plan
    further = tuple(rows_alone(observation) for observation in statistic.further)
    if plan.counted is not None:
        values = statistic.values[:, : plan.counted.sums]
        return dataclasses.replace(statistic, plan=rows_plan(plan), values=values, further=further)
    if plan.within_unit is None:
        return dataclasses.replace(statistic, further=further) if further else statistic
    rows, weight = plan.within_unit.rows, plan.within_unit.row_weight
    return dataclasses.replace(
        statistic,
        plan=rows_plan(plan),
        values=_divided(statistic.values[:, :rows], weight),
        further=further,
    )


def rows_plan(plan: StatisticPlan) -> StatisticPlan:
    """Return the plan of the rows' sums, in the lattice of rows; its noise is that of the whole block."""
    if plan.counted is not None:
        sums, total = plan.counted.sums, plan.counted.partition_total
        return dataclasses.replace(
            plan,
            design=plan.design if total is None else Design.PARTITION_OF_UNITY,
            components=plan.components[:sums],
            partition_total=total,
            quantities=_of_first(plan, sums),
            counted=None,
        )
    shared = plan.within_unit
    if shared is None:
        return plan
    of_rows = [
        dataclasses.replace(
            quantity,
            coefficients={
                position: number * shared.row_weight for position, number in quantity.coefficients.items()
            },
        )
        for quantity in _of_first(plan, shared.rows)
    ]
    return dataclasses.replace(
        plan,
        components=plan.components[: shared.rows],
        scale=plan.scale / shared.row_weight,
        partition_total=shared.unit_total,
        quantities=tuple(of_rows),
        within_unit=None,
    )


def _of_first(plan: StatisticPlan, components: int) -> tuple[Quantity, ...]:
    """Return the quantities that are maps of so many first components."""
    return tuple(
        quantity
        for quantity in plan.quantities
        if all(position < components for position in quantity.coefficients)
    )


def noisy_products(statistic: NoisyStatistic) -> NoisyProducts:
    """Return the components of units, in records.

    Raises
    ------
    ValueError
        Where the statistic is released without them.
    """
    shared = statistic.plan.within_unit
    if shared is None:
        message = f"{statistic.plan.name} is released without products of its units"
        raise ValueError(message)
    values = _divided(statistic.values[:, shared.rows :], shared.unit_total)
    return NoisyProducts(
        values=values.astype(np.float64),
        scale=statistic.plan.scale / shared.unit_total,
        max_rows=shared.max_rows,
    )


def _divided(values: NDArray[np.object_], by: int) -> NDArray[np.object_]:
    """Divide Python integers, each quotient rounded once to a float."""
    return np.asarray(values / by, dtype=object)


class Cells(Protocol):
    """Selected cells of one statistic, in the order of the release."""

    @property
    def plan(self) -> StatisticPlan:
        """The statistic's plan."""

    @property
    def n_first_keys(self) -> int:
        """How many keys of the first group column there are among the cells; 1 without groups."""

    def __len__(self) -> int:
        """Return how many there are."""

    def slice(self, start: int, stop: int) -> NoisyStatistic:
        """Return consecutive ones."""


@runtime_checkable
class StatisticsBySlices(Protocol):
    """Statistics of a release that can be read some cells at a time."""

    def cells(self, statistic: str, where: Mapping[str, object] | None) -> Cells:
        """Return the cells of a statistic with some keys, as :meth:`NoisyStatistic.where` keeps them."""


@dataclass(frozen=True, slots=True)
class HeldCells:
    """Cells that are in memory.

    Parameters
    ----------
    statistic : NoisyStatistic
    """

    statistic: NoisyStatistic

    @property
    def plan(self) -> StatisticPlan:
        """The statistic's plan."""
        return self.statistic.plan

    @property
    def n_first_keys(self) -> int:
        """How many keys of the first group column there are; 1 without groups."""
        first = next(iter(self.statistic.groups.values()), [0])
        return len(set(first))

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.statistic.values)

    def slice(self, start: int, stop: int) -> NoisyStatistic:
        """Return consecutive ones."""
        return self.statistic.take(np.arange(start, stop))
