r"""Negative binomial: failures before a known number of successes, clipped to ``0..upper`` and rounded.

.. math:: p(x \mid p) = \frac{\Gamma(x + r)}{x! \, \Gamma(r)} p^r (1 - p)^x, \quad T(x) = x

Sensitivity in `sensitivity.md`: partition-of-unity (x, C - x) or minimal-sum (x).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.families import bernoulli
from suffice.pipeline.families.shared import one_sum
from suffice.pipeline.families.shared.clipped_record import clipped_failures, counting, failures_outside
from suffice.pipeline.math.distributions.dirichlet import Beta
from suffice.pipeline.terms.declaration.fields import Count, Positive

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.engines.jax_sums import Total
    from suffice.pipeline.math.engines.one_sum.noisy_sum import Marginal
    from suffice.pipeline.terms.statistics.sensitivity import Constants
    from suffice.typing import Floats


def failures_before_successes(successes: float | str) -> one_sum.SumModel:
    r"""Return the model of a probability p of success where T is the failures before r successes.

    .. math:: p(\text{total} \mid p) \propto p^{r n} (1 - p)^{\text{total}}, \quad
              p \sim \mathrm{Beta}(a, b) \mapsto \mathrm{Beta}(a + r n, b + \text{total})

    The default prior is uniform.

    Parameters
    ----------
    successes : float or str
        r, or the name of the constant that it is.
    """

    def update(prior: Beta, sums: one_sum.OneSum, parameters: Constants) -> Distribution:
        return bernoulli.beta_distribution(prior, one_sum.known(successes, parameters) * sums.n, sums.total)

    def marginal(prior: Beta, parameters: Constants) -> Marginal:
        from suffice.pipeline.math.engines.one_sum.noisy_sum import BetaNegativeBinomial

        return BetaNegativeBinomial(
            concentration1=prior.concentration1,
            concentration0=prior.concentration0,
            successes=one_sum.known(successes, parameters),
        )

    def log_likelihood(probability: Floats, sums: one_sum.OneSum, parameters: Constants) -> Floats:
        return bernoulli.success_log_likelihood(
            probability, one_sum.known(successes, parameters) * sums.n, sums.total
        )

    def natural(
        probability: Fraction, log: Callable[[Fraction], Fraction], parameters: Constants
    ) -> tuple[Fraction, Fraction]:
        return log(1 - probability), -one_sum.known_exactly(successes, parameters) * log(probability)

    def in_jax(probability: Any, n: Any, parameters: Constants) -> Total:
        from suffice.pipeline.math.engines import jax_sums

        return jax_sums.NegativeBinomialTotal(n * one_sum.known(successes, parameters), probability)

    def limits(parameters: Constants) -> tuple[float, float]:
        """The mean of T is r (1 - p) / p."""
        number = one_sum.known(successes, parameters)
        return number / (number + one_sum.bounds(parameters)[1]), 1.0

    return one_sum.SumModel(
        parameter=bernoulli.PROBABILITY,
        prior=Beta,
        default_prior=bernoulli.uniform_prior,
        update=update,
        marginal=marginal,
        log_likelihood=log_likelihood,
        natural=natural,
        in_jax=in_jax,
        outside=lambda probability, parameters: failures_outside(
            probability, one_sum.bounds(parameters)[1], one_sum.known(successes, parameters)
        ),
        clipped_record=counting(
            lambda probability, parameters: clipped_failures(
                probability, int(one_sum.bounds(parameters)[1]), one_sum.known(successes, parameters)
            )
        ),
        limits=limits,
    )


def failures_before(successes: float, probability: Floats, rng: np.random.Generator) -> Floats:
    """Return how many trials fail before that many succeed, for every probability of success."""
    mean = rng.standard_gamma(successes, probability.shape) * (1.0 - probability)
    return rng.poisson(np.minimum(mean, one_sum.LARGEST_RATE * probability) / probability).astype(np.float64)


class NegativeBinomialSpec(one_sum.SumSpec):
    """A column of failures before `successes` successes, a number above 0 that need not be whole."""

    successes: Positive
    upper: Count


FAMILY = one_sum.one_sum_family(
    name="negative_binomial",
    spec=NegativeBinomialSpec,
    lattice=lambda spec: one_sum.SumLattice.counting(spec.upper),
    clipping_bounds=lambda spec: (Fraction(0), Fraction(spec.upper)),
    constants=lambda spec: {"successes": spec.successes},
    model=failures_before_successes("successes"),
    draw=lambda spec, probability, rng: failures_before(float(spec.successes), probability, rng),
    mean="successes * (1 - probability) / probability",
    example={"successes": "2.5", "upper": "12"},
    generative_case={"successes": "2.5", "upper": "100"},
    generative_prior="Beta(8, 4)",
)
