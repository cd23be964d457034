"""What the how-to about schedules says of Prefect, done on the tests' server."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from support.making import make_workspace
from support.prefect_server import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

    from support.making import Workspace
    from support.prefect_server import PrefectServer

POOL = "releases"
ZONE = "Test/MidnightSoon"
"""A time zone that the worker's runs find in a folder of the tests."""
HOW_TO = "docs/how-to/schedule-a-release.md"
PUBLISHING = "docs/how-to/publish-a-posterior.md"
BLOCK = str(uuid.UUID(int=5))
SPECS = re.compile(r"/srv/specs/[\w-]+\.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduled:
    """What was made.

    Attributes
    ----------
    place : Workspace
        What the deployments release.
    spec : Path
    deployments : dict
        As the server has them, by name.
    commands : list of list of str
        Those of Prefect that the how-to states, in order.
    statuses : list of int
        Their exit statuses.
    said : str
        All that they printed.
    """

    place: Workspace
    spec: Path
    deployments: dict[str, dict[str, Any]]
    commands: list[list[str]]
    statuses: list[int]
    said: str


def as_the_how_to_says(server: PrefectServer, repository: Path, directory: Path) -> Scheduled:
    """Run every command of Prefect in the how-to but the worker's, with paths of this machine."""
    place = make_workspace(directory)
    spec = place.write_spec(
        name="flights-by-origin",
        groups=None,
        statistics={"cancelled": {"family": "bernoulli", "column": "cancelled"}},
        window={"column": "day", "every": "month", "first": "2013-01"},
    )
    shutil.copytree(repository / "deploy", directory / "deploy")
    file = directory / "deploy/prefect/prefect.yaml"
    file.write_text(SPECS.sub(str(spec), file.read_text(encoding="utf-8")), encoding="utf-8")
    automation = (directory / "deploy/prefect/budget-automation.yaml").read_text(encoding="utf-8")
    (directory / "automation.yaml").write_text(automation.replace("BLOCK_ID", BLOCK), encoding="utf-8")
    text = SPECS.sub(str(spec), (repository / HOW_TO).read_text(encoding="utf-8"))
    text += (repository / PUBLISHING).read_text(encoding="utf-8")
    commands = [shlex.split(line)[1:] for line in re.findall(r"^    (prefect .*)$", text, re.MULTILINE)]
    finished = subprocess.run(
        [sys.executable, "-m", "support.prefect_commands", json.dumps(commands)],
        env=server.environment(),
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    said = finished.stdout + finished.stderr
    assert finished.returncode == 0, said
    deployments = server.post("/deployments/filter", {"limit": 100})
    ours = [deployment for deployment in deployments if deployment["work_pool_name"] == POOL]
    return Scheduled(
        place=place,
        spec=spec,
        deployments={deployment["name"]: deployment for deployment in ours},
        commands=commands,
        statuses=json.loads(finished.stdout.splitlines()[-1]),
        said=said,
    )
