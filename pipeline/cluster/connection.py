"""Where the tasks run: threads of this process, processes of this machine, or a cluster that others started.

That is given by its address, by a client that is connected to it, or by a hook: a function of the operator's
that returns a client.

A trusted room has exact statistics in the memory of whatever runs here and on its links. So links beyond the
loopback are encrypted and authenticated, and a cluster whose workers may write their memory to disk is
refused, whoever opens it.
"""

from __future__ import annotations

import importlib.util
import logging
import tempfile
import time
import uuid
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from suffice.errors import ClusterError, MissingExtraError, StageFailedError
from suffice.pipeline.cluster import clients, threaded, workers
from suffice.pipeline.cluster.addresses import client_address, is_hook, scheme_and_host
from suffice.pipeline.cluster.clients import NOT_ENCRYPTED, client_of, import_distributed
from suffice.pipeline.cluster.processors import processors
from suffice.pipeline.cluster.quiet_client import quiet_client
from suffice.pipeline.cluster.stall_limits import STALL_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from suffice.pipeline.cluster.addresses import AnyCluster

    Progress = Callable[[int, int], None]
    Notice = Callable[[str], None]

Answer = TypeVar("Answer")

THREADS, LOCAL = "threads", "local"

MAY_SPILL = (
    "a worker of the cluster may write its memory to disk, where exact statistics must not go: set "
    "distributed.worker.memory.target and distributed.worker.memory.spill to False in every worker's Dask "
    "configuration"
)
_NOT_STARTED = (
    "the local processes could not be started; a script that uses them must do its work under "
    "if __name__ == '__main__'"
)
_NO_WORKER = "the cluster at {} has no worker: start one, then run again"
_STRANGERS = "the cluster's workers cannot run this suffice: install suffice[pipeline] {} on each of them"
LOST = "the connection was lost, or the cluster dropped the run: check the cluster's logs, then run again"
_WORKERS_DIED = (
    "the workers that read one partition died repeatedly: they may lack memory, or somebody stops them"
)

_NO_ANSWER = (
    "the cluster's scheduler, or a worker, does not answer: stop it, or start another in its place; then run "
    "again"
)
_STALLED = (
    "no worker of the cluster ended a task within the deadline, and none is left to take over: look at its "
    "machines, network and disks, then run again; where its tasks are slow by nature, raise "
    "SUFFICE_STALL_SECONDS"
)
_REPLACED = "the worker {} does not go on: it is replaced or left out, and others get its tasks"
_MOST_GATHERINGS = 3

_ADMISSION_SECONDS = 300  # workers import all that tasks need
_POLL_SECONDS = 5
_WITHOUT_WORKERS_SECONDS = 60
_LOCAL_SETTINGS = {
    **{f"distributed.worker.memory.{name}": False for name in ("target", "spill", "pause")},
    **{f"distributed.{role}.http.routes": [] for role in ("scheduler", "worker", "nanny")},
    "distributed.nanny.pre-spawn-environ": {
        **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), 1),
        "MALLOC_TRIM_THRESHOLD_": 1 << 30,
        "MALLOC_MMAP_THRESHOLD_": 1 << 25,
    },
}
"""Nothing spills, the HTTP servers that Dask always starts show nothing, and workers keep freed memory.

Dask lets workers give memory back after every block, and the next one pays for its pages again: 20 million
rows took 2.7 s of processor time instead of 1.9 (threads: 1.3)."""


@dataclass(frozen=True, slots=True)
class ThreadCluster:
    """Threads of this process: no socket, and no Dask."""

    pool: workers.ThreadsThatMayHang
    n_threads: int
    is_distributed: ClassVar[bool] = False

    def compute(
        self, graph: Mapping[str, Any], keys: Sequence[str], watched: Watched | None = None
    ) -> list[Any]:
        """Return the results of some keys of a Dask graph, in their order.

        Raises
        ------
        ClusterError
            Where a task takes too long, as in a read that hangs; its thread goes on until the process ends.
        """

        def finished(key: str) -> None:
            if watched is not None:
                watched.finished(key)

        with suppress(workers.Stalled), self.pool.watched():
            return threaded.compute(graph, keys, self.pool, self.n_threads, finished)
        raise ClusterError(workers.HANGS)  # with no frame that held partial sums


