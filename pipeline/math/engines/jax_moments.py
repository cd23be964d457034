r"""Likelihoods behind noisy first and second moments in JAX: N is summed, means and scatter are latent.

Model: in half ranges about the middle of the bounds, N normal rows of d columns with mean :math:`\mu` and
covariance :math:`\Sigma = C C^T` have mean m and mean scatter :math:`E = L L^T`. The question is a
likelihood for a sampler of the parameters. The distribution of

.. math:: g = C^{-1} (m - \mu), \qquad X = C^{-1} L \qquad (1)

given N does not depend on the parameters (Bartlett 1933): :math:`g_i` and :math:`X_{ij}`, j < i, are normal
with variance 1 / N, and :math:`N X_{ii}^2` is chi-squared with N - i degrees of freedom, i = 1..d. Given m
and E each released component is a multiple of N plus its noise, so N is summed, not sampled:

.. math:: p(y, g, X \mid \theta) = \sum_N \pi(N)\, p(g, X \mid N) \prod_j e^{-|y_j - N c_j(m, E)| / b_j}
    \qquad (2)

g, and the logarithms of the diagonal and the other entries of X, are affine in standard normal numbers u.
With :math:`\sigma_n` the noise of the released value, :math:`\sigma_s` the sampling error and z where the
release has the number,

.. math:: x = z \, \frac{s^2}{\sigma_n^2} + s u, \qquad s^{-2} = \sigma_n^{-2} + \sigma_s^{-2} \qquad (3)

    \log p(y, u \mid \theta) - \log \phi(u), \qquad \log p(u) = \log p(x) + \log s \qquad (4)

Any such map is exact, and this one leaves u about standard normal given the parameters. What is returned is
(4), whose exponential's mean over u is the likelihood (Carlin and Chib 1995). In one column N may be 0 or
1, where m and E, or E, do not exist: there u stays standard normal, and the components do not depend on it.

========== ====================== ================================= ======================= ============
symbol     in the code            meaning                           shape                   unit
========== ====================== ================================= ======================= ============
m, L       ``mean``, ``root``     latent mean, root of E            (n_cells, d), (.., d)   half ranges
g          ``g``                  standardised mean                 (n_cells, d)            none
X          ``log_diagonal``,      root of the standardised scatter  (n_cells, d),           none
           ``below``                                                (n_cells, n_pairs)
u          ``latent``             standard normal numbers           (n_cells, n_latent)     none
y / b      ``scaled.values``      released components               (n_cells, n_components) noise scales
N          ``n``                  numbers of rows                   (n_cells, n_numbers)    rows
========== ====================== ================================= ======================= ============

References
----------
Bartlett. On the theory of statistical regression. Proc. Royal Society of Edinburgh 53, 1933.
Carlin, Chib. Bayesian model choice via Markov chain Monte Carlo methods. JRSS B 57, 1995.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jax.scipy.special import logsumexp
from scipy.special import gammaln, multigammaln

from suffice.pipeline.math.distributions import spread_deviations
from suffice.pipeline.math.distributions.normal_inverse_gamma import Scaling
from suffice.pipeline.math.engines.cone.jax_noise import log_density
from suffice.pipeline.math.engines.jax_sums import NATS, require_terms, window_of_n
from suffice.pipeline.math.engines.multivariate.column_posterior import require_rows
from suffice.pipeline.math.engines.multivariate.released_moments import cone_noises, noisy_moments
from suffice.pipeline.terms.statistics.moment_columns import is_linear, lattice_of, least_rows
from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.math.distributions.spread_scales import SpreadNormalInverseWishart
    from suffice.pipeline.math.engines.cone.latent_noise import LatentConeNoise
    from suffice.pipeline.math.engines.normal.moment_weights import NoisyMoments
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

_LEAST_SPREAD = 1e-12
"""Of the scatter that the released values suggest, where there is next to no noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedMoments:
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
    cone : tuple of LatentConeNoise
        What was released behind noise on a cone, beside that of `scaled`: its matrices are latent.
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
    cone: tuple[LatentConeNoise, ...] = ()

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
        cone = cone_noises(statistic)
        estimates = [_estimates(scaled, known_n)] if len(scaled.scale) else []
        estimates += [_estimates_on_cone(each, known_n) for each in cone]
        # About the estimate with the shortest reach: any of them has N within it.
        (nearest, _, reach) = min(estimates, key=lambda estimate: estimate[2])
        moments, noise = _averaged(estimates)
        n, log_pi = window_of_n(nearest[:, 0], reach, prior, least)
        require_terms(n.size * (len(scaled.scale) + size**2 * (size + 1)))
        rows = np.clip(moments[:, :1], max(least, 2, prior.support[0]), max(2, prior.support[1]))
        mean = np.clip(moments[:, 1 : 1 + size] / rows, -1.0, 1.0)
        second, second_noise = (
            _symmetric(part, size) for part in (moments[:, 1 + size :], noise[None, 1 + size :])
        )
        of_n, of_total = noise[0], noise[1 : 1 + size]
        # First order: d(t / N) = dt / N - (t / N) dN / N.
        mean_noise = (of_total + np.abs(mean) * of_n) / rows
        cross = np.abs(mean)[:, :, None] * of_total
        product = mean[:, :, None] * mean[:, None, :]
        # First order: d(Q / N - m m^T), with the absolute values added up.
        spread_noise = second_noise + cross + np.swapaxes(cross, 1, 2) + np.abs(product) * of_n
        spread_noise = spread_noise / rows[:, :, None]
        values, vectors = np.linalg.eigh(second / rows[:, :, None] - product)
        # Noise may leave no positive definite matrix: eigenvalues below half of it are raised to that.
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
            cone=cone,
        )

    @property
    def size(self) -> int:
        """The number of columns, d."""
        return int(self.mean.shape[1])

    @property
    def free(self) -> Floats:
        """Degrees of freedom of the scatter, (n_cells, n_numbers); one row has as many as two."""
        return np.maximum(self.n, 2.0) - 1.0 if self.linear else self.n

    def log_noise(self, mean: Any, root: Any, coordinates: Coordinates) -> Any:
        """Log density of the noise for every N, (n_cells, n_numbers), up to a constant."""
        spread = root @ jnp.swapaxes(root, 1, 2)
        log_noise = self._log_noise(mean, spread)
        if len(self.scaled.scale) and self.n.min() <= 1.0:
            log_noise = jnp.where(self.n > 1.0, log_noise, self._log_noise(mean, jnp.zeros_like(root)))
        for cone in self.cone:
            sds = cone.spread()
            x = cone.centre() + coordinates.take(jnp.zeros((len(mean), len(sds))), _NOWHERE, sds)
            log_noise += log_density(cone, x, self._per_row(mean, spread), self.n)
        return log_noise

    def _per_row(self, mean: Any, spread: Any) -> Any:
        """Moments over N, (n_cells, n_moments)."""
        rows, columns = np.triu_indices(self.size)
        second = spread + mean[:, :, None] * mean[:, None, :]
        return jnp.concatenate([jnp.ones((len(mean), 1)), mean, second[:, rows, columns]], axis=1)

    def _log_noise(self, mean: Any, spread: Any) -> Any:
        per_row = self._per_row(mean, spread) @ self.scaled.coefficients.T
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
    inverse = np.linalg.pinv(components[:, used])  # of several releases the least squares
    moments[:, used] = observed @ inverse.T
    noise[used] = math.sqrt(2.0) * np.linalg.norm(inverse, axis=1)
    if known_n is None:
        # N = sum_j a_j y_j by the inverse: its error is at most max|a| times the sum of all distances.
        reach = math.ceil(2.0 * NATS * np.max(np.abs(inverse[0])))
    return moments, noise, reach


