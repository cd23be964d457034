"""A scheduler whose process dies during a release: one typed error, no traceback, nothing of the data."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from suffice.errors import ClusterError
from suffice.storage.ledger.opening import open_ledger
from support.dask_clusters import in_processes
from support.held_reading import PLACE
from support.running import spec_file

if TYPE_CHECKING:
    from pathlib import Path

    from support.making import Workspace

_SECONDS = 120
"""For what takes a few on a quiet machine."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "lines"), [(signal.SIGKILL, False), (signal.SIGKILL, True), (signal.SIGTERM, False)]
)
def test_a_release_ends_with_one_error_when_its_scheduler_dies(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: signal.Signals, *, lines: bool
) -> None:
    monkeypatch.setenv(PLACE, str(tmp_path))
    (tmp_path / "hold").touch()
    spec = spec_file(workspace)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    if lines:
        environment["SUFFICE_LOG"] = "json"
    with in_processes(tmp_path / "worker", preload="support.held_reading") as (address, scheduler):
        words = ["--store", workspace.store, "--ledger", workspace.ledger, "--cluster", address]
        command = [sys.executable, "-m", "suffice", "release", spec, *words]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        ) as release:
            end = time.monotonic() + _SECONDS
            while not (tmp_path / "reading").exists():
                assert release.poll() is None
                assert time.monotonic() < end
                time.sleep(0.1)
            scheduler.send_signal(how)
            printed, said = release.communicate(timeout=_SECONDS)
    assert (release.returncode, printed) == (ClusterError.exit_status, "")
    if lines:
        written = [json.loads(line) for line in said.splitlines()]
        (message,) = [record["message"] for record in written if record["event"] == "error"]
    else:
        (line,) = said.splitlines()
        message = line.removeprefix("suffice: ")
    assert message.startswith("the connection was lost, or the cluster dropped the run: check")
    assert message.endswith("nothing was drawn, and its epsilon was returned")
    with open_ledger(workspace.ledger) as ledger:
        assert ledger.account("passengers").spent == 0
