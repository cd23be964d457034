"""Runs submitted to a work pool of a real Prefect server: ``python -m support.prefect_pool REQUEST``.

In a process of its own: importing Prefect starts machinery that a test run does not want. The request is
JSON: ``pools``, a base job template by name, or null for Prefect's own, ``runs``, each with ``pool``,
``parameters`` and ``job_variables``, and ``attack``, the variables that each pool's template is filled with
as a worker does it, whatever the server let through. Printed are, for each run, its state and its message, or
what the server said where it refused the run; the filled templates; and Prefect's own template.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.exceptions import PrefectHTTPStatusError
from prefect.states import Scheduled
from prefect.workers.base import BaseJobConfiguration
from prefect.workers.process import ProcessWorker
from pydantic import ConfigDict

from suffice.flows.release import release_statistics

ENTRYPOINT = "suffice.flows.release.release_statistics"
PATIENCE_S = 240


class AnyConfiguration(BaseJobConfiguration):
    """What a worker of any type is told, with the fields of its own."""

    model_config = ConfigDict(extra="allow")


async def filled(templates: dict[str, Any], attack: dict[str, Any]) -> dict[str, Any]:
    """Fill templates with a caller's variables as Prefect's workers do."""
    values = {}
    async with get_client() as client:
        for name, template in templates.items():
            used = template or ProcessWorker.get_default_base_job_template()
            configuration: AnyConfiguration = await AnyConfiguration.from_template_and_values(
                used, dict(attack), client=client
            )
            values[name] = configuration.model_dump(mode="json")
    return values


async def submit(pools: dict[str, Any], runs: dict[str, Any]) -> dict[str, Any]:
    """Make the pools, submit the runs, work them off, and say how each ended."""
    outcomes: dict[str, Any] = {}
    submitted = {}
    async with get_client() as client:
        flow_id = await client.create_flow(release_statistics)
        deployments = {}
        for name, template in pools.items():
            used = template or ProcessWorker.get_default_base_job_template()
            pool = WorkPoolCreate(name=name, type="process", base_job_template=used)
            await client.create_work_pool(pool)
            deployments[name] = await client.create_deployment(
                flow_id, name=name, work_pool_name=name, entrypoint=ENTRYPOINT, path="."
            )
        for name, run in runs.items():
            try:
                created = await client.create_flow_run_from_deployment(
                    deployments[run["pool"]],
                    parameters=run["parameters"],
                    job_variables=run["job_variables"],
                    state=Scheduled(),
                )
                submitted[name] = created.id
            except PrefectHTTPStatusError as error:
                outcomes[name] = {"state": "REFUSED", "message": str(error.response.text)[:300]}
        for name in {runs[key]["pool"] for key in submitted}:
            async with ProcessWorker(work_pool_name=name) as worker:
                await worker.get_and_submit_flow_runs()
                ours = [key for key in submitted if runs[key]["pool"] == name]
                for key in ours:
                    outcomes[key] = await _ended(client, submitted[key])
    return outcomes


async def _ended(client: Any, run_id: Any) -> dict[str, Any]:
    for _ in range(PATIENCE_S * 2):
        run = await client.read_flow_run(run_id)
        if run.state is not None and run.state.is_final():
            return {"state": run.state.type.value, "message": run.state.message}
        await asyncio.sleep(0.5)
    return {"state": "UNFINISHED", "message": ""}


def main() -> None:
    """Do what the request asks for, and print the outcomes."""
    request = json.loads(sys.argv[1])
    document = {
        "outcomes": asyncio.run(submit(request["pools"], request["runs"])),
        "filled": asyncio.run(filled(request["pools"], request["attack"])),
        "default_template": ProcessWorker.get_default_base_job_template(),
    }
    sys.stdout.write(json.dumps(document) + "\n")


if __name__ == "__main__":
    main()
