"""Write a statistic as a Parquet file: size and layout follow from its plan, never from its values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from suffice.arrays import decimal_array, number_array, text_array
from suffice.pipeline.terms.declaration.domains import DomainKind
from suffice.pipeline.terms.statistics.statistic_plan import INT64
from suffice.storage.releases.parquet_layout import ROW_GROUP
from suffice.storage.releases.statistic_reading import estimates_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan


# Anything else leaks: compression, dictionaries and statistics follow the values, and page checksums
# are variable-length integers, so that even they change a file's size.
_WRITER = {
    "version": "2.6",
    "data_page_version": "1.0",
    "compression": "none",
    "use_dictionary": False,
    "write_statistics": False,
    "write_page_checksum": False,
    "write_page_index": False,
    "store_schema": False,
}


class StatisticWriter:
    r"""Writes a statistic's noisy values as tidy rows while they are drawn, block after block.

    The columns are the groups', component, value, and

    .. math:: \text{estimate} = \text{value} / \text{partition total}

    a pseudo-count; for minimal statistics it is the value itself, in lattice steps. Values beyond the
    type's range are set to its end; that has probability under e^-64 a draw. Of a sample the columns are the
    groups', draw, counted from 0, and value, the point of the grid that it is, counted from 0.

    Row groups have the plan's lengths, whatever the blocks: values wait here until a row group is full, and
    are overwritten once it is written.

    Parameters
    ----------
    statistic : StatisticPlan
    sink : pyarrow.NativeFile
        Gets the bytes; their number is the same for all values. It stays open.
    """

    def __init__(self, statistic: StatisticPlan, sink: pa.NativeFile) -> None:
        self._statistic = statistic
        self._n_rows = statistic.n_cells * statistic.n_values
        self._written = self._waiting = 0
        kind: Any = np.int64 if statistic.value_type == INT64 else object
        self._values: NDArray[Any] = np.zeros(min(ROW_GROUP, self._n_rows), kind)
        self._schema = _schema(statistic)
        self._writer = pq.ParquetWriter(sink, self._schema, **_WRITER)

    def write(self, block: NDArray[Any]) -> None:
        """Take the next cells.

        Parameters
        ----------
        block : ndarray of int64 or of Python integers, shape (some cells, n_values)
            In lattice units.
        """
        if block.ndim != 2 or block.shape[1] != self._statistic.n_values:
            raise self._wrong_shape()
        flat = block.ravel()
        lowest, highest = self._statistic.value_limits
        while len(flat):
            taken = min(len(flat), self._next_length() - self._waiting)
            if not taken:
                raise self._wrong_shape()
            end = self._waiting + taken
            np.clip(flat[:taken], lowest, highest, out=self._values[self._waiting : end], casting="unsafe")
            self._waiting, flat = end, flat[taken:]
            if self._waiting == self._next_length():
                self._write_row_group()

    def close(self) -> None:
        """Write the end of the file, once every cell was written."""
        if self._written != self._n_rows:
            raise self._wrong_shape()
        self._writer.close()

    def abandon(self) -> None:
        """Write no more, and overwrite what waits, where the file will not be whole."""
        self._writer.is_open = False  # else pyarrow writes the file's end when the writer is collected
        self._values.fill(0)

    def _next_length(self) -> int:
        return min(ROW_GROUP, self._n_rows - self._written)

    def _write_row_group(self) -> None:
        stored = self._values[: self._waiting]
        kind = self._schema.field("value").type
        columns = [
            *_labels(self._statistic, self._written, len(stored)),
            decimal_array(stored.tolist(), kind) if pa.types.is_decimal(kind) else number_array(stored),
        ]
        estimates = np.empty(0)
        if self._statistic.sample is None:
            estimates = estimates_of(self._statistic, stored)
            columns.append(number_array(estimates))
        table = pa.Table.from_arrays(columns, schema=self._schema)
        self._writer.write_table(table, row_group_size=ROW_GROUP)
        self._written += self._waiting
        self._waiting = 0
        stored.fill(0)
        estimates.fill(0)

    def _wrong_shape(self) -> ValueError:
        return ValueError(f"{self._statistic.name} has values of the wrong shape")


def encode_statistic(statistic: StatisticPlan, values: NDArray[Any]) -> bytes:
    """Return a statistic's whole file, as :class:`StatisticWriter` writes it.

    Parameters
    ----------
    statistic
        As there.
    values : ndarray of int64 or of Python integers, shape (n_cells, n_values)
        In lattice units.

    Returns
    -------
    bytes
        A Parquet file; its length is the same for all values.
    """
    sink = pa.BufferOutputStream()
    writer = StatisticWriter(statistic, sink)
    writer.write(values)
    writer.close()
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def encoded_size(statistic: StatisticPlan) -> int:
    """Return how many bytes a statistic's file has, by writing zeros: it follows from the plan alone."""
    sink = pa.MockOutputStream()
    writer = StatisticWriter(statistic, sink)
    n_cells, n_values = statistic.n_cells, statistic.n_values
    cells = max(1, ROW_GROUP // n_values)
    zeros = np.zeros((min(cells, n_cells), n_values), np.int64)
    for start in range(0, n_cells, cells):
        writer.write(zeros[: min(cells, n_cells - start)])
    writer.close()
    return int(sink.size())


def _schema(statistic: StatisticPlan) -> pa.Schema:
    columns = {
        name: pa.int64() if domain.kind is DomainKind.RANGE else pa.string()
        for name, domain in statistic.groups.items()
    }
    if statistic.sample is not None:
        columns |= {"draw": pa.int64(), "value": pa.int64()}
    else:
        value = pa.int64() if statistic.value_type == INT64 else pa.decimal128(38, 0)
        columns |= {"component": pa.string(), "value": value, "estimate": pa.float64()}
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns.items()])


def _labels(statistic: StatisticPlan, start: int, n_rows: int) -> list[pa.Array]:
    """Return the group columns, and the column of components or of draws, of some consecutive rows."""
    cells, positions_in_cell = np.divmod(np.arange(start, start + n_rows), statistic.n_values)
    inner = statistic.n_cells
    columns = []
    for domain in statistic.groups.values():
        inner //= len(domain)
        positions = cells // inner % len(domain)
        if domain.kind is DomainKind.RANGE:
            columns.append(number_array(domain.keys[0] + positions))
        else:
            columns.append(text_array([str(key) for key in domain]).take(number_array(positions)))
    if statistic.sample is None:
        columns.append(text_array(statistic.components).take(number_array(positions_in_cell)))
    else:
        columns.append(number_array(positions_in_cell))
    return columns
