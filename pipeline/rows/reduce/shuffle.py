"""Sums bounded by unit: tasks read and divide rows by unit, others bound the units whose rows they gather.

Rows travel as records, over the cluster's own links, in memory alone. Where all of them would need more
than a public budget, the data are read in several rounds, each of which keeps one share of the units:
memory stays where it is when data grow, and time grows with the rounds.

Under a declared clustering tasks first exchange bitmaps that tell which units have rows in two of them. A
unit sets one bit among a public number of them. A unit whose bit is set by one task alone has all its rows
there and is bounded there; any other travels. Two units that share a bit travel for nothing, and so do all
where the declaration is wrong: that costs time and changes no result.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from suffice.pipeline.cluster.connection import Watched
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.derived_columns import with_derived
from suffice.pipeline.rows.chunk.encoding import in_any
from suffice.pipeline.rows.chunk.exact_sums import ExactTotals, Sums, combine, wipe_sums
from suffice.pipeline.rows.chunk.partition import BLOCK_ROWS
from suffice.pipeline.rows.contribution import siphash
from suffice.pipeline.rows.contribution.bounding import UnitSums
from suffice.pipeline.rows.contribution.records import RecordLayout, RecordReader, divide, slices
from suffice.pipeline.rows.contribution.unit_ids import IS_UNIT, UnitReader
from suffice.pipeline.rows.reduce.tree import (
    READING_FAILED,
    Failure,
    Packed,
    Partial,
    PartialSums,
    add_tree,
    for_tasks,
    guarded,
    in_task,
    last_addition,
    most_tables,
    succeeded,
    zero_sums,
)
from suffice.pipeline.rows.sources.contract import exact_data, join
from suffice.pipeline.terms.declaration.derived_columns import physical

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.cluster.connection import Cluster, Progress
    from suffice.pipeline.rows.chunk.partition import ChunkJob
    from suffice.pipeline.rows.contribution.records import Records, Rows, UnitKey
    from suffice.pipeline.rows.sources.contract import Split

_BITS_PER_ROW = 2
_MOST_BITS = 1 << 24


@exact_data(travels=True)
class Seen:
    """Bits that units set.

    Parameters
    ----------
    once, twice : ndarray of uint8, shape (n_bits // 8,)
        Packed: set by a task, and set by more than one.
    """

    once: NDArray[np.uint8]
    twice: NDArray[np.uint8]

    def more_than_once(self, units: Records, key: UnitKey) -> NDArray[np.bool_]:
        """Tell of each row's unit whether more than one task may have seen it, shape (n_rows,)."""
        bits = unit_bits(units, key, 8 * len(self.twice))
        masks = np.left_shift(1, 7 - (bits & 7)).astype(np.uint8)
        is_set: NDArray[np.bool_] = (self.twice[bits >> 3] & masks) != 0
        return is_set


def bit_count(n_rows: int) -> int:
    """Return how many bits stand for units, a power of two."""
    return int(min(_MOST_BITS, 1 << max(10, (_BITS_PER_ROW * n_rows).bit_length())))


def units_seen(partition: Split, job: ChunkJob, key: UnitKey, n_bits: int) -> Seen:
    """Read what chooses cells and units, and set the bits of units with a row in a cell."""
    if job.unit is None:
        message = "a job without a column unit sees none"
        raise ValueError(message)
    columns = tuple(dict.fromkeys([*job.cell_columns, job.unit.column]))
    cell_reader, unit_reader = job.cell_reader(), UnitReader(job.unit.column, key.texts)
    seen = np.zeros(n_bits, np.bool_)
    rows = sources.read(partition, physical(columns, job.derived), BLOCK_ROWS)
    for batch in with_derived(rows, job, columns):
        units, kinds = unit_reader.read(batch)
        enters = in_any(cell_reader.read(batch)) & (kinds == IS_UNIT)
        seen[unit_bits(units, key, n_bits)[enters]] = True
    once = np.packbits(seen)
    return Seen(once=once, twice=np.zeros_like(once))


def combine_seen(parts: Sequence[Seen]) -> Seen:
    """Add what tasks have seen."""
    once, twice = parts[0].once.copy(), parts[0].twice.copy()
    for part in parts[1:]:
        twice |= part.twice | (once & part.once)
        once |= part.once
    return Seen(once=once, twice=twice)


def unit_bits(units: Records, key: UnitKey, n_bits: int) -> NDArray[np.int32]:
    """Return the bit of each row's unit, shape (n_rows,)."""
    bits = np.zeros(len(units), np.int32)
    siphash.assign_parts(units, *key.positions, 0, n_bits, n_bits, True, bits)  # noqa: FBT003 - a kernel's
    return bits


Result = TypeVar("Result")

RECORD_BYTES_PER_THREAD = 1 << 29
"""Records held at a time, by thread of the cluster: what needs more is read in rounds."""
_BUCKETS_PER_THREAD = 8
_MOST_EDGES = 4096
"""Pieces that go from reading to gathering tasks in a round: each costs milliseconds of scheduling."""

_GATHERING_FAILED = "a task failed while it bounded the units' rows; the reason might quote them"


@exact_data(travels=True)
class Round:
    """What the tasks of one round share.

    Parameters
    ----------
    job : ChunkJob
        What to sum, and the bound on units.
    key : UnitKey
        The run's secret; it travels on the cluster's links.
    number, n_rounds : int
        Which share of the units is kept, and how many shares there are.
    n_buckets : int
        Tasks that gather a share's rows.
    seen : Seen or None
        Where the data are declared to be clustered: which units have rows in more than one task.
    """

    job: ChunkJob
    key: UnitKey
    number: int
    n_rounds: int
    n_buckets: int
    seen: Seen | None = None

    @property
    def buckets(self) -> range:
        """The buckets of this round, of all ``n_rounds * n_buckets``."""
        return range(self.number * self.n_buckets, (self.number + 1) * self.n_buckets)


@exact_data(travels=True)
class Divided:
    """What one task read.

    Parameters
    ----------
    buckets : list of list of Records
        Records by bucket.
    sums : Sums or None
        Of rows whose units need no others' rows; None where there can be none.
    """

    buckets: list[list[Records]]
    sums: Sums | None


def bounded_sums(
    job: ChunkJob,
    partitions: Sequence[Split],
    cluster: Cluster,
    key: UnitKey,
    *,
    progress: Progress | None = None,
) -> ExactTotals:
    """Sum all partitions, each unit bounded over all of them together.

    The result is a function of the rows and the key, bit for bit, on every kind of cluster, for any
    partitioning and any order.

    Parameters
    ----------
    job : ChunkJob
        What to sum; it has a unit.
    partitions : sequence of Split
        All rows, each once; at least one.
    cluster : Cluster
        An open cluster.
    key : UnitKey
        The run's secret.
    progress : callable, optional
        Called with the number of finished reading tasks and their total, over all rounds.

    Returns
    -------
    ExactTotals

    Raises
    ------
    StageFailedError
        Where rows could not be read or bounded; a fixed text.
    ClusterError
        Where the cluster was lost, or one of its workers may spill to disk.
    """
    n_bytes = RecordLayout.of(job).n_bytes * sum(partition.n_rows for partition in partitions)
    n_rounds = max(1, -(-n_bytes // (RECORD_BYTES_PER_THREAD * cluster.n_threads)))
    n_buckets, n_reads = _task_counts(job, cluster.n_threads)
    partitions = join(partitions, n_reads)
    seen = _survey(job, key, partitions, cluster) if job.is_clustered else None
    total = zero_sums(job)
    for number in range(n_rounds):
        shared = Round(job=job, key=key, number=number, n_rounds=n_rounds, n_buckets=n_buckets, seen=seen)
        done = number * len(partitions)

        def report(finished: int, of_all: int, done: int = done) -> None:
            if progress is not None:
                progress(done + finished, n_rounds * of_all)

        sums = _one_round(shared, partitions, cluster, report if progress else None)
        parts = [total, sums]
        total = combine(parts)
        for part in parts:
            wipe_sums(part)
    return ExactTotals(total)


def _task_counts(job: ChunkJob, n_threads: int) -> tuple[int, int]:
    """Return how many tasks gather and how many read, given what tables and edges cost."""
    most = most_tables(job, n_threads)
    n_buckets = min(_BUCKETS_PER_THREAD * n_threads, most, _MOST_EDGES)
    n_reads = max(1, _MOST_EDGES // n_buckets)
    return n_buckets, min(n_reads, most) if job.is_clustered or job.keeps_null_units else n_reads


def _survey(job: ChunkJob, key: UnitKey, partitions: Sequence[Split], cluster: Cluster) -> Seen:
    """Tell which units have rows in more than one reading task."""
    run = f"suffice-{uuid.uuid4().hex}"
    topic = run if cluster.is_distributed else None
    n_bits = bit_count(sum(partition.n_rows for partition in partitions))
    graph: dict[str, Any] = {f"job-{run}": job, f"key-{run}": key}
    seen = [f"seen-{run}-{number}" for number in range(len(partitions))]
    for name, partition in zip(seen, partitions, strict=True):
        graph[name] = (
            _see,
            for_tasks(partition, is_distributed=cluster.is_distributed),
            f"job-{run}",
            f"key-{run}",
            n_bits,
            topic,
        )
    last = add_tree(graph, seen, f"add-{run}", topic, combine_seen)
    return combine_seen([part.content for part in succeeded(cluster.compute(graph, last))])


def _one_round(
    shared: Round, partitions: Sequence[Split], cluster: Cluster, progress: Progress | None
) -> Sums:
    run = f"suffice-{uuid.uuid4().hex}"
    topic = run if cluster.is_distributed else None
    round_key = f"round-{run}"
    graph: dict[str, Any] = {round_key: for_tasks(shared, is_distributed=cluster.is_distributed)}
    reads = [f"read-{run}-{number}" for number in range(len(partitions))]
    sums = []
    for read, partition in zip(reads, partitions, strict=True):
        graph[read] = (
            _read,
            for_tasks(partition, is_distributed=cluster.is_distributed),
            round_key,
            topic,
            progress is not None,
        )
        sums.append(f"sums-{read}")
        graph[sums[-1]] = (_sums_of, read)
    for bucket in range(shared.n_buckets):
        pieces = []
        for read in reads:
            pieces.append(f"piece-{bucket}-{read}")
            graph[pieces[-1]] = (_piece_of, read, bucket)
        sums.append(f"gather-{run}-{bucket}")
        graph[sums[-1]] = (_gather, pieces, round_key, topic)
    last = add_tree(graph, sums, f"add-{run}", topic)
    watched = Watched(run, reads, progress) if progress else None
    results = succeeded(cluster.compute(graph, last, watched))
    if watched is not None:
        watched.all_finished()
    return last_addition([result for result in results if result is not None])


def _read(
    partition: Split | Packed, shared: Round | Packed, topic: str | None, is_watched: bool
) -> Partial[Divided] | Failure:
    """Read, encode and divide rows, in a task."""
    return guarded(
        lambda: Partial(divide_rows(in_task(partition), in_task(shared))),
        topic,
        READING_FAILED,
        report=is_watched,
    )


def _see(
    partition: Split | Packed, job: ChunkJob, key: UnitKey, n_bits: int, topic: str | None
) -> Partial[Seen] | Failure:
    """Tell which units have rows here, in a task."""
    return guarded(lambda: Partial(units_seen(in_task(partition), job, key, n_bits)), topic, READING_FAILED)


def _gather(
    pieces: Sequence[Partial[list[Records]] | Failure], shared: Round | Packed, topic: str | None
) -> PartialSums | Failure:
    """Bound the units of one bucket and sum what they keep, in a task."""
    whole = []
    for piece in pieces:
        if isinstance(piece, Failure):
            return piece
        whole.append(piece.content)
    return guarded(lambda: PartialSums(sum_bucket(whole, in_task(shared))), topic, _GATHERING_FAILED)


def _piece_of(divided: Partial[Divided] | Failure, bucket: int) -> Partial[list[Records]] | Failure:
    return divided if isinstance(divided, Failure) else Partial(divided.content.buckets[bucket])


def _sums_of(divided: Partial[Divided] | Failure) -> PartialSums | Failure | None:
    if isinstance(divided, Failure):
        return divided
    return None if divided.content.sums is None else PartialSums(divided.content.sums)


def divide_rows(partition: Split, shared: Round) -> Divided:
    """Read a partition, and divide the records of a round's share of units among its buckets.

    Units that need no others' rows are bounded here: those without a value, where each is one, and
    those whose rows are all here.
    """
    job, key, seen = shared.job, shared.key, shared.seen
    own_units = job.keeps_null_units and shared.number == 0
    reader = RecordReader(job, key)
    buckets: list[list[Records]] = [[] for _ in shared.buckets]
    here = UnitSums(job, key) if own_units or seen is not None else None
    whole: list[Records] = []
    for batch in with_derived(sources.read(partition, job.columns, BLOCK_ROWS), job):
        rows = reader.rows(batch)
        in_cell = in_any(rows.cells)
        travels = enters = in_cell & ~rows.is_null
        if seen is not None:
            travels = enters & seen.more_than_once(rows.units, key)
        order, ends = _divided(rows, shared, travels)
        for bucket, piece in zip(buckets, slices(reader.records(rows, order), ends), strict=True):
            bucket.append(piece)
        if seen is not None:
            order, _ = _divided(rows, shared, enters & ~travels)
            whole.append(reader.records(rows, order))
        if here is not None and own_units:
            here.add(reader.records(rows, np.flatnonzero(in_cell & rows.is_null).astype(np.int32)))
    if here is not None:
        here.add_units(whole)
    return Divided(buckets=buckets, sums=here.sums() if here is not None else None)


def _divided(
    rows: Rows, shared: Round, enters: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    n_total = shared.n_rounds * shared.n_buckets
    return divide(rows.units, shared.key, shared.buckets, n_total, enters=enters)


def sum_bucket(pieces: Sequence[Sequence[Records]], shared: Round) -> Sums:
    """Bound the units of a bucket, given all its records, and sum what they keep."""
    sums = UnitSums(shared.job, shared.key)
    sums.add_units([records for piece in pieces for records in piece])
    return sums.sums()
