r"""Weibull with a known shape ``k``: a column clipped to ``0..upper``.

.. math:: p(x \mid r) = r k x^{k - 1} e^{-r x^k}, \quad x > 0, \quad T(x) = x^k

Sensitivity in `sensitivity.md`: partition-of-unity (X, M - X) or minimal-sum (X): ``M = 2**lattice_bits``
lattice steps from 0 to ``upper**k``.

The rate r is the scale to the power of -k.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Self

from pydantic import model_validator

from suffice.pipeline.families.gamma import rate_of_gamma_sums
from suffice.pipeline.families.shared.one_sum import LatticeSumSpec, SumLattice, one_sum_family
from suffice.pipeline.terms.declaration.fields import Positive
from suffice.pipeline.terms.statistics.lattice import Shape, Transform, power_bound


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


FAMILY = one_sum_family(
    name="weibull",
    spec=WeibullSpec,
    lattice=lattice,
    clipping_bounds=lambda spec: (Fraction(0), spec.upper),
    model=rate_of_gamma_sums(),
    draw=lambda spec, rate, rng: (rng.standard_exponential(rate.shape) / rate) ** (1.0 / float(spec.shape)),
    mean="gamma_function(1 + 1 / shape) / rate^(1 / shape)",
    example={"shape": "1.7", "upper": "60"},
    generative_case={"shape": "1.7", "upper": "11"},
    generative_prior="Gamma(8, 8)",
)
