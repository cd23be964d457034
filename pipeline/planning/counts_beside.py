"""What it takes to count the records that clipping moved: two prices of one width, both exact multiples."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from suffice.errors import SpecError
from suffice.pipeline.declaration.exact_numbers import MICRO, format_epsilon
from suffice.pipeline.declaration.fields import DEFAULT_COUNT_WEIGHT, CountClipped, RowsOf
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.statistics.counted_clipping import N_ABOVE

if TYPE_CHECKING:
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.statistics.statistic_plan import StatisticPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsBeside:
    """The epsilons at which a target is reached without counts of moved records, and with them.

    Noise is a sensitivity over epsilon, so that one is the other times the ratio of two sensitivities.

    Attributes
    ----------
    is_counted : bool
        Whether the spec counts them.
    epsilon_without, epsilon_with : Fraction
        Of the whole release, in nats, rounded up to a multiple of 10^-6.
    noise_sd : float
        Of ``n_below`` and of ``n_above`` at `epsilon_with`, in records.
    """

    is_counted: bool
    epsilon_without: Fraction
    epsilon_with: Fraction
    noise_sd: float

    def to_dict(self) -> dict[str, Any]:
        """Return what ``suffice plan --target --json`` prints as ``count_clipped``."""
        return {
            "stated": self.is_counted,
            "epsilon_without": format_epsilon(self.epsilon_without),
            "epsilon_with": format_epsilon(self.epsilon_with),
            "noise_sd": self.noise_sd,
        }

    def __str__(self) -> str:
        without, with_counts = map(format_epsilon, (self.epsilon_without, self.epsilon_with))
        known = f"n_below and n_above have noise of standard deviation {self.noise_sd:.4g}"
        if self.is_counted:
            return f"count_clipped is in it: {known}; without it epsilon {without} would do"
        return f"with count_clipped: true it takes epsilon {with_counts}, and {known}"


def counts_beside(spec: Spec, statistic: str, epsilon: Fraction) -> CountsBeside | None:
    """Return both prices of what `epsilon` reaches under the spec; None where nothing can be counted."""
    entry = spec.statistics[statistic]
    is_counted = entry.count_clipped is not None
    can_be = FAMILIES[entry.family].clipping_bounds is not None and entry.within_unit is None
    if not can_be or entry.rows_of is RowsOf.UNITS:
        return None
    counted = entry.count_clipped or CountClipped.model_construct(weight=DEFAULT_COUNT_WEIGHT)
    try:
        with_counts, without = (_plan(spec, statistic, each, epsilon) for each in (counted, None))
    except SpecError:  # with counts the noise would be beyond what is drawn
        return None
    ratio = Fraction(with_counts.l1_sensitivity, without.l1_sensitivity)
    above = next(quantity for quantity in with_counts.quantities if quantity.name == N_ABOVE)
    noise_sd = with_counts.quantity_noise_sd(above)
    if is_counted:
        return CountsBeside(
            is_counted=True,
            epsilon_without=_rounded_up(epsilon / ratio),
            epsilon_with=epsilon,
            noise_sd=noise_sd,
        )
    return CountsBeside(
        is_counted=False,
        epsilon_without=epsilon,
        epsilon_with=_rounded_up(epsilon * ratio),
        noise_sd=noise_sd / float(ratio),
    )


def _plan(spec: Spec, name: str, counted: CountClipped | None, epsilon: Fraction) -> StatisticPlan:
    """Return the plan of a statistic with or without counts, in a release of this epsilon."""
    entry = spec.statistics[name]
    changed = entry.model_copy(update={"count_clipped": counted}).under(spec.privacy.max_rows)
    other = spec.model_copy(
        update={
            "statistics": {**spec.statistics, name: changed},
            "privacy": spec.privacy.model_copy(update={"epsilon": epsilon}),
        }
    )
    return next(plan for plan in compile_plan(other).statistics if plan.name == name)


def _rounded_up(epsilon: Fraction) -> Fraction:
    return Fraction(-(-epsilon * MICRO // 1), MICRO)
