"""Encoded rows that travel between tasks: unit, cell, and what the statistics read, in few bytes.

A record is a whole number of 64-bit words, the first two of which are its unit. Rows with equal encodings
are interchangeable: everything that is summed is a function of the record.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from suffice.pipeline import hashing
from suffice.pipeline.rows import CellReader, OrderReader, column_reader
from suffice.pipeline.sums import CodeColumn
from suffice.pipeline.unit_ids import UnitReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from suffice.pipeline.chunk import ChunkJob
    from suffice.pipeline.sums import Measure, ReadColumn
    from suffice.pipeline.unit_key import UnitKey

    Records: TypeAlias = NDArray[Any]
    Words: TypeAlias = NDArray[np.uint64]
    Codes: TypeAlias = NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class RecordLayout:
    """Where things stand in a record; follows from the job.

    Parameters
    ----------
    columns : tuple of ReadColumn
        What statistics read, each once.
    orders : tuple of str
        Columns by which statistics order a unit's rows, each once.
    n_cells : int
        Number of cells.
    """

    columns: tuple[ReadColumn, ...]
    orders: tuple[str, ...]
    n_cells: int

    @classmethod
    def of(cls, job: ChunkJob) -> RecordLayout:
        """Return the layout of a job's records."""
        return cls(
            columns=tuple(dict.fromkeys(of for measure in job.measures.values() for of in measure.reads)),
            orders=job.orders,
            n_cells=job.n_cells,
        )

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The record: ``unit``, ``order0``, ..., ``cell``, ``column0``, ..., filled up to whole words."""
        fields: list[tuple[Any, ...]] = [("unit", np.uint64, (2,))]
        fields += [(f"order{number}", np.int64) for number in range(len(self.orders))]
        fields.append(("cell", _narrowest(self.n_cells)))
        for number, of in enumerate(self.columns):
            kind = _narrowest(of.n_codes) if isinstance(of, CodeColumn) else np.int32
            fields.append((f"column{number}", kind))
        filling = -np.dtype(fields).itemsize % 8
        return np.dtype([*fields, ("filling", np.uint8, (filling,))] if filling else fields)

    def column(self, records: Records, of: ReadColumn) -> Codes:
        """Return what a statistic reads of a column, in a new array."""
        return self._integers(records, f"column{self.columns.index(of)}")

    def cells(self, records: Records) -> Codes:
        """Return the records' cells."""
        return self._integers(records, "cell")

    def order(self, records: Records, column: str) -> NDArray[np.int64]:
        """Return the records' place in a declared order."""
        return np.ascontiguousarray(records[f"order{self.orders.index(column)}"])

    def _integers(self, records: Records, field: str) -> Codes:
        return records[field].astype(np.int32)


def _narrowest(n_codes: int) -> type[np.signedinteger[Any]]:
    """Return the narrowest integer that holds -1 and the codes."""
    return next((kind for kind in (np.int8, np.int16) if n_codes <= np.iinfo(kind).max), np.int32)


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
        self._cells = CellReader(job.cell_columns)
        self._units = UnitReader(job.unit.column, key.texts)
        self._columns = [column_reader(of) for of in self._layout.columns]
        self._orders = [OrderReader(column) for column in self._layout.orders]

    def rows(self, batch: pa.RecordBatch) -> Rows:
        """Return which rows of a batch belong to a cell, and their units."""
        cells = self._cells.read(batch)
        units, is_null = self._units.read(batch)
        return Rows(batch=batch, cells=cells, units=units, is_null=is_null)

    def records(self, rows: Rows, chosen: NDArray[np.integer[Any]]) -> Records:
        """Return the records of some rows, in their order."""
        records = np.zeros(len(chosen), self._layout.dtype)
        if not len(chosen):
            return records
        records["unit"] = rows.units[chosen]
        records["cell"] = rows.cells[chosen]
        for number, order in enumerate(self._orders):
            records[f"order{number}"] = order.read(rows.batch)[chosen]
        for number, column in enumerate(self._columns):
            records[f"column{number}"] = column.read(rows.batch)[chosen]
        return records


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A batch with its rows' cells and units.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        The rows.
    cells : ndarray of int32, shape (n_rows,)
        -1 where a row belongs to none.
    units : ndarray of uint64, shape (n_rows, 2)
        See `unit_ids`.
    is_null : ndarray of bool, shape (n_rows,)
        Whether the unit is null.
    """

    batch: pa.RecordBatch
    cells: Codes
    units: Words
    is_null: NDArray[np.bool_]


def as_words(records: Records) -> Words:
    """Return records as words, shape (n_rows, n_words), uint64: a view."""
    words = np.ascontiguousarray(records).view(np.uint64)
    return words.reshape(len(records), records.dtype.itemsize // 8)


def divide(
    units: Words,
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
    hashing.assign_parts(units, *key.places, parts.start, len(parts), n_total, finely, part)
    order, ends = np.empty(len(units), np.int32), np.zeros(len(parts) + 1, np.int64)
    hashing.sort_by_part(part, ends, order)
    return order[: ends[-1]], ends


def slices(records: Records, ends: NDArray[np.int64]) -> list[Records]:
    """Return consecutive slices of records."""
    return [records[start:end] for start, end in pairwise(ends)]


def by_unit(pieces: Sequence[Records], key: UnitKey, bundle_rows: int) -> Iterator[Records]:
    """Bundle records so that all of one unit are in one bundle of some `bundle_rows`, more for large units.

    Parameters
    ----------
    pieces : sequence of structured arrays
        All records of the units in them, in any order.
    key : UnitKey
        The run's secret.
    bundle_rows : int
        Rows wanted in a bundle.
    """
    n_bundles = -(-sum(map(len, pieces)) // bundle_rows)
    divided = []
    for piece in pieces:
        order, ends = divide(as_words(piece), key, range(n_bundles), n_bundles, finely=True)
        divided.append(slices(piece[order], ends))
    for bundle in range(n_bundles):
        yield np.concatenate([parts[bundle] for parts in divided])


def columns_read(records: Records, layout: RecordLayout, measure: Measure) -> tuple[Codes, list[Codes]]:
    """Return the cells and the columns of a measure, in new arrays."""
    return layout.cells(records), [layout.column(records, of) for of in measure.reads]
