"""Tables of counts over several variables: their shape, and how each entry is named."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Label = tuple[tuple[str, str], ...]
"""What an entry is called: names and values in order, ``(("table", "cancer"), ("smoker", "yes"))``."""

Labels = Mapping[str, tuple[str | None, ...]]
"""What several entries are called, in columns by name; None where an entry lacks a name."""

_OF_A_PAIR = 2
"""Variables of a table of a node with one parent."""
_ESCAPED = str.maketrans({"\\": r"\\", ",": r"\,", "=": r"\="})


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A declared categorical variable.

    Parameters
    ----------
    name : str
        What it is called in components, rows and draws.
    categories : tuple of str
        All of them in order, ``other`` included.
    """

    name: str
    categories: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CountTable:
    """A table with one count for every combination of its variables' categories.

    Parameters
    ----------
    name : str
        What the table is called: among several, its last variable's name.
    variables : tuple of Variable
        The last runs fastest; where a table is conditional, it is of the last given the others.
    """

    name: str
    variables: tuple[Variable, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of categories of each variable."""
        return tuple(len(variable.categories) for variable in self.variables)

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)

    def components(self) -> tuple[str, ...]:
        r"""Name every entry, ``smoker=yes,cancer=no``; a backslash stands before ``\``, ``,`` and ``=``."""
        pairs = [
            [
                f"{variable.name.translate(_ESCAPED)}={text.translate(_ESCAPED)}"
                for text in variable.categories
            ]
            for variable in self.variables
        ]
        return tuple(map(",".join, itertools.product(*pairs)))

    def labels(self) -> tuple[Label, ...]:
        """Label every entry: ``table`` first, then each variable's category."""
        pairs = [[(variable.name, text) for text in variable.categories] for variable in self.variables]
        return tuple((("table", self.name), *entry) for entry in itertools.product(*pairs))


def released_tables(tables: Sequence[CountTable]) -> tuple[CountTable, ...]:
    """Leave out tables of one variable that is the only parent of another: they are margins of its table."""
    layout = {table.name: tuple(variable.name for variable in table.variables) for table in tables}
    released = released_layout(layout)
    return tuple(table for table in tables if table.name in released)


def released_layout(layout: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Leave out the same tables of a layout, table -> its variables: no category is listed for that."""
    only_parents = {names[0] for names in layout.values() if len(names) == _OF_A_PAIR}
    return {table: names for table, names in layout.items() if len(names) > 1 or table not in only_parents}


def label_columns(labels: Sequence[Label]) -> dict[str, tuple[str | None, ...]]:
    """Turn labels into columns: names in order of appearance; None where an entry lacks one."""
    entries = [dict(label) for label in labels]
    return {name: tuple(entry.get(name) for entry in entries) for name in label_names(labels)}


def label_rows(columns: Labels) -> list[dict[str, str | None]]:
    """Turn columns of labels into one mapping for each entry; none where there are no columns."""
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def entry_names(columns: Labels) -> tuple[str, ...]:
    """Name each entry in words: its category, or the variables of its table, ``smoker=yes,cancer=no``."""
    if len(columns) == 1:
        return tuple(str(value) for value in next(iter(columns.values())))
    return tuple(
        ",".join(f"{name}={value}" for name, value in row.items() if name != "table" and value is not None)
        for row in label_rows(columns)
    )


def label_names(labels: Iterable[Label | Mapping[str, object]]) -> tuple[str, ...]:
    """Return all names of some labels, in order of appearance."""
    return tuple(dict.fromkeys(name for label in labels for name in dict(label)))
