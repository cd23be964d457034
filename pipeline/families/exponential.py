r"""Exponential: a waiting time, clipped to ``0..upper``.

.. math:: p(x \mid r) = r e^{-r x}, \quad x \ge 0, \quad T(x) = x

Sensitivity in `sensitivity.md`: partition-of-unity (X, M - X) or minimal-sum (X): ``M = 2**lattice_bits``
lattice steps from 0 to the bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.pipeline.declaration.fields import Positive
from suffice.pipeline.distributions.gamma import Gamma
from suffice.pipeline.families.shared.one_sum import (
    LatticeSumSpec,
    SumLattice,
    bounds,
    gamma_distribution,
    gamma_marginal,
    one_sum_family,
    rate_log_likelihood,
)
from suffice.pipeline.statistics.beyond_bounds import gamma_rate_outside

if TYPE_CHECKING:
    import numpy as np

    from suffice.pipeline.distributions.distribution import Distribution
    from suffice.pipeline.engines.one_sum.marginals import Marginal
    from suffice.pipeline.families.shared.one_sum import OneSum
    from suffice.pipeline.statistics.beyond_bounds import Outside
    from suffice.pipeline.statistics.block import Parameters
    from suffice.typing import Floats


class ExponentialSpec(LatticeSumSpec):
    """A numeric column clipped to ``0..upper``."""

    upper: Positive


def lattice(spec: ExponentialSpec) -> SumLattice:
    """Return the lattice from 0 to the bound."""
    return SumLattice.from_zero(spec.upper, spec.lattice_bits)


def default_prior(parameters: Parameters) -> Gamma:
    """Return ``Gamma(1, upper / 2)``: as if one record at half the bound had been seen."""
    return Gamma(1, bounds(parameters)[1] / 2)


def update(prior: Gamma, sums: OneSum, _parameters: Parameters) -> Distribution:
    r"""Return :math:`\mathrm{Gamma}(a + n, b + \text{total})`."""
    return gamma_distribution(prior, sums)


def marginal(prior: Gamma, _parameters: Parameters) -> Marginal:
    """Return the distribution of the total, a scaled beta prime."""
    return gamma_marginal(prior.concentration, prior.rate)


def log_likelihood(rate: Floats, sums: OneSum, _parameters: Parameters) -> Floats:
    r"""Return :math:`n \log r - r \, \text{total}`."""
    return rate_log_likelihood(rate, sums)


def draw(_spec: ExponentialSpec, rate: Floats, rng: np.random.Generator) -> Floats:
    """Return one value for every rate."""
    return rng.standard_exponential(rate.shape) / rate


def outside(rate: Floats, parameters: Parameters) -> Outside:
    """Return values above the bound."""
    return gamma_rate_outside(rate, bounds(parameters)[1])


FAMILY = one_sum_family(
    name="exponential",
    spec=ExponentialSpec,
    lattice=lattice,
    prior=Gamma,
    default_prior=default_prior,
    update=update,
    marginal=marginal,
    log_likelihood=log_likelihood,
    draw=draw,
    outside=outside,
)
