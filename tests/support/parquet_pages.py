"""Parquet files of flat columns, whole and damaged, and what two ways to read them make of each."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from suffice.pipeline.rows.sources.flat_columns import Chunk, flat_columns, readable
from suffice.pipeline.rows.sources.parquet_pages import read_by_arrow, read_row_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.random import Generator

BLOCK_ROWS = 50
TEXTS = ("text", "few")
TYPES = {
    "integer": pa.int64(),
    "short": pa.int32(),
    "real": pa.float64(),
    "single": pa.float32(),
    "day": pa.date32(),
    "milli": pa.timestamp("ms"),
    "micro": pa.timestamp("us", "UTC"),
    "nano": pa.timestamp("ns"),
    "text": pa.string(),
    "few": pa.string(),
    "flag": pa.bool_(),
}
READ_HERE = tuple(name for name in TYPES if name != "flag")


def column(rng: Generator, kind: pa.DataType, n_rows: int, n_values: int, null_rate: float) -> pa.Array:
    """Return values of which there are few or many, of all bits, with nulls one by one and in runs."""
    codes = (
        np.sort(rng.integers(0, n_values, n_rows))
        if rng.random() < 0.3
        else rng.integers(0, n_values, n_rows)
    )
    nulls = rng.random(n_rows) < null_rate
    if rng.random() < 0.4 and n_rows:
        start, end = np.sort(rng.integers(0, n_rows + 1, 2))
        nulls[start:end] = rng.random() < 0.5 * (null_rate > 0)
    mask = nulls if null_rate else None
    if pa.types.is_string(kind):
        texts = np.array(["", *(f"text {'é' * int(each)} {each}" for each in range(1, n_values))], object)
        return pa.array(texts[codes], kind, mask=mask)
    if pa.types.is_boolean(kind):
        return pa.array(codes % 2 == 0, kind, mask=mask)
    n_bytes = kind.bit_width // 8
    bits = rng.integers(0, 256, (n_values, n_bytes), np.uint8).view(f"i{n_bytes}")[:, 0]
    stored = pa.array(bits[codes], mask=mask)
    return stored.view(kind)


def parquet_bytes(rng: Generator, n_rows: int, **options: Any) -> bytes:
    """Return a file of columns of all types that are read from pages, and of one that is not."""
    null_rate = options.pop("null_rate", 0.1)
    n_values = options.pop("n_values", 12)
    arrays = {name: column(rng, kind, n_rows, n_values, null_rate) for name, kind in TYPES.items()}
    fields = [pa.field(name, of.type, nullable=bool(null_rate)) for name, of in arrays.items()]
    table = pa.table(list(arrays.values()), pa.schema(fields))
    stream = io.BytesIO()
    pq.write_table(table, stream, store_schema=options.pop("store_schema", True), **options)
    return stream.getvalue()


def opened(data: bytes) -> pq.ParquetFile:
    """Open a file as sources do."""
    with pq.ParquetFile(io.BytesIO(data)) as file:
        texts = [name for name in TEXTS if name in file.schema_arrow.names]
    return pq.ParquetFile(
        io.BytesIO(data), read_dictionary=texts, page_checksum_verification=True, pre_buffer=False
    )


def by_arrow(data: bytes, names: Sequence[str], block_rows: int = BLOCK_ROWS) -> list[pa.RecordBatch]:
    """Read all row groups by Arrow."""
    file = opened(data)
    numbers = range(file.num_row_groups)
    return [each for number in numbers for each in read_by_arrow(file, [number], names, block_rows)]


def by_pages(data: bytes, names: Sequence[str], block_rows: int = BLOCK_ROWS) -> list[pa.RecordBatch]:
    """Read all row groups as sources do, however small they are."""
    file = opened(data)
    stored: Any = io.BytesIO(data)
    numbers = range(file.num_row_groups)
    return list(read_row_groups(stored, file, numbers, names, block_rows, fewest_rows=1))


def chunks_of(data: bytes, names: Sequence[str]) -> list[dict[str, Chunk]]:
    """Return what is read from pages of each row group."""
    file, stored = opened(data), io.BytesIO(data)
    return readable(stored, file, flat_columns(file, names))


def content(batches: Iterable[pa.RecordBatch]) -> dict[str, list[Any]]:
    """Return bits of each column's values, None for null, and indices that are in no dictionary as such."""
    values: dict[str, list[Any]] = {}
    for batch in batches:
        for name, array in zip(batch.schema.names, batch.columns, strict=True):
            values.setdefault(name, [str(array.type)]).extend(_bits(array))
    return values


