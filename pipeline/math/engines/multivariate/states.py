"""From the states of chains to the distribution of parameters: how many are kept, and what they are worth."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.distributions.conjugate_mixture import ConjugateMixture
from suffice.pipeline.math.distributions.moment_projection import Moments
from suffice.pipeline.math.engines.multivariate.hmc import effective_draws, normal_scores, split_r_hat

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.multivariate.evidence import State
    from suffice.pipeline.math.engines.multivariate.priors_of_columns import ConjugateDistribution
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
