"""Whether any event tells a record from the integers of cone noise better than epsilon allows.

    python -m benchmarks.cone_privacy 2 1 10_000_000      # columns, M and draws

Two kinds of events:

- **Vectors.** Every integer vector z that was drawn often is compared with its neighbours z + H, for every
  record H. At z = 0 the loss of the continuous law is epsilon exactly; of the integers' it is a little less.
- **Cones.** E is the inner cone of matrices. With the density f of P - Q, f(z) = exp(-rate l(z)) f(0) there:
  so Z is in E with the chance 2^-D, and every record H loses epsilon exactly, P(Z in E) = exp(rate)
  P(Z in E + H). No pair of events is closer to epsilon, and few are as frequent. As E + H is part of E, the
  draws in E + H, given those in E, are a binomial number. Rounding blurs the edge of E, in favour of neither.

The power against 1.1 epsilon is computed before anything is drawn, from P and Q in floating point. It is
printed; then come noise of the rate 1, and of 1.1, which has to be caught.
"""

from __future__ import annotations

import math
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import binom, norm

from suffice.pipeline.math.engines.cone.latent_noise import ConePoints
from suffice.pipeline.rows.mechanism.cone.sampler import cone_noise

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

PART = 1 << 17
"""Cells that are drawn at a time."""

LEAST = 200
"""Draws of a vector, below which its logarithm is no normal variable."""

FALSE_ALARM = 1e-6
TOO_LARGE = Fraction(11, 10)
SIMULATED = 2_000_000
"""Draws in floating point that the power is computed from."""

_BITS = 10  # of a component in a key; noise beyond is left out of vectors


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ConeLoss:
    """The loss between E and E moved by a record, on both sides of 0 together.

    Parameters
    ----------
    n_inside : int
        Draws in E or -E.
    n_moved : ndarray of shape (n_records,), int64
        Those of them in E + H or -(E + H).
    n_draws : int
    """

    n_inside: int
    n_moved: Integers
    n_draws: int

    @property
    def loss(self) -> float:
        """The largest log ratio."""
        return math.log(self.n_inside / max(int(self.n_moved.min()), 1))

    @property
    def error(self) -> float:
        """Its standard error."""
        share = self.n_moved.min() / self.n_inside
        return math.sqrt((1 - share) / (share * self.n_inside))

    @property
    def chance(self) -> float:
        """The chance of a loss as large if epsilon is 1, over all records (Bonferroni)."""
        moved = int(self.n_moved.min())
        return min(1.0, len(self.n_moved) * float(binom.cdf(moved, self.n_inside, math.exp(-1.0))))

    def power(self, n_draws: int, record: int) -> float:
        """Return the chance that so many draws of this law tell it from epsilon 1 by a record."""
        inside = round(self.n_inside / self.n_draws * n_draws)
        share = self.n_moved[record] / self.n_inside
        least = binom.ppf(FALSE_ALARM / len(self.n_moved), inside, math.exp(-1.0)) - 1
        return float(binom.cdf(least, inside, share))


def cone_loss(parts: Iterator[Integers], *, columns: int, steps: int) -> ConeLoss:
    """Compare noise with an epsilon of 1, by cones."""
    records = records_of(columns, steps)
    inside, moved, n_draws = 0, np.zeros(len(records), np.int64), 0
    for part in parts:
        more, of_records = _counts(part, records, columns)
        inside, moved, n_draws = inside + more, moved + of_records, n_draws + len(part)
    return ConeLoss(n_inside=inside, n_moved=moved, n_draws=n_draws)


def simulated(columns: int, steps: int, factor: Fraction, rng: np.random.Generator) -> Iterator[Integers]:
    """Yield draws in floating point, rounded, by an algorithm that shares nothing with the sampler."""
    points, scale = ConePoints(columns=columns, linear=True), steps**2 / float(factor)
    for _ in range(0, SIMULATED, PART):
        first, second = (points.at(points.draw(PART, rng)) for _ in range(2))
        p, q = (np.rint(scale * at.t * at.components) for at in (first, second))
        yield (p - q).T.astype(np.int64)


def records_of(columns: int, steps: int) -> Integers:
    """Return the components of records of the lattice whose values are 0 or extreme, or all of one column."""
    pairs = list(combinations_with_replacement(range(columns + 1), 2))
    levels = range(-steps, steps + 1) if columns < 3 else (-steps, 0, steps)
    values = [(steps, *rest) for rest in product(levels, repeat=columns)]
    return np.array([[z[i] * z[j] for i, j in pairs] for z in values], np.int64)


