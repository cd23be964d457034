"""Columns of Parquet files that are not nested, read from their pages by the module in C.

What is read here is what Arrow reads, array by array. Anything that is not exactly as the format has it, and
anything that is rare, is refused, and Arrow reads the row group: it alone decides what is damaged, and how a
release says so. So it is safe to be strict here, and never to be lenient. Pages are decompressed by Arrow.
"""

from __future__ import annotations

import io
from array import array
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, BinaryIO
from zlib import crc32

import numpy as np
import pyarrow as pa

from suffice.pipeline.rows.sources.native_module import MODULE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow.parquet as pq
    from numpy.typing import NDArray

FEWEST_ROWS = 1 << 14
"""Row groups of fewer are left to Arrow, which reads several in one batch."""
_READ_BYTES = 1 << 18
_LARGEST_HEADER = 1 << 13
_LARGEST_PAGE = 1 << 26
"""In bytes: what is larger is left to Arrow, before anything is allocated."""

_TEXTS = pa.dictionary(pa.int32(), pa.string())
_TYPES: dict[str, tuple[int, tuple[pa.DataType, ...]]] = {
    "INT32": (1, (pa.int32(), pa.date32())),
    "INT64": (2, (pa.int64(),)),
    "FLOAT": (4, (pa.float32(),)),
    "DOUBLE": (5, (pa.float64(),)),
    "BYTE_ARRAY": (6, (_TEXTS,)),
}
"""Stored types, with their numbers in the format, and what Arrow reads from them bit by bit."""
_UNITS = {"ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}

# Numbers of the format.
_CODECS = {0: None, 1: "snappy", 6: "zstd"}
_DATA, _DICTIONARY, _SECOND_DATA = 0, 2, 3
_PLAIN, _PLAIN_DICTIONARY, _RLE, _BIT_PACKED, _RLE_DICTIONARY = 0, 2, 3, 4, 8
_ENCODINGS = sum(1 << of for of in (_PLAIN, _PLAIN_DICTIONARY, _RLE, _BIT_PACKED, _RLE_DICTIONARY))
"""As bits; those of bits are of levels."""

# As the module in C has them.
_CHUNK_NUMBERS, _HEADER_NUMBERS, _STATE_NUMBERS = 8, 14, 15
_ROWS_LEFT, _IS_NULLABLE, _IS_PLAIN, _INDEX_WIDTH, _NULLS = range(5)


_loops: Any = MODULE


class RefusedError(ValueError):
    """A page is not what is read here, or is damaged: Arrow tells which."""


def _require(is_so: bool) -> None:
    if not is_so:
        raise RefusedError


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


def readable(file: pq.ParquetFile, columns: dict[str, FlatColumn]) -> list[dict[str, Chunk]]:
    """Return of each row group which columns are read from their pages, as far as the footer tells.

    Notes
    -----
    pyarrow ends the process where it is asked for a codec that it does not know. So the footer's numbers are
    read here, as Arrow writes what it has read.
    """
    metadata = file.metadata
    n_groups, n_columns = metadata.num_row_groups, metadata.num_columns
    chunks = np.empty((n_groups * n_columns, _CHUNK_NUMBERS), np.int64)
    written = io.BytesIO()
    metadata.write_metadata_file(written)
    try:
        _loops.column_chunks(written.getbuffer()[4:-8], chunks)  # between marks, and its length
    except ValueError:
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


class PageReader:
    """One column of one row group, read forwards; at most a page and what was read of the file is held.

    Parameters
    ----------
    stored : file
        The file's bytes.
    chunk : Chunk
        The column.
    """

    def __init__(self, stored: BinaryIO, chunk: Chunk) -> None:
        self._stored: Any = stored
        self._column = chunk.column
        self._codec = None if chunk.codec is None else pa.Codec(chunk.codec)
        self._buffer = self._window = memoryview(bytearray())
        self._at, self._end = chunk.start, chunk.end
        self._largest = min(chunk.uncompressed, _LARGEST_PAGE)
        self._rows_left = chunk.n_rows
        self._is_first = True
        self._levels = self._values = memoryview(b"")
        self._state = array("q", bytes(8 * _STATE_NUMBERS))
        self._header = array("q", bytes(8 * _HEADER_NUMBERS))
        self._page_nulls = -1
        self._dictionary: Any = None
        self._is_text = chunk.column.type == _TEXTS
        self._dtype = np.dtype(
            np.int64 if not self._is_text and chunk.column.type.bit_width == 64 else np.int32
        )

    def read(self, n_rows: int) -> pa.Array:
        """Return the values of the next rows.

        Raises
        ------
        RefusedError
            Where Arrow has to read them.
        ArrowException, OSError, ValueError
            Likewise.
        """
        _require(n_rows <= self._rows_left)
        data = pa.allocate_buffer(n_rows * self._dtype.itemsize)
        out, validity = np.frombuffer(data, self._dtype), np.zeros((n_rows + 7) // 8, np.uint8)
        n_read = n_nulls = 0
        while n_read < n_rows:
            if not self._state[_ROWS_LEFT]:
                self._next_page()
            n = min(n_rows - n_read, self._state[_ROWS_LEFT])
            n_nulls -= self._state[_NULLS]
            self._take(n_read, n, out, validity)
            n_nulls += self._state[_NULLS]
            n_read += n
            if not self._state[_ROWS_LEFT]:
                _require(self._page_nulls in {-1, self._state[_NULLS]})
        self._rows_left -= n_rows
        if not self._rows_left:
            _require(not self._window and self._at == self._end)
        buffers = [pa.py_buffer(validity) if n_nulls else None, data]
        if not self._is_text:
            return pa.Array.from_buffers(self._column.type, n_rows, buffers, n_nulls)
        return pa.DictionaryArray.from_buffers(_TEXTS, n_rows, buffers, self._texts(), n_nulls)

    def _take(self, first: int, n: int, out: NDArray[Any], validity: NDArray[np.uint8]) -> None:
        dictionary: Any
        if self._is_text:
            take, dictionary = _loops.page_indices, len(self._texts())
        else:
            take = _loops.page_words if self._dtype.itemsize == 4 else _loops.page_long_words
            dictionary = _NO_VALUES[self._dtype] if self._dictionary is None else self._dictionary
        take(self._levels, self._values, dictionary, self._state, first, n, out, validity)

    def _texts(self) -> pa.Array:
        return _NO_TEXTS if self._dictionary is None else self._dictionary

    def _next_page(self) -> None:
        """Go to the next page that has rows; read the dictionary before."""
        while True:
            header = self._header
            _loops.page_header(self._ahead(_LARGEST_HEADER)[:_LARGEST_HEADER], header)
            size, kind, uncompressed, compressed, has_checksum, checksum, n_values, encoding, *others = header
            left = len(self._window) - size + self._end - self._at
            _require(0 <= compressed <= min(left, _LARGEST_PAGE) and 0 <= uncompressed <= self._largest)
            _require(n_values >= 0)
            self._window = self._window[size:]
            body = self._ahead(compressed)[:compressed]
            self._window = self._window[compressed:]
            _require(not has_checksum or crc32(body) == checksum)
            if kind != _DICTIONARY:
                break
            _require(self._is_first and encoding in {_PLAIN, _PLAIN_DICTIONARY})
            self._is_first = False
            self._read_dictionary(self._decompressed(body, uncompressed), n_values)
        self._is_first = False
        _require(0 < n_values <= self._rows_left)
        _require(encoding in {_PLAIN, _PLAIN_DICTIONARY, _RLE_DICTIONARY})
        level_encoding, n_nulls, n_rows, level_bytes, repetition_bytes, is_compressed = others
        if kind == _SECOND_DATA:
            _require(n_rows == n_values and 0 <= n_nulls <= n_values and repetition_bytes == 0)
            _require(0 <= level_bytes <= min(compressed, uncompressed))
            _require(self._column.is_nullable or level_bytes == n_nulls == 0)
            levels, values = body[:level_bytes], body[level_bytes:]
            if is_compressed and len(values):
                values = self._decompressed(values, uncompressed - level_bytes)
            _require(len(values) == uncompressed - level_bytes)
        else:
            levels, values = body[:0], self._decompressed(body, uncompressed)
            if self._column.is_nullable:
                _require(level_encoding == _RLE and len(values) >= 4)
                end = 4 + int.from_bytes(values[:4], "little")
                _require(end <= len(values))
                levels, values = values[4:end], values[end:]
        self._open_page(levels, values, n_values, encoding, n_nulls)

    def _open_page(
        self, levels: memoryview, values: memoryview, n_values: int, encoding: int, n_nulls: int
    ) -> None:
        is_plain, width = encoding == _PLAIN, 0
        _require(not (is_plain and self._is_text))
        if not is_plain and len(values):
            width, values = values[0], values[1:]
            _require(width <= 32)
        self._levels, self._values, self._page_nulls = levels, values, n_nulls
        self._state = array("q", bytes(8 * _STATE_NUMBERS))
        self._state[_ROWS_LEFT] = n_values
        self._state[_IS_NULLABLE] = self._column.is_nullable
        self._state[_IS_PLAIN] = is_plain
        self._state[_INDEX_WIDTH] = width

    def _read_dictionary(self, page: memoryview, n_values: int) -> None:
        if not self._is_text:
            _require(len(page) == n_values * self._dtype.itemsize)
            self._dictionary = np.frombuffer(page, self._dtype).copy()
            return
        n_bytes = len(page) - 4 * n_values
        _require(n_bytes >= 0)
        ends, texts = np.empty(n_values + 1, np.int32), np.empty(n_bytes, np.uint8)
        _loops.dictionary_texts(page, ends, texts)
        self._dictionary = pa.StringArray.from_buffers(n_values, pa.py_buffer(ends), pa.py_buffer(texts))
        self._dictionary.validate(full=True)

    def _decompressed(self, body: memoryview, size: int) -> memoryview:
        """Return a page's bytes: exactly so many."""
        if self._codec is None:
            _require(len(body) == size)
            return body
        # Arrow does not say how many bytes there were of Snappy's, which states them first.
        _require(self._codec.name != "snappy" or _stated_size(body) == size)
        return memoryview(self._codec.decompress(body, size)).cast("B")

    def _ahead(self, n_bytes: int) -> memoryview:
        """Return the column's next bytes: at least so many, or all that are left.

        What was returned before is overwritten.
        """
        missing = min(n_bytes - len(self._window), self._end - self._at)
        if missing > 0:
            size = min(max(missing, _READ_BYTES), self._end - self._at)
            held = len(self._window)
            if held + size > len(self._buffer):
                self._buffer = memoryview(bytearray(max(held + size, 2 * _READ_BYTES)))
            self._buffer[:held] = self._window
            self._stored.seek(self._at)
            self._window = self._buffer[: held + size]
            rest = self._window[held:]
            while rest:
                n_read = self._stored.readinto(rest)
                _require(bool(n_read))
                rest = rest[n_read:]
            self._at += size
        return self._window


_NO_VALUES = {np.dtype(kind): np.empty(0, kind) for kind in (np.int32, np.int64)}
_NO_TEXTS = pa.array([], pa.string())


def _stated_size(body: memoryview) -> int:
    """Return the size that Snappy's bytes begin with."""
    size = 0
    for place, byte in enumerate(body[:5]):
        size |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return size
    raise RefusedError


def read_row_groups(
    stored: BinaryIO,
    file: pq.ParquetFile,
    numbers: Sequence[int],
    names: Sequence[str],
    block_rows: int,
    fewest_rows: int = FEWEST_ROWS,
) -> Iterator[pa.RecordBatch]:
    """Read columns of row groups, in blocks of at most `block_rows` rows.

    Columns that are not read from their pages are read by Arrow beside the others; where a page is refused,
    Arrow reads all columns of the row group from the next row on.

    Parameters
    ----------
    stored : file
        The file's bytes.
    file : pyarrow.parquet.ParquetFile
        The same, opened by Arrow.
    numbers : sequence of int
        Of the row groups.
    names : sequence of str
        The file's columns, in the order of the batches'.
    block_rows : int
        The largest number of rows of a batch.
    fewest_rows : int
        Row groups of fewer are left to Arrow.
    """
    n_rows = {number: file.metadata.row_group(number).num_rows for number in numbers}
    columns = flat_columns(file, names) if max(n_rows.values(), default=0) >= fewest_rows else {}
    all_chunks = readable(file, columns) if columns else []

    def chunks_of(number: int) -> dict[str, Chunk]:
        return all_chunks[number] if all_chunks and n_rows[number] >= fewest_rows else {}

    for is_by_pages, alike in groupby(numbers, lambda number: bool(chunks_of(number))):
        if not is_by_pages:
            yield from read_by_arrow(file, list(alike), names, block_rows)
            continue
        for number in alike:
            yield from _read_row_group(stored, file, number, names, chunks_of(number), block_rows)


def _read_row_group(
    stored: BinaryIO,
    file: pq.ParquetFile,
    number: int,
    names: Sequence[str],
    chunks: dict[str, Chunk],
    block_rows: int,
) -> Iterator[pa.RecordBatch]:
    n_read = 0
    try:
        for batch in _by_pages(stored, file, number, names, chunks, block_rows):
            yield batch
            n_read += batch.num_rows
    except (pa.ArrowException, OSError, ValueError):
        pass
    else:
        return
    for batch in read_by_arrow(file, [number], names, block_rows):
        skipped = min(n_read, batch.num_rows)
        n_read -= skipped
        if skipped < batch.num_rows:
            yield batch.slice(skipped)


def read_by_arrow(
    file: pq.ParquetFile, numbers: Sequence[int], names: Sequence[str], block_rows: int
) -> Iterator[pa.RecordBatch]:
    """Read columns of row groups in blocks of at most `block_rows` rows, all of them by Arrow."""
    yield from file.iter_batches(block_rows, row_groups=list(numbers), columns=list(names), use_threads=False)


def _by_pages(
    stored: BinaryIO,
    file: pq.ParquetFile,
    number: int,
    names: Sequence[str],
    chunks: dict[str, Chunk],
    block_rows: int,
) -> Iterator[pa.RecordBatch]:
    readers = {name: PageReader(stored, chunk) for name, chunk in chunks.items()}
    others = [name for name in names if name not in chunks]
    beside = read_by_arrow(file, [number], others, block_rows) if others else None
    left = file.metadata.row_group(number).num_rows
    while left:
        n_rows, arrays = min(block_rows, left), {}
        if beside is not None:
            batch = next(beside, None)
            if batch is None:
                raise RefusedError
            n_rows, arrays = batch.num_rows, dict(zip(others, batch.columns, strict=True))
        _require(0 < n_rows <= left)
        arrays |= {name: reader.read(n_rows) for name, reader in readers.items()}
        yield pa.RecordBatch.from_arrays([arrays[name] for name in names], list(names))
        left -= n_rows
    _require(beside is None or next(beside, None) is None)
