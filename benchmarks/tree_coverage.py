"""What intervals of counts on trees hold, and how wide they are: posteriors beside least squares.

    PYTHONPATH=tests python benchmarks/tree_coverage.py SETTING TREES [METHOD,...]

A tree is drawn anew each time: leaves with lognormal sizes and correlated states, a share of them empty, or
with the tails of a Pareto law; none is drawn from the population that the posterior takes. Prints a row for
each class of nodes and method: nodes, coverage with its standard error over trees, mean width.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from suffice.pipeline.math.engines.tree.hyperparameters import weighed_points
from suffice.pipeline.math.engines.tree.least_squares import least_squares
from suffice.pipeline.math.engines.tree.passes import Passer
from suffice.pipeline.math.engines.tree.populations import POPULATIONS, Population
from suffice.pipeline.math.engines.tree.posterior import TAIL, mixed_marginals
from suffice.pipeline.math.engines.tree.summaries import equal_tailed, shortest
from support.tree_worlds import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from suffice.pipeline.math.engines.tree.noisy_tree import NoisyTree
    from suffice.typing import Counts, Floats

NORMAL = float(ndtri(0.975))
MASS = 0.95
Intervals = list[tuple["Floats", "Floats"]]


class Flat(Population):
    """No weight is different: shown failing."""

    name, n_hyperparameters = "flat", 0

    def log_weight(self, counts: Floats, point: Floats, sizes: Floats | float = 1.0) -> Floats:  # noqa: ARG002
        """Return zeros."""
        return np.zeros_like(counts)


def of_posterior(
    tree: NoisyTree, population: Population, *, plugged_in: bool = False
) -> tuple[Intervals, Intervals]:
    """Return central intervals and shortest ones, with hyperparameters integrated over or at their mode."""
    passer = Passer.of(tree, population, TAIL)
    weighed = weighed_points(passer)
    upwards, weights = weighed.upwards, weighed.weights
    if plugged_in:
        upwards, weights = upwards[:1], np.ones(1)
    marginals, _, _ = mixed_marginals(upwards, weights)
    return (
        [tuple(end.astype(float) for end in ends(laws, MASS)) for laws in marginals]
        for ends in (equal_tailed, shortest)
    )


def of_least_squares(tree: NoisyTree) -> Intervals:
    """Return normal intervals about least squares."""
    return [
        (points - NORMAL * sds, points + NORMAL * sds)
        for points, sds in zip(*least_squares(tree), strict=True)
    ]


def of_clipped(tree: NoisyTree) -> Intervals:
    """Set least squares of leaves to 0 where they are below, and add these up; widths stay."""
    points, sds = least_squares(tree)
    clipped = [np.maximum(points[-1], 0.0)]
    for above in reversed(tree.parents):
        clipped.insert(0, np.bincount(above, clipped[0]))
    return [
        (np.maximum(point - NORMAL * sd, 0.0), np.maximum(point + NORMAL * sd, 0.0))
        for point, sd in zip(clipped, sds, strict=True)
    ]


def of_noise(tree: NoisyTree) -> Intervals:
    """Return intervals of each value's noise alone."""
    intervals = []
    for values, scale in zip(tree.values, tree.scales, strict=True):
        q = np.exp(-1.0 / scale)
        reach = np.ceil(scale * (np.log(1.0 / (1.0 - MASS)) + np.log(2.0 / (1.0 + q))) - 1.0 - 1e-9)
        intervals.append((values - reach, values + reach))
    return intervals


METHODS: dict[str, Callable[[NoisyTree], Intervals]] = {
    **{name: lambda tree, law=law: of_posterior(tree, law) for name, law in POPULATIONS.items()},
    "plugged-in": lambda tree: of_posterior(tree, POPULATIONS["contaminated"], plugged_in=True),
    "flat": lambda tree: of_posterior(tree, Flat()),
    "least squares": of_least_squares,
    "clipped and summed": of_clipped,
    "noise": of_noise,
}


def classes(counts: list[Counts]) -> Iterator[tuple[str, int, Counts]]:
    """Give the nodes of every class: its name, their level, and their numbers."""
    leaves = counts[-1]
    bounds = (("leaf 0", 0, 1), ("leaf 1-19", 1, 20), ("leaf 20-99", 20, 100), ("leaf 100+", 100, 2**62))
    for name, low, high in (*bounds, ("leaf < 20", 0, 20), ("leaf >= 20", 20, 2**62)):
        yield name, len(counts) - 1, np.flatnonzero((leaves >= low) & (leaves < high))
    for level in range(len(counts) - 1):
        name = "root" if level == 0 else "state" if level == 1 else f"level {level}"
        yield name, level, np.arange(len(counts[level]))


def main() -> None:
    """Run a setting."""
    setting, n_trees = SETTINGS[sys.argv[1]], int(sys.argv[2])
    methods = sys.argv[3].split(",") if len(sys.argv) > 3 else list(METHODS)
    rng = np.random.default_rng()
    held: dict[tuple[str, str], list[tuple[float, float, int]]] = {}
    seconds = dict.fromkeys(methods, 0.0)
    for _ in range(n_trees):
        tree, counts = setting.draw(rng)
        for method in methods:
            begin = time.process_time()
            intervals = METHODS[method](tree)
            named = {method: intervals}
            if not isinstance(intervals, list):
                named = dict(zip((method, f"{method}, shortest"), intervals, strict=True))
            seconds[method] += time.process_time() - begin
            for kind, several in named.items():
                for name, level, nodes in classes(counts):
                    lower, upper = (end[nodes] for end in several[level])
                    exact = counts[level][nodes]
                    inside = float(((lower <= exact) & (exact <= upper)).sum())
                    row = (inside, float((upper - lower).sum()), len(nodes))
                    held.setdefault((name, kind), []).append(row)
    print(f"{sys.argv[1]}: {n_trees} trees")
    for name in dict.fromkeys(name for name, _ in held):
        for method in dict.fromkeys(method for _, method in held):
            inside, width, number = np.array(held[name, method]).T
            if not number.sum():
                continue
            coverage = inside.sum() / number.sum()
            error = np.sqrt(((inside - coverage * number) ** 2).sum()) / number.sum()
            print(
                f"{name:12} {method:25} {int(number.sum()):6d} {coverage:.3f} ({error:.3f}) "
                f"{width.sum() / number.sum():8.1f}"
            )
    print({method: round(total / n_trees, 3) for method, total in seconds.items()}, "CPU s a tree")


if __name__ == "__main__":
    main()
