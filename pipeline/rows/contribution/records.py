"""Encoded rows that travel between tasks: unit, cell, and what the statistics read, in few bytes.

A record is a whole number of 64-bit words, the first two of which are its unit, hashed under a secret of the
run; numbers stand in the bits of the others. Rows with equal encodings are interchangeable: everything that
is summed is a function of the record.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np

from suffice.pipeline.rows.chunk import argument_types as types
from suffice.pipeline.rows.chunk.argument_types import read_only, writable
from suffice.pipeline.rows.chunk.encoding import LARGEST_REST, OrderReader, Places, column_reader
from suffice.pipeline.rows.chunk.jit import compiled
from suffice.pipeline.rows.chunk.kernels import NOTHING
from suffice.pipeline.rows.contribution import siphash
from suffice.pipeline.rows.contribution.unit_ids import IS_NULL, IS_ROUNDED, UnitReader
from suffice.pipeline.rows.sources.contract import exact_data
from suffice.pipeline.terms.declaration.unit_aggregates import Aggregate
from suffice.pipeline.terms.statistics.lattice import Quantiser
from suffice.pipeline.terms.statistics.measure import (
    ABOVE,
    BELOW,
    NOT_MOVED,
    BinColumn,
    CodeColumn,
    LatticeColumn,
    SideColumn,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from suffice.pipeline.rows.chunk.partition import ChunkJob
    from suffice.pipeline.terms.declaration.unit_aggregates import UnitAggregate
    from suffice.pipeline.terms.statistics.measure import ReadColumn
    from suffice.typing import Codes

    Records: TypeAlias = NDArray[np.uint64]
    """Records as 64-bit words, shape (n_rows, n_words)."""

_position = (types.int64, types.int64, types.int64)
_1 = np.uint64(1)


@compiled(read_only(types.uint64, 2), read_only(types.int32), writable(types.uint64, 2))
def pack_units(units: Records, chosen: NDArray[np.int32], records: Records) -> None:
    """Write the units of chosen rows into the first two words of records."""
    for row in range(len(chosen)):
        records[row, 0] = units[chosen[row], 0]
        records[row, 1] = units[chosen[row], 1]


@compiled(read_only(types.int32), read_only(types.int32), *_position, writable(types.uint64, 2))
def pack(
    values: NDArray[np.int32], chosen: NDArray[np.int32], word: int, shift: int, lowest: int, records: Records
) -> None:
    """Write ``value - lowest + 1`` of chosen rows from bit `shift` of a word on, where there was 0.

    What lies below `lowest` is written as 0.
    """
    left = np.uint64(shift)
    for row in range(len(chosen)):
        number = np.int64(values[chosen[row]]) - lowest + 1
        if number > 0:
            records[row, word] |= np.uint64(number) << left


@compiled(read_only(types.uint64, 2), *_position, types.int64, types.int64, writable(types.int32))
def unpack(
    records: Records, word: int, shift: int, bits: int, lowest: int, nothing: int, out: NDArray[np.int32]
) -> None:
    """Read what `pack` wrote; what lay below `lowest` becomes `nothing`."""
    right, mask = np.uint64(shift), (_1 << np.uint64(bits)) - _1
    for row in range(len(records)):
        number = np.int64((records[row, word] >> right) & mask)
        out[row] = number - 1 + lowest if number else nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitKey:
    """What ranks rows, hashes texts and places units; a secret of one run, never stored and never shown.

    Parameters
    ----------
    texts, positions, ranks : (int, int)
        Three independent keys of 128 bits.
    """

    texts: tuple[int, int] = field(repr=False)
    positions: tuple[int, int] = field(repr=False)
    ranks: tuple[int, int] = field(repr=False)

    @classmethod
    def of(cls, secret: bytes) -> Self:
        """Return the keys in 48 bytes."""
        numbers = [int.from_bytes(secret[start : start + 8], "little") for start in range(0, 48, 8)]
        return cls(
            texts=(numbers[0], numbers[1]), positions=(numbers[2], numbers[3]), ranks=(numbers[4], numbers[5])
        )

    @classmethod
    def fresh(cls) -> Self:
        """Draw the keys of a run from the operating system."""
        return cls.of(secrets.token_bytes(48))


_UNIT_WORDS = 2
_WORD_BITS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """Where a number stands in a record.

    Parameters
    ----------
    word, shift, bits : int
        The bits from `shift` on of a word.
    lowest : int
        The lowest number, which is written as 1.
    nothing : int
        What 0 stands for.
    """

    word: int
    shift: int
    bits: int
    lowest: int
    nothing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLayout:
    """Where things stand in a record; follows from the job.

    Parameters
    ----------
    columns : dict of ReadColumn to Field
        What statistics and sums of units read of rows, each once.
    orders : dict of str to (int, Field)
        The words of places' floors, and the fields of their rests, of columns that order a unit's rows or
        whose smallest or largest value a unit has.
    cells : tuple of Field
        The cell under each groups of the job.
    n_words : int
        Words of a record.
    """

    columns: dict[ReadColumn, Field]
    orders: dict[str, tuple[int, Field]]
    cells: tuple[Field, ...]
    n_words: int

    @classmethod
    def of(cls, job: ChunkJob) -> RecordLayout:
        """Return the layout of a job's records: unit, orders, then the others, the widest first."""
        numbers: dict[ReadColumn | str, tuple[int, int, int]] = {
            **{_cell(number): (0, len(cells) - 1, -1) for number, cells in enumerate(job.cells)},
            **{_rest(column): (0, LARGEST_REST, 0) for column in job.placed},
        }
        reads = [of for measure in job.measures.values() for of in measure.reads]
        on_units = job.of_units
        of_rows = [of for of in (*reads, *job.conditions.values()) if of.column not in on_units]
        summed = [summed_column(of) for of in job.aggregates.values() if of.per_unit is Aggregate.SUM]
        for of in (*of_rows, *summed):
            if isinstance(of, CodeColumn | BinColumn):
                numbers[of] = (0, of.n_codes - 1, -1)
            elif isinstance(of, SideColumn):
                numbers[of] = (BELOW, ABOVE, NOT_MOVED)
            else:
                numbers[of] = (of.quantiser.lowest, of.quantiser.highest, NOTHING)
        widths = {of: (highest - lowest + 1).bit_length() for of, (lowest, highest, _) in numbers.items()}
        fields: dict[ReadColumn | str, Field] = {}
        word, shift = _UNIT_WORDS + len(job.placed), 0
        for name in sorted(numbers, key=lambda name: -widths[name]):
            if shift + widths[name] > _WORD_BITS:
                word, shift = word + 1, 0
            lowest, _, nothing = numbers[name]
            fields[name] = Field(word=word, shift=shift, bits=widths[name], lowest=lowest, nothing=nothing)
            shift += widths[name]
        columns = {of: field for of, field in fields.items() if not isinstance(of, str)}
        orders = {
            column: (_UNIT_WORDS + position, fields[_rest(column)])
            for position, column in enumerate(job.placed)
        }
        cells = tuple(fields[_cell(number)] for number in range(len(job.cells)))
        return cls(columns=columns, orders=orders, cells=cells, n_words=word + 1)

    @property
    def n_bytes(self) -> int:
        """Bytes of a record."""
        return self.n_words * _WORD_BITS // 8

    def column(self, records: Records, of: ReadColumn) -> Codes:
        """Return what a statistic reads of a column, in a new array, shape (n_rows,), int32."""
        return _unpacked(records, self.columns[of])

    def cells_of(self, records: Records, number: int) -> Codes:
        """Return the records' cells under one groups of the job, shape (n_rows,), int32."""
        return _unpacked(records, self.cells[number])

    def order(self, records: Records, column: str) -> Places:
        """Return the records' places in the order of a column."""
        word, rest = self.orders[column]
        return Places(floors=records[:, word].view(np.int64), rests=_unpacked(records, rest))


