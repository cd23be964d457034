"""Noise-aware posteriors of several columns: latent moments by MCMC, parameters by the conjugate update."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import PriorError
from suffice.pipeline.math.distributions.moment_projection import estimate
from suffice.pipeline.math.engines.multivariate.hmc import sample_until_settled
from suffice.pipeline.math.engines.multivariate.log_posterior import LatentN, Target
from suffice.pipeline.math.engines.multivariate.pooled import SharedTarget
from suffice.pipeline.math.engines.multivariate.priors_of_columns import (
    normal_evidence,
    normal_update,
    regression_evidence,
    regression_update,
)
from suffice.pipeline.math.engines.multivariate.starts import shared_start, starts, with_lengths
from suffice.pipeline.math.engines.multivariate.states import lengths, mixture_of_states, moments_of
from suffice.pipeline.math.priors.record_count import Reciprocal
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
from suffice.pipeline.terms.statistics.moment_columns import is_linear, least_rows, moment_map
from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.math.distributions.conjugate_mixture import ConjugateMixture
    from suffice.pipeline.math.engines.multivariate.evidence import Evidence
    from suffice.pipeline.math.engines.multivariate.priors_of_columns import (
        AnyNormalPrior,
        AnyRegressionPrior,
        Update,
    )
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats


def normal_posterior(
    statistics: Sequence[NoisyStatistic], prior: AnyNormalPrior, n_priors: Sequence[NPrior]
) -> ConjugateMixture:
    """Return the posterior of means, variances and covariances given noisy moments of some data sets.

    Raises
    ------
    PriorError
        Where the prior does not fit the columns, or leaves N below the number of columns plus 2.
    """
    columns = statistics[0].plan.parameters.columns
    sums = estimate(statistics[0])
    shared = normal_evidence(prior, len(columns), sums.centre, sums.half_range, linear=True)
    update = normal_update(prior, shared, tuple(column.name for column in columns))
    return _posterior(statistics, (), (shared,), n_priors, f"{prior}", update)


def regression_posterior(
    statistics: Sequence[NoisyStatistic],
    prior: AnyRegressionPrior,
    n_priors: Sequence[NPrior],
    predictors: AnyNormalPrior,
) -> ConjugateMixture:
    """Return the posterior of a regression given noisy moments; the rows' predictors are modelled as normal.

    Parameters
    ----------
    statistics : sequence of NoisyStatistic
        Of one or several data sets with one regression. Each has predictors of its own mean and covariance.
    prior : NormalInverseGammaRegression or SpreadNormalInverseGammaRegression
    n_priors : sequence of NPrior
        Of each data set's number of rows.
    predictors : NormalInverseWishart or SpreadNormalInverseWishart
        The public prior of the predictors' mean and covariance. Without an intercept they are normal about 0.

    Raises
    ------
    PriorError
        As for ``normal_posterior``.
    """
    parameters = statistics[0].plan.parameters
    linear, size = is_linear(parameters), len(parameters.columns) - 1
    sums = estimate(statistics[0])
    own = normal_evidence(predictors, size, sums.centre[:-1], sums.half_range[:-1], linear=linear)
    shared = regression_evidence(prior, parameters)
    update = regression_update(prior, shared, parameters)
    return _posterior(statistics, (own,), (shared,), n_priors, f"{prior} {predictors}", update)


def _posterior(
    statistics: Sequence[NoisyStatistic],
    own: tuple[Evidence, ...],
    shared: tuple[Evidence, ...],
    n_priors: Sequence[NPrior],
    prior: str,
    update: Update,
) -> ConjugateMixture:
    sums = [estimate(statistic) for statistic in statistics]
    size, n_cells = sums[0].total.shape[1], len(sums[0].n)
    target = SharedTarget(
        targets=tuple(
            with_lengths(_target(statistic, own, n_prior, size), moments, outcome=bool(own))
            for statistic, moments, n_prior in zip(statistics, sums, n_priors, strict=True)
        ),
        shared=shared,
    )
    rng = generator_of(statistics, prior, *map(str, n_priors))
    n_chains, iterations = lengths(n_cells)
    squares = target.likely_squares(n_cells)
    begun = [
        starts(part, moments, statistic, n_chains, squares, rng)
        for part, moments, statistic in zip(target.targets, sums, statistics, strict=True)
    ]
    begun.append(shared_start(target, [base for base, _ in begun], rng))
    start, spread = (np.concatenate(parts) for parts in zip(*begun, strict=True))
    kept = sample_until_settled(target, start, spread, iterations, rng)
    # The target wants the states of every cell together; what follows, draws, then chains, then cells.
    flat = kept.transpose(1, 2, 0, 3).reshape(kept.shape[1], -1)
    order = np.arange(flat.shape[1]).reshape(n_cells, -1).T.ravel()
    moments = moments_of(target.total(flat), sums[0].centre, sums[0].half_range).take(order)
    return mixture_of_states(update(moments, target.latent(flat)[:, order], rng), kept, rng)


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


def generator_of(statistics: Sequence[NoisyStatistic], *texts: str) -> np.random.Generator:
    """Return a generator that the releases and priors determine: who asks again gets the same chains."""
    observations = [observation for statistic in statistics for observation in statistic.observations]
    content = repr(
        (observations[0].plan.name, [observation.values.tolist() for observation in observations], texts)
    ).encode()
    seed = int.from_bytes(hashlib.sha256(content).digest()[:16], "big")
    return np.random.default_rng(seed)
