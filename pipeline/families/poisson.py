r"""Poisson: counts, clipped to a public upper bound ``C`` and rounded.

.. math:: p(x \mid \lambda) = e^{-\lambda} \lambda^x / x!, \quad T(x) = x

Sensitivity in `sensitivity.md`: partition-of-unity (x, C - x) or minimal-sum (x); one-row-a-unit.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.families.shared import one_sum
from suffice.pipeline.families.shared.clipped_record import clipped_poisson, counting, poisson_outside
from suffice.pipeline.families.shared.contract import ONE_ROW_A_UNIT
from suffice.pipeline.families.shared.parameter_space import ParameterSpace, Support
from suffice.pipeline.math.distributions.gamma import Gamma, GammaDistribution
from suffice.pipeline.math.distributions.interval_kinds import HIGHEST_DENSITY
from suffice.pipeline.terms.declaration.fields import Count

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.engines.jax_sums import Total
    from suffice.pipeline.math.engines.one_sum.noisy_sum import Marginal
    from suffice.pipeline.terms.statistics.sensitivity import Constants
    from suffice.typing import Floats


class PoissonSpec(one_sum.SumSpec):
    """A column of counts, clipped to ``0..upper`` and rounded."""

    upper: Count


def default_prior(parameters: Constants) -> Gamma:
    """Return ``Gamma(1, 2 / upper)``: a mean of half the bound."""
    return Gamma(1, 2 / one_sum.bounds(parameters)[1])


def update(prior: Gamma, sums: one_sum.OneSum, _parameters: Constants) -> Distribution:
    r"""Return :math:`\mathrm{Gamma}(a + \text{total}, b + n)`."""
    return GammaDistribution(concentration=prior.concentration + sums.total, rate=prior.rate + sums.n)


def marginal(prior: Gamma, _parameters: Constants) -> Marginal:
    """Return the negative binomial distribution of the total."""
    from suffice.pipeline.math.engines.one_sum.noisy_sum import GammaPoisson  # consumers only

    return GammaPoisson(concentration=prior.concentration, rate=prior.rate)


def log_likelihood(rate: Floats, sums: one_sum.OneSum, _parameters: Constants) -> Floats:
    r"""Return :math:`\text{total} \log r - r n`."""
    from scipy.special import xlogy

    likelihood: Floats = xlogy(sums.total, rate) - rate * sums.n
    return likelihood


def natural(
    rate: Fraction, log: Callable[[Fraction], Fraction], _parameters: Constants
) -> tuple[Fraction, Fraction]:
    """Return the logarithm of the rate, and the rate."""
    return log(rate), rate


def in_jax(rate: Any, n: Any, _parameters: Constants) -> Total:
    """Return the Poisson distribution of the total."""
    from suffice.pipeline.math.engines import jax_sums  # an extra

    return jax_sums.PoissonTotal(n * rate)


def clipped_record(rate: Floats, parameters: Constants) -> Floats:
    """Return the chances of a clipped count, (rate, count)."""
    return clipped_poisson(rate, int(one_sum.bounds(parameters)[1]))


FAMILY = one_sum.one_sum_family(
    name="poisson",
    spec=PoissonSpec,
    lattice=lambda spec: one_sum.SumLattice.counting(spec.upper),
    clipping_bounds=lambda spec: (Fraction(0), Fraction(spec.upper)),
    model=one_sum.SumModel(
        parameter=ParameterSpace(name="rate", support=Support.POSITIVE),
        prior=Gamma,
        default_prior=default_prior,
        update=update,
        marginal=marginal,
        log_likelihood=log_likelihood,
        natural=natural,
        in_jax=in_jax,
        outside=lambda rate, parameters: poisson_outside(rate, one_sum.bounds(parameters)[1]),
        clipped_record=counting(clipped_record),
        limits=lambda parameters: (0.0, one_sum.bounds(parameters)[1]),
        interval=HIGHEST_DENSITY,
    ),
    draw=lambda _spec, rate, rng: rng.poisson(np.minimum(rate, one_sum.LARGEST_RATE)).astype(np.float64),
    mean="rate",
    example={"upper": "1000"},
    generative_case={"upper": "40"},
    generative_prior="Gamma(4, 1)",
    of_units=ONE_ROW_A_UNIT,
)
