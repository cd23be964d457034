"""The services of ``deploy/compose`` as processes, from nothing to a scheduled release.

With ``COMPOSED_PICTURES=docs/figures`` it makes the pictures of the README anew.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.composed import HERE, NOBODY, can_isolate, isolated, postgres_programs, prepare

pytestmark = [pytest.mark.audit, pytest.mark.timeout(900)]

PICTURES = "COMPOSED_PICTURES"


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """Return what came of each step, and the folder of the installation."""
    if not can_isolate():
        pytest.skip("this system lets no process have a network of its own: unshare --net, as root")
    if postgres_programs() is None:
        pytest.skip("Prefect's server needs pg_trgm: install Debian's package postgresql")
    place = tmp_path_factory.mktemp("composed")
    folder = prepare(place / "compose")
    (place / "postgres-data").mkdir(mode=0o700)
    example = HERE.parent / "example"
    subprocess.run([sys.executable, str(example / "flights.py"), str(folder / "data")], check=True)
    shutil.copy(example / "flights-by-origin.yaml", folder / "specs")
    for root, _, files in os.walk(place):
        for path in (Path(root), *(Path(root) / file for file in files)):
            os.chown(path, NOBODY, NOBODY)
    pictures = [str(Path(os.environ[PICTURES]).resolve())] if PICTURES in os.environ else []
    done = subprocess.run(
        isolated([sys.executable, "-m", "support.composed_story", str(place), *pictures]),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-20000:]
    return json.loads(done.stdout.splitlines()[-1]), folder


def test_a_schedule_released(told: tuple[dict[str, Any], Path]) -> None:
    outcome, _ = told
    assert outcome["run"]["scheduled"]
    assert outcome["run"]["state"] == "Published", outcome["run"]
    assert outcome["run"]["message"].startswith("s3://releases/statistics/flights-by-origin/")
    assert outcome["shown"]["status"] == "published"
    assert {(row["origin"], row["parameter"]) for row in outcome["posterior"]["rows"]} == {
        (origin, "probability") for origin in ("EWR", "JFK", "LGA")
    }
    assert outcome["verified"]


def test_one_month_was_charged(told: tuple[dict[str, Any], Path]) -> None:
    account = told[0]["account"]
    assert account["granted"] == "14"
    assert [(window["spent"], window["remaining"]) for window in account["windows"]] == [("1", "13")]


def test_the_catalogue_is_there(told: tuple[dict[str, Any], Path]) -> None:
    assert "flights-by-origin" in (told[1] / "site/pages/index.html").read_text(encoding="utf-8")


def test_what_nobody_may_do_is_refused(told: tuple[dict[str, Any], Path]) -> None:
    outcomes = told[0]["refused"]
    controls = {"an auditor reads the ledger", "with the certificate", "the spool"}
    assert {name for name, (status, _) in outcomes.items() if status == 0} == controls
    denied = {name: words for name, (status, words) in outcomes.items() if status}
    for name in ("prefect reads the ledger", "a release reads Prefect's database"):
        assert "permission denied for database" in denied[name]
    for name in ("a release grants", "an auditor grants"):
        assert "permission denied for table accounts" in denied[name]
    assert "no password supplied" in denied["an auditor as another"]
    for name in ("no certificate", "no encryption"):
        assert "cannot be reached, or its certificates" in denied[name]
    for name in ("a file of the image", "the data"):
        assert "Read-only file system" in denied[name]
    for name in ("rows without the folder", "another's secret"):
        assert "No such file or directory" in denied[name]


def test_no_log_holds_a_secret(told: tuple[dict[str, Any], Path]) -> None:
    assert told[0]["secrets_in_logs"] == []
