"""Rows as 32-bit integers: each row's cell, the codes of its values, and its place in an order.

What cannot be compared with a public domain's keys, is null or is not declared gets one code, `missing`; no
value of any type is ever an error. Everything that depends on a single row alone happens here and in
`clipping`: window, group keys and null rules. What comes after only adds.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from suffice.arrays import number_array
from suffice.pipeline.rows.chunk import kernels
from suffice.pipeline.rows.chunk.binning import BinReader
from suffice.pipeline.rows.chunk.clipping import LatticeReader, SideReader
from suffice.pipeline.rows.chunk.paged_columns import ColumnReader, codes_of
from suffice.pipeline.rows.sources.column_values import comparable, fixed_width, null_mask, validity
from suffice.pipeline.terms.declaration import domain_lookup
from suffice.pipeline.terms.statistics.measure import BinColumn, CodeColumn, SideColumn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.rows.chunk.paged_columns import CodedRows, Encode
    from suffice.pipeline.terms.declaration.domains import Domain
    from suffice.pipeline.terms.statistics.measure import ReadColumn


_MOST_DICTIONARIES = 256
_LARGEST_DICTIONARY = 1 << 18
"""In bytes, of one whose codes are kept."""
_FEW = 16
"""So many times fewer texts than keys are looked up one by one: Arrow goes over all keys in each call."""


class Encoder:
    """The codes of one column in one domain; lives for one task.

    Parameters
    ----------
    domain : Domain
        The declared keys: codes ``0..len(domain)-1``.
    missing : int
        The code of null and of every value that is not declared; -1 where such a row does not enter.
    """

    def __init__(self, domain: Domain, missing: int = -1) -> None:
        self._domain = domain
        self._missing = missing
        self._dictionary: pa.Array | None = None
        self._dictionary_codes = self._all_missing(1)
        self._codes_by_content: dict[tuple[pa.DataType, bytes, bytes], domain_lookup.Codes] = {}

    def codes(self, column: pa.Array) -> domain_lookup.Codes:
        """Return one code per row of an Arrow array, shape (n_rows,), int32."""
        if pa.types.is_null(column.type) or not len(column):
            return self._all_missing(len(column))
        if pa.types.is_dictionary(column.type):
            column, codes = column.indices, self._codes_by_index(column)
        else:
            codes = self._codes_by_value(column)
        if column.null_count:
            kernels.fill_nulls(codes, *validity(column), self._missing)
        return codes

    def _all_missing(self, size: int) -> domain_lookup.Codes:
        return np.full(size, self._missing, np.int32)

    def _codes_by_index(self, column: pa.DictionaryArray) -> domain_lookup.Codes:
        codes = np.empty(len(column), np.int32)
        indices = fixed_width(column.indices).astype(np.int32, copy=False)
        kernels.gather(indices, self._codes_of_dictionary(column.dictionary), codes)
        return codes

    def _codes_of_dictionary(self, dictionary: pa.Array) -> domain_lookup.Codes:
        """Return the codes of a dictionary's entries, and `missing` last.

        Within a row group each batch's dictionary begins with the last one's: only new entries are
        looked up. Many files have few dictionaries: each is looked up once.
        """
        known = 0
        last = self._dictionary
        if last is not None and last.equals(dictionary.slice(0, len(last))):
            known = len(last)
        if last is None or known < max(len(dictionary), len(last)):
            content = None if known else _content(dictionary)
            codes = None if content is None else self._codes_by_content.get(content)
            if codes is None:
                fresh = self.codes(dictionary.slice(known))
                codes = np.concatenate([self._dictionary_codes[:known], fresh, self._all_missing(1)])
                if content is not None and len(self._codes_by_content) < _MOST_DICTIONARIES:
                    self._codes_by_content[content] = codes
            self._dictionary_codes = codes
            self._dictionary = dictionary
        return self._dictionary_codes

    def _codes_by_value(self, column: pa.Array) -> domain_lookup.Codes:
        column = comparable(column)
        table = domain_lookup.lookup(self._domain, column.type)
        if isinstance(table, domain_lookup.Listed):
            by_text = table.by_text
            texts = None
            if by_text is not None and _FEW * len(column) < len(by_text):
                texts = _texts(column)
            if by_text is not None and texts is not None:
                return np.array([by_text.get(text, self._missing) for text in texts], np.int32)
            absent = number_array(np.array([len(table.codes)], np.int32))[0]
            positions = pc.fill_null(pc.index_in(column, value_set=table.keys), absent)
            codes = np.empty(len(column), np.int32)
            kernels.gather(fixed_width(positions), np.append(table.codes, np.int32(self._missing)), codes)
            return codes
        values, is_integer = _int64(column, table)
        if isinstance(table, domain_lookup.Interval):
            is_inside = (values >= table.begins) & (values < table.ends)
            return np.where(is_inside, np.int32(0), np.int32(self._missing))
        codes = np.empty(len(column), np.int32)
        if isinstance(table, domain_lookup.Dense):
            kernels.look_up(values, table.first, table.codes, self._missing, codes)
        else:
            kernels.search(values, table.keys, table.codes, self._missing, codes)
        if is_integer is not None:
            codes[~is_integer] = self._missing
        return codes


def _texts(column: pa.Array) -> list[str] | None:
    """Return texts, None for nulls; None where bytes are none: Arrow does not check, and compares bytes."""
    try:
        texts: list[str] = column.to_pylist()
    except UnicodeDecodeError:
        return None
    return texts


def _content(dictionary: pa.Array) -> tuple[pa.DataType, bytes, bytes] | None:
    """Return what tells dictionaries of texts apart; None of others, and of large ones."""
    kind = dictionary.type
    is_large = pa.types.is_large_string(kind)
    if not (is_large or pa.types.is_string(kind)) or dictionary.null_count or not len(dictionary):
        return None
    _, ends, texts = dictionary.buffers()
    offsets = np.frombuffer(ends, np.int64 if is_large else np.int32)
    offsets = offsets[dictionary.offset : dictionary.offset + len(dictionary) + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    if last - first + offsets.nbytes > _LARGEST_DICTIONARY:
        return None
    data = bytes(memoryview(texts)[first:last]) if texts is not None else b""
    return kind, (offsets - first).tobytes(), data


def _int64(
    column: pa.Array, table: domain_lookup.Dense | domain_lookup.Sparse | domain_lookup.Interval
) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
    """Return values as the int64 numbers that a lookup compares, and which of them are comparable."""
    if pa.types.is_boolean(column.type):
        return fixed_width(pc.cast(column, pa.uint8())).astype(np.int64), None
    values = fixed_width(column)
    if column.type == pa.uint64():
        return (values ^ np.uint64(domain_lookup.UNSIGNED_SHIFT)).view(np.int64), None
    if not pa.types.is_floating(column.type):
        values = values.astype(np.int64, copy=False)
        return (values // table.divisor if table.divisor > 1 else values), None
    numbers = values.astype(np.float64, copy=False)
    if isinstance(table, domain_lookup.Sparse) and table.of_bits:
        return (numbers + 0.0).view(np.int64), None
    with np.errstate(invalid="ignore"):
        integers = numbers.astype(np.int64)
    return integers, (integers == numbers) & (numbers < 2.0**63)


NO_POSITION = -(2**63)
"""The floor of what has no place in a unit's order, below all others."""
LARGEST_REST = 2047
"""What a 64-bit integer can have more than its floor: float64 numbers below 2^64 are 2048 apart or less."""


