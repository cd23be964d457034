r"""Bernoulli: a boolean column, or one of 0 and 1.

.. math:: p(x \mid p) = p^x (1 - p)^{1 - x}, \quad x \in \{0, 1\}, \quad T(x) = x

Sensitivity in `sensitivity.md`: partition-of-unity (false, true) or minimal-sum (true).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

from pydantic import model_validator

from suffice.pipeline.domains import boolean_domain
from suffice.pipeline.families.contract import Block, Family, Parameters, Quantity
from suffice.pipeline.fields import Nulls, NullsField, StatisticSpec
from suffice.pipeline.sensitivity import Design, minimal_sum
from suffice.pipeline.sums import CodeCounts

if TYPE_CHECKING:
    from numpy.typing import NDArray

ONE = Fraction(1)


class BernoulliSpec(StatisticSpec):
    """A column whose values are false and true, or 0 and 1; anything else follows `nulls`."""

    nulls: NullsField = Nulls()

    @model_validator(mode="after")
    def _nulls_are_zero_or_one(self) -> Self:
        if self.nulls.value not in {None, Fraction(0), ONE}:
            message = "nulls of a bernoulli statistic count as 0 or 1, or drop"
            raise ValueError(message)
        return self


def measure(spec: BernoulliSpec) -> CodeCounts:
    """Count false and true."""
    value = spec.nulls.value
    return CodeCounts(
        column=spec.column,
        domain=boolean_domain(),
        fallback=None if value is None else int(value),
    )


def block(spec: BernoulliSpec, n_is_public: bool) -> Block:
    """Release (false, true), or true alone where every physical row counts and N is public."""
    if n_is_public and spec.nulls.value is not None:
        return Block(
            design=Design.MINIMAL,
            components=("true",),
            largest_value=1,
            minimal_sensitivity=minimal_sum(0, 1),
            quantities=(
                Quantity(name="n", coefficients={}, public_n_coefficient=ONE),
                Quantity(name="total", coefficients={0: ONE}),
            ),
        )
    return Block(
        design=Design.PARTITION_OF_UNITY,
        components=("false", "true"),
        largest_value=1,
        partition_total=1,
        quantities=(
            Quantity(name="n", coefficients={0: ONE, 1: ONE}),
            Quantity(name="total", coefficients={1: ONE}),
        ),
    )


def totals(_spec: BernoulliSpec, design: Design, sums: NDArray[Any]) -> NDArray[Any]:
    """Take both counts, or that of true."""
    return sums[:, 1:] if design is Design.MINIMAL else sums


def parameters(_spec: BernoulliSpec) -> Parameters:
    """Return none: the family has no public constants."""
    return Parameters()


FAMILY = Family(
    name="bernoulli",
    spec=BernoulliSpec,
    measure=measure,
    block=block,
    totals=totals,
    parameters=parameters,
)
