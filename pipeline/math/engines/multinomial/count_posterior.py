r"""Exact posteriors of category probabilities when the counts are latent behind discrete Laplace noise.

Model: with noisy counts :math:`y_k = c_k + \mathrm{DLap}(b)`, a Dirichlet prior and a public prior of N,

.. math::
    P(c \mid y) \propto \pi(N) \frac{N!}{\Gamma(A + N)}
        \prod_k \frac{\Gamma(\alpha_k + c_k)}{\Gamma(\alpha_k)\, c_k!} e^{-|y_k - c_k| / b},
    \quad N = \sum_k c_k, \; A = \sum_k \alpha_k \qquad (1)

    p \mid c \sim \mathrm{Dirichlet}(\alpha + c) \qquad (2)

The question is the posterior of p. **The engine is chosen here** (``count_posterior``): two counts with a
known sum are one table; under a flat prior with N private the counts are a mixture over tilts
(``flat_prior``); everything else is convolved (``convolution``), in as many pieces of the range of N as it
takes,

.. math:: p(p \mid y) = \sum_i P(N \in I_i \mid y) \, p(p \mid y, N \in I_i) \qquad (3)

Where the grid of N is the integers moments agree with enumeration to 1e-8 sd. Coarser ones have sds off by
7e-5 at most where N is private. Those of a category that holds nearly all of a public N are too wide, by 2 %
of 3 categories and some 6 % of 200. Pieces with less than 1e-9 of the highest weight are left out. The
density of one probability follows from the joint posterior of a count and N,

.. math::
    p(p_k \mid y) = \sum_{m, N} P(c_k = m, N \mid y) \, \mathrm{Beta}(p_k; \alpha_k + m, A - \alpha_k + N - m)
    \qquad (4)

    P(c_k = m, N) \propto t_k(m) \, r_k(N - m) \, l(N) \qquad (5)

with the tilted row t of the count, the sum r of the other rows by FFT, and the link l of N. Quantiles and
densities are those of (4), by few pairs and with an error (``marginals``). Why moments are exact, where they
are only nearly so and by how much: docs/decisions/0006-latent-counts-exactly.md.

======= =================== ============================== ========================= ======
symbol  in the code         meaning                        shape                     unit
======= =================== ============================== ========================= ======
c       ``counts``          latent counts                  (draws, n_cells, K)       rows
I_i     ``pieces.support``  pieces of the range of N       (n_pieces, 2)             rows
alpha   ``concentration``   of the prior                   (K,)                      none
A       ``total``           their sum                      scalar                    none
======= =================== ============================== ========================= ======
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.distributions import dirichlet
from suffice.pipeline.math.distributions.composite import Probabilities
from suffice.pipeline.math.engines.multinomial import marginals, noisy_counts, sampling
from suffice.pipeline.math.engines.multinomial.convolution import MAX_GRID, CountSums
from suffice.pipeline.math.engines.multinomial.flat_prior import TiltMixture, has_tilts, resolve
from suffice.pipeline.math.engines.multinomial.sampling import count_sampler

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from suffice.typing import Cells, Floats

_BATCH_NUMBERS = 2**20
_NEGLIGIBLE = np.log(1e-9)
_MOST_ROUNDS = 60
_COSTLY = 12.0
_LOG_RARE = np.log(1e-3)
_FINE = 128.0
"""Steps of the grid below which N is resolved anew, on a finer grid."""
_TOLERABLE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class PiecePosterior:
    """The posterior of every cell, as a mixture over pieces of the range of N.

    Attributes
    ----------
    pieces : NoisyCounts
        The cells, once for every piece, each with the range of N of its piece.
    cell : ndarray of shape (n_pieces,), int64
        The cell that a piece is of; ascending.
    tilt, share : ndarray of shape (n_pieces,), float64
        The piece's tilt and its posterior probability in its cell.
    mean, sd : ndarray of shape (n_cells, n_categories), float64
        Posterior mean and standard deviation of every probability.
    log_evidence : ndarray of shape (n_cells,), float64
        Log probability of the noisy counts under the priors, but for a constant of the noise alone.
    """

    pieces: noisy_counts.NoisyCounts
    cell: Cells
    tilt: Floats
    share: Floats
    mean: Floats
    sd: Floats
    log_evidence: Floats

    def sample_counts(self, draws: int, rng: np.random.Generator) -> Floats:
        """Independent draws of the latent counts, (draws, n_cells, n_categories), float64 integers.

        Exact where the grid of N is the integers; see ``sampling``.
        """
        cells = len(self.mean)
        result = np.empty((self.mean.shape[1], cells * draws))
        piece_of = self._pieces_of_draws(draws, rng)
        order = np.argsort(piece_of, kind="stable")
        starts = np.searchsorted(piece_of[order], np.arange(len(self.cell) + 1))
        for batch in _batches(self.pieces, self.tilt):
            slots = order[starts[batch[0]] : starts[batch[-1] + 1]]
            local = piece_of[slots] - batch[0]
            part = self.pieces.take(batch)
            if part.is_pair:
                weights = noisy_counts.pair_rows(part)
                first = count_sampler(weights, noisy_counts.pair_blocks(weights)).sample(local, rng)
                result[0, slots], result[1, slots] = first, part.support[0, 0] - first
            else:
                result[:, slots] = sampling.sample(CountSums.of(part, self.tilt[batch]), local, rng)
        return result.reshape(-1, cells, draws).transpose(2, 1, 0)

    def _pieces_of_draws(self, draws: int, rng: np.random.Generator) -> Cells:
        """A piece for every draw of every cell, cell by cell."""
        cells = np.repeat(np.arange(len(self.mean)), draws)
        if len(self.cell) == len(self.mean):
            return cells
        before = np.cumsum(self.share) - self.share
        offset = before[np.searchsorted(self.cell, cells)]
        ends = before + self.share
        # A draw of (3) is one of piece i with its posterior probability.
        chosen = np.searchsorted(ends, offset + rng.random(len(cells)), side="right")
        first, after = np.searchsorted(self.cell, cells), np.searchsorted(self.cell, cells, side="right")
        pieces: Cells = np.clip(chosen, first, after - 1)
        return pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class CountPosterior:
    """The posterior of every cell; made by ``count_posterior``.

    Attributes
    ----------
    counts : NoisyCounts
        What was given.
    parts : tuple of (ndarray of shape (n_cells of the part,), PiecePosterior or TiltMixture)
        Cells, and the distribution of their counts: every cell is in one part.
    """

    counts: noisy_counts.NoisyCounts
    parts: tuple[tuple[Cells, PiecePosterior | TiltMixture], ...]

    @property
    def mean(self) -> Floats:
        """Posterior means of the probabilities, (n_cells, n_categories)."""
        return self._joined([distribution.mean for _, distribution in self.parts])

    @property
    def sd(self) -> Floats:
        """Posterior standard deviations, shaped as the means."""
        return self._joined([distribution.sd for _, distribution in self.parts])

    @property
    def log_evidence(self) -> Floats:
        """Log probability of the noisy counts, (n_cells,), but for a constant of the noise alone."""
        return self._joined([distribution.log_evidence for _, distribution in self.parts])

    def sample_counts(self, draws: int, rng: np.random.Generator) -> Floats:
        """Independent draws of the latent counts, (draws, n_cells, n_categories), float64 integers.

        Exact, but where a grid of N is not the integers; see ``sampling``.
        """
        drawn = [distribution.sample_counts(draws, rng) for _, distribution in self.parts]
        if len(drawn) == 1:
            return drawn[0]
        # As every part: cells and draws of one category lie together in memory.
        joined = np.empty((drawn[0].shape[2], self.counts.totals.n_cells, draws)).transpose(2, 1, 0)
        for (cells, _), each in zip(self.parts, drawn, strict=True):
            joined[:, cells] = each
        return joined

    @property
    def prior_concentration(self) -> Floats:
        """Of the prior, (n_categories,)."""
        return self.counts.concentration

    @property
    def block(self) -> Cells:
        """Which distribution a category is of, (n_categories,): there is one."""
        return np.zeros(len(self.counts.concentration), dtype=np.int64)

    def sample_given(self, draws: int, rng: np.random.Generator) -> Floats:
        """Concentrations given independent draws of the counts, (draws, n_cells, n_categories)."""
        given: Floats = self.counts.concentration + self.sample_counts(draws, rng)
        return given

    def sample(self, draws: int, rng: np.random.Generator) -> Floats:
        """Independent draws of the probabilities, (draws, n_cells, n_categories)."""
        return dirichlet.sample_dirichlet(self.sample_given(draws, rng), rng)

    def _joined(self, parts: list[Floats]) -> Floats:
        """What the parts say, cell by cell."""
        if len(parts) == 1:
            return parts[0]
        joined = np.empty((self.counts.totals.n_cells, *parts[0].shape[1:]))
        for (cells, _), part in zip(self.parts, parts, strict=True):
            joined[cells] = part
        return joined


def count_posterior(counts: noisy_counts.NoisyCounts) -> CountPosterior:
    """Sum up the moments of every cell: over tilts where the prior allows it, else over pieces of N.

    Raises
    ------
    PriorError
        Where the posterior of N needs more pieces than is sensible: a prior that is far stronger than the
        noise is small.
    """
    parts: list[tuple[Cells, PiecePosterior | TiltMixture]] = []
    left = np.arange(counts.totals.n_cells)
    # The choice of the engine: a mixture over tilts is the fastest, where the prior allows it.
    if has_tilts(counts):
        mixture, inside = resolve(counts)
        resolved, left = np.flatnonzero(inside), np.flatnonzero(~inside)
        if resolved.size:
            parts.append((resolved, mixture if not left.size else mixture.take(resolved)))
    if left.size or not parts:
        part = counts if not parts else counts.take(left)
        parts.append((left, _pair_posterior(part) if part.is_pair else piece_posterior(part)))
    return CountPosterior(counts=counts, parts=tuple(parts))


def piece_posterior(counts: noisy_counts.NoisyCounts) -> PiecePosterior:
    """Resolve the posterior of N in every cell, in as many pieces as that takes; see ``count_posterior``."""
    best = np.full(counts.totals.n_cells, -np.inf)
    todo, support = np.arange(counts.totals.n_cells), counts.support
    pieces: list[tuple[Cells | Floats, ...]] = []
    for _round in range(_MOST_ROUNDS):
        part = counts.take(todo, support)
        # Under the balanced tilt the sum of the rows is likeliest where the posterior of N is: the FFT sees
        # it.
        tilt = noisy_counts.balanced_tilt(part)
        further: list[tuple[Cells, Floats, Floats]] = []
        for batch in _batches(part, tilt):
            sums = CountSums.of(part.take(batch), tilt[batch])
            of_n = sums.posterior_of_n()
            cell, (low, high) = todo[batch], support[batch].T
            np.maximum.at(best, cell, of_n.log_peak)
            # What the FFT does not resolve may still matter: those N become pieces of their own, with a tilt
            # of their own.
            below = of_n.log_first > best[cell] + _NEGLIGIBLE
            above = of_n.log_last > best[cell] + _NEGLIGIBLE
            first = np.where(below, of_n.first, low)
            last = np.where(above, of_n.last, high)
            further.append((cell[below], low[below], first[below] - 1.0))
            further.append((cell[above], last[above] + 1.0, high[above]))
            # Where N spans several scales, no single tilt and no single step of the grid fits it all.
            costly = sampling.proposal_of(sums).cost > _COSTLY
            coarse = of_n.mass_below(_FINE * sums.step) * (sums.step > 1.0) > _TOLERABLE
            relevant = of_n.log_evidence > best[cell] + _LOG_RARE
            split = (coarse | (costly & relevant)) & (first < last)
            cut = np.where(coarse, _FINE * sums.step, of_n.median())
            cut = np.clip(cut, first, last - 1.0)
            further.append((cell[split], first[split], cut[split]))
            further.append((cell[split], cut[split] + 1.0, last[split]))
            ranges = np.stack([first, last], axis=1)
            columns = (cell, ranges, tilt[batch], of_n.log_evidence, *sums.moments(of_n))
            pieces.append(tuple(column[~split] for column in columns))
        todo = np.concatenate([cells for cells, _, _ in further])
        support = np.concatenate([np.stack([low, high], axis=1) for _, low, high in further])
        if not todo.size:
            return _mixture(counts, pieces)
    message = (
        "under this prior N is too uncertain to be resolved: give a narrower --n-prior or a weaker prior"
    )
    raise PriorError(message)


def _mixture(counts: noisy_counts.NoisyCounts, pieces: list[tuple[Cells | Floats, ...]]) -> PiecePosterior:
    """Weigh the pieces of every cell by their evidence."""
    columns = [np.concatenate(column) for column in zip(*pieces, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    support, tilt, log_evidence, mean, sd = (column[order] for column in columns[1:])
    cell = columns[0][order].astype(np.int64)
    cells = counts.totals.n_cells
    top = np.full(cells, -np.inf)
    np.maximum.at(top, cell, log_evidence)
    share = np.exp(log_evidence - top[cell])
    evidence = np.bincount(cell, share, cells)
    share /= evidence[cell]
    overall = np.zeros(counts.shape)
    np.add.at(overall, cell, share[:, None] * mean)
    variance = np.zeros(counts.shape)
    np.add.at(variance, cell, share[:, None] * (sd**2 + (mean - overall[cell]) ** 2))
    return PiecePosterior(
        pieces=counts.take(cell, support),
        cell=cell,
        tilt=tilt,
        share=share,
        mean=overall,
        sd=np.sqrt(variance),
        log_evidence=top + np.log(evidence),
    )


def _batches(counts: noisy_counts.NoisyCounts, tilt: Floats) -> Iterator[Cells]:
    """Consecutive cells that fit into memory together."""
    cells, categories = counts.shape
    weights = noisy_counts.pair_rows(counts) if counts.is_pair else noisy_counts.rows_of(counts, tilt)
    low, high = weights.window()
    points = np.minimum(np.sum((high - low + 1.0).reshape(cells, -1), axis=1), MAX_GRID)
    start = 0
    while start < cells:
        ahead = points[start : start + _BATCH_NUMBERS // 256]
        needed = np.maximum.accumulate(ahead) * np.arange(1, len(ahead) + 1) * categories
        stop = start + max(1, int(np.searchsorted(needed, _BATCH_NUMBERS, side="right")))
        yield np.arange(start, min(stop, cells))
        start = stop


def _pair_posterior(counts: noisy_counts.NoisyCounts) -> PiecePosterior:
    """Two counts with a known sum: one table a cell."""
    cells = counts.totals.n_cells
    mean, sd, log_evidence = np.empty(counts.shape), np.empty(counts.shape), np.empty(cells)
    for batch in _batches(counts, np.zeros(cells)):
        weights = noisy_counts.pair_rows(counts.take(batch))
        nodes, mass, log_sum = noisy_counts.masses(weights, noisy_counts.pair_blocks(weights))
        # With N known, (1) is one row times a constant.
        log_evidence[batch] = log_sum + noisy_counts.log_factor_of_n(counts, weights.n)
        centre = np.sum(nodes * mass, axis=1)
        variance = np.sum((nodes - centre[:, None]) ** 2 * mass, axis=1)
        total = counts.total_concentration + weights.n
        mean[batch, 0] = (counts.concentration[0] + centre) / total
        mean[batch, 1] = (counts.concentration[1] + weights.n - centre) / total
        # Var p = Var E(p | c) + E Var(p | c), with E p (1 - p) = E p E(1 - p) - Var E(p | c).
        between = variance / total**2
        within = (mean[batch, 0] * mean[batch, 1] - between) / (total + 1.0)
        sd[batch] = np.sqrt(between + within)[:, None]
    return PiecePosterior(
        pieces=counts,
        cell=np.arange(cells),
        tilt=np.zeros(cells),
        share=np.ones(cells),
        mean=mean,
        sd=sd,
        log_evidence=log_evidence,
    )


# ruff: noqa: ARG002 - distributions share one interface, and none needs all of it


@dataclass(frozen=True, slots=True)
class CountsDistribution(Probabilities):
    """Probabilities of all categories behind latent counts."""

    posterior: CountPosterior

    @property
    def log_evidence(self) -> Floats:
        """Log probabilities of the noisy counts under the prior, (n_cells,), up to one constant."""
        return self.posterior.log_evidence

    @property
    def is_from_draws(self) -> bool:
        """Whether quantiles are those of draws."""
        return False

    def quantiles(self, parameter: str, q: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
        """Marginal quantiles by (4); of draws, in the cells whose law is not resolved (``level_errors``)."""
        return self._law(q, draws, rng)[0]

    def level_errors(self, draws: int, rng: np.random.Generator) -> Floats:
        """By how much the levels of quantiles are off, shaped as the means; see ``marginals``.

        In cells whose quantiles are those of draws, the standard error of the median's level.
        """
        return self._law((0.5,), draws, rng)[1]

    def density(self, parameter: str, points: Floats) -> Floats | None:
        """Marginal densities at points (n_cells, n_categories, n_points); None where N is not resolved."""
        if points.shape[1] == 1:
            # A single category has the probability 1, and no density.
            return np.zeros(points.shape)
        try:
            return marginals.marginal_densities(self.posterior.counts, points)
        except PriorError:
            return None

    def _law(self, q: Sequence[float], draws: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Quantiles, and the errors of their levels."""
        posterior = self.posterior
        if posterior.counts.shape[1] == 1:
            return np.ones((*posterior.counts.shape, len(q))), np.zeros(posterior.counts.shape)
        values, error = marginals.marginal_quantiles(posterior.counts, posterior.mean, posterior.sd, q)
        for cell in np.flatnonzero(~np.all(error <= marginals.TOLERANCE, axis=1)):
            drawn = count_posterior(posterior.counts.take(np.array([cell]))).sample(draws, rng)[:, 0]
            values[cell] = np.quantile(drawn, q, axis=0).T
            error[cell] = 0.5 / np.sqrt(draws)
        return values, error

    def prior_distribution(self) -> dirichlet.DirichletDistribution:
        """The prior, as the distribution of one cell."""
        return dirichlet.DirichletDistribution(concentration=self.posterior.prior_concentration[None])

    def mixture(self, draws: int, rng: np.random.Generator) -> dirichlet.DirichletDistribution:
        """Dirichlet distributions given draws of the latent counts, draw by draw, then by cell."""
        counts = self.posterior.sample_counts(draws, rng)
        # (2).
        concentration = self.posterior.prior_concentration + counts.reshape(-1, counts.shape[-1])
        return dirichlet.DirichletDistribution(concentration=concentration)
