"""Noise-aware posteriors of several columns: latent moments by MCMC, parameters by the conjugate update."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.distributions.conjugate_mixture import ConjugateMixture
from suffice.pipeline.distributions.moment_projection import Moments, estimate
from suffice.pipeline.distributions.normal_inverse_gamma_regression import RegressionDistribution
from suffice.pipeline.distributions.normal_inverse_wishart import NormalInverseWishartDistribution
from suffice.pipeline.distributions.scaling import Scaling
from suffice.pipeline.engines.multivariate.evidence import NormalEvidence, RegressionEvidence
from suffice.pipeline.engines.multivariate.hmc import effective_draws, sample_until_settled, split_r_hat
from suffice.pipeline.engines.multivariate.log_posterior import LatentN, Target
from suffice.pipeline.engines.multivariate.pooled import SharedTarget
from suffice.pipeline.engines.multivariate.starts import starts
from suffice.pipeline.priors.record_count import Reciprocal
from suffice.pipeline.released.noise_distribution import NoisyTotals
from suffice.pipeline.statistics.moment_columns import is_linear, least_rows, moment_map
from suffice.pipeline.statistics.sensitivity import Design

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.distributions.normal_inverse_gamma_regression import NormalInverseGammaRegression
    from suffice.pipeline.distributions.normal_inverse_wishart import NormalInverseWishart
    from suffice.pipeline.engines.multivariate.evidence import Evidence
    from suffice.pipeline.priors.record_count import NPrior
    from suffice.pipeline.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

    ConjugateDistribution: TypeAlias = NormalInverseWishartDistribution | RegressionDistribution

_MOST_STATES = 1 << 19
"""Latent states kept over all cells, within the bounds for one cell below."""
_FEWEST, _MOST = 1024, 4096
_FEW_CELLS = 8
_CHAINS, _CHAINS_OF_MANY = 64, 16
"""Chains of a cell: where cells are few, more chains cost little."""


def normal_posterior(
    statistics: Sequence[NoisyStatistic], prior: NormalInverseWishart, n_priors: Sequence[NPrior]
) -> ConjugateMixture:
    """Return the posterior of means, variances and covariances given noisy moments of some data sets.

    Raises
    ------
    PriorError
        Where the prior does not fit the columns, or leaves N below the number of columns plus 2.
    """
    columns = statistics[0].plan.parameters.columns
    names = tuple(column.name for column in columns)
    sums = estimate(statistics[0])
    evidence = normal_evidence(prior, len(names), sums.centre, sums.half_range, linear=True)
    return _posterior(
        statistics,
        (),
        (evidence,),
        n_priors,
        f"{prior}",
        lambda moments: NormalInverseWishartDistribution.updated(prior, moments, names),
    )


def regression_posterior(
    statistics: Sequence[NoisyStatistic],
    prior: NormalInverseGammaRegression,
    n_priors: Sequence[NPrior],
    predictors: NormalInverseWishart,
) -> ConjugateMixture:
    """Return the posterior of a regression given noisy moments; the rows' predictors are modelled as normal.

    Parameters
    ----------
    statistics : sequence of NoisyStatistic
        Of one or several data sets with one regression. Each has predictors of its own mean and covariance.
    prior : NormalInverseGammaRegression
    n_priors : sequence of NPrior
        Of each data set's number of rows.
    predictors : NormalInverseWishart
        The public prior of the predictors' mean and covariance. Without an intercept they are normal about 0.

    Raises
    ------
    PriorError
        As for ``normal_posterior``.
    """
    parameters = statistics[0].plan.parameters
    linear, size = is_linear(parameters), len(parameters.columns) - 1
    scaling = Scaling.of(parameters)
    prior_loc, prior_precision, concentration, scale = prior.of(len(scaling.shift))
    loc, precision = scaling.to_half_ranges(prior_loc, prior_precision)
    sums = estimate(statistics[0])
    own = normal_evidence(predictors, size, sums.centre[:-1], sums.half_range[:-1], linear=linear)
    shared = RegressionEvidence(
        loc=loc,
        precision=precision,
        concentration=concentration,
        scale=scale / scaling.outcome**2,
        linear=linear,
    )
    return _posterior(
        statistics,
        (own,),
        (shared,),
        n_priors,
        f"{prior} {predictors}",
        lambda moments: RegressionDistribution.updated(prior, moments, parameters),
    )


def normal_evidence(
    prior: NormalInverseWishart, size: int, centre: Floats, half_range: Floats, *, linear: bool
) -> NormalEvidence:
    """Return the evidence of the first `size` columns under a prior in the columns' units."""
    loc, precision, df, scale = prior.of(size)
    return NormalEvidence(
        loc=(loc - centre) / half_range,
        precision=precision,
        df=df,
        scale=scale / half_range / half_range[:, None],
        linear=linear,
    )


