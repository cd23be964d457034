"""Simulated releases with noise on a cone, and ranks of the truth in their posteriors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from suffice.pipeline.ask.inference.posterior_terms import NOISE_AWARE
from suffice.pipeline.families import FAMILIES, linear_regression
from suffice.pipeline.math.distributions.normal_inverse_wishart import NormalInverseWishart
from suffice.pipeline.math.engines.cone.latent_noise import LatentConeNoise
from suffice.pipeline.math.priors.record_count import Uniform
from suffice.pipeline.terms.statistics.simulated_noise import simulated_noise
from support.joint import STEPS, plan_of, spec_of
from support.noisy import noisy_statistic
from support.unrestricted import unrestricted_posterior

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

FEWEST, MOST = 60, 400
"""Rows of a data set: at an epsilon of 0.1 noise hides most of their scatter."""


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """Data sets with parameters (n, d) and (n, d, d), and what was released of them."""

    mean: Floats
    covariance: Floats
    prior: NormalInverseWishart
    statistic: NoisyStatistic


def prior_of(d: int) -> NormalInverseWishart:
    """Return a prior of correlated columns whose standard deviations differ."""
    sds = np.resize([0.4, 0.2, 0.3], d)
    correlation = 0.5 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    return NormalInverseWishart([0.1] * d, 4, d + 5, (4 * correlation * sds * sds[:, None]).tolist())


def simulated(
    d: int,
    epsilon: str,
    size: int,
    rng: np.random.Generator,
    *,
    public_n: int | None = None,
    alone: bool = False,
) -> Simulated:
    """Draw parameters from the prior, moments of rows, and noise; with `alone` P without Q."""
    prior = prior_of(d)
    loc, precision, df, scale = prior.of(d)
    covariance = np.asarray(stats.invwishart(df, scale).rvs(size, random_state=rng)).reshape(size, d, d)
    root: Floats = np.linalg.cholesky(covariance).astype(np.float64)
    mean = loc + np.einsum("cij,cj->ci", root, rng.standard_normal((size, d))) / np.sqrt(precision)
    n = np.full(size, public_n) if public_n else rng.integers(FEWEST, MOST + 1, size)
    statistic = released(moments_of(n, mean, root, rng), epsilon, rng, public_n=public_n, alone=alone)
    return Simulated(mean=mean, covariance=covariance, prior=prior, statistic=statistic)


def moments_of(n: NDArray[Any], mean: Floats, root: Floats, rng: np.random.Generator) -> NDArray[Any]:
    """Draw the lattice's sums of n normal rows, as whole numbers."""
    size, d = mean.shape
    rows = n[:, None].astype(np.float64)
    total = rows * mean + np.sqrt(rows) * np.einsum("cij,cj->ci", root, rng.standard_normal((size, d)))
    factor = np.tril(rng.standard_normal((size, d, d)), -1)
    factor[:, np.arange(d), np.arange(d)] = np.sqrt(rng.chisquare(rows - 1.0 - np.arange(d)))
    factor = root @ factor
    products = factor @ np.swapaxes(factor, 1, 2) + total[:, :, None] * total[:, None, :] / rows[:, :, None]
    first, second = np.triu_indices(d)
    sums = np.column_stack([n, np.rint(total * STEPS), np.rint(products[:, first, second] * STEPS**2)])
    whole = np.empty(sums.shape, dtype=object)
    whole[:] = [[int(number) for number in row] for row in sums]
    return whole


def released(
    sums: NDArray[Any],
    epsilon: str,
    rng: np.random.Generator,
    *,
    public_n: int | None = None,
    alone: bool = False,
    noise: str = "cone",
) -> NoisyStatistic:
    """Return what is released of lattice sums of columns within -1..1."""
    d = int(np.sqrt(2 * sums.shape[1])) - 1
    entry = {
        "family": "multivariate_normal",
        "columns": {f"x{column}": {"lower": -1, "upper": 1} for column in range(d)},
        "noise": noise,
    }
    return released_of(entry, sums, epsilon, rng, public_n=public_n, alone=alone)


