"""What a data file of a plan may look like, checked before any value of it is decoded.

A Parquet file of a few bytes can claim to hold any number of values: compressed, by dictionary, in runs. The
files of a release hold none of that. Every value stands there as it is, so that their size follows from the
plan up to a few headers, and every byte of them belongs to a page of a column, or to the footer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.parquet as pq

from suffice.errors import ReleaseCorruptError
from suffice.pipeline.declaration.domains import DomainKind
from suffice.pipeline.statistics.statistic_plan import INT64

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from suffice.pipeline.declaration.domains import Domain
    from suffice.pipeline.statistics.statistic_plan import StatisticPlan

ROW_GROUP = 2**20
"""Rows of every row group but the last: a constant, so that the layout is public."""

_MAGIC = b"PAR1"
_ENDS = 12  # two magic words, and the length of the footer
_PAGE_HEADER = 32
"""Bytes that the header of a page has at most."""
_SMALLEST_PAGE = 2**13
"""Bytes that a page but the last of its column and row group holds at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The sizes that files of a plan may have.

    Parameters
    ----------
    groups : dict of str to Domain
    """

    groups: Mapping[str, Domain]
    _cell_bytes: Mapping[str, int]

    @classmethod
    def of(cls, groups: Mapping[str, Domain]) -> Self:
        """Count the bytes of keys once, as there may be many keys and many statistics."""
        n_cells = _n_cells(groups)
        return cls(
            groups=groups,
            _cell_bytes={
                name: 8 * n_cells
                if domain.kind is DomainKind.RANGE
                else n_cells // len(domain) * _text_bytes(map(str, domain))
                for name, domain in groups.items()
            },
        )

    def columns(self, statistic: StatisticPlan) -> dict[str, int]:
        """Return the bytes of every column's values: a fixed number each, or a length and a text."""
        n_cells, n_components = _n_cells(self.groups), len(statistic.components)
        return {
            **{name: n_components * size for name, size in self._cell_bytes.items()},
            "component": n_cells * _text_bytes(statistic.components),
            "value": (8 if statistic.value_type == INT64 else 16) * n_cells * n_components,
            "estimate": 8 * n_cells * n_components,
        }

    def of_file(self, statistic: StatisticPlan) -> tuple[int, int]:
        """Return the least and the greatest size: the values alone, and with headers of pages and a footer."""
        columns = self.columns(statistic)
        values, row_groups = sum(columns.values()), _n_row_groups(statistic, self.groups)
        headers = _PAGE_HEADER * (row_groups * len(columns) + values // _SMALLEST_PAGE)
        return _ENDS + values, _ENDS + values + headers + _largest_footer(columns, row_groups)


def require_layout(data: bytes, statistic: StatisticPlan, groups: Mapping[str, Domain]) -> None:
    """Refuse a file that does not hold a plan's values as they are, each once, and nothing else.

    Raises
    ------
    ReleaseCorruptError
        Naming the rule; no value was decoded.
    """
    sizes = Sizes.of(groups)
    columns = sizes.columns(statistic)
    least, greatest = sizes.of_file(statistic)
    if not least <= len(data) <= greatest:
        raise _refused(statistic, "its size is not the plan's")
    if data[:4] != _MAGIC or data[-4:] != _MAGIC:
        raise _refused(statistic, "it is no readable Parquet file")
    footer = int.from_bytes(data[-8:-4], "little")
    n_row_groups = _n_row_groups(statistic, groups)
    if footer > min(_largest_footer(columns, n_row_groups), len(data) - _ENDS):
        raise _refused(statistic, "its footer is larger than the plan's")
    try:
        metadata = pq.read_metadata(pa.BufferReader(data))
    except (pa.ArrowException, OSError, ValueError, TypeError):
        raise _refused(statistic, "it is no readable Parquet file") from None
    n_rows = _n_cells(groups) * len(statistic.components)
    if metadata.num_columns != len(columns) or metadata.metadata is not None:
        raise _refused(statistic, "its columns are not the plan's")
    if metadata.num_rows != n_rows or metadata.num_row_groups != n_row_groups:
        raise _refused(statistic, "its rows or row groups are not the plan's")
    position = len(_MAGIC)
    held = dict.fromkeys(columns, 0)
    for index in range(n_row_groups):
        rows = min(ROW_GROUP, n_rows - index * ROW_GROUP)
        group = metadata.row_group(index)
        if group.num_rows != rows:
            raise _refused(statistic, "its row groups are not the plan's")
        for number, name in enumerate(columns):
            chunk = group.column(number)
            end = position + chunk.total_compressed_size
            if not _is_plain(chunk, name, rows, position) or not position < end <= len(data) - footer - 8:
                raise _refused(statistic, f"its column {name!r} is compressed, encoded, or out of place")
            held[name] += _page_bytes(data, position, end, rows, statistic)
            position = end
    if held != columns or position != len(data) - footer - 8:
        raise _refused(statistic, "it does not hold each value once and nothing else")


def _is_plain(chunk: pq.ColumnChunkMetaData, name: str, rows: int, position: int) -> bool:
    """Tell whether a column of a row group stands where it should, values as they are."""
    return bool(
        chunk.path_in_schema == name
        and chunk.file_path == ""
        and chunk.compression == "UNCOMPRESSED"
        and set(chunk.encodings) <= {"PLAIN", "RLE"}  # RLE: of the levels, which required columns lack
        and chunk.dictionary_page_offset is None
        and chunk.data_page_offset == position
        and chunk.num_values == rows
        and chunk.total_compressed_size == chunk.total_uncompressed_size
    )


def _page_bytes(data: bytes, position: int, end: int, rows: int, statistic: StatisticPlan) -> int:
    """Walk through the pages of a column of a row group, and return the bytes of their values."""
    total = 0
    while position < end and rows > 0:
        header = _Header(data, position, min(end, position + _PAGE_HEADER))
        size, values = header.read(statistic)
        position = header.position + size
        total += size
        rows -= values
        if rows > 0 and size < _SMALLEST_PAGE:
            raise _refused(statistic, "its pages are too small")
    if position != end or rows:
        raise _refused(statistic, "its pages are not the plan's")
    return total


class _Header:
    """The header of a data page, in Thrift's compact form, of the one shape that values as they are have.

    Fields follow each other: a byte for the type and the step to the next number, then the value.
    """

    def __init__(self, data: bytes, position: int, end: int) -> None:
        self.position = position
        self._data = data
        self._end = end

    def read(self, statistic: StatisticPlan) -> tuple[int, int]:
        """Return the bytes and the number of its values."""
        kind, unpacked, packed = (self._integer(0x15) for _ in range(3))
        inner = self._byte()  # step 2: no checksum stands between; a structure
        values, encoding, _definition, _repetition = (self._integer(0x15) for _ in range(4))
        end = self._byte()
        if end == 0x1C and self._byte() == 0:  # statistics, an empty structure
            end = self._byte()
        known = kind == 0 and inner == 0x2C and encoding == 0 and (end, self._byte()) == (0, 0)
        if not known or unpacked != packed or packed is None or packed < 1 or values is None or values < 1:
            raise _refused(statistic, "a page of it is compressed, encoded, or not of the plan's kind")
        return packed, values

    def _byte(self) -> int | None:
        if self.position >= self._end:
            return None
        self.position += 1
        return self._data[self.position - 1]

    def _integer(self, tag: int) -> int | None:
        """Read a field that holds an integer: seven bits a byte, the sign last."""
        if self._byte() != tag:
            return None
        number = shift = 0
        while (byte := self._byte()) is not None:
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (number >> 1) ^ -(number & 1)
            shift += 7
        return None


def _text_bytes(texts: Iterable[str]) -> int:
    return sum(4 + len(text.encode()) for text in texts)


def _largest_footer(columns: Mapping[str, int], n_row_groups: int) -> int:
    names = sum(len(name.encode()) for name in columns)
    return 1024 + 64 * len(columns) + names + n_row_groups * (64 + 128 * len(columns) + names)


def _n_cells(groups: Mapping[str, Domain]) -> int:
    return math.prod(len(domain) for domain in groups.values())


def _n_row_groups(statistic: StatisticPlan, groups: Mapping[str, Domain]) -> int:
    return -(-_n_cells(groups) * len(statistic.components) // ROW_GROUP)


def _refused(statistic: StatisticPlan, rule: str) -> ReleaseCorruptError:
    return ReleaseCorruptError(f"the file of {statistic.name} is corrupt: {rule}")
