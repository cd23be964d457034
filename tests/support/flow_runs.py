"""Every flow on a real server, in one process: ``python -m support.flow_runs REQUEST``.

In a process of its own: importing Prefect starts machinery that a test run does not want. The request is
JSON: ``automation``, the file of one, and ``webhook``, where it posts; ``releases``, parameters by name;
``others``, by name the flow, its parameters and what breaks meanwhile; ``cancelled``, the id of a run whose
state Prefect wrote over. Printed is what became of each.
"""

from __future__ import annotations

import json
import sys
import types
import uuid
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

PUBLISHED_ALL_THE_SAME = {
    "type": "CANCELLED",
    "name": "Interrupted, published",
    "message": "interrupted after the draw: the charge is published; epsilon 1 is spent",
}
"""The own state of a cancelled run."""
MEANWHILE = {"staging": "staging", "again": "dataset held"}
"""What breaks, or is held by another run, while a release is asked for."""

if TYPE_CHECKING:
    from collections.abc import Iterator


def released(asked: dict[str, Any]) -> dict[str, Any]:
    """Run ``release_statistics`` for each, and search what it raises for what is exact."""
    import pytest

    from suffice.flows.release import release_statistics
    from suffice.pipeline.spec.spec import load_spec
    from support.leaking import leaks, sought_in

    sought = sought_in(load_spec(asked["good"]["spec"]))
    noise = pytest.MonkeyPatch()
    sought.add_noise(noise)
    outcomes: dict[str, Any] = {}
    for name, parameters in asked.items():
        with broken(MEANWHILE.get(name, ""), parameters):
            try:
                outcomes[name] = {"uri": release_statistics(parameters)}
            except Exception as error:  # noqa: BLE001 - what it is, the tests ask
                outcomes[name] = {"error": str(error), "context": repr(error.__context__)}
                outcomes[name]["leaks"] = leaks(error, sought, without=("/prefect/", "<string>"))
    noise.undo()
    outcomes["sought"] = sorted(set(sought.numbers.values()))
    return outcomes


def carried_out(asked: dict[str, Any]) -> dict[str, Any]:
    """Run the other flows, and return the state of each."""
    from suffice.flows.audit import audit_ledger
    from suffice.flows.backfill import backfill_windows
    from suffice.flows.model import fit_hidden_markov
    from suffice.flows.posterior import publish_posterior
    from suffice.flows.recover import recover_charges

    flows: dict[str, Any] = {
        "backfill": backfill_windows,
        "recover": recover_charges,
        "audit": audit_ledger,
        "publication": publish_posterior,
        "model": lambda asked, **how: fit_hidden_markov(**asked, **how),
    }
    outcomes = {}
    for name, parameters in asked.items():
        with broken(parameters.get("broken", ""), parameters["parameters"]):
            state = flows[parameters["flow"]](parameters["parameters"], return_state=True)
        run = str(state.state_details.flow_run_id)
        outcomes[name] = {"run": run, "ended": [state.name, state.type.value], "message": state.message}
    return outcomes


@contextmanager
def broken(what: str, parameters: dict[str, Any]) -> Iterator[None]:
    """Break something while a flow runs, or before it."""
    import pytest

    from suffice.storage.ledger.sql.sql_ledger import SqlLedger

    stage = SqlLedger.stage
    drawn: list[int] = []

    def fail(*arguments: Any) -> Any:
        drawn.append(1)
        if what == "staging" or len(drawn) > 1:
            raise RuntimeError
        return stage(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        if what in {"staging", "second staging"}:
            patch.setattr(SqlLedger, "stage", fail)
        store = Path(parameters.get("store", "none"))
        away = store.with_name("away")
        if what == "store":
            store.rename(away)
        if what == "manifest":
            next(store.rglob("manifest.json")).unlink()
        held: AbstractContextManager[None] = nullcontext()
        if what == "dataset held":
            from prefect.concurrency.sync import concurrency

            held = concurrency("suffice-passengers", occupy=1, strict=True, timeout_seconds=60)
        with held:
            yield
        if what == "store":
            away.rename(store)


def main() -> None:
    """Do what the request asks for, and print what became of it."""
    from prefect.utilities.asyncutils import run_coro_as_sync

    from suffice.flows.endings import say_again
    from support.budget_alert import automate

    request = json.loads(sys.argv[1])
    automation = Path(request["automation"]).read_text(encoding="utf-8")
    run_coro_as_sync(automate(automation, request["webhook"]))
    hooked: Any = types.SimpleNamespace(id=uuid.UUID(request["cancelled"]))
    nothing: Any = None
    say_again(nothing, hooked, nothing)
    document = {"releases": released(request["releases"]), "others": carried_out(request["others"])}
    sys.stdout.write(json.dumps(document) + "\n")


if __name__ == "__main__":
    main()
