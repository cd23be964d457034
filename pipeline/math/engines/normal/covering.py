r"""Boxes of N, m and log E that hold all but e^-45 of a cell's density, cut until their bounds are close.

Model, symbols and bounds are those of ``moment_weights``. The question is a list of boxes with the log of a
bound of the mass on each.

Method and error: the first boxes hold all N, m and E but what the noise, or the noise and the prior, leave
less than e^-45 of the peak. Boxes are cut in two, those with most to gain first, until the bounds are close
to the density, to ``SHARE`` of the mass: no window is guessed, so none can miss the mode.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from suffice.pipeline.math.engines.normal.moment_weights import LOG_ZERO, Boxes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.math.engines.normal.moment_weights import MomentWeights
    from suffice.typing import Cells, Floats, Parts

    Sides: TypeAlias = NDArray[np.int64]


NATS = 45.0
SHARE = 1.0 / 250.0
"""A box is cut while the share of its cell's mass that cutting may take off its bound is above this."""
_NEGLIGIBLE = 35.0
"""Nats below the mass of a box that is nearly constant, at which another is left out."""
_RESOLVED = 1.0
"""Nats between a box's bound and the least density seen in it, up to which it is nearly constant."""
_ACCEPTED = 0.2
"""Least part of the bounds' mass that the density is to have, about."""
_FAR = 5.0
"""Nats above the highest density seen at which a bound is far too high."""


def cover(weights: MomentWeights, share: float = SHARE) -> tuple[Boxes, Floats]:
    """Boxes of all cells, cell by cell, and the log of a bound of the mass on each."""
    cells = weights.noisy.totals.n_cells
    boxes = first_boxes(weights)
    measures, middles, side = _measured(weights, boxes)
    resolved, peak = np.full((2, cells), -np.inf)
    while True:
        cell, (mass, bound, middle, least) = boxes.cell, measures
        slack = bound - least
        np.maximum.at(resolved, cell, np.where(slack <= _RESOLVED, mass - slack, -np.inf))
        np.maximum.at(peak, cell, middle)
        top, highest, worst = np.full((3, cells), -np.inf)
        np.maximum.at(top, cell, mass)
        np.maximum.at(highest, cell, bound)
        part = np.exp(mass - top[cell])
        part /= np.bincount(cell, part, cells)[cell]
        keep = mass > resolved[cell] - _NEGLIGIBLE
        # What cutting may take off: the mass times 1 - e^-(bound - least density).
        excess = np.where(keep, part * -np.expm1(-slack), 0.0)
        # Many small boxes may still have bounds far above the density: then the worst of them are cut.
        np.maximum.at(worst, cell, excess)
        accepted = np.bincount(cell, part * np.exp(middle - bound), cells)
        level = np.where(accepted < _ACCEPTED, np.minimum(share, worst / 4.0), share)
        cut = excess > level[cell]
        # Bounds far above the highest density found cannot stay: those above the middle are cut together.
        hopeless = np.maximum((highest + peak) / 2.0, peak + _FAR)
        cut |= keep & (bound > hopeless[cell]) & (slack > _RESOLVED)
        if not np.any(cut):
            break
        keep &= ~cut
        parents, kept = np.flatnonzero(cut), np.flatnonzero(keep)
        halves = _halves(boxes.take(parents), np.take(middles, parents, axis=0), side[parents])
        more = _measured(weights, halves)
        boxes = _joined([boxes.take(kept), halves])
        measures = np.concatenate([np.take(measures, kept, axis=1), more[0]], axis=1)
        middles = np.concatenate([np.take(middles, kept, axis=0), more[1]])
        side = np.concatenate([side[kept], more[2]])
    order = np.argsort(boxes.cell, kind="stable")
    return boxes.take(order), measures[0, order]


