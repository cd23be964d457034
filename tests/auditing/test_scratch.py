"""Directories of audits: whoever was killed leaves one, and the next audit removes it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from suffice.auditing.audit import PREFIX, scratch_directory
from suffice.auditing.scratch_sources import bucket_not_tried
from suffice.pipeline.spec.spec import load_spec
from support.audited import SPECS, changed

HOLD = """
import sys, time
from pathlib import Path
from suffice.auditing.audit import scratch_directory
with scratch_directory(Path(sys.argv[1])) as (place, _):
    (place / "manifest.json").write_text("{}")
    print(place, flush=True)
    time.sleep(60)
"""


@pytest.mark.slow
def test_the_next_audit_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        left = Path(other.stdout.readline().strip())
        (tmp_path / f"{PREFIX}link").symlink_to(left)
        with scratch_directory(tmp_path) as (place, _):
            assert (left / "manifest.json").exists(), "its process lives"
            assert place.is_dir()
        assert not place.exists()
        other.send_signal(signal.SIGKILL)
    assert left.exists()
    with scratch_directory(tmp_path):
        assert not left.exists()


@pytest.mark.parametrize(
    ("source", "is_said"),
    [
        ({"parquet": "s3://flights/rows"}, True),
        ({"parquet": "rows"}, False),
        (SPECS["csv"]["source"], False),
    ],
)
def test_a_bucket_is_not_tried_and_the_result_says_so(source: dict[str, str], *, is_said: bool) -> None:
    assert (bucket_not_tried(load_spec(changed(source=source))) is not None) == is_said
