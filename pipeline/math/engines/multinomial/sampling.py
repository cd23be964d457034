r"""Independent draws of several latent counts, exact where the grid of their sum is the integers.

Model and weight W(c) as in ``noisy_counts``; the question is draws of c given the release. With the tilted
rows :math:`t_k` and the link l(N) of ``convolution``,

.. math:: P(c \mid y) \propto \prod_k t_k(c_k) \, l(N) = \prod_k t_k(c_k) \, \min(l(N), u)
    + \prod_k t_k(c_k) \, (l(N) - u)_+ \qquad (1)

The first part is drawn by rejection: counts from the rows (all of them, or all but one where N is known),
accepted with min(l, u) / u. That is quick, and exact on every grid. The second part is drawn by its own
distribution: N from the grid, then one count after the other,

.. math:: P(c_k \mid c_1 \dots c_{k-1}, N) \propto
    t_k(c_k) \, (t_{k+1} * \dots * t_K)(N - c_1 - \dots - c_k) \qquad (2)

The cap u is the one of ``CAPS`` with the least work. A row is drawn from exactly: a block from a table of
bounds, then a count inside of it by rejection.

Counts with a given sum (``Splitter``): all but the flattest row are drawn from their tables; the flattest
takes the rest, and the whole is accepted with

.. math:: t_j(N - \textstyle\sum_{k \ne j} c_k) \, / \max_c t_j(c) \qquad (3)

What is not accepted in ``ROUNDS`` rounds is drawn by (2). Both follow the same distribution, so together
they do.

======= ================== ================================== ========================= ====
symbol  in the code        meaning                            shape                     unit
======= ================== ================================== ========================= ====
t_k     ``sums.tables``    tilted rows on their grids         (n_cells, K, n_points)    none
l       ``link``           log of the link                    (n_slots,)                nats
u       ``cap``            log of the cap                     (n_cells,)                nats
N       ``total``          sum of the free counts             (n_slots,)                rows
======= ================== ================================== ========================= ====
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.math.engines.multinomial.convolution import RELIABLE, CountSums
from suffice.pipeline.math.engines.multinomial.noisy_counts import log_factor_of_n, take_rows
from suffice.pipeline.math.priors.record_count import Fixed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.math.engines.multinomial.noisy_counts import CountWeights
    from suffice.typing import Floats, Rows

ROUNDS = 40


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
        # The flattest row has the smallest peak, so (3) is least often small.
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
            # (3).
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
            # Rejection: the block was drawn by its bound times its length, the count uniformly in it.
            np.log1p(-rng.random(rows.shape)) < log_weight - self.bounds[rows, block]
        )
        return accepted


def count_sampler(weights: CountWeights, edges: Floats) -> CountSampler:
    """Prepare exact draws from every row, restricted to the counts that the blocks tile."""
    bounds = weights.block_bounds(edges)
    # A block has its bound times its length of the proposal.
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


_SLOTS = 2**21
CAPS = np.array([0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 11.0, 15.0, 20.0, 27.0, 36.0, 48.0])
"""Nats below the highest link at which proposals may be capped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """How a batch is drawn: the free counts from their rows, N above a cap from its own distribution.

    Attributes
    ----------
    free : ndarray of shape (n_cells, n_free), int64
        Categories that are proposed: all, or all but the closing one where N is known.
    closing : ndarray of shape (n_cells,), int64
        The category that a known N leaves the rest to.
    cost : ndarray of shape (n_cells,), float64
        About how many proposals a draw takes.
    cap, share_above : ndarray of shape (n_cells,), float64
        The cap of the log link, and the posterior probability above it.
    base, n, excess
        The free counts' least sum, and the distribution above the cap on the grid of their sum.
    """

    free: Rows
    closing: Rows
    cost: Floats
    cap: Floats
    share_above: Floats
    base: Floats
    n: Floats
    excess: Floats


