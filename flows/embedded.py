"""Run the flow on Prefect's embedded server, in a process of its own.

The child gets its own Prefect home and none of the caller's Prefect settings, so that a demo neither
reaches nor writes to a team's server, and no telemetry leaves the machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from suffice.errors import StageFailedError

if TYPE_CHECKING:
    from pathlib import Path

STARTUP_TIMEOUT_S = 90
_SETTINGS = {
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": str(STARTUP_TIMEOUT_S),
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_LOGGING_LEVEL": "WARNING",
    "DO_NOT_TRACK": "1",
}


def embedded_environment(home: Path) -> dict[str, str]:
    """Return the environment of a process that uses an embedded server under `home`, and only that."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    return {**inherited, **_SETTINGS, "PREFECT_HOME": str(home.resolve())}


def run_embedded(parameters: dict[str, str], home: Path, *, log: Path) -> str:
    """Run ``release_statistics`` with these parameters, and return the release's URI.

    Parameters
    ----------
    parameters : dict of str
        The fields of :class:`suffice.flows.parameters.ReleaseParameters`.
    home : Path
        The child's Prefect home.
    log : Path
        Where the child's output goes.

    Raises
    ------
    StageFailedError
        Where the flow fails; its output is in `log`.
    """
    home.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        finished = subprocess.run(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-m", "suffice.flows.embedded", json.dumps(parameters)],
            env=embedded_environment(home),
            stdout=subprocess.PIPE,
            stderr=output,
            check=False,
        )
    lines = finished.stdout.decode().splitlines()
    if finished.returncode or not lines:
        raise StageFailedError("flow", f"the flow failed; its output is in {log}")
    return str(json.loads(lines[-1])["uri"])


def main() -> None:
    """Run the flow with the parameters given as JSON, and print the release's URI as JSON."""
    from suffice.flows.release import release_statistics  # importing Prefect takes seconds

    uri = release_statistics(json.loads(sys.argv[1]))
    print(json.dumps({"uri": uri}))  # noqa: T201 - the parent reads it


if __name__ == "__main__":
    main()