def first_boxes(weights: MomentWeights) -> Boxes:
    """N = 0, N = 1 and N >= 2 of every cell, as far as the prior of N and the noise allow them."""
    noisy, rows = weights.noisy, weights.rows
    cell, part = _cells_and_parts(weights)
    ones = np.ones(len(cell))
    least, most = (float(end) for end in noisy.n_prior.support)
    reach = _reach(weights)
    # Nothing but the rows of q and of N: where |observed - row| is above the reach, no mass is left.
    row_of_q = int(np.argmax((rows[:, 1] == 0.0) & (rows[:, 2] > 0.0)))
    # C q <= y + reach, and q = N (m^2 + E): bounds of |m| and of E.
    square = (np.maximum(weights.observed[cell, row_of_q], 0.0) + reach) / rows[row_of_q, 2]
    low_n, high_n = ones * max(least, 2.0), ones * most
    row_of_n = (rows[:, 1] == 0.0) & (rows[:, 2] == 0.0)
    if np.any(row_of_n):
        row = int(np.argmax(row_of_n))
        middle, width = weights.observed[cell, row] / rows[row, 0], reach / rows[row, 0]
        low_n = np.clip(np.floor(middle - width), low_n, max(most, 2.0))
        high_n = np.clip(np.ceil(middle + width), low_n, max(most, 2.0))
    zero = ones * LOG_ZERO
    sides: list[tuple[tuple[Floats, Floats, Floats], tuple[Floats, Floats, Floats]]] = []
    if least <= 0.0:
        sides.append(((0.0 * ones, 0.0 * ones, zero), (0.0 * ones, 0.0 * ones, zero)))
    if least <= 1.0 <= most:
        width = np.sqrt(square)
        sides.append(((ones, -width, zero), (ones, width, zero)))
    if most >= 2.0:
        width, top = np.sqrt(square / low_n), np.log(square / low_n)
        # Below, the noise has no say any more, and the density in log E falls at least as sqrt(E).
        silent = -np.log(high_n * np.max(np.abs(rows[:, 2])))
        bottom = np.minimum(np.minimum(silent, np.log(noisy.prior.at(part).scale / high_n)), top) - 2.0 * NATS
        sides.append(((low_n, -width, np.maximum(bottom, LOG_ZERO)), (high_n, width, top)))
    return _joined(
        [
            Boxes(cell=cell, part=part, low=np.stack(low, axis=1), high=np.stack(high, axis=1))
            for low, high in sides
        ]
    )


def _cells_and_parts(weights: MomentWeights) -> tuple[Cells, Parts]:
    """Every cell beside every part of the prior, cell by cell."""
    cells, parts = weights.noisy.totals.n_cells, weights.noisy.prior.n_parts
    return np.repeat(np.arange(cells), parts), np.tile(np.arange(parts), cells)


def _reach(weights: MomentWeights) -> Floats:
    """How many nats of noise a part of the prior can make up for, and 2 ``NATS`` on top: (n_cells n_parts,).

    The best density is only estimated, from below, which the second half allows for.
    """
    noisy = weights.noisy
    cell, part = _cells_and_parts(weights)
    prior = noisy.prior.at(part)
    least, most = (float(end) for end in noisy.n_prior.support)
    estimate = np.take(weights.estimates, cell, axis=0)
    none = np.zeros(len(cell))
    best = np.full(len(cell), -np.inf)
    for number in (estimate[:, 0], none, none + 1.0, none + 2.0):
        n = np.clip(np.rint(number), least, most)
        safe = np.maximum(n, 1.0)
        average = np.clip(estimate[:, 1] / safe, -1.0, 1.0)
        around_prior = none + np.log(prior.scale / (prior.concentration + 1.0))
        for mean in (average, none + prior.loc):
            spread = np.maximum(estimate[:, 2] / safe - mean**2, 1e-6)
            for log_e in (np.log(spread), around_prior, np.log(0.1 / (safe * np.max(noisy.totals.rate)))):
                point = np.where(n <= 1.0, LOG_ZERO, log_e)
                at = np.where(n == 0.0, 0.0, mean)
                best = np.maximum(best, weights.log_weight(cell, part, n, at, point))
    parts = noisy.prior.n_parts
    # The best of all parts is what each has to compete with.
    best = np.repeat(np.max(best.reshape(-1, parts), axis=1), parts)
    least_n, most_n = max(least, 2.0), max(most, 2.0)
    ends = np.array([[0.0, 0.0, LOG_ZERO], [1.0, 1.0, LOG_ZERO], [least_n, most_n, -LOG_ZERO]])
    each = np.repeat(np.arange(parts), len(ends))
    first, last, highest = np.tile(ends, (parts, 1)).T
    loc = np.zeros(len(each)) + noisy.prior.at(each).loc
    everything = Boxes(
        cell=np.zeros(len(each), dtype=np.int64),
        part=each,
        low=np.stack([first, loc, np.full(len(each), LOG_ZERO)], axis=1),
        high=np.stack([last, loc, highest], axis=1),
    )
    bound = np.max(weights.log_prior_bound(everything).reshape(parts, -1), axis=1)
    return np.asarray(np.maximum(bound[part] - best, 0.0) + 2.0 * NATS, dtype=np.float64)


