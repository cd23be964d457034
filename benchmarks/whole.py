"""Time whole processes: `suffice release` beside `python -c` with DuckDB's GROUP BYs, start-up and all.

python benchmarks/whole.py [--rows 20000000] [--repetitions 3]

Each release has a ledger and a store of its own, reads all rows, adds noise and publishes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from generate import CATEGORIES, reference_data
from measuring import versions
from workloads import GROUPS, NUMBERS, counted, duckdb_grouping_sets, duckdb_queries, n_threads

if TYPE_CHECKING:
    from collections.abc import Mapping

GOAL = 1.0
LAUNCHER = """
import json, os, sys, time
started = time.perf_counter()
silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
process = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=silent)
_, status, usage = os.wait4(process, 0)
wall = time.perf_counter() - started
print(json.dumps([wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024]))
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""Starts a process from a small one: on Linux the peak that is reported begins with the starter's size."""


def main() -> None:
    """Run all kinds of processes in turn, and print medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    data = reference_data(options.rows)
    print(f"whole processes on {options.rows:,} rows; {n_threads()} threads\n{versions()}\n")
    processes = {
        "suffice release": release,
        "duckdb": lambda _, data: duckdb(duckdb_queries(data)),
        "duckdb, grouping sets": lambda _, data: duckdb(duckdb_grouping_sets(data)),
    }
    taken: dict[str, list[tuple[float, float, float]]] = {name: [] for name in processes}
    for _ in range(1 + options.repetitions):
        for name, start in processes.items():
            with tempfile.TemporaryDirectory() as directory:
                taken[name].append(run(start(Path(directory), data)))
    print(f"{'':24}{'wall s':>9}{'CPU s':>9}{'peak MB':>9}{'ours/it':>9}{'by CPU':>9}{'goal':>7}")
    ours: list[float] = []
    for name, runs in taken.items():
        wall, processor, peak = (statistics.median(column) for column in zip(*runs[1:], strict=True))
        line = f"{name:24}{wall:9.2f}{processor:9.2f}{peak:9,.0f}"
        if ours:
            ratio = ours[0] / wall
            line += f"{ratio:9.2f}{ours[1] / processor:9.2f}{GOAL:7.2f}  "
            line += "met" if ratio <= GOAL else "MISSED"
        ours = ours or [wall, processor]
        print(line)


def release(workspace: Path, data: Path) -> list[str]:
    """Make a ledger and a spec, and return the command that releases."""
    command = [sys.executable, "-m", "suffice"]
    ledger = f"sqlite:///{workspace}/ledger.db"
    grant = ["ledger", "grant", "benchmark", "--epsilon", "1", "--reason", "benchmark", "--create"]
    subprocess.run([*command, *grant, "--ledger", ledger], check=True, stdout=subprocess.DEVNULL)
    numbers = {
        name: {"family": "normal", "column": name, "lower": str(lower), "upper": str(upper)}
        for name, (lower, upper) in NUMBERS.items()
    }
    spec = {
        "name": "benchmark",
        "dataset": "benchmark",
        "source": {"parquet": str(data)},
        "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
        "groups": GROUPS,
        "statistics": {**{name: counted(name) for name in CATEGORIES}, **numbers},
    }
    path = workspace / "spec.json"
    path.write_text(json.dumps(spec))
    return [*command, "release", str(path), "--store", str(workspace / "store"), "--ledger", ledger]


def duckdb(queries: list[str]) -> list[str]:
    """Return the command of a process that only asks DuckDB and fetches the answers."""
    code = (
        f"import duckdb; connection = duckdb.connect(config={{'threads': {n_threads()}}})\n"
        f"for query in {queries!r}: connection.execute(query).fetchall()"
    )
    return [sys.executable, "-c", code]


def run(
    command: list[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> tuple[float, float, float]:
    """Return wall and processor seconds and the peak in megabytes of one process."""
    launched = [sys.executable, "-S", "-c", LAUNCHER, *command]
    done = subprocess.run(launched, check=True, stdout=subprocess.PIPE, text=True, cwd=cwd, env=env)
    wall, processor, peak = json.loads(done.stdout)
    return wall, processor, peak


if __name__ == "__main__":
    main()