def _bits(array: pa.Array) -> list[Any]:
    valid = array.is_valid().to_pylist()
    if pa.types.is_dictionary(array.type):
        texts = array.dictionary.cast(pa.binary()).to_pylist()
        indices = array.indices.fill_null(0).to_pylist()
        read = [texts[index] if 0 <= index < len(texts) else index for index in indices]
    elif pa.types.is_boolean(array.type):
        read = array.to_pylist()
    else:
        width = array.type.bit_width // 8
        data = np.frombuffer(array.buffers()[1], f"i{width}", count=len(array), offset=width * array.offset)
        read = data.tolist()
    return [value if is_valid else None for value, is_valid in zip(read, valid, strict=True)]


def outcome(
    read: Callable[[bytes, Sequence[str]], list[pa.RecordBatch]],
    data: bytes,
    names: Sequence[str] = tuple(TYPES),
) -> dict[str, Any] | None:
    """Return what is read of a file, or None where it is refused."""
    try:
        return content(read(data, list(names)))
    except (pa.ArrowException, OSError, ValueError):
        return None


OPTIONS: tuple[dict[str, Any], ...] = tuple(
    {
        "compression": compression,
        "data_page_version": version,
        "null_rate": null_rate,
        "use_dictionary": dictionary,
        "write_page_checksum": checksum,
    }
    for compression, checksum in (
        ("none", False),  # thrice: what a page says is seldom damaged by itself where it is compressed
        ("none", False),
        ("none", False),
        ("snappy", False),
        ("zstd", False),
        ("zstd", True),
    )
    for version in ("1.0", "2.0")
    for null_rate in (0.0, 0.2)
    for dictionary in (True, ["text", "few"])
)


def damaged(rng: Generator, data: bytes) -> bytes:
    """Return a file with some bytes changed, taken out, put in, or exchanged, before its footer and in it."""
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    changed = bytearray(data)
    where = rng.random()
    end = len(data) - 8 if where < 0.25 else footer
    begin = footer if where < 0.25 else 4
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(begin, end))
        kind = rng.integers(0, 6)
        if kind == 0:
            changed[at] ^= 1 << int(rng.integers(0, 8))
        elif kind == 1:
            changed[at] = int(rng.choice([0, 1, 2, 3, 127, 128, 255]))
        elif kind == 2:
            changed[at] = int(rng.integers(0, 256))
        elif kind == 3:
            changed[at] = (changed[at] + int(rng.choice([-2, -1, 1, 2]))) % 256
        elif kind == 4:  # moved by some bytes: what follows is another length
            n = int(rng.integers(1, 5))
            changed[at:footer] = (changed[at + n : footer] + bytes(n))[: footer - at]
        else:
            n = int(rng.integers(1, 9))
            changed[at : at + n] = bytes(rng.integers(0, 256, len(changed[at : at + n]), np.uint8))
    return bytes(changed)


def differences(seed: int, n_files: int) -> tuple[int, int, list[int]]:
    """Read damaged files both ways.

    Returns
    -------
    int
        Files that Arrow refuses.
    int
        Files that it reads.
    list of int
        Which of the files the two ways do not read alike.
    """
    n_refused = n_read = 0
    differing = []
    for number in range(n_files):
        rng = np.random.default_rng([seed, number])
        options = OPTIONS[int(rng.integers(len(OPTIONS)))]
        data = damaged(rng, parquet_bytes(rng, int(rng.integers(1, 150)), data_page_size=100, **options))
        expected = outcome(by_arrow, data)
        n_refused, n_read = n_refused + (expected is None), n_read + (expected is not None)
        if outcome(by_pages, data) != expected:
            differing.append(number)
    return n_refused, n_read, differing
