"""What every flow does around its work: signals, one run of a dataset at a time, an end without a server.

A run's work is finished before anything here can end its process. A scheduled run is skipped while an earlier
run of its deployment still does the same.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, get_type_hints

import prefect
from prefect import get_client, runtime
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterStartTime,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import State, StateType
from prefect.concurrency.sync import concurrency
from prefect.exceptions import ObjectAlreadyExists
from prefect.settings import PREFECT_API_REQUEST_TIMEOUT, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from suffice.errors import ClusterError, StageFailedError, StoreError, SufficeError
from suffice.flows.endings import COMPLETED, Reporter, Subject, error_text, refused_kind
from suffice.monitoring import records
from suffice.monitoring.records import charge_fields, count_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import FrameType
    from uuid import UUID

    from prefect.client.schemas.objects import FlowRun

    from suffice.flows.endings import Ending
    from suffice.storage.ledger.charge import Charge

P = ParamSpec("P")
R = TypeVar("R")


def flow(name: str, **hooks: Any) -> Callable[[Callable[P, R]], prefect.Flow[P, R]]:
    """Declare a flow of this project: nothing of it is persisted, printed or retried.

    ``FLOW.serve()`` may send a flow to its runs as a pickled function without its module. Annotations that
    are text could not be read there, so they are resolved here.

    Parameters
    ----------
    name : str
        As Prefect shows it.
    **hooks
        Those of :func:`prefect.flow`, such as ``on_cancellation``.

    Returns
    -------
    callable
        A decorator that makes a Prefect flow of a function.
    """

    def declared(function: Callable[P, R]) -> prefect.Flow[P, R]:
        function.__annotations__ = get_type_hints(function, include_extras=True)
        return prefect.flow(name=name, persist_result=False, log_prints=False, retries=0, **hooks)(function)

    return declared


LONGEST = timedelta(hours=6)
"""A run that began earlier holds no other back: it may have been killed, and the server may not know."""


def earlier_run(limit: str, does_same: Callable[[datetime], bool]) -> UUID | None:
    """Return an earlier run of this deployment, with the same parameters, that still goes on.

    A run that was killed stays *Running* in Prefect. It does not count: its lease of the dataset's limit has
    passed, so that nobody holds that limit, or it began too long ago.

    Parameters
    ----------
    limit : str
        The concurrency limit that runs of the dataset hold.
    does_same : callable
        Told when the other run was scheduled: whether it is about the same release.

    Returns
    -------
    UUID or None
        None, too, where this is no run of a deployment, or the server does not answer: the ledger is enough.
    """
    if runtime.deployment.id is None:
        return None
    since: Any = datetime.now(UTC) - LONGEST  # Prefect's own type of it is made by its models
    try:
        with temporary_settings(SHORT_CALLS), get_client(sync_client=True) as client:
            if not client.read_global_concurrency_limit_by_name(limit).active_slots:
                return None
            here = client.read_flow_run(runtime.flow_run.id)
            others = client.read_flow_runs(
                flow_run_filter=FlowRunFilter(
                    deployment_id=FlowRunFilterDeploymentId(any_=[runtime.deployment.id]),
                    state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.RUNNING])),
                    start_time=FlowRunFilterStartTime(after_=since),
                )
            )
    except Exception:  # noqa: BLE001 - whatever it is, to wait is safe
        return None
    before = [other for other in others if _rank(other) < _rank(here) and other.parameters == here.parameters]
    return next((other.id for other in before if does_same(_scheduled(other))), None)


def _rank(run: FlowRun) -> tuple[Any, str]:
    """Return what orders runs: of two that begin at once, one goes on."""
    return run.start_time or datetime.max.replace(tzinfo=UTC), str(run.id)


def _scheduled(run: FlowRun) -> datetime:
    moment = run.next_scheduled_start_time or run.expected_start_time or datetime.now(UTC)
    return datetime.fromisoformat(moment.isoformat()).astimezone(UTC)


Result = TypeVar("Result")

REPORTING_S = 45.0
"""Seconds that Prefect has to report an end, in a process that runs one flow run and nothing else."""
LEASE_S = 120.0
"""Seconds after which a dataset is free again where the run that holds it was killed."""
LONGEST_WAIT_S = 1800.0
"""Seconds from a run's start in which it waits for its dataset, all calls of Prefect's server included.

