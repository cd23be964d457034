"""Which columns of Parquet files are read from their pages, and where these lie, by the metadata alone."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa

from suffice.pipeline.rows.sources.native_module import MODULE

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow.parquet as pq

TEXTS = pa.dictionary(pa.int32(), pa.string())
_TYPES: dict[str, tuple[int, tuple[pa.DataType, ...]]] = {
    "INT32": (1, (pa.int32(), pa.date32())),
    "INT64": (2, (pa.int64(),)),
    "FLOAT": (4, (pa.float32(),)),
    "DOUBLE": (5, (pa.float64(),)),
    "BYTE_ARRAY": (6, (TEXTS,)),
}
"""Stored types, with their numbers in the format, and what Arrow reads from them bit by bit."""
_UNITS = {"ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}

# Numbers of the format.
_CODECS = {0: None, 1: "snappy", 6: "zstd"}
PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY, _BIT_PACKED = 0, 2, 3, 8, 4
_ENCODINGS = sum(1 << of for of in (PLAIN, PLAIN_DICTIONARY, RLE, _BIT_PACKED, RLE_DICTIONARY))
"""As bits; those of bits are of levels."""

# As the module in C has them.
_CHUNK_NUMBERS = 8
_MARK = b"PAR1"

_loops: Any = MODULE


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatColumn:
    """A column of a file that is read from its pages.

    Parameters
    ----------
    index : int
        Its number in the file.
    stored_type : int
        The number of its stored type.
    type : pyarrow.DataType
        What Arrow reads it as.
    is_nullable : bool
        Whether its pages have levels.
    """

    index: int
    stored_type: int
    type: pa.DataType
    is_nullable: bool


def flat_columns(file: pq.ParquetFile, names: Sequence[str]) -> dict[str, FlatColumn]:
    """Return which columns of a file are read from their pages, by their names, as far as its schema tells.

    Parameters
    ----------
    file : pyarrow.parquet.ParquetFile
        The file, opened with the columns that are read as dictionaries.
    names : sequence of str
        The columns that are wanted.
    """
    stored, schema = file.metadata.schema, file.schema_arrow
    if MODULE is None or any(len(schema.get_all_field_indices(name)) != 1 for name in names):
        return {}
    indices: dict[str, list[int]] = {}
    for index in range(len(stored)):
        indices.setdefault(stored.column(index).path.partition(".")[0], []).append(index)
    columns = {}
    for name in names:
        of_name = indices.get(name, [])
        if len(of_name) != 1:
            continue
        column, kind = stored.column(of_name[0]), schema.field(name).type
        if (
            column.path == name
            and column.max_repetition_level == 0
            and column.max_definition_level <= 1
            and _is_read(column, kind)
        ):
            columns[name] = FlatColumn(
                index=of_name[0],
                stored_type=_TYPES[column.physical_type][0],
                type=kind,
                is_nullable=column.max_definition_level == 1,
            )
    return columns


def _is_read(column: pq.ColumnSchema, kind: pa.DataType) -> bool:
    """Tell whether values of a stored type are, bit by bit, those of an Arrow type."""
    if not pa.types.is_timestamp(kind):
        return column.physical_type in _TYPES and kind in _TYPES[column.physical_type][1]
    unit = _UNITS.get(kind.unit)
    is_of_unit = unit is not None and f'"{unit}"' in column.logical_type.to_json()
    return is_of_unit and column.physical_type == "INT64"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A column of a row group that is read from its pages.

    Parameters
    ----------
    column : FlatColumn
        The column.
    codec : str or None
        By what its pages are compressed.
    start, end : int
        Where it lies in the file.
    uncompressed : int
        Bytes of its pages, decompressed, as the footer has it.
    n_rows : int
        Rows.
    """

    column: FlatColumn
    codec: str | None
    start: int
    end: int
    uncompressed: int
    n_rows: int


def readable(
    stored: BinaryIO, file: pq.ParquetFile, columns: dict[str, FlatColumn]
) -> list[dict[str, Chunk]]:
    """Return of each row group which columns are read from their pages, as far as the footer tells.

    Notes
    -----
    pyarrow ends the process where it is asked for a codec that it does not know, or to write some damaged
    footers. So the footer's numbers are read here, from its bytes.
    """
    metadata = file.metadata
    n_groups, n_columns = metadata.num_row_groups, metadata.num_columns
    chunks = np.empty((n_groups * n_columns, _CHUNK_NUMBERS), np.int64)
    try:
        _loops.column_chunks(_footer(stored), chunks)
    except (ValueError, OSError):
        return [{} for _ in range(n_groups)]
    n_rows = [metadata.row_group(number).num_rows for number in range(n_groups)]
    chosen = ((name, column, chunks[column.index :: n_columns].tolist()) for name, column in columns.items())
    by_group: list[dict[str, Chunk]] = [{} for _ in range(n_groups)]
    for name, column, numbers in chosen:
        for of_group, each, rows in zip(by_group, numbers, n_rows, strict=True):
            chunk = _chunk(column, each, rows)
            if chunk is not None:
                of_group[name] = chunk
    return by_group


def _footer(stored: BinaryIO) -> bytes:
    """Return the footer's bytes."""
    size = stored.seek(0, os.SEEK_END)
    stored.seek(max(size - len(_MARK) - 4, 0))
    ending = _read(stored, len(_MARK) + 4)
    length = int.from_bytes(ending[:4], "little")
    start = size - len(ending) - length
    if ending[4:] != _MARK or start < len(_MARK):
        message = "the footer is not where it has to be"
        raise ValueError(message)
    stored.seek(start)
    return _read(stored, length)


def _read(stored: BinaryIO, n_bytes: int) -> bytes:
    parts = []
    while n_bytes and (part := stored.read(n_bytes)):
        parts.append(part)
        n_bytes -= len(part)
    return b"".join(parts)


def _chunk(column: FlatColumn, numbers: list[int], n_rows: int) -> Chunk | None:
    stored_type, encodings, codec, n_values, uncompressed, compressed, start, dictionary = numbers
    if 0 < dictionary < start:
        start = dictionary
    is_readable = (
        stored_type == column.stored_type
        and not encodings & ~_ENCODINGS
        and codec in _CODECS
        and n_values == n_rows
        and min(start, uncompressed, compressed) >= 0
    )
    if not is_readable:
        return None
    return Chunk(
        column=column,
        codec=_CODECS[codec],
        start=start,
        end=start + compressed,
        uncompressed=uncompressed,
        n_rows=n_rows,
    )
