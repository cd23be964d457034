r"""Binomial: successes among a known number of trials; clipped to ``0..trials`` and rounded.

.. math:: p(x \mid p) = \binom{m}{x} p^x (1 - p)^{m - x}, \quad T(x) = x

Sensitivity in `sensitivity.md`: partition-of-unity (x, m - x) or minimal-sum (x).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.families import bernoulli
from suffice.pipeline.families.shared import one_sum
from suffice.pipeline.math.distributions.dirichlet import Beta
from suffice.pipeline.math.distributions.interval_kinds import HIGHEST_DENSITY
from suffice.pipeline.terms.declaration.fields import Count

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.engines.jax_sums import Total
    from suffice.pipeline.math.engines.one_sum.noisy_sum import Marginal
    from suffice.pipeline.terms.statistics.sensitivity import Constants
    from suffice.typing import Floats


class BinomialSpec(one_sum.SumSpec):
    """A column of successes among `trials` each."""

    trials: Count


def failures(sums: one_sum.OneSum, parameters: Constants) -> Floats:
    """Return how many trials failed; the bound of T is the number of trials."""
    return one_sum.bounds(parameters)[1] * sums.n - sums.total


def update(prior: Beta, sums: one_sum.OneSum, parameters: Constants) -> Distribution:
    r"""Return :math:`\mathrm{Beta}(a + \text{total}, b + m n - \text{total})`."""
    return bernoulli.beta_distribution(prior, sums.total, failures(sums, parameters))


def marginal(prior: Beta, parameters: Constants) -> Marginal:
    """Return the beta binomial distribution of the successes among all trials."""
    from suffice.pipeline.math.engines.one_sum.noisy_sum import BetaBinomial  # consumers only

    return BetaBinomial(
        concentration1=prior.concentration1,
        concentration0=prior.concentration0,
        trials=one_sum.bounds(parameters)[1],
    )


def log_likelihood(probability: Floats, sums: one_sum.OneSum, parameters: Constants) -> Floats:
    r"""Return :math:`\text{total} \log p + (m n - \text{total}) \log(1 - p)`."""
    return bernoulli.success_log_likelihood(probability, sums.total, failures(sums, parameters))


def natural(
    probability: Fraction, log: Callable[[Fraction], Fraction], parameters: Constants
) -> tuple[Fraction, Fraction]:
    """Return the log odds and the log normaliser; the bound of T is the number of trials."""
    return bernoulli.log_odds(probability, one_sum.exact_bounds(parameters)[1], log)


def in_jax(probability: Any, n: Any, parameters: Constants) -> Total:
    """Return the binomial distribution of the successes among all trials."""
    from suffice.pipeline.math.engines import jax_sums  # an extra

    return jax_sums.BinomialTotal(n * one_sum.bounds(parameters)[1], probability)


FAMILY = one_sum.one_sum_family(
    name="binomial",
    spec=BinomialSpec,
    lattice=lambda spec: one_sum.SumLattice.counting(spec.trials),
    clipping_bounds=lambda spec: (Fraction(0), Fraction(spec.trials)),
    model=one_sum.SumModel(
        parameter=bernoulli.PROBABILITY,
        prior=Beta,
        default_prior=bernoulli.uniform_prior,
        update=update,
        marginal=marginal,
        log_likelihood=log_likelihood,
        natural=natural,
        in_jax=in_jax,
        interval=HIGHEST_DENSITY,
    ),
    draw=lambda spec, probability, rng: rng.binomial(spec.trials, probability).astype(np.float64),
    mean="trials * probability",
    example={"trials": "12"},
    generative_case={"trials": "5"},
)