@dataclass(frozen=True, slots=True)
class DistributedCluster:
    """A Dask cluster of processes, here or elsewhere."""

    client: Any
    stall_seconds: float = STALL_SECONDS
    notice: Notice = lambda _: None
    is_distributed: ClassVar[bool] = True

    @property
    def n_threads(self) -> int:
        """The threads of all workers that are there now; at least 1."""
        try:
            return max(1, sum(workers.threads(self.client).values()))
        except Exception:  # noqa: BLE001 - as in `compute`
            raise ClusterError(LOST) from None

    def compute(
        self, graph: Mapping[str, Any], keys: Sequence[str], watched: Watched | None = None
    ) -> list[Any]:
        """Return the results of some keys of a Dask graph, in their order.

        A worker that ends no task for too long is replaced or left out, and others take over what it had.

        Raises
        ------
        StageFailedError
            Where the workers that run one task die again and again.
        ClusterError
            Where the cluster is lost, or no worker goes on.
        """
        dask = import_distributed()
        futures: list[Any] = []
        failure: StageFailedError | ClusterError
        try:
            if watched is not None:
                self.client.subscribe_topic(watched.topic, lambda event: watched.finished(event[1]))
            futures = self.client.get(dict(graph), list(keys), sync=False)
            return self.gathered(futures)
        except dask.KilledWorker:
            failure = StageFailedError("reading", _WORKERS_DIED)
        except ClusterError as error:
            failure = error
        except Exception:  # noqa: BLE001 - Dask has many, and their texts are not ours to pass on
            failure = ClusterError(LOST)
        finally:
            if watched is not None and self.client.status == "running":
                self.client.unsubscribe_topic(watched.topic)
            for future in futures:
                future.release()
        raise failure

    def gathered(self, futures: Collection[Any]) -> list[Any]:
        """Wait for results and fetch them; those that a silent worker has are computed again by others.

        Raises
        ------
        ClusterError
            Where the cluster is lost, or no worker goes on.
        """
        stalls = workers.Stalls(self.stall_seconds)
        for _ in range(_MOST_GATHERINGS):
            self.wait(futures, stalls=stalls)
            try:
                gather = self.client._gather  # noqa: SLF001 - what is public waits for ever
                return list(self.client.sync(gather, futures, callback_timeout=stalls.deadline))
            except TimeoutError:
                self._replace(stalls.silent(self._standings(stalls)))
        raise ClusterError(_STALLED)

    def _answered(self, ask: Callable[[], Answer]) -> Answer:
        """Ask the scheduler, which may be stopped, or behind a network that swallows everything."""
        try:
            return ask()
        except TimeoutError:
            raise ClusterError(LOST) from None

    def _standings(self, stalls: workers.Stalls) -> Mapping[str, workers.WorkerStanding]:
        return self._answered(lambda: workers.standings(self.client, stalls.deadline))

    def _replace(self, stalled: Collection[str]) -> None:
        for address in stalled:
            self.notice(_REPLACED.format(address))
        self._answered(lambda: workers.replace_workers(self.client, stalled))

    def _replace_stalled(self, stalls: workers.Stalls) -> None:
        """Replace workers that ended no task for too long.

        Raises
        ------
        ClusterError
            Where no other could take over.
        """
        now = self._standings(stalls)
        stalled = stalls.look(now)
        if stalled and not stalls.is_left(now, stalled):
            raise ClusterError(_STALLED)
        if stalled:
            self._replace(stalled)

    def wait(
        self,
        futures: Collection[Any],
        return_when: str = "ALL_COMPLETED",
        *,
        stalls: workers.Stalls | None = None,
    ) -> None:
        """Wait until all are done, or the first is, but not for a cluster that stays without workers.

        Parameters
        ----------
        futures, return_when
            As for Dask.
        stalls : Stalls, optional
            By which workers are told that stand still, and then replaced; without it they are waited for.

        Raises
        ------
        ClusterError
            Where the connection is lost, no worker has been there for a minute, or none goes on.
        """
        last_seen = time.monotonic()
        pause = _POLL_SECONDS if stalls is None else min(_POLL_SECONDS, stalls.pause)
        while True:
            try:
                with self.client.as_current():
                    import_distributed().wait(futures, timeout=pause, return_when=return_when)
            except TimeoutError:
                workers.goes_on()  # what is waited for has deadlines by itself
                if self.client.status != "running":
                    raise ClusterError(LOST) from None
                if self._answered(lambda: workers.threads(self.client)):
                    last_seen = time.monotonic()
                elif time.monotonic() - last_seen > _WITHOUT_WORKERS_SECONDS:
                    raise ClusterError(_NO_WORKER.format(client_address(self.client))) from None
                if stalls is not None:
                    self._replace_stalled(stalls)
            except CancelledError:  # a client that loses its scheduler cancels what it waits for
                raise ClusterError(LOST) from None
            else:
                return


