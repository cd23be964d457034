"""What single records add, and what units of several do: vectors of exact totals, without files."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.beside_sums import totals_of
from suffice.pipeline.rows.chunk.encoding import column_reader
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import accumulator
from suffice.pipeline.spec.plan import compile_plan, measures

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from suffice.pipeline.spec.spec import Spec


def record_vectors(spec: Spec, batch: pa.RecordBatch) -> NDArray[Any]:
    """Return the totals of each record of the spec's only statistic, (n_records, n_components).

    By the engine's readers and kernels: each record is in a cell of its own.
    """
    ((name, measure),) = measures(spec).items()
    adding = accumulator(measure, len(batch))
    readings = [column_reader(of).read(batch) for of in measure.reads]
    adding.add(np.arange(len(batch), dtype=np.int32), readings)
    exact = to_python({name: adding.table()})[name]
    entry = spec.statistics[name]
    return totals_of(FAMILIES[entry.family], entry, compile_plan(spec).statistics[0], exact)


def unit_vectors(records: NDArray[Any], cells: int, max_rows: int, per_cell: int) -> NDArray[Any]:
    """Return what every unit of at most so many records adds, (n_units, n_cells * n_components)."""
    size, width = records.shape
    placed = np.zeros((cells * size, cells, width), records.dtype)
    for cell in range(cells):
        placed[cell * size : (cell + 1) * size, cell] = records
    placed = placed.reshape(len(placed), -1)
    units = [
        chosen
        for rows in range(max_rows + 1)
        for chosen in itertools.combinations_with_replacement(range(len(placed)), rows)
        if all(sum(record // size == cell for record in chosen) <= per_cell for cell in range(cells))
    ]
    return np.array([placed[list(chosen)].sum(axis=0) for chosen in units])


def squared_change(vectors: NDArray[Any], neighboring: str) -> int:
    """Return the largest squared L2 change: from the first to any, or from any to any."""
    if neighboring == "add_or_remove_one":
        beside = (vectors - vectors[0]).astype(object)
        return int(max((vector * vector).sum() for vector in beside))
    distinct = np.unique(vectors.astype(np.int64) - np.int64(vectors[0]), axis=0)
    squares = (distinct * distinct).sum(axis=1)
    return int((squares[:, None] + squares - 2 * distinct @ distinct.T).max())
