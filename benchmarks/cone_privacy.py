"""Whether any event tells a record from the integers of cone noise better than epsilon allows.

Every integer vector z that was drawn often is compared with its neighbours z + H and z - H, for every record
H. At z = 0 the loss of the continuous law is epsilon exactly; of the integers' it is a little less. Run it as
``python -m benchmarks.cone_privacy 2 1 10_000_000``: columns, M and draws.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.rows.mechanism.cone.sampler import cone_noise

if TYPE_CHECKING:
    from numpy.typing import NDArray

PART = 1 << 17
"""Cells that are drawn at a time."""

LEAST = 200
"""Draws of a vector, below which its logarithm is no normal variable."""

_BITS = 10  # of a component in a key; noise beyond is left out


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """The largest log ratio of chances between neighbours, less epsilon, in standard errors.

    Parameters
    ----------
    excess : float
        Over all pairs; right noise has about that of the largest of `n_pairs` normal variables, or less.
    n_pairs : int
    at_zero, error : float
        The log ratio between 0 and the records, over epsilon, and its standard error.
    """

    excess: float
    n_pairs: int
    at_zero: float
    error: float


def empirical_loss(*, columns: int, steps: int, n_draws: int, factor: Fraction) -> Loss:
    """Draw noise of the rate `factor`, and compare it with an epsilon of 1."""
    made = cone_noise(rate=factor, columns=columns, linear=True, steps=steps)
    size = made.shape.n_components
    shifts = _BITS * np.arange(size)
    keys: list[NDArray[np.int64]] = []
    with ThreadPoolExecutor(1) as threads:
        for first in range(0, n_draws, PART):
            noise = np.zeros((min(PART, n_draws - first), size), np.int64)
            for piece in made.start(noise, threads):
                piece.result()
            kept = noise[(np.abs(noise) < 1 << (_BITS - 2)).all(axis=1)]
            keys.append((kept << shifts).sum(axis=1))
    vectors, counts = np.unique(np.concatenate(keys), return_counts=True)
    records = _records(columns, steps)
    worst, n_pairs, ratios = -np.inf, 0, []
    for record in records:
        moved = vectors + int((record << shifts).sum())  # keys of components add up as they do
        place = np.minimum(np.searchsorted(vectors, moved), len(vectors) - 1)
        there = np.where(vectors[place] == moved, counts[place], 0)
        many = np.maximum(counts, there) >= LEAST
        a, b = counts[many], np.maximum(there[many], 1)
        both = (np.minimum(a, b) >= LEAST // 4) & (vectors[place[many]] == moved[many])
        z = (np.abs(np.log(a[both] / b[both])) - 1) / np.sqrt(1 / a[both] + 1 / b[both])
        worst, n_pairs = max(worst, float(z.max(initial=-np.inf))), n_pairs + int(both.sum())
        at = np.searchsorted(vectors, 0)
        if vectors[at] == 0:
            ratios.append((counts[at], there[at]))
    at_zero, beside = ratios[0][0], sum(count for _, count in ratios) / len(ratios)
    error = float(np.sqrt(1 / at_zero + 1 / max(beside * len(ratios), 1)))
    return Loss(excess=worst, n_pairs=n_pairs, at_zero=float(np.log(at_zero / max(beside, 1))), error=error)


def _records(columns: int, steps: int) -> NDArray[np.int64]:
    """Return the components of every record of the lattice."""
    pairs = list(combinations_with_replacement(range(columns + 1), 2))
    values = [(steps, *rest) for rest in product(range(-steps, steps + 1), repeat=columns)]
    return np.array([[z[i] * z[j] for i, j in pairs] for z in values], np.int64)


def main(columns: int, steps: int, n_draws: int) -> None:
    """Print a line for the rate 1, and one for the rate 1.1, which has to show."""
    for factor in (Fraction(1), Fraction(11, 10)):
        start = time.process_time()
        loss = empirical_loss(columns=columns, steps=steps, n_draws=n_draws, factor=factor)
        print(
            f"p {columns + 1} M {steps} rate {float(factor):.1f} {n_draws} draws: largest excess "
            f"{loss.excess:.1f} standard errors of {loss.n_pairs} pairs; loss at 0 {loss.at_zero:.3f} "
            f"+- {loss.error:.3f}; {time.process_time() - start:.0f} CPU s",
            flush=True,
        )


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
