r"""Several latent counts at once: the distribution of their sum by FFT, and moments of the probabilities.

Model and weight W(c) as in ``noisy_counts``. The question is the posterior of N, and the moments of
:math:`p \mid c \sim \mathrm{Dirichlet}(\alpha + c)`. The tilted rows, normalised, are distributions
:math:`t_k` of independent counts, so that

.. math:: P(N) = (t_1 * \dots * t_K)(N), \qquad l(N) = g(N) \, e^{\theta N}, \qquad
    p(N \mid y) \propto P(N) \, l(N) \qquad (1)

    p(c_k = m, N \mid y) \propto t_k(m) \, \bigl(\textstyle\mathop{*}_{i \ne k} t_i\bigr)(N - m) \, l(N)
    \qquad (2)

With :math:`d_k = \alpha_k + c_k`, D = A + N, a reference r of a probability and :math:`\bar D = A + E N`,

.. math:: E p_k - r = E \frac{d_k - r D}{D}, \qquad
    \mathrm{Var}\, p_k = \mathrm{Var}\Bigl(\frac{d_k}{D}\Bigr) + E \frac{d_k (D - d_k)}{D^2 (D + 1)}
    \quad (3)

with :math:`r = (\alpha_k + \bar c_k) / \bar D`, so that nothing cancels even where N is 1e12.

Method and error: (1) and (2) by FFT on a grid of at most ``MAX_GRID`` points: the integers, where they are
exact to rounding, or points ``step`` apart between which masses are split linearly. An FFT is right to
1e-16 of its peak, so only N with P above 1e-11 of the peak are used; who calls looks at what lies beyond.
Splitting smooths a distribution and changes little away from 0. At the first points it does: of a flat
distribution the point 0 only gets what lies above it, and what rises as :math:`N^{A - 1}` over one step is
not its value at a point. So what counts without noise would add up to is put onto the same grid in the same
way, and the distribution of a sum is taken relative to that.

======== ================== ===================================== ================================ ======
symbol   in the code        meaning                               shape                            unit
======== ================== ===================================== ================================ ======
t_k      ``tables``         probabilities of rows on their grids  (n_cells, n_categories, n)       none
P        ``density``        density of the sum of rows            (n_cells, size)                  none
N        ``n``              what FFT indices stand for            (n_cells, size)                  rows
theta    ``tilt``           tilt of a cell                        (n_cells,)                       1/row
r        ``reference``      about E p_k                           (n_cells,)                       none
======== ================== ===================================== ================================ ======
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.engines.multinomial import noisy_counts
from suffice.pipeline.math.priors.record_count import Reciprocal

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from suffice.typing import Floats


def level_tilt(counts: noisy_counts.NoisyCounts, m: Floats, log_weight: Floats) -> Floats:
    """Tilts (n_cells,) at which the mean of N is one where the link is level, or at an end of its support.

    Steps of a standard deviation at most, as weights are not normal, inside of a bracket.
    """
    low, high = counts.support.T
    tilt, bottom, top = np.zeros(len(m)), np.full(len(m), -np.inf), np.full(len(m), np.inf)
    for _step in range(200):
        tables, _ = normalised(log_weight - tilt[:, None, None] * m)
        means = np.sum(tables * m, axis=2)
        variance = np.sum((m - means[:, :, None]) ** 2 * tables, axis=(1, 2))
        mean = np.sum(means, axis=1)
        bound = np.clip(mean, low, high)
        inside = (bound == mean) & (low < high)
        wanted = np.where(
            # At the mean of N the link l is level if theta is the fall of log g there; at a bound, a Newton
            # step.
            inside,
            noisy_counts.fall_of_factor(counts, mean),
            tilt + (mean - bound) / np.maximum(variance, 1e-12),
        )
        change = np.where(inside, 0.5, 1.0) * (wanted - tilt)
        if np.all(np.abs(change) * np.sqrt(variance) < 0.1):
            break
        bottom, top = np.where(change > 0.0, tilt, bottom), np.where(change > 0.0, top, tilt)
        reach = 1.0 / np.sqrt(np.maximum(variance, 1e-12))
        moved = tilt + np.clip(change, -reach, reach)
        outside = (moved <= bottom) | (moved >= top)
        tilt = np.where(outside & np.isfinite(top - bottom), (bottom + top) / 2.0, moved)
    return tilt


def normalised(log_weight: Floats) -> tuple[Floats, Floats]:
    """Weights along the last axis as probabilities, and the logs of their sums."""
    top = np.max(log_weight, axis=2, keepdims=True)
    weight = np.exp(log_weight - top)
    total = np.sum(weight, axis=2, keepdims=True)
    return weight / total, (top + np.log(total))[:, :, 0]


def marginals_of_rows(top: CountSums, of_n: PosteriorOfN) -> Floats:
    """The posterior of every class count, shaped as the tables."""
    from scipy.fft import irfft, rfft

    link = np.divide(
        of_n.probability,
        of_n.density,
        out=np.zeros_like(of_n.probability),
        where=of_n.probability > 1e-14 * np.max(of_n.probability, axis=1, keepdims=True),
    )
    before, after = products_of_others(top.transforms)
    # (2) summed over N: a correlation of the link with the sum of the others.
    transform = rfft(link, axis=-1)
    marginal = np.empty_like(top.tables)
    for k in range(marginal.shape[1]):
        reached = irfft(transform * np.conj(before[k] * after[k]), top.size, axis=-1)
        marginal[:, k] = top.tables[:, k] * np.maximum(reached[:, : marginal.shape[2]], 0.0)
    normalised: Floats = marginal / np.sum(marginal, axis=2, keepdims=True)
    return normalised


GRADED = 512
"""Points from 0 on of which the steps are accounted for."""


def on_grid(nodes: Floats, mass: Floats, base: Floats, step: Floats) -> Floats:
    """Split masses at nodes (n_rows, n_nodes) linearly between grid points base + step * index."""
    position = (nodes - base[:, None]) / step[:, None]
    index = np.floor(position).astype(np.int64)
    # The mean of a mass stays where it was: (1 - part) below and part above.
    part = position - index
    points = int(np.max(index)) + 2
    flat = (index + np.arange(len(nodes))[:, None] * points).ravel()
    size = len(nodes) * points
    lower = np.bincount(flat, (mass * (1.0 - part)).ravel(), size)
    upper = np.bincount(flat + 1, (mass * part).ravel(), size + 1)[:size]
    return np.asarray(lower + upper, dtype=np.float64).reshape(len(nodes), points)


def log_rising_on_grid(concentration: Floats, step: Floats, n: Floats) -> Floats:
    r"""Log of :math:`\Gamma(A + N) / (\Gamma(A) N!)` at grid points n (n_rows, n_points), with a step a row.

    It sums :math:`\prod_k \Gamma(\alpha_k + c_k) / (\Gamma(\alpha_k) c_k!)` over all counts of that N; near
    0, on grids that are not the integers, it is the sum of the counts' distributions on the grid instead.
    """
    # sum over c of prod (alpha_k)_c_k / c_k! = (A)_N / N!, the coefficient of x^N in (1 - x)^-A.
    result = noisy_counts.log_rising(np.array([np.sum(concentration)]), n)
    for coarse in np.unique(step[step > 1.0]):
        rows = np.flatnonzero(step == coarse)
        index = np.rint(n[rows] / coarse).astype(np.int64)
        on_points = _log_sum_on_grid(tuple(concentration.tolist()), float(coarse))[
            np.clip(index, 0, GRADED - 1)
        ]
        near = (index < GRADED) & (n[rows] == index * coarse) & np.isfinite(on_points)
        result[rows] = np.where(near, on_points, result[rows])
    return result


@lru_cache(maxsize=64)
def _log_sum_on_grid(concentration: tuple[float, ...], step: float) -> Floats:
    """Logs of the first points of the sum of prior distributions on a grid, over the step."""
    tables: dict[float, tuple[Floats, float]] = {}
    total, log_total = np.ones(1), -np.log(step)
    for alpha in concentration:
        if alpha not in tables:
            none, end = np.zeros(1), np.array([GRADED * step])
            weights = noisy_counts.CountWeights(
                concentration=np.array([alpha]),
                tilt=none,
                n=end,
                rest_concentration=np.ones(1),
                kinks=np.array([none, end]),
                rates=np.zeros(2),
            )
            edges = weights.blocks(none, end, np.array([max(1.0, step / 4.0)]))
            nodes, mass, log_sum = noisy_counts.masses(weights, edges)
            tables[alpha] = on_grid(nodes, mass, none, np.array([step]))[0, :GRADED], float(log_sum[0])
        table, log_sum_of_one = tables[alpha]
        total = np.convolve(total, table)[:GRADED]
        log_total += log_sum_of_one
        log_total += np.log(np.max(total))
        total = total / np.max(total)
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(total) + log_total
    return logs


def log_mean_reciprocal(n: Floats, step: Floats) -> Floats:
    """Log of the mean of 1 / (N + 1) about grid points over 1 / (n + 1); 0 far from 0 and on integers."""
    from scipy.special import digamma

    near = (n < GRADED / 8 * step) & (n % step == 0.0) & (step > 1.0)
    result = np.zeros(near.shape)
    if not np.any(near):
        return result
    point, width = n[near], np.broadcast_to(step, near.shape)[near]
    below = np.maximum(point - width, 0.0)
    # The sum of 1 / (j + 1) over integers is a difference of digammas; here with weights of a hat.
    at = digamma(point + 1.0)
    left = np.where(point > 0.0, width - (point - width + 1.0) * (at - digamma(below + 1.0)), 0.0)
    right = (point + width + 1.0) * (digamma(point + width + 1.0) - at) - width
    # At 0 only the share above it is covered, which the caller accounts for.
    share = np.where(point > 0.0, 1.0, 0.5 + 0.5 / width)
    result[near] = np.log((left + right) / (width * width * share) * (point + 1.0))
    return result


MAX_GRID = 2**15
"""Points of the grid of N in one cell; beyond, neighbouring integers share a point."""

TABLE_BLOCKS = 2**12
RELIABLE = 1e-11
UNRESOLVED = "under this prior and this noise N is too uncertain to be resolved: give a narrower --n-prior"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountSums:
    """Tables of a batch of cells; made by ``CountSums.of``.

    Attributes
    ----------
    counts : NoisyCounts
        The batch.
    weights, edges, nodes, mass
        Tilted rows, their blocks, and each row's probabilities at quadrature nodes.
    step : ndarray of shape (n_cells,)
        Distance of grid points.
    base : ndarray of shape (n_cells, n_categories)
        The first grid point of every row.
    tables : ndarray of shape (n_cells, n_categories, n_points)
        The rows' probabilities on their grids.
    transforms : ndarray, complex
        Real FFT of the tables along the last axis, padded to ``size``.
    size : int
        Length of the FFT.
    """

    counts: noisy_counts.NoisyCounts
    weights: noisy_counts.CountWeights
    edges: Floats
    nodes: Floats
    mass: Floats
    log_total: Floats
    mean: Floats
    span: Floats
    step: Floats
    base: Floats
    tables: Floats
    transforms: NDArray[np.complex128]
    size: int

    @classmethod
    def of(
        cls,
        counts: noisy_counts.NoisyCounts,
        tilt: Floats,
        *,
        nats: float = noisy_counts.NATS,
        most_points: int | None = None,
    ) -> Self:
        """Build the tables of every cell at its tilt, down to some nats below peaks, on so many points."""
        from scipy.fft import next_fast_len, rfft

        shape = counts.shape
        weights = noisy_counts.rows_of(counts, tilt)
        low, high = weights.window(nats)
        # The FFT is as long as the sum spreads, not as all rows together.
        span = _span_of_sum(weights, low, high, shape, nats)
        step = noisy_counts.block_step(span, most_points or MAX_GRID)
        row_step = np.repeat(step, shape[1])
        longest = np.minimum(row_step, noisy_counts.block_step(high - low + 1.0, TABLE_BLOCKS))
        edges = weights.blocks(low, high, longest)
        nodes, mass, log_total = noisy_counts.masses(*_beyond_the_end(weights, edges, (low, high), row_step))
        base = np.floor(low / row_step) * row_step
        tables = on_grid(nodes, mass, base, row_step)
        size = int(next_fast_len(int(np.max(span / step)) + shape[1] + 4, real=True))
        size = max(size, tables.shape[1])
        tables = tables.reshape(*shape, -1)
        return cls(
            counts=counts,
            weights=weights,
            edges=edges,
            nodes=nodes,
            mass=mass,
            log_total=np.sum(log_total.reshape(shape), axis=1),
            mean=np.sum(nodes * mass, axis=1).reshape(shape),
            span=span,
            step=step,
            base=base.reshape(shape),
            tables=tables,
            transforms=rfft(tables, size, axis=-1),
            size=size,
        )

    def grid(self, base: Floats, mean: Floats) -> Floats:
        """The N (n_cells, size) that each FFT index stands for, in a sum with this base and mean.

        Where the FFT is shorter than all that the tables can add up to, indices wrap around; what lies beyond
        half a span from the mean has no mass worth naming.
        """
        behind = np.floor(np.maximum(mean - self.span / 2.0 - base, 0.0) / self.step)
        index = np.arange(self.size)
        return base[:, None] + self.step[:, None] * (behind[:, None] + (index - behind[:, None]) % self.size)

    def posterior_of_n(self) -> PosteriorOfN:
        """The posterior of N in every cell, as far as the FFT resolves it."""
        n = self.grid(np.sum(self.base, axis=1), np.sum(self.mean, axis=1))
        density = self.density_of(self.transforms.prod(axis=1))
        reliable = density > RELIABLE * np.max(density, axis=1, keepdims=True)
        with np.errstate(divide="ignore"):
            # (1).
            log_weight = np.where(reliable, np.log(density) + self.link(n), -np.inf)
        top = np.max(log_weight, axis=1)
        if not np.all(np.isfinite(top)):
            raise PriorError(UNRESOLVED)
        weight = np.exp(log_weight - top[:, None])
        total = np.sum(weight, axis=1)
        cells = np.arange(len(n))
        first = np.argmin(np.where(reliable, n, np.inf), axis=1)
        last = np.argmax(np.where(reliable, n, -np.inf), axis=1)
        low, high = self.counts.support.T
        # Nothing can lie below the sum of the rows' own lower ends.
        low = np.maximum(np.sum(self.base, axis=1), low)
        scale = top + self.log_total
        return PosteriorOfN(
            n=n,
            probability=weight / total[:, None],
            density=density,
            log_evidence=scale + np.log(total),
            log_peak=scale,
            first=n[cells, first],
            last=n[cells, last],
            log_first=np.where(n[cells, first] > low, log_weight[cells, first] + self.log_total, -np.inf),
            log_last=np.where(n[cells, last] < high, log_weight[cells, last] + self.log_total, -np.inf),
        )

    def density_of(self, transform: NDArray[np.complex128]) -> Floats:
        """Undo the transform of a sum of rows, (n_cells, size)."""
        from scipy.fft import irfft

        density: Floats = np.maximum(irfft(transform, self.size, axis=-1), 0.0)
        return density

    def link(self, n: Floats) -> Floats:
        """Log link at every grid point; at an end of the support a point counts by its covered share."""
        low, high = self.counts.support.T[:, :, None]
        tilt = self.weights.tilt[:: self.counts.shape[1], None]
        inside = np.clip(n, low, high)
        step = self.step[:, None]
        covered = _hat_integral((high + 0.5 - n) / step) - _hat_integral((low - 0.5 - n) / step)
        covered = np.where(step == 1.0, inside == n, covered)
        with np.errstate(divide="ignore"):
            # At an end of the support a point counts by the share of its hat that is inside.
            log_prior = np.log(covered) + self.counts.n_prior.log_prob(inside)
        if isinstance(self.counts.n_prior, Reciprocal):
            log_prior += log_mean_reciprocal(inside, step)
        log_orders = log_rising_on_grid(self.counts.concentration, self.step, inside)
        # log l = log pi(N) - log (A)_N / N! + theta N.
        return np.asarray(log_prior - log_orders + tilt * inside, dtype=np.float64)

    def moments(self, of_n: PosteriorOfN) -> tuple[Floats, Floats]:
        """Posterior mean and standard deviation of every probability, (n_cells, n_categories).

        Deviations are summed about reference points, so that nothing cancels even where N is 1e12.
        """
        from scipy.fft import irfft, rfft

        n, posterior = of_n.n, of_n.probability
        link = np.divide(posterior, of_n.density, out=np.zeros_like(posterior), where=posterior > 0.0)
        cells, categories = self.counts.shape
        shape = (cells, categories)
        mean_n = np.sum(n * posterior, axis=1)[:, None]
        mean, sd = np.empty(shape), np.empty(shape)
        before, after = products_of_others(self.transforms)
        points = self.base[:, :, None] + self.step[:, None, None] * np.arange(self.tables.shape[2])
        coarse = bool(np.any(self.step > 1.0))
        centres = np.round(self.mean)

        def moment(k: int, power: int) -> Floats:
            """The joint moment of a count and N, about the count's centre."""
            deviation = points[:, k] - centres[:, k, None]
            table = (
                self._moment_table(k, centres[:, k], power)
                if coarse
                else deviation**power * self.tables[:, k]
            )
            others = before[k] * after[k]
            # (2), times a power of the deviation of c_k: one more convolution.
            tilted: Floats = irfft(rfft(table, self.size, axis=-1) * others, self.size, axis=-1) * link
            return tilted

        if coarse:
            n = self._mean_sums(n, posterior, lambda k: moment(k, 1) + centres[:, k, None] * posterior)
        total = self.counts.total_concentration + n
        for k in range(categories):
            first, second = moment(k, 1), moment(k, 2)
            concentration, centre = self.counts.concentration[k], centres[:, k]
            reference = (concentration + centre) / (self.counts.total_concentration + mean_n[:, 0])
            shift = n - mean_n
            r = reference[:, None]
            # E (d_k - r D) / D, N by N, about the reference.
            offset = (first - r * shift * posterior) / total
            square = (second - 2.0 * r * shift * first + (r * shift) ** 2 * posterior) / total**2
            mean_offset = np.sum(offset, axis=1)
            # (3): the variance of E(p_k | c), and the mean of Var(p_k | c), in powers of d_k / D - r.
            between = np.sum(square, axis=1) - mean_offset**2
            within = (r * (1.0 - r) * posterior + (1.0 - 2.0 * r) * offset - square) / (total + 1.0)
            mean[:, k] = reference + mean_offset
            sd[:, k] = np.sqrt(np.maximum(between, 0.0) + np.maximum(np.sum(within, axis=1), 0.0))
        return mean, sd

    def _mean_sums(self, n: Floats, posterior: Floats, first: Callable[[int], Floats]) -> Floats:
        """Mean sums at grid points: the points themselves, but for the first few, where counts begin at 0."""
        near = (n < np.sum(self.base, axis=1)[:, None] + GRADED * self.step[:, None]) & (posterior > 0.0)
        near &= self.step[:, None] > 1.0
        if not np.any(near):
            return n
        total = np.zeros_like(n)
        for k in range(self.tables.shape[1]):
            total += first(k)
        return np.divide(np.maximum(total, 0.0), posterior, out=n.copy(), where=near)

    def _moment_table(self, k: int, centre: Floats, power: int) -> Floats:
        """The rows' moments about a centre, split between grid points like their masses."""
        rows = np.arange(len(centre)) * self.counts.shape[1] + k
        moment = (self.nodes[rows] - centre[:, None]) ** power * self.mass[rows]
        table = on_grid(self.nodes[rows], moment, self.base[:, k], self.step)
        return np.pad(table, ((0, 0), (0, max(0, self.tables.shape[2] - table.shape[1]))))


