"""A measure's exact sums as queries that DuckDB answers: the integers that `chunk` gives.

Each statistic has queries of its own. All of a result but its order is fixed by the rows; sums are of 128
bits, of which the 63 bits of a square and 2**63 rows take 124.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

from suffice.pipeline.chunk.exact_sums import LIMB_BITS
from suffice.pipeline.chunk.sql_columns import SqlColumns
from suffice.pipeline.statistics.measure import CodeCounts, MomentSums, PowerSums, TableCounts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from suffice.pipeline.chunk.exact_sums import Table
    from suffice.pipeline.chunk.partition import ChunkJob
    from suffice.pipeline.statistics.measure import CodeColumn, LatticeColumn, Measure

_LIMB = 1 << LIMB_BITS


@dataclass(frozen=True, slots=True, kw_only=True)
class SumQuery:
    """A query that gives some sums of one statistic.

    Parameters
    ----------
    statistic : str
        Its name.
    sql : str
        Its columns are ``cell``, and either ``place`` and ``n`` or ``low0``, ``high0``, ``low1`` and so on.
    parameters : dict of str to float
        Public numbers.
    keys : dict of str to pyarrow.Table
        Public keys and their codes.
    n_sums : int
        Number of sums in a row; 0 where it is a count and its place.
    """

    statistic: str
    sql: str
    parameters: dict[str, float]
    keys: dict[str, pa.Table]
    n_sums: int = 0

    def write(self, found: Mapping[str, NDArray[np.int64]], table: Table) -> None:
        """Write an answer into a table of zeros."""
        if not self.n_sums:
            table.low[found["cell"], found["place"]] = found["n"]
            return
        for place in range(self.n_sums):
            table.low[found["cell"], place] = found[f"low{place}"]
            if table.high is not None:
                table.high[found["cell"], place] = found[f"high{place}"]


def sum_queries(job: ChunkJob, columns: pa.Schema) -> tuple[SumQuery, ...]:
    """Return the queries of a job over rows that are units of their own, without derived columns.

    Parameters
    ----------
    job : ChunkJob
        What to sum.
    columns : pyarrow.Schema
        The columns of the table, as Arrow reads them.

    Raises
    ------
    SchemaError
        Where a column is of a type that is not summed in the database.
    """
    if job.unit is not None or job.derived:
        message = "bounded rows and derived columns are not summed in a database"
        raise ValueError(message)
    return tuple(
        query for name, measure in job.measures.items() for query in _queries(name, measure, job, columns)
    )


def _queries(name: str, measure: Measure, job: ChunkJob, columns: pa.Schema) -> list[SumQuery]:
    if isinstance(measure, CodeCounts):
        return [_counts(name, [measure.of], [measure.of], 0, job, columns)]
    if isinstance(measure, TableCounts):
        starts = [sum(measure.widths[:number]) for number in range(len(measure.tables))]
        return [
            _counts(name, table, measure.reads, start, job, columns)
            for table, start in zip(measure.tables, starts, strict=True)
        ]
    if isinstance(measure, PowerSums):
        products = [("v0",), ("v0", "v0")][: measure.degree]
        return [_sums(name, [measure.of], products, job, columns)]
    if isinstance(measure, MomentSums):
        values = [f"v{number}" for number in range(len(measure.of))]
        products = [*((value,) for value in values), *combinations_with_replacement(values, 2)]
        return [_sums(name, measure.of, products, job, columns)]
    message = f"{type(measure).__name__} is not summed in a database"
    raise TypeError(message)


def _counts(
    name: str,
    table: Sequence[CodeColumn],
    reads: Sequence[CodeColumn],
    start: int,
    job: ChunkJob,
    columns: pa.Schema,
) -> SumQuery:
    """Count the combinations of a table's codes, from place `start` on, among rows that have all codes."""
    writer = SqlColumns(columns)
    place = "0"
    for of in table:
        place = f"({place} * {of.n_codes} + v{list(reads).index(of)})"
    rows = _rows(writer, reads, job)
    sql = f"SELECT cell, {start} + {place} AS place, count(*) AS n FROM {rows} GROUP BY ALL"  # noqa: S608
    return SumQuery(statistic=name, sql=sql, parameters=writer.parameters, keys=writer.keys)


def _sums(
    name: str,
    of: Sequence[LatticeColumn],
    products: Sequence[tuple[str, ...]],
    job: ChunkJob,
    columns: pa.Schema,
) -> SumQuery:
    """Sum 1 and products of values, each as two limbs."""
    writer = SqlColumns(columns)
    sums = ["CAST(count(*) AS HUGEINT)", *(f"CAST(sum({' * '.join(each)}) AS HUGEINT)" for each in products)]
    named = ", ".join(f"{each} AS s{place}" for place, each in enumerate(sums))
    limbs = ", ".join(_limbs(place) for place in range(len(sums)))
    grouped = f"SELECT cell, {named} FROM {_rows(writer, of, job)} GROUP BY cell"  # noqa: S608
    sql = f"SELECT cell, {limbs} FROM ({grouped})"  # noqa: S608
    return SumQuery(statistic=name, sql=sql, parameters=writer.parameters, keys=writer.keys, n_sums=len(sums))


def _limbs(place: int) -> str:
    """Split a sum as `Table` does; remainders of negative numbers are negative here."""
    low = f"((s{place} % {_LIMB} + {_LIMB}) % {_LIMB})"
    return (
        f"CAST({low} AS BIGINT) AS low{place}, CAST((s{place} - {low}) // {_LIMB} AS BIGINT) AS high{place}"
    )


def _rows(writer: SqlColumns, reads: Sequence[CodeColumn] | Sequence[LatticeColumn], job: ChunkJob) -> str:
    """Return the rows that enter: their cells, and values ``v0``, ``v1`` and so on."""
    cell = writer.cell(job.cell_columns)
    values = [f"{writer.value(of)} AS v{number}" for number, of in enumerate(reads)]
    present = " AND ".join(["cell IS NOT NULL", *(f"v{number} IS NOT NULL" for number in range(len(reads)))])
    listed = ", ".join([f"{cell} AS cell", *values])
    return f"(SELECT {listed} FROM {writer.rows}) WHERE {present}"  # noqa: S608
