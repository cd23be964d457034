"""Columns of Parquet files that are not nested, read from their pages by the module in C.

What is read here is what Arrow reads, array by array. Anything that is not exactly as the format has it, and
anything that is rare, is refused, and Arrow reads the row group: it alone decides what is damaged, and how a
release says so. So it is safe to be strict here, and never to be lenient. Pages are decompressed by Arrow.
"""

from __future__ import annotations

from array import array
from collections import deque
from itertools import groupby
from typing import TYPE_CHECKING, Any, BinaryIO
from zlib import crc32

import numpy as np
import pyarrow as pa

from suffice.pipeline.rows.sources.flat_columns import (
    PLAIN,
    PLAIN_DICTIONARY,
    RLE,
    RLE_DICTIONARY,
    TEXTS,
    Chunk,
    flat_columns,
    readable,
)
from suffice.pipeline.rows.sources.native_module import MODULE

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    import pyarrow.parquet as pq

FEWEST_ROWS = 1 << 14
"""Row groups of fewer are left to Arrow, which reads several in one batch."""
_READ_BYTES = 1 << 18
_LARGEST_HEADER = 1 << 13
_LARGEST_PAGE = 1 << 26
"""In bytes: what is larger is left to Arrow, before anything is allocated."""

# Numbers of the format.
_DICTIONARY, _SECOND_DATA = 2, 3
_OF_DICTIONARIES = frozenset({PLAIN, PLAIN_DICTIONARY})
_OF_VALUES = _OF_DICTIONARIES | {RLE_DICTIONARY}

# As the module in C has them.
_HEADER_NUMBERS, _STATE_NUMBERS = 14, 15
_ROWS_LEFT, _IS_NULLABLE, _IS_PLAIN, _INDEX_WIDTH, _NULLS = range(5)

_loops: Any = MODULE


class RefusedError(ValueError):
    """A page is not what is read here, or is damaged: Arrow tells which."""


def _require(is_so: bool) -> None:
    if not is_so:
        raise RefusedError


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
        self._states_size = chunk.codec == "snappy"
        self._buffer = self._window = memoryview(bytearray())
        self._at, self._end = chunk.start, chunk.end
        self._largest = min(chunk.uncompressed, _LARGEST_PAGE)
        self._rows_left = chunk.n_rows
        self._is_first = True
        self._levels = self._values = memoryview(b"")
        self._state = array("q", bytes(8 * _STATE_NUMBERS))
        self._header = array("q", bytes(8 * _HEADER_NUMBERS))
        self._page_nulls = -1
        self._is_text = chunk.column.type == TEXTS
        is_long = not self._is_text and chunk.column.type.bit_width == 64
        self._dtype = np.dtype(np.int64 if is_long else np.int32)
        self._texts = _NO_TEXTS
        # What indices are looked up in; of texts their number, as indices stay.
        self._entries: Any = 0 if self._is_text else np.empty(0, self._dtype)
        if self._is_text:
            self._take = _loops.page_indices
        else:
            self._take = _loops.page_long_words if is_long else _loops.page_words

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
            self._take(self._levels, self._values, self._entries, self._state, n_read, n, out, validity)
            n_nulls += self._state[_NULLS]
            n_read += n
            if not self._state[_ROWS_LEFT]:
                _require(self._page_nulls in {-1, self._state[_NULLS]})
        self._rows_left -= n_rows
        if not self._rows_left:
            _require(not self._state[_ROWS_LEFT] and not self._window and self._at == self._end)
        buffers = [pa.py_buffer(validity) if n_nulls else None, data]
        if not self._is_text:
            return pa.Array.from_buffers(self._column.type, n_rows, buffers, n_nulls)
        return pa.DictionaryArray.from_buffers(TEXTS, n_rows, buffers, self._texts, n_nulls)

    def _next_page(self) -> None:
        """Go to the next page that has rows; read the dictionary before."""
        while True:
            header = self._header
            _loops.page_header(self._ahead(_LARGEST_HEADER)[:_LARGEST_HEADER], header)
            size, kind, uncompressed, compressed, has_checksum, checksum, n_values, encoding, *others = header
            left = len(self._window) - size + self._end - self._at
            _require(0 <= compressed <= min(left, _LARGEST_PAGE))
            _require(0 <= uncompressed <= self._largest and n_values >= 0)
            self._window = self._window[size:]
            body = self._ahead(compressed)[:compressed]
            self._window = self._window[compressed:]
            _require(not has_checksum or crc32(body) == checksum)
            if kind != _DICTIONARY:
                break
            _require(self._is_first and encoding in _OF_DICTIONARIES)
            self._is_first = False
            self._read_dictionary(self._decompressed(body, uncompressed), n_values)
        self._is_first = False
        _require(0 < n_values <= self._rows_left)
        _require(encoding in _OF_VALUES)
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
                _require(level_encoding == RLE and len(values) >= 4)
                end = 4 + int.from_bytes(values[:4], "little")
                _require(end <= len(values))
                levels, values = values[4:end], values[end:]
        self._open_page(levels, values, n_values, encoding, n_nulls)

    def _open_page(
        self, levels: memoryview, values: memoryview, n_values: int, encoding: int, n_nulls: int
    ) -> None:
        is_plain, width = encoding == PLAIN, 0
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
            self._entries = np.frombuffer(page, self._dtype).copy()
            return
        n_bytes = len(page) - 4 * n_values
        _require(n_bytes >= 0)
        ends, texts = np.empty(n_values + 1, np.int32), np.empty(n_bytes, np.uint8)
        _loops.dictionary_texts(page, ends, texts)
        self._texts = pa.StringArray.from_buffers(n_values, pa.py_buffer(ends), pa.py_buffer(texts))
        self._texts.validate(full=True)
        self._entries = n_values

    def _decompressed(self, body: memoryview, size: int) -> memoryview:
        """Return a page's bytes: exactly so many."""
        if self._codec is None:
            _require(len(body) == size)
            return body
        # Arrow does not say how many bytes there were of Snappy's, which states them first.
        _require(not self._states_size or _stated_size(body) == size)
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

    Columns that are not read from their pages are read by Arrow beside the others. Where a page is refused,
    Arrow reads all columns from the next row on: what wrote one such page wrote others.

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
    all_chunks = readable(stored, file, columns) if columns else []

    def chunks_of(number: int) -> dict[str, Chunk]:
        return all_chunks[number] if all_chunks and n_rows[number] >= fewest_rows else {}

    is_refused = False
    for is_by_pages, of_group in groupby(numbers, lambda number: bool(chunks_of(number))):
        alike = deque(of_group)
        while is_by_pages and alike and not is_refused:
            number = alike.popleft()
            is_refused = yield from _read_row_group(
                stored, file, number, names, chunks_of(number), block_rows
            )
        if alike:
            yield from read_by_arrow(file, list(alike), names, block_rows)


def _read_row_group(
    stored: BinaryIO,
    file: pq.ParquetFile,
    number: int,
    names: Sequence[str],
    chunks: dict[str, Chunk],
    block_rows: int,
) -> Generator[pa.RecordBatch, None, bool]:
    """Read a row group; return whether a page was refused."""
    n_read = 0
    try:
        for batch in _by_pages(stored, file, number, names, chunks, block_rows):
            yield batch
            n_read += batch.num_rows
    except (pa.ArrowException, OSError, ValueError):
        pass
    else:
        return False
    for batch in read_by_arrow(file, [number], names, block_rows):
        skipped = min(n_read, batch.num_rows)
        n_read -= skipped
        if skipped < batch.num_rows:
            yield batch.slice(skipped)
    return True


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