def summed_column(of: UnitAggregate) -> LatticeColumn:
    """Return how a sum of units reads a row: in whole steps between its bounds; null adds nothing."""
    lower, upper, step = of.row_bounds
    steps = Quantiser(
        centre=0.0, half_range=float(step), steps=1, lowest=int(lower / step), highest=int(upper / step)
    )
    return LatticeColumn(column=str(of.column), quantiser=steps, fallback=None)


def _cell(number: int) -> str:
    """Name the field of a cell."""
    return f"cell {number}"


def _rest(column: str) -> str:
    """Name the field of an order's rests; no name of another field is like it."""
    return f"rest of {column}"


def _unpacked(records: Records, field: Field) -> Codes:
    out = np.empty(len(records), np.int32)
    unpack(records, field.word, field.shift, field.bits, field.lowest, field.nothing, out)
    return out


class RecordReader:
    """Encodes rows, and divides them by unit; lives for one task.

    Parameters
    ----------
    job : ChunkJob
        A job with a column unit.
    key : UnitKey
        The run's secret.
    """

    def __init__(self, job: ChunkJob, key: UnitKey) -> None:
        if job.unit is None:
            message = "a job without a column unit has no records"
            raise ValueError(message)
        self._layout = RecordLayout.of(job)
        self._cells = job.cell_reader()
        self._units = UnitReader(job.unit.column, key.texts)
        self._columns = [(column_reader(of), field) for of, field in self._layout.columns.items()]
        self._orders = [(OrderReader(column), *place) for column, place in self._layout.orders.items()]

    def rows(self, batch: pa.RecordBatch) -> Rows:
        """Return which rows of a batch belong to a cell, of which groups, and their units."""
        units, kinds = self._units.read(batch)
        # proof: bounded-contributions (a row of nobody knows whom enters nothing)
        is_rounded = kinds == IS_ROUNDED
        cells = [np.where(is_rounded, np.int32(-1), of) for of in self._cells.read(batch)]
        return Rows(batch=batch, cells=cells, units=units, is_null=kinds == IS_NULL)

    def records(self, rows: Rows, chosen: NDArray[np.int32]) -> Records:
        """Return the records of some rows, in their order."""
        records = np.zeros((len(chosen), self._layout.n_words), np.uint64)
        if not len(chosen):
            return records
        pack_units(rows.units, chosen, records)
        for order, word, rest in self._orders:
            places = order.read(rows.batch)
            records[:, word] = places.floors.view(np.uint64)[chosen]
            pack(places.rests, chosen, rest.word, rest.shift, rest.lowest, records)
        for cells, place in zip(rows.cells, self._layout.cells, strict=True):
            pack(cells, chosen, place.word, place.shift, place.lowest, records)
        for column, place in self._columns:
            pack(column.read(rows.batch), chosen, place.word, place.shift, place.lowest, records)
        return records


