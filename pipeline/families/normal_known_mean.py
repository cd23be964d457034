r"""Normal with a known mean: squared distances from it, clipped to ``0..half_range**2``.

.. math:: p(x \mid v) \propto v^{-1/2} e^{-(x - \mu)^2 / 2 v}, \quad T(x) = (x - \mu)^2

Sensitivity in `sensitivity.md`: partition-of-unity (X, M - X) or minimal-sum (X): ``M = 2**lattice_bits``
lattice steps from 0 to the bound.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from pydantic import model_validator

from suffice.pipeline.families.gamma import scale_of_gamma_sums
from suffice.pipeline.families.shared.one_sum import LatticeSumSpec, SumLattice, one_sum_family
from suffice.pipeline.terms.declaration.fields import Bound, Positive
from suffice.pipeline.terms.statistics.lattice import Shape, Transform, require_interval


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


FAMILY = one_sum_family(
    name="normal_known_mean",
    spec=NormalKnownMeanSpec,
    lattice=lattice,
    model=scale_of_gamma_sums("variance", share=0.5),
    draw=lambda spec, variance, rng: rng.normal(float(spec.mean), np.sqrt(variance)),
    example={"mean": "0.1", "half_range": "60"},
    generative_case={"mean": "1", "half_range": "15"},
    generative_prior="InverseGamma(8, 7)",
)