def _estimates_on_cone(cone: LatentConeNoise, known_n: int | None) -> tuple[Floats, Floats, int]:
    r"""Return the same of noise on a cone.

    Its part in N is a difference of two gamma variables. One is above :math:`D + \sqrt{2 D x} + x` with a
    probability of at most e^-x; its normal part is less than half of it.
    """
    used = np.flatnonzero(np.any(cone.coefficients != 0.0, axis=0))
    moments = np.zeros((len(cone.values), cone.coefficients.shape[1]))
    moments[:, used] = cone.values @ np.linalg.inv(cone.coefficients[:, used]).T
    noise = np.zeros(moments.shape[1])
    noise[used] = np.sqrt(np.diag(cone.covariance))
    if known_n is not None:
        moments[:, 0], noise[0] = known_n, 0.0
    shape = cone.points.n_components
    return moments, noise, math.ceil(1.5 * cone.unit * (shape + math.sqrt(2.0 * shape * NATS) + NATS))


def _averaged(estimates: Sequence[tuple[Floats, Floats, int]]) -> tuple[Floats, Floats]:
    """Return the mean of unbiased moments, weighted by precision, and the noise's standard deviations."""
    (moments, noise, _), *others = estimates
    for more, of_more, _ in others:
        square, total = noise**2, noise**2 + of_more**2
        # Of what is known, and of what no release has, both standard deviations are 0.
        share = np.divide(square, total, out=np.zeros_like(square), where=total > 0.0)
        moments = moments + share * (more - moments)
        noise = np.sqrt(share) * of_more
    return moments, noise


