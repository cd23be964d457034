"""Exact sums by the database that holds the rows, in the memory of the calling process.

Nothing of it travels: DuckDB is a library here, not a server, which would keep totals in caches and files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.errors import StageFailedError, UsageError
from suffice.pipeline.cluster.connection import THREADS
from suffice.pipeline.rows.chunk.exact_sums import ExactTotals, wipe, wipe_sums, zeros
from suffice.pipeline.rows.reduce.tree import READING_FAILED, Failure, guarded
from suffice.pipeline.rows.sources.duckdb_tables import querying

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.cluster.connection import Progress
    from suffice.pipeline.rows.chunk.exact_sums import Sums
    from suffice.pipeline.rows.chunk.partition import ChunkJob
    from suffice.pipeline.rows.chunk.sql_sums import SumQuery
    from suffice.pipeline.rows.sources.contract import Pin


def require_threads(address: str) -> None:
    """Refuse a cluster of other processes, which would have nothing to do.

    Raises
    ------
    UsageError
        Where it is not the threads of this process.
    """
    if address != THREADS:
        message = (
            f"source.push_down: DuckDB sums the rows in the calling process: use the cluster {THREADS}, or "
            "leave push_down out"
        )
        raise UsageError(message)


def pushed_sums(
    job: ChunkJob,
    queries: Sequence[SumQuery],
    pin: Pin,
    *,
    n_threads: int,
    progress: Progress | None = None,
) -> ExactTotals:
    """Sum all rows of a pinned table: the totals of `exact_sums`, bit for bit.

    Parameters
    ----------
    job : ChunkJob
        What to sum.
    queries : sequence of SumQuery
        The job's, by `sum_queries`.
    pin : Pin
        Of a table in a DuckDB file.
    n_threads : int
        Threads that sum.
    progress : callable, optional
        Called with the number of queries that were answered and of all queries.

    Raises
    ------
    StageFailedError
        Where the rows could not be read; a fixed text.
    """
    result = guarded(lambda: _answers(job, queries, pin, n_threads, progress), None, READING_FAILED)
    if isinstance(result, Failure):
        raise StageFailedError("reading", result.message)
    return result


def _answers(
    job: ChunkJob, queries: Sequence[SumQuery], pin: Pin, n_threads: int, progress: Progress | None
) -> ExactTotals:
    sums: Sums = zeros(job.measures, job.n_cells)
    try:
        with querying(pin, n_threads) as run:
            for number, query in enumerate(queries, 1):
                answers = run(query.sql, query.parameters, query.keys)
                query.write(answers, sums)
                for column in answers.values():
                    wipe(column)
                if progress is not None:
                    progress(number, len(queries))
    except BaseException:
        wipe_sums(sums)
        raise
    return ExactTotals(sums)
