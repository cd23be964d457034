"""Rows as 32-bit integers: each row's cell, and each column's code or lattice value.

Everything that depends on a single row alone happens here: window, group keys, clipping, rounding and
null rules. What comes after only adds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from suffice.pipeline.rows.chunk import kernels
from suffice.pipeline.rows.chunk.clip_and_round import lattice_values, sides
from suffice.pipeline.rows.chunk.encoding import Encoder
from suffice.pipeline.rows.sources.arrow_arrays import fixed_width, null_mask
from suffice.pipeline.terms.statistics.measure import CodeColumn
from suffice.pipeline.terms.statistics.side_column import SideColumn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from suffice.pipeline.terms.declaration.domains import Domain
    from suffice.pipeline.terms.statistics.measure import LatticeColumn, ReadColumn
    from suffice.typing import Codes


NO_POSITION = -(2**63)
"""The floor of what has no place in a unit's order, below all others."""
LARGEST_REST = 2047
"""What a 64-bit integer can have more than its floor: float64 numbers below 2^64 are 2048 apart or less."""


class CellReader:
    """The cell of every row, -1 where it belongs to none; lives for one task.

    Parameters
    ----------
    keys : iterable of (str, Domain)
        The columns that choose a cell, in declared order; the cells are the product of their keys.
    """

    def __init__(self, keys: Iterable[tuple[str, Domain]]) -> None:
        self._keys = [(column, len(domain), Encoder(domain)) for column, domain in keys]

    def read(self, batch: pa.RecordBatch) -> Codes:
        """Return the cells of a batch, shape (n_rows,), int32."""
        cells = np.zeros(batch.num_rows, np.int32)
        for column, size, encoder in self._keys:
            kernels.combine_codes(cells, encoder.codes(batch.column(column)), size)
        return cells


class CodeReader:
    """A column's code in every row, -1 where it does not enter; lives for one task."""

    def __init__(self, of: CodeColumn) -> None:
        self._column = of.column
        self._encoder = Encoder(of.domain, -1 if of.fallback is None else of.fallback)

    def read(self, batch: pa.RecordBatch) -> Codes:
        """Return the codes of a batch in a new array, shape (n_rows,), int32."""
        return self._encoder.codes(batch.column(self._column))


class LatticeReader:
    """A column's lattice value in every row, `kernels.NOTHING` where it does not enter."""

    def __init__(self, of: LatticeColumn) -> None:
        self._of = of

    def read(self, batch: pa.RecordBatch) -> Codes:
        """Return the lattice values of a batch in a new array, shape (n_rows,), int32."""
        return lattice_values(batch.column(self._of.column), self._of)


class SideReader:
    """The side of its bounds on which every row's value lies beyond them, -1 where it does not."""

    def __init__(self, of: SideColumn) -> None:
        self._of = of

    def read(self, batch: pa.RecordBatch) -> Codes:
        """Return the sides of a batch in a new array, shape (n_rows,), int32."""
        return sides(batch.column(self._of.column), self._of)


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


def column_reader(of: ReadColumn) -> CodeReader | LatticeReader | SideReader:
    """Return the reader of a column; it lives for one task."""
    if isinstance(of, SideColumn):
        return SideReader(of)
    return CodeReader(of) if isinstance(of, CodeColumn) else LatticeReader(of)
