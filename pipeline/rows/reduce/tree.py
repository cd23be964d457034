"""From partitions to the exact sums: one graph of tasks, whatever runs it; the last addition is made here.

A task never raises: what goes wrong in it comes back as a fixed text, so that neither Dask nor a worker's
log ever holds an exception whose text quotes data.

What travels on a cluster's links, results of tasks between workers and splits to them, is packed here, and
pickled by nobody else. The threads of this process hand over the objects themselves.
"""

from __future__ import annotations

import importlib
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from suffice.errors import ClusterError, StageFailedError
from suffice.pipeline.cluster import connection
from suffice.pipeline.cluster.stall_limits import STALL_SECONDS
from suffice.pipeline.rows.chunk.exact_sums import ExactTotals, Sums, combine, sums_nbytes, wipe_sums, zeros
from suffice.pipeline.rows.chunk.partition import chunk
from suffice.pipeline.rows.contribution.records import UnitKey
from suffice.pipeline.rows.sources.contract import join, name_alone, pack, refuse, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from suffice.pipeline.cluster.addresses import AnyCluster
    from suffice.pipeline.rows.chunk.partition import ChunkJob
    from suffice.pipeline.rows.sources.contract import Split

Content = TypeVar("Content")


class Partial(Generic[Content]):
    """What one task hands to the next: exact data that only Dask's own links move.

    Parameters
    ----------
    content : object
        Rows or what was seen of them, for the task that takes it.
    """

    __slots__ = ("content",)

    def __init__(self, content: Content) -> None:
        self.content = content

    __repr__ = name_alone
    __reduce_ex__ = refuse


class PartialSums(Partial[Sums]):
    """The exact sums of some rows, of which others are added."""

    __slots__ = ()

    def __sizeof__(self) -> int:
        """Tell Dask how much moving it costs; that follows from the job alone."""
        return sums_nbytes(self.content)

    def wipe(self) -> None:
        """Overwrite the sums."""
        wipe_sums(self.content)
        self.content = {}


class Packed:
    """Exact data on their way to a worker, in a graph of tasks: bytes, and nothing to see."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = data

    __repr__ = name_alone

    def __reduce__(self) -> tuple[type[Packed], tuple[bytes]]:
        """Let Dask send the bytes."""
        return Packed, (self._data,)

    def opened(self) -> Any:
        """Return what was packed."""
        return unpack(self._data)


@contextmanager
def open_cluster_for_sums(
    place: AnyCluster,
    certificates: str | None = None,
    stall_seconds: float = STALL_SECONDS,
    notice: connection.Notice = lambda _: None,
) -> Iterator[connection.Cluster]:
    """Open a cluster whose workers can move partial results to one another; see :func:`open_cluster`."""
    connection.require_dask("reading data")
    with connection.open_cluster(
        place,
        certificates=certificates,
        prepare=move_partial_results,
        stall_seconds=stall_seconds,
        notice=notice,
    ) as cluster:
        yield cluster


def for_tasks(value: Content, *, is_distributed: bool) -> Content | Packed:
    """Return what stands for exact data in a graph: themselves where tasks run in this process."""
    if not is_distributed:
        return value
    move_partial_results()
    return Packed(pack(value))


def in_task(value: Content | Packed) -> Content:
    """Return what `for_tasks` took, in a task."""
    return value.opened() if isinstance(value, Packed) else value


def move_partial_results() -> None:
    """Teach Dask's links in this process to move partial results."""
    protocol: Any = importlib.import_module("distributed.protocol")  # it takes a second, and is untyped
    protocol.dask_serialize.register(Partial, _dump)
    protocol.dask_deserialize.register(Partial, _load)


def _dump(partial: Partial[Any]) -> tuple[dict[str, Any], list[Any]]:
    buffers: list[memoryview] = []
    data = pack((type(partial), partial.content), lambda buffer: buffers.append(buffer.raw()))
    return {}, [data, *buffers]


