r"""Geometric: failures before the first success, clipped to ``0..upper`` and rounded.

.. math:: p(x \mid p) = p (1 - p)^x, \quad x = 0, 1, \ldots, \quad T(x) = x

Sensitivity in `sensitivity.md`: partition-of-unity (x, C - x) or minimal-sum (x).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.pipeline.declaration.fields import Count
from suffice.pipeline.distributions.beta import Beta
from suffice.pipeline.families.shared.one_sum import (
    SumLattice,
    SumSpec,
    beta_distribution,
    bounds,
    failures_before,
    one_sum_family,
    success_log_likelihood,
)
from suffice.pipeline.statistics.beyond_bounds import failures_outside
from suffice.pipeline.statistics.clipped_counts import clipped_failures

if TYPE_CHECKING:
    import numpy as np

    from suffice.pipeline.distributions.distribution import Distribution
    from suffice.pipeline.engines.one_sum.marginals import Marginal
    from suffice.pipeline.families.shared.one_sum import OneSum
    from suffice.pipeline.statistics.beyond_bounds import Outside
    from suffice.pipeline.statistics.block import Parameters
    from suffice.typing import Floats


class GeometricSpec(SumSpec):
    """A column of failures before the first success."""

    upper: Count


def lattice(spec: GeometricSpec) -> SumLattice:
    """Return the integers from 0 to the bound."""
    return SumLattice.counting(spec.upper)


def default_prior(_parameters: Parameters) -> Beta:
    """Return the uniform prior."""
    return Beta(1, 1)


def update(prior: Beta, sums: OneSum, _parameters: Parameters) -> Distribution:
    r"""Return :math:`\mathrm{Beta}(a + n, b + \text{total})`, of the probability of success."""
    return beta_distribution(prior, sums.n, sums.total)


def marginal(prior: Beta, _parameters: Parameters) -> Marginal:
    """Return the beta negative binomial distribution of the failures before as many successes as rows."""
    from suffice.pipeline.engines.one_sum.marginals import BetaNegativeBinomial  # noqa: PLC0415 - consumers only

    return BetaNegativeBinomial(
        concentration1=prior.concentration1, concentration0=prior.concentration0, successes=1.0
    )


def log_likelihood(probability: Floats, sums: OneSum, _parameters: Parameters) -> Floats:
    r"""Return :math:`n \log p + \text{total} \log(1 - p)`."""
    return success_log_likelihood(probability, sums.n, sums.total)


def draw(_spec: GeometricSpec, probability: Floats, rng: np.random.Generator) -> Floats:
    """Return one number of failures for every probability."""
    return failures_before(1.0, probability, rng)


def outside(probability: Floats, parameters: Parameters) -> Outside:
    """Return counts above the bound."""
    return failures_outside(probability, bounds(parameters)[1])


def clipped_record(probability: Floats, parameters: Parameters) -> Floats:
    """Return the chances of a clipped count, (probability, count)."""
    return clipped_failures(probability, int(bounds(parameters)[1]))


FAMILY = one_sum_family(
    name="geometric",
    spec=GeometricSpec,
    lattice=lattice,
    prior=Beta,
    default_prior=default_prior,
    update=update,
    marginal=marginal,
    log_likelihood=log_likelihood,
    draw=draw,
    outside=outside,
    clipped_record=clipped_record,
)