def _symmetric(triangle: Floats, size: int) -> Floats:
    """Matrices (n, size, size) of upper triangles, by rows."""
    rows, columns = np.triu_indices(size)
    matrix = np.empty((len(triangle), size, size))
    matrix[:, rows, columns] = matrix[:, columns, rows] = triangle
    return matrix


class Coordinates:
    """Latent standard normal numbers (n_cells, n_latent), taken one group after the other.

    ``log_weight`` (n_cells,) gathers what their maps stretch, over their own density.
    """

    def __init__(self, latent: Any) -> None:
        self._latent = latent
        self._taken = 0
        self.log_weight: Any = jnp.zeros(latent.shape[0])

    def take(self, centre: Any, noise: Any, sampling: Any) -> Any:
        """Return numbers (n_cells, k) that noise holds near a centre, and sampling near 0: both sds."""
        count = centre.shape[1]
        u = self._latent[:, self._taken : self._taken + count]
        self._taken += count
        # s of (3).
        sd = jnp.broadcast_to(noise * sampling / jnp.hypot(noise, sampling), u.shape)
        # (4): log s + u^2 / 2 + log(2 pi) / 2, the stretch over the density of u.
        self.log_weight += jnp.sum(jnp.log(sd) + (u**2 + math.log(2.0 * math.pi)) / 2.0, axis=1)
        # (3): near the release where noise is small, near 0 where sampling is.
        return centre * (sd / noise) ** 2 + sd * u


_NOWHERE = 1e9
"""The noise of what no released value tells."""
_OF_SCALES = 2.0
"""About the standard deviation of the log of a latent scale, given the scatter."""


def one_column(statistic: NoisyStatistic, noisy: NoisyMoments, mean: Any, variance: Any, latent: Any) -> Any:
    """Return the log weight (n_cells,) of latent numbers, of one column with this mean and variance."""
    bounds = statistic.plan.parameters
    lower, upper = float(bounds.lower or 0), float(bounds.upper or 0)
    cells, half_range = len(statistic.values), (upper - lower) / 2.0
    mean, variance = (jnp.broadcast_to(value, (cells,)) for value in (mean, variance))
    centred = (mean[:, None] - (lower + upper) / 2.0) / half_range
    root = jnp.sqrt(variance)[:, None, None] / half_range
    return _rows_of(ObservedMoments.of_one_column(statistic, noisy), centred, root, latent)


def columns(statistic: NoisyStatistic, prior: NPrior, parameters: Mapping[str, Any], latent: Any) -> Any:
    """Return the log weight (n_cells,) of latent numbers, given means and a covariance of all columns."""
    lattices = [lattice_of(column, linear=True) for column in statistic.plan.parameters.columns]
    centre, half_range = (np.array([float(part) for part in parts]) for parts in zip(*lattices, strict=True))
    shape = (len(statistic.values), len(lattices))
    mean = jnp.broadcast_to(parameters["mean"], shape)
    covariance = jnp.broadcast_to(parameters["covariance"], (*shape, shape[1]))
    root = jnp.linalg.cholesky(covariance) / half_range[:, None]
    return _rows_of(ObservedMoments.of_columns(statistic, prior), (mean - centre) / half_range, root, latent)


