r"""Exact posteriors of a normal's mean and variance when N and the sums are latent behind Laplace noise.

.. math::
    p(N, t, q \mid y) \propto \pi(N)\, p(t, q \mid N) \prod_j e^{-|y_j - L_j(N, t, q)| / b_j},
    \qquad (\mu, \sigma^2) \mid N, t, q \sim \mathrm{NIG}

with L_j linear. N = 0 is a point and N = 1 a curve (q = t^2), both with their own weight. Why this is exact,
and how near to exact the integrals are: docs/decisions/0014-latent-moments-exactly.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from suffice.pipeline.math.engines.normal.boxes import SHARE, cover
from suffice.pipeline.math.engines.normal.integrals import Given, integrate, mean_moments, variance_moments
from suffice.pipeline.math.engines.normal.marginal_quantiles import MarginalMixture
from suffice.pipeline.math.engines.normal.sampling import sample_parameters, sample_sums
from suffice.pipeline.math.engines.normal.weights import MomentWeights

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from suffice.pipeline.math.engines.normal.noisy_moments import NoisyMoments
    from suffice.pipeline.math.engines.normal.weights import Boxes
    from suffice.typing import Cells, Floats


_CELLS, _TOGETHER = 32, 96
"""Cells, and parts of the prior in all of them, that are worked on together: their boxes stay in caches."""


@dataclass(frozen=True, kw_only=True)
class MomentPosterior:
    """The posterior of every cell, in half ranges about the centre.

    Attributes
    ----------
    noisy : NoisyMoments
        What it is the posterior of.
    share : float
        How fine the boxes are: no box that could be halved has more of its cell's mass. Where the prior is
        a mixture this counts by its parts, so that each is about as fine as it would be alone.
    levels : ndarray of shape (n_cells, n_levels), float64, or None
        Design effects, equally likely: rows count as that many times fewer independent ones.
    """

    noisy: NoisyMoments
    share: float = SHARE
    levels: Floats | None = None

    @property
    def n(self) -> Floats:
        """Posterior means of N, (n_cells,), over the design effect where there are levels."""
        return self._integrals[4]

    @property
    def mean(self) -> Floats:
        """Posterior means of mean and variance, (n_cells, 2); NaN or infinite where there are none."""
        return self._integrals[0]

    @property
    def sd(self) -> Floats:
        """Posterior standard deviations of mean and variance, (n_cells, 2); infinite where there are none."""
        return self._integrals[1]

    @property
    def log_evidence(self) -> Floats:
        """Log densities of the noisy components, in records, under the prior: (n_cells,)."""
        return self._integrals[2]

    def take(self, cells: Cells) -> Self:
        """Return the posterior of some cells, ascending."""
        levels = None if self.levels is None else self.levels[cells]
        return replace(self, noisy=self.noisy.take(cells), levels=levels)

    def quantiles(self, parameter: int, q: Sequence[float]) -> Floats:
        """Quantiles of the mean (0) or the variance (1), (n_cells, len(q)), from the integrals."""
        return self.marginal(parameter).quantiles(q, self.noisy.totals.n_cells)

    def marginal(self, parameter: int) -> MarginalMixture:
        """The distribution of the mean (0) or the variance (1) of every cell."""
        return self._integrals[3][parameter]

    @cached_property
    def _integrals(
        self,
    ) -> tuple[Floats, Floats, Floats, tuple[MarginalMixture, MarginalMixture], Floats]:
        """Means, standard deviations, log evidence, marginal distributions and N: draws need none of them."""
        shape = (self.noisy.totals.n_cells, 2)
        mean, sd, log_evidence, n = np.empty(shape), np.empty(shape), np.empty(shape[0]), np.empty(shape[0])
        means, variances, starts = [], [], []
        for cells in _batches(self.noisy):
            weights = MomentWeights.of(self.noisy.take(cells))
            levels = None if self.levels is None else self.levels[cells]
            nodes = integrate(weights, self._cover(weights)[0], levels)
            mean[cells, 0], sd[cells, 0] = mean_moments(nodes, len(cells))
            mean[cells, 1], sd[cells, 1] = variance_moments(nodes, len(cells))
            log_evidence[cells] = nodes.log_evidence + np.sum(np.log(self.noisy.totals.rate / 2.0))
            n[cells] = np.bincount(nodes.cell, nodes.weight * nodes.n, len(cells))
            means.append(MarginalMixture.of_mean(nodes, len(cells)))
            variances.append(MarginalMixture.of_variance(nodes, len(cells)))
            starts.append(int(cells[0]))
        # The smallest N has positive probability, so its tails decide which moments there are.
        least = self.noisy.least_concentration
        mean[:, 0] = np.where(least > 0.5, mean[:, 0], np.nan)
        mean[:, 1] = np.where(least > 1.0, mean[:, 1], np.inf)
        sd = np.where(np.array([least > 1.0, least > 2.0]), sd, np.inf)
        return (
            mean,
            sd,
            log_evidence,
            (MarginalMixture.joined(means, starts), MarginalMixture.joined(variances, starts)),
            n,
        )

    def sample_given(self, draws: int, rng: np.random.Generator) -> Given:
        """Conjugate distributions given independent draws of the latent sums: arrays (draws, n_cells)."""
        parts = np.empty((4, draws, self.noisy.totals.n_cells))
        for cells in _batches(self.noisy):
            weights = MomentWeights.of(self.noisy.take(cells))
            given = self._given(weights, cells, draws, rng)
            parts[:, :, cells] = [given.loc, given.precision, given.concentration, given.scale]
        loc, precision, concentration, scale = parts
        return Given(loc=loc, precision=precision, concentration=concentration, scale=scale)

    def sample(self, draws: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Independent joint draws of mean and variance, each (draws, n_cells)."""
        mean = np.empty((draws, self.noisy.totals.n_cells))
        variance = np.empty_like(mean)
        for cells in _batches(self.noisy):
            weights = MomentWeights.of(self.noisy.take(cells))
            mean[:, cells], variance[:, cells] = sample_parameters(
                self._given(weights, cells, draws, rng), rng
            )
        return mean, variance

    def _given(self, weights: MomentWeights, cells: Cells, draws: int, rng: np.random.Generator) -> Given:
        """Conjugate distributions given draws of the latent sums of some cells: arrays (draws, n_cells)."""
        sums, part = sample_sums(weights, *self._cover(weights), draws, rng)
        n, mean, log_e = np.moveaxis(sums.swapaxes(0, 1), -1, 0)
        if self.levels is not None:
            own = self.levels[cells]
            n = n / own[np.arange(len(cells)), rng.integers(own.shape[1], size=n.shape)]
        return Given.of(weights.noisy.prior.at(part.T), n, mean, log_e)

    def _cover(self, weights: MomentWeights) -> tuple[Boxes, Floats]:
        """Boxes of some cells, and the log of a bound of the mass on each."""
        return cover(weights, self.share / weights.noisy.prior.n_parts)


def _batches(noisy: NoisyMoments) -> Iterator[Cells]:
    """Consecutive cells that fit into memory together."""
    cells = np.arange(noisy.totals.n_cells)
    step = min(_CELLS, max(1, _TOGETHER // noisy.prior.n_parts))
    for start in range(0, len(cells), step):
        yield cells[start : start + step]
