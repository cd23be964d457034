"""python -m support.spliced_files CORPUS FOLDER: columns that a fuzzer met, as files for both readers.

A footer is written around the pages. It ends with another code than 0 where the codes differ.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from suffice.pipeline.rows.chunk import paged_columns
from support import paged_files
from support.fuzzing import is_column, unpacked

if TYPE_CHECKING:
    Value: TypeAlias = "int | bytes | list[int] | list[bytes]"

COLUMN = "value"
_INT32, _INT64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12
_TEXT, _NUMBERS = 6, {0: (1, 2), 1: (4, 5)}
_PLAIN, _RLE, _DICTIONARY = 0, 3, 8
_DICTIONARY_PAGE = 2
_N_ROWS = 64
"""Of a column whose headers cannot be read."""


def _varint(number: int) -> bytes:
    bits = [number >> shift & 0x7F for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([*(each | 0x80 for each in bits[:-1]), bits[-1]])


def _struct(fields: dict[tuple[int, int], Value | bytes]) -> bytes:
    """Return a struct in Thrift's compact protocol, by number and type of its fields; structs are bytes."""
    written, last = b"", 0
    for (number, kind), value in fields.items():
        written += bytes([number - last << 4 | kind])
        last = number
        if kind in {_INT32, _INT64} and isinstance(value, int):
            written += _varint(2 * value)
        elif kind == _BINARY and isinstance(value, bytes):
            written += _varint(len(value)) + value
        elif kind == _LIST and isinstance(value, list):
            written += _list(value)
        else:
            assert isinstance(value, bytes)
            written += value
    return written + b"\x00"


def _list(values: list[int] | list[bytes]) -> bytes:
    """Return a list of numbers, or of what is written already."""
    kind = _INT32 if isinstance(values[0], int) else _STRUCT
    items = [_varint(2 * value) if isinstance(value, int) else value for value in values]
    return bytes([len(values) << 4 | kind]) + b"".join(items)


def file_of(kind: int, pages: bytes, *, is_real: bool) -> bytes:
    """Return a file around the pages of a column, given what kernels.c takes for its kind."""
    codec, is_optional, width = (kind & 3) % 3, kind >> 2 & 1, kind >> 3 & 3
    physical = _TEXT if width in {0, 3} else _NUMBERS[is_real][width - 1]
    table = np.zeros((500, 10), np.int64)
    try:
        paged_columns.native().page_headers(np.frombuffer(pages, np.uint8), codec, table)
    except ValueError:
        table[:] = 0
    headers = table[1 : 1 + table[0, 0]].tolist()
    begins_with_entries = bool(headers) and headers[0][0] == _DICTIONARY_PAGE
    n_rows = sum(header[2] for header in headers if header[0] != _DICTIONARY_PAGE) or _N_ROWS
    described: dict[tuple[int, int], Value] = {
        (1, _INT32): physical,
        (2, _LIST): [_PLAIN, _RLE, _DICTIONARY],
        (3, _LIST): b"\x18" + _varint(len(COLUMN)) + COLUMN.encode(),
        (4, _INT32): (0, 1, 6)[codec],
        (5, _INT64): n_rows,
        (6, _INT64): 1 << 22,
        (7, _INT64): len(pages),
        (9, _INT64): 4 + (headers[0][3] + headers[0][4] if begins_with_entries else 0),
    }
    if begins_with_entries:
        described[11, _INT64] = 4
    text = {(6, _INT32): 0} if physical == _TEXT else {}
    root = _struct({(4, _BINARY): b"schema", (5, _INT32): 1})
    leaf = _struct({(1, _INT32): physical, (3, _INT32): is_optional, (4, _BINARY): COLUMN.encode(), **text})
    chunk = _struct({(2, _INT64): 4, (3, _STRUCT): _struct(described)})
    group = _struct({(1, _LIST): [chunk], (2, _INT64): 1 << 22, (3, _INT64): n_rows})
    footer = _struct({(1, _INT32): 2, (2, _LIST): [root, leaf], (3, _INT64): n_rows, (4, _LIST): [group]})
    return b"PAR1" + pages + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def main(corpus: Path, folder: Path) -> None:
    """Read the columns of a corpus in both ways, and print how many pages read wholly or partly."""
    paged_files.every_row_group_is_served(setattr)
    columns = [each for each in unpacked(corpus.read_bytes()) if len(each) > 2 and is_column(each)]
    read = 0
    for each in columns:
        for is_real in (False, True):
            content = file_of(each[1], each[2:], is_real=is_real)
            read += paged_files.compare(content, folder / "file.parquet", [COLUMN]) > 0
    sys.stdout.write(f"{2 * len(columns)} columns: {read} with rows by pages\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
