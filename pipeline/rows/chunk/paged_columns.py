"""Flat columns of Parquet files read page by page, straight into the codes that are summed.

Arrow opens the file, reads the footer and decompresses. Loops in C read page headers, null levels and
dictionary indices; a code is computed once for each entry of a dictionary. What is not exactly as expected is
left to Arrow, from the row on at which it stands, so that errors and values are Arrow's. It is chosen by
metadata alone: `_stored_columns` says what is served.
"""

from __future__ import annotations

import os
import sys
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from suffice.arrays import number_array
from suffice.pipeline.rows.chunk import jit
from suffice.pipeline.rows.sources.contract import exact_data, refuse
from suffice.pipeline.rows.sources.times_of_96_bits import parquet_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import BinaryIO

    import pyarrow.parquet as pq
    from numpy.typing import NDArray

    from suffice.pipeline.terms.declaration.domain_lookup import Codes

    Encode: TypeAlias = Callable[[pa.Array], Codes]
    """Gives each value of an array a code that follows from that value alone."""
    Bytes: TypeAlias = NDArray[np.uint8]
    Table: TypeAlias = NDArray[np.int64]

VARIABLE = "SUFFICE_PAGES"
ARROW = "arrow"

_FEWEST_BLOCK_ROWS = 1 << 16
"""Rows of which codes are made at a time, at least: those of whole pages, where columns have the same."""
_FEWEST_ROWS = 1 << 15
"""In a row group: in smaller ones a column's beginning costs more than what is saved."""
_MOST_PAGE_ROWS = 1 << 17
_FEWEST_PAGE_ROWS = 1 << 12
"""In a page that is decompressed, or whose texts are read, for itself: of smaller ones, where several follow
one another, each costs more than Arrow takes."""
_MOST_ENTRIES = 1 << 18
_MOST_READY_ROWS = _FEWEST_BLOCK_ROWS + _MOST_PAGE_ROWS
_MOST_PAGE_BYTES = 1 << 22
_READ_BYTES = 1 << 20
_BATCH_ROWS = 1 << 17
_BATCH_BYTES = 1 << 20
_LOOK_BYTES = 1 << 13
_HEADERS = 64
_NAMES = {"UNCOMPRESSED": None, "SNAPPY": "snappy", "ZSTD": "zstd"}
"""Codecs by the footer's names: Arrow ends the process where it is asked for one that it does not know."""
_MEMORY = pa.system_memory_pool()
"""Arrow's usual one gives memory back to the system, and takes new memory, with every page."""
_CODECS = {None: 0, "snappy": 1, "zstd": 2}
"""As in page_headers.c."""
_TYPES: dict[tuple[str, pa.DataType], np.dtype[Any] | None] = {
    ("BYTE_ARRAY", pa.string()): None,
    ("BYTE_ARRAY", pa.large_string()): None,
    ("INT32", pa.int32()): np.dtype("<i4"),
    ("INT32", pa.date32()): np.dtype("<i4"),
    ("INT64", pa.int64()): np.dtype("<i8"),
    ("FLOAT", pa.float32()): np.dtype("<f4"),
    ("DOUBLE", pa.float64()): np.dtype("<f8"),
}
_ARROW_TYPES = frozenset(kind for _, kind in _TYPES)
_ENCODINGS = frozenset({"PLAIN", "RLE", "BIT_PACKED", "PLAIN_DICTIONARY", "RLE_DICTIONARY"})
_DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_2 = 0, 2, 3
_N_VALUES, _BEGIN, _COMPRESSED, _UNCOMPRESSED, _LEVELS, _IS_COMPRESSED, _, _CHECKSUM, _N_COLUMNS = range(
    2, 11
)
"""Columns of a table of pages: the first two are kind and encoding."""


class _LeftToArrowError(Exception):
    """Something is not as expected."""


