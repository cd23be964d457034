r"""Geometric: failures before the first success, clipped to ``0..upper`` and rounded.

.. math:: p(x \mid p) = p (1 - p)^x, \quad x = 0, 1, \ldots, \quad T(x) = x

Sensitivity in `sensitivity.md`: partition-of-unity (x, C - x) or minimal-sum (x).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from suffice.pipeline.families.negative_binomial import failures_before, failures_before_successes
from suffice.pipeline.families.shared.one_sum import SumLattice, SumSpec, one_sum_family
from suffice.pipeline.terms.declaration.fields import Count

if TYPE_CHECKING:
    import numpy as np

    from suffice.typing import Floats


class GeometricSpec(SumSpec):
    """A column of failures before the first success."""

    upper: Count


def lattice(spec: GeometricSpec) -> SumLattice:
    """Return the integers from 0 to the bound."""
    return SumLattice.counting(spec.upper)


def draw(_spec: GeometricSpec, probability: Floats, rng: np.random.Generator) -> Floats:
    """Return one number of failures for every probability."""
    return failures_before(1.0, probability, rng)


FAMILY = one_sum_family(
    name="geometric",
    spec=GeometricSpec,
    lattice=lattice,
    clipping_bounds=lambda spec: (Fraction(0), Fraction(spec.upper)),
    model=failures_before_successes(1.0),
    draw=draw,
    example={"upper": "12"},
    generative_case={"upper": "60"},
    generative_prior="Beta(8, 4)",
)
