"""A statistic as a Parquet file whose size and layout follow from its plan alone, never from its values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from suffice.pipeline.declaration.domains import DomainKind
from suffice.pipeline.statistics.statistic_plan import INT64
from suffice.storage.releases.parquet_layout import ROW_GROUP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from suffice.pipeline.declaration.domains import Domain
    from suffice.pipeline.statistics.statistic_plan import StatisticPlan

_EXACT_IN_FLOAT64 = 2**53

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


def encode_statistic(statistic: StatisticPlan, groups: Mapping[str, Domain], values: NDArray[Any]) -> bytes:
    r"""Write a statistic's noisy values as tidy rows: group columns, component, value, estimate.

    .. math:: \text{estimate} = \text{value} / \text{partition total}

    a pseudo-count; for minimal statistics it is the value itself, in lattice steps. Values beyond the
    type's range are set to its end; that has probability under e^-64 a draw.

    Parameters
    ----------
    statistic : StatisticPlan
    groups : mapping of str to Domain
        In declared order; the cells are their product, the last column running fastest.
    values : ndarray of int64 or of Python integers, shape (n_cells, n_components)
        In lattice units.

    Returns
    -------
    bytes
        A Parquet file; its length is the same for all values.
    """
    schema = _schema(statistic, groups)
    if values.shape != _shape(statistic, groups):
        message = f"{statistic.name} has values of the wrong shape"
        raise ValueError(message)
    lowest, highest = statistic.value_limits
    flat = values.ravel()
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema, **_WRITER) as writer:
        for start in range(0, len(flat), ROW_GROUP):
            stored = np.clip(flat[start : start + ROW_GROUP], lowest, highest)
            if statistic.value_type == INT64:
                stored = stored.astype(np.int64, copy=False)
            columns = [
                *_labels(statistic, groups, start, len(stored)),
                pa.array(stored, type=schema.field("value").type),
                pa.array(estimates_of(statistic, stored)),
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema), row_group_size=ROW_GROUP)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def expand_groups(groups: Mapping[str, Domain]) -> dict[str, list[str | int]]:
    """Return the key of each cell by group column; the last column runs fastest."""
    n_cells = inner = _n_cells(groups)
    keys = {}
    for column, domain in groups.items():
        inner //= len(domain)
        once = np.repeat(np.array(list(domain), dtype=object), inner)
        keys[column] = np.tile(once, n_cells // len(once)).tolist()
    return keys


def _n_cells(groups: Mapping[str, Domain]) -> int:
    return math.prod(len(domain) for domain in groups.values())


def _shape(statistic: StatisticPlan, groups: Mapping[str, Domain]) -> tuple[int, int]:
    return _n_cells(groups), len(statistic.components)


def _schema(statistic: StatisticPlan, groups: Mapping[str, Domain]) -> pa.Schema:
    columns = {
        **{
            name: pa.int64() if domain.kind is DomainKind.RANGE else pa.string()
            for name, domain in groups.items()
        },
        "component": pa.string(),
        "value": pa.int64() if statistic.value_type == INT64 else pa.decimal128(38, 0),
        "estimate": pa.float64(),
    }
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns.items()])


def _labels(
    statistic: StatisticPlan, groups: Mapping[str, Domain], start: int, n_rows: int
) -> list[pa.Array]:
    """Return the group columns and the component column of some consecutive rows."""
    cells, components = np.divmod(np.arange(start, start + n_rows), len(statistic.components))
    inner = _n_cells(groups)
    columns = []
    for domain in groups.values():
        inner //= len(domain)
        positions = cells // inner % len(domain)
        if domain.kind is DomainKind.RANGE:
            columns.append(pa.array(domain.keys[0] + positions))
        else:
            columns.append(pa.array(domain.keys, type=pa.string()).take(pa.array(positions)))
    columns.append(pa.array(statistic.components, type=pa.string()).take(pa.array(components)))
    return columns


def estimates_of(statistic: StatisticPlan, values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the quotients, each correctly rounded."""
    unit = statistic.partition_total or 1
    if unit > _EXACT_IN_FLOAT64:
        values = values.astype(object)
    estimates: NDArray[np.float64] = (values / unit).astype(np.float64, copy=False)
    if values.dtype != object:  # beyond 2^53 NumPy rounds the value before it divides
        large = (values > _EXACT_IN_FLOAT64) | (values < -_EXACT_IN_FLOAT64)
        estimates[large] = (values[large].astype(object) / unit).astype(np.float64)
    return estimates
