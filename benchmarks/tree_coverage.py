"""What intervals of counts on trees hold, how wide they are, and how far points are off, beside others.

    PYTHONPATH=tests:. python benchmarks/tree_coverage.py SETTING TREES [METHOD,...]

A tree is drawn anew each time: leaves with lognormal sizes and correlated states, a share of them empty, or
with the tails of a Pareto law; none is drawn from the population that the posterior takes. All methods have
the same trees. Prints a row for each class of nodes and method: nodes; coverage with its standard error over
trees; mean width; the root mean squared error of points; and *equal*: the mean width over that of least
squares whose intervals are all stretched by the one factor that makes them hold as many of the class, with
its standard error over trees drawn again. Then the least width of any sets for leaves below 20
(``tree_oracle``).
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.tree_oracle import Oracle, least_widths
from benchmarks.tree_rivals import MASS, RIVALS, Answer, Flat
from suffice.pipeline.math.engines.tree.hyperparameters import weighed_points
from suffice.pipeline.math.engines.tree.noisy_tree import NoisyTree
from suffice.pipeline.math.engines.tree.passes import Passer
from suffice.pipeline.math.engines.tree.populations import POPULATIONS, Population
from suffice.pipeline.math.engines.tree.posterior import TAIL, mixed_marginals
from suffice.pipeline.math.engines.tree.summaries import equal_tailed, moments, shortest
from support.tree_worlds import SETTINGS, Setting, World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.math.engines.tree.messages import Ragged
    from suffice.typing import Counts, Floats

SHORTEST = ", shortest"
METHODS = (*POPULATIONS, "plugged-in", "flat", "oracle", *RIVALS)
AGAIN = 40
COVERAGES = (0.93, 0.95)
RATIO = 1.05


def of_posterior(tree: NoisyTree, population: Population, *, plugged_in: bool = False) -> tuple[Ragged, ...]:
    """Return the laws of all counts, hyperparameters integrated over or at their mode."""
    weighed = weighed_points(Passer.of(tree, population, TAIL))
    upwards, weights = weighed.upwards, weighed.weights
    if plugged_in:
        upwards, weights = upwards[:1], np.ones(1)
    return mixed_marginals(upwards, weights)[0]


def laws(method: str, setting: Setting, world: World) -> tuple[Ragged, ...]:
    """Return a posterior's laws."""
    tree = world.tree
    if method == "oracle":
        known = NoisyTree(parents=tree.parents, values=tree.values, scales=tree.scales, sizes=world.factors)
        return of_posterior(known, Oracle(setting))
    if method == "plugged-in":
        return of_posterior(tree, POPULATIONS["contaminated"], plugged_in=True)
    return of_posterior(tree, Flat() if method == "flat" else POPULATIONS[method])


def answers(method: str, setting: Setting, world: World, oracles: list[Ragged]) -> dict[str, list[Answer]]:
    """Return points and intervals of every level."""
    if method in RIVALS:
        return {method: RIVALS[method](world.tree)}
    levels = laws(method, setting, world)
    if method == "oracle":
        oracles.append(levels[-1])
    points = [moments(law)[0] for law in levels]
    return {
        method + name: [
            (point, *(end.astype(float) for end in ends(law, MASS)))
            for point, law in zip(points, levels, strict=True)
        ]
        for name, ends in (("", equal_tailed), (SHORTEST, shortest))
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


class Held:
    """Of a class and a method: by tree, how many are held, summed widths, squared errors and nodes."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, float, float, int]] = []
        self.stretch: list[Floats] = []

    def add(self, answer: Answer, exact: Counts) -> None:
        """Add a tree."""
        point, lower, upper = answer
        inside = float(((lower <= exact) & (exact <= upper)).sum())
        squared = float(((point - exact) ** 2).sum())
        self.rows.append((inside, float((upper - lower).sum()), squared, len(exact)))
        # What the interval would have to be stretched by to hold the count.
        half = np.maximum(0.5 * (upper - lower), 1e-9)
        self.stretch.append(np.abs(exact - 0.5 * (lower + upper)) / half)

    def equal(self, other: Held, trees: Counts) -> float:
        """Return the width over the other's, stretched to hold as many."""
        inside, width, _, number = np.array(self.rows)[trees].sum(axis=0)
        if not number:
            return float("nan")
        stretch = np.concatenate([other.stretch[tree] for tree in trees.tolist()])
        factor = np.quantile(stretch, min(inside / number, 1.0))
        return float(width / (np.array(other.rows)[trees].sum(axis=0)[1] * factor))


def row(held: Held, other: Held | None, rng: np.random.Generator) -> str:
    """Return a line of the table."""
    inside, width, squared, number = np.array(held.rows).T
    if not number.sum():
        return ""
    total, off = number.sum(), np.sqrt(squared.sum() / number.sum())
    if np.isnan(width.sum()):
        return f"{int(total):6d} {'no intervals':>22} {off:8.2f}"
    coverage = inside.sum() / total
    error = np.sqrt(((inside - coverage * number) ** 2).sum()) / total
    line = f"{int(total):6d} {coverage:.3f} ({error:.3f}) {width.sum() / total:8.1f} {off:8.2f} "
    if other is None:
        return line
    n_trees = len(held.rows)
    ratio = held.equal(other, np.arange(n_trees))
    again = [held.equal(other, rng.integers(0, n_trees, n_trees)) for _ in range(AGAIN)]
    return line + f"{ratio:.3f} ({np.nanstd(again):.3f})"


def main() -> None:
    """Run a setting."""
    setting, n_trees = SETTINGS[sys.argv[1]], int(sys.argv[2])
    methods = sys.argv[3].split(",") if len(sys.argv) > 3 else list(METHODS)
    rng = np.random.default_rng()
    held: dict[tuple[str, str], Held] = {}
    oracles: list[Ragged] = []
    seconds = dict.fromkeys(methods, 0.0)
    for _ in range(n_trees):
        world = setting.world(rng)
        for method in methods:
            begin = time.process_time()
            named = answers(method, setting, world, oracles)
            seconds[method] += time.process_time() - begin
            for kind, levels in named.items():
                for name, level, nodes in classes(world.counts):
                    answer = tuple(each[nodes] for each in levels[level])
                    held.setdefault((name, kind), Held()).add(answer, world.counts[level][nodes])
    print(f"{sys.argv[1]}: {n_trees} trees; coverage, width, root mean squared error, equal")
    for name in dict.fromkeys(name for name, _ in held):
        for kind in dict.fromkeys(kind for _, kind in held):
            if line := row(held[name, kind], held.get((name, "least squares")), rng):
                print(f"{name:12} {kind:25} {line}")
    if oracles and "least squares" in methods:
        for coverage in COVERAGES:
            # Least squares stretched to the same coverage of larger leaves.
            other = held["leaf >= 20", "least squares"]
            factor = float(np.quantile(np.concatenate(other.stretch), coverage))
            _, width, _, number = np.array(other.rows).sum(axis=0)
            small, _, _, wide = least_widths(oracles, coverage, RATIO, factor * width / number)
            leaf = np.array(held["leaf < 20", "least squares"].rows).sum(axis=0)
            print(
                f"least of any sets that hold {coverage} of either class: below 20 {small:.2f}, "
                f"{small / (leaf[1] / leaf[3]):.3f} of least squares as it is; from 20 on {wide:.1f}"
            )
    print({method: round(total / n_trees, 3) for method, total in seconds.items()}, "CPU s a tree")


if __name__ == "__main__":
    main()
