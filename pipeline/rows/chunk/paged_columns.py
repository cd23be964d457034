"""Flat columns of Parquet files read page by page, straight into the codes that are summed.

Arrow opens the file, reads the footer and decompresses. Loops in C read page headers, null levels and
dictionary indices; a code is computed once for each entry of a dictionary. What is not exactly as expected is
left to Arrow, from the row on at which it stands, so that errors and values are Arrow's. It is chosen by
metadata alone: `_stored_columns` says what is served.
"""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from suffice.arrays import number_array
from suffice.pipeline.rows.chunk import jit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import BinaryIO

    import pyarrow.parquet as pq
    from numpy.typing import NDArray

    from suffice.pipeline.terms.declaration.domain_lookup import Codes

    Encode: TypeAlias = Callable[[pa.Array], Codes]
    """Gives each value of an array a code that follows from that value alone."""
    Numbers: TypeAlias = NDArray[np.uint8]

VARIABLE = "SUFFICE_PAGES"
_ARROW = "arrow"

BLOCK_ROWS = 1 << 16
"""Rows of which codes are made at a time."""
_FEWEST_ROWS = 1 << 15
"""In a row group: in smaller ones a column's beginning costs more than what is saved."""
_MOST_PAGE_ROWS = 1 << 17
_MOST_ENTRIES = 1 << 18
_MOST_PAGE_BYTES = 1 << 22
_READ_BYTES = 1 << 20
_HEADERS = 64
_CODECS = {"UNCOMPRESSED": None, "SNAPPY": "snappy", "ZSTD": "zstd"}
"""Codecs by the footer's names: Arrow ends the process where it is asked for one that it does not know."""
_TYPES: dict[tuple[str, pa.DataType], np.dtype[Any] | None] = {
    ("BYTE_ARRAY", pa.string()): None,
    ("BYTE_ARRAY", pa.large_string()): None,
    ("INT32", pa.int32()): np.dtype("<i4"),
    ("INT32", pa.date32()): np.dtype("<i4"),
    ("INT64", pa.int64()): np.dtype("<i8"),
    ("FLOAT", pa.float32()): np.dtype("<f4"),
    ("DOUBLE", pa.float64()): np.dtype("<f8"),
}
_ENCODINGS = frozenset({"PLAIN", "RLE", "BIT_PACKED", "PLAIN_DICTIONARY", "RLE_DICTIONARY"})
_PLAIN, _DICTIONARY_PAGE, _DATA_PAGE_2 = 0, 2, 3
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


class _LeftToArrowError(Exception):
    """Something is not as expected."""


class CodedRows:
    """Rows as the codes of some columns, in place of the columns."""

    def __init__(self, num_rows: int, codes: dict[tuple[str, Encode], Codes]) -> None:
        self.num_rows = num_rows
        self.codes = codes


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
    return jit.MODULE is not None and os.environ.get(VARIABLE) != _ARROW


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
        stored = _stored_columns(file, number, list(self._coders))
        if stored is None:
            return
        n_rows = stored[0].n_rows
        columns = [_Column(content, of, self._coders[of.name], self._buffers) for of in stored]
        for start in range(0, n_rows, BLOCK_ROWS):
            size = min(BLOCK_ROWS, n_rows - start)
            codes: dict[tuple[str, Encode], Codes] = {}
            try:
                for column in columns:
                    codes |= column.block(size)
                if start + size == n_rows:
                    for column in columns:
                        column.require_end()
            except (_LeftToArrowError, ValueError, OSError):  # Arrow's errors are some of these
                return
            yield CodedRows(size, codes)


def _stored_columns(file: pq.ParquetFile, number: int, names: Sequence[str]) -> list[_Stored] | None:
    """Return where the columns of a row group lie; None where one is not served."""
    metadata = file.metadata
    group = metadata.row_group(number)
    schema = file.schema_arrow
    if group.num_rows < _FEWEST_ROWS:
        return None
    places = {metadata.schema.column(index).path: index for index in range(metadata.num_columns)}
    if len(places) != metadata.num_columns or len(set(schema.names)) != len(schema.names):
        return None
    try:
        columns = [
            _stored_column(metadata, group, places[name], schema.field(name)) for name in names
        ]
        if not all(columns):
            return None
        # Arrow looks at every column of the footer, and at the first page of these.
        next(file.iter_batches(1, row_groups=[number], columns=list(names), use_threads=False))
    except (KeyError, ValueError, OSError, pa.ArrowException, StopIteration):
        return None
    return columns


