r"""Negative binomial: failures before a known number of successes, clipped to ``0..upper`` and rounded.

.. math:: p(x \mid p) = \frac{\Gamma(x + r)}{x! \, \Gamma(r)} p^r (1 - p)^x, \quad T(x) = x

Sensitivity in `sensitivity.md`: partition-of-unity (x, C - x) or minimal-sum (x).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from suffice.pipeline.families.shared.one_sum import SumLattice, SumSpec, one_sum_family
from suffice.pipeline.families.shared.success_sums import failures_before, failures_before_successes
from suffice.pipeline.terms.declaration.fields import Count, Positive

if TYPE_CHECKING:
    import numpy as np

    from suffice.typing import Floats


class NegativeBinomialSpec(SumSpec):
    """A column of failures before `successes` successes, a number above 0 that need not be whole."""

    successes: Positive
    upper: Count


def lattice(spec: NegativeBinomialSpec) -> SumLattice:
    """Return the integers from 0 to the bound."""
    return SumLattice.counting(spec.upper)


def draw(spec: NegativeBinomialSpec, probability: Floats, rng: np.random.Generator) -> Floats:
    """Return one number of failures for every probability."""
    return failures_before(float(spec.successes), probability, rng)


FAMILY = one_sum_family(
    name="negative_binomial",
    spec=NegativeBinomialSpec,
    lattice=lattice,
    clipping_bounds=lambda spec: (Fraction(0), Fraction(spec.upper)),
    constants=lambda spec: {"successes": spec.successes},
    model=failures_before_successes("successes"),
    draw=draw,
    example={"successes": "2.5", "upper": "12"},
    generative_case={"successes": "2.5", "upper": "100"},
    generative_prior="Beta(8, 4)",
)
