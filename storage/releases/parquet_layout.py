"""What a data file of a plan may look like, checked before any value of it is decoded.

A Parquet file of a few bytes can claim to hold any number of values: compressed, by dictionary, in runs. The
files of a release hold none of that. Every value stands there as it is, so that their size follows from the
plan up to a few headers, and every byte of them belongs to a page of a column, or to the footer.

Headers are read from Thrift's compact form without believing any length in it: pyarrow's reader ends the
process on damaged footers. Every value that is returned took at least a byte of the input.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

from suffice.errors import ReleaseCorruptError
from suffice.pipeline.terms.declaration.domains import DomainKind, cell_count
from suffice.pipeline.terms.statistics.statistic_plan import INT64

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from suffice.pipeline.terms.declaration.domains import Domain
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan

Value: TypeAlias = "int | bool | bytes | list[Value] | dict[int, Value]"

_DEEPEST = 12
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _BINARY, _LIST, _STRUCT = 1, 2, 3, 4, 5, 6, 8, 9, 12


@dataclass(slots=True)
class ThriftReader:
    """A position in bytes, from which values are read.

    Parameters
    ----------
    data : bytes
    position, end : int
        Where to begin, and where to stop at the latest.
    """

    data: bytes
    position: int
    end: int
    _depth: int = field(default=0, init=False)

    def struct(self) -> dict[int, Value]:
        """Read a structure: its fields by number.

        Raises
        ------
        ValueError
            Where the bytes are none of the kinds of values that Parquet uses, or end too early.
        """
        self._enter()
        fields: dict[int, Value] = {}
        number = 0
        while (head := self._byte()) != 0:
            step, kind = head >> 4, head & 0xF
            number = number + step if step else self._integer()
            if number in fields:
                raise _malformed()
            fields[number] = self._value(kind)
        self._depth -= 1
        return fields

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _malformed()

    def _value(self, kind: int) -> Value:
        if kind in {_TRUE, _FALSE}:
            return kind == _TRUE
        if kind == _BYTE:
            return self._byte()
        if kind in {_I16, _I32, _I64}:
            return self._integer()
        if kind == _BINARY:
            return self._bytes(self._unsigned())
        if kind == _LIST:
            head = self._byte()
            size = head >> 4 if head >> 4 < 15 else self._unsigned()
            self._enter()
            elements = [self._element(head & 0xF) for _ in range(min(size, self.end - self.position + 1))]
            self._depth -= 1
            return elements
        if kind == _STRUCT:
            return self.struct()
        raise _malformed()

    def _element(self, kind: int) -> Value:
        return self._byte() == _TRUE if kind in {_TRUE, _FALSE} else self._value(kind)

    def _byte(self) -> int:
        if self.position >= self.end:
            raise _malformed()
        self.position += 1
        return self.data[self.position - 1]

    def _bytes(self, size: int) -> bytes:
        if size > self.end - self.position:
            raise _malformed()
        self.position += size
        return self.data[self.position - size : self.position]

    def _unsigned(self) -> int:
        """Read seven bits a byte, the lowest first, at most 64."""
        number = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
        raise _malformed()

    def _integer(self) -> int:
        """Read a signed number: its sign is the last bit."""
        number = self._unsigned()
        return (number >> 1) ^ -(number & 1)


def _malformed() -> ValueError:
    return ValueError("not in Thrift's compact form")


ROW_GROUP = 2**20
"""Rows of every row group but the last: a constant, so that the layout is public."""

_MAGIC = b"PAR1"
_ENDS = 12  # two magic words, and the length of the footer
_PAGE_HEADER = 64
"""Bytes that the header of a page has at most."""
_SMALLEST_PAGE = 2**13
"""Bytes that a page but the last of its column and row group holds at least."""

_INT64, _DOUBLE, _TEXT, _FIXED = 2, 5, 6, 7
"""Types of Parquet."""
_PLAIN, _LEVELS = 0, 3
"""Encodings: of values as they are; and of levels, which required columns lack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The sizes that files of statistics with the same groups may have.

    Parameters
    ----------
    cell_bytes : dict of str to int
        How many bytes the keys of all cells take, by column.
    """

    _cell_bytes: Mapping[str, int]

    @classmethod
    def of(cls, groups: Mapping[str, Domain]) -> Self:
        """Count the bytes of keys once, as there may be many keys and many statistics."""
        n_cells = cell_count(groups)
        return cls(
            _cell_bytes={
                name: 8 * n_cells
                if domain.kind is DomainKind.RANGE
                else n_cells // len(domain) * _text_bytes(map(str, domain))
                for name, domain in groups.items()
            },
        )

    def columns(self, statistic: StatisticPlan) -> dict[str, int]:
        """Return the bytes of every column's values: a fixed number each, or a length and a text."""
        n_cells, n_rows = statistic.n_cells, statistic.n_cells * statistic.n_values
        keys = {name: statistic.n_values * size for name, size in self._cell_bytes.items()}
        if statistic.sample is not None:
            return {**keys, "draw": 8 * n_rows, "value": 8 * n_rows}
        return {
            **keys,
            "component": n_cells * _text_bytes(statistic.components),
            "value": (8 if statistic.value_type == INT64 else 16) * n_rows,
            "estimate": 8 * n_rows,
        }

    def of_file(self, statistic: StatisticPlan) -> tuple[int, int]:
        """Return the least and the greatest size: of values alone, and with headers and a footer."""
        columns = self.columns(statistic)
        values, row_groups = sum(columns.values()), _n_row_groups(statistic)
        headers = _PAGE_HEADER * (row_groups * len(columns) + values // _SMALLEST_PAGE)
        return _ENDS + values, _ENDS + values + headers + _largest_footer(columns, row_groups)


Span = tuple[int, int]
"""Where the values of a page begin and end."""


class Content(Protocol):
    """The bytes of a file: in memory, or read from where they are when they are asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, span: slice, /) -> bytes: ...


def row_groups(data: Content, statistic: StatisticPlan) -> Iterator[dict[str, list[Span]]]:
    """Walk through a file, and return where the values of every column stand, row group by row group.

    Nothing is decoded: headers of pages and the footer are read, and have to say of every byte what it is.

    Raises
    ------
    ReleaseCorruptError
        Where the file does not hold every value of the plan as it is, once, and nothing else.
    """
    sizes = Sizes.of(statistic.groups)
    columns = sizes.columns(statistic)
    least, greatest = sizes.of_file(statistic)
    if not least <= len(data) <= greatest:
        raise _refused(statistic, "its size is not the plan's")
    if data[:4] != _MAGIC or data[-4:] != _MAGIC:
        raise _refused(statistic, "it is no readable Parquet file")
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    if footer < max(4, len(data) - 8 - _largest_footer(columns, _n_row_groups(statistic))):
        raise _refused(statistic, "its footer is larger than the plan's")
    try:
        row_groups = [*_walk(data, statistic, footer)]
    except (KeyError, ValueError, TypeError, IndexError):
        raise _refused(statistic, "it is no readable Parquet file, or not one of this format") from None
    held = {name: sum(end - start for group in row_groups for start, end in group[name]) for name in columns}
    if held != columns:
        raise _refused(statistic, "it does not hold each value once and nothing else")
    return iter(row_groups)


def _walk(data: Content, statistic: StatisticPlan, footer: int) -> Iterator[dict[str, list[Span]]]:
    written = data[footer : len(data) - 8]
    reader = ThriftReader(written, 0, len(written))
    metadata = reader.struct()
    n_rows = statistic.n_cells * statistic.n_values
    kinds = _kinds(statistic)
    # Version, schema, rows, row groups; who wrote it and how columns are ordered may be said besides.
    if not {1, 2, 3, 4} <= metadata.keys() <= {1, 2, 3, 4, 6, 7} or reader.position != len(written):
        raise _refused(statistic, "its footer says more than the plan's")
    root, *fields = map(_struct, _list(metadata[2]))
    if root.get(5) != len(kinds) or [_declared(entry) for entry in fields] != [
        (name.encode(), *kind) for name, kind in kinds.items()
    ]:
        raise _refused(statistic, "its columns are not the plan's")
    declared = [*map(_struct, _list(metadata[4]))]
    if metadata[3] != n_rows or [group[3] for group in declared] != [
        min(ROW_GROUP, n_rows - start) for start in range(0, n_rows, ROW_GROUP)
    ]:
        raise _refused(statistic, "its rows or row groups are not the plan's")
    position = len(_MAGIC)
    for group in declared:
        if not {1, 2, 3} <= group.keys() <= {1, 2, 3, 5, 6, 7}:
            raise _refused(statistic, "its row groups say more than the plan's")
        spans = {}
        for (name, (kind, *_)), chunk in zip(kinds.items(), _list(group[1]), strict=True):
            size = _chunk_size(_struct(chunk), name, kind, group[3], position)
            if size is None or not 0 < size <= footer - position:
                raise _refused(statistic, f"its column {name!r} is compressed, encoded, or out of place")
            spans[name] = [*_pages(data, position, position + size, group[3], statistic)]
            position += size
        yield spans
    if position != footer:
        raise _refused(statistic, "it holds bytes of no column")


def _chunk_size(chunk: dict[int, Value], name: str, kind: int, rows: Value, position: int) -> int | None:
    """Return the bytes of a column of a row group, if it stands where it should, values as they are."""
    column = _struct(chunk[3])
    # Neither another file, nor an index, nor anything encrypted; in the column no dictionary, no statistics
    # but the sizes of texts.
    if not chunk.keys() <= {2, 3} or not column.keys() <= {1, 2, 3, 4, 5, 6, 7, 9, 13, 16}:
        return None
    expected = {1: kind, 3: [name.encode()], 4: 0, 5: rows, 9: position}
    if any(column[number] != value for number, value in expected.items()) or column[6] != column[7]:
        return None
    if not set(_list(column[2])) <= {_PLAIN, _LEVELS} or not isinstance(column[7], int):
        return None
    return column[7]


def _pages(data: Content, position: int, end: int, rows: Value, statistic: StatisticPlan) -> Iterator[Span]:
    """Walk through the pages of a column of a row group."""
    left = rows
    while position < end and isinstance(left, int) and left > 0:
        header = data[position : min(end, position + _PAGE_HEADER)]
        reader = ThriftReader(header, 0, len(header))
        page = reader.struct()
        size, values = page[3], _struct(page[5])
        # A data page of the first version, without a checksum; its statistics, if any, are empty.
        plain = page.keys() == {1, 2, 3, 5} and page[1] == 0 and page[2] == size and values[2] == _PLAIN
        count = values[1]
        if not plain or not values.keys() <= {1, 2, 3, 4, 5} or values.get(5, {}) != {}:
            raise _refused(statistic, "a page of it is compressed, encoded, or not of the plan's kind")
        if not isinstance(size, int) or not isinstance(count, int) or size < 1 or count < 1:
            raise _refused(statistic, "a page of it is empty")
        position += reader.position
        yield position, position + size
        position += size
        left -= count
        if left > 0 and size < _SMALLEST_PAGE:
            raise _refused(statistic, "its pages are too small")
    if position != end or left != 0:
        raise _refused(statistic, "its pages are not the plan's")


def _kinds(statistic: StatisticPlan) -> dict[str, tuple[int, ...]]:
    """Return each column's type, the length of its values where it is fixed, scale and precision."""
    keys: dict[str, tuple[int, ...]] = {
        name: (_INT64,) if domain.kind is DomainKind.RANGE else (_TEXT,)
        for name, domain in statistic.groups.items()
    }
    if statistic.sample is not None:
        return {**keys, "draw": (_INT64,), "value": (_INT64,)}
    value = (_INT64,) if statistic.value_type == INT64 else (_FIXED, 16, 0, 38)
    return {**keys, "component": (_TEXT,), "value": value, "estimate": (_DOUBLE,)}


def _declared(entry: dict[int, Value]) -> tuple[Value, ...]:
    """Return what the schema says of a column; None where it is not required, or has columns in it."""
    required = entry.get(3) == 0 and 5 not in entry
    length = [entry[number] for number in (2, 7, 8) if number in entry]
    return (entry[4], entry[1], *length) if required else (entry[4], -1)


def _struct(value: Value) -> dict[int, Value]:
    if not isinstance(value, dict):
        message = "no structure"
        raise TypeError(message)
    return value


def _list(value: Value) -> list[Value]:
    if not isinstance(value, list):
        message = "no list"
        raise TypeError(message)
    return value


def _text_bytes(texts: Iterable[str]) -> int:
    return sum(4 + len(text.encode()) for text in texts)


def _largest_footer(columns: Mapping[str, int], n_row_groups: int) -> int:
    names = sum(len(name.encode()) for name in columns)
    return 1024 + 64 * len(columns) + names + n_row_groups * (64 + 128 * len(columns) + names)


def _n_row_groups(statistic: StatisticPlan) -> int:
    return -(-statistic.n_cells * statistic.n_values // ROW_GROUP)


def _refused(statistic: StatisticPlan, rule: str) -> ReleaseCorruptError:
    return ReleaseCorruptError(f"the file of {statistic.name} is corrupt: {rule}")