@exact_data(travels=False)
class CodedRows:
    """Rows as the codes of some columns, in place of the columns."""

    num_rows: int
    codes: dict[tuple[str, Encode], Codes]


def codes_of(rows: pa.RecordBatch | CodedRows, column: str, encode: Encode) -> Codes:
    """Return the codes of a column, which may be overwritten, shape (n_rows,), int32."""
    if isinstance(rows, CodedRows):
        return rows.codes[column, encode]
    return encode(rows.column(column))


class ColumnReader:
    """Reads a column's code in every row; lives for one task.

    Attributes
    ----------
    column : str
        The column.
    codes : callable
        Returns one code per value of an Arrow array, shape (n_rows,), int32.
    """

    column: str
    codes: Encode

    def read(self, rows: pa.RecordBatch | CodedRows) -> Codes:
        """Return the codes of some rows, which may be overwritten, shape (n_rows,), int32."""
        return codes_of(rows, self.column, self.codes)


def is_used() -> bool:
    """Tell whether pages are read here: where the module in C was built, unless Arrow is asked for."""
    return jit.MODULE is not None and os.environ.get(VARIABLE) != ARROW and sys.byteorder == "little"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """Where a column of a row group lies, and how it is stored, as the footer says."""

    name: str
    begin: int
    size: int
    uncompressed: int
    n_rows: int
    kind: pa.DataType
    width: np.dtype[Any] | None
    codec: str | None
    is_optional: bool


class PageReader:
    """Reads row groups of flat columns by pages; lives for one task.

    Parameters
    ----------
    coders : sequence of (str, callable)
        What is wanted: columns, and what gives their values codes.
    """

    def __init__(self, coders: Sequence[tuple[str, Encode]]) -> None:
        self._coders: dict[str, list[Encode]] = {}
        for name, encode in coders:
            self._coders.setdefault(name, []).append(encode)
        self._buffers: dict[tuple[str, Encode], Codes] = {}

    def read(
        self, content: BinaryIO, file: pq.ParquetFile, number: int
    ) -> Iterator[pa.RecordBatch | CodedRows]:
        """Read the codes of a row group in blocks, as far as everything is as expected.

        Yields
        ------
        CodedRows
            Consecutive rows from the first on: all, or fewer where the others are left to Arrow.
        """
        stored = _stored_columns(content, file, number, list(self._coders))
        if not stored:
            return
        left = stored[0].n_rows
        columns = [_Column(content, of, self._coders[of.name], self._buffers) for of in stored]
        while left:
            codes: dict[tuple[str, Encode], Codes] = {}
            try:
                size = min(column.ready(min(left, _FEWEST_BLOCK_ROWS)) for column in columns)
                for column in columns:
                    codes |= column.take(size)
                left -= size
                if not left:
                    for column in columns:
                        column.require_end()
            except (_LeftToArrowError, ValueError, OSError, pa.ArrowException):
                return
            yield CodedRows(num_rows=size, codes=codes)


def _stored_columns(
    content: BinaryIO, file: pq.ParquetFile, number: int, names: Sequence[str]
) -> list[_Stored] | None:
    """Return where the columns of a row group lie; None where one is not served."""
    metadata = file.metadata
    try:
        schema, group = file.schema_arrow, metadata.row_group(number)
        places = {metadata.schema.column(index).path: index for index in range(metadata.num_columns)}
        is_served = (
            group.num_rows >= _FEWEST_ROWS
            and len(places) == metadata.num_columns
            and len(set(schema.names)) == len(schema.names)
            and all(name in places and _of_values(schema.field(name)) in _ARROW_TYPES for name in names)
        )
        if not is_served:
            return None
        # Arrow looks first, at all that the footer says of each column and at its first page: what it refuses
        # there ends the process where it is asked for by parts.
        with parquet_file(
            content,
            metadata=metadata,
            page_checksum_verification=True,
            pre_buffer=False,
            buffer_size=_LOOK_BYTES,
        ) as looking:
            next(looking.iter_batches(1, row_groups=[number], columns=list(names), use_threads=False))
        columns = [_stored_column(metadata, group, places[name], schema.field(name)) for name in names]
    except (KeyError, ValueError, OSError, pa.ArrowException, StopIteration):
        return None
    return [column for column in columns if column is not None] if all(columns) else None


