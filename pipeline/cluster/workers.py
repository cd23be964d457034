"""Workers that stand still: found by how long workers took so far, named, and replaced or left out.

A worker that is stopped, whose network swallows what is sent, or whose disk does not answer raises nothing.
What the scheduler knows tells it: no task of the worker ends, and perhaps no heartbeat comes.

What a worker must be to hold exact sums: behind encrypted links, without a disk, of the same version.
"""

from __future__ import annotations

import ipaddress
import math
import time
import uuid
from concurrent.futures import Executor, Future, InvalidStateError
from concurrent.futures import wait as _wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from urllib.parse import urlsplit

from suffice.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

Arguments = ParamSpec("Arguments")
Item = TypeVar("Item")
Result = TypeVar("Result")


class Objection(StrEnum):
    """Why a worker may not take part."""

    OPEN_LINK = "a link beyond this machine is not encrypted"
    MAY_SPILL = "it may write its memory to disk"
    OTHER_VERSION = "it has another version of suffice"


def objection(dask_worker: Any, caller: str) -> Objection | None:
    """Say, on a worker, why it may not take part in the run of a caller with this version of suffice."""
    if is_open(dask_worker.contact_address):
        return Objection.OPEN_LINK
    if may_spill(dask_worker):
        return Objection.MAY_SPILL
    from importlib.metadata import version  # only workers need it

    return None if version("suffice") == caller else Objection.OTHER_VERSION


def is_open(address: str) -> bool:
    """Tell whether others can read a link to this address."""
    parts = urlsplit(address)
    return parts.scheme != "tls" and not is_loopback(parts.hostname or "")


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def may_spill(worker: Any) -> bool:
    """Tell whether a worker may write its memory to disk."""
    # A worker that never spills holds its data in a plain dict, any other in a buffer that writes to disk.
    return type(worker.data) is not dict


TIMES_THE_LONGEST = 10
"""And so many times the longest that any worker took from one task's end to the next: slow is not stuck."""

MOST_REPLACEMENTS = 2
"""How often workers are replaced while one graph runs: what stands still after that has another cause."""

_SILENT_SECONDS = 120.0
"""A worker sends heartbeats while it works, every few seconds: without any it is given up sooner."""

ANSWER_SECONDS = 60.0
"""How long a scheduler or a worker has to answer a question."""
_REPLACING_SECONDS = 30.0

HANGS = (
    "a thread of this process did not end its task within the deadline, as where a disk, a mount or a "
    "database does not answer: look at that, then run again; where tasks are slow by nature, raise "
    "SUFFICE_STALL_SECONDS"
)

_LEAVING_SECONDS = 30.0
"""How long threads get to end what they do, where a run is broken off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStanding:
    """What a scheduler knows of one worker.

    Attributes
    ----------
    silent : float
        Seconds since its last heartbeat.
    tasks : frozenset of str
        The keys that it was given and has not ended.
    """

    silent: float
    tasks: frozenset[str]


class Stalls:
    """Tells which workers stand still, from what they were seen to do.

    Parameters
    ----------
    seconds : float
        How long a worker may end no task.
    clock : callable
        Seconds of a clock that never goes back.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._tasks: dict[str, frozenset[str]] = {}
        self._since: dict[str, float] = {}
        self._longest = 0.0
        self._replacements = 0

    @property
    def deadline(self) -> float:
        """Seconds for which a worker may end no task, by what was observed so far."""
        return max(self._seconds, TIMES_THE_LONGEST * self._longest)

    @property
    def pause(self) -> float:
        """Seconds between two looks."""
        return min(5.0, self._seconds / 4)

    def look(self, standings: Mapping[str, WorkerStanding]) -> tuple[str, ...]:
        """Take note of what workers do now; return the addresses of those that stand still.

        Those without heartbeats come first, and alone: others may only wait for what these have.
        """
        now = self._clock()
        for address in self._tasks.keys() - standings.keys():
            del self._tasks[address], self._since[address]
        for address, standing in standings.items():
            before = self._tasks.get(address, frozenset())
            ended = before - standing.tasks
            if ended:
                self._longest = max(self._longest, now - self._since[address])
            if ended or not before:
                self._since[address] = now
            self._tasks[address] = standing.tasks
        silent = self.silent(standings)
        if silent:
            self._since.update(dict.fromkeys(standings, now))
            return silent
        return tuple(
            address
            for address, standing in standings.items()
            if standing.tasks and now - self._since[address] > self.deadline
        )

    def is_left(self, standings: Mapping[str, WorkerStanding], stalled: Collection[str]) -> bool:
        """Tell whether a worker could take over what others do not end.

        For those that are silent that is any other. Else it is one that has nothing to do, or has ended a
        task while the stalled ones ended none: where a disk holds up all of them, none is to be replaced.
        """
        self._replacements += 1
        if self._replacements > MOST_REPLACEMENTS:
            return False
        are_silent = set(stalled) <= set(self.silent(standings))
        return any(
            are_silent
            or not standing.tasks
            or self._since[address] > max(self._since[each] for each in stalled)
            for address, standing in standings.items()
            if address not in stalled
        )

    def silent(self, standings: Mapping[str, WorkerStanding]) -> tuple[str, ...]:
        """Return the workers without a heartbeat for too long."""
        limit = min(_SILENT_SECONDS, self._seconds)
        return tuple(address for address, standing in standings.items() if standing.silent > limit)


