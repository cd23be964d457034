"""The plan of one statistic: what is released, at which sensitivity, with how much noise.

Noisy components are released, or a sample: see ``sample_plan`` and ``drawn_quantile``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypedDict

from suffice.pipeline.terms.declaration.documents import (
    Count,
    Family,
    Positive,
    Rows,
    document,
    printed,
)
from suffice.pipeline.terms.declaration.domains import cell_count
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
from suffice.pipeline.terms.statistics.cone_noise import ConeNoise  # noqa: TC001 - schemas read types
from suffice.pipeline.terms.statistics.drawn_quantile import QuantilePlan
from suffice.pipeline.terms.statistics.exponential_draws import SCORE_BITS

if TYPE_CHECKING:
    from suffice.pipeline.terms.declaration.contribution import Contribution
    from suffice.pipeline.terms.declaration.domains import Domain
    from suffice.pipeline.terms.statistics.sample_plan import SamplePlan
    from suffice.pipeline.terms.statistics.sensitivity import (
        Constants,
        CountedClipping,
        Design,
        Quantity,
        WithinUnit,
    )

MANY_CANDIDATES = 10**8
"""From here on drawing takes minutes, and the plan says about how long."""
_SECONDS_A_CANDIDATE = 5e-6
"""Of one core: 9e-7 to 7e-6 were measured, most where a posterior is sharp (`benchmarks/noise_rate.py`)."""
Mechanism: TypeAlias = Literal["discrete_laplace", "cone_noise", "exponential"]
INT64 = "int64"
DECIMAL = "decimal128(38, 0)"
NOISE_REACH = 64
"""Noise beyond 64 scales has probability under e^-64 a draw; values saturate there."""


class NamedComponent(TypedDict):
    """A released component, as a plan lists it."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticPlan:
    """One statistic's block: what is released, at which sensitivity, with how much noise.

    Attributes
    ----------
    name, family : str
        As in the spec.
    columns : tuple of str
        The columns that the statistic reads.
    groups : dict of str to Domain
        The public group keys, in declared order; the cells are their product.
    states_groups : bool
        Whether the statistic states them, and not its spec.
    design : Design
        Partition of unity, bounded, or minimal beside a public N.
    components : tuple of str
        The released components, in order.
    loss : PrivacyLoss
        This block's part of the release's epsilon or rho.
    l1_sensitivity : int
        Joint over the components, per unit, in lattice units.
    l2_squared : int or None
        The square of the joint L2 sensitivity, in squares of lattice units, where the loss is one of rho.
    scale : float
        Of the discrete Laplace noise on each component, in lattice units; exact as a rational.
    partition_total : int or None
        What one record adds over all components, for a partition of unity.
    value_type : str
        Arrow type of the released values, ``int64`` or ``decimal128(38, 0)``.
    quantities : tuple of Quantity
        Exact maps from components to quantities.
    parameters : Constants
        Public constants of the posterior.
    moment_weight : Fraction or None
        The weight of second moments beside first ones, where the minimal design has one.
    within_unit : WithinUnit or None
        How rows and units share the block, where units' products are released beside rows.
    counted : CountedClipping or None
        How sums and counts of moved records share the block, where these are released beside sums.
    contribution : Contribution or None
        How many rows of a unit enter at most; None where the unit is a row.
    rows_of : str or None
        Under a column unit, which rows or units the parameters are of; None where every row counts.
    sample : SamplePlan, QuantilePlan or None
        The draws that are released of a posterior or of a quantile; None where noisy components are. With it
        there are no components and no quantities, and sensitivity and scale are its own: those here are 0.
    cone : ConeNoise or None
        The noise of all components together, where it is on the cone that records lie in; the sensitivity and
        the scale are 0 then.
    """

    name: str
    family: Family
    columns: tuple[str, ...]
    design: Design
    components: tuple[str, ...]
    loss: PrivacyLoss
    l1_sensitivity: Positive
    scale: float
    partition_total: int | None
    value_type: str
    quantities: tuple[Quantity, ...]
    parameters: Constants
    groups: dict[str, Domain] = field(default_factory=dict)
    states_groups: bool = False
    moment_weight: Fraction | None = None
    within_unit: WithinUnit | None = None
    counted: CountedClipping | None = None
    contribution: Contribution | None = None
    rows_of: str | None = None
    sample: SamplePlan | QuantilePlan | None = None
    l2_squared: int | None = None
    cone: ConeNoise | None = None

    @property
    def n_cells(self) -> Count:
        """Number of cells: the product of the groups' sizes."""
        return cell_count(self.groups)

    @property
    def stated_cells(self) -> Count | None:
        """Number of cells of groups that the statistic states; None where they are its spec's."""
        return self.n_cells if self.states_groups else None

    @property
    def stated_sizes(self) -> dict[str, Count] | None:
        """How many keys every group has that the statistic states; None where they are its spec's."""
        return {name: len(domain) for name, domain in self.groups.items()} if self.states_groups else None

    @property
    def rho(self) -> Fraction:
        """What the block costs an account of rho."""
        # proof: pure-in-rho
        if self.loss.rho is not None:
            return self.loss.rho
        return self.loss.amount**2 / 2 if self.sample is None else self.sample.rho

    @property
    def mechanism(self) -> Mechanism:
        """What draws the released values, as manifests name it."""
        if self.sample is not None:
            return "exponential"
        return "discrete_laplace" if self.cone is None else "cone_noise"

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
        """Standard deviation of the noise on one component, in lattice units; the same for each.

        Raises
        ------
        ValueError
            Where noise is on a cone: it differs by component.
        """
        if self.cone is not None:
            message = "noise on a cone differs by component"
            raise ValueError(message)
        return discrete_laplace_sd(self.scale)

    @property
    def exact_scale(self) -> Fraction:
        """The scale as a fraction."""
        return Fraction(self.scale)

    @property
    def named_components(self) -> list[NamedComponent]:
        """The components, as a plan lists them."""
        return [{"name": component} for component in self.components]

    @property
    def derived(self) -> Annotated[list[dict[str, Any]], Rows(quantity=str, noise_sd=float)]:
        """What is worked out of the components, and how noisy it is: a row for every quantity."""
        return [
            {
                "quantity": quantity.name,
                **({} if quantity.category is None else {"category": quantity.category}),
                **({} if quantity.component is None else {"component": quantity.component}),
                **dict(quantity.labels),
                "noise_sd": self.quantity_noise_sd(quantity),
            }
            for quantity in self.quantities
        ]

    def quantity_noise_sd(self, quantity: Quantity) -> float:
        """Return the standard deviation of the noise on a quantity, in the column's unit.

        The components' noises are independent, so the covariances of the basis are in the map; on a cone they
        have covariances of their own.
        """
        if self.cone is not None:
            return math.sqrt(self.cone.variance_of(quantity.coefficients))
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