Cluster = ThreadCluster | DistributedCluster


class Watched:
    """Some keys of a running graph, and whom to tell when one is done; a task that runs twice counts once.

    Parameters
    ----------
    topic : str
        Where tasks of a distributed cluster report their keys.
    keys : sequence of str
        The keys that count.
    progress : callable
        Gets the number done, and the number in all.
    """

    def __init__(self, topic: str, keys: Sequence[str], progress: Progress) -> None:
        self.topic = topic
        self._left = set(keys)
        self._total = len(keys)
        self._progress = progress

    def finished(self, key: str) -> None:
        """Take note that a key is done."""
        if key in self._left:
            self._left.remove(key)
            self._progress(self._total - len(self._left), self._total)

    def all_finished(self) -> None:
        """Take note that the graph is done, whatever reports are still on their way."""
        if self._left:
            self._left.clear()
            self._progress(self._total, self._total)


@contextmanager
def open_cluster(
    cluster: AnyCluster,
    *,
    certificates: str | None = None,
    prepare: Callable[[], None] | None = None,
    stall_seconds: float = STALL_SECONDS,
    notice: Notice = lambda _: None,
) -> Iterator[Cluster]:
    """Open what `cluster` names, check it, and close it at the end.

    Parameters
    ----------
    cluster : str or Client
        ``threads``; ``local``: a process per processor, with TLS on the loopback and no dashboard; the
        address of a scheduler, ``tls://HOST:PORT``; or ``MODULE:FUNCTION``, which returns a client.
        ``tcp://`` is for the loopback only. A client that is handed over stays open.
    certificates : str, optional
        The folder of the client's certificate, its key and its authority's certificate, for ``tls://``; see
        :mod:`suffice.pipeline.cluster.certificates`. Where left out, Dask's own configuration names them.
    prepare : callable, optional
        Called on every worker of a distributed cluster before it hears of a task, those that join later too:
        a function that can be imported there.
    stall_seconds : float
        How long a worker of a distributed cluster may end no task before others get what it has; and how
        long a thread may take for one before the run ends.
    notice : callable
        Called with a sentence about every worker that is replaced or left out.

    Raises
    ------
    UsageError
        Where `cluster` is none of these.
    ClusterError
        Where the cluster cannot be reached, its links are open to others, its workers may spill to disk, or
        they cannot run this version of suffice.
    MissingExtraError
        Where Dask is not installed, which threads alone do without.
    """
    if cluster == THREADS:
        n_threads = processors()
        with workers.ThreadsThatMayHang(n_threads, stall_seconds) as pool:
            yield ThreadCluster(pool, n_threads)
    elif cluster == LOCAL:
        require_dask("a cluster of processes")
        with _local_client() as client, _checked(client, prepare, stall_seconds, notice) as checked:
            yield checked
    else:
        check_cluster(cluster)
        require_dask("a cluster of processes")
        with (
            client_of(cluster, certificates, notice) as client,
            _checked(client, prepare, stall_seconds, notice) as checked,
        ):
            yield checked


def check_cluster(cluster: AnyCluster) -> None:
    """Refuse what names no cluster; whether one answers there is not asked.

    Raises
    ------
    UsageError
    """
    if not isinstance(cluster, str):
        client_address(cluster)
    elif cluster not in {THREADS, LOCAL} and not is_hook(cluster):
        scheme_and_host(cluster)


def check_workers(address: str, *, certificates: str | None = None) -> int:
    """Connect to a cluster as a run would, and ask each worker whether it may take part; change nothing.

    Parameters
    ----------
    address : str
        Or a hook.
    certificates : str, optional
        As for :func:`open_cluster`.

    Returns
    -------
    int
        How many workers there are.

    Raises
    ------
    UsageError, ClusterError
        As :func:`open_cluster`.
    """
    with client_of(address, certificates, lambda _: None) as client:
        return _refuse_unfit(client, version("suffice"))


