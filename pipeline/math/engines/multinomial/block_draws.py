"""Exact draws from rows of weights: a block from a table, then a count inside of it by rejection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.multinomial.noise_weights import take_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.math.engines.multinomial.noise_weights import CountWeights
    from suffice.typing import Floats, Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class CountSampler:
    """Exact independent draws from rows of weights on blocks; made by ``count_sampler``."""

    weights: CountWeights
    edges: Floats
    bounds: Floats
    cumulative: Floats
    guide: Rows
    is_exact: bool

    def sample(self, rows: Rows, rng: np.random.Generator) -> Floats:
        """One count for every entry of ``rows`` (any order, repeats welcome), as float64 integers."""
        counts, block = self._propose(rows, rng)
        if self.is_exact:
            return counts
        pending = np.flatnonzero(~self._accept(rows, block, counts, rng))
        while pending.size:
            further, block = self._propose(rows[pending], rng)
            accepted = self._accept(rows[pending], block, further, rng)
            counts[pending[accepted]] = further[accepted]
            pending = pending[~accepted]
        return counts

    def _propose(self, rows: Rows, rng: np.random.Generator) -> tuple[Floats, Rows]:
        """A block by its bound, then a count uniformly inside of it."""
        n_blocks = self.bounds.shape[1]
        block = look_up(self.cumulative, self.guide, rows, rng) - rows * n_blocks
        first = self.edges.ravel()[rows * (n_blocks + 1) + block]
        if self.is_exact:
            return first, block
        after = self.edges.ravel()[rows * (n_blocks + 1) + block + 1]
        return np.minimum(first + np.floor(rng.random(rows.shape) * (after - first)), after - 1.0), block

    def _accept(self, rows: Rows, block: Rows, counts: Floats, rng: np.random.Generator) -> NDArray[np.bool_]:
        log_weight = take_rows(self.weights, rows).log_weight(counts[:, None])[:, 0]
        accepted: NDArray[np.bool_] = (
            np.log1p(-rng.random(rows.shape)) < log_weight - self.bounds[rows, block]
        )
        return accepted


def count_sampler(weights: CountWeights, edges: Floats) -> CountSampler:
    """Prepare exact draws from every row, restricted to the counts that the blocks tile."""
    bounds = weights.block_bounds(edges)
    scaled = bounds - np.max(bounds, axis=1, keepdims=True)
    cumulative: Floats = np.cumsum(np.exp(scaled) * np.diff(edges, axis=1), axis=1)
    cumulative /= cumulative[:, -1:]
    flat: Floats = (cumulative + np.arange(float(len(cumulative)))[:, None]).ravel()
    is_exact = bool(np.all(np.diff(edges, axis=1) <= 1.0))
    return CountSampler(
        weights=weights,
        edges=np.ascontiguousarray(edges),
        bounds=bounds,
        cumulative=flat,
        guide=guide_to(flat, len(cumulative)),
        is_exact=is_exact,
    )


def guide_to(cumulative: Floats, rows: int) -> Rows:
    """Where to begin looking: the entry of every row at each of equally many equal parts of 0..1.

    ``cumulative`` holds rows of cumulative probabilities, the first in 0..1, the next in 1..2 and so on.
    """
    parts = 2 ** int(np.ceil(np.log2(max(len(cumulative) // max(rows, 1), 1))))
    starts = np.arange(rows * parts) / parts
    guide: Rows = np.searchsorted(cumulative, starts, side="right")
    return guide


def look_up(cumulative: Floats, guide: Rows, rows: Rows, rng: np.random.Generator) -> Rows:
    """A random entry of ``cumulative`` for each of the given rows, by the rows' probabilities."""
    # The factor keeps rows + u below rows + 1 in float64 for the few thousand rows of a batch.
    target = rows + rng.random(rows.shape) * (1.0 - 2.0**-38)
    parts = len(guide) // (int(cumulative[-1]) or 1)
    entry: Rows = guide[(target * parts).astype(np.int64)]
    short = np.flatnonzero(cumulative[entry] <= target)
    for _step in range(4):
        if not short.size:
            return entry
        entry[short] += 1
        short = short[cumulative[entry[short]] <= target[short]]
    entry[short] = np.searchsorted(cumulative, target[short], side="right")
    return entry
