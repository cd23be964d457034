r"""Laplace with a known location ``m``: distances from it, clipped to ``0..half_range``.

.. math:: p(x \mid b) = e^{-|x - m| / b} / 2b, \quad T(x) = |x - m|

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
from suffice.pipeline.statistics.beyond_bounds import gamma_scale_outside
from suffice.pipeline.statistics.lattice import require_interval
from suffice.pipeline.statistics.transforms import Shape, Transform

if TYPE_CHECKING:
    from suffice.pipeline.distributions.distribution import Distribution
    from suffice.pipeline.engines.one_sum.marginals import Marginal
    from suffice.pipeline.families.shared.one_sum import OneSum
    from suffice.pipeline.statistics.beyond_bounds import Outside
    from suffice.pipeline.statistics.block import Parameters
    from suffice.typing import Floats


class LaplaceSpec(LatticeSumSpec):
    """A numeric column clipped to ``location - half_range .. location + half_range``."""

    location: Bound
    half_range: Positive

    @model_validator(mode="after")
    def _bounds_are_an_interval(self) -> Self:
        require_interval(self.location - self.half_range, self.location + self.half_range)
        return self


def lattice(spec: LaplaceSpec) -> SumLattice:
    """Return the lattice of ``|x - location| / half_range`` from 0 to 1."""
    return SumLattice.transformed(
        Transform(shape=Shape.ABSOLUTE, centre=float(spec.location), unit=float(spec.half_range)),
        spec.half_range,
        spec.lattice_bits,
    )


def default_prior(parameters: Parameters) -> InverseGamma:
    """Return ``InverseGamma(3, half_range / 2)``: a scale of a quarter of the half range on average."""
    return InverseGamma(3, bounds(parameters)[1] / 2)


def update(prior: InverseGamma, sums: OneSum, _parameters: Parameters) -> Distribution:
    r"""Return :math:`\mathrm{InverseGamma}(a + n, s + \text{total})`."""
    return inverse_gamma_distribution(prior, sums, share=1.0, name="scale")


def marginal(prior: InverseGamma, _parameters: Parameters) -> Marginal:
    """Return the distribution of the total, a scaled beta prime: one over the scale has a gamma prior."""
    return gamma_marginal(prior.concentration, prior.scale)


def log_likelihood(scale: Floats, sums: OneSum, _parameters: Parameters) -> Floats:
    r"""Return :math:`-n \log b - \text{total} / b`."""
    return -sums.n * np.log(scale) - sums.total / scale


def draw(spec: LaplaceSpec, scale: Floats, rng: np.random.Generator) -> Floats:
    """Return one value for every scale."""
    return rng.laplace(float(spec.location), scale)


def outside(scale: Floats, parameters: Parameters) -> Outside:
    """Return distances above the bound, which are exponential."""
    return gamma_scale_outside(scale, bounds(parameters)[1])


FAMILY = one_sum_family(
    name="laplace",
    spec=LaplaceSpec,
    lattice=lattice,
    prior=InverseGamma,
    default_prior=default_prior,
    update=update,
    marginal=marginal,
    log_likelihood=log_likelihood,
    draw=draw,
    outside=outside,
)