def _posterior(
    statistics: Sequence[NoisyStatistic],
    own: tuple[Evidence, ...],
    shared: tuple[Evidence, ...],
    n_priors: Sequence[NPrior],
    prior: str,
    update: Callable[[Moments], ConjugateDistribution],
) -> ConjugateMixture:
    sums = [estimate(statistic) for statistic in statistics]
    size, n_cells = sums[0].total.shape[1], len(sums[0].n)
    target = SharedTarget(
        targets=tuple(
            _target(statistic, own, n_prior, size)
            for statistic, n_prior in zip(statistics, n_priors, strict=True)
        ),
        shared=shared,
    )
    rng = _generator(statistics, prior, *map(str, n_priors))
    n_chains = _CHAINS if n_cells <= _FEW_CELLS else _CHAINS_OF_MANY
    iterations = min(_MOST, max(_FEWEST, _MOST_STATES // n_cells)) // n_chains
    begun = [
        starts(part, moments, statistic, n_chains, rng)
        for part, moments, statistic in zip(target.targets, sums, statistics, strict=True)
    ]
    start = np.concatenate([base for base, _ in begun])
    spread = np.concatenate([guess for _, guess in begun])
    kept = sample_until_settled(target, start, spread, iterations, rng)
    # Latent states in the order of draws, then chains, then cells.
    latent = target.total(kept.transpose(1, 0, 3, 2).reshape(kept.shape[1], -1))
    distribution = update(
        Moments(
            n=np.broadcast_to(latent.n, latent.mean.shape[1:]),
            total=(latent.n * latent.mean).T,
            products=np.moveaxis(latent.n * latent.second, 2, 0),
            centre=sums[0].centre,
            half_range=sums[0].half_range,
        )
    )
    drawn = distribution.sample(1, rng)
    each = [values[0].reshape(iterations, n_chains, n_cells, -1) for values in drawn.values()]
    parameters = np.concatenate(each, axis=3)
    return ConjugateMixture(
        conditional=distribution,
        n_states=iterations * n_chains,
        n_cells=n_cells,
        diagnostics={
            "sampler": "MCMC (Hamiltonian Monte Carlo)",
            "chains": n_chains,
            "draws": iterations * n_chains,
            "largest_r_hat": round(float(split_r_hat(parameters).max()), 4),
            "fewest_effective_draws": math.floor(effective_draws(parameters).min()),
        },
        in_turn=True,
    )


def _target(statistic: NoisyStatistic, evidence: tuple[Evidence, ...], n_prior: NPrior, size: int) -> Target:
    return Target(
        size=size,
        linear=is_linear(statistic.plan.parameters),
        evidence=evidence,
        latent_n=_latent_n(n_prior, size, least_rows(statistic.plan.parameters)),
        scaled=noisy_moments(statistic).in_scales(),
    )


def noisy_moments(statistic: NoisyStatistic) -> NoisyTotals:
    """Return the released components as linear functions of moments in half ranges."""
    coefficients = np.concatenate([_coefficients(each) for each in statistic.observations])
    return replace(NoisyTotals.of(statistic), coefficients=coefficients)


def _coefficients(statistic: NoisyStatistic) -> Floats:
    """The map from moments in half ranges to the components of one release."""
    plan = statistic.plan
    parameters = plan.parameters
    steps = 1 << (parameters.lattice_bits or 0)
    weight = None if plan.design is not Design.MINIMAL else plan.moment_weight or Fraction(1)
    names = tuple(column.name for column in parameters.columns)
    matrix = moment_map(names, steps, linear=is_linear(parameters), weight=weight).matrix.astype(np.float64)
    first, _ = np.triu_indices(len(names) + 1)
    powers = np.where(first > 0, 2.0, 1.0)
    powers[0] = 0.0
    # Rounding to the lattice adds a twelfth of a squared step to every square, on average (Sheppard).
    matrix[:, 0] += matrix[:, _squares(len(names))].sum(axis=1) / 12.0
    coefficients: Floats = matrix * float(steps) ** powers
    return coefficients


def _squares(size: int) -> NDArray[np.int64]:
    """Return where the sums of squares stand among the moments."""
    first, second = np.triu_indices(size + 1)
    return np.flatnonzero((first == second) & (first > 0))


def require_rows(n_prior: NPrior, size: int, least: int) -> None:
    """Refuse a prior of N that leaves too few rows for their moments to have a density.

    Raises
    ------
    PriorError
    """
    if n_prior.support[1] < least:
        message = (
            f"the prior of N, {n_prior}, ends below {least}: a noise-aware posterior of {size} columns needs "
            f"at least {least} rows"
        )
        raise PriorError(message)


def _latent_n(n_prior: NPrior, size: int, least: int) -> LatentN:
    """Return the prior of N from the least number of rows whose moments have a density."""
    require_rows(n_prior, size, least)
    most = n_prior.support[1]
    lowest = max(least, n_prior.support[0])
    if most == lowest:
        return LatentN(lowest=float(lowest), highest=float(lowest), reciprocal=False, fixed=True)
    return LatentN(
        lowest=lowest - 0.5, highest=most + 0.5, reciprocal=isinstance(n_prior, Reciprocal), fixed=False
    )


def _generator(statistics: Sequence[NoisyStatistic], *texts: str) -> np.random.Generator:
    """Return a generator that the releases and priors determine: who asks again gets the same chains."""
    observations = [observation for statistic in statistics for observation in statistic.observations]
    content = repr(
        (observations[0].plan.name, [observation.values.tolist() for observation in observations], texts)
    ).encode()
    seed = int.from_bytes(hashlib.sha256(content).digest()[:16], "big")
    return np.random.default_rng(seed)
