r"""Geometric: failures before the first success, clipped to ``0..upper`` and rounded.

.. math:: p(x \mid p) = p (1 - p)^x, \quad x = 0, 1, \ldots, \quad T(x) = x

Sensitivity in `sensitivity.md`: partition-of-unity (x, C - x) or minimal-sum (x).
"""

from __future__ import annotations

from fractions import Fraction

from suffice.pipeline.families.negative_binomial import failures_before, failures_before_successes
from suffice.pipeline.families.shared.one_sum import SumLattice, SumSpec, one_sum_family
from suffice.pipeline.terms.declaration.fields import Count


class GeometricSpec(SumSpec):
    """A column of failures before the first success."""

    upper: Count


FAMILY = one_sum_family(
    name="geometric",
    spec=GeometricSpec,
    lattice=lambda spec: SumLattice.counting(spec.upper),
    clipping_bounds=lambda spec: (Fraction(0), Fraction(spec.upper)),
    model=failures_before_successes(1.0),
    draw=lambda _spec, probability, rng: failures_before(1.0, probability, rng),
    mean="(1 - probability) / probability",
    example={"upper": "12"},
    generative_case={"upper": "60"},
    generative_prior="Beta(8, 4)",
)
