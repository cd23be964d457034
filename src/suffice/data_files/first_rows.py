"""The first rows of a Parquet file that others wrote: bounded, of plain columns, and refused otherwise.

The file has the hash that its manifest states, and says nothing else that may be believed: a few bytes can
claim any number of rows, columns and names.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from suffice.errors import PublicationCorruptError
from suffice.storage.releases.parquet_layout import ThriftReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

MOST_COLUMNS = 64
_LONGEST_NAMES = 2**20
"""Bytes of a text in the footer: the source stands there as one."""
_MOST_ENTRIES = 2**17
"""Of a list in the footer: row groups, or columns of one."""
_DATA_PAGE, _PLAIN, _UNCOMPRESSED = 0, 0, 0
"""Of Parquet: a page of values, of the first version; the encoding of values as they are; and no codec."""


def first_rows(data: bytes, most: int, *, rows: int | None = None) -> tuple[list[dict[str, Any]], int]:
    """Return the first rows of a file, and how many it has.

    Parameters
    ----------
    data : bytes
        Of a whole file; no larger than what may be held.
    most : int, >= 1
        Rows to decode at most; all that is decoded is one batch of them.
    rows : int, optional
        How many the file has to have: what its manifest states.

    Raises
    ------
    PublicationCorruptError
        Where it is no Parquet file as suffice writes them: plain columns of numbers, texts and truth values.
    """
    import pyarrow as pa  # only reading needs it
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(
            io.BytesIO(data),
            thrift_string_size_limit=_LONGEST_NAMES,
            thrift_container_size_limit=_MOST_ENTRIES,
        )
        stated = file.metadata
        names = file.schema_arrow.names
        if not 0 < len(names) <= MOST_COLUMNS or len({*names}) < len(names):
            raise _refused(f"it has not 1 to {MOST_COLUMNS} columns, each with a name of its own")
        if not all(_is_plain(column.type) for column in file.schema_arrow):
            raise _refused("its columns hold neither numbers, texts nor truth values")
        if stated.num_rows < 0 or (rows is not None and stated.num_rows != rows):
            raise _refused("it has not the rows that the manifest states")
        if stated.num_rows == 0:
            return [], 0
        if not all(_is_as_it_is(data, *place) for place in _places(data)):
            raise _refused("its columns are compressed, or use a dictionary")
        batch = next(file.iter_batches(batch_size=most, row_groups=[0], use_threads=False), None)
        first = [] if batch is None else batch.to_pylist()
    except PublicationCorruptError:
        raise
    except (pa.ArrowException, OSError, ArithmeticError, LookupError, TypeError, ValueError, MemoryError):
        raise _refused("it is no readable Parquet file") from None
    return first, int(stated.num_rows)


def stated_source(data: bytes) -> str:
    """Return what a file that :func:`first_rows` read states of its source; empty where that is nothing."""
    import pyarrow.parquet as pq

    stated: dict[bytes, bytes] = pq.read_schema(io.BytesIO(data)).metadata or {}
    return stated.get(b"source", b"").decode("utf-8", errors="replace")


def _places(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Return each column of the first row group: its codec, where its pages begin, and their bytes.

    They are read here, as pyarrow's accessors of columns end the process where the footer contradicts itself.
    """
    end = len(data) - 8
    metadata: Any = ThriftReader(data, end - int.from_bytes(data[-8:-4], "little"), end).struct()
    for column in metadata[4][0][1]:
        yield column[3][4], column[3][9], column[3][7]


def _is_as_it_is(data: bytes, codec: int, position: int, size: int) -> bool:
    """Tell whether all values of a column stand in its pages as they are: none is larger than the file.

    The footer says which encodings there are, and a page need not keep to it: a text of a dictionary may
    stand for any number of values.
    """
    end = position + size
    if codec != _UNCOMPRESSED or not 0 < position < end <= len(data):
        return False
    while position < end:
        reader = ThriftReader(data, position, end)
        page: Any = reader.struct()
        if page[1] != _DATA_PAGE or page[5][2] != _PLAIN or not 0 <= page[2] == page[3]:
            return False
        position = reader.position + page[3]
    return position == end


def _is_plain(kind: pa.DataType) -> bool:
    import pyarrow as pa  # only reading needs it

    return any(
        is_one(kind)
        for is_one in (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_string)
    )


def _refused(rule: str) -> PublicationCorruptError:
    return PublicationCorruptError(f"a table of the publication cannot be read: {rule}")
