"""Pairs of neighbouring keys, read and held against a statistic's cells."""

from __future__ import annotations

import csv
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.terms.declaration.wording import counted, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Cells

_LARGEST_FILE = 1 << 28


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Which keys of a group column are next to each other.

    Attributes
    ----------
    column : str
    pairs : frozenset of (str, str)
        Each pair once, as texts.
    """

    column: str
    pairs: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, statistic: NoisyStatistic, adjacency: Any) -> Neighbours:
        """Read a CSV or Parquet file, a table of two columns, or a list of pairs.

        Raises
        ------
        UsageError
            Where it cannot be read, its column is no group column of the statistic, a key is not one of
            its keys, a key is its own neighbour, or there is no pair.
        """
        header, rows = _read(adjacency)
        if not rows:
            message = "adjacency has no pair: a row names two keys that are neighbours"
            raise UsageError(message)
        column = _column(statistic, header, rows)
        known = _keys(statistic, column)
        for number, row in enumerate(rows, start=1):
            unknown = [key for key in row if key not in known]
            if unknown:
                message = (
                    f"adjacency, pair {number}: {shown(unknown[0])} is no key of {column}: name declared keys"
                )
                raise UsageError(message)
            if row[0] == row[1]:
                message = (
                    f"adjacency, pair {number}: {shown(row[0])} is its own neighbour: leave the pair out"
                )
                raise UsageError(message)
        return cls(column=column, pairs=frozenset((min(row), max(row)) for row in rows))

    def places(self, groups: Mapping[str, Sequence[str | int]], name: str) -> tuple[Cells, Cells]:
        """Return pairs of cells, (n_pairs, 2), and the map each cell is on: one for all other keys.

        Parameters
        ----------
        groups : dict of str to list
            The keys of every cell, by group column.
        name : str
            Of the statistic.

        Raises
        ------
        UsageError
            Where no two of these cells are neighbours.
        """
        others = [keys for column, keys in groups.items() if column != self.column]
        of_map: dict[tuple[str | int, ...], int] = {}
        cell_of: dict[tuple[int, str], int] = {}
        level = np.zeros(len(groups[self.column]), dtype=np.int64)
        for cell, key in enumerate(groups[self.column]):
            number = of_map.setdefault(tuple(keys[cell] for keys in others), len(of_map))
            level[cell] = number
            cell_of[number, str(key)] = cell
        pairs = [
            (cell_of[number, first], cell_of[number, second])
            for number in range(len(of_map))
            for first, second in sorted(self.pairs)
            if (number, first) in cell_of and (number, second) in cell_of
        ]
        if not pairs:
            message = f"adjacency has no pair of these cells of {name}: no two are neighbours"
            raise UsageError(message)
        return np.array(pairs, dtype=np.int64), level


def named_column(adjacency: Any) -> str | None:
    """Return the group column that a table of neighbours names; None of a list of pairs.

    Raises
    ------
    UsageError
        Where it cannot be read.
    """
    return _read(adjacency)[0]


def _keys(statistic: NoisyStatistic, column: str) -> set[str]:
    """Return all declared keys of a column, as texts: also of cells that are not asked for."""
    declared: Iterable[str | int] = statistic.plan.groups.get(column, ())
    return {str(key) for key in itertools.chain(declared, statistic.groups[column])}


def _column(statistic: NoisyStatistic, header: str | None, rows: Sequence[tuple[str, str]]) -> str:
    """Return the group column whose keys the pairs are."""
    columns = list(statistic.groups)
    if header is not None:
        if header not in columns:
            message = (
                f"adjacency: {shown(header)} is no group column of {statistic.plan.name}, which has "
                f"{', '.join(columns) or 'none'}: its first column bears the name of one"
            )
            raise UsageError(message)
        return header
    if len(columns) == 1:
        return columns[0]
    named = {key for row in rows for key in row}
    fits = [column for column in columns if named <= _keys(statistic, column)]
    if len(fits) != 1:
        message = (
            f"adjacency: pairs without a name are keys of no single one of {', '.join(columns) or 'none'}: "
            "give a table of two columns, of which the first bears the column's name"
        )
        raise UsageError(message)
    return fits[0]


def _read(adjacency: Any) -> tuple[str | None, list[tuple[str, str]]]:
    """Return the first column's name, where there are names, and pairs of texts."""
    if isinstance(adjacency, str | Path) or hasattr(adjacency, "__fspath__"):
        return _of_file(Path(adjacency))
    if isinstance(adjacency, list | tuple | set | frozenset):
        rows = list(adjacency)
        if not all(isinstance(row, list | tuple) and len(row) == 2 for row in rows):
            message = "adjacency: a list has pairs of keys, as [('A', 'B'), ('B', 'C')]"
            raise UsageError(message)
        return None, [(str(first), str(second)) for first, second in rows]
    return _of_frame(adjacency)


def _of_file(path: Path) -> tuple[str, list[tuple[str, str]]]:
    try:
        if path.stat().st_size > _LARGEST_FILE:
            message = f"adjacency: {path.name} is larger than 256 MiB"
            raise UsageError(message)
        if path.suffix in {".parquet", ".pq"}:
            import pyarrow as pa
            import pyarrow.parquet as pq

            try:
                return _of_frame(pq.read_table(path))
            except pa.ArrowException:
                message = f"adjacency: {path.name} is no Parquet file"
                raise UsageError(message) from None
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = [line for line in csv.reader(file, strict=True) if line]
    except OSError:
        message = f"adjacency: {path} cannot be read: name a CSV or Parquet file"
        raise UsageError(message) from None
    except (UnicodeDecodeError, csv.Error):
        message = f"adjacency: {path.name} is no CSV file in UTF-8"
        raise UsageError(message) from None
    wrong = [number for number, line in enumerate(lines, start=1) if len(line) != 2]
    if not lines or wrong:
        where = f", line {wrong[0]}: it has {counted(len(lines[wrong[0] - 1]), 'field')}" if wrong else ""
        message = f"adjacency: {path.name}{where}: a table of neighbours has a header and two columns of keys"
        raise UsageError(message)
    return lines[0][0], [(first, second) for first, second in lines[1:]]


def _of_frame(frame: Any) -> tuple[str, list[tuple[str, str]]]:
    """Read a frame of Arrow, pandas or Polars, or a mapping of two lists."""
    from suffice.arrays import frame_table  # pyarrow is slow to import

    table = frame_table(frame)
    if table is None:
        message = "adjacency is no table: give a path, a list of pairs, or a frame of pandas, Polars or Arrow"
        raise UsageError(message)
    if table.num_columns != 2:
        message = (
            f"adjacency has {counted(table.num_columns, 'column')}: it has two, of keys that are neighbours"
        )
        raise UsageError(message)
    first, second = (column.to_pylist() for column in table.columns)
    return table.column_names[0], [*zip(map(str, first), map(str, second), strict=True)]
