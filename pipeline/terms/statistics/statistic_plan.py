"""The plan of one statistic: what is released, at which sensitivity, with how much noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from suffice.pipeline.terms.statistics.block import Constants, CountedClipping, Quantity
    from suffice.pipeline.terms.statistics.sample_plan import SamplePlan
    from suffice.pipeline.terms.statistics.sensitivity import Design
    from suffice.pipeline.terms.statistics.within_unit import WithinUnit


INT64 = "int64"


DECIMAL = "decimal128(38, 0)"


NOISE_REACH = 64
"""Noise beyond 64 scales has probability under e^-64 a draw; values saturate there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticPlan:
    """One statistic's block: what is released, at which sensitivity, with how much noise.

    Attributes
    ----------
    name, family : str
        As in the spec.
    columns : tuple of str
        The columns that the statistic reads.
    design : Design
        Partition of unity, bounded, or minimal beside a public N.
    components : tuple of str
        The released components, in order.
    epsilon : Fraction
        This block's part of the release's epsilon, in nats.
    l1_sensitivity : int
        Joint over the components, per unit, in lattice units.
    scale : float
        Of the discrete Laplace noise on each component, in lattice units; exact as a rational.
    partition_total : int or None
        What one record adds over all components, for a partition of unity.
    value_type : str
        Arrow type of the released values, ``int64`` or ``decimal128(38, 0)``.
    quantities : tuple of Quantity
        Exact maps from components to quantities.
    parameters : Parameters
        Public constants of the posterior.
    moment_weight : Fraction or None
        The weight of second moments beside first ones, where the minimal design has one.
    within_unit : WithinUnit or None
        How rows and units share the block, where units' products are released beside rows.
    counted : CountedClipping or None
        How sums and counts of moved records share the block, where these are released beside sums.
    max_rows : int or None
        Most rows that a unit keeps; None where the unit is a row.
    rows_of : str or None
        Under a column unit, which rows or units the parameters are of; None where every row counts.
    sample : SamplePlan or None
        The draws that are released of a posterior; None where noisy components are. With it there are no
        components and no quantities, and sensitivity and scale are its own: those here are 0.
    """

    name: str
    family: str
    columns: tuple[str, ...]
    design: Design
    components: tuple[str, ...]
    epsilon: Fraction
    l1_sensitivity: int
    scale: float
    partition_total: int | None
    value_type: str
    quantities: tuple[Quantity, ...]
    parameters: Constants
    moment_weight: Fraction | None = None
    within_unit: WithinUnit | None = None
    counted: CountedClipping | None = None
    max_rows: int | None = None
    rows_of: str | None = None
    sample: SamplePlan | None = None

    @property
    def n_values(self) -> int:
        """How many values of a cell are released: its components, or its draws."""
        return len(self.components) if self.sample is None else self.sample.draws

    @property
    def value_limits(self) -> tuple[int, int]:
        """Least and greatest value that the column's type holds; noisy values saturate there."""
        return (-(2**63), 2**63 - 1) if self.value_type == INT64 else (1 - 10**38, 10**38 - 1)

    @property
    def component_noise_sd(self) -> float:
        """Standard deviation of the noise on one component, in lattice units."""
        return discrete_laplace_sd(self.scale)

    def quantity_noise_sd(self, quantity: Quantity) -> float:
        """Return the standard deviation of the noise on a quantity, in the column's unit.

        The components' noises are independent, so the covariances of the basis are in the map.
        """
        squares = sum((coefficient**2 for coefficient in quantity.coefficients.values()), Fraction(0))
        return self.component_noise_sd * math.sqrt(squares)


def discrete_laplace_sd(scale: float) -> float:
    r"""Return the standard deviation of discrete Laplace noise.

    .. math:: \sqrt{2 q} / (1 - q) = 1 / (\sqrt 2 \sinh(1 / 2b)), \quad q = e^{-1/b}

    Parameters
    ----------
    scale : float, > 0
        ``b``, in lattice units.
    """
    half_rate = 0.5 / scale
    return 1 / (math.sqrt(2) * math.sinh(half_rate)) if half_rate < 700 else 0.0
