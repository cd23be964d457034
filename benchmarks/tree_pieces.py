"""What a large tree costs in one process and in pieces over workers: CPU, wall, peak memory by process.

    OMP_NUM_THREADS=1 PYTHONPATH=tests:. python benchmarks/tree_pieces.py FAN_OUT[,...] SCALE [here|local]

Leaves have lognormal sizes of median 20, a fifth are empty; every level has noise of the same scale. The tree
is one, or in pieces: `here` runs them one after the other, `local` in a process for each processor. The
posterior with means, deviations and intervals of all nodes is timed; then a roll-up of half of the leaves by
20 joint draws.
"""

from __future__ import annotations

import resource
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.cluster.connection import LOCAL, open_cluster
from suffice.pipeline.cluster.stream import stream
from suffice.pipeline.math.engines.tree.piece_tasks import in_turn
from suffice.pipeline.math.engines.tree.pieces import piecewise_posterior
from suffice.pipeline.math.engines.tree.populations import DEFAULT, POPULATIONS
from suffice.pipeline.math.engines.tree.posterior import tree_posterior
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
    print(
        f"summaries: {time.process_time() - begin:.1f} CPU s here, {time.monotonic() - wall:.1f} s",
        used(),
        flush=True,
    )
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
    if sys.argv[3] == "here":
        timed(tree, partial(piecewise_posterior, run=in_turn))
        return
    with open_cluster(LOCAL) as opened:
        print("workers before:", sorted(opened.client.run(used).values()), flush=True)
        timed(tree, partial(piecewise_posterior, run=partial(stream, opened)))
        print("workers:", sorted(opened.client.run(used).values()))


if __name__ == "__main__":
    main()
