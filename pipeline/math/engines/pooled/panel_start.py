r"""About where a panel is: normal likelihoods of cells, no map, and the common walk as one more walk.

Model. Of cells :math:`\hat x_{it}` with the precisions :math:`T_i`, and :math:`\theta_t = m + \gamma_t`,

.. math:: \hat x_i \sim \mathrm{Normal}(\theta, \Sigma_i + T_i^{-1}), \qquad
    \theta \sim \mathrm{Normal}(m_0, \upsilon + \kappa^2 V V'), \qquad (1)

with :math:`\Sigma_i` of ``panel``, in which s stands for the field and for places' own parts together. The
mode of (log d, log s) is of some of the series; means and variances of all z at three d place the points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.pooled.hyper_lattice import mode_and_covariance
from suffice.pipeline.math.engines.pooled.jump_sets import jump_sets
from suffice.pipeline.math.engines.pooled.panel import responses

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.pooled.hyperpriors import LocationPrior
    from suffice.pipeline.math.engines.pooled.panel_common import CommonWalk
    from suffice.typing import Floats

_FIRST_CELLS = 1_000
_NEGLIGIBLE_SET = 0.05
_AT_ONCE = 4_000_000
_FAR = (-2.5, 0.0, 1.5)
"""Where d is taken to place points, in standard deviations of its logarithm."""
_LOWEST, _HIGHEST = -9.0, 2.5
"""Of log d, over that of the scale of its hyperprior; and of log s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelStart:
    """Cells under normal approximations of their likelihoods.

    Attributes
    ----------
    mean, precision : ndarray of shape (n_series, n_times), float64
    location : LocationPrior
    common_walk : CommonWalk
    step_scale : float
    """

    mean: Floats
    precision: Floats
    location: LocationPrior
    common_walk: CommonWalk
    step_scale: float

    def _sums(self, step: float, spread: float, few: slice) -> tuple[float, Floats, Floats]:
        """Return log evidence of some series given theta = 0, and H and h of theta."""
        n_times = self.mean.shape[1]
        mean, tau = self.mean[few], self.precision[few]
        total, precision, linear = 0.0, np.zeros((n_times, n_times)), np.zeros(n_times)
        at_once = max(1, _AT_ONCE // n_times**2)
        for start in range(0, len(mean), at_once):
            rows = slice(start, start + at_once)
            steps = np.full((len(mean[rows]), n_times - 1), step**2)
            _, matrix = responses(tau[rows], steps, np.full(len(steps), spread**2), self.common_walk.anchor)
            row = np.einsum("nij,nj->ni", matrix, mean[rows])
            is_told = tau[rows] > 0.0
            safe = np.where(is_told[:, :, None] & is_told[:, None, :], matrix, np.eye(n_times))
            total += 0.5 * float(np.sum(np.linalg.slogdet(safe)[1]) - np.sum(mean[rows] * row))
            precision += np.sum(matrix, axis=0)
            linear += np.sum(row, axis=0)
        return total, precision, linear

    def _path(self, precision: Floats, linear: Floats) -> tuple[Floats, float]:
        """Return the posterior mean of theta, and log evidence beside that of theta = 0."""
        moves = self.common_walk.moves
        prior = self.common_walk.scale**2 * moves @ moves.T + 1.0 / self.location.precision
        centre = np.full(len(linear), self.location.centre)
        matrix = np.eye(len(linear)) + prior @ precision
        mean = centre + np.linalg.solve(matrix, prior @ (linear - precision @ centre))
        value = 0.5 * float(linear @ mean + centre @ (linear - precision @ mean))
        return mean, value - 0.5 * float(np.linalg.slogdet(matrix)[1])

    def _log_prior(self, theta: Floats) -> float:
        log_step = theta[0] - np.log(self.step_scale)
        if not (_LOWEST < log_step < _HIGHEST and _LOWEST < theta[1] < _HIGHEST):
            return -1e10
        return float(theta[0] - 0.5 * np.exp(2.0 * log_step) + theta[1] - 0.5 * np.exp(2.0 * theta[1]))

    def mode(self) -> tuple[Floats, Floats]:
        """Return about where log d and log s are, and their covariance if all series were like a part.

        First steps are normal; then, about the path that follows, sets of them may be jumps, which would
        otherwise be taken for large steps.
        """
        n_series, n_times = self.mean.shape
        n_few = int(np.clip(_FIRST_CELLS // n_times, min(n_series, 10), n_series))
        few = slice(0, n_series, max(1, n_series // n_few))

        def loss(theta: Floats) -> float:
            log_prior = self._log_prior(theta)
            if log_prior <= -1e10:
                return 1e10
            total, precision, linear = self._sums(float(np.exp(theta[0])), float(np.exp(theta[1])), few)
            return -(total + self._path(precision, linear)[1] + log_prior)

        mode, covariance = mode_and_covariance(loss, [np.log(0.3 * self.step_scale), -0.7], [0.7, 0.7])
        if self.common_walk.jumps:
            part = replace(self, mean=self.mean[few] - self.path(mode), precision=self.precision[few])

            def loss_with_jumps(theta: Floats) -> float:
                log_prior = self._log_prior(theta)
                return 1e10 if log_prior <= -1e10 else -(part.with_jumps(theta) + log_prior)

            mode, covariance = mode_and_covariance(loss_with_jumps, mode.tolist(), [-0.7, 0.3])
        return mode, covariance * len(self.mean[few]) / n_series

    def with_jumps(self, theta: Floats) -> float:
        """Return log evidence of series about a path of 0, of which sets of steps may be jumps."""
        step, spread = float(np.exp(theta[0])), float(np.exp(theta[1]))
        total = float(self._sums(step, spread, slice(None))[0])
        n_times, jumps, moves = self.mean.shape[1], self.common_walk.jumps, self.common_walk.moves
        prior = spread**2 + step**2 * moves @ moves.T
        for mean, tau in zip(self.mean, self.precision, strict=True):
            sets = jump_sets(prior, np.diag(tau), tau * mean, moves, jumps, _NEGLIGIBLE_SET)
            total += float(np.logaddexp.reduce(sets.log_weight))
        return float(total + len(self.mean) * (n_times - 1) * np.log1p(-jumps))

    def path(self, theta: Floats) -> Floats:
        """Return about m + gamma at log d and log s, (n_times,)."""
        _, precision, linear = self._sums(float(np.exp(theta[0])), float(np.exp(theta[1])), slice(None))
        return self._path(precision, linear)[0]

    def smooth(self, theta: Floats, sd: float, path: Floats) -> tuple[Floats, Floats]:
        """Return means and variances of z at some d, (n_steps, n_series, n_times) each."""
        level, common = path[self.common_walk.anchor], path - path[self.common_walk.anchor]
        means, variances = [], []
        for far in _FAR:
            step = float(np.exp(max(theta[0] + far * sd, np.log(self.step_scale) + _LOWEST)))
            steps = np.full((len(self.mean), self.mean.shape[1] - 1), step**2)
            spread = np.full(len(self.mean), np.exp(2.0 * theta[1]))
            sigma, matrix = responses(self.precision, steps, spread, self.common_walk.anchor)
            gap = self.mean - common - level
            means.append(level + np.einsum("nij,njk,nk->ni", sigma, matrix, gap, optimize=True))
            whole = np.einsum("nij,njk,nki->ni", sigma, matrix, sigma, optimize=True)
            variances.append(np.maximum(np.einsum("nii->ni", sigma) - whole, 1e-9))
        return np.array(means), np.array(variances)
