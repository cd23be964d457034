r"""Poisson: counts, clipped to a public upper bound ``C`` and rounded.

.. math:: p(x \mid \lambda) = e^{-\lambda} \lambda^x / x!, \quad T(x) = x

Sensitivity in `sensitivity.md`: partition-of-unity (x, C - x) or minimal-sum (x).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from pydantic import model_validator

from suffice.pipeline.families.contract import Block, Family, Parameters, Quantity
from suffice.pipeline.fields import Integer, Nulls, NullsField, StatisticSpec
from suffice.pipeline.lattice import Quantiser
from suffice.pipeline.priors import Gamma
from suffice.pipeline.sensitivity import Design, minimal_sum
from suffice.pipeline.sums import PowerSums

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.laws import Law
    from suffice.pipeline.release import NoisyStatistic

    Floats: TypeAlias = NDArray[np.float64]

LARGEST_UPPER = 10**9


class PoissonSpec(StatisticSpec):
    """A column of counts, clipped to ``0..upper`` and rounded."""

    upper: Integer
    nulls: NullsField = Nulls()

    @model_validator(mode="after")
    def _upper_is_positive(self) -> Self:
        if not 1 <= self.upper <= LARGEST_UPPER:
            message = f"upper of a poisson statistic lies in 1..{LARGEST_UPPER}, not {self.upper}"
            raise ValueError(message)
        return self


def measure(spec: PoissonSpec) -> PowerSums:
    """Sum n and x."""
    quantiser = Quantiser.counting(spec.upper)
    value = spec.nulls.value
    return PowerSums(
        column=spec.column,
        quantiser=quantiser,
        degree=1,
        fallback=None if value is None else quantiser.quantise_number(value),
    )


def block(spec: PoissonSpec, n_is_public: bool) -> Block:
    """Release (sum x, sum C - x), or sum x alone where every physical row counts and N is public."""
    if n_is_public and spec.nulls.value is not None:
        return Block(
            design=Design.MINIMAL,
            components=("sum(x)",),
            largest_value=spec.upper,
            minimal_sensitivity=minimal_sum(0, spec.upper),
            quantities=(
                Quantity(name="n", coefficients={}, public_n_coefficient=Fraction(1)),
                Quantity(name="total", coefficients={0: Fraction(1)}),
            ),
        )
    per_record = Fraction(1, spec.upper)
    return Block(
        design=Design.PARTITION_OF_UNITY,
        components=("sum(x)", "sum(C - x)"),
        largest_value=spec.upper,
        partition_total=spec.upper,
        quantities=(
            Quantity(name="n", coefficients={0: per_record, 1: per_record}),
            Quantity(name="total", coefficients={0: Fraction(1)}),
        ),
    )


def totals(spec: PoissonSpec, design: Design, sums: NDArray[Any]) -> NDArray[Any]:
    """Form the components from n and sum x, in Python integers."""
    n, total = sums[:, 0], sums[:, 1]
    if design is Design.MINIMAL:
        return sums[:, 1:]
    return np.stack([total, spec.upper * n - total], axis=1)


def parameters(spec: PoissonSpec) -> Parameters:
    """Return the clipping bounds."""
    return Parameters(lower=Fraction(0), upper=Fraction(spec.upper))


def default_prior(parameters: Parameters) -> Gamma:
    """Return ``Gamma(1, 2 / upper)``: a mean of half the bound."""
    return Gamma(1, 2 / float(parameters.upper or 1))


def project(statistic: NoisyStatistic) -> tuple[Floats, Floats]:
    """Return N and total, each (n_cells,): ``n >= 0`` and ``0 <= total <= upper * n``."""
    n, _ = statistic.quantity("n")
    total, _ = statistic.quantity("total")
    n = np.maximum(n, 0.0)
    return n, np.clip(total, 0.0, float(statistic.plan.parameters.upper or 0) * n)


def plug_in(statistic: NoisyStatistic, prior: Gamma) -> Law:
    r"""Update the prior: :math:`\mathrm{Gamma}(a + \text{total}, b + n)`, of projected sums."""
    from suffice.pipeline.laws import GammaLaw  # noqa: PLC0415 - consumers only

    n, total = project(statistic)
    return GammaLaw(concentration=prior.concentration + total, rate=prior.rate + n)


FAMILY = Family(
    name="poisson",
    spec=PoissonSpec,
    measure=measure,
    block=block,
    totals=totals,
    parameters=parameters,
    prior=Gamma,
    default_prior=default_prior,
    plug_in=plug_in,
)
