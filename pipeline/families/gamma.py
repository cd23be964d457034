r"""Gamma with a known shape ``k``: a column clipped to ``0..upper``.

.. math:: p(x \mid r) \propto r^k x^{k - 1} e^{-r x}, \quad x > 0, \quad T(x) = x

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
    from collections.abc import Mapping
    from fractions import Fraction

    import numpy as np

    from suffice.pipeline.distributions.distribution import Distribution
    from suffice.pipeline.engines.one_sum.marginals import Marginal
    from suffice.pipeline.families.shared.one_sum import OneSum
    from suffice.pipeline.statistics.beyond_bounds import Outside
    from suffice.pipeline.statistics.block import Parameters
    from suffice.typing import Floats


class GammaSpec(LatticeSumSpec):
    """A numeric column clipped to ``0..upper``."""

    shape: Positive
    upper: Positive


def lattice(spec: GammaSpec) -> SumLattice:
    """Return the lattice from 0 to the bound."""
    return SumLattice.from_zero(spec.upper, spec.lattice_bits)


def constants(spec: GammaSpec) -> Mapping[str, Fraction]:
    """Return the shape."""
    return {"shape": spec.shape}


def default_prior(parameters: Parameters) -> Gamma:
    """Return ``Gamma(1, upper / 2k)``: a mean rate at which records average half the bound."""
    return Gamma(1, bounds(parameters)[1] / (2 * float(parameters.constants["shape"])))


def update(prior: Gamma, sums: OneSum, parameters: Parameters) -> Distribution:
    r"""Return :math:`\mathrm{Gamma}(a + k n, b + \text{total})`."""
    return gamma_distribution(prior, sums, shape=float(parameters.constants["shape"]))


def marginal(prior: Gamma, parameters: Parameters) -> Marginal:
    """Return the distribution of the total, a scaled beta prime."""
    return gamma_marginal(prior.concentration, prior.rate, shape=float(parameters.constants["shape"]))


def log_likelihood(rate: Floats, sums: OneSum, parameters: Parameters) -> Floats:
    r"""Return :math:`k n \log r - r \, \text{total}`."""
    return rate_log_likelihood(rate, sums, float(parameters.constants["shape"]))


def draw(spec: GammaSpec, rate: Floats, rng: np.random.Generator) -> Floats:
    """Return one value for every rate."""
    return rng.standard_gamma(float(spec.shape), rate.shape) / rate


def outside(rate: Floats, parameters: Parameters) -> Outside:
    """Return values above the bound."""
    return gamma_rate_outside(rate, bounds(parameters)[1], float(parameters.constants["shape"]))


FAMILY = one_sum_family(
    name="gamma",
    spec=GammaSpec,
    lattice=lattice,
    constants=constants,
    prior=Gamma,
    default_prior=default_prior,
    update=update,
    marginal=marginal,
    log_likelihood=log_likelihood,
    draw=draw,
    outside=outside,
)
