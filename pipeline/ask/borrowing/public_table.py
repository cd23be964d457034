"""A public table that a person brings beside a release: read as texts and numbers, joined by keys.

Everything in it is public, and messages may quote its names and keys.
"""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from suffice.errors import UsageError
from suffice.pipeline.terms.declaration.wording import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic

Column: TypeAlias = list[Any]
"""Numbers, texts, truth values or dates; None where there is no value."""
LARGEST_TABLE = 1 << 30
"""In bytes, of a file."""
_LISTED = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicTable:
    """Columns of one length.

    Attributes
    ----------
    origin : str
        What messages call it.
    columns : dict of str to list
    texts : dict of str to list of str or None
        The same as they were written, of a file of texts; of keys ``01`` stays ``01``.
    """

    origin: str
    columns: Mapping[str, Column]
    texts: Mapping[str, Sequence[str | None]]

    def rows_of(self, statistic: NoisyStatistic) -> list[int]:
        """Return the row of each cell, by the group columns that the table has.

        Raises
        ------
        UsageError
            Where it has none of these, a key that the release does not have, a key twice, or not all.
        """
        keys = [column for column in statistic.groups if column in self.columns]
        if not keys:
            message = (
                f"{self.origin} has no group column of {statistic.plan.name}, by which its rows are joined: "
                f"name a column {' or '.join(statistic.groups) or '(it has one cell)'}; it has "
                f"{', '.join(list(self.columns)[:_LISTED])}"
            )
            raise UsageError(message)
        known = {column: {str(key) for key in statistic.plan.groups[column]} for column in keys}
        is_whole = {column: isinstance(statistic.groups[column][0], int) for column in keys}
        places: dict[tuple[str, ...], int] = {}
        for row in range(len(self.texts[keys[0]])):
            of_row = tuple(_key(self.texts[column][row], is_whole=is_whole[column]) for column in keys)
            for column, key in zip(keys, of_row, strict=True):
                if key not in known[column]:
                    what = "no key" if key == "" else f"{key!r}, which is no key of the release"
                    message = f"{self.origin}: row {row + 1} has {what} in its column {column}"
                    raise UsageError(message)
            if of_row in places:
                message = (
                    f"{self.origin}: rows {places[of_row] + 1} and {row + 1} are both of "
                    f"{_named(keys, of_row)}: leave one of them"
                )
                raise UsageError(message)
            places[of_row] = row
        wanted = [
            tuple(str(statistic.groups[column][cell]) for column in keys)
            for cell in range(len(statistic.values))
        ]
        missing = list(dict.fromkeys(each for each in wanted if each not in places))
        if missing:
            more = f" and of {len(missing) - 1} more" if len(missing) > 1 else ""
            message = (
                f"{self.origin} has no row of {_named(keys, missing[0])}{more}: give every cell a row, or "
                "leave cells out by where"
            )
            raise UsageError(message)
        return [places[each] for each in wanted]


def _named(keys: Sequence[str], values: Sequence[str]) -> str:
    return ", ".join(f"{column}={key}" for column, key in zip(keys, values, strict=True))


def _key(text: str | None, *, is_whole: bool) -> str:
    """Return a key as the release writes it: integers without leading zeros."""
    if text is None:
        return ""
    if is_whole:
        try:
            return str(int(text))
        except ValueError:
            return text
    return text


def public_table(table: Any, option: str) -> PublicTable:
    """Read a CSV or Parquet file, a frame of Arrow, pandas or Polars, or a mapping of columns.

    Parameters
    ----------
    table : path or table
    option : str
        What messages call it where it has no name.

    Raises
    ------
    UsageError
        Where it cannot be read.
    """
    if not isinstance(table, str | Path) and not hasattr(table, "__fspath__"):
        return _of_frame(table, option)
    path = Path(table)
    try:
        if path.stat().st_size > LARGEST_TABLE:
            message = f"{option} {path.name}: the file is larger than 1 GiB"
            raise UsageError(message)
        if path.suffix in {".parquet", ".pq"}:
            import pyarrow as pa
            import pyarrow.parquet as pq

            try:
                return _of_frame(pq.read_table(path), path.name)
            except pa.ArrowException:
                message = f"{option} {path.name}: the file cannot be read as Parquet"
                raise UsageError(message) from None
        return _of_csv(path.read_bytes(), path.name)
    except OSError:
        message = f"{option} {path}: the file cannot be read: name a CSV or Parquet file"
        raise UsageError(message) from None


def _of_csv(data: bytes, origin: str) -> PublicTable:
    """Read CSV: an empty field has no value; a column whose values are all numbers has numbers."""
    try:
        lines = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error):
        message = f"{origin}: the file cannot be read as CSV in UTF-8"
        raise UsageError(message) from None
    names, *records = [line for line in lines if line] or [[]]
    if not records or len(set(names)) < len(names):
        message = f"{origin} needs a line of different column names, and a row below it"
        raise UsageError(message)
    for number, record in enumerate(records, start=1):
        if len(record) != len(names):
            message = (
                f"{origin}: row {number} has {counted(len(record), 'field')}, and the header {len(names)}"
            )
            raise UsageError(message)
    texts = {name: [record[place] or None for record in records] for place, name in enumerate(names)}
    return PublicTable(
        origin=origin, columns={name: _numbers(column) for name, column in texts.items()}, texts=texts
    )


def _numbers(texts: Sequence[str | None]) -> Column:
    try:
        return [None if text is None else float(text) for text in texts]
    except ValueError:
        return list(texts)


def _of_frame(frame: Any, origin: str) -> PublicTable:
    from suffice.arrays import frame_table  # pyarrow is slow to import

    table = frame_table(frame)
    if table is None:
        message = (
            f"{origin} is no table: give a CSV or Parquet file, a frame of Arrow, pandas or Polars, or a "
            "mapping of columns of one length"
        )
        raise UsageError(message)
    if not table.num_rows or len(set(table.column_names)) < table.num_columns:
        message = f"{origin} needs a row, and different column names"
        raise UsageError(message)
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    return PublicTable(
        origin=origin,
        columns={name: [_value(each) for each in column] for name, column in columns.items()},
        texts={name: [_text(each) for each in column] for name, column in columns.items()},
    )


def _value(value: Any) -> Any:
    """Return a value of a frame: none where it is no number, decimals as numbers."""
    if isinstance(value, float) and math.isnan(value):
        return None
    return float(value) if hasattr(value, "as_tuple") else value


def _text(value: Any) -> str | None:
    value = _value(value)
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value.isoformat()).removesuffix("T00:00:00") if hasattr(value, "isoformat") else str(value)
