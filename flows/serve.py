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
from typing import TYPE_CHECKING, Any

from prefect import serve
from prefect.deployments.runner import EntrypointType, RunnerDeployment
from prefect.schedules import Cron, Interval

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

RECOVER_EVERY = timedelta(minutes=15)
AUDIT = "0 5 * * 1"
_SERVED: dict[str, Any] = {"tags": ["suffice"], "entrypoint_type": EntrypointType.MODULE_PATH}


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
            release_statistics.to_deployment(
                name=name,
                schedule=nightly,
                parameters={"release": {"spec": path, "window": window}},
                **_SERVED,
            )
            for name, (path, window) in asked.items()
        ]
    except ValueError:
        message = '--cron: write minute, hour, day, month and day of the week, as "30 2 * * *"'
        raise UsageError(message) from None
    recover = recover_charges.to_deployment(name="recover", schedule=Interval(RECOVER_EVERY), **_SERVED)
    weekly, whole = Cron(AUDIT, timezone=time_zone), {"audit": {"full": True}}
    audit = audit_ledger.to_deployment(name="audit", schedule=weekly, parameters=whole, **_SERVED)
    return [*releases, recover, audit]


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
    serve(*made)


if __name__ == "__main__":
    main()