def _of_values(field: pa.Field) -> pa.DataType:
    return field.type.value_type if pa.types.is_dictionary(field.type) else field.type


def _stored_column(
    metadata: pq.FileMetaData, group: pq.RowGroupMetaData, place: int, field: pa.Field
) -> _Stored | None:
    column, chunk = metadata.schema.column(place), group.column(place)
    kind = (chunk.physical_type, _of_values(field))
    begin = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset is not None:
        begin = min(begin, chunk.dictionary_page_offset)
    is_served = (
        kind in _TYPES
        and column.path == column.name == chunk.path_in_schema == field.name
        and column.max_repetition_level == 0
        and column.max_definition_level in {0, 1}
        and chunk.compression in _NAMES
        and _ENCODINGS.issuperset(chunk.encodings)
        and chunk.num_values == group.num_rows
        and begin >= len(b"PAR1")
        and 0 < chunk.total_compressed_size < 1 << 31
    )
    if not is_served:
        return None
    return _Stored(
        name=field.name,
        begin=begin,
        size=chunk.total_compressed_size,
        uncompressed=chunk.total_uncompressed_size,
        n_rows=group.num_rows,
        kind=_of_values(field),
        width=_TYPES[kind],
        codec=_NAMES[chunk.compression],
        is_optional=column.max_definition_level == 1,
    )


