"""Numbers as the bins of a histogram: each row's bin, compared with public edges exactly.

Integers and decimals are compared as integers, at any magnitude. For a floating-point column an edge is the
nearest number of the column's type, as constants of conditions are: a value written as an edge is at it, in
whatever type a file holds it. `HistogramBins.position` is the definition.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from suffice.pipeline.rows.chunk import kernels
from suffice.pipeline.rows.chunk.paged_columns import ColumnReader
from suffice.pipeline.rows.sources.column_values import comparable, fixed_width, validity
from suffice.pipeline.terms.declaration.domain_lookup import nearest

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from suffice.pipeline.terms.declaration.domain_lookup import Codes
    from suffice.pipeline.terms.statistics.histogram_bins import Bin
    from suffice.pipeline.terms.statistics.measure import BinColumn

_INT64 = np.iinfo(np.int64)


class BinReader(ColumnReader):
    """A column's bin in every row, -1 where it does not enter; lives for one task."""

    def __init__(self, of: BinColumn) -> None:
        self.column = of.column
        self._of = of
        self._least: dict[pa.DataType, NDArray[Any]] = {}

    def codes(self, column: pa.Array) -> Codes:
        """Return one bin per value of an Arrow array, shape (n_rows,), int32."""
        missing = -1 if self._of.fallback is None else self._of.fallback
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_null(column.type) or column.null_count == len(column):
            return np.full(len(column), missing, np.int32)
        if pa.types.is_boolean(column.type):
            column = pc.cast(column, pa.uint8())
        column = comparable(column)
        kind = column.type
        if kind not in self._least:
            self._least[kind] = least_values(tuple(self._of.bins)[1:], kind)
        least = self._least[kind]
        values = _unscaled(column, least) if pa.types.is_decimal(kind) else fixed_width(column)
        if values.dtype != least.dtype:
            values = values.astype(least.dtype)
        codes = np.searchsorted(least, values, side="right").astype(np.int32)
        if pa.types.is_floating(kind):
            codes[np.isnan(values)] = missing
        if column.null_count:
            kernels.fill_nulls(codes, *validity(column), missing)
        return codes


def least_values(bins: tuple[Bin, ...], kind: pa.DataType) -> NDArray[Any]:
    """Return the least value of a type that every bin holds, ascending; of decimals, in units of their scale.

    A value lies in the bin before the first of `bins` where it is below all. Bins between two numbers that
    are one in this type hold nothing.
    """
    if pa.types.is_floating(kind):
        return np.maximum.accumulate([_least_float(each, np.dtype(kind.to_pandas_dtype())) for each in bins])
    unit = 10**kind.scale if pa.types.is_decimal(kind) else 1
    least = [_least_integer(each, unit) for each in bins]
    limits = np.iinfo(np.uint64) if kind == pa.uint64() else _INT64
    if pa.types.is_decimal(kind) and not all(limits.min < value <= limits.max for value in least):
        return np.array(least, dtype=object)
    reachable = [max(value, int(limits.min)) for value in least if value <= limits.max]
    return np.array(reachable, dtype=limits.dtype)


def _least_integer(of: Bin, unit: int) -> int:
    edge: Fraction = of.begins * unit
    return math.ceil(edge) if of.holds_lower else math.floor(edge) + 1


def _least_float(of: Bin, kind: np.dtype[Any]) -> float:
    near = nearest(of.begins, kind)
    edge = float(of.begins) if near is None else near
    if of.holds_lower or near is None:
        return edge
    return float(np.nextafter(kind.type(edge), kind.type(math.inf)))


def _unscaled(column: pa.Array, least: NDArray[Any]) -> NDArray[Any]:
    """Return decimals as integers of their scale, whatever stands under nulls.

    Beside 64-bit integers those beyond are the end of that range, which compares alike.
    """
    n_words = column.type.bit_width // 64
    begin, end = column.offset * n_words, (column.offset + len(column)) * n_words
    words = np.frombuffer(column.buffers()[1], np.int64)[begin:end].reshape(-1, n_words)
    if sys.byteorder != "little":
        message = "decimals are read on little-endian machines alone"
        raise NotImplementedError(message)
    if least.dtype == object:
        values = words[:, -1].astype(object)
        for word in reversed(range(n_words - 1)):
            values = values * 2**64 + words[:, word].view(np.uint64).astype(object)
        return values
    low, high = words[:, 0], words[:, -1]
    fits = np.all(words[:, 1:] == (low >> 63)[:, None], axis=1)
    return np.where(fits, low, np.where(high < 0, _INT64.min, _INT64.max))