_SHOWN = ".4g"
"""Of numbers in a table that fits a terminal of 80 columns; JSON has them exactly."""


def quantity_rows(statistic: StatisticPlan) -> list[list[str]]:
    """Return a row for every quantity; the first says what all share."""
    head = [statistic.name, statistic.family, statistic.loss.text]
    squared = statistic.l2_squared
    norm = f"{statistic.l1_sensitivity if squared is None else squared:{_SHOWN}}"
    tail = [norm, f"{statistic.scale:{_SHOWN}}"] if statistic.cone is None else ["", "cone"]
    rows = []
    bins = statistic.parameters.bins
    # The count of each bin is as noisy as any other.
    for quantity in statistic.quantities if bins is None else statistic.quantities[:2]:
        if bins is not None and quantity.category is not None:
            label = f"count of each of {len(bins)} bins"
            rows.append([*head, label, f"{statistic.quantity_noise_sd(quantity):.6g}", *tail])
            break
        labels = (f"{name}={value}" for name, value in quantity.labels)
        label = " ".join(filter(None, (quantity.name, quantity.category, quantity.component, *labels)))
        rows.append([*head, label, f"{statistic.quantity_noise_sd(quantity):{_SHOWN}}", *tail])
        head, tail = [""] * len(head), [""] * len(tail)
    return rows


