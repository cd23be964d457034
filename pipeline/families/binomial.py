r"""Binomial: successes among a known number of trials; clipped to ``0..trials`` and rounded.

.. math:: p(x \mid p) = \binom{m}{x} p^x (1 - p)^{m - x}, \quad T(x) = x

Sensitivity in `sensitivity.md`: partition-of-unity (x, m - x) or minimal-sum (x).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.families.shared.one_sum import (
    SumLattice,
    SumSpec,
    one_sum_family,
)
from suffice.pipeline.families.shared.success_sums import (
    PROBABILITY,
    beta_distribution,
    log_odds,
    success_log_likelihood,
    uniform_prior,
)
from suffice.pipeline.families.shared.sum_model import OneSum, SumModel, bounds, exact_bounds
from suffice.pipeline.math.distributions.beta import Beta
from suffice.pipeline.math.distributions.shortest_intervals import HIGHEST_DENSITY
from suffice.pipeline.terms.declaration.fields import Count

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.engines.jax_sums import Total
    from suffice.pipeline.math.engines.one_sum.noisy_sum import Marginal
    from suffice.pipeline.terms.statistics.block import Parameters
    from suffice.typing import Floats


class BinomialSpec(SumSpec):
    """A column of successes among `trials` each."""

    trials: Count


def lattice(spec: BinomialSpec) -> SumLattice:
    """Return the integers from 0 to the number of trials."""
    return SumLattice.counting(spec.trials)


def failures(sums: OneSum, parameters: Parameters) -> Floats:
    """Return how many trials failed; the bound of T is the number of trials."""
    return bounds(parameters)[1] * sums.n - sums.total


def update(prior: Beta, sums: OneSum, parameters: Parameters) -> Distribution:
    r"""Return :math:`\mathrm{Beta}(a + \text{total}, b + m n - \text{total})`."""
    return beta_distribution(prior, sums.total, failures(sums, parameters))


def marginal(prior: Beta, parameters: Parameters) -> Marginal:
    """Return the beta binomial distribution of the successes among all trials."""
    from suffice.pipeline.math.engines.one_sum.noisy_sum import BetaBinomial  # consumers only

    return BetaBinomial(
        concentration1=prior.concentration1,
        concentration0=prior.concentration0,
        trials=bounds(parameters)[1],
    )


def log_likelihood(probability: Floats, sums: OneSum, parameters: Parameters) -> Floats:
    r"""Return :math:`\text{total} \log p + (m n - \text{total}) \log(1 - p)`."""
    return success_log_likelihood(probability, sums.total, failures(sums, parameters))


def natural(
    probability: Fraction, log: Callable[[Fraction], Fraction], parameters: Parameters
) -> tuple[Fraction, Fraction]:
    """Return the log odds and the log normaliser; the bound of T is the number of trials."""
    return log_odds(probability, exact_bounds(parameters)[1], log)


def in_jax(probability: Any, n: Any, parameters: Parameters) -> Total:
    """Return the binomial distribution of the successes among all trials."""
    from suffice.pipeline.math.engines import jax_sums  # an extra

    return jax_sums.BinomialTotal(n * bounds(parameters)[1], probability)


def draw(spec: BinomialSpec, probability: Floats, rng: np.random.Generator) -> Floats:
    """Return one number of successes for every probability."""
    return rng.binomial(spec.trials, probability).astype(np.float64)


FAMILY = one_sum_family(
    name="binomial",
    spec=BinomialSpec,
    lattice=lattice,
    clipping_bounds=lambda spec: (Fraction(0), Fraction(spec.trials)),
    model=SumModel(
        parameter=PROBABILITY,
        prior=Beta,
        default_prior=uniform_prior,
        update=update,
        marginal=marginal,
        log_likelihood=log_likelihood,
        natural=natural,
        in_jax=in_jax,
        interval=HIGHEST_DENSITY,
    ),
    draw=draw,
    example={"trials": "12"},
    generative_case={"trials": "5"},
)
