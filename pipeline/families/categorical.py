r"""Categorical: a column of declared categories.

.. math:: p(x \mid p) = p_x, \quad T(x) = e_x

Sensitivity in `sensitivity.md`: partition-of-unity or minimal-counts.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

from pydantic import model_validator

from suffice.pipeline.families.contract import Block, Family, Parameters, Quantity
from suffice.pipeline.fields import Boolean, DomainField, StatisticSpec
from suffice.pipeline.sensitivity import Design, minimal_counts
from suffice.pipeline.sums import CodeCounts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.domains import Domain

OTHER = "other"


class CategoricalSpec(StatisticSpec):
    """A column of declared categories; null and unlisted values go to `other` if declared."""

    categories: DomainField
    other: Boolean = False

    @model_validator(mode="after")
    def _other_is_one_category(self) -> Self:
        if self.other and OTHER in self.categories:
            message = "a category called 'other' cannot stand beside other: true"
            raise ValueError(message)
        return self


def names(spec: CategoricalSpec) -> tuple[str, ...]:
    """Return all released categories as text, ``other`` last."""
    return (*map(str, spec.categories), *((OTHER,) if spec.other else ()))


def measure(spec: CategoricalSpec) -> CodeCounts:
    """Count each category."""
    return CodeCounts(
        column=spec.column,
        domain=spec.categories,
        fallback=len(spec.categories) if spec.other else None,
    )


def block(spec: CategoricalSpec, n_is_public: bool) -> Block:
    """Release one count per category; beside a public N where every physical row is counted."""
    categories = names(spec)
    quantities = tuple(
        Quantity(
            name="count",
            category=category,
            coefficients={position: Fraction(1)},
        )
        for position, category in enumerate(categories)
    )
    if n_is_public and spec.other:
        return Block(
            design=Design.MINIMAL,
            components=categories,
            largest_value=1,
            minimal_sensitivity=minimal_counts(),
            quantities=quantities,
        )
    return Block(
        design=Design.PARTITION_OF_UNITY,
        components=categories,
        largest_value=1,
        partition_total=1,
        quantities=quantities,
    )


def totals(_spec: CategoricalSpec, _design: Design, sums: NDArray[Any]) -> NDArray[Any]:
    """Take every count."""
    return sums


def parameters(spec: CategoricalSpec) -> Parameters:
    """Return the categories."""
    return Parameters(categories=names(spec))


def domains(spec: CategoricalSpec) -> tuple[Domain, ...]:
    """Return the declared domains that multiply the number of cells."""
    return (spec.categories,)


FAMILY = Family(
    name="categorical",
    spec=CategoricalSpec,
    measure=measure,
    block=block,
    totals=totals,
    parameters=parameters,
    domains=domains,
)
