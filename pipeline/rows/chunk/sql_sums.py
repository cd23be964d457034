"""A measure's exact sums as queries that DuckDB answers: the integers that `chunk` gives.

One query gives the sums of powers and the counts of few codes of all statistics; tables of counts and
products of several columns have queries of their own. Sums have 128 bits, of which 2**63 rows of squares of
30 bits take 124.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

from suffice.pipeline.rows.chunk.exact_sums import LIMB_BITS
from suffice.pipeline.rows.chunk.sql_columns import SqlColumns
from suffice.pipeline.terms.statistics.measure import CodeCounts, MomentSums, PowerSums, TableCounts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from suffice.pipeline.rows.chunk.exact_sums import Sums
    from suffice.pipeline.rows.chunk.partition import ChunkJob
    from suffice.pipeline.terms.statistics.measure import CodeColumn, ReadColumn

_LIMB = 1 << LIMB_BITS
_FEW_CODES = 8
"""So many codes are counted beside other sums, each for itself; more have a query of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SumQuery:
    """A query that gives some sums.

    Parameters
    ----------
    sql : str
        Its columns are ``cell``, and either ``place`` and ``n`` or ``low0``, ``high0``, ``low1`` and so on.
    parameters : dict of str to float
        Public numbers.
    keys : dict of str to pyarrow.Table
        Public keys and their codes.
    statistic : str
        Whose counts they are, each with its place; empty where each row has several sums.
    places : tuple of (str, int)
        Of each sum in a row: the statistic, and the place in its table.
    """

    sql: str
    parameters: dict[str, float]
    keys: dict[str, pa.Table]
    statistic: str = ""
    places: tuple[tuple[str, int], ...] = ()

    def write(self, found: Mapping[str, NDArray[np.int64]], sums: Sums) -> None:
        """Write an answer into tables of zeros."""
        cells = found["cell"]
        if self.statistic:
            sums[self.statistic].low[cells, found["place"]] = found["n"]
        for number, (statistic, place) in enumerate(self.places):
            table = sums[statistic]
            table.low[cells, place] = found[f"low{number}"]
            if table.high is not None:
                table.high[cells, place] = found[f"high{number}"]


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
    return (*_of_one_column(job, columns), *_of_several(job, columns))


def _of_one_column(job: ChunkJob, columns: pa.Schema) -> Iterator[SumQuery]:
    """Write one query for all sums of powers and all counts of few codes."""
    rows = SqlColumns(job, columns)
    sums: dict[tuple[str, int], str] = {}
    for name, measure in job.measures.items():
        if isinstance(measure, PowerSums):
            value = rows.value(measure.of)
            written = [f"count({value})", f"sum({value})", f"sum({value} * {value})"][: measure.width]
        elif isinstance(measure, CodeCounts) and measure.width <= _FEW_CODES:
            value = rows.value(measure.of)
            written = [f"count(*) FILTER (WHERE {value} = {code})" for code in range(measure.width)]
        else:
            continue
        sums |= {(name, place): each for place, each in enumerate(written)}
    if sums:
        yield _sums(rows, sums)


def _of_several(job: ChunkJob, columns: pa.Schema) -> Iterator[SumQuery]:
    """Write the queries of all that `_of_one_column` leaves."""
    for name, measure in job.measures.items():
        if isinstance(measure, CodeCounts) and measure.width > _FEW_CODES:
            yield _counts(SqlColumns(job, columns), name, [measure.of], [measure.of], 0)
        elif isinstance(measure, TableCounts):
            for number, table in enumerate(measure.tables):
                start = sum(measure.widths[:number])
                yield _counts(SqlColumns(job, columns), name, table, measure.reads, start)
        elif isinstance(measure, MomentSums):
            rows = SqlColumns(job, columns)
            values = [rows.value(of) for of in measure.of]
            products = [f"{a} * {b}" for a, b in combinations_with_replacement(values, 2)]
            written = ["count(*)", *(f"sum({each})" for each in (*values, *products))]
            yield _sums(rows, {(name, place): each for place, each in enumerate(written)}, values)
        elif not isinstance(measure, CodeCounts | PowerSums):
            message = f"{type(measure).__name__} is not summed in a database"
            raise TypeError(message)


def _counts(
    rows: SqlColumns, name: str, table: Sequence[CodeColumn], reads: Sequence[ReadColumn], start: int
) -> SumQuery:
    """Count the combinations of a table's codes, from place `start` on, among rows that have all codes."""
    present = _present([rows.value(of) for of in reads])
    place = "0"
    for of in table:
        place = f"({place} * {of.n_codes} + {rows.value(of)})"
    sql = (
        f"SELECT cell, {start} + {place} AS place, count(*) AS n "  # noqa: S608
        f"FROM {rows.rows} WHERE {present} GROUP BY ALL"
    )
    return SumQuery(sql=sql, parameters=rows.parameters, keys=rows.keys, statistic=name)


def _sums(rows: SqlColumns, sums: Mapping[tuple[str, int], str], complete: Sequence[str] = ()) -> SumQuery:
    """Give sums, each as two limbs, of all rows, or of those that have some values."""
    named = ", ".join(
        f"CAST(coalesce({each}, 0) AS HUGEINT) AS s{number}" for number, each in enumerate(sums.values())
    )
    limbs = ", ".join(_limbs(number) for number in range(len(sums)))
    where = f"WHERE {_present(complete)}" if complete else ""
    # A single cell is no group: then there is a row even where no row of the table enters.
    cell, group = ("cell", "GROUP BY cell") if rows.n_cells > 1 else ("0 AS cell", "")
    grouped = f"SELECT {cell}, {named} FROM {rows.rows} {where} {group}"  # noqa: S608
    sql = f"SELECT cell, {limbs} FROM ({grouped})"  # noqa: S608
    return SumQuery(sql=sql, parameters=rows.parameters, keys=rows.keys, places=tuple(sums))


def _limbs(number: int) -> str:
    """Split a sum as `Table` does; remainders of negative numbers are negative here."""
    low = f"((s{number} % {_LIMB} + {_LIMB}) % {_LIMB})"
    return (
        f"CAST({low} AS BIGINT) AS low{number}, "
        f"CAST((s{number} - {low}) // {_LIMB} AS BIGINT) AS high{number}"
    )


def _present(values: Sequence[str]) -> str:
    return " AND ".join(f"{value} IS NOT NULL" for value in values)
