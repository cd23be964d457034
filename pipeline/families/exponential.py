r"""Exponential: a waiting time, clipped to ``0..upper``.

.. math:: p(x \mid r) = r e^{-r x}, \quad x \ge 0, \quad T(x) = x

Sensitivity in `sensitivity.md`: partition-of-unity (X, M - X) or minimal-sum (X): ``M = 2**lattice_bits``
lattice steps from 0 to the bound.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from suffice.pipeline.families.gamma import rate_of_gamma_sums
from suffice.pipeline.families.shared.one_sum import LatticeSumSpec, SumLattice, one_sum_family
from suffice.pipeline.terms.declaration.fields import Positive

if TYPE_CHECKING:
    import numpy as np

    from suffice.typing import Floats


class ExponentialSpec(LatticeSumSpec):
    """A numeric column clipped to ``0..upper``."""

    upper: Positive


def lattice(spec: ExponentialSpec) -> SumLattice:
    """Return the lattice from 0 to the bound."""
    return SumLattice.from_zero(spec.upper, spec.lattice_bits)


def draw(_spec: ExponentialSpec, rate: Floats, rng: np.random.Generator) -> Floats:
    """Return one value for every rate."""
    return rng.standard_exponential(rate.shape) / rate


FAMILY = one_sum_family(
    name="exponential",
    spec=ExponentialSpec,
    lattice=lattice,
    clipping_bounds=lambda spec: (Fraction(0), spec.upper),
    model=rate_of_gamma_sums(),
    draw=draw,
    example={"upper": "100"},
    generative_case={"upper": "60"},
    generative_prior="Gamma(8, 8)",
)