class CellReader:
    """The cell of every row under each of several groups, -1 where it belongs to none; lives for one task.

    Parameters
    ----------
    entering : sequence of (str, Domain)
        Columns without a key of which a row belongs to no cell at all.
    all_groups : sequence of mapping of str to Domain
        The columns that choose a cell, in declared order; the cells are the product of their keys.
    """

    def __init__(
        self, entering: Sequence[tuple[str, Domain]], all_groups: Sequence[Mapping[str, Domain]]
    ) -> None:
        groups = [tuple(of.items()) for of in all_groups]
        places = {key: place for place, key in enumerate(dict.fromkeys(chain(entering, *groups)))}
        self._encoders = [(column, len(domain), Encoder(domain)) for column, domain in places]
        self._n_entering = len(entering)
        self._groups = [[places[key] for key in keys] for keys in groups]

    @property
    def coders(self) -> list[tuple[str, Encode]]:
        """The columns that are read, and what gives their values codes."""
        return [(column, encoder.codes) for column, _, encoder in self._encoders]

    def read(self, rows: pa.RecordBatch | CodedRows) -> list[domain_lookup.Codes]:
        """Return the cells of a batch, each shape (n_rows,), int32, in the order of the groups."""
        codes = [(codes_of(rows, column, encoder.codes), size) for column, size, encoder in self._encoders]
        entering = np.zeros(rows.num_rows, np.int32)
        for of_key, size in codes[: self._n_entering]:
            kernels.combine_codes(entering, of_key, size)
        # proof: groups
        all_cells = [entering.copy() for _ in self._groups]
        for cells, places in zip(all_cells, self._groups, strict=True):
            for place in places:
                kernels.combine_codes(cells, *codes[place])
        return all_cells


