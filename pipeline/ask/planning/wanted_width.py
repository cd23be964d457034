"""What a plan is to reach, as people write it, and the epsilon that was found for it.

Counting the records that clipping moved is priced for the same width.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from suffice.errors import SpecError, UsageError
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.terms.declaration.exact_numbers import MICRO, format_epsilon
from suffice.pipeline.terms.declaration.fields import DEFAULT_COUNT_WEIGHT, CountClipped, RowsOf
from suffice.pipeline.terms.declaration.wording import text_table
from suffice.pipeline.terms.statistics.beside_sums import N_ABOVE

if TYPE_CHECKING:
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan

WEIGHTS = (DEFAULT_COUNT_WEIGHT, Fraction(1, 4), Fraction(1))
"""The default, the largest, and one between: the wider the noise of counts, the cheaper they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedPrice:
    """What a target takes where moved records are counted with a weight.

    Attributes
    ----------
    weight : Fraction
        As in ``count_clipped: {weight: 0.25}``.
    epsilon : Fraction
        Of the whole release, in nats, rounded up to a multiple of 10^-6.
    noise_sd : float
        Of ``n_below`` and of ``n_above`` at that epsilon, in records.
    """

    weight: Fraction
    epsilon: Fraction
    noise_sd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsBeside:
    """The epsilons at which a target is reached without counts of moved records, and with them.

    Noise is a sensitivity over epsilon, so that one is the other times the ratio of two sensitivities.

    Attributes
    ----------
    stated : Fraction or None
        The weight in the spec; None where it does not count them.
    epsilon_without : Fraction
        Of the whole release, in nats, rounded up to a multiple of 10^-6.
    prices : tuple of CountedPrice
        By ascending weight, that of the spec among them.
    """

    stated: Fraction | None
    epsilon_without: Fraction
    prices: tuple[CountedPrice, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return what ``suffice plan --target --json`` prints as ``count_clipped``."""
        return {
            "stated": None if self.stated is None else format_epsilon(self.stated),
            "epsilon_without": format_epsilon(self.epsilon_without),
            "weights": [
                {
                    "weight": format_epsilon(price.weight),
                    "epsilon": format_epsilon(price.epsilon),
                    "noise_sd": price.noise_sd,
                }
                for price in self.prices
            ],
        }

    def __str__(self) -> str:
        stated = "none" if self.stated is None else format_epsilon(self.stated)
        rows = [["none", format_epsilon(self.epsilon_without), ""]]
        rows += [
            [format_epsilon(price.weight), format_epsilon(price.epsilon), f"{price.noise_sd:.4g}"]
            for price in self.prices
        ]
        return (
            "the same width, with counts of the records that clipping moves (count_clipped, by weight; the "
            f"spec has {stated}):\n\n"
            + text_table(["weight", "epsilon", "noise sd of n_below, n_above"], rows)
        )


def counts_beside(spec: Spec, statistic: str, epsilon: Fraction) -> CountsBeside | None:
    """Return all prices of what `epsilon` reaches under the spec; None where nothing can be counted."""
    entry = spec.statistics[statistic]
    can_be = FAMILIES[entry.family].clipping_bounds is not None and entry.within_unit is None
    if not can_be or entry.rows_of is RowsOf.UNITS:
        return None
    stated = None if entry.count_clipped is None else entry.count_clipped.weight
    weights = sorted({*WEIGHTS, *(() if stated is None else (stated,))})
    try:
        as_stated = _plan(spec, statistic, stated, epsilon)
        without = _plan(spec, statistic, None, epsilon)
        with_counts = [_plan(spec, statistic, weight, epsilon) for weight in weights]
    except SpecError:  # with counts the noise would be beyond what is drawn
        return None

    def same_width(plan: StatisticPlan) -> Fraction:
        return epsilon * plan.l1_sensitivity / as_stated.l1_sensitivity

    prices = []
    for weight, plan in zip(weights, with_counts, strict=True):
        above = next(quantity for quantity in plan.quantities if quantity.name == N_ABOVE)
        at_same_width = float(epsilon / same_width(plan))
        prices.append(
            CountedPrice(
                weight=weight,
                epsilon=_rounded_up(same_width(plan)),
                noise_sd=plan.quantity_noise_sd(above) * at_same_width,
            )
        )
    return CountsBeside(stated=stated, epsilon_without=_rounded_up(same_width(without)), prices=tuple(prices))


def _plan(spec: Spec, name: str, weight: Fraction | None, epsilon: Fraction) -> StatisticPlan:
    """Return the plan of a statistic with or without counts, in a release of this epsilon."""
    counted = None if weight is None else CountClipped.model_construct(weight=weight)
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


MASS = 0.95
"""Of the intervals."""
_FORM = re.compile(
    r"(?P<statistic>\S+)\s+(?P<parameter>\w+)(?:\[(?P<category>.+)\])?\s+width\s+(?P<width>\S+)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """How narrow which posterior is to be.

    Attributes
    ----------
    statistic, parameter : str
    category : str or None
        The category that a ``probability`` is of.
    width : float, > 0
        Of the 95 % credible interval, in the parameter's unit.
    """

    statistic: str
    parameter: str
    category: str | None
    width: float

    def __str__(self) -> str:
        category = "" if self.category is None else f"[{self.category}]"
        return f"{self.statistic} {self.parameter}{category} width {self.width:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededEpsilon:
    """The smallest epsilon that reaches a target; made by ``smallest_epsilon``.

    Attributes
    ----------
    target : Target
    epsilon : Fraction
        Of the whole release, in nats, at the spec's shares; a multiple of 10^-6.
    epsilon_standard_error : float
        Its Monte Carlo error, from that of the width: other simulations give another median.
    statistic_epsilon : Fraction
        The statistic's part of it.
    n : int
        Records in a cell.
    prior, n_prior : str
        Of the parameters, and of a private N; a number where N is public.
    width, width_standard_error : float
        The median width over the simulations at this epsilon, and its Monte Carlo error.
    width_without_noise : float
        The median width that the exact statistics would give: no epsilon reaches less.
    simulations : int
    counts : CountsBeside or None
        What counting the records that clipping moved adds to epsilon; None where the family counts none.
    """

    target: Target
    epsilon: Fraction
    epsilon_standard_error: float
    statistic_epsilon: Fraction
    n: int
    prior: str
    n_prior: str
    width: float
    width_standard_error: float
    width_without_noise: float
    simulations: int
    counts: CountsBeside | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return what ``suffice plan --target --json`` prints as ``target``."""
        return {
            "statistic": self.target.statistic,
            "parameter": self.target.parameter,
            **({} if self.target.category is None else {"category": self.target.category}),
            "width": self.target.width,
            "mass": MASS,
            "n": self.n,
            "prior": self.prior,
            "n_prior": self.n_prior,
            "simulations": self.simulations,
            "epsilon": format_epsilon(self.epsilon),
            "epsilon_standard_error": self.epsilon_standard_error,
            "statistic_epsilon": format_epsilon(self.statistic_epsilon),
            "median_width": self.width,
            "median_width_standard_error": self.width_standard_error,
            "median_width_without_noise": self.width_without_noise,
            **({} if self.counts is None else {"count_clipped": self.counts.to_dict()}),
        }

    def __str__(self) -> str:
        return (
            f"target {self.target}: epsilon {format_epsilon(self.epsilon)} "
            f"({self.target.statistic}'s part is {format_epsilon(self.statistic_epsilon)}; standard error "
            f"{self.epsilon_standard_error:.2g})\n"
            f"with {self.n} records a cell, prior {self.prior}, N: {self.n_prior}\n"
            f"median width of the 95 % interval: {self.width:.4g} (standard error "
            f"{self.width_standard_error:.2g}, {self.simulations} simulations); without noise "
            f"{self.width_without_noise:.4g}" + ("" if self.counts is None else f"\n{self.counts}")
        )


def parse_target(text: str) -> Target:
    """Read ``STATISTIC PARAMETER width NUMBER``; for categories ``carrier probability[UA] width 0.01``.

    Raises
    ------
    UsageError
        Where the text is no such target.
    """
    match = _FORM.fullmatch(text.strip())
    try:
        width = float(match["width"]) if match else math.nan
    except ValueError:
        width = math.nan
    if match is None or not 0.0 < width < math.inf:
        message = (
            f"target {text!r}: write STATISTIC PARAMETER width NUMBER, as 'arr_delay mean width 2' or "
            "'carrier probability[UA] width 0.01'"
        )
        raise UsageError(message)
    return Target(
        statistic=match["statistic"], parameter=match["parameter"], category=match["category"], width=width
    )