@exact_data(travels=False)
class Rows:
    """A batch with its rows' cells and units.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        The rows.
    cells : list of ndarray of int32, shape (n_rows,)
        Under each groups of the job; -1 where a row belongs to none, or its unit may have been rounded.
    units : ndarray of uint64, shape (n_rows, 2)
        See `unit_ids`.
    is_null : ndarray of bool, shape (n_rows,)
        Whether the unit is null.
    """

    batch: pa.RecordBatch
    cells: list[Codes]
    units: Records
    is_null: NDArray[np.bool_]


def divide(
    units: Records,
    key: UnitKey,
    parts: range,
    n_total: int,
    *,
    enters: NDArray[np.bool_] | None = None,
    finely: bool = False,
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Divide rows among parts of the units; all rows of a unit are in one part.

    Parameters
    ----------
    units : ndarray of uint64, shape (n_rows, 2 or more)
        The first two words of a row are its unit.
    key : UnitKey
        The run's secret, without which nobody can aim many units at one part.
    parts : range
        The parts wanted, of ``range(n_total)``.
    n_total : int
        How many parts the units are divided among.
    enters : ndarray of bool, shape (n_rows,), optional
        The rows divided; all otherwise.
    finely : bool
        Divide a part once more, independently of what divided all.

    Returns
    -------
    order : ndarray of int32
        The rows in wanted parts, part by part.
    ends : ndarray of int64, shape (len(parts) + 1,)
        Part ``p`` has ``order[ends[p]:ends[p + 1]]``.
    """
    part = np.zeros(len(units), np.int32)
    if enters is not None:
        part[~enters] = -1
    siphash.assign_parts(units, *key.positions, parts.start, len(parts), n_total, finely, part)
    order, ends = np.empty(len(units), np.int32), np.zeros(len(parts) + 1, np.int64)
    siphash.sort_by_part(part, ends, order)
    return order[: ends[-1]], ends


def slices(records: Records, ends: NDArray[np.int64]) -> list[Records]:
    """Return consecutive slices of records."""
    return [records[start:end] for start, end in pairwise(ends)]


def by_unit(pieces: Sequence[Records], key: UnitKey, bundle_rows: int) -> Iterator[Records]:
    """Bundle records so that all of one unit are in one bundle of some `bundle_rows`, more for large units.

    Parameters
    ----------
    pieces : sequence of Records
        All records of the units in them, in any order.
    key : UnitKey
        The run's secret.
    bundle_rows : int
        Rows wanted in a bundle.
    """
    n_bundles = -(-sum(map(len, pieces)) // bundle_rows)
    divided = []
    for piece in pieces:
        order, ends = divide(piece, key, range(n_bundles), n_bundles, finely=True)
        divided.append(slices(piece.take(order, axis=0), ends))
    for bundle in range(n_bundles):
        yield np.concatenate([parts[bundle] for parts in divided])