def in_any(all_cells: Sequence[domain_lookup.Codes]) -> NDArray[np.bool_]:
    """Tell which rows belong to a cell of any groups."""
    is_in: NDArray[np.bool_] = np.logical_or.reduce([cells >= 0 for cells in all_cells])
    return is_in


class CodeReader(ColumnReader):
    """A column's code in every row, -1 where it does not enter; lives for one task."""

    def __init__(self, of: CodeColumn) -> None:
        self.column = of.column
        self.codes = Encoder(of.domain, -1 if of.fallback is None else of.fallback).codes


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Rows' places in the order of a column: by `floors`, then by `rests`.

    An integer's floor is the largest float64 that is not above it, and its rest is what it has more; a
    float64 is its own floor. So int64, uint64 and float64 have one order, by value, without rounding.

    Parameters
    ----------
    floors : ndarray of int64, shape (n_rows,)
        Floors as integers of the same order; `NO_POSITION` where there is no place.
    rests : ndarray of int32, shape (n_rows,)
        In 0..`LARGEST_REST`.
    """

    floors: NDArray[np.int64]
    rests: NDArray[np.int32]


class OrderReader:
    """A column's place in its own order, in every row: numbers, days, or microseconds since 1970."""

    def __init__(self, column: str) -> None:
        self._column = column

    def read(self, batch: pa.RecordBatch) -> Places:
        """Return the places of a batch, each shape (n_rows,); nulls and NaN have none."""
        column = batch.column(self._column)
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        kind = column.type
        if pa.types.is_timestamp(kind):
            column = pc.cast(column, pa.timestamp("us", kind.tz), safe=False)
        elif pa.types.is_date(kind):
            column = pc.cast(column, pa.date32())
        elif pa.types.is_boolean(kind):
            column = pc.cast(column, pa.uint8())
        if pa.types.is_null(kind) or column.null_count == len(column):
            return Places(
                floors=np.full(len(column), NO_POSITION, np.int64), rests=np.zeros(len(column), np.int32)
            )
        if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            numbers = fixed_width(pc.cast(column, pa.float64(), safe=False))
            places = Places(floors=_ordered_bits(numbers), rests=np.zeros(len(column), np.int32))
        else:
            values = fixed_width(column)
            is_unsigned = values.dtype == np.uint64
            places = _of_integers(values if is_unsigned else values.astype(np.int64, copy=False))
        if column.null_count:
            nulls = null_mask(column)
            places.floors[nulls] = NO_POSITION
            places.rests[nulls] = 0
        return places


def _of_integers(values: NDArray[np.int64] | NDArray[np.uint64]) -> Places:
    """Return the places of 64-bit integers: exact, whatever float64 could hold."""
    largest = np.nextafter(2.0 ** (64 if values.dtype == np.uint64 else 63), 0.0)
    floors = np.minimum(values.astype(np.float64), largest)
    floors = np.where(floors.astype(values.dtype) > values, np.nextafter(floors, -np.inf), floors)
    rests = (values - floors.astype(values.dtype)).astype(np.int32)
    return Places(floors=_ordered_bits(floors), rests=rests)


def _ordered_bits(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return float64 numbers as integers of the same order; NaN has no place, and minus zero is zero."""
    bits = (values + 0.0).view(np.int64)
    return np.where(np.isnan(values), NO_POSITION, np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits))


def column_reader(of: ReadColumn) -> CodeReader | BinReader | LatticeReader | SideReader:
    """Return the reader of a column; it lives for one task."""
    if isinstance(of, BinColumn):
        return BinReader(of)
    if isinstance(of, SideColumn):
        return SideReader(of)
    return CodeReader(of) if isinstance(of, CodeColumn) else LatticeReader(of)
