"""Say again what a cancelled run came to, after Prefect has written over it.

Prefect's runner may end a cancelled run in a plain ``Cancelled``, whatever state the run itself ended in:
then nobody would see that a release was published all the same, or that epsilon is spent.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from prefect import get_client
from prefect.client.schemas.objects import State, StateType

from suffice.flows.endings import AFTER_THE_DRAW

if TYPE_CHECKING:
    from uuid import UUID

    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import FlowRun
    from prefect.flows import Flow

PATIENCE_S = 60.0
"""Seconds in which the runner ends the run after it called the hook."""


def say_again(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:  # noqa: ARG001 - Prefect's hook
    """Wait in the background until the runner has ended the run, and end it in its own state again.

    Called by the runner, in its own process, after the run's process is gone. Only a state that says that
    epsilon is spent is said again.
    """
    threading.Thread(target=_restore, args=(flow_run.id,), name="suffice-cancelled").start()


def _restore(run_id: UUID) -> None:
    end = time.monotonic() + PATIENCE_S
    with get_client(sync_client=True) as client:
        own = _own_state(client, run_id)
        while own is not None and time.monotonic() < end:
            current = client.read_flow_run(run_id).state
            if current is not None and current.name == "Cancelled":
                again: State[Any] = State(type=StateType.CANCELLED, name=own.name, message=own.message)
                client.set_flow_run_state(run_id, again, force=True)
                return
            time.sleep(0.5)


def _own_state(client: SyncPrefectClient, run_id: UUID) -> State[Any] | None:
    """Return the state that the run itself ended in, if it is one that must not be hidden."""
    states = client.read_flow_run_states(run_id)
    return next((state for state in reversed(states) if state.name in AFTER_THE_DRAW), None)