def _measured(weights: MomentWeights, boxes: Boxes) -> tuple[Floats, Floats, Sides]:
    """Measure boxes.

    Logs (4, n_boxes) of a bound of the mass, a bound of the density, the density in the middle and the least
    one seen; where to cut each side; and the side to cut: the one along which density or bound change most.
    """
    bound = weights.log_bound(boxes)
    middle = _middles(weights, boxes)
    n, mean, log_e = middle.T
    cell, part = boxes.cell, boxes.part
    of_n = weights.log_of_n(part, n)
    at_middle = weights.log_weight(cell, part, n, mean, log_e, of_n)
    least = at_middle
    changes = np.empty_like(middle)
    for side in range(3):
        lowest = highest = at_middle
        for end in (boxes.low, boxes.high):
            point = list(middle.T)
            point[side] = end[:, side]
            density = weights.log_weight(cell, part, point[0], point[1], point[2], of_n if side else None)
            lowest, highest = np.minimum(lowest, density), np.maximum(highest, density)
        if side == 0:
            # Along N bounds may be loose where the density hardly changes.
            wide = np.flatnonzero(boxes.high[:, 0] > boxes.low[:, 0])
            few, thin = boxes.take(wide), middle[wide]
            low, high = thin.copy(), thin.copy()
            low[:, 0], high[:, 0] = few.low[:, 0], few.high[:, 0]
            highest[wide] = weights.log_bound(replace(few, low=low, high=high))
        changes[:, side] = np.where(boxes.high[:, side] > boxes.low[:, side], highest - lowest, -1.0)
        least = np.minimum(least, lowest)
    bound = np.maximum(bound, at_middle)
    measures = np.stack([bound + boxes.log_volume(), bound, at_middle, least])
    return measures, middle, np.argmax(changes, axis=1)


def _halves(boxes: Boxes, middle: Floats, side: Sides) -> Boxes:
    """Cut every box in two across one side."""
    flat = np.arange(3) == side[:, None]
    # N is counted from both ends, the others touch.
    after = np.where(np.arange(3) == 0, middle + 1.0, middle)
    return _joined(
        [
            replace(boxes, high=np.where(flat, middle, boxes.high)),
            replace(boxes, low=np.where(flat, after, boxes.low)),
        ]
    )


def _middles(weights: MomentWeights, boxes: Boxes) -> Floats:
    """Where to cut each side: in the middle of a scale that is fine about what was observed."""
    noisy = weights.noisy
    estimate = np.take(weights.estimates, boxes.cell, axis=0)
    noise = np.max(noisy.totals.scale)
    n = np.floor(_warped_middle(boxes.low[:, 0], boxes.high[:, 0], estimate[:, 0], noise))
    safe = np.maximum(n, 1.0)
    average = np.clip(estimate[:, 1] / safe, -2.0, 2.0)
    mean = _warped_middle(boxes.low[:, 1], boxes.high[:, 1], average, noise / safe)
    spread = np.maximum(estimate[:, 2] / safe - mean**2, noise / safe)
    log_e = _warped_middle(boxes.low[:, 2], boxes.high[:, 2], np.log(spread), noise / safe / spread)
    return np.asarray(np.clip(np.stack([n, mean, log_e], axis=1), boxes.low, boxes.high))


def _warped_middle(low: Floats, high: Floats, centre: Floats, scale: Floats | float) -> Floats:
    left, right = np.arcsinh((low - centre) / scale), np.arcsinh((high - centre) / scale)
    # Linear about the estimate, logarithmic far from it.
    middle = centre + scale * np.sinh((left + right) / 2.0)
    fits = (middle > low) & (middle < high)
    return np.where(fits, middle, (low + high) / 2.0)


def _joined(parts: list[Boxes]) -> Boxes:
    return Boxes(
        cell=np.concatenate([part.cell for part in parts]),
        part=np.concatenate([part.part for part in parts]),
        low=np.concatenate([part.low for part in parts]),
        high=np.concatenate([part.high for part in parts]),
    )
