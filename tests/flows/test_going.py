"""A run whose deployment's earlier run goes on has nothing to do; one that was killed holds nobody back."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.prefect_server import PrefectServer


@pytest.mark.slow
def test_only_an_earlier_run_of_the_same_that_goes_on_holds_a_run_back(prefect_server: PrefectServer) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "support.going"],
        env=prefect_server.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "nobody holds": None,
        "first": None,
        "second": "first",
        "other": None,
        "of another window": None,
        "of no deployment": None,
    }
