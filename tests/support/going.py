"""Runs of one deployment on a real server, ``python -m support.going``: which holds back a later one."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime

LIMIT = "suffice-going"


def main() -> None:
    """Make the runs, ask for each, and print the answers."""
    from prefect import get_client
    from prefect.client.schemas.objects import State, StateType
    from prefect.concurrency.sync import concurrency

    from suffice.flows.running import earlier_run

    made: dict[str, str] = {}
    with get_client(sync_client=True) as client:
        client.upsert_global_concurrency_limit_by_name(LIMIT, 1)
        flow = client.create_flow_from_name("going")
        deployment = client._client.post("/deployments/", json={"name": "a", "flow_id": str(flow)}).json()[
            "id"
        ]
        parameters: dict[str, dict[str, Any]] = {"first": {"spec": "a"}, "second": {"spec": "a"}, "other": {}}
        for name, asked in parameters.items():
            run = client.create_flow_run_from_deployment(deployment, parameters=asked)
            client.set_flow_run_state(run.id, State(type=StateType.RUNNING), force=True)
            made[name] = str(run.id)
    os.environ["PREFECT__RUNTIME__DEPLOYMENT__ID"] = str(deployment)

    def before(name: str, *, same: bool = True) -> str | None:
        def does_same(moment: datetime) -> bool:
            return same and moment.tzinfo is not None

        os.environ["PREFECT__RUNTIME__FLOW_RUN__ID"] = made[name]
        other = earlier_run(LIMIT, does_same)
        return next((each for each, run in made.items() if str(other) == run), None)

    answers = {"nobody holds": before("second")}
    with concurrency(LIMIT, occupy=1, strict=True, timeout_seconds=60):
        answers |= {name: before(name) for name in made}
        answers["of another window"] = before("second", same=False)
        del os.environ["PREFECT__RUNTIME__DEPLOYMENT__ID"]
        answers["of no deployment"] = before("second")
    sys.stdout.write(json.dumps(answers) + "\n")


if __name__ == "__main__":
    main()