def _load(_header: dict[str, Any], frames: Sequence[Any]) -> Partial[Any]:
    data, *arrays = (memoryview(frame) for frame in frames)
    # What cannot be written cannot be wiped.
    kind, content = unpack(data, [bytearray(array) if array.readonly else array for array in arrays])
    return kind(content)  # type: ignore[no-any-return]


Result = TypeVar("Result")

SPLIT_EVERY = 8
"""Partial sums that one task adds, and at most this many are left for the calling process."""

TASK_VALUES = 8_000_000
"""Values (rows times columns) of a task: some 0.1 s of one processor, against 2 ms to schedule it."""

TASKS_PER_THREAD = 4
"""Of smaller tasks there are so many for each thread, so that none waits long for the last of another."""

MOST_TASKS = 2048
"""Of larger data tasks are no more than this, or `TASKS_PER_THREAD` where that is more, but larger."""

PARTIAL_BYTES = 1 << 27
"""Partial sums of a run hold at most this for each thread, or one of them where that is more."""

READING_FAILED = "a task failed while it read the data; the reason might quote them and is withheld"
ADDING_FAILED = "a task failed while it added partial sums: its worker may lack memory"
NO_MEMORY = "a worker ran out of memory while it read the data: give it more, or fewer threads"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a task has no sums: a fixed text."""

    message: str


def exact_sums(
    job: ChunkJob,
    partitions: Sequence[Split],
    cluster: connection.Cluster,
    *,
    progress: connection.Progress | None = None,
) -> ExactTotals:
    """Sum all partitions.

    The result is the same, bit for bit, on every kind of cluster, for any partitioning and any order.

    Parameters
    ----------
    job : ChunkJob
        What to sum.
    partitions : sequence of Split
        All rows, each once; none gives zeros.
    cluster : Cluster
        An open cluster.
    progress : callable, optional
        Called with the number of tasks that have read their rows and of all such tasks, perhaps from
        another thread.

    Returns
    -------
    ExactTotals

    Raises
    ------
    StageFailedError
        Where a partition could not be read; a fixed text.
    ClusterError
        Where the cluster was lost, or one of its workers may spill to disk.
    """
    if not partitions:
        return ExactTotals(zero_sums(job))
    if job.unit is not None:
        from suffice.pipeline.rows.reduce.shuffle import bounded_sums  # it builds on this module

        return bounded_sums(job, partitions, cluster, UnitKey.fresh(), progress=progress)
    # Keys are unique to the run: a shared scheduler never hands out what another run computed.
    run = f"suffice-{uuid.uuid4().hex}"
    topic = run if cluster.is_distributed else None
    partitions = join(partitions, _task_count(job, partitions, cluster.n_threads))
    graph: dict[str, Any] = {f"job-{run}": job}
    reads = [f"read-{run}-{number}" for number in range(len(partitions))]
    for key, partition in zip(reads, partitions, strict=True):
        graph[key] = (
            _read,
            for_tasks(partition, is_distributed=cluster.is_distributed),
            f"job-{run}",
            topic,
            progress is not None,
        )
    last = add_tree(graph, reads, f"add-{run}", topic)
    watched = connection.Watched(run, reads, progress) if progress else None
    results = succeeded(cluster.compute(graph, last, watched))
    if watched is not None:
        watched.all_finished()
    return ExactTotals(last_addition(results))


def last_addition(parts: Sequence[PartialSums]) -> Sums:
    """Add what tasks have left, in the calling process, and wipe the parts; no task may run again."""
    total = combine([part.content for part in parts])
    for part in parts:
        part.wipe()
    return total


def succeeded(results: Sequence[Any | Failure]) -> list[Any]:
    """Return the results of tasks, or wipe them and raise for the first that failed.

    Raises
    ------
    StageFailedError
        With the task's fixed text.
    ClusterError
        Where a worker may spill to disk.
    """
    failure = next((result for result in results if isinstance(result, Failure)), None)
    if failure is None:
        return list(results)
    for result in results:
        if isinstance(result, PartialSums):
            result.wipe()
    if failure.message == connection.MAY_SPILL:
        raise ClusterError(connection.MAY_SPILL)
    raise StageFailedError("reading", failure.message)


def zero_sums(job: ChunkJob) -> Sums:
    """Return the sums of no rows."""
    return zeros(job.measures, job.n_cells)


def sums_bytes(job: ChunkJob) -> int:
    """Return how many bytes the sums of a job take: one or two limbs a sum."""
    n_cells, measures = job.n_cells, job.measures.items()
    return 8 * sum(n_cells[name] * of.width * (1 + of.is_wide) for name, of in measures)


def add_tree(
    graph: dict[str, Any],
    keys: list[str],
    prefix: str,
    topic: str | None,
    add: Callable[[Sequence[Any]], Any] = combine,
) -> list[str]:
    """Add tasks to a graph until at most `SPLIT_EVERY` partial results are left; return their keys."""
    depth = 0
    while len(keys) > SPLIT_EVERY:
        above = []
        for start in range(0, len(keys), SPLIT_EVERY):
            above.append(f"{prefix}-{depth}-{start}")
            graph[above[-1]] = (_add, keys[start : start + SPLIT_EVERY], topic, add)
        keys, depth = above, depth + 1
    return keys


def _task_count(job: ChunkJob, partitions: Sequence[Split], n_threads: int) -> int:
    """Return how many tasks there are at most: enough for all threads, and no more than is worth it."""
    n_values = sum(partition.n_rows for partition in partitions) * len(job.names)
    worth = max(TASKS_PER_THREAD * n_threads, min(MOST_TASKS, n_values // TASK_VALUES))
    # The fewer tasks, the fewer tables.
    return min(worth, most_tables(job, n_threads))


def most_tables(job: ChunkJob, n_threads: int) -> int:
    """Return how many partial sums there may be: what memory holds grows with the cluster alone."""
    return n_threads * max(1, PARTIAL_BYTES // sums_bytes(job))


def _read(
    partition: Split | Packed, job: ChunkJob, topic: str | None, is_watched: bool
) -> PartialSums | Failure:
    """Sum one partition, in a task; on a distributed cluster there is a topic to report to."""
    return guarded(
        lambda: PartialSums(chunk(in_task(partition), job)), topic, READING_FAILED, report=is_watched
    )


def guarded(
    work: Callable[[], Result], topic: str | None, otherwise: str, *, report: bool = False
) -> Result | Failure:
    """Do a task's work; what goes wrong comes back as a fixed text.

    Parameters
    ----------
    work : callable
        What the task does.
    topic : str or None
        Where it reports, on a distributed cluster; None on threads.
    otherwise : str
        The text of what has none.
    report : bool
        Whether somebody waits to hear that it is done: that takes the scheduler as long as a small task does.
    """
    try:
        if topic is not None and connection.this_worker_may_spill():
            return Failure(connection.MAY_SPILL)
        result = work()
        if report and topic is not None:
            connection.report_finished(topic)
    except StageFailedError as error:
        return Failure(str(error))
    except MemoryError:
        return Failure(NO_MEMORY)
    except Exception:  # noqa: BLE001 - whatever it is, its text may quote data
        return Failure(otherwise)
    return result


def _add(
    parts: Sequence[Partial[Any] | Failure | None], topic: str | None, add: Callable[[Sequence[Any]], Any]
) -> Partial[Any] | Failure | None:
    """Add partial results, where there are any, in a task; the first failure wins."""

    def work() -> Partial[Any] | Failure | None:
        failure = next((part for part in parts if isinstance(part, Failure)), None)
        results = [part for part in parts if isinstance(part, Partial)]
        if failure is not None or not results:
            return failure
        return type(results[0])(add([result.content for result in results]))

    return guarded(work, topic, ADDING_FAILED)