def sample(sums: CountSums, cells: Rows, rng: np.random.Generator) -> Floats:
    """One vector of counts for every entry of cells, (n_categories, n_slots)."""
    known_n = isinstance(sums.counts.n_prior, Fixed)
    # Both parts of (1) are laid out once for a batch.
    plan = proposal_of(sums)
    free, closing = plan.free, plan.closing
    result = np.empty((sums.mean.shape[1], len(cells)))
    # Which part of (1).
    above = rng.random(len(cells)) < plan.share_above[cells]
    pending = np.flatnonzero(~above)
    sampler = count_sampler(sums.weights, sums.edges)
    categories = sums.mean.shape[1]
    while pending.size:
        cell = cells[pending]
        drawn = np.zeros((categories, len(pending)))
        slots = np.arange(len(pending))
        for position in range(free.shape[1]):
            category = free[cell, position]
            drawn[category, slots] = sampler.sample(cell * categories + category, rng)
        total = np.sum(drawn, axis=0)
        # The first part of (1): accepted with min(l, u) / u, by the link itself and not by its grid.
        link = np.minimum(_exact_link(sums, cell, total, closing), plan.cap[cell]) - plan.cap[cell]
        accepted = np.log1p(-rng.random(len(pending))) < link
        result[:, pending[accepted]] = drawn[:, accepted]
        pending = pending[~accepted]
    slots = np.flatnonzero(above)
    if slots.size:
        result[:, slots] = _one_after_the_other(sums, cells[slots], free, plan, rng).T
    if known_n:
        n = float(sums.counts.n_prior.support[0])
        slots = np.arange(len(cells))
        last = closing[cells]
        result[last, slots] = 0.0
        result[last, slots] = np.maximum(n - np.sum(result, axis=0), 0.0)
    return result


def _exact_link(sums: CountSums, cells: Rows, total: Floats, closing: Rows) -> Floats:
    """Log link of sums of the free counts: the factor of N, or the weight of the count that is left."""
    if not isinstance(sums.counts.n_prior, Fixed):
        low, high = sums.counts.support[cells].T
        inside = np.clip(total, low, high)
        link = log_factor_of_n(sums.counts, inside) + sums.weights.tilt[cells * sums.mean.shape[1]] * inside
        return np.where(inside == total, link, -np.inf)
    rows = take_rows(sums.weights, cells * sums.mean.shape[1] + closing[cells])
    rest = rows.n - total
    link = rows.log_weight(np.clip(rest, 0.0, rows.n)[:, None])[:, 0]
    return np.where(rest >= 0.0, link, -np.inf)


def proposal_of(sums: CountSums) -> Proposal:
    """Choose which counts to propose, the cap under which that is quick, and how N is drawn above it."""
    cells = np.arange(len(sums.mean))
    order = np.argsort(sums.mean, axis=1)
    closing = order[:, -1]
    free = order[:, :-1] if isinstance(sums.counts.n_prior, Fixed) else order
    transform = np.ones_like(sums.transforms[:, 0])
    for position in range(free.shape[1]):
        transform = transform * sums.transforms[cells, free[:, position]]
    base = np.sum(np.take_along_axis(sums.base, free, axis=1), axis=1)
    mean = np.sum(np.take_along_axis(sums.mean, free, axis=1), axis=1)
    n = sums.grid(base, mean)
    density = sums.density_of(transform)
    density /= np.sum(density, axis=1, keepdims=True)
    reliable = density > RELIABLE * np.max(density, axis=1, keepdims=True)
    if isinstance(sums.counts.n_prior, Fixed):
        repeated = np.repeat(cells, sums.size)
        link = _exact_link(sums, repeated, n.ravel(), closing).reshape(n.shape)
    else:
        link = sums.link(n)
    link = np.where(reliable, link, -np.inf)
    top = np.max(link, axis=1)
    relative = np.exp(link - top[:, None])
    # E l(N) under the rows: the acceptance without a cap, relative to the highest link.
    everything = np.sum(density * relative, axis=1)
    best = np.full(len(cells), np.inf)
    depth, share = np.zeros(len(cells)), np.zeros(len(cells))
    for nats in CAPS:
        cap = np.exp(-nats)
        below = np.sum(density * np.minimum(relative, cap), axis=1)
        above = np.maximum(1.0 - below / everything, 0.0) if nats else np.zeros(len(cells))
        # Running through a table and the distribution of N takes about as long as this many proposals.
        # A proposal under the cap is accepted with E min(l, u) / u.
        cost = (1.0 - above) * cap / below + above * (sums.tables.shape[2] + sums.size) / 8.0
        better = cost < best
        best = np.where(better, cost, best)
        depth, share = np.where(better, nats, depth), np.where(better, above, share)
    # The second part of (1), as a distribution of N.
    excess = density * np.maximum(relative - np.exp(-depth)[:, None], 0.0)
    return Proposal(
        free=free,
        closing=closing,
        cost=best,
        cap=top - depth,
        share_above=share,
        base=base,
        n=n,
        excess=excess,
    )


