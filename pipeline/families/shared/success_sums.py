r"""Totals of trials that succeed or fail with one probability, which a beta is conjugate to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.families.shared.clipped_record import counting
from suffice.pipeline.families.shared.one_sum import LARGEST_RATE
from suffice.pipeline.families.shared.parameter_space import ParameterSpace, Support
from suffice.pipeline.families.shared.sum_model import OneSum, SumModel, bounds, known, known_exactly
from suffice.pipeline.math.distributions.beta import Beta, BetaDistribution
from suffice.pipeline.terms.statistics.beyond_bounds import clipped_failures, failures_outside

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.engines.jax_sums import Total
    from suffice.pipeline.math.engines.one_sum.noisy_sum import Marginal
    from suffice.pipeline.terms.statistics.block import Parameters
    from suffice.typing import Floats

PROBABILITY = ParameterSpace(name="probability", support=Support.PROBABILITY)


def failures_before_successes(successes: float | str) -> SumModel:
    r"""Return the model of a probability p of success where T is the failures before r successes.

    .. math:: p(\text{total} \mid p) \propto p^{r n} (1 - p)^{\text{total}}, \quad
              p \sim \mathrm{Beta}(a, b) \mapsto \mathrm{Beta}(a + r n, b + \text{total})

    The default prior is uniform.

    Parameters
    ----------
    successes : float or str
        r, or the name of the constant that it is.
    """

    def update(prior: Beta, sums: OneSum, parameters: Parameters) -> Distribution:
        return beta_distribution(prior, known(successes, parameters) * sums.n, sums.total)

    def marginal(prior: Beta, parameters: Parameters) -> Marginal:
        from suffice.pipeline.math.engines.one_sum.noisy_sum import BetaNegativeBinomial  # consumers only

        return BetaNegativeBinomial(
            concentration1=prior.concentration1,
            concentration0=prior.concentration0,
            successes=known(successes, parameters),
        )

    def log_likelihood(probability: Floats, sums: OneSum, parameters: Parameters) -> Floats:
        return success_log_likelihood(probability, known(successes, parameters) * sums.n, sums.total)

    def natural(
        probability: Fraction, log: Callable[[Fraction], Fraction], parameters: Parameters
    ) -> tuple[Fraction, Fraction]:
        return log(1 - probability), -known_exactly(successes, parameters) * log(probability)

    def in_jax(probability: Any, n: Any, parameters: Parameters) -> Total:
        from suffice.pipeline.math.engines import jax_sums  # an extra

        return jax_sums.NegativeBinomialTotal(n * known(successes, parameters), probability)

    def limits(parameters: Parameters) -> tuple[float, float]:
        """The mean of T is r (1 - p) / p."""
        number = known(successes, parameters)
        return number / (number + bounds(parameters)[1]), 1.0

    return SumModel(
        parameter=PROBABILITY,
        prior=Beta,
        default_prior=uniform_prior,
        update=update,
        marginal=marginal,
        log_likelihood=log_likelihood,
        natural=natural,
        in_jax=in_jax,
        outside=lambda probability, parameters: failures_outside(
            probability, bounds(parameters)[1], known(successes, parameters)
        ),
        clipped_record=counting(
            lambda probability, parameters: clipped_failures(
                probability, int(bounds(parameters)[1]), known(successes, parameters)
            )
        ),
        limits=limits,
    )


def uniform_prior(_parameters: Parameters) -> Beta:
    """Return the uniform prior of a probability."""
    return Beta(1, 1)


def beta_distribution(prior: Beta, successes: Floats, failures: Floats) -> Distribution:
    """Return the distribution of a probability after these, possibly fractional, successes and failures."""
    return BetaDistribution(
        concentration1=prior.concentration1 + successes, concentration0=prior.concentration0 + failures
    )


def log_odds(
    probability: Fraction, trials: Fraction, log: Callable[[Fraction], Fraction]
) -> tuple[Fraction, Fraction]:
    """Return the natural parameter of so many trials that succeed with a probability, and its normaliser."""
    failure = log(1 - probability)
    return log(probability) - failure, -trials * failure


def success_log_likelihood(probability: Floats, successes: Floats, failures: Floats) -> Floats:
    r"""Return :math:`s \log p + f \log(1 - p)`, of a probability that a beta is conjugate to."""
    from scipy.special import xlog1py, xlogy

    return np.asarray(xlogy(successes, probability) + xlog1py(failures, -probability), dtype=np.float64)


def failures_before(successes: float, probability: Floats, rng: np.random.Generator) -> Floats:
    """Return how many trials fail before that many succeed, for every probability of success."""
    mean = rng.standard_gamma(successes, probability.shape) * (1.0 - probability)
    return rng.poisson(np.minimum(mean, LARGEST_RATE * probability) / probability).astype(np.float64)
