r"""The count that is paid for before the rest: a release of its own, and what its noise decides.

The count is of rows, or of units with a row, whose cell is one of the spec's and whose values can be read.
A spec with ``expect`` has a second spec, for ``NAME.expect``, which releases that count alone. The decision
looks at nothing but the noisy count, so it is post-processing of a release, and an exit status may say it.

Sensitivity in `sensitivity.md`: paid-gate.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.spec.about import NOTHING
from suffice.pipeline.spec.plan import Plan, compile_plan, measures
from suffice.pipeline.terms.declaration.derived_columns import read_derived, row_columns
from suffice.pipeline.terms.declaration.documents import Count, one_of, printed
from suffice.pipeline.terms.declaration.domains import Domain, DomainKind, period_end, period_start
from suffice.pipeline.terms.declaration.priced import ROW_FITS, SUFFIX
from suffice.pipeline.terms.statistics.measure import columns_of

if TYPE_CHECKING:
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan

STATISTIC = "expected"
TRUE = "true"
_MOST_CONDITIONS = 100


def expect_spec(spec: Spec) -> Spec:
    """Return the spec of the count that a spec with ``expect`` pays for before the rest.

    It has the spec's dataset, source, window, relation and unit. Of a column unit one row counts, so that a
    unit is counted once.
    """
    expect = spec.expect
    if expect is None:
        message = f"{spec.name} expects nothing"
        raise ValueError(message)
    unit = spec.privacy.column_unit
    one_row = unit.model_copy(update={"max_rows": 1, "max_rows_per_cell": None}) if unit else None
    statistic = FAMILIES["bernoulli"].spec.model_validate({"family": "bernoulli", "column": ROW_FITS})
    # proof: paid-gate
    return spec.model_copy(
        update={
            "name": spec.name + SUFFIX,
            "privacy": spec.privacy.model_copy(
                update={
                    "epsilon": expect.epsilon,
                    "rho": expect.rho,
                    "unit": one_row or spec.privacy.unit,
                }
            ),
            "derived": {**spec.derived, ROW_FITS: read_derived(ROW_FITS, _fits(spec), None)},
            "groups": {ROW_FITS: Domain(kind=DomainKind.LIST, keys=(TRUE,))},
            "statistics": {STATISTIC: statistic.under(one_row.contribution(1) if one_row else None)},
            "expect": None,
            "about": NOTHING,
            "assume": None,
        }
    )


def _fits(spec: Spec) -> dict[str, Any]:
    """Return the condition of rows that count, as a spec writes it."""
    expect = spec.expect
    read = expect.columns if expect is not None else None
    if read is None:
        columns = (name for each in measures(spec).values() for name in columns_of(each))
        read = row_columns(columns, spec.derived)
    keys = spec.key_columns
    conditions = [_is_in(column, domain) for column, domains in keys.items() for domain in domains]
    conditions += [{"column": column, "present": TRUE} for column in read if column not in keys]
    if not conditions:  # statistics of the rows of units read no column but the unit's
        unit = spec.privacy.column_unit
        assert unit is not None  # noqa: S101 - every other statistic reads a column
        conditions = [{"column": unit.column, "present": TRUE}]
    return _all_of(conditions)


def _is_in(column: str, domain: Domain) -> dict[str, Any]:
    """Return the condition that a row's cell has one of a group's keys."""
    if domain.kind is DomainKind.PERIOD and domain.every is not None:
        first = period_start(str(domain.keys[0]), domain.every)
        past = period_end(period_start(str(domain.keys[-1]), domain.every), domain.every)
        return {"column": column, "between": [str(first), str(dt.date.fromordinal(past - 1))]}
    return {"column": column, "in": domain.canonical()}


def _all_of(conditions: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one condition: combinations take a limited number each, and nest."""
    while len(conditions) > 1:
        parts = [
            conditions[start : start + _MOST_CONDITIONS]
            for start in range(0, len(conditions), _MOST_CONDITIONS)
        ]
        conditions = [part[0] if len(part) == 1 else {"all_of": part} for part in parts]
    return conditions[0]


def noisy_count(statistic: NoisyStatistic) -> int:
    """Return the noisy number of rows, or units, that fit: what the decision is made of."""
    return int(statistic.values[0, statistic.plan.components.index(TRUE)])


class Stopped(TypedDict):
    """How likely windows of a size are stopped."""

    size: Count
    probability: float


@printed(
    "name=plan.name epsilon?=loss.epsilon rho?=loss.rho floor counts l1_sensitivity=noise.l1_sensitivity "
    "fits empty_passes stopped"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectPlan:
    """What the count before the rest costs, and what its noise does; follows from the spec alone.

    Attributes
    ----------
    floor : int
        The least noisy count for which the rest is charged.
    counts : str
        ``rows`` or ``units``.
    plan : Plan
        Of the count's release.
    """

    floor: Count
    counts: Annotated[str, one_of("rows", "units")]
    plan: Plan

    @classmethod
    def of(cls, spec: Spec) -> ExpectPlan | None:
        """Return a spec's, or None where it expects nothing."""
        if spec.expect is None:
            return None
        return cls(floor=spec.expect.floor, counts=spec.expect.counts, plan=compile_plan(expect_spec(spec)))

    @property
    def loss(self) -> PrivacyLoss:
        """What the count is charged."""
        return self.plan.loss

    @property
    def noise(self) -> StatisticPlan:
        """The count's only statistic."""
        return self.plan.statistics[0]

    def passes(self, n: int) -> float:
        """Return how likely a window of so many rows, or units, passes."""
        return _at_least(self.floor - n, self.noise.scale)

    def stops(self, n: int) -> float:
        """Return how likely a window of so many rows, or units, is stopped."""
        return _at_least(n - self.floor + 1, self.noise.scale)

    @property
    def shown(self) -> tuple[int, ...]:
        """The sizes of windows that are shown: half the floor to four times of it."""
        return tuple(dict.fromkeys(self.floor * quarters // 4 for quarters in (2, 4, 6, 8, 16)))

    @property
    def stopped(self) -> list[Stopped]:
        """How likely windows of these sizes are stopped."""
        return [Stopped(size=size, probability=self.stops(size)) for size in self.shown]

    @property
    def empty_passes(self) -> float:
        """How likely an empty window passes."""
        return self.passes(0)

    @property
    def fits(self) -> str:
        """When a row is counted."""
        return str(self.plan.derived[ROW_FITS])

    def __str__(self) -> str:
        stopped = ", ".join(f"{each['size']:,}: {each['probability']:.2g}" for each in self.stopped)
        return (
            f"before it {self.plan.name} counts the {self.counts} that fit, for "
            f"{self.loss} more: below {self.floor:,} the rest is not charged\n"
            f"chance that an empty window passes: {self.empty_passes:.2g}; that one with so many "
            f"{self.counts} is stopped: {stopped}\n"
            f"a row fits where {self.fits}"
        )


def _at_least(least: int, scale: float) -> float:
    r"""Return the probability that discrete Laplace noise is at least an integer.

    .. math:: P(Z \ge k) = \frac{a^k}{1 + a}, \quad a = e^{-1/b}, \quad k \ge 1

    and :math:`1 - P(Z \ge 1 - k)` for other k, as the noise is symmetric.
    """
    if least < 1:
        return 1.0 - _at_least(1 - least, scale)
    return math.exp(-least / scale) / (1.0 + math.exp(-1.0 / scale))
