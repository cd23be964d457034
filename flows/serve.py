"""Everything that one machine needs beside Prefect's server: ``python -m suffice.flows.serve SPEC...``.

One process makes the deployments, waits for their times, and runs each flow in a process of its own: no work
pool, and no worker. The runs get this process's environment, whatever a caller asks for.
"""

from __future__ import annotations

import argparse
import os
import sys
import zoneinfo
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from prefect import serve
from prefect.schedules import Cron, Interval
from prefect.types.entrypoint import EntrypointType

from suffice.errors import SufficeError, UsageError
from suffice.flows.audit import audit_ledger
from suffice.flows.recover import recover_charges
from suffice.flows.release import release_statistics
from suffice.pipeline.declaration.safe_text import escaped
from suffice.pipeline.spec.calendar import LATEST_COMPLETE
from suffice.pipeline.spec.spec import load_spec
from suffice.profile.settings import settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prefect import Flow
    from prefect.deployments.runner import RunnerDeployment
    from prefect.schedules import Schedule

RECOVER_EVERY = timedelta(minutes=15)
AUDIT = "0 5 * * 1"
PROCESSES = 4
"""A run takes a process and its memory, also while it waits for its dataset."""


def deployments(specs: Sequence[str], *, cron: str, time_zone: str) -> list[RunnerDeployment]:
    """Return the deployments of one machine: a release for each spec, ``recover`` and ``audit``.

    Parameters
    ----------
    specs : sequence of str
        Paths. A spec with a window is released for the newest one that was complete when its run was
        scheduled, a spec without one once.
    cron : str
        When: minute, hour, day of the month, month, day of the week.
    time_zone : str
        That `cron` is in, as ``Europe/Berlin``.

    Returns
    -------
    list of RunnerDeployment

    Raises
    ------
    UsageError
        Where a spec, the times or the time zone cannot be used, or two specs have one name.
    """
    if time_zone not in zoneinfo.available_timezones():
        message = "--time-zone: this is no time zone: write Europe/Berlin, or UTC"
        raise UsageError(message)
    asked = _asked(specs)
    try:
        nightly = Cron(cron, timezone=time_zone)
        releases = [
            _deployment(release_statistics, name, nightly, {"release": {"spec": path, "window": window}})
            for name, (path, window) in asked.items()
        ]
    except ValueError:
        message = '--cron: write minute, hour, day, month and day of the week, as "30 2 * * *"'
        raise UsageError(message) from None
    recover = _deployment(recover_charges, "recover", Interval(RECOVER_EVERY), {})
    weekly = Cron(AUDIT, timezone=time_zone)
    audit = _deployment(audit_ledger, "audit", weekly, {"audit": {"full": True}})
    return [*releases, recover, audit]


def _deployment(
    flow: Flow[..., Any], name: str, schedule: Schedule, parameters: dict[str, Any]
) -> RunnerDeployment:
    made = flow.to_deployment(
        name=name,
        schedule=schedule,
        parameters=parameters,
        tags=["suffice"],
        entrypoint_type=EntrypointType.MODULE_PATH,
    )
    return cast("RunnerDeployment", made)  # a coroutine only where an event loop runs


def _asked(specs: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return each spec's absolute path and its window, by its name."""
    asked: dict[str, tuple[str, str]] = {}
    for given in specs:
        settings(spec_path=given)
        spec = load_spec(given)
        if spec.name in asked:
            message = f"{given}: another spec here is called {spec.name} too"
            raise UsageError(message)
        asked[spec.name] = str(Path(given).resolve()), "all" if spec.window is None else LATEST_COMPLETE
    return asked


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until somebody ends it."""
    parser = argparse.ArgumentParser(
        prog="python -m suffice.flows.serve",
        description="Release specs by schedule, on one machine: needs PREFECT_API_URL and a running server.",
    )
    parser.add_argument("specs", nargs="+", metavar="SPEC")
    parser.add_argument("--cron", required=True, metavar="TIMES", help='As "30 2 * * *": 02:30 every night.')
    parser.add_argument("--time-zone", required=True, metavar="ZONE", help="Of the times, as Europe/Berlin.")
    parser.add_argument(
        "--processes",
        type=int,
        choices=range(1, 65),
        default=PROCESSES,
        metavar="N",
        help=f"How many runs there are at once, 1 to 64; others wait for them. {PROCESSES} where left out.",
    )
    asked = parser.parse_args(arguments)
    try:
        if not os.environ.get("PREFECT_API_URL"):
            message = (
                "PREFECT_API_URL is not set: start `prefect server start`, then set it to "
                "http://127.0.0.1:4200/api"
            )
            raise UsageError(message)
        made = deployments(asked.specs, cron=asked.cron, time_zone=asked.time_zone)
    except SufficeError as error:
        sys.stderr.write(f"error: {escaped(str(error))}\n")
        sys.exit(error.exit_status)
    serve(*made, limit=asked.processes)


if __name__ == "__main__":
    main()