class _Column:
    """One column of a row group: its pages in order, and the codes of rows that are not yet taken."""

    def __init__(
        self,
        content: BinaryIO,
        of: _Stored,
        encodes: Sequence[Encode],
        buffers: dict[tuple[str, Encode], Codes],
    ) -> None:
        self._of = of
        self._pages = _pages(content, of)
        self._codec = None if of.codec is None else pa.Codec(of.codec)
        self._coded = [_Coded(encode, _buffer(buffers, of.name, encode), of.kind) for encode in encodes]
        self._has_dictionary = self._is_begun = False
        self._taken = self._ready = self._n_rows = 0

    def ready(self, least: int) -> int:
        """Return how many rows are ready, having read more where there are fewer than so many."""
        while self._ready - self._taken < least:
            pages = next(self._pages, None)
            if pages is None:
                raise _LeftToArrowError
            self._read(pages)
        return self._ready - self._taken

    def take(self, size: int) -> dict[tuple[str, Encode], Codes]:
        """Return the codes of the next rows, of every encoding."""
        rows = slice(self._taken, self._taken + size)
        self._taken += size
        return {(self._of.name, coded.encode): coded.buffer[rows] for coded in self._coded}

    def require_end(self) -> None:
        """Check that nothing is left."""
        if (
            self._ready != self._taken
            or self._n_rows != self._of.n_rows
            or next(self._pages, None) is not None
        ):
            raise _LeftToArrowError

    def _read(self, pages: _Pages) -> None:
        data = self._decompressed(pages)
        if pages.kind == _DICTIONARY_PAGE:
            begin = pages.begin if self._codec is None else 0
            self._begin(data[begin : begin + pages.size], pages.n_values)
            return
        self._is_begun = True
        if pages.n_values > self._of.n_rows - self._n_rows:
            raise _LeftToArrowError
        if pages.is_plain:
            self._read_plain(data, pages)
            return
        if not self._has_dictionary:
            raise _LeftToArrowError
        rows = self._next_rows(pages.n_values)
        for coded in self._coded:
            native().page_codes(data, pages.table, self._of.is_optional, coded.entries, coded.buffer[rows])

    def _next_rows(self, n_rows: int) -> slice:
        if self._taken:  # few are left of them where columns have pages of as many rows
            left = slice(self._taken, self._ready)
            for coded in self._coded:
                coded.buffer[: self._ready - self._taken] = coded.buffer[left]
            self._taken, self._ready = 0, self._ready - self._taken
        rows = slice(self._ready, self._ready + n_rows)
        if rows.stop > _MOST_READY_ROWS:
            raise _LeftToArrowError
        self._ready += n_rows
        self._n_rows += n_rows
        return rows

    def _read_plain(self, data: Bytes, pages: _Pages) -> None:
        is_optional, table = self._of.is_optional, pages.table
        joined, counts = np.empty(len(data), np.uint8), np.empty(2, np.int64)
        width = 0 if self._of.width is None else self._of.width.itemsize
        native().join_values(data, table, is_optional, width, joined, counts)
        n_present, size = counts.tolist()
        array = _plain(joined[:size], n_present, self._of)
        rows = self._next_rows(pages.n_values)
        for coded in self._coded:
            codes = coded.encode(array)
            native().value_codes(data, table, is_optional, codes, coded.missing, coded.buffer[rows])

    def _begin(self, data: Bytes, n_entries: int) -> None:
        """Give the entries of the dictionary, which comes before all else, their codes."""
        if self._is_begun or n_entries > _MOST_ENTRIES:
            raise _LeftToArrowError
        self._is_begun = self._has_dictionary = True
        array = _plain(data, n_entries, self._of)
        for coded in self._coded:
            coded.entries = np.append(coded.encode(array), np.int32(coded.missing))

    def _decompressed(self, pages: _Pages) -> Bytes:
        """Return the bytes of pages, one after the other, and let the table say where each begins."""
        table, window = pages.table, pages.window
        if self._codec is None:
            return window
        if pages.kind != _DATA_PAGE_2:
            native().pack_pages(window, table)
            return self._decompress(window[pages.begin : pages.begin + pages.compressed], pages.size)
        # Levels are not compressed; there is one page.
        n_levels, is_compressed = table[0, _LEVELS : _IS_COMPRESSED + 1].tolist()
        levels, values = np.split(window[pages.begin : pages.begin + pages.compressed], [n_levels])
        if is_compressed:
            values = self._decompress(values, pages.size - n_levels)
        table[0, _BEGIN] = 0
        return np.concatenate([levels, values])

    def _decompress(self, data: Bytes, size: int) -> Bytes:
        if self._codec is None:
            raise _LeftToArrowError
        values = self._codec.decompress(data, decompressed_size=size, memory_pool=_MEMORY)
        return np.frombuffer(values, np.uint8)


class _Coded:
    """The codes of a column by one encoding."""

    def __init__(self, encode: Encode, buffer: Codes, kind: pa.DataType) -> None:
        self.encode, self.buffer = encode, buffer
        self.missing = int(encode(pa.nulls(1, kind))[0])
        self.entries = np.empty(0, np.int32)

    __reduce_ex__ = refuse


def _buffer(buffers: dict[tuple[str, Encode], Codes], name: str, encode: Encode) -> Codes:
    if (name, encode) not in buffers:
        buffers[name, encode] = np.empty(_MOST_READY_ROWS, np.int32)
    return buffers[name, encode]


@exact_data(travels=False)
class _Pages:
    """Consecutive pages of one kind, where they begin, and how many values and bytes they have."""

    window: Bytes
    table: Table
    kind: int
    is_plain: bool
    begin: int
    n_values: int
    compressed: int
    size: int


