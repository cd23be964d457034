"""Rows as 32-bit integers: each row's cell, and each column's code or lattice value.

Everything that depends on a single row alone happens here: window, group keys, clipping, rounding and
null rules. What comes after only adds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from suffice.pipeline.chunk import kernels
from suffice.pipeline.chunk.clip_and_round import lattice_values
from suffice.pipeline.chunk.domain_lookup import UNSIGNED_SHIFT
from suffice.pipeline.chunk.encoding import Encoder
from suffice.pipeline.sources.arrow_arrays import fixed_width
from suffice.pipeline.statistics.measure import CodeColumn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from suffice.pipeline.declaration.domains import Domain
    from suffice.pipeline.statistics.measure import LatticeColumn, ReadColumn
    from suffice.typing import Codes


NO_POSITION = -(2**63)
"""The position of nulls in a unit's order, before all others."""


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


class OrderReader:
    """A column's place in its own order, in every row: numbers, days, or microseconds since 1970."""

    def __init__(self, column: str) -> None:
        self._column = column

    def read(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        """Return int64 numbers in the order of the column's values, shape (n_rows,); nulls come first."""
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
            return np.full(len(column), NO_POSITION, np.int64)
        if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            positions = _ordered_bits(pc.cast(column, pa.float64(), safe=False))
        elif kind == pa.uint64():
            positions = _above_no_position((fixed_width(column) ^ np.uint64(UNSIGNED_SHIFT)).view(np.int64))
        else:
            positions = _above_no_position(fixed_width(column).astype(np.int64))
        if column.null_count:
            positions[pc.is_null(column).to_numpy(zero_copy_only=False)] = NO_POSITION
        return positions


def _above_no_position(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return integers one higher, so that the lowest is no null; the two highest share a place."""
    return values + (values < np.iinfo(np.int64).max)


def _ordered_bits(column: pa.Array) -> NDArray[np.int64]:
    """Return float64 numbers as integers of the same order; NaN counts as null, minus zero as zero."""
    values = fixed_width(column) + 0.0
    bits = values.view(np.int64)
    return np.where(np.isnan(values), NO_POSITION, np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits))


def column_reader(of: ReadColumn) -> CodeReader | LatticeReader:
    """Return the reader of a column; it lives for one task."""
    return CodeReader(of) if isinstance(of, CodeColumn) else LatticeReader(of)