@dataclass(frozen=True, slots=True, kw_only=True)
class PosteriorOfN:
    """The posterior of N in a batch of cells, and how it ends where the FFT stops to resolve it.

    Attributes
    ----------
    n, probability, density : ndarray of shape (n_cells, size)
        Grid points, posterior probabilities, and the density of the rows' sum.
    log_evidence, log_peak : ndarray of shape (n_cells,)
        Log of the sum and of the maximum of the joint weight W, as a function of N.
    first, last, log_first, log_last : ndarray of shape (n_cells,)
        The ends of what is resolved and log W there; minus infinity where nothing lies beyond.
    """

    n: Floats
    probability: Floats
    density: Floats
    log_evidence: Floats
    log_peak: Floats
    first: Floats
    last: Floats
    log_first: Floats
    log_last: Floats

    def mass_below(self, n: Floats) -> Floats:
        """Posterior probabilities (n_cells,) of less than n."""
        mass: Floats = np.sum(np.where(self.n < n[:, None], self.probability, 0.0), axis=1)
        return mass

    def median(self) -> Floats:
        """The posterior median of N, (n_cells,)."""
        order = np.argsort(self.n, axis=1)
        cumulative = np.cumsum(np.take_along_axis(self.probability, order, axis=1), axis=1)
        middle = np.argmax(cumulative >= 0.5, axis=1)[:, None]
        median: Floats = np.take_along_axis(np.take_along_axis(self.n, order, axis=1), middle, axis=1)[:, 0]
        return median