def regression(
    statistic: NoisyStatistic,
    prior: NPrior,
    predictors: SpreadNormalInverseWishart,
    parameters: Mapping[str, Any],
    latent: Any,
) -> Any:
    """Return the log weight (n_cells,) of latent numbers, given the parameters of the last column.

    The predictors' rows are normal; their mean and covariance have a prior and are integrated out, as in the
    posterior.
    """
    observed = ObservedMoments.of_columns(statistic, prior)
    constants = statistic.plan.parameters
    scaling, cells, last = Scaling.of(constants), len(statistic.values), observed.size - 1
    beta = jnp.broadcast_to(parameters["coefficient"], (cells, last))
    if observed.linear:
        intercept = jnp.broadcast_to(parameters["intercept"], (cells,))
        beta = jnp.concatenate([beta, intercept[:, None]], axis=1)
    beta = (beta - scaling.shift) @ np.linalg.inv(scaling.matrix).T
    sd = jnp.sqrt(jnp.broadcast_to(parameters["variance"], (cells,)))[:, None] / scaling.outcome
    coordinates = Coordinates(latent)
    mean_x, root_x, log_distribution = _predictors(statistic, observed, predictors, coordinates)
    noise = observed.spread_noise
    mean_y = jnp.zeros((cells, 0))
    if observed.linear:
        # Given the predictors the outcome has mean x^T beta: its average is normal about that, variance s^2
        # / N.
        fitted = beta[:, -1:] + jnp.sum(beta[:, :last] * mean_x, axis=1, keepdims=True)
        g = coordinates.take(
            (observed.mean[:, last:] - fitted) / sd, observed.mean_noise[:, last:] / sd, observed.rows**-0.5
        )
        mean_y = fitted + sd * g
        log_distribution += _log_normal(observed.n, g)
    # The last row of L is beta^T L_x plus s times independent normals (Bartlett).
    fitted = jnp.einsum("cj,cjk->ck", beta[:, :last], root_x)
    below = coordinates.take(
        (observed.root[:, last, :last] - fitted) / sd,
        noise[:, last, :last] / (jnp.einsum("cii->ci", root_x) * sd),
        observed.rows**-0.5,
    )
    log_x = coordinates.take(
        jnp.log(observed.root[:, last, last:] / sd),
        noise[:, last, last:] / (2.0 * sd**2),
        (2.0 * observed.rows) ** -0.5,
    )
    log_distribution += _log_normal(observed.n, below)
    log_distribution += _log_chi(observed.n, observed.free - last, log_x)
    row = jnp.concatenate([fitted + sd * below, sd * jnp.exp(log_x)], axis=1)
    root = jnp.concatenate([jnp.pad(root_x, ((0, 0), (0, 0), (0, 1))), row[:, None, :]], axis=1)
    mean = jnp.concatenate([mean_x, mean_y], axis=1) if observed.linear else jnp.zeros((cells, observed.size))
    return _summed(observed, log_distribution + observed.log_noise(mean, root, coordinates), coordinates)


def _rows_of(observed: ObservedMoments, mean: Any, root: Any, latent: Any) -> Any:
    """Log weight of latent numbers, of normal rows with this mean (n_cells, d) and root of the covariance."""
    size, coordinates = observed.size, Coordinates(latent)
    scale = jnp.einsum("cii->ci", root)
    # (1): where the release has g, and X.
    away = solve_triangular(root, (observed.mean - mean)[:, :, None], lower=True)[:, :, 0]
    g = coordinates.take(away, observed.mean_noise / scale, observed.rows**-0.5)
    weight_of_mean = coordinates.log_weight[:, None]
    nearest = solve_triangular(root, observed.root, lower=True)
    noise = observed.spread_noise / (scale[:, :, None] * scale[:, None, :])
    rows, columns = np.tril_indices(size, -1)
    log_diagonal = coordinates.take(
        jnp.log(jnp.einsum("cii->ci", nearest)),
        jnp.einsum("cii->ci", noise) / 2.0,
        (2.0 * observed.rows) ** -0.5,
    )
    below = coordinates.take(nearest[:, rows, columns], noise[:, rows, columns], observed.rows**-0.5)
    n = np.maximum(observed.n, 2.0)
    of_spread = _log_normal(n, below)
    for column in range(size):
        # Bartlett: N X_ii^2 has one degree of freedom less for every column before.
        of_spread += _log_chi(n, observed.free - column, log_diagonal[:, column, None])
    # Where there is no scatter, or no mean, their numbers stay standard normal.
    of_mean = jnp.where(observed.n < 1.0, -weight_of_mean, _log_normal(np.maximum(observed.n, 1.0), g))
    weight_of_spread = coordinates.log_weight[:, None] - weight_of_mean
    log_distribution = of_mean + jnp.where(observed.n < 2.0, -weight_of_spread, of_spread)
    factor = _lower(log_diagonal, below)
    # Back by (1): m = mu + C g and L = C X.
    moved = mean + jnp.einsum("cij,cj->ci", root, g)
    return _summed(
        observed, log_distribution + observed.log_noise(moved, root @ factor, coordinates), coordinates
    )


