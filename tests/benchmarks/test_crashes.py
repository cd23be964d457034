"""A campaign of kills is planned, carried out and repeated."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

SMALL = "sums and samples of 3 cells"


@pytest.mark.audit
def test_a_campaign_of_three_kills(repository: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.jsonl"
    kills = [
        {"number": 0, "size": SMALL, "start": "run", "aimed": False, "share": 0.5, "ending": "rerun"},
        {"number": 1, "size": SMALL, "start": "drawing", "aimed": True, "share": 0.1, "ending": "recover"},
        {"number": 2, "size": SMALL, "start": "staged", "aimed": False, "share": 0.1, "ending": "rerun"},
    ]
    plan.write_text("".join(json.dumps(kill) + "\n" for kill in kills))
    done = subprocess.run(
        [sys.executable, str(repository / "benchmarks/crashes.py"), "kills", "--plan", str(plan)],
        env={**os.environ, "PYTHONPATH": str(repository / "tests")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 kills on sqlite" in done.stdout
    assert done.stdout.endswith("broken: 0\n")


@pytest.mark.slow
def test_half_of_a_plan_is_aimed(repository: Path, tmp_path: Path) -> None:
    program = "import crashes; print(sum(kill.aimed for kill in crashes.make_plan(10)))"
    paths = [str(repository / "benchmarks"), str(repository / "tests")]
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert done.stdout == "5\n"
