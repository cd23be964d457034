r"""Laplace with a known location ``m``: distances from it, clipped to ``0..half_range``.

.. math:: p(x \mid b) = e^{-|x - m| / b} / 2b, \quad T(x) = |x - m|

Sensitivity in `sensitivity.md`: partition-of-unity (X, M - X) or minimal-sum (X): ``M = 2**lattice_bits``
lattice steps from 0 to the bound.
"""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from suffice.pipeline.families.gamma import scale_of_gamma_sums
from suffice.pipeline.families.shared.one_sum import LatticeSumSpec, SumLattice, one_sum_family
from suffice.pipeline.terms.declaration.fields import Bound, Positive
from suffice.pipeline.terms.statistics.lattice import Shape, Transform, require_interval


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


FAMILY = one_sum_family(
    name="laplace",
    spec=LaplaceSpec,
    lattice=lattice,
    model=scale_of_gamma_sums(),
    draw=lambda spec, scale, rng: rng.laplace(float(spec.location), scale),
    example={"location": "0.1", "half_range": "60"},
    generative_case={"location": "1", "half_range": "60"},
    generative_prior="InverseGamma(9, 8)",
)
