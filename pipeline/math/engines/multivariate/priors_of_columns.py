"""What priors of several columns turn into: evidence of moments, parameters given moments and scales.

The states of chains become a distribution of parameters: how many are kept, and what they are worth.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from suffice.pipeline.math.distributions.composite import ConjugateMixture
from suffice.pipeline.math.distributions.normal_inverse_gamma import (
    NormalInverseGammaRegression,
    RegressionDistribution,
    Scaling,
)
from suffice.pipeline.math.distributions.normal_inverse_wishart import (
    Moments,
    NormalInverseWishart,
    NormalInverseWishartDistribution,
)
from suffice.pipeline.math.distributions.spread_scales import (
    CONCENTRATION,
    SpreadNormalInverseGammaRegression,
    SpreadNormalInverseWishart,
    updated_given_scales,
)
from suffice.pipeline.math.engines.multivariate.evidence import NormalEvidence, RegressionEvidence
from suffice.pipeline.math.engines.multivariate.hmc import effective_draws, normal_scores, split_r_hat
from suffice.pipeline.math.engines.multivariate.spread_evidence import (
    SpreadNormalEvidence,
    SpreadRegressionEvidence,
)
from suffice.pipeline.terms.statistics.moment_columns import is_linear

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.engines.multivariate.evidence import State
    from suffice.pipeline.terms.statistics.sensitivity import Constants
    from suffice.typing import Floats

_MOST_STATES = 1 << 19
"""Latent states kept over all cells, within the bounds for one cell below."""
_FEWEST, _MOST = 1024, 8192
_CHAINS = ((2, 128), (8, 64))
_CHAINS_OF_MANY = 16
"""Chains of a cell, of up to so many cells, and of more: where cells are few, more chains cost little."""
_FEWEST_ITERATIONS = 128
"""Draws kept of each chain at least where cells are few: of fewer, halves of chains seem to disagree."""


def lengths(n_cells: int) -> tuple[int, int]:
    """Return how many chains a cell has, and how many draws of each are kept."""
    for most_cells, n_chains in _CHAINS:
        if n_cells <= most_cells:
            return n_chains, max(_FEWEST_ITERATIONS, _MOST // n_chains)
    return _CHAINS_OF_MANY, min(_MOST, max(_FEWEST, _MOST_STATES // n_cells)) // _CHAINS_OF_MANY


def moments_of(state: State, centre: Floats, half_range: Floats) -> Moments:
    """Return the moments of states, one a cell, in half ranges."""
    return Moments(
        n=np.broadcast_to(state.n, state.mean.shape[1:]),
        total=(state.n * state.mean).T,
        products=np.moveaxis(state.n * state.second, 2, 0),
        centre=centre,
        half_range=half_range,
    )


def mixture_of_states(
    distribution: ConjugateDistribution, kept: Floats, rng: np.random.Generator
) -> ConjugateMixture:
    """Return the mixture over states, and what R-hat and effective draws say of parameters drawn from it.

    Parameters
    ----------
    distribution : NormalInverseWishartDistribution or RegressionDistribution
        Of the parameters given every state: in the order of draws, then chains, then cells.
    kept : ndarray of shape (iterations, n_coordinates, n_cells, n_chains), float64
        What the chains have drawn.
    rng : numpy.random.Generator
    """
    iterations, _, n_cells, n_chains = kept.shape
    drawn = distribution.sample(1, rng)
    each = [values[0].reshape(iterations, n_chains, n_cells, -1) for values in drawn.values()]
    parameters = normal_scores(np.concatenate(each, axis=3))
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


AnyNormalPrior: TypeAlias = NormalInverseWishart | SpreadNormalInverseWishart
AnyRegressionPrior: TypeAlias = NormalInverseGammaRegression | SpreadNormalInverseGammaRegression
ConjugateDistribution: TypeAlias = NormalInverseWishartDistribution | RegressionDistribution
Update: TypeAlias = "Callable[[Moments, Floats, np.random.Generator], ConjugateDistribution]"
"""Moments, coordinates of latent scales (n_latent, n_cells), a generator -> parameters given both."""


def normal_evidence(
    prior: AnyNormalPrior, size: int, centre: Floats, half_range: Floats, *, linear: bool
) -> NormalEvidence | SpreadNormalEvidence:
    """Return the evidence of the first `size` columns under a prior in the columns' units."""
    if isinstance(prior, SpreadNormalInverseWishart):
        middle, width = prior.of(size)
        return SpreadNormalEvidence(
            loc=(middle - centre) / half_range, half_range=width / half_range, linear=linear
        )
    loc, precision, df, scale = prior.of(size)
    return NormalEvidence(
        loc=(loc - centre) / half_range,
        precision=precision,
        df=df,
        scale=scale / half_range / half_range[:, None],
        linear=linear,
    )


def normal_update(
    prior: AnyNormalPrior, evidence: NormalEvidence | SpreadNormalEvidence, names: tuple[str, ...]
) -> Update:
    """Return how parameters follow from moments and scales."""
    if isinstance(prior, SpreadNormalInverseWishart) and isinstance(evidence, SpreadNormalEvidence):

        def given_scales(
            moments: Moments, latent: Floats, rng: np.random.Generator
        ) -> NormalInverseWishartDistribution:
            variance, weight = evidence.variances(latent).T, evidence.weight(moments.n, latent)
            return updated_given_scales(prior, moments, names, variance, weight, rng)

        return given_scales
    if not isinstance(prior, NormalInverseWishart):
        raise TypeError(prior)
    return lambda moments, _latent, _rng: NormalInverseWishartDistribution.updated(prior, moments, names)


def regression_evidence(
    prior: AnyRegressionPrior, parameters: Constants
) -> RegressionEvidence | SpreadRegressionEvidence:
    """Return the evidence of the last column given the others under a prior in the columns' units."""
    scaling, linear = Scaling.of(parameters), is_linear(parameters)
    if isinstance(prior, SpreadNormalInverseGammaRegression):
        matrix, shift = prior.map_to_half_ranges(len(parameters.columns), linear=linear)
        _, half_range = prior.of(len(parameters.columns), linear=linear)
        outcome = float(half_range[-1]) / scaling.outcome
        return SpreadRegressionEvidence(
            loc=scaling.coefficients_in_half_ranges(shift),
            root=np.asarray(np.linalg.solve(matrix, scaling.matrix) * outcome, dtype=np.float64),
            outcome=outcome,
            linear=linear,
        )
    prior_loc, prior_precision, concentration, scale = prior.of(len(scaling.shift))
    loc, precision = scaling.to_half_ranges(prior_loc, prior_precision)
    return RegressionEvidence(
        loc=loc,
        precision=precision,
        concentration=concentration,
        scale=scale / scaling.outcome**2,
        linear=linear,
    )


def regression_update(
    prior: AnyRegressionPrior,
    evidence: RegressionEvidence | SpreadRegressionEvidence,
    parameters: Constants,
) -> Update:
    """Return how parameters follow from moments and scales."""
    if isinstance(evidence, SpreadRegressionEvidence):

        def given_scales(
            moments: Moments, latent: Floats, _rng: np.random.Generator
        ) -> RegressionDistribution:
            precision, scale = evidence.prior(latent)
            return RegressionDistribution.given(
                evidence.loc, np.moveaxis(precision, 2, 0), CONCENTRATION, scale, moments, parameters
            )

        return given_scales
    if not isinstance(prior, NormalInverseGammaRegression):
        raise TypeError(prior)
    return lambda moments, _latent, _rng: RegressionDistribution.updated(prior, moments, parameters)