def released_of(
    entry: dict[str, Any],
    sums: NDArray[Any],
    epsilon: str,
    rng: np.random.Generator,
    *,
    public_n: int | None = None,
    alone: bool = False,
) -> NoisyStatistic:
    """Return what is released of lattice sums of a statistic."""
    plan = plan_of(entry, epsilon=epsilon, public_n=public_n is not None)
    spec = spec_of(entry, epsilon=epsilon, public_n=public_n is not None)
    totals = FAMILIES[plan.family].totals(spec.statistics["s"], plan.design, sums)
    drawn = simulated_noise(plan, (len(sums),), rng)
    if alone and plan.cone is not None:
        law = LatentConeNoise.of(plan.cone, totals)
        at = law.points.at(law.points.draw(len(sums), rng))
        drawn = np.rint((at.t * at.components * law.unit).T * STEPS**2)
    return noisy_statistic(plan, totals + drawn.astype(object), public_n=public_n)


def ranks_of_regressions(
    predictors: int, epsilon: str, size: int, draws: int, rng: np.random.Generator, noise: str = "cone"
) -> Floats:
    """Return ranks of coefficients and residual variances that default priors of -1..1 draw, as below."""
    d = predictors + 1
    unit = {"lower": -1, "upper": 1}
    entry = {
        "family": "linear_regression",
        "predictors": {f"x{column}": unit for column in range(predictors)},
        "outcome": {"y": unit},
        "noise": noise,
    }
    plan = plan_of(entry, epsilon=epsilon, public_n=False)
    of_predictors = linear_regression.default_predictor_prior(plan.parameters)
    mean_x, covariance_x = of_predictors.sample(size, rng, predictors)
    prior = linear_regression.default_prior(plan.parameters)
    coefficients, variance = prior.sample(size, rng, d, linear=True)
    root = np.zeros((size, d, d))
    root[:, :-1, :-1] = np.linalg.cholesky(covariance_x)
    root[:, -1, :-1] = np.einsum("ck,ckj->cj", coefficients[:, :-1], root[:, :-1, :-1])
    root[:, -1, -1] = np.sqrt(variance)
    mean_y = np.einsum("ck,ck->c", coefficients[:, :-1], mean_x) + coefficients[:, -1]
    n = rng.integers(FEWEST, MOST + 1, size)
    statistic = released_of(entry, moments_of(n, np.column_stack([mean_x, mean_y]), root, rng), epsilon, rng)
    posterior = unrestricted_posterior(statistic, n_prior=Uniform(FEWEST, MOST))
    drawn = posterior.sample(draws, rng=rng)
    truth = np.column_stack([coefficients, variance])
    of_draws = np.stack(
        [*np.moveaxis(drawn["coefficient"], -1, 0), drawn["intercept"], drawn["variance"]], axis=-1
    )
    return np.asarray(np.mean(of_draws < truth, axis=0))


def ranks(data: Simulated, draws: int, rng: np.random.Generator, method: str = NOISE_AWARE) -> Floats:
    """Return the share of draws below the truth, (n, quantities)."""
    terms = {} if data.statistic.public_n or method != NOISE_AWARE else {"n_prior": Uniform(FEWEST, MOST)}
    posterior = unrestricted_posterior(data.statistic, prior=data.prior, method=method, **terms)
    drawn = posterior.sample(draws, rng=rng)
    of_draws = _quantities(drawn["mean"], _matrix(drawn["variance"], drawn["covariance"]))
    return np.asarray(np.mean(of_draws < _quantities(data.mean, data.covariance), axis=0))


def _matrix(variance: Floats, pairs: Floats) -> Floats:
    d = variance.shape[-1]
    matrix = variance[..., None] * np.eye(d)
    first, second = np.triu_indices(d, 1)
    matrix[..., first, second] = matrix[..., second, first] = pairs
    return matrix


def _quantities(mean: Floats, covariance: Floats) -> Floats:
    variance = covariance[..., 0, 0]
    slope = covariance[..., 0, -1] / variance
    return np.stack([mean[..., 0], variance, slope, np.linalg.slogdet(covariance)[1]], axis=-1)


def chances(shares: Floats, bins: int) -> Floats:
    """Return, of every quantity, the chance of ranks as uneven as these if they are uniform."""
    places = np.minimum((shares * bins).astype(int), bins - 1)
    counts = np.stack([np.bincount(column, minlength=bins) for column in places.T])
    expected = len(shares) / bins
    return np.asarray(stats.chi2.sf(np.sum((counts - expected) ** 2 / expected, axis=1), bins - 1))
