"""The benchmark runs, agrees with DuckDB, and states what it ran on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def test_a_small_benchmark(repository: Path, tmp_path: Path) -> None:
    command = [
        sys.executable,
        str(repository / "benchmarks" / "run.py"),
        "--rows",
        "100000",
        "--repetitions",
        "1",
    ]
    done = subprocess.run(
        command,
        env={**os.environ, "SUFFICE_BENCH_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("100,000 rows, 1,440 groups")
    for contender in ("suffice", "duckdb", "decoding"):
        assert re.search(rf"^{contender} +\d+\.\d{{3}} +\d+\.\d{{3}}", done.stdout, re.MULTILINE)
    assert [path.name for path in tmp_path.iterdir()] == ["reference-1-100000"]
