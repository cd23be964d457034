"""What was released of a tree, and least squares of it, beside the posterior."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.engines.tree.least_squares import least_squares

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.ask.trees.units import TreeUnit
    from suffice.pipeline.math.engines.tree.pieces import PiecewisePosterior
    from suffice.pipeline.math.engines.tree.posterior import TreePosterior
    from suffice.typing import Counts


def rows_beside_released(
    posterior: TreePosterior | PiecewisePosterior, unit: TreeUnit, mass: float
) -> Iterator[dict[str, list[Any]]]:
    """Give the columns of every level, the root's first, in the column's unit; None where nothing is."""
    from scipy.special import ndtri

    noisy = posterior.tree
    points, sds = least_squares(noisy)
    reach = float(ndtri(0.5 + 0.5 * mass))
    for place in range(noisy.depth + 1):
        n_nodes, values = noisy.n_nodes(place), noisy.values[place]
        below = noisy.values[place + 1] if place < noisy.depth else None
        columns = {
            "released": values,
            "below": None if below is None else _sums(noisy.parents[place], below, n_nodes),
            "least_squares": points[place],
            "sd": sds[place],
            "lower": points[place] - reach * sds[place],
            "upper": points[place] + reach * sds[place],
            "mean": posterior.means(place),
        }
        lower, upper = unit.ends(*posterior.interval(place, mass))
        yield {
            name: [None] * n_nodes if column is None else unit.values(column).tolist()
            for name, column in columns.items()
        } | {"posterior_lower": lower.tolist(), "posterior_upper": upper.tolist()}


def _sums(parents: Counts, values: Counts, n_parents: int) -> Counts:
    sums = np.zeros(n_parents, np.int64)
    np.add.at(sums, parents, values)
    return sums
