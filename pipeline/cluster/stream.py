"""Very many tasks, a few at a time: what waits, and what was computed, stays small."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from suffice.errors import ClusterError, SufficeError
from suffice.pipeline.cluster.clients import import_distributed
from suffice.pipeline.cluster.connection import LOST, ThreadCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from suffice.pipeline.cluster.connection import Cluster, DistributedCluster

AHEAD = 2
"""Tasks for every thread: one that it works on, and one that waits for it."""
_WORKERS_DIED = (
    "the workers that computed one part died repeatedly: they may lack memory, or somebody stops them"
)


def stream(cluster: Cluster, task: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
    """Run a task for each tuple of arguments, and give the results as they come, in any order.

    No more than a few arguments are taken before their results are, so neither pile up.

    Parameters
    ----------
    cluster : Cluster
    task : callable
        On a distributed cluster one that its workers can import.
    arguments : iterable of tuple
        Taken one after the other, in this thread.

    Raises
    ------
    ClusterError
        Where the cluster is lost, the workers that run one task die again and again, or none hands its result
        over.
    SufficeError
        As the task raises it.
    """
    if isinstance(cluster, ThreadCluster):
        yield from _on_threads(cluster, task, arguments)
    else:
        yield from _on_workers(cluster, task, arguments)


def _on_threads(
    cluster: ThreadCluster, task: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]
) -> Iterator[Any]:
    left = iter(arguments)
    running: set[Future[Any]] = set()
    try:
        while True:
            for taken in islice(left, AHEAD * cluster.n_threads - len(running)):
                running.add(cluster.pool.submit(task, *taken))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    finally:
        for future in running:
            future.cancel()


def _on_workers(
    cluster: DistributedCluster, task: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]
) -> Iterator[Any]:
    left = iter(arguments)
    running: set[Any] = set()
    try:
        while True:
            # Workers that are lost leave more tasks running than the others' threads would be given.
            room = max(0, AHEAD * cluster.n_threads - len(running))
            for taken in islice(left, room):
                submit = partial(cluster.client.submit, task, *taken, pure=False)
                running.add(_asked(cluster, submit))
            if not running:
                return
            cluster.wait(running, "FIRST_COMPLETED")
            for future in [future for future in running if future.done()]:
                running.remove(future)
                yield _asked(cluster, partial(cluster.gathered, [future]))[0]
                future.release()
    finally:
        for future in running:
            future.cancel()


def _asked(cluster: DistributedCluster, ask: Callable[[], Any]) -> Any:
    """Ask a cluster for something, and turn what it raises into ours."""
    failure: SufficeError
    try:
        return ask()
    except SufficeError:
        raise
    except import_distributed().KilledWorker:
        failure = ClusterError(_WORKERS_DIED)
    except CancelledError:  # by the client, as it lost its scheduler, whether or not it found it again
        failure = ClusterError(LOST)
    except Exception:
        if cluster.client.status == "running":
            raise  # of the task itself: there is nothing exact that its text could quote
        failure = ClusterError(LOST)
    raise failure from None
