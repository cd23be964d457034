"""Data sets whose unit is a column, summed by the real tasks without a cluster, and in plain Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from suffice.pipeline.rows.chunk.exact_sums import combine
from suffice.pipeline.rows.contribution.records import UnitKey
from suffice.pipeline.rows.reduce.shuffle import Round, divide_rows, sum_bucket
from suffice.pipeline.rows.reduce.tree import zero_sums
from suffice.pipeline.terms.declaration.column_unit import ColumnUnit
from support.splits import splits_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from suffice.pipeline.rows.chunk.exact_sums import Sums
    from suffice.pipeline.rows.chunk.partition import ChunkJob
    from suffice.pipeline.rows.sources.contract import Split
    from suffice.pipeline.spec.spec import Spec

KEY = UnitKey.of(bytes(range(48)))
OTHER_KEY = UnitKey.of(bytes(range(100, 148)))


def by_customer(max_rows: int, **others: str) -> dict[str, Any]:
    """Return the unit of a spec whose column is ``u``."""
    return {"column": "u", "max_rows": str(max_rows), **others}


def customers(max_rows: int, max_rows_per_cell: int | None = None) -> ColumnUnit:
    """Return the unit whose column is ``u`` and that keeps so many rows."""
    in_cell = {} if max_rows_per_cell is None else {"max_rows_per_cell": str(max_rows_per_cell)}
    return ColumnUnit.model_validate({**by_customer(max_rows), **in_cell})


def write_row_groups(directory: Path, table: pa.Table, sizes: Sequence[int]) -> None:
    """Write rows as one file with row groups of these sizes."""
    start = 0
    with pq.ParquetWriter(directory / "data.parquet", table.schema) as writer:
        for size in sizes:
            writer.write_table(table.slice(start, size))
            start += size


def partitions_of(spec: Spec) -> tuple[Split, ...]:
    """Return the spec's partitions, as many as there are row groups."""
    return splits_of(spec, 1)


def sum_tasks(
    job: ChunkJob,
    partitions: Sequence[Split],
    key: UnitKey = KEY,
    *,
    n_buckets: int = 2,
    n_rounds: int = 1,
) -> Sums:
    """Run the tasks of the shuffle one after the other, each partition in a task of its own."""
    parts = [zero_sums(job)]
    for number in range(n_rounds):
        shared = Round(job=job, key=key, number=number, n_rounds=n_rounds, n_buckets=n_buckets)
        divided = [divide_rows(partition, shared) for partition in partitions]
        parts += [read.sums for read in divided if read.sums is not None]
        for bucket in range(n_buckets):
            parts.append(sum_bucket([read.buckets[bucket] for read in divided], shared))
    return combine(parts)
