"""The optimisation of the package inf-tda on the trees of ``tree_coverage``, beside the posterior's points.

    pip install --no-deps --target FOLDER inf-tda==0.1
    PYTHONPATH=FOLDER:tests:. python benchmarks/tree_inf_tda.py TREES SETTING...

The package takes exact counts and adds noise of its own, and cannot be given our noisy values. So its
`int_opt` gets them, level by level as its mechanism calls it: of each family the noisy values, and what was
made of the parent; the root is its noisy value, or 0. Prints by class of nodes the root mean squared error
of its points; then, with standard errors over trees drawn again, that error over the one of InfTDA as
written anew here, and the error of posterior means over the package's.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
from InfTDA.optimization import int_opt

from benchmarks.tree_coverage import AGAIN, classes
from benchmarks.tree_rivals import of_inftda
from suffice.pipeline.math.engines.tree.populations import DEFAULT, POPULATIONS
from suffice.pipeline.math.engines.tree.posterior import tree_posterior
from support.tree_worlds import SETTINGS

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.tree.noisy_tree import NoisyTree
    from suffice.typing import Floats


def of_package(tree: NoisyTree) -> list[Floats]:
    """Go down the tree."""
    points = [np.maximum(tree.values[0], 0)]
    for level, parents in enumerate(tree.parents):
        below = np.empty(len(parents), np.int64)
        for parent in range(tree.n_nodes(level)):
            children = parents == parent
            below[children] = int_opt(tree.values[level + 1][children], int(points[-1][parent]))
        points.append(below)
    return points


def ratio(squares: Floats, trees: Floats) -> float:
    """Return the root of the ratio of summed squares."""
    above, below = squares[trees].sum(axis=0)
    return float(np.sqrt(above / below))


def main() -> None:
    """Compare on each setting."""
    n_trees, rng = int(sys.argv[1]), np.random.default_rng()
    for name in sys.argv[2:]:
        squares: dict[str, list[tuple[float, float, float, int]]] = {}
        for _ in range(n_trees):
            world = SETTINGS[name].world(rng)
            posterior = tree_posterior(world.tree, POPULATIONS[DEFAULT])
            package, anew = of_package(world.tree), of_inftda(world.tree)
            means = [posterior.means(level) for level in range(world.tree.depth + 1)]
            for kind, level, nodes in classes(world.counts):
                exact = world.counts[level][nodes]
                points = (package[level], anew[level][0], means[level])
                of_each = (float(((each[nodes] - exact) ** 2).sum()) for each in points)
                squares.setdefault(kind, []).append((*of_each, len(nodes)))
        for kind, rows in squares.items():
            table = np.array(rows)
            if not table[:, 3].sum():
                continue
            shown = []
            for columns in ([0, 1], [2, 0]):
                again = [ratio(table[:, columns], rng.integers(0, n_trees, n_trees)) for _ in range(AGAIN)]
                shown.append(f"{ratio(table[:, columns], np.arange(n_trees)):.3f} ({np.nanstd(again):.3f})")
            error = np.sqrt(table[:, 0].sum() / table[:, 3].sum())
            print(f"{name:12} {kind:12} {error:8.2f} {'  '.join(shown)}", flush=True)


if __name__ == "__main__":
    main()
