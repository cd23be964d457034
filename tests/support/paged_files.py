"""Parquet files for the reader of pages: as writers write them, damaged, and read in both ways."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from suffice.errors import SufficeError
from suffice.pipeline.rows.chunk import paged_columns
from suffice.pipeline.rows.sources import parquet_files
from suffice.pipeline.rows.sources.contracted_columns import AS_STORED
from suffice.pipeline.rows.sources.file_access import status

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Places: TypeAlias = list[tuple[int, int]]

REFUSED = "refused"
NULL = -7
COLUMNS = ("text", "word", "number", "small", "amount", "single", "day", "whole")


def encode(column: pa.Array) -> NDArray[np.int32]:
    """Return a number for each value that tells nearly all bits apart."""
    if pa.types.is_dictionary(column.type):  # Arrow does not check its indices: what is out of range is null
        size = len(column.dictionary)
        places = [size if at is None or not 0 <= at < size else at for at in column.indices.to_pylist()]
        return np.append(encode(column.dictionary), np.int32(NULL))[places]
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        texts = column.cast(pa.large_binary()).to_pylist()
        values = [None if text is None else zlib.crc32(text) for text in texts]
    elif pa.types.is_primitive(column.type):
        kind = getattr(pa, f"int{column.type.bit_width}")()
        bits = pa.Array.from_buffers(kind, len(column), column.buffers(), offset=column.offset)
        values = [None if bit is None else hash(("bits", bit)) for bit in bits.to_pylist()]
    else:  # a type that a damaged footer names
        values = [None if value is None else zlib.crc32(repr(value).encode()) for value in column.to_pylist()]
    return np.array([NULL if value is None else value % (2**31 - 1) for value in values], np.int32)


def table(n_rows: int, seed: int, nulls: float = 0.05) -> pa.Table:
    """Return rows of all types that are served; the last column has no null."""
    rng = np.random.default_rng(seed)

    def mask() -> NDArray[np.bool_]:
        return rng.random(n_rows) < nulls

    words = np.array(["", "a", "word", "other words", "\u00e9\u00e8", "x" * 40])
    floats = np.where(rng.random(n_rows) < 0.1, np.nan, rng.normal(size=n_rows).round(1))
    columns = {
        "text": pa.array([f"text {rng.integers(10**6)}" for _ in range(n_rows)], pa.string(), mask=mask()),
        "word": pa.array(words[rng.integers(0, 6, n_rows)].tolist(), pa.string(), mask=mask()),
        "number": pa.array(rng.integers(-(2**62), 2**62, n_rows), mask=mask()),
        "small": pa.array(rng.integers(0, 9, n_rows).astype(np.int32), mask=mask()),
        "amount": pa.array(rng.normal(size=n_rows), mask=mask()),
        "single": pa.array(floats.astype(np.float32), mask=mask()),
        "day": pa.array(rng.integers(0, 99, n_rows).astype(np.int32), mask=mask()).cast(pa.date32()),
        "whole": pa.array(np.sort(rng.integers(0, 5, n_rows))),
    }
    fields = [pa.field(name, column.type, nullable=name != "whole") for name, column in columns.items()]
    return pa.table(list(columns.values()), schema=pa.schema(fields))


def read(path: Path, columns: Sequence[str], *, by_pages: bool) -> tuple[Any, int]:
    """Return the codes of all rows, by column, or `REFUSED`; and how many rows were read by pages."""
    codes: dict[str, list[NDArray[np.int32]]] = {name: [] for name in columns}
    paged = 0
    pages = paged_columns.PageReader([(name, encode) for name in columns]) if by_pages else None
    try:
        files = parquet_files.pin_files([(status(str(path)), AS_STORED)], columns, place="here")
        for split in parquet_files.file_splits("parquet", files):
            for block in parquet_files.read_files(split, columns, 1 << 17, pages):
                paged += block.num_rows if isinstance(block, paged_columns.CodedRows) else 0
                for name in columns:
                    codes[name].append(paged_columns.codes_of(block, name, encode).copy())
    except (SufficeError, KeyError, UnicodeDecodeError):  # the last two come of names in a damaged footer
        return REFUSED, paged
    nothing = np.empty(0, np.int32)
    return {name: np.concatenate([nothing, *parts]).tolist() for name, parts in codes.items()}, paged


def base_files(folder: Path) -> list[Path]:
    """Write small files of every kind that is served."""
    paths: list[Path] = []
    small = {"data_page_size": 900, "write_batch_size": 64}

    def write(name: str, n_rows: int, **options: Any) -> None:
        path = folder / f"{name}.parquet"
        pq.write_table(table(n_rows, len(name), options.pop("nulls", 0.05)), path, **options)
        paths.append(path)

    write("zstd", 900, compression="zstd", row_group_size=400, data_page_size=500, write_batch_size=50)
    write("snappy", 500, compression="snappy", **small)
    write("stored", 500, compression="none", data_page_size=800, write_batch_size=64)
    write("plain", 400, compression="zstd", use_dictionary=False, **small)
    write("fallen back", 900, compression="zstd", dictionary_pagesize_limit=700, write_batch_size=64)
    write("version 2", 500, compression="zstd", data_page_version="2.0", **small)
    write("second", 500, compression="snappy", data_page_version="2.0", **small)
    write("checked", 400, compression="zstd", write_page_checksum=True, **small)
    write("mostly null", 500, compression="zstd", nulls=0.93, data_page_size=300, write_batch_size=32)
    write("bare", 300, compression="zstd", write_statistics=False, store_schema=False)
    return paths


_LIMITS = (0, 1, 0x15, 0x7F, 0x80, 0xFE, 0xFF)


def damaged(content: bytes, choose: random.Random) -> bytes:
    """Return a file with some bytes of another value, moved, cut out or added; mostly where they say most."""
    data = bytearray(content)
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    headers = _headers(content)

    def place() -> int:
        kind = choose.random()
        if kind < 0.3:
            return choose.randrange(footer, len(data) - 8)
        if kind < 0.65:
            begin, end = choose.choice(headers)
            return choose.randrange(begin, min(end + 12, footer))
        return choose.randrange(4, footer)

    changes = (_flip, _limit, _any, _stretch, _header, _move, _cut)
    for _ in range(choose.choice((1, 1, 1, 2, 4))):
        (change,) = choose.choices(changes, weights=(40, 25, 10, 10, 7, 4, 4))
        change(data, place(), choose, headers)
        if len(data) < len(content):
            break  # places are no longer where they were
    return bytes(data)


def _flip(data: bytearray, at: int, choose: random.Random, _: Places) -> None:
    data[at] ^= 1 << choose.randrange(8)


def _limit(data: bytearray, at: int, choose: random.Random, _: Places) -> None:
    data[at] = choose.choice(_LIMITS)


def _any(data: bytearray, at: int, choose: random.Random, _: Places) -> None:
    data[at] = choose.randrange(256)


def _stretch(data: bytearray, at: int, choose: random.Random, _: Places) -> None:
    size = min(choose.randrange(1, 9), len(data) - at)
    data[at : at + size] = bytes([choose.choice(_LIMITS)]) * size


def _header(data: bytearray, _at: int, choose: random.Random, headers: Places) -> None:
    """Put one header in the place of another."""
    (begin, end), (other, other_end) = choose.choice(headers), choose.choice(headers)
    size = min(end - begin, other_end - other)
    data[begin : begin + size] = data[other : other + size]


def _move(data: bytearray, at: int, choose: random.Random, headers: Places) -> None:
    other = choose.choice(headers)[0]
    size = min(choose.randrange(1, 60), len(data) - max(at, other))
    data[at : at + size] = data[other : other + size]


def _cut(data: bytearray, at: int, choose: random.Random, _: Places) -> None:
    del data[at : at + choose.randrange(1, 20)]


_HEADERS: dict[bytes, Places] = {}


def _headers(content: bytes) -> Places:
    """Return where page headers stand, as the reader itself tells."""
    if content not in _HEADERS:
        metadata = pq.read_metadata(pa.BufferReader(content))
        places = []
        for number in range(metadata.num_row_groups):
            for index in range(metadata.num_columns):
                chunk = metadata.row_group(number).column(index)
                begin = min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
                names = {"UNCOMPRESSED": 0, "SNAPPY": 1, "ZSTD": 2}
                pages = np.empty((500, 10), np.int64)
                window = np.frombuffer(content[begin : begin + chunk.total_compressed_size], np.uint8)
                paged_columns.native().page_headers(window, names[chunk.compression], pages)
                last = begin
                for line in pages[1 : pages[0, 0] + 1].tolist():
                    places.append((last, begin + line[3]))
                    last = begin + line[3] + line[4]
        _HEADERS[content] = places
    return _HEADERS[content]


def compare(content: bytes, path: Path, columns: Sequence[str] = COLUMNS) -> int:
    """Read a file in both ways, and return how many rows pages gave; AssertionError where they differ."""
    path.write_bytes(content)
    by_pages, paged = read(path, columns, by_pages=True)
    by_arrow, _ = read(path, columns, by_pages=False)
    assert (by_pages == REFUSED) == (by_arrow == REFUSED), (by_pages == REFUSED, by_arrow == REFUSED)
    assert by_pages == by_arrow
    return paged


def every_row_group_is_served(change: Callable[..., None]) -> None:
    """Have small row groups served too, in small blocks."""
    change(paged_columns, "_FEWEST_ROWS", 0)
    change(paged_columns, "_FEWEST_PAGE_ROWS", 0)
    change(paged_columns, "_FEWEST_BLOCK_ROWS", 64)
    change(paged_columns, "_BATCH_ROWS", 128)
    change(paged_columns, "_READ_BYTES", 1 << 11)
