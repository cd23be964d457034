"""Which released tables a field is made of, and what it refuses: tables that do not fit together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.models.network import names_of
from suffice.pipeline.ask.models.rows_and_draws import require_family
from suffice.pipeline.terms.released.noisy_statistic import rows_alone
from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.count_table import CountTable, Variable
    from suffice.typing import Floats

FAMILIES_OF_FIELDS = ("contingency",)
FEW, FEW_CHANCE = 2.0, 0.25
"""Refused where an entry of a table is expected to be below `FEW` with more than this chance."""


def parts_of(
    release: Release, statistics: Sequence[str], where: Mapping[str, object] | None
) -> dict[str, NoisyStatistic]:
    """Return the one chosen cell of every statistic; refuse what is no table of one or two variables."""
    names = names_of(statistics)
    if not names:
        message = "statistics names contingency tables, of one or two columns each"
        raise UsageError(message)
    parts = {}
    for name in names:
        if names.count(name) > 1:
            message = f"{name} is given twice: each table is one statistic"
            raise UsageError(message)
        require_family(release, name, FAMILIES_OF_FIELDS, "a field")
        part = rows_alone(release.selected(name, where))
        if part.plan.design is not Design.PARTITION_OF_UNITY or part.plan.scale <= 0.0:
            message = (
                f"{name} was released without a noisy count of every entry: a field needs all of them, as "
                "add_or_remove_one releases them"
            )
            raise UsageError(message)
        if len(part.values) != 1:
            message = (
                f"{name} has {len(part.values)} cells, and a field is of one: keep one with where, by "
                f"{', '.join(part.groups)}"
            )
            raise UsageError(message)
        size = len(part.plan.parameters.tables[0].variables)
        if size > 2:
            message = (
                f"{name} is over {size} columns, and a field is made of tables of one or two: query it alone "
                "with suffice model query"
            )
            raise UsageError(message)
        parts[name] = part
    return parts


def variables_of(tables: Mapping[str, CountTable]) -> dict[str, Variable]:
    """Return all variables; refuse those that differ between tables, and pairs given twice."""
    variables: dict[str, Variable] = {}
    pairs: dict[frozenset[str], str] = {}
    for name, table in tables.items():
        for variable in table.variables:
            known = variables.setdefault(variable.name, variable)
            if known.categories != variable.categories:
                message = f"{variable.name} has other categories in {name} than in the tables before"
                raise UsageError(message)
        ends = frozenset(variable.name for variable in table.variables)
        if len(ends) > 1 and ends in pairs:
            message = f"{name} and {pairs[ends]} are over the same two variables: name one of them"
            raise UsageError(message)
        pairs[ends] = name
    if not any(len(ends) > 1 for ends in pairs):
        message = "a field needs a table of two variables: name at least one"
        raise UsageError(message)
    return variables


def require_entries(expected: Floats, tables: Mapping[str, CountTable]) -> None:
    """Refuse tables in which the approximation of their law does not hold."""
    is_few = np.split((expected < FEW).mean(axis=0), np.cumsum([each.size for each in tables.values()])[:-1])
    for name, chances in zip(tables, is_few, strict=True):
        if chances.max() > FEW_CHANCE:
            is_needed = all(len(table.variables) < 2 for other, table in tables.items() if other != name)
            way_out = (
                "query it alone with suffice model query, which takes such entries"
                if is_needed
                else "leave the statistic out"
            )
            message = (
                f"{name} has {int((chances > FEW_CHANCE).sum())} entries that may well be expected below "
                f"{FEW:g} rows, where the law of tables is not approximated well: {way_out}"
            )
            raise UsageError(message)
