"""Other ways to release a statistic at the same loss: whose error would be smaller, and by how much.

A partition of unity with a private N, or minimal sums beside a public one; the weight of second moments; the
counts of clipped records; noisy sums in place of a sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from suffice.errors import SpecError
from suffice.pipeline.ask.planning.expected_error import RELEASED, expected_error, plan_of, without_sample
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.spec.assumed import Assumed
from suffice.pipeline.terms.declaration.documents import printed
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.declaration.fields import NoiseOn, Nulls, SampleEntry, sample_entry
from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from suffice.pipeline.ask.planning.expected_error import ExpectedError
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.fields import StatisticSpec
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan

_WEIGHTS = tuple(Fraction(2) ** power for power in range(-1, 5))
"""Of second moments beside first ones."""


@printed("statistic parameter change sd sd_changed")
@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """What another way of releasing a statistic is worth, at the same loss.

    Attributes
    ----------
    statistic, parameter : str
    change : str
        In words: what the spec would say.
    sd, sd_changed : float
        Expected standard deviations of the posterior, as it is and changed, in the parameter's unit.
    """

    statistic: str
    parameter: str
    change: str
    sd: float
    sd_changed: float

    def is_better_by(self, factor: float) -> bool:
        """Tell whether the error would be smaller by such a factor."""
        return self.sd >= factor * self.sd_changed

    def __str__(self) -> str:
        return (
            f"{self.statistic}: with {self.change} the sd of {self.parameter} is {self.sd_changed:.3g}, "
            f"beside {self.sd:.3g}"
        )


def alternatives_of(spec: Spec, error: ExpectedError) -> tuple[Alternative, ...]:
    """Return other ways to release a statistic, at the share that it has in a spec; of each kind the best.

    Each is compared by the parameter, and in the typical cell, that the statistic's own error is of.
    None of a statistic whose values are an earlier release's: of what another design would have released that
    tells nothing without a model.
    """
    if error.trust == RELEASED:
        return ()
    name, entry = error.statistic, spec.statistics[error.statistic]
    assumed = spec.assume or Assumed()
    counting = assumed.of(name).model_copy(update={"counts": error.parameter})
    statistics = {**assumed.statistics, name: counting}
    alike = spec.model_copy(update={"assume": assumed.model_copy(update={"statistics": statistics})})
    sd, best = error.sd(plan_of(spec, name, entry)), dict[str, Alternative]()
    for kind, change, changed in _changes(entry, plan_of(spec, name, entry)):
        bound = spec.bound(changed)
        try:
            plan = plan_of(spec, name, bound)
            if kind == _MINIMAL and plan.design is not Design.MINIMAL:
                continue
            sd_changed = expected_error(alike, name, bound, world=error.world).sd(plan)
        except SpecError:  # such a spec is none
            continue
        if kind not in best or sd_changed < best[kind].sd_changed:
            best[kind] = Alternative(
                statistic=name, parameter=error.parameter, change=change, sd=sd, sd_changed=sd_changed
            )
    return tuple(best.values())


_MINIMAL, _UNITY, _WEIGHT, _COUNTS, _SUMS = "minimal", "unity", "weight", "counts", "sums"
_NOISE = "noise"


def _changes(entry: StatisticSpec, plan: StatisticPlan) -> Iterator[tuple[str, str, StatisticSpec]]:
    """Yield the kind of each change, what the spec would say, and the entry that says it."""
    if plan.design is Design.MINIMAL:
        yield _UNITY, "nulls: drop, so that N is private,", _with_nulls(entry, lambda _lower: Nulls())
        if plan.moment_weight is not None:
            for weight in _WEIGHTS:
                if weight != plan.moment_weight:
                    changed = entry.model_copy(update={"moment_weight": weight})
                    yield _WEIGHT, f"moment_weight: {format_number(weight)}", changed
    else:
        text = "nulls: {value: ...}, so that N is public,"
        yield _MINIMAL, text, _with_nulls(entry, Nulls)
    if FAMILIES[entry.family].cone_error is not None:
        if plan.cone is not None:
            yield _NOISE, "noise: laplace", entry.model_copy(update={"noise": None})
        else:
            changed = entry.model_copy(update={"noise": NoiseOn.CONE, "moment_weight": None})
            yield _NOISE, "noise: cone", changed
    if entry.count_clipped is not None:
        yield _COUNTS, "no count_clipped", entry.model_copy(update={"count_clipped": None})
    if isinstance(sample_entry(entry), SampleEntry):
        yield _SUMS, "noisy sums in place of its sample", without_sample(entry)


def _with_nulls(entry: StatisticSpec, nulls: Callable[[Fraction], Nulls]) -> StatisticSpec:
    """Return an entry whose columns have other nulls, by the lower bound of each."""
    changes: dict[str, Any] = {}
    if hasattr(entry, "nulls"):
        changes["nulls"] = nulls(getattr(entry, "lower", Fraction(0)))
    for key in ("columns", "outcome", "predictors"):
        columns = getattr(entry, key, None)
        if isinstance(columns, dict) and all(hasattr(column, "lower") for column in columns.values()):
            changes[key] = {
                name: column.model_copy(update={"nulls": nulls(column.lower)})
                for name, column in columns.items()
            }
    return entry.model_copy(update=changes)
