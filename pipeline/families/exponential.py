r"""Exponential: a waiting time, clipped to ``0..upper``.

.. math:: p(x \mid r) = r e^{-r x}, \quad x \ge 0, \quad T(x) = x

Sensitivity in `sensitivity.md`: partition-of-unity (X, M - X) or minimal-sum (X): ``M = 2**lattice_bits``
lattice steps from 0 to the bound.
"""

from __future__ import annotations

from fractions import Fraction

from suffice.pipeline.families.gamma import rate_of_gamma_sums
from suffice.pipeline.families.shared.one_sum import LatticeSumSpec, SumLattice, one_sum_family
from suffice.pipeline.terms.declaration.fields import Positive


class ExponentialSpec(LatticeSumSpec):
    """A numeric column clipped to ``0..upper``."""

    upper: Positive


FAMILY = one_sum_family(
    name="exponential",
    spec=ExponentialSpec,
    lattice=lambda spec: SumLattice.from_zero(spec.upper, spec.lattice_bits),
    clipping_bounds=lambda spec: (Fraction(0), spec.upper),
    model=rate_of_gamma_sums(),
    draw=lambda _spec, rate, rng: rng.standard_exponential(rate.shape) / rate,
    mean="1 / rate",
    example={"upper": "100"},
    generative_case={"upper": "60"},
    generative_prior="Gamma(8, 8)",
)
