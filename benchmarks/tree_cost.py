"""What the joint posterior of a tree costs: CPU seconds and peak memory of one thread.

    OMP_NUM_THREADS=1 PYTHONPATH=tests python benchmarks/tree_cost.py FAN_OUT[,FAN_OUT...] SCALE [POPULATION]

Leaves have lognormal sizes of median 20, a fifth are empty; every level has noise of the same scale. Prints
the seconds of the posterior with all marginals, means, deviations and intervals, those of 20 joint draws, and
the peak of resident memory.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from suffice.pipeline.math.engines.tree.populations import DEFAULT, POPULATIONS
from suffice.pipeline.math.engines.tree.posterior import tree_posterior
from support.tree_worlds import Setting

DRAWS = 20


def main() -> None:
    """Time one tree."""
    fan_out = tuple(int(fan) for fan in sys.argv[1].split(","))
    scale = float(sys.argv[2])
    levels = len(fan_out) + 1
    setting = Setting(fan_out=fan_out, epsilon=levels / scale, shares=(1.0,) * levels)
    rng = np.random.default_rng()
    tree, _ = setting.draw(rng)
    begin = time.process_time()
    posterior = tree_posterior(tree, POPULATIONS[sys.argv[3] if len(sys.argv) > 3 else DEFAULT])
    inferred = time.process_time()
    for level in range(levels):
        posterior.means(level)
        posterior.sds(level)
        posterior.interval(level, 0.95)
    shown = time.process_time()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    posterior.draws(DRAWS, rng)
    drawn = time.process_time()
    nodes = sum(tree.n_nodes(level) for level in range(levels))
    print(
        f"{tree.n_leaves} leaves, {nodes} nodes, scale {scale:g}: {inferred - begin:.1f} s, "
        f"summaries {shown - inferred:.1f} s, {DRAWS} draws {drawn - shown:.1f} s, {memory:.2f} GB; "
        f"{len(posterior.hyperparameters.weights)} points, error {posterior.hyperparameters.error:.1g}, "
        f"rounding {posterior.rounding:.1g}, cut {posterior.cut:.1g}"
    )


if __name__ == "__main__":
    main()