def sample_line(statistic: StatisticPlan, sample: SamplePlan) -> str:
    """Say what is drawn, how much the likelihood counts, what of epsilon is unused, and what takes long."""
    lower, upper = map(format_number, sample.within)
    draws = "1 draw" if sample.draws == 1 else f"{sample.draws} draws"
    line = (
        f"{statistic.name}: {statistic.family}, {statistic.loss}: a sample of "
        f"{draws} of {sample.parameter} on {sample.grid} points of {lower}..{upper}, prior {sample.prior}; "
        f"range sensitivity {sample.range_sensitivity / 2**SCORE_BITS:.6g} nats, temperature "
        f"{float(sample.temperature):.7g}"
    )
    if not sample.is_tempered:
        unused = unused_loss(statistic.loss, sample)
        line += (
            f"; {float(unused.amount):.6g} of its {unused.measure} are unused, as a posterior is not drawn "
            "below temperature 1, and are charged all the same"
        )
    return line + long_draws(statistic, sample)


def long_draws(statistic: StatisticPlan, sample: SamplePlan | QuantilePlan) -> str:
    """Say about how long drawing takes, where it is long."""
    candidates = sample.candidates(statistic.n_cells)
    if candidates < MANY_CANDIDATES:
        return ""
    of = "bins" if isinstance(sample, QuantilePlan) else "grid"
    return (
        f"; it is drawn from {candidates:,} candidates (cells x {of} x draws): about "
        f"{_duration(candidates * _SECONDS_A_CANDIDATE)} of one core, and a run that dies meanwhile has "
        "spent its charge: fewer points, draws or cells take less"
    )


def unused_loss(loss: PrivacyLoss, sample: SamplePlan) -> PrivacyLoss:
    """Return what draws do not lose of what they may: a posterior is not drawn below temperature 1."""
    used = sample.privacy_loss if loss.rho is None else sample.rho
    return PrivacyLoss(loss.measure, loss.amount - used)


def _duration(seconds: float) -> str:
    """Return a rough duration in words."""
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{round(minutes / 60)} h"


HEADING = (
    "name family columns groups?=stated_sizes cells?=stated_cells rows_of design epsilon?=loss.epsilon "
    "rho?=loss.rho"
)
NOISY = (
    f"{HEADING} l1_sensitivity l2_squared? scale=exact_scale moment_weight? components=named_components "
    "derived"
)
"""The keys of a statistic, of which a sample is drawn or noisy components are released."""
NOISY_ON_CONE = f"{HEADING} cone components=named_components derived"
"""The keys of a statistic whose noise is on a cone."""


@printed("*plan epsilon_unused?=unused.epsilon rho_unused?=unused.rho candidates")
@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnSample:
    """Draws of a posterior, and of how many candidates they are drawn."""

    plan: SamplePlan
    unused: PrivacyLoss
    candidates: Positive


@printed("*plan candidates")
@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnQuantile:
    """Draws of a quantile, and of how many candidates they are drawn."""

    plan: QuantilePlan
    candidates: Positive


@printed(
    "name=statistic.name family=statistic.family columns=statistic.columns groups?=statistic.stated_sizes "
    "cells?=statistic.stated_cells rows_of=statistic.rows_of design=statistic.design "
    "epsilon?=statistic.loss.epsilon rho?=statistic.loss.rho sample"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSample:
    """A statistic of which a sample is drawn."""

    statistic: StatisticPlan
    sample: DrawnSample | DrawnQuantile


def statistic_dict(statistic: StatisticPlan) -> Any:
    """Return a statistic's entry in what ``suffice plan --json`` prints."""
    sample = statistic.sample
    if sample is None:
        return document(statistic, NOISY if statistic.cone is None else NOISY_ON_CONE)
    candidates = sample.candidates(statistic.n_cells)
    if isinstance(sample, QuantilePlan):
        of_quantile = DrawnQuantile(plan=sample, candidates=candidates)
        return document(ShownSample(statistic=statistic, sample=of_quantile))
    drawn = DrawnSample(plan=sample, unused=unused_loss(statistic.loss, sample), candidates=candidates)
    return document(ShownSample(statistic=statistic, sample=drawn))