def _stored_column(
    metadata: pq.FileMetaData, group: pq.RowGroupMetaData, place: int, field: pa.Field
) -> _Stored | None:
    column, chunk = metadata.schema.column(place), group.column(place)
    kind = (chunk.physical_type, field.type)
    statistics = chunk.statistics
    if statistics is not None and statistics.has_min_max:
        _ = statistics.min_raw, statistics.max_raw
    begin = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset is not None:
        begin = min(begin, chunk.dictionary_page_offset)
    is_served = (
        kind in _TYPES
        and column.path == column.name == chunk.path_in_schema == field.name
        and column.max_repetition_level == 0
        and column.max_definition_level in {0, 1}
        and chunk.compression in _CODECS
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
        kind=field.type,
        width=_TYPES[kind],
        codec=_CODECS[chunk.compression],
        is_optional=column.max_definition_level == 1,
    )


class _Column:
    """One column of a row group: its pages in order, and the codes of rows that are not yet taken."""

    def __init__(
        self, content: BinaryIO, of: _Stored, encodes: Sequence[Encode], buffers: dict[tuple[str, Encode], Codes]
    ) -> None:
        self._of = of
        self._pages = _pages(content, of)
        self._codec = None if of.codec is None else pa.Codec(of.codec)
        self._coded = [_Coded(encode, _buffer(buffers, of.name, encode), of.kind) for encode in encodes]
        self._dictionary_size: int | None = None
        self._is_begun = False
        self._ready = self._taken = self._n_rows = 0

    def block(self, size: int) -> dict[tuple[str, Encode], Codes]:
        """Return the codes of the next rows, of every encoding."""
        for coded in self._coded:
            coded.drop(self._taken, self._ready)
        self._ready -= self._taken
        while self._ready < size:
            header, data = next(self._pages, (None, None))
            if header is None or data is None:
                raise _LeftToArrowError
            self._read(header, data)
        self._taken = size
        return {(self._of.name, coded.encode): coded.buffer[:size] for coded in self._coded}

    def require_end(self) -> None:
        """Check that nothing is left."""
        if self._ready != self._taken or self._n_rows != self._of.n_rows or next(self._pages, None) is not None:
            raise _LeftToArrowError

    def _read(self, header: list[int], data: memoryview) -> None:
        kind, encoding, n_values, _, _, uncompressed, n_levels, is_compressed, n_nulls, crc = header
        if uncompressed > min(self._of.uncompressed, _MOST_PAGE_BYTES):
            raise _LeftToArrowError
        if crc >= -(2**31) and zlib.crc32(data) != crc % 2**32:
            raise _LeftToArrowError
        levels = _NOTHING
        if kind == _DATA_PAGE_2:
            if bool(n_levels) != self._of.is_optional and n_values:
                raise _LeftToArrowError
            levels = np.frombuffer(data[:n_levels], np.uint8)
            data, uncompressed = data[n_levels:], uncompressed - n_levels
        values = self._decompressed(data, uncompressed, is_compressed=bool(is_compressed))
        if kind == _DICTIONARY_PAGE:
            self._begin(values, n_values)
            return
        self._is_begun = True
        if n_values > _MOST_PAGE_ROWS or n_values > self._of.n_rows - self._n_rows:
            raise _LeftToArrowError
        if kind != _DATA_PAGE_2 and self._of.is_optional:
            end = 4 + int(values[:4].view("<u4")[0]) if len(values) >= 4 else len(values) + 1
            if end > len(values):
                raise _LeftToArrowError
            levels, values = values[4:end], values[end:]
        n_present = n_values
        if self._of.is_optional:
            count = np.empty(1, np.int64)
            _native().count_present(levels, n_values, count)
            n_present = int(count[0])
        if n_nulls >= 0 and n_nulls != n_values - n_present:
            raise _LeftToArrowError
        rows = slice(self._ready, self._ready + n_values)
        if encoding == _PLAIN:
            array = _plain(values, n_present, self._of)
            for coded in self._coded:
                _native().value_codes(levels, coded.encode(array), coded.missing, coded.buffer[rows])
        else:
            if self._dictionary_size is None:
                raise _LeftToArrowError
            for coded in self._coded:
                _native().index_codes(levels, values, n_present, coded.entries, coded.buffer[rows])
        self._ready += n_values
        self._n_rows += n_values

    def _begin(self, values: Numbers, n_entries: int) -> None:
        """Give the entries of the dictionary, which comes before all else, their codes."""
        if self._is_begun or n_entries > _MOST_ENTRIES:
            raise _LeftToArrowError
        self._is_begun, self._dictionary_size = True, n_entries
        array = _plain(values, n_entries, self._of)
        for coded in self._coded:
            coded.entries = np.append(coded.encode(array), np.int32(coded.missing))

    def _decompressed(self, data: memoryview, size: int, *, is_compressed: bool) -> Numbers:
        if self._codec is None or not is_compressed:
            if len(data) != size:
                raise _LeftToArrowError
            return np.frombuffer(data, np.uint8)
        if _stated_size(data, self._of.codec) != size:
            raise _LeftToArrowError
        return np.frombuffer(self._codec.decompress(data, decompressed_size=size), np.uint8)