def _one_after_the_other(
    sums: CountSums, cells: Rows, free: Rows, plan: Proposal, rng: np.random.Generator
) -> Floats:
    """Draw N from its distribution above the cap, then every free count given those before it and N."""
    from scipy.fft import irfft

    used, local = np.unique(cells, return_inverse=True)
    suffix = np.ones_like(sums.transforms[used, 0])
    suffixes: list[Floats] = []
    for position in range(free.shape[1] - 1, 0, -1):
        # The tails t_(k + 1) * ... * t_K of (2), by products of transforms.
        suffix = suffix * sums.transforms[used, free[used, position]]
        tail = irfft(suffix, sums.size, axis=-1)
        tail[tail < 1e-15 * np.max(tail, axis=1, keepdims=True)] = 0.0
        suffixes.insert(0, tail)
    points = sums.tables.shape[2]
    index = np.arange(points)
    result = np.zeros((len(cells), sums.mean.shape[1]))
    for start in range(0, len(cells), max(1, _SLOTS // max(points, sums.size))):
        part = slice(start, start + max(1, _SLOTS // max(points, sums.size)))
        cell, row = cells[part], local[part]
        slots = np.arange(len(cell))
        chosen = _choose(plan.excess[cell], rng)
        left = np.rint((plan.n[cell, chosen] - plan.base[cell]) / sums.step[cell]).astype(np.int64)
        for position in range(free.shape[1]):
            category = free[cell, position]
            table = sums.tables[cell, category]
            if position < len(suffixes):
                rest = left[:, None] - index
                tail = suffixes[position][row[:, None], rest % sums.size]
                # (2).
                taken = _choose(np.where(rest >= 0, table * tail, 0.0), rng)
            else:
                taken = np.clip(left, 0, points - 1)
            left = left - taken
            result[start + slots, category] = _count_at(sums, cell, category, taken, rng)
    return result


def _count_at(sums: CountSums, cells: Rows, category: Rows, index: Rows, rng: np.random.Generator) -> Floats:
    """A count near a grid point: on the integers the point itself, else a node by its share in it."""
    point = sums.base[cells, category] + sums.step[cells] * index
    if np.all(sums.step == 1.0):
        return point
    rows = cells * sums.mean.shape[1] + category
    # A mass is split linearly between grid points: backwards, a node has the same share of a point.
    near = 1.0 - np.abs(sums.nodes[rows] - point[:, None]) / sums.step[cells, None]
    share = sums.mass[rows] * np.maximum(near, 0.0)
    counts: Floats = np.rint(sums.nodes[rows, _choose(share, rng)])
    return counts


def _choose(weights: Floats, rng: np.random.Generator) -> Rows:
    """One index a row (n_rows, n), with probability in proportion to the weights."""
    cumulative = np.cumsum(weights, axis=1)
    target = rng.random((len(weights), 1)) * cumulative[:, -1:]
    chosen: Rows = np.minimum(np.sum(cumulative <= target, axis=1), weights.shape[1] - 1)
    return chosen
