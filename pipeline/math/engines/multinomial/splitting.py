r"""Independent draws of counts whose sum is given.

The counts of a row are proposed from their tables, all but the flattest, which takes the rest: it is
accepted with its probability over its largest. What is not accepted in a few rounds is drawn one count after
the other, each given those before it and the sum. Both ways follow the same distribution, so together they
do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.multinomial.convolution import CountSums
    from suffice.typing import Floats, Rows


ROUNDS = 40
_SLOTS = 2**21


@dataclass(frozen=True, slots=True, kw_only=True)
class Splitter:
    """Draws of several counts given their sum; made by ``Splitter.of``."""

    sums: CountSums
    closing: Rows
    peak: Floats
    cumulative: Floats

    @classmethod
    def of(cls, sums: CountSums) -> Self:
        """Prepare the tables of every row."""
        peaks = np.max(sums.tables, axis=2)
        closing = np.argmin(peaks, axis=1)
        points = sums.tables.shape[2]
        cumulative = np.cumsum(sums.tables.reshape(-1, points), axis=1)
        cumulative /= cumulative[:, -1:]
        return cls(
            sums=sums,
            closing=closing,
            peak=np.min(peaks, axis=1),
            cumulative=(cumulative + np.arange(float(len(cumulative)))[:, None]).ravel(),
        )

    def counts(self, rows: Rows, total: Floats, rng: np.random.Generator) -> Floats:
        """One vector of counts (n_slots, n_categories) for every entry of `rows`, with the given sums."""
        base = self.sums.base[rows]
        step = self.sums.step[rows]
        left = np.rint((total - np.sum(base, axis=1)) / step).astype(np.int64)
        return base + step[:, None] * self.indices(rows, left, rng)

    def indices(self, rows: Rows, left: Rows, rng: np.random.Generator) -> Rows:
        """Indices into the tables whose sum is `left`."""
        _, categories, points = self.sums.tables.shape
        result = np.zeros((len(rows), categories), np.int64)
        if categories == 1:
            result[:, 0] = left
            return result
        pending = np.arange(len(rows))
        for _round in range(ROUNDS):
            row = rows[pending]
            closing, rest = self.closing[row], left[pending].copy()
            for category in range(categories):
                table = row * categories + category
                target = table + rng.random(row.shape) * (1.0 - 2.0**-38)
                index = np.searchsorted(self.cumulative, target, side="right") - table * points
                index = np.where(category == closing, 0, np.minimum(index, points - 1))
                result[pending, category] = index
                rest -= index
            inside = (rest >= 0) & (rest < points)
            rest = np.clip(rest, 0, points - 1)
            share = self.sums.tables[row, closing, rest] / self.peak[row]
            accepted = inside & (rng.random(row.shape) < share)
            result[pending[accepted], closing[accepted]] = rest[accepted]
            pending = pending[~accepted]
            if not pending.size:
                return result
        result[pending] = self._one_after_the_other(rows[pending], left[pending], rng)
        return result

    def _one_after_the_other(self, rows: Rows, left: Rows, rng: np.random.Generator) -> Rows:
        from scipy.fft import irfft

        _, categories, points = self.sums.tables.shape
        used, local = np.unique(rows, return_inverse=True)
        suffix = np.ones_like(self.sums.transforms[used, 0])
        tails: list[Floats] = []
        for category in range(categories - 1, 0, -1):
            suffix = suffix * self.sums.transforms[used, category]
            tail = irfft(suffix, self.sums.size, axis=-1)
            tail[tail < 1e-15 * np.max(tail, axis=1, keepdims=True)] = 0.0
            tails.insert(0, tail)
        result = np.zeros((len(rows), categories), np.int64)
        at_once = max(1, _SLOTS // points)
        for start in range(0, len(rows), at_once):
            part = slice(start, start + at_once)
            rest = left[part].copy()
            for category, tail in enumerate(tails):
                after = rest[:, None] - np.arange(points)
                weight = (
                    self.sums.tables[rows[part], category] * tail[local[part, None], after % self.sums.size]
                )
                cumulative = np.cumsum(np.where(after >= 0, weight, 0.0), axis=1)
                target = rng.random((len(rest), 1)) * cumulative[:, -1:]
                taken = np.minimum(np.sum(cumulative <= target, axis=1), points - 1)
                result[part, category] = taken
                rest = rest - taken
            result[part, -1] = np.clip(rest, 0, points - 1)
        return result
