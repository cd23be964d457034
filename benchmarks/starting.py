"""Time commands that answer little, as whole processes: what is left is their start.

python benchmarks/starting.py [--repetitions 7] [--before DIRECTORY]

`--before` names another checkout's `src`, run in turn with this one: on a busy machine ratios are
steadier than seconds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measuring import versions
from whole import run

ROWS = 1000
SPEC = """\
name: flips
dataset: coins
source: {parquet: coins.parquet}
privacy: {epsilon: "1", neighboring: add_or_remove_one, unit: row}
groups: {city: [a, b, c]}
statistics:
  heads: {family: bernoulli, column: heads}
  length: {family: normal, column: length, lower: "0", upper: "10"}
"""
OPENED = "import suffice; suffice.open_release('flips')['heads'].posterior().summary()"
ASKED: dict[str, tuple[list[str], float | None]] = {
    "python": (["-c", "pass"], None),
    "import numpy": (["-c", "import numpy"], None),
    "release, 1,000 rows": (["-m", "suffice", "release", "spec.yaml"], 0.5),
    "table": (["-m", "suffice", "table", "flips", "heads"], None),
    "posterior, Bernoulli": (["-m", "suffice", "posterior", "flips", "heads"], 0.3),
    "posterior, normal": (["-m", "suffice", "posterior", "flips", "length"], 0.3),
    "open_release, Bernoulli": (["-c", OPENED], 0.3),
    "open_release, normal": (["-c", OPENED.replace("heads", "length")], 0.3),
}
"""What is run, and an estimate of the least that it could take, in CPU seconds on a quiet machine."""


def main() -> None:
    """Run all commands in turn, and print medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--before", type=Path)
    options = parser.parse_args()
    here = Path(__file__).resolve().parents[1] / "src"
    trees = [here] if options.before is None else [here, options.before.resolve()]
    print(f"starting: medians of {options.repetitions} whole processes\n{versions()}\n")
    taken: dict[tuple[str, Path], list[tuple[float, float, float]]] = {}
    for repetition in range(1 + options.repetitions):  # the first writes byte code
        for tree in trees:
            with tempfile.TemporaryDirectory() as directory:
                workspace = Path(directory)
                prepare(workspace)
                for name, (words, _) in ASKED.items():
                    ran = in_workspace(words, workspace, tree)
                    if repetition:
                        taken.setdefault((name, tree), []).append(ran)
    print(f"{'':26}{'CPU s':>8}{'peak MB':>9}{'limit':>7}{'before':>8}{'ratio':>7}{'peak MB':>9}")
    for name, (_, limit) in ASKED.items():
        (_, processor, peak), *others = (medians(taken[name, tree]) for tree in trees)
        line = f"{name:26}{processor:8.3f}{peak:9,.0f}"
        line += f"{'none':>7}" if limit is None else f"{limit:7.2f}"
        for _, before, peak_before in others:
            line += f"{before:8.3f}{processor / before:7.2f}{peak_before:9,.0f}"
        print(line)


def prepare(workspace: Path) -> None:
    """Write rows and a spec, and grant a budget in a ledger of its own."""
    rng = np.random.default_rng(1)
    columns = {
        "city": np.array(["a", "b", "c"])[rng.integers(0, 3, ROWS)],
        "heads": rng.random(ROWS) < 0.4,
        "length": rng.normal(5.0, 2.0, ROWS),
    }
    pq.write_table(pa.table(columns), workspace / "coins.parquet")
    (workspace / "spec.yaml").write_text(SPEC)
    grant = [
        "ledger",
        "grant",
        "coins",
        "--epsilon",
        "1",
        "--reason",
        "benchmark",
        "--create",
        "--unwitnessed",
    ]
    command = [sys.executable, "-m", "suffice", *grant]
    subprocess.run(command, cwd=workspace, check=True, stdout=subprocess.DEVNULL)


def in_workspace(words: list[str], workspace: Path, tree: Path) -> tuple[float, float, float]:
    """Run Python there with a checkout's package, and keep byte code as an installation does."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return run([sys.executable, *words], cwd=workspace, env={**kept, "PYTHONPATH": str(tree)})


def medians(runs: list[tuple[float, float, float]]) -> list[float]:
    """Return the medians of wall, processor and peak."""
    return [statistics.median(column) for column in zip(*runs, strict=True)]


if __name__ == "__main__":
    main()
