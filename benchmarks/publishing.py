"""Publish posteriors of very many cells: time and peak memory, every point in a process of its own.

    PYTHONPATH=tests python benchmarks/publishing.py [FAMILY ...] [--cluster local] [--least N] [--most N]

Releases are made before, of simulated sums and noise: epsilon 1, 20 to 199 records a cell, N private. A point
opens its release and publishes summaries: mean, standard deviation and a 95 % interval of each parameter.
The peak is the resident memory of the process and all its children together, read ten times a second.
Bernoulli cells have their default prior; normal cells a conjugate one (14 such make the default prior, which
takes about twice as long).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Self

import numpy as np
import psutil
from measuring import versions

from suffice import open_release
from suffice.publishing.publish import publish
from support.many_cells import STATISTIC, publish_many_cells

DAYS = 100
POINTS = {
    "bernoulli": (10**5, 3 * 10**5, 10**6, 3 * 10**6, 10**7),
    "normal": (10**4, 3 * 10**4, 10**5),
}
PRIORS = {"bernoulli": None, "normal": "NormalInverseGamma(20, 0.1, 2, 900)"}
MEGABYTE = 2**20


def main() -> None:
    """Run what was asked for, a process a point, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("families", nargs="*", default=[*POINTS])
    parser.add_argument("--cluster", default="threads")
    parser.add_argument("--most", type=int, default=10**6)
    parser.add_argument("--least", type=int, default=0)
    parser.add_argument("--point")
    arguments = parser.parse_args()
    if arguments.point:
        print(json.dumps(measured(*json.loads(arguments.point))))
        return
    load = os.getloadavg()
    print(f"{os.cpu_count()} processors, load {load[0]:.1f}, cluster {arguments.cluster}\n{versions()}")
    print("\n| family | cells | parts | seconds | CPU s | ms a cell | peak MB | files MB |")
    print("|---|---|---|---|---|---|---|---|")
    for family in arguments.families:
        for cells in POINTS[family]:
            if not arguments.least <= cells <= arguments.most:
                continue
            with tempfile.TemporaryDirectory() as folder:
                shops = cells // DAYS
                publish_many_cells(Path(folder), family, shops, DAYS, np.random.default_rng(cells))
                point = json.dumps([folder, family, arguments.cluster])
                command = [sys.executable, __file__, "--point", point]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            found = json.loads(done.stdout)
            print(
                f"| {family} | {cells:,} | {found['parts']} | {found['wall']:.0f} | {found['processor']:.0f} "
                "| "
                f"{1000 * found['processor'] / cells:.3f} | {found['peak']:,.0f} | {found['files']:,.0f} |",
                flush=True,
            )
    print(f"\nload at the end {os.getloadavg()[0]:.1f}")


def measured(folder: str, family: str, cluster: str) -> dict[str, float]:
    """Publish one release, and return seconds, and megabytes at most."""
    with PeakMemory() as memory:
        start = time.perf_counter()
        release = open_release("flights", store=folder)
        found = publish(release, STATISTIC, prior=PRIORS[family], draws=0, cluster=cluster)
        wall = time.perf_counter() - start
    spent = os.times()
    return {
        "wall": wall,
        "processor": spent.user + spent.system + spent.children_user + spent.children_system,
        "peak": memory.peak / MEGABYTE,
        "parts": len(found.files),
        "files": sum(file.size for file in found.files) / MEGABYTE,
    }


class PeakMemory:
    """The most resident memory that this process and its children had together."""

    def __init__(self) -> None:
        self.peak = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        this = psutil.Process()
        while not self._over.wait(0.1):
            total = 0
            for process in [this, *this.children(recursive=True)]:
                try:
                    total += process.memory_info().rss
                except psutil.NoSuchProcess:
                    continue
            self.peak = max(self.peak, total)


if __name__ == "__main__":
    main()