def drawn(columns: int, steps: int, n_draws: int, factor: Fraction) -> Iterator[Integers]:
    """Yield noise of the rate `factor` in parts."""
    made = cone_noise(rate=factor, columns=columns, linear=True, steps=steps)
    with ThreadPoolExecutor(1) as threads:
        for first in range(0, n_draws, PART):
            noise = np.zeros((min(PART, n_draws - first), made.shape.n_components), np.int64)
            for piece in made.start(noise, threads):
                piece.result()
            yield noise


def _keys(noise: Integers) -> Integers:
    kept = noise[(np.abs(noise) < 1 << (_BITS - 2)).all(axis=1)]
    keys: Integers = (kept << _shifts(noise.shape[1])).sum(axis=1)
    return keys


def _shifts(size: int) -> Integers:
    return _BITS * np.arange(size)


def _loss_of_vectors(keys: list[Integers], columns: int, steps: int) -> Loss:
    vectors, counts = np.unique(np.concatenate(keys), return_counts=True)
    worst, n_pairs, ratios = -np.inf, 0, []
    for record in records_of(columns, steps):
        moved = vectors + int((record << _shifts(len(record))).sum())  # keys add up as components do
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
    if not ratios:  # 0 was not drawn
        return Loss(excess=worst, n_pairs=n_pairs, at_zero=math.nan, error=math.nan)
    at_zero, beside = ratios[0][0], sum(count for _, count in ratios) / len(ratios)
    error = float(np.sqrt(1 / at_zero + 1 / max(beside * len(ratios), 1)))
    return Loss(excess=worst, n_pairs=n_pairs, at_zero=float(np.log(at_zero / max(beside, 1))), error=error)


def _counts(noise: Integers, records: Integers, columns: int) -> tuple[int, Integers]:
    """Return how many draws are in E or -E, and how many of them in these moved by every record."""
    inside, moved = 0, np.zeros(len(records), np.int64)
    for side in (noise, -noise):
        kept = side[_in_cone(side, columns)]
        inside += len(kept)
        moved += [int(_in_cone(kept - record, columns).sum()) for record in records]
    return inside, moved


def _in_cone(noise: Integers, columns: int) -> NDArray[np.bool_]:
    """Tell which matrices are in the inner cone: all pivots are above 0, and no entry above the first."""
    p = columns + 1
    entries = dict(zip(combinations_with_replacement(range(p), 2), noise.T.astype(np.float64), strict=True))
    inside = np.ones(len(noise), bool)
    for i in range(1, p):
        inside &= entries[i, i] <= entries[0, 0]
    with np.errstate(all="ignore"):
        for k in range(p):
            inside &= entries[k, k] > 0
            for i, j in combinations_with_replacement(range(k + 1, p), 2):
                entries[i, j] = entries[i, j] - entries[k, i] * entries[k, j] / entries[k, k]
    return inside


def main(columns: int, steps: int, n_draws: int) -> None:
    """Print the power, a line for the rate 1, and one for the rate 1.1, which has to show."""
    rng = np.random.default_rng()
    # One half of the draws chooses the record, the other says what it is good for.
    first, second = (
        cone_loss(simulated(columns, steps, TOO_LARGE, rng), columns=columns, steps=steps) for _ in range(2)
    )
    power = second.power(n_draws, int(np.argmin(first.n_moved)))
    print(f"columns {columns} M {steps}: power {power:.6f}", flush=True)
    for factor in (Fraction(1), TOO_LARGE):
        start = time.process_time()
        keys: list[Integers] = []

        def parts(factor: Fraction = factor, keys: list[Integers] = keys) -> Iterator[Integers]:
            for part in drawn(columns, steps, n_draws, factor):
                if columns < 3:  # the keys of more components have no room in 64 bits
                    keys.append(_keys(part))
                yield part

        loss = cone_loss(parts(), columns=columns, steps=steps)
        by_vectors = ""
        if keys:
            each = _loss_of_vectors(keys, columns, steps)
            most = norm.isf(FALSE_ALARM / max(each.n_pairs, 1))
            by_vectors = (
                f"; vectors: largest excess {each.excess:.1f} of at most {most:.1f} standard errors, "
                f"{each.n_pairs} pairs, loss at 0 {each.at_zero:.3f} +- {each.error:.3f}"
            )
        print(
            f"columns {columns} M {steps} rate {float(factor):.1f} {n_draws} draws: "
            f"cones: {loss.n_inside} inside, largest loss {loss.loss:.4f} +- {loss.error:.4f} of "
            f"{len(loss.n_moved)} records, chance {loss.chance:.1e}{by_vectors}; "
            f"{time.process_time() - start:.0f} CPU s",
            flush=True,
        )


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
