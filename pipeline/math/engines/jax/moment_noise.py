"""What a release says of N rows' moments: the density of its noise at every N, and estimates to start at."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import jax.numpy as jnp
import numpy as np

from suffice.pipeline.math.engines.jax.windows import NATS, require_terms, window_of_n
from suffice.pipeline.math.engines.multivariate.posterior import noisy_moments, require_rows
from suffice.pipeline.terms.statistics.moment_columns import is_linear, least_rows
from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.normal.noisy_moments import NoisyMoments
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats


_LEAST_SPREAD = 1e-12
"""Of the scatter that the released values suggest, where there is next to no noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What was released of N rows of d columns, in half ranges, and what it suggests.

    Attributes
    ----------
    scaled : NoisyTotals
        The released values in units of the noise, as linear functions of N times (1, m, m m^T + E by rows of
        its upper triangle).
    linear : bool
        Whether there are means; without, rows are normal about 0 and E is their mean product.
    n, log_pi : ndarray of shape (n_cells, n_numbers), float64
        Numbers of rows, and the logs of their prior.
    rows : ndarray of shape (n_cells, 1), float64
        About how many rows there are.
    mean, root : ndarray of shapes (n_cells, d) and (n_cells, d, d), float64
        About m, and a root of about E.
    mean_noise, spread_noise : ndarray, shaped as mean and root
        About how far the noise leaves them uncertain.
    """

    scaled: NoisyTotals
    linear: bool
    n: Floats
    log_pi: Floats
    rows: Floats
    mean: Floats
    root: Floats
    mean_noise: Floats
    spread_noise: Floats

    @classmethod
    def of_one_column(cls, statistic: NoisyStatistic, noisy: NoisyMoments) -> Self:
        """Return what was released of one column."""
        return cls._of(statistic, noisy.totals, noisy.n_prior, size=1, linear=True, least=0)

    @classmethod
    def of_columns(cls, statistic: NoisyStatistic, prior: NPrior) -> Self:
        """Return what was released of several columns."""
        constants = statistic.plan.parameters
        size, least = len(constants.columns), least_rows(constants)
        require_rows(prior, size, least)
        totals, linear = noisy_moments(statistic), is_linear(constants)
        return cls._of(statistic, totals, prior, size=size, linear=linear, least=least)

    @classmethod
    def _of(
        cls,
        statistic: NoisyStatistic,
        totals: NoisyTotals,
        prior: NPrior,
        *,
        size: int,
        linear: bool,
        least: int,
    ) -> Self:
        """Return what was released, at unbiased estimates of the moments."""
        known_n = statistic.known_n if statistic.plan.design is Design.MINIMAL else None
        scaled = totals.in_scales()
        moments, noise, reach = _estimates(scaled, known_n)
        n, log_pi = window_of_n(moments[:, 0], reach, prior, least)
        require_terms(n.size * (len(scaled.scale) + size**2 * (size + 1)))
        rows = np.clip(moments[:, :1], max(least, 2, prior.support[0]), max(2, prior.support[1]))
        mean = np.clip(moments[:, 1 : 1 + size] / rows, -1.0, 1.0)
        second, second_noise = (
            _symmetric(part, size) for part in (moments[:, 1 + size :], noise[None, 1 + size :])
        )
        of_n, of_total = noise[0], noise[1 : 1 + size]
        mean_noise = (of_total + np.abs(mean) * of_n) / rows
        cross = np.abs(mean)[:, :, None] * of_total
        product = mean[:, :, None] * mean[:, None, :]
        spread_noise = second_noise + cross + np.swapaxes(cross, 1, 2) + np.abs(product) * of_n
        spread_noise = spread_noise / rows[:, :, None]
        values, vectors = np.linalg.eigh(second / rows[:, :, None] - product)
        floor = _LEAST_SPREAD + 0.5 * np.max(np.einsum("cii->ci", spread_noise), axis=1, keepdims=True)
        values = np.where(values > floor, values, np.minimum(floor, 1.0))
        root = np.linalg.cholesky((vectors * values[:, None, :]) @ np.swapaxes(vectors, 1, 2))
        return cls(
            scaled=scaled,
            linear=linear,
            n=n,
            log_pi=log_pi,
            rows=rows,
            mean=mean,
            root=root,
            mean_noise=mean_noise,
            spread_noise=spread_noise,
        )

    @property
    def size(self) -> int:
        """The number of columns, d."""
        return int(self.mean.shape[1])

    @property
    def free(self) -> Floats:
        """Degrees of freedom of the scatter, (n_cells, n_numbers); one row has as many as two."""
        return np.maximum(self.n, 2.0) - 1.0 if self.linear else self.n

    def log_noise(self, mean: Any, root: Any) -> Any:
        """Log density of the noise for every N, (n_cells, n_numbers), up to a constant."""
        log_noise = self._log_noise(mean, root @ jnp.swapaxes(root, 1, 2))
        if self.n.min() > 1.0:
            return log_noise
        return jnp.where(self.n > 1.0, log_noise, self._log_noise(mean, jnp.zeros_like(root)))

    def _log_noise(self, mean: Any, spread: Any) -> Any:
        rows, columns = np.triu_indices(self.size)
        second = spread + mean[:, :, None] * mean[:, None, :]
        moments = jnp.concatenate([jnp.ones((len(mean), 1)), mean, second[:, rows, columns]], axis=1)
        per_row = moments @ self.scaled.coefficients.T
        log_noise = jnp.zeros(self.n.shape)
        for component in range(len(self.scaled.scale)):
            expected = self.n * per_row[:, component, None]
            log_noise -= jnp.abs(self.scaled.values[:, component, None] - expected)
        return log_noise


def _estimates(scaled: NoisyTotals, known_n: int | None) -> tuple[Floats, Floats, int]:
    """Return unbiased moments (n_cells, n_moments), the standard deviations of their noise, and N's reach.

    Beyond its reach about its estimate N is ruled out by the noise: the components' distances add up to at
    least N's over its largest weight.
    """
    components, observed = scaled.coefficients, scaled.values
    used = np.flatnonzero(np.any(components != 0.0, axis=0))
    moments, noise = np.zeros((len(observed), components.shape[1])), np.zeros(components.shape[1])
    reach = 0
    if known_n is not None:
        used = used[used > 0]
        observed = observed - known_n * components[:, 0]
        moments[:, 0] = known_n
    inverse = np.linalg.inv(components[:, used])
    moments[:, used] = observed @ inverse.T
    noise[used] = math.sqrt(2.0) * np.linalg.norm(inverse, axis=1)
    if known_n is None:
        reach = math.ceil(2.0 * NATS * np.max(np.abs(inverse[0])))
    return moments, noise, reach


def _symmetric(triangle: Floats, size: int) -> Floats:
    """Matrices (n, size, size) of upper triangles, by rows."""
    rows, columns = np.triu_indices(size)
    matrix = np.empty((len(triangle), size, size))
    matrix[:, rows, columns] = matrix[:, columns, rows] = triangle
    return matrix
