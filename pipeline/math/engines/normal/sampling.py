"""Independent exact draws: a box by the bound of its mass, a point in it, accepted by density over bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.normal.integrals import Given
    from suffice.pipeline.math.engines.normal.weights import Boxes, MomentWeights
    from suffice.typing import Floats, Parts

_SLOTS = 2**16


def sample_sums(
    weights: MomentWeights, boxes: Boxes, mass: Floats, draws: int, rng: np.random.Generator
) -> tuple[Floats, Parts]:
    """Draws of (N, m, log E), (n_cells, draws, 3), and the part of the prior of each, (n_cells, draws).

    m and E are the mean and the mean square deviation of the rows.
    ``boxes`` stand cell by cell, ``mass`` is the log of a bound of the mass on each. Where N is 0 or 1, log E
    stands for an E of 0.
    """
    cells = weights.noisy.totals.n_cells
    bound = mass - boxes.log_volume()
    starts = np.searchsorted(boxes.cell, np.arange(cells))
    top = np.maximum.reduceat(mass, starts)
    share = np.exp(mass - top[boxes.cell])
    share /= np.bincount(boxes.cell, share, cells)[boxes.cell]
    # Cell i owns i..i + 1 of this: one search finds the box of any cell.
    ends = np.cumsum(share)
    ends += boxes.cell - (ends[starts] - share[starts])[boxes.cell]
    lasts = np.append(starts[1:], len(mass)) - 1
    result, part = np.empty((cells * draws, 3)), np.empty(cells * draws, dtype=np.int64)
    for start in range(0, len(result), _SLOTS):
        pending = np.arange(start, min(start + _SLOTS, len(result)))
        while pending.size:
            cell = pending // draws
            chosen = np.searchsorted(ends, cell + rng.random(len(cell)), side="right")
            chosen = np.clip(chosen, starts[cell], lasts[cell])
            own = boxes.take(chosen)
            point = _points(own, rng)
            log_weight = weights.log_weight(cell, own.part, *point.T)
            accepted = np.log1p(-rng.random(len(cell))) < log_weight - bound[chosen]
            result[pending[accepted]], part[pending[accepted]] = point[accepted], own.part[accepted]
            pending = pending[~accepted]
    return result.reshape(cells, draws, 3), part.reshape(cells, draws)


def sample_parameters(given: Given, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw mean and variance, in half ranges, given the latent sums."""
    variance = given.scale / rng.standard_gamma(given.concentration)
    mean = given.loc + np.sqrt(variance / given.precision) * rng.standard_normal(variance.shape)
    return mean, variance


def _points(boxes: Boxes, rng: np.random.Generator) -> Floats:
    """Draw one point in every box, uniformly; N is an integer."""
    sides = boxes.high - boxes.low
    sides[:, 0] += 1.0
    point: Floats = boxes.low + sides * rng.random(sides.shape)
    point[:, 0] = np.minimum(np.floor(point[:, 0]), boxes.high[:, 0])
    return point