def standings(client: Any, seconds: float) -> dict[str, WorkerStanding]:
    """Ask a client's scheduler what its workers do.

    Raises
    ------
    TimeoutError
        Where it does not answer within some seconds.
    """
    ask = client._run_on_scheduler  # noqa: SLF001 - what is public waits for ever
    answer: dict[str, tuple[float, list[str]]] = client.sync(ask, _look, callback_timeout=seconds)
    return {
        address: WorkerStanding(silent=silent, tasks=frozenset(tasks))
        for address, (silent, tasks) in answer.items()
    }


def replace_workers(client: Any, addresses: Collection[str]) -> None:
    """Have the nannies of some workers kill and replace them; leave out those that have none.

    Their tasks go to others. What a killed worker had in memory is computed again, from the same rows.

    Raises
    ------
    TimeoutError
        Where the scheduler does not answer.
    """
    run = client._run_on_scheduler  # noqa: SLF001 - what is public waits for ever
    seconds = _REPLACING_SECONDS + ANSWER_SECONDS
    client.sync(run, _replace, addresses=list(addresses), callback_timeout=seconds)


def threads(client: Any) -> dict[str, int]:
    """Return how many threads each worker has that a client's scheduler knows of, by address.

    Raises
    ------
    TimeoutError
        Where it does not answer.
    """
    ask = client.scheduler.ncores  # what is public waits for ever
    return dict(client.sync(ask, workers=None, callback_timeout=ANSWER_SECONDS))


def _look(dask_scheduler: Any) -> dict[str, tuple[float, list[str]]]:
    now = time.time()
    return {
        address: (now - worker.last_seen, [str(task.key) for task in worker.processing])
        for address, worker in dask_scheduler.workers.items()
    }


async def _replace(dask_scheduler: Any, addresses: list[str]) -> None:
    cause = f"suffice-stalled-{uuid.uuid4().hex}"
    await dask_scheduler.restart_workers(
        addresses,
        timeout=_REPLACING_SECONDS,
        wait_for_workers=False,
        on_error="return",
        stimulus_id=cause,
    )
    for address in addresses:
        if address in dask_scheduler.workers:
            await dask_scheduler.remove_worker(address, stimulus_id=cause)


class Stalled(Exception):  # noqa: N818 - no error by itself: whoever waits says what it means
    """A thread of this process did not come to the end of its task within the deadline."""