def require_dask(what_for: str) -> None:
    """Refuse what Dask is needed for, where it is not installed.

    Raises
    ------
    MissingExtraError
    """
    if importlib.util.find_spec("dask") is None:
        raise MissingExtraError(what_for, "pipeline")


@contextmanager
def _local_client() -> Iterator[Any]:
    import dask.config

    distributed = import_distributed()
    with tempfile.TemporaryDirectory(prefix="suffice-") as directory, quiet_client():  # mode 0700
        security = distributed.Security.temporary()
        try:
            with dask.config.set(_LOCAL_SETTINGS):
                processes = distributed.LocalCluster(
                    threads_per_worker=1,
                    processes=True,
                    host="127.0.0.1",
                    protocol="tls://",
                    security=security,
                    dashboard_address="127.0.0.1:0",
                    scheduler_kwargs={"dashboard": False},
                    local_directory=directory,
                    silence_logs=logging.ERROR,
                    config=deepcopy(dask.config.config),  # for the workers that replace others, too
                )
        except (OSError, RuntimeError, TimeoutError):
            raise ClusterError(_NOT_STARTED) from None
        with processes, distributed.Client(processes, security=security, set_as_default=False) as client:
            yield client


@contextmanager
def _checked(
    client: Any, prepare: Callable[[], None] | None, stall_seconds: float, notice: Notice
) -> Iterator[DistributedCluster]:
    """Refuse a cluster without workers, with open links, that may spill, or of another version.

    Workers that join later are closed for the same reasons before they get any data.
    """
    from suffice.pipeline.cluster.admission import Admission  # it takes a second

    here = version("suffice")
    _refuse_unfit(client, here)
    plugin = f"suffice-{uuid.uuid4().hex}"
    try:
        join = client._register_worker_plugin  # noqa: SLF001 - what is public waits for ever
        admission = {"plugin": Admission(here, prepare), "name": plugin, "idempotent": False}
        client.sync(join, **admission, callback_timeout=_ADMISSION_SECONDS)
    except TimeoutError:
        raise ClusterError(_NO_ANSWER) from None
    except Exception:  # noqa: BLE001 - whatever an unfit worker raises
        raise ClusterError(_STRANGERS.format(here)) from None
    try:
        yield DistributedCluster(client, stall_seconds, notice)
    finally:
        if client.status == "running":  # one that is lost would be waited for, and a worker that is stopped
            with suppress(Exception):
                leave = client._unregister_worker_plugin  # noqa: SLF001
                client.sync(leave, name=plugin, callback_timeout=clients.CONNECT_SECONDS)


def _refuse_unfit(client: Any, here: str) -> int:
    """Refuse a cluster whose workers, as they are now, may not take part; return how many there are."""
    try:
        client.wait_for_workers(1, timeout=clients.CONNECT_SECONDS)
    except (OSError, TimeoutError):
        raise ClusterError(_NO_WORKER.format(client_address(client))) from None
    texts = {
        workers.Objection.OPEN_LINK: NOT_ENCRYPTED,
        workers.Objection.MAY_SPILL: MAY_SPILL,
        workers.Objection.OTHER_VERSION: _STRANGERS.format(here),
    }
    try:
        addresses = workers.threads(client)
    except (OSError, TimeoutError):
        raise ClusterError(_NO_ANSWER) from None
    if any(map(workers.is_open, addresses)):
        raise ClusterError(NOT_ENCRYPTED)
    try:
        run = client._run  # noqa: SLF001 - what is public waits for ever
        answers = client.sync(run, workers.objection, caller=here, callback_timeout=workers.ANSWER_SECONDS)
        objections = {answer for answer in answers.values() if answer is not None}
    except TimeoutError:
        raise ClusterError(_NO_ANSWER) from None
    except Exception:  # noqa: BLE001 - whatever an unfit worker raises
        raise ClusterError(_STRANGERS.format(here)) from None
    if objections:
        raise ClusterError(texts[min(objections)])
    return len(answers)


def this_worker_may_spill() -> bool:
    """Tell, inside a task of a distributed cluster, whether its worker may write its memory to disk."""
    return workers.may_spill(import_distributed().get_worker())


def report_finished(topic: str) -> None:
    """Report, inside a task of a distributed cluster, that its key is done."""
    worker = import_distributed().get_worker()
    worker.log_event(topic, worker.get_current_task())