_NOTHING = np.empty(0, np.uint8)


class _Coded:
    """The codes of a column by one encoding."""

    def __init__(self, encode: Encode, buffer: Codes, kind: pa.DataType) -> None:
        self.encode, self.buffer = encode, buffer
        self.missing = int(encode(pa.nulls(1, kind))[0])
        self.entries = np.empty(0, np.int32)

    def drop(self, taken: int, ready: int) -> None:
        """Forget the first codes of those that are ready."""
        if taken < ready:
            self.buffer[: ready - taken] = self.buffer[taken:ready].copy()


def _buffer(buffers: dict[tuple[str, Encode], Codes], name: str, encode: Encode) -> Codes:
    if (name, encode) not in buffers:
        buffers[name, encode] = np.empty(BLOCK_ROWS + _MOST_PAGE_ROWS, np.int32)
    return buffers[name, encode]


def _pages(content: BinaryIO, of: _Stored) -> Iterator[tuple[list[int], memoryview]]:
    """Yield the pages of a column, as headers and bytes; every byte of the column belongs to one.

    Bytes are read in parts: a header and its page lie in one, which grows where it has to.
    """
    position, left, kept, wanted = of.begin, of.size, b"", _READ_BYTES
    table = np.empty((_HEADERS, 10), np.int64)
    while left or kept:
        read = _read(content, position, min(left, max(0, wanted - len(kept))))
        position, left = position + len(read), left - len(read)
        window = kept + read if kept else read
        _native().page_headers(np.frombuffer(window, np.uint8), table)
        n_pages, end = table[0, :2].tolist()
        if not n_pages:
            if not left or wanted > 2 * _MOST_PAGE_BYTES:
                raise _LeftToArrowError
            wanted *= 2
            kept = window
            continue
        view = memoryview(window)
        for header in table[1 : n_pages + 1].tolist():
            yield header, view[header[3] : header[3] + header[4]]
        kept, wanted = window[end:], _READ_BYTES


def _read(content: BinaryIO, position: int, size: int) -> bytes:
    content.seek(position)
    data = content.read(size)
    if len(data) != size:
        raise _LeftToArrowError
    return data


def _stated_size(data: memoryview, codec: str | None) -> int | None:
    """Return how many bytes compressed ones say that they hold: a size that decompressing checks."""
    if codec == "snappy":
        size = 0
        for place, byte in enumerate(data[:5]):
            size |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return size
        return None
    if len(data) < 9 or data[:4] != _ZSTD_MAGIC:
        return None
    flags = data[4]
    is_single, bytes_of_size = flags >> 5 & 1, flags >> 6
    if flags & 0b1011 or not (is_single or bytes_of_size):
        return None
    begin, length = 5 + (not is_single), 1 << bytes_of_size if bytes_of_size else 1
    size = int.from_bytes(data[begin : begin + length], "little")
    return size + 256 if length == 2 else size


def _plain(values: Numbers, n_values: int, of: _Stored) -> pa.Array:
    """Return values that stand one after the other; nothing else may."""
    if of.width is not None:
        if len(values) != n_values * of.width.itemsize:
            raise _LeftToArrowError
        numbers = np.frombuffer(values, of.width)
        array = number_array(numbers if numbers.flags.aligned else numbers.copy())
        return array if array.type == of.kind else array.view(of.kind)
    if len(values) < 4 * n_values:
        raise _LeftToArrowError
    offsets = np.empty(n_values + 1, np.int32)
    texts = np.empty(len(values), np.uint8)
    _native().plain_texts(values, offsets, texts)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(texts)]
    return pa.Array.from_buffers(pa.string(), n_values, buffers, null_count=0)


def _native() -> Any:
    return jit.MODULE
