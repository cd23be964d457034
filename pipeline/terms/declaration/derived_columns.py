"""Columns that a spec derives from others of the same row: every kind, and the order of computing them."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

from suffice.pipeline.terms.declaration.derived_column import DerivedColumn, read_as
from suffice.pipeline.terms.declaration.derived_conditions import CONDITIONS
from suffice.pipeline.terms.declaration.derived_values import Arithmetic, DatePart, PublicMap, UniformText
from suffice.pipeline.terms.declaration.fields import label_name, read_column

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

KINDS: tuple[type[DerivedColumn], ...] = (*CONDITIONS, DatePart, UniformText, PublicMap, Arithmetic)
"""Every kind of derived column, each known by keys of its own."""
MOST_DERIVED = 1000
_FORMS = (
    "a derived column is as {column: x, above: 15}, {column: x, in: [a, b]}, "
    "{column: x, present: true}, {any_of: [...]}, {column: t, part: month}, {column: x, case: lower}, "
    "{column: x, map: {...}} or {sum: [a, b], lower: 0, upper: 9}"
)


def read_derived(name: str, entry: object, directory: Path | None) -> DerivedColumn:
    """Read one derived column.

    Parameters
    ----------
    name : str
        Its name.
    entry : object
        What the spec says of it: texts in lists and mappings.
    directory : Path or None
        Where the spec stands, and with it the files of maps and lists. None: a plan, which names no file.

    Raises
    ------
    pydantic.ValidationError, ValueError
        Naming the rule and the value.
    """
    label_name("derived column", read_column(name))
    context: dict[str, Any] = {"directory": directory}
    return read_as(KINDS, entry, context, _FORMS)


def in_order(derived: Mapping[str, DerivedColumn]) -> dict[str, DerivedColumn]:
    """Return derived columns so that each comes after those that it is computed from.

    Raises
    ------
    ValueError
        Where one is computed from itself, perhaps by way of others.
    """
    graph = {name: {each.column for each in of.inputs} & derived.keys() for name, of in derived.items()}
    try:
        order = tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        message = f"these are computed from each other: {', '.join(error.args[1][:5])}"
        raise ValueError(message) from None
    return {name: derived[name] for name in order}


def needed(columns: Iterable[str], derived: Mapping[str, DerivedColumn]) -> dict[str, DerivedColumn]:
    """Return the derived columns that these columns are or rest on, in the order of computing them."""
    chosen: dict[str, DerivedColumn] = {}
    left = [*columns]
    while left:
        name = left.pop()
        if name in derived and name not in chosen:
            chosen[name] = derived[name]
            left += [each.column for each in derived[name].inputs]
    return in_order(chosen)


def physical(columns: Iterable[str], derived: Mapping[str, DerivedColumn]) -> tuple[str, ...]:
    """Return the columns of the source that these columns are or rest on, each once."""
    columns = tuple(columns)
    inputs = (each.column for of in needed(columns, derived).values() for each in of.inputs)
    return tuple(dict.fromkeys(column for column in (*columns, *inputs) if column not in derived))