def _pages(content: BinaryIO, of: _Stored) -> Iterator[_Pages]:
    """Yield the pages of a column, a few at a time; every byte of the column belongs to one.

    Bytes are read in parts: a header and its page lie in one, which grows where it has to.
    """
    window = np.empty(min(of.size, _READ_BYTES), np.uint8)
    table = np.empty((_HEADERS, _N_COLUMNS), np.int64)
    position, left, kept = of.begin, of.size, 0
    while left or kept:
        size = min(left, len(window) - kept)
        content.seek(position)
        if size and content.readinto(window[kept : kept + size]) != size:  # type: ignore[attr-defined]
            raise _LeftToArrowError
        position, left, kept = position + size, left - size, kept + size
        native().page_headers(window[:kept], _CODECS[of.codec], table)
        n_pages, end = table[0, :2].tolist()
        if n_pages:
            yield from _alike(window, table[1 : n_pages + 1], of)
            window[: kept - end] = window[end:kept]
            kept -= end
        elif left and len(window) < 2 * _MOST_PAGE_BYTES:
            window = np.concatenate([window[:kept], np.empty(len(window), np.uint8)])
        else:
            raise _LeftToArrowError


def _alike(window: Bytes, table: Table, of: _Stored) -> Iterator[_Pages]:
    """Yield pages, those together that are decompressed at once."""
    headers = table.tolist()
    most_bytes, is_each_alone = min(of.uncompressed, _MOST_PAGE_BYTES), of.codec == "snappy"
    start = 0
    while start < len(headers):
        kind, encoding, _, begin = headers[start][:4]
        is_alone = is_each_alone or kind != _DATA_PAGE or (not encoding and of.width is None)
        following = headers[start + 1 : start + 3]
        sizes = [header[_N_VALUES] for header in (headers[start], *following[:1])]
        is_of_few = len(following) > 1 and max(sizes) < _FEWEST_PAGE_ROWS
        if is_alone and is_of_few and kind != _DICTIONARY_PAGE:
            raise _LeftToArrowError
        n_values = compressed = size = 0
        end = start
        for header in headers[start:]:
            most_values = _MOST_ENTRIES if kind == _DICTIONARY_PAGE else _MOST_PAGE_ROWS
            if header[_N_VALUES] > most_values or header[_UNCOMPRESSED] > most_bytes:
                raise _LeftToArrowError
            is_full = (
                n_values + header[_N_VALUES] > _BATCH_ROWS or size + header[_UNCOMPRESSED] > _BATCH_BYTES
            )
            if end > start and (is_full or is_alone or header[:2] != [kind, encoding]):
                break
            if header[_CHECKSUM] >= 0:
                _require_checksum(window, header)
            n_values, end = n_values + header[_N_VALUES], end + 1
            compressed, size = compressed + header[_COMPRESSED], size + header[_UNCOMPRESSED]
        yield _Pages(
            window=window,
            table=table[start:end],
            kind=kind,
            is_plain=not encoding,
            begin=begin,
            n_values=n_values,
            compressed=compressed,
            size=size,
        )
        start = end


def _require_checksum(window: Bytes, header: Sequence[int]) -> None:
    begin = header[_BEGIN]
    if zlib.crc32(window[begin : begin + header[_COMPRESSED]].tobytes()) != header[_CHECKSUM]:
        raise _LeftToArrowError


def _plain(values: Bytes, n_values: int, of: _Stored) -> pa.Array:
    """Return values that stand one after the other; nothing else may."""
    if of.width is not None:
        if len(values) != n_values * of.width.itemsize:
            raise _LeftToArrowError
        array = number_array(_aligned(values).view(of.width))
        return array if array.type == of.kind else array.view(of.kind)
    if len(values) < 4 * n_values:
        raise _LeftToArrowError
    offsets = np.empty(n_values + 1, np.int32)
    texts = np.empty(len(values), np.uint8)
    native().plain_texts(values, offsets, texts)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(texts)]
    return pa.Array.from_buffers(pa.string(), n_values, buffers, null_count=0)


def _aligned(values: Bytes) -> Bytes:
    return values if values.ctypes.data % 8 == 0 else values.copy()


def native() -> Any:
    """Return the module in C."""
    return jit.MODULE
