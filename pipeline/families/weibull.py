r"""Weibull with a known shape ``k``: a column clipped to ``0..upper``.

.. math:: p(x \mid r) = r k x^{k - 1} e^{-r x^k}, \quad x > 0, \quad T(x) = x^k

Sensitivity in `sensitivity.md`: partition-of-unity (X, M - X) or minimal-sum (X): ``M = 2**lattice_bits``
lattice steps from 0 to ``upper**k``.

The rate r is the scale to the power of -k.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pydantic import model_validator

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
from suffice.pipeline.statistics.transforms import Shape, Transform, power_bound

if TYPE_CHECKING:
    import numpy as np

    from suffice.pipeline.distributions.distribution import Distribution
    from suffice.pipeline.engines.one_sum.marginals import Marginal
    from suffice.pipeline.families.shared.one_sum import OneSum
    from suffice.pipeline.statistics.beyond_bounds import Outside
    from suffice.pipeline.statistics.block import Parameters
    from suffice.typing import Floats


class WeibullSpec(LatticeSumSpec):
    """A numeric column clipped to ``0..upper``."""

    shape: Positive
    upper: Positive

    @model_validator(mode="after")
    def _power_is_a_number(self) -> Self:
        try:
            power_bound(self.upper, self.shape)
        except OverflowError:
            message = "upper to the power of shape is too large or too small for float64"
            raise ValueError(message) from None
        return self


def lattice(spec: WeibullSpec) -> SumLattice:
    """Return the lattice of ``(x / upper)**k`` from 0 to 1."""
    return SumLattice.transformed(
        Transform(shape=Shape.POWER, unit=float(spec.upper), exponent=float(spec.shape)),
        power_bound(spec.upper, spec.shape),
        spec.lattice_bits,
    )


def default_prior(parameters: Parameters) -> Gamma:
    """Return ``Gamma(1, upper**k / 2)``: as if one record had been seen with half the largest power."""
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


def draw(spec: WeibullSpec, rate: Floats, rng: np.random.Generator) -> Floats:
    """Return one value for every rate."""
    return (rng.standard_exponential(rate.shape) / rate) ** (1.0 / float(spec.shape))


def outside(rate: Floats, parameters: Parameters) -> Outside:
    """Return powers above the bound, which are exponential."""
    return gamma_rate_outside(rate, bounds(parameters)[1])


FAMILY = one_sum_family(
    name="weibull",
    spec=WeibullSpec,
    lattice=lattice,
    prior=Gamma,
    default_prior=default_prior,
    update=update,
    marginal=marginal,
    log_likelihood=log_likelihood,
    draw=draw,
    outside=outside,
)
