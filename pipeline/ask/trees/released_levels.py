"""Statistics of a tree's levels as noisy counts of its nodes, component by component, or as noisy totals."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.trees.units import TreeUnit
from suffice.pipeline.math.engines.tree.noisy_tree import NoisyTree
from suffice.pipeline.terms.declaration.hierarchy import COUNTED, SUMMED
from suffice.pipeline.terms.statistics.total_step import total_step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.terms.declaration.key_tree import KeyTree
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.typing import Counts, Floats


def noisy_trees(
    tree: KeyTree, levels: Sequence[NoisyStatistic | None], sizes: Floats | None = None
) -> tuple[dict[str, NoisyTree], TreeUnit]:
    """Return a tree of noisy counts for each component of the statistics, or one of totals; and its unit.

    Raises
    ------
    UsageError
        Where there is not one statistic a level, cells are not the level's nodes, components differ from
        level to level, or are neither counts of records nor totals from 0 on.
    """
    if len(levels) != len(tree.levels):
        message = (
            f"the tree has the levels {', '.join(tree.levels)}: give a statistic of each, or None where "
            f"one was not released, not {len(levels)}"
        )
        raise UsageError(message)
    released = [statistic for statistic in levels if statistic is not None]
    if not released:
        message = "no level of the tree was released: give a statistic of one at least"
        raise UsageError(message)
    components = released[0].plan.components
    values: list[NoisyStatistic | None] = []
    for place, statistic in enumerate(levels):
        if statistic is None:
            values.append(None)
            continue
        _check_adding(statistic, tree.levels[place])
        if (
            statistic.plan.parameters != released[0].plan.parameters
            or statistic.plan.components != components
        ):
            message = (
                f"the level {tree.levels[place]} has {', '.join(statistic.plan.components)}, and another "
                f"one {', '.join(components)}, or other bounds: a tree is of the same at all levels"
            )
            raise UsageError(message)
        values.append(in_order(statistic, tree, place))
    parents = tuple(tree.parent_of(level) for level in range(1, len(tree.levels)))
    step = total_step(released[0].plan)
    if step is not None:
        upper = released[0].plan.parameters.upper or Fraction(0)
        unit = TreeUnit.of_total(step, upper, min(each.plan.scale for each in released))
    else:
        unit = TreeUnit()
    trees = {
        name: NoisyTree(
            parents=parents,
            values=tuple(None if each is None else unit.wholes(_column(each, column)) for each in values),
            scales=tuple(None if each is None else each.plan.scale / unit.steps for each in values),
            sizes=sizes,
        )
        for column, name in enumerate(components_of(released[0].plan))
    }
    return trees, unit


def components_of(plan: StatisticPlan) -> tuple[str, ...]:
    """Return what a tree of a statistic counts, or its total."""
    return plan.components if total_step(plan) is None else ("total",)


def _column(statistic: NoisyStatistic, column: int) -> Counts:
    if statistic.n_saturated:
        message = (
            "a value of the tree is at an end of its type: there were more records than could be counted"
        )
        raise UsageError(message)
    counts: Counts = statistic.values[:, column].astype(np.int64)
    return counts


def _check_adding(statistic: NoisyStatistic, level: str) -> None:
    """Refuse what is neither a count of records nor a total, with discrete Laplace noise of one scale."""
    plan = statistic.plan
    is_total = total_step(plan) is not None
    # Counts of clipped records stand behind the sums, with noise of their own.
    has_more = plan.counted is not None and not is_total
    if plan.sample is not None or plan.within_unit is not None or has_more:
        message = (
            f"{plan.name}, of the level {level}, releases more than counts and totals: "
            "a tree is of these alone"
        )
        raise UsageError(message)
    counts = {
        position
        for quantity in plan.quantities
        for position, weight in quantity.coefficients.items()
        if weight == 1
    }
    are_counts = plan.partition_total in {None, 1} and counts == set(range(len(plan.components)))
    if not (is_total or are_counts):
        message = (
            f"{plan.name}, of the level {level}, neither counts records nor has totals from 0 on: a tree is "
            f"of one of the families {', '.join(COUNTED + SUMMED)}"
        )
        raise UsageError(message)
    if statistic.further or statistic.cells_summed != 1:
        message = (
            f"{plan.name}, of the level {level}, is of several releases or of sums of cells: "
            "a tree is of one release's cells"
        )
        raise UsageError(message)


def in_order(statistic: NoisyStatistic, tree: KeyTree, place: int) -> NoisyStatistic:
    """Return a level's cells in the order of the tree's keys.

    Where the statistic has one group column, cells are looked up by its keys; of several columns, or none,
    they are in the tree's order.

    Raises
    ------
    UsageError
        Where there is not one cell for every node.
    """
    keys, level = tree.keys[place], tree.levels[place]
    if len(statistic.values) != len(keys):
        message = (
            f"the level {level} has {len(keys)} nodes, and {statistic.plan.name} "
            f"{len(statistic.values)} cells: there is one for every node"
        )
        raise UsageError(message)
    if len(statistic.groups) != 1 or len(set(keys)) != len(keys):
        return statistic
    (column,) = statistic.groups.values()
    cell_of = {str(key): cell for cell, key in enumerate(column)}
    if set(cell_of) != set(keys):
        message = f"the keys of {statistic.plan.name} are not those of the tree's level {level}"
        raise UsageError(message)
    return statistic.take(np.array([cell_of[key] for key in keys], dtype=np.int64))
