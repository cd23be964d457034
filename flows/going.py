"""Whether an earlier run of a deployment still does what a new one was scheduled for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from prefect import get_client, runtime
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterStartTime,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import StateType

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from prefect.client.schemas.objects import FlowRun

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
        with get_client(sync_client=True) as client:
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