def _beyond_the_end(
    weights: noisy_counts.CountWeights, edges: Floats, window: tuple[Floats, Floats], step: Floats
) -> tuple[noisy_counts.CountWeights, Floats]:
    """Rows and their blocks; on a coarse grid, those that reach the largest N go on for two steps.

    A point of the sum stands for sums within a step of it. Counts beyond the largest N are in these as the
    smaller ones are: without them that N would lack half of what leads to it where one count is all.
    """
    low, high = window
    ends = (step > 1.0) & (high >= weights.n)
    if not np.any(ends):
        return weights, edges
    weights = replace(weights, n=np.where(ends, weights.n + 2.0 * step, weights.n))
    high = np.where(ends, weights.n, high)
    longest = np.minimum(step, noisy_counts.block_step(high - low + 1.0, TABLE_BLOCKS))
    return weights, weights.blocks(low, high, longest)


def _span_of_sum(
    weights: noisy_counts.CountWeights, low: Floats, high: Floats, shape: tuple[int, ...], nats: float
) -> Floats:
    """How far the sum of the rows spreads: all of them, or Bernstein's bound where that is less."""
    edges = weights.blocks(low, high, noisy_counts.block_step(high - low + 1.0, 96))
    nodes, mass, _ = noisy_counts.masses(weights, edges)
    mean = np.sum(nodes * mass, axis=1, keepdims=True)
    variance = np.sum((nodes - mean) ** 2 * mass, axis=1).reshape(shape)
    width = (high - low + 1.0).reshape(shape)
    # Bernstein: P(|sum - mean| > x) <= 2 e^(-x^2 / 2 (V + w x / 3)) for terms within w.
    bernstein = 2.0 * (np.max(width, axis=1) + np.sqrt(2.0 * nats * np.sum(variance, axis=1)))
    span: Floats = np.minimum(np.sum(width, axis=1), bernstein)
    return span


def _hat_integral(x: Floats) -> Floats:
    """Integral of the triangle on -1..1 up to x."""
    inside = np.clip(x, -1.0, 1.0)
    return np.where(inside < 0.0, (1.0 + inside) ** 2 / 2.0, 1.0 - (1.0 - inside) ** 2 / 2.0)


def products_of_others(
    transforms: NDArray[np.complex128],
) -> tuple[list[NDArray[np.complex128]], list[NDArray[np.complex128]]]:
    """For every row, the products of the transforms before it and of those after it."""
    categories = transforms.shape[1]
    before = [np.ones_like(transforms[:, 0])]
    after = [np.ones_like(transforms[:, 0])]
    for k in range(categories - 1):
        before.append(before[-1] * transforms[:, k])
        after.insert(0, after[0] * transforms[:, categories - 1 - k])
    return before, after
