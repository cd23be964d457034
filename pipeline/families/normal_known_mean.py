r"""Normal with a known mean: squared distances from it, clipped to ``0..half_range**2``.

.. math:: p(x \mid v) \propto v^{-1/2} e^{-(x - \mu)^2 / 2 v}, \quad T(x) = (x - \mu)^2

Sensitivity in `sensitivity.md`: partition-of-unity (X, M - X) or minimal-sum (X): ``M = 2**lattice_bits``
lattice steps from 0 to the bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from pydantic import model_validator

from suffice.pipeline.declaration.fields import Bound, Positive
from suffice.pipeline.distributions.inverse_gamma import InverseGamma
from suffice.pipeline.families.shared.one_sum import (
    LatticeSumSpec,
    SumLattice,
    bounds,
    gamma_marginal,
    inverse_gamma_distribution,
    one_sum_family,
)
from suffice.pipeline.statistics.beyond_bounds import Outside, gamma_scale_outside
from suffice.pipeline.statistics.lattice import require_interval
from suffice.pipeline.statistics.transforms import Shape, Transform

if TYPE_CHECKING:
    from suffice.pipeline.distributions.distribution import Distribution
    from suffice.pipeline.engines.one_sum.marginals import Marginal
    from suffice.pipeline.families.shared.one_sum import OneSum
    from suffice.pipeline.statistics.block import Parameters
    from suffice.typing import Floats


class NormalKnownMeanSpec(LatticeSumSpec):
    """A numeric column clipped to ``mean - half_range .. mean + half_range``."""

    mean: Bound
    half_range: Positive

    @model_validator(mode="after")
    def _bounds_are_an_interval(self) -> Self:
        require_interval(self.mean - self.half_range, self.mean + self.half_range)
        return self


def lattice(spec: NormalKnownMeanSpec) -> SumLattice:
    """Return the lattice of ``((x - mean) / half_range)**2`` from 0 to 1."""
    return SumLattice.transformed(
        Transform(shape=Shape.SQUARE, centre=float(spec.mean), unit=float(spec.half_range)),
        spec.half_range**2,
        spec.lattice_bits,
    )


def default_prior(parameters: Parameters) -> InverseGamma:
    """Return ``InverseGamma(3, half_range**2 / 2)``: the variance that a normal statistic has by default."""
    return InverseGamma(3, bounds(parameters)[1] / 2)


def update(prior: InverseGamma, sums: OneSum, _parameters: Parameters) -> Distribution:
    r"""Return :math:`\mathrm{InverseGamma}(a + n / 2, s + \text{total} / 2)`."""
    return inverse_gamma_distribution(prior, sums, share=0.5, name="variance")


def marginal(prior: InverseGamma, _parameters: Parameters) -> Marginal:
    """Return the distribution of the total, a scaled beta prime: one over the variance has a gamma prior."""
    return gamma_marginal(prior.concentration, prior.scale, shape=0.5, share=0.5)


def log_likelihood(variance: Floats, sums: OneSum, _parameters: Parameters) -> Floats:
    r"""Return :math:`-(n \log v + \text{total} / v) / 2`."""
    return -(sums.n * np.log(variance) + sums.total / variance) / 2


def draw(spec: NormalKnownMeanSpec, variance: Floats, rng: np.random.Generator) -> Floats:
    """Return one value for every variance."""
    return rng.normal(float(spec.mean), np.sqrt(variance))


def outside(variance: Floats, parameters: Parameters) -> Outside:
    """Return squares above the bound: a square is twice the variance times a gamma variable of shape 1/2."""
    found = gamma_scale_outside(2.0 * variance, bounds(parameters)[1], 0.5)
    return Outside(share=found.share, shifts=(found.shifts[0] / 2.0,))


FAMILY = one_sum_family(
    name="normal_known_mean",
    spec=NormalKnownMeanSpec,
    lattice=lattice,
    prior=InverseGamma,
    default_prior=default_prior,
    update=update,
    marginal=marginal,
    log_likelihood=log_likelihood,
    draw=draw,
    outside=outside,
)