def _predictors(
    statistic: NoisyStatistic,
    observed: ObservedMoments,
    given: SpreadNormalInverseWishart,
    coordinates: Coordinates,
) -> tuple[Any, Any, Any]:
    r"""Return the predictors' m, L, and the log distribution of them for every N, parameters integrated out.

    With latent scales :math:`\Psi = \operatorname{diag}(v)`, :math:`a = (\nu + N) / 2`,
    :math:`B = E + \Psi / N` and w as in ``exact_moments`` it is, but for the density of standard deviations

    .. math:: \frac{\Gamma_p(a)}{\Gamma_p((N - 1) / 2)} \frac{w^{a - 1} e^{-w}}{\Gamma(a)}
              N^{-p \nu / 2} |\Psi|^{\nu / 2} |E|^{-(\nu + p + 1) / 2}
              |I + E^{-1} \Psi / N|^{1/2 - a} |B + 2 w H|^{-1/2} e^{-w (m - \mu)^T (B + 2 w H)^{-1} (m - \mu)}

    up to a constant; without means :math:`|I + E^{-1} \Psi / N|^{-a}` ends it, and :math:`\Gamma_p(N / 2)`
    replaces its own.
    """
    p = observed.size - 1
    lattices = [
        lattice_of(column, linear=observed.linear) for column in statistic.plan.parameters.columns[:-1]
    ]
    centre, half_range = (np.array([float(part) for part in parts]) for parts in zip(*lattices, strict=True))
    prior_loc, prior_half_range = given.of(p)
    loc, unit = (prior_loc - centre) / half_range, prior_half_range / half_range
    df = spread_deviations.freedom(given.concentration, p)
    at = observed.root[:, :p, :p]
    scale = np.einsum("cii->ci", at)
    noise = observed.spread_noise[:, :p, :p] / (scale[:, :, None] * scale[:, None, :])
    rows, triangle = np.tril_indices(p, -1)
    mean, near = observed.mean[:, :p], np.zeros((len(observed.n), p))
    if observed.linear:
        mean = mean + coordinates.take(near, observed.mean_noise[:, :p], 1.0)
    log_diagonal = coordinates.take(near, np.einsum("cii->ci", noise) / 2.0, 1.0)
    below = coordinates.take(np.zeros((len(mean), len(rows))), noise[:, rows, triangle], 1.0)
    root = at @ _lower(log_diagonal, below)
    # From E to L, and to the logarithms of the diagonal of what multiplies the fixed root.
    # dE / dL = 2^p prod_i L_ii^(p - i + 1), i = 1..p.
    powers = p - np.arange(p)
    logs = jnp.log(jnp.einsum("cii->ci", root))
    jacobian = logs @ powers + jnp.sum(log_diagonal, axis=1)
    # Flat on the whole line, about as wide as what a column may have for itself.
    log_v = jnp.log(jnp.einsum("cij,cij->ci", root, root)) + coordinates.take(near, _NOWHERE, _OF_SCALES)
    psi = jnp.exp(log_v) * unit**2
    n = observed.n
    half = (df + n) / 2.0
    inverse = solve_triangular(root, jnp.broadcast_to(jnp.eye(p), root.shape), lower=True)
    spread = jnp.einsum("cij,cj,ckj->cik", inverse, psi, inverse)
    inner = _log_determinant(spread[:, None] / n[:, :, None, None] + jnp.eye(p))
    log_distribution = multigammaln(half, p) - multigammaln(observed.free / 2.0, p)
    log_distribution = log_distribution - p * df / 2.0 * np.log(n) - half * inner
    rows, _ = spread_deviations.rows_that_count(n, given.concentration, linear=observed.linear)
    squares = n[:, :, None] * jnp.einsum("cij,cij->ci", root, root)[:, None] + psi[:, None]
    deviation = jnp.sqrt(squares / rows[:, :, None]) / unit
    log_distribution += spread_deviations.log_density(deviation, jnp.log).sum(axis=2)
    if observed.linear:
        log_ratio = coordinates.take(np.zeros((len(n), 1)), _NOWHERE, (2.0 / (df + observed.rows)) ** 0.5)
        weight = half * jnp.exp(log_ratio)
        whole = root @ jnp.swapaxes(root, 1, 2)
        added = psi[:, None] / n[:, :, None] + weight[:, :, None] * unit**2 / 2.0
        whole = whole[:, None] + added[..., None] * jnp.eye(p)
        away = jnp.broadcast_to((mean - loc)[:, None], added.shape)
        distance = jnp.sum(away * jnp.linalg.solve(whole, away[..., None])[..., 0], axis=-1)
        log_distribution += (inner - _log_determinant(whole)) / 2.0 - weight * distance
        log_distribution += half * (np.log(half) + log_ratio) - weight - gammaln(half)
    total = jacobian + df / 2.0 * jnp.sum(log_v, axis=1) - (df + p + 1.0) * jnp.sum(logs, axis=1)
    return mean, root, log_distribution + total[:, None]


