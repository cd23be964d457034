"""What Dask's scheduling costs on the processes of this machine: tasks a thread, its share, and watching.

python benchmarks/scheduling.py [--files 10000] [--rows 10000000]

A share is one minus what the tasks take by Dask's own clock, over wall time and threads. It holds the making
of the graph, the scheduler, the links, the last addition, and threads that wait at the end. `one a file` has
a task for every file, which is what releases avoid. Runs alternate; the least of three is shown. Sums are
small: those of many cells cost their way over the links as well.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from generate import divided_data
from measuring import versions
from workloads import counted, make_spec

from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.reduce import tree
from suffice.pipeline.rows.reduce.tree import exact_sums, open_cluster_for_sums
from suffice.pipeline.rows.sources import contract

if TYPE_CHECKING:
    from collections.abc import Sequence

    import distributed

    from suffice.pipeline.cluster.connection import DistributedCluster
    from suffice.pipeline.rows.chunk.partition import ChunkJob
    from suffice.pipeline.rows.sources.contract import Split

GOAL_SHARE, GOAL_TASKS = 0.05, 4
REPETITIONS = 3


def main() -> None:
    """Print a line for each way to divide the same files."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=10**7)
    arguments = parser.parse_args()
    print(versions())
    directory = divided_data(arguments.rows, arguments.files)
    amount = {"family": "normal", "column": "amount", "lower": "-60", "upper": "180"}
    spec = make_spec(directory, {}, {"amount": amount, "category_5": counted("category_5")})
    job = chunk_job(spec)
    joined = sources.splits(sources.pin(spec))
    with patch.object(contract, "SPLIT_VALUES", 1), patch.object(contract, "MOST_SPLITS", 1 << 62):
        single = sources.splits(sources.pin(spec))
    with open_cluster_for_sums("local") as cluster:
        ways = {
            "as releases do": (joined, tree.TASK_VALUES, tree.MOST_TASKS),
            "one a file": (single, 1, 1 << 62),
        }
        exact_sums(job, joined, cluster)  # compiles
        measured: dict[tuple[str, bool], list[dict[str, float]]] = {}
        for _ in range(REPETITIONS):
            for name, (splits, values, most) in ways.items():
                for is_watched in (False, True):
                    with patch.multiple(tree, TASK_VALUES=values, MOST_TASKS=most, PARTIAL_BYTES=1 << 62):
                        outcome = measure(job, splits, cluster, is_watched=is_watched)
                    measured.setdefault((name, is_watched), []).append(outcome)
        threads = cluster.n_threads
    print(f"{arguments.files:,} files, {arguments.rows:,} rows, {threads} threads, {len(joined)} splits")
    print(
        f"{'':18}{'watched':>9}{'tasks':>8}{'a thread':>10}{'wall s':>9}{'in tasks':>10}{'share':>8}"
        f"{'ms a task':>11}"
    )
    for (name, is_watched), runs in measured.items():
        best = min(runs, key=lambda run: run["wall"])
        share = 1.0 - best["busy"] / (best["wall"] * threads)
        each = 1000.0 * (best["wall"] * threads - best["busy"]) / best["tasks"]
        print(
            f"{name:18}{'yes' if is_watched else 'no':>9}{best['tasks']:8.0f}{best['tasks'] / threads:10.1f}"
            f"{best['wall']:9.2f}{best['busy']:10.2f}{100 * share:7.1f}%{each:11.2f}"
        )
    print(f"goals: at least {GOAL_TASKS} tasks a thread, a share below {100 * GOAL_SHARE:.0f}%")


def measure(
    job: ChunkJob, splits: Sequence[Split], cluster: DistributedCluster | Any, *, is_watched: bool
) -> dict[str, float]:
    """Return seconds of wall time and within tasks, and the number of reading tasks."""
    before = cluster.client.run_on_scheduler(in_tasks)
    started = time.perf_counter()
    exact_sums(job, splits, cluster, progress=(lambda _done, _total: None) if is_watched else None)
    wall = time.perf_counter() - started
    after = cluster.client.run_on_scheduler(in_tasks)
    return {"wall": wall, "busy": after["busy"] - before["busy"], "tasks": after["reads"] - before["reads"]}


def in_tasks(dask_scheduler: distributed.Scheduler) -> dict[str, float]:
    """Return what all tasks of our runs took so far, and how many of them read."""
    ours = {key: each for key, each in dask_scheduler.task_prefixes.items() if "suffice" in key}
    return {
        "busy": sum(each.all_durations.get("compute", 0.0) for each in ours.values()),
        "reads": sum(each.state_counts["memory"] for key, each in ours.items() if key.startswith("read")),
    }


if __name__ == "__main__":
    main()
