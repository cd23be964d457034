"""What a large tree costs in one process and in pieces over workers: CPU, wall, peak memory by process.

    OMP_NUM_THREADS=1 PYTHONPATH=tests:. python benchmarks/tree_pieces.py FAN_OUT[,FAN_OUT...] SCALE [WORKERS]

Leaves have lognormal sizes of median 20, a fifth are empty; every level has noise of the same scale. Without
workers all is in one process. With workers, each of them is a process of one thread, and 0 runs pieces one
after the other in this one. The posterior with means, deviations and intervals of all nodes is timed; then
a roll-up of half of the leaves by 20 joint draws.
"""

from __future__ import annotations

import resource
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.cluster.connection import open_cluster
from suffice.pipeline.cluster.stream import stream
from suffice.pipeline.math.engines.tree.pieces import in_turn, piecewise_posterior
from suffice.pipeline.math.engines.tree.populations import DEFAULT, POPULATIONS
from suffice.pipeline.math.engines.tree.posterior import tree_posterior
from support.dask_clusters import NO_SPILLING
from support.tree_worlds import Setting

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.tree.noisy_tree import NoisyTree

DRAWS = 20


def used() -> tuple[float, float]:
    """Return this process's CPU seconds, and the peak of its resident memory in GB; as a worker does."""
    of_process = resource.getrusage(resource.RUSAGE_SELF)
    return of_process.ru_utime + of_process.ru_stime, of_process.ru_maxrss / 1e6


def timed(tree: NoisyTree, infer: Any) -> None:
    """Time what is asked of a tree."""
    begin, wall = time.process_time(), time.monotonic()
    posterior = infer(tree, POPULATIONS[DEFAULT])
    for level in range(tree.depth + 1):
        posterior.means(level)
        posterior.sds(level)
        posterior.interval(level, 0.95)
    print(f"summaries: {time.process_time() - begin:.1f} CPU s here, {time.monotonic() - wall:.1f} s", used())
    begin, wall = time.process_time(), time.monotonic()
    weights = (np.arange(tree.n_leaves) % 2).astype(np.int64)
    drawn = posterior.weighted_draws(DRAWS, weights, np.random.default_rng())
    print(
        f"roll-up {drawn.mean():.0f} ({drawn.std():.1f}) of {DRAWS} draws: "
        f"{time.process_time() - begin:.1f} CPU s here, {time.monotonic() - wall:.1f} s",
        used(),
        flush=True,
    )


def main() -> None:
    """Time one tree."""
    fan_out = tuple(int(fan) for fan in sys.argv[1].split(","))
    scale, levels = float(sys.argv[2]), len(fan_out) + 1
    setting = Setting(fan_out=fan_out, epsilon=levels / scale, shares=(1.0,) * levels)
    tree, _ = setting.draw(np.random.default_rng(1))
    print(f"{sum(tree.n_nodes(level) for level in range(levels))} nodes, before: {used()}", flush=True)
    if len(sys.argv) < 4:
        timed(tree, tree_posterior)
        return
    n_workers = int(sys.argv[3])
    if n_workers == 0:
        timed(tree, partial(piecewise_posterior, run=in_turn))
        return
    import dask.config
    import distributed

    with (
        dask.config.set(NO_SPILLING),
        distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as processes,
        distributed.Client(processes) as client,
        open_cluster(client) as opened,
    ):
        print("workers before:", sorted(client.run(used).values()), flush=True)
        timed(tree, partial(piecewise_posterior, run=partial(stream, opened)))
        print("workers:", sorted(client.run(used).values()))


if __name__ == "__main__":
    main()