def _log_determinant(matrix: Any) -> Any:
    """Log determinant of positive definite matrices (..., p, p), one pivot after the other."""
    total = jnp.zeros(matrix.shape[:-2])
    while matrix.shape[-1]:
        pivot, column = matrix[..., 0, 0], matrix[..., 1:, 0]
        total += jnp.log(pivot)
        # Schur: |M| = M_11 |M_22 - M_21 M_12 / M_11|.
        outer = column[..., :, None] * column[..., None, :] / pivot[..., None, None]
        matrix = matrix[..., 1:, 1:] - outer
    return total


def _lower(log_diagonal: Any, below: Any) -> Any:
    """Lower triangles (n_cells, d, d) from the logs of their diagonals and the entries below, by rows."""
    size = log_diagonal.shape[1]
    rows, columns = np.tril_indices(size, -1)
    diagonal = np.arange(size)
    empty = jnp.zeros((log_diagonal.shape[0], size, size))
    return empty.at[:, diagonal, diagonal].set(jnp.exp(log_diagonal)).at[:, rows, columns].set(below)


def _log_normal(n: Floats, values: Any) -> Any:
    """Log density of values (n_cells, k) that are normal with variance 1 / N, (n_cells, n_numbers)."""
    count = values.shape[1]
    # Normal with variance 1 / N: (N / 2 pi)^(k / 2) e^(-N x^2 / 2).
    squares = jnp.sum(values**2, axis=1, keepdims=True)
    return (count * np.log(n / (2.0 * np.pi)) - n * squares) / 2.0


def _log_chi(n: Floats, free: Floats, log_x: Any) -> Any:
    """Log density of log x where N x^2 is chi-squared: written so that nothing cancels at any N."""
    # With h = f / 2 and q = N x^2 / f: 2 h^h e^-h / Gamma(h) times e^(h (log q - q + 1)).
    ratio = 2.0 * log_x + np.log(n / free)
    half = free / 2.0
    constant = math.log(2.0) + half * np.log(half) - half - gammaln(half)
    return constant + half * (ratio - jnp.expm1(ratio))


def _summed(observed: ObservedMoments, log_weight: Any, coordinates: Coordinates) -> Any:
    return logsumexp(log_weight + observed.log_pi, axis=1) + coordinates.log_weight