A server that was killed forgets leases, and never frees it; one that hangs answers no call.
"""
SHORT_CALLS: dict[Any, Any] = {PREFECT_CLIENT_MAX_RETRIES: 1, PREFECT_API_REQUEST_TIMEOUT: 20.0}
"""How long a run asks before its work: by default Prefect asks a server that hangs for minutes a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What a run came to; every text is public.

    Attributes
    ----------
    ending : Ending
    message : str
        Of the run's state.
    subject : Subject
        What the event names.
    facts : mapping of str to str
        The event's payload beside the message.
    show : callable, optional
        Makes the run's artifacts.
    result : str or None
        What the flow returns where it completed.
    """

    ending: Ending
    message: str
    subject: Subject
    facts: Mapping[str, str] = field(default_factory=dict)
    show: Callable[[Reporter], None] | None = None
    result: str | None = None


class Run:
    """One run of a flow: how Prefect is told about it, and what it holds until its end."""

    def __init__(self) -> None:
        self.reporter = Reporter()
        self.log = records.begin(str(runtime.flow_run.flow_name), run=str(runtime.flow_run.id))
        self._held = ExitStack()
        self._began = time.monotonic()

    def about(self, **names: str | int) -> None:
        """Let the lines of the run's log name what it is about to release."""
        if self.log is not None:
            self.log.hold()
            self.log.about(**names)

    def settled(self, newest: Callable[[], Charge | None]) -> None:
        """Let the last line of the run's log name its charge; without a log nobody is asked for it."""
        if self.log is not None:
            self.log.about(**charge_fields(newest()))

    def hold(self, dataset: str) -> None:
        """Wait for the dataset's concurrency limit, ``suffice-DATASET``, made where there is none; hold it.

        It is a courtesy: the ledger keeps runs apart whatever Prefect does. So where the server does not
        answer, or another run holds the dataset until `LONGEST_WAIT_S` after this run's start, it goes on
        without, and where the lease cannot be renewed nothing is broken off.
        """
        name = limit_name(dataset)
        try:
            with (
                temporary_settings(SHORT_CALLS),
                get_client(sync_client=True) as client,
                suppress(ObjectAlreadyExists),  # made by another run, just now
            ):
                client.upsert_global_concurrency_limit_by_name(name, 1)
            self._held.enter_context(
                concurrency(
                    name,
                    occupy=1,
                    timeout_seconds=max(1.0, self._began + LONGEST_WAIT_S - time.monotonic()),
                    strict=True,
                    lease_duration=LEASE_S,
                    raise_on_lease_renewal_failure=False,
                )
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, the ledger is enough
            why = type(error).__name__
            text = f"the concurrency limit {name} is not held ({why}): the ledger alone keeps runs apart"
            self.reporter.notice(text)

    def skips(self, dataset: str, does_same: Callable[[datetime], bool]) -> str | None:
        """Return why nothing is to be done, where an earlier run of the same deployment does it; or None."""
        other = earlier_run(limit_name(dataset), does_same)
        return None if other is None else f"an earlier run of this deployment still goes on: {other}"

    def let_go(self) -> None:
        """Let go what is held, as far as that goes: leases pass."""
        with suppress(Exception):
            self._held.close()


def limit_name(dataset: str) -> str:
    """Return the name of the concurrency limit that runs of a dataset hold."""
    return f"suffice-{dataset}"


def run_work(work: Callable[[Run], RunResult], *, unread: Subject, failed: Ending) -> Any:
    """Do a flow's work, tell Prefect how it ended, and return the state to end in.

    Parameters
    ----------
    work : callable
        Gives the verdict; raises nothing on purpose.
    unread : Subject
        What the event names where nothing was read.
    failed : Ending
        Of a run whose `work` raised something: what may be told of it is the message.

    Returns
    -------
    State
        Of Prefect, which ends the run in it, and gives the flow's caller the result in it.
    """
    run = Run()
    failure = ""
    verdict = None
    with _signals_as_interrupts():
        try:
            verdict = work(run)
        except BaseException as error:  # noqa: BLE001 - Prefect would store its text and its frames
            failure = error_text(error)
    if verdict is None:
        verdict = RunResult(ending=failed, message=failure, subject=unread)
    if (kind := refused_kind(verdict.ending)) is not None:
        count_kind(kind)
    if run.log is not None:
        run.log.write("ended", ending=verdict.ending.name, message=verdict.message)
    end_without_server(completed=verdict.ending.kind == COMPLETED)
    run.let_go()
    run.reporter.emit(verdict.subject, verdict.ending, {"message": verdict.message, **verdict.facts})
    if verdict.show is not None:
        verdict.show(run.reporter)
    return State(
        type=StateType(verdict.ending.kind),
        name=verdict.ending.name,
        message=verdict.message,
        data=verdict.result,
    )


def scheduled_time() -> datetime:
    """Return when the run was to start: a retry and a late start change nothing about it."""
    return datetime.fromisoformat(runtime.flow_run.scheduled_start_time.isoformat()).astimezone(UTC)


def read_again(
    work: Callable[[], Result], *, attempts: int, pause: float, notice: Callable[[str], None]
) -> Result:
    """Do some work; again where its reading failed, which drew nothing and gave its epsilon back.

    Whether it drew is no guess: the same key is asked of the ledger again, which never lets a second draw
    follow a first one.
    """
    for left in range(attempts - 1, -1, -1):
        try:
            return work()
        except (StageFailedError, ClusterError, StoreError) as error:
            if not left or not _failed_before_the_draw(error):
                raise
            text = str(error)
        notice(f"{text}; read again in {pause:.0f} s, {left} more times at most")
        time.sleep(pause)
        pause *= 2
    raise AssertionError


def _failed_before_the_draw(error: SufficeError) -> bool:
    if isinstance(error, StageFailedError):
        return error.stage == "reading"
    return isinstance(error, ClusterError) or (isinstance(error, StoreError) and error.may_pass)


def end_without_server(*, completed: bool) -> None:
    """End this process in `REPORTING_S` at the latest, if a worker started it for this one run.

    Prefect tries for minutes to tell a server that is gone. All that counts is durable by now.
    """
    if os.environ.get("PREFECT__FLOW_RUN_ID") != runtime.flow_run.id:
        return

    def end() -> None:
        sys.stderr.write("Prefect's server did not take this run's end: the process ends without it\n")
        sys.stderr.flush()
        os._exit(0 if completed else 1)

    timer = threading.Timer(REPORTING_S, end)
    timer.daemon = True
    timer.start()


@contextmanager
def _signals_as_interrupts() -> Iterator[None]:
    """Have SIGTERM, which is how Prefect cancels, interrupt the run as Ctrl-C does: the charge is settled."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    earlier = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, earlier)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
