r"""One posterior sample (OPS): the exponential mechanism with the log likelihood as its score.

Dimitrakakis and others (2014, Algorithm 1), Wang and others (2015), Foulds and others (2016, 2.2 and 3.1). On
parameters of a public set :math:`\Theta_0` where log likelihoods are bounded, a draw of

.. math:: \pi(\theta) L(\theta)^{1 / T}, \qquad T = \max(1, q R / \epsilon)

q times costs :math:`q R / T`, at most epsilon, in pure differential privacy, *if the draws have that law
exactly*. R is the largest range over :math:`\Theta_0` of what one neighbour changes in the log likelihood
(``range_of_change``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from studies.mechanisms.not_a_release import NotARelease, Relation, check_counts, check_positive
from studies.mechanisms.truncated import (
    check_least,
    draw_truncated_beta,
    draw_truncated_dirichlet,
    move_truncated_dirichlet,
)
from suffice.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from suffice.typing import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class PosteriorDraws(NotARelease):
    """Draws of a tempered posterior on a truncated set of parameters.

    Attributes
    ----------
    draws : ndarray, float64
        Draws first; then the shape of the data sets, or the K entries of a distribution.
    temperature : float, >= 1
    nominal_epsilon : float
        What all draws of one data set cost together, if their law is exact.
    is_exact : bool
        Whether it is. Draws of a Markov chain are not, and the nominal cost is no guarantee for them.
    """

    draws: Floats
    temperature: float
    nominal_epsilon: float
    is_exact: bool

    @property
    def caveats(self) -> tuple[str, ...]:
        """Which costs hold, and if what."""
        if self.is_exact:
            return (f"epsilon {self.nominal_epsilon:.6g} in exact arithmetic",)
        return (
            f"epsilon {self.nominal_epsilon:.6g} only if the chain has converged, which nobody can check",
        )

    @property
    def columns(self) -> Mapping[str, NDArray[np.generic]]:
        """One row for each number: its draw, its place within the draw, its value."""
        rows = self.draws.reshape(len(self.draws), -1)
        draw, place = np.indices(rows.shape)
        return {"draw": draw.ravel(), "place": place.ravel(), "value": rows.ravel()}


def change_bound(least: float, n_categories: int = 2) -> float:
    r"""Return C, the largest change of a category's log probability: the papers' sensitivity.

    Formula
        :math:`C = \log((1 - (K - 1) a_0) / a_0)`, which is :math:`\log(K (M - 1) + 1)` for
        :math:`a_0 = 1 / (M K)`.

    Parameters
    ----------
    least : float
        a0, the least probability, 0 < a0 < 1 / K.
    n_categories : int, >= 2
        K.
    """
    check_least(least, n_categories)
    return math.log((1.0 - (n_categories - 1) * least) / least)


def range_of_change(least: float, n_categories: int = 2, relation: Relation = "replace_one") -> float:
    """Return R, the range over parameters of what one neighbour changes in the log likelihood.

    Formula
        Replacing a record changes it by log x_j - log x_k, from -C to C: 2C. One record more changes it by
        log x_j, from log a0 up to log(1 - (K - 1) a0): C.

    Parameters are those of ``change_bound``, and the relation of neighbours.
    """
    return change_bound(least, n_categories) * (2.0 if relation == "replace_one" else 1.0)


def temperature(change_range: float, epsilon: float, draws: int = 1) -> float:
    """Return T = max(1, draws R / epsilon). Where 1 binds, the draws cost less than epsilon: draws R."""
    check_positive(change_range=change_range, epsilon=epsilon)
    if draws < 1:
        raise UsageError("draws must be at least 1")
    return max(1.0, draws * change_range / epsilon)


def sample_beta_bernoulli(
    successes: float | NDArray[np.number],
    failures: float | NDArray[np.number],
    *,
    epsilon: float,
    least: float,
    prior: tuple[float, float] = (1.0, 1.0),
    draws: int = 1,
    relation: Relation = "replace_one",
    rng: np.random.Generator,
) -> PosteriorDraws:
    """Draw a probability from its tempered posterior.

    Law
        Beta(a + successes / T, b + failures / T) on [a0, 1 - a0], by inversion: exact.
    Cost
        draws R / T, at most epsilon, for each data set.

    Parameters
    ----------
    successes, failures : float or ndarray
        Counts of one data set, or of many: an array has an entry for each.
    epsilon : float, > 0
        For all draws of a data set together.
    least : float
        a0, 0 < a0 < 1/2.
    prior : tuple of two floats, > 0
        a and b.
    draws : int, >= 1
    relation : {"add_or_remove_one", "replace_one"}
    rng : numpy.random.Generator

    Returns
    -------
    PosteriorDraws
        Draws of shape (draws, *shape of counts).
    """
    check_counts(successes=successes, failures=failures)
    check_positive(a=prior[0], b=prior[1])
    change = range_of_change(least, relation=relation)
    tempered = temperature(change, epsilon, draws)
    ones, zeros = np.broadcast_arrays(
        np.asarray(successes, dtype=np.float64), np.asarray(failures, dtype=np.float64)
    )
    shape = (draws, *ones.shape)
    draws_kept = draw_truncated_beta(
        np.broadcast_to(prior[0] + ones / tempered, shape),
        np.broadcast_to(prior[1] + zeros / tempered, shape),
        np.asarray(least),
        np.asarray(1.0 - least),
        rng,
    )
    return PosteriorDraws(
        draws=draws_kept, temperature=tempered, nominal_epsilon=draws * change / tempered, is_exact=True
    )


def sample_dirichlet(
    counts: NDArray[np.number],
    *,
    epsilon: float,
    least: float,
    prior: float = 1.0,
    draws: int = 1,
    relation: Relation = "replace_one",
    rounds: int | None = None,
    rng: np.random.Generator,
) -> PosteriorDraws:
    """Draw the probabilities of K categories from their tempered posterior.

    Law
        Dirichlet(prior + counts / T) on the simplex with every entry at least a0: by rejection, exact; with
        `rounds`, by so many rounds of Gibbs on pairs from a public start for each draw, its law in the limit.
    Cost
        draws R / T, at most epsilon, if the law is exact.

    Parameters
    ----------
    counts : ndarray of shape (K,)
    epsilon : float, > 0
        For all draws together.
    least : float
        a0, 0 < a0 < 1 / K; the papers take 1 / (M K).
    prior : float, > 0
    draws : int, >= 1
    relation : {"add_or_remove_one", "replace_one"}
    rounds : int, optional
        Rejection without it.
    rng : numpy.random.Generator

    Returns
    -------
    PosteriorDraws
        Draws of shape (draws, K).
    """
    check_counts(counts=counts)
    check_positive(prior=prior)
    change = range_of_change(least, counts.size, relation)
    tempered = temperature(change, epsilon, draws)
    parameters = prior + counts.astype(np.float64) / tempered
    if rounds is None:
        drawn = draw_truncated_dirichlet(parameters, least, draws=draws, rng=rng)
    else:
        start = public_start((draws, counts.size), least, rng)
        drawn = move_truncated_dirichlet(start, parameters, least, rounds=rounds, rng=rng)
    return PosteriorDraws(
        draws=drawn,
        temperature=tempered,
        nominal_epsilon=draws * change / tempered,
        is_exact=rounds is None,
    )


def public_start(shape: tuple[int, ...], least: float, rng: np.random.Generator) -> Floats:
    """Return distributions along the last axis that know nothing of data: `least`, and a flat rest."""
    check_least(least, shape[-1])
    start: Floats = least + (1.0 - shape[-1] * least) * rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])
    return start


def laplace_beta_bernoulli(
    successes: NDArray[np.number],
    failures: NDArray[np.number],
    *,
    epsilon: float,
    prior: tuple[float, float] = (1.0, 1.0),
    relation: Relation = "replace_one",
    rng: np.random.Generator,
) -> PosteriorDraws:
    """Draw a probability from the posterior of noisy counts taken for exact: the papers' other side.

    Law
        Beta(a + max(0, y1), b + max(0, y0)), y the counts plus discrete Laplace noise of scale 2 / epsilon
        (a replaced record moves both counts) or 1 / epsilon (one record more or fewer).
    Cost
        epsilon for any number of draws; one for each data set is made.

    Parameters and returns are those of ``sample_beta_bernoulli``.
    """
    check_counts(successes=successes, failures=failures)
    check_positive(epsilon=epsilon, a=prior[0], b=prior[1])
    chance = -math.expm1(-epsilon / (2.0 if relation == "replace_one" else 1.0))
    noisy = []
    for counts in (successes, failures):
        shape = np.shape(counts)
        noise = rng.geometric(chance, shape) - rng.geometric(chance, shape)
        noisy.append(np.maximum(np.asarray(counts) + noise, 0))
    drawn = rng.beta(prior[0] + noisy[0], prior[1] + noisy[1])[None]
    return PosteriorDraws(draws=drawn, temperature=1.0, nominal_epsilon=epsilon, is_exact=True)
