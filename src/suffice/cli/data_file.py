"""Rows that a caller has, in a CSV or Parquet file: read for models, never released."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from suffice.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

DataOption = Annotated[
    Path, typer.Option("--data", metavar="FILE", help="Rows of your own, in a .csv or .parquet file.")
]

_NO_NUMBER = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")
"""How CSV files write that a number is missing."""


def check_data(path: Path) -> None:
    """Refuse a file that is not there, or is neither CSV nor Parquet, before any work is done."""
    if path.suffix not in {".csv", ".parquet"}:
        message = f"--data {path}: the file's name must end in .csv or .parquet"
        raise UsageError(message)
    try:
        is_there = path.exists()
    except (OSError, ValueError):
        is_there = False
    if not is_there:
        message = f"--data {path}: there is no such file"
        raise UsageError(message)


def read_data(path: Path, columns: Sequence[str], *, texts: Sequence[str] = ()) -> pa.Table:
    """Read those of some columns that a file has.

    Parameters
    ----------
    path : Path
        Ends in ``.csv`` or ``.parquet``.
    columns : sequence of str
        That are wanted; those that are absent are left out.
    texts : sequence of str
        Those of them that are texts in a CSV file, whatever they look like: ``01`` stays ``01``.

    Raises
    ------
    UsageError
        Where the file is not there, or is of another format.
    """
    import pyarrow as pa

    check_data(path)
    try:
        table = _read_csv(path, columns, texts) if path.suffix == ".csv" else _read_parquet(path, columns)
    except (OSError, ValueError, pa.ArrowException):
        kind = "CSV in UTF-8 with one row of column names" if path.suffix == ".csv" else "Parquet"
        message = f"--data {path}: the file cannot be read as {kind}"
        raise UsageError(message) from None
    twice = [name for name in columns if table.column_names.count(name) > 1]
    if twice:
        message = f"--data {path}: more than one column is called {', '.join(twice)}"
        raise UsageError(message)
    return table


def _read_csv(path: Path, columns: Sequence[str], texts: Sequence[str]) -> pa.Table:
    """Read wanted columns as a release reads CSV: an empty field is null, a quoted one is a text."""
    import pyarrow as pa
    from pyarrow import csv

    convert = csv.ConvertOptions(
        column_types=dict.fromkeys(columns, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    table = csv.read_csv(path, convert_options=convert)
    table = table.select([place for place, name in enumerate(table.column_names) if name in columns])
    for place, name in enumerate(table.column_names):
        if name not in texts:
            table = table.set_column(place, name, _numbers(table.column(place)))
    return table


def _numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts as numbers, null where they say that there is none; as they are where they are none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_none = pc.is_in(column, value_set=pa.array(_NO_NUMBER))
    try:
        return pc.cast(pc.if_else(is_none, pa.scalar(None, pa.string()), column), pa.float64())
    except pa.ArrowInvalid:
        return column


def _read_parquet(path: Path, columns: Sequence[str]) -> pa.Table:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        present = [name for name in file.schema_arrow.names if name in columns]
        return file.read(columns=list(dict.fromkeys(present)))