class ThreadsThatMayHang(Executor):
    """Threads of this process, whose tasks have a deadline, and for which nobody waits at the end.

    A thread that hangs in a read cannot be ended. So these are daemons: the process ends without them.

    Parameters
    ----------
    n_threads : int
    stall_seconds : float
        How long a task may take, or `TIMES_THE_LONGEST` times the longest of those that ended.
    """

    def __init__(self, n_threads: int, stall_seconds: float) -> None:
        self._max_workers = n_threads  # Dask reads it
        self._stall_seconds = stall_seconds
        self._waiting: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._taken: dict[Future[Any], float] = {}
        self._lock = Lock()
        self._longest = 0.0
        self._has_stalled = False
        for number in range(n_threads):
            Thread(target=self._serve, name=f"suffice_{number}", daemon=True).start()

    def submit(
        self, work: Callable[Arguments, Result], /, *words: Arguments.args, **named: Arguments.kwargs
    ) -> Future[Result]:
        """Have a thread do some work."""
        future: Future[Result] = Future()
        self._waiting.put((future, partial(work, *words, **named)))
        return future

    @contextmanager
    def watched(self) -> Iterator[None]:
        """End tasks that take too long, by `Stalled`, while the block runs."""
        is_over = Event()
        Thread(target=self._watch, args=(is_over,), name="suffice_watch", daemon=True).start()
        try:
            yield
        finally:
            is_over.set()

    def go_on(self) -> None:
        """Let the deadlines of all tasks that run begin anew."""
        with self._lock:
            self._longest = max(self._longest, *self._taken.values(), 0.0)
            self._taken = dict.fromkeys(self._taken, 0.0)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002
        """Let the threads end; wait for what they do, but not where one of them has stalled."""
        for _ in range(self._max_workers):
            self._waiting.put(None)
        if wait and not self._has_stalled:
            _wait(list(self._taken), timeout=_LEAVING_SECONDS)

    def _serve(self) -> None:
        while (given := self._waiting.get()) is not None:
            future, work = given
            if not future.set_running_or_notify_cancel():
                continue
            with self._lock:
                self._taken[future] = 0.0
            with suppress(InvalidStateError):  # it was given up meanwhile
                try:
                    result = work()
                except BaseException as error:  # noqa: BLE001 - as in every executor
                    future.set_exception(error)
                else:
                    future.set_result(result)
                    del result
            with self._lock:
                self._longest = max(self._longest, self._taken.pop(future))
            del given, future, work  # what it read is nobody's while the thread waits

    def _watch(self, is_over: Event) -> None:
        pause = min(5.0, self._stall_seconds / 4)
        looked = time.monotonic()
        while not is_over.wait(pause):
            now = time.monotonic()
            passed, looked = min(now - looked, 2 * pause), now  # not while this process was stopped
            limit = max(self._stall_seconds, TIMES_THE_LONGEST * self._longest)
            with self._lock:
                self._taken = {future: taken + passed for future, taken in self._taken.items()}
                stalled = [future for future, taken in self._taken.items() if taken > limit]
            for future in stalled:
                self._has_stalled = True
                with suppress(InvalidStateError):
                    future.set_exception(Stalled())


_deadline: ContextVar[ThreadsThatMayHang | None] = ContextVar("_deadline", default=None)


def goes_on() -> None:
    """Say that what has a deadline came one step further, as to the next file: its deadline begins anew."""
    if (threads := _deadline.get()) is not None:
        threads.go_on()


def within_deadline(work: Callable[[], Result], stall_seconds: float) -> Result:
    """Do what may hang, but wait no longer for a step of it than for a task.

    Raises
    ------
    ClusterError
        Where a step takes longer; its thread goes on until the process ends.
    """
    with (
        suppress(Stalled),
        ThreadsThatMayHang(1, stall_seconds) as pool,
        pool.watched(),
    ):
        context = copy_context()
        context.run(_deadline.set, pool)
        return pool.submit(context.run, work).result()
    raise ClusterError(HANGS)


def by_threads(work: Callable[[Item], Result], items: Sequence[Item], n_threads: int) -> list[Result]:
    """Do some work with each of several items, where each that is done is a step.

    Where one hangs, the process can end all the same.
    """

    def step(item: Item) -> Result:
        result = work(item)
        goes_on()
        return result

    contexts = [copy_context() for _ in items]
    with ThreadsThatMayHang(min(n_threads, max(1, len(items))), math.inf) as pool:
        return list(pool.map(lambda context, item: context.run(step, item), contexts, items))
