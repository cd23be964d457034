"""A plan as people and programs read it: what ``suffice plan`` prints."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from suffice.pipeline.declaration.exact_numbers import format_epsilon, format_number
from suffice.pipeline.released.text_table import text_table
from suffice.pipeline.statistics.sample_plan import SCORE_BITS

if TYPE_CHECKING:
    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.statistics.count_table import Label
    from suffice.pipeline.statistics.sample_plan import SamplePlan
    from suffice.pipeline.statistics.statistic_plan import StatisticPlan

_COLUMNS = ["statistic", "family", "epsilon", "l1 sensitivity", "scale", "quantity", "noise sd"]


def plan_text(plan: Plan) -> str:
    """Return the text of a plan: its heading, a table of noisy quantities, and sentences."""
    noisy = [statistic for statistic in plan.statistics if statistic.sample is None]
    rows = [row for statistic in noisy for row in _rows(statistic)]
    parts = [_heading(plan)]
    if rows:
        parts.append(text_table(_COLUMNS, rows))
    lines = [
        *(
            _sample_line(statistic, statistic.sample)
            for statistic in plan.statistics
            if statistic.sample is not None
        ),
        *(
            f"{statistic.name}: second moments weigh {format_number(statistic.moment_weight)} "
            "beside first ones"
            for statistic in noisy
            if statistic.moment_weight is not None
        ),
        *_sentences(plan),
        *(f"{name}: {of}" for name, of in plan.derived.items()),
    ]
    return "\n".join([*parts, *lines])


def _heading(plan: Plan) -> str:
    unit = f"unit {plan.unit}" if plan.column_unit is None else f"unit {plan.unit}, {plan.column_unit}"
    window = f", released per window of {plan.grid}" if plan.grid else ""
    heading = (
        f"{plan.name}: epsilon {format_epsilon(plan.epsilon)} of {plan.dataset}, {plan.neighboring}, "
        f"{unit}{window}\n{plan.n_cells} {'cell' if plan.n_cells == 1 else 'cells'}\n"
    )
    if not plan.amend:
        return heading
    after = " and ".join(map(str, plan.amend))
    return (
        f"{heading}amended {after} after a window is complete, each for epsilon "
        f"{format_epsilon(plan.epsilon)} again: {format_epsilon(plan.window_epsilon)} a window in all\n"
    )


def _rows(statistic: StatisticPlan) -> list[list[str]]:
    """Return a row for every quantity; the first says what all share."""
    head = [
        statistic.name,
        statistic.family,
        format_epsilon(statistic.epsilon),
        str(statistic.l1_sensitivity),
        f"{statistic.scale:.6g}",
    ]
    rows = []
    for quantity in statistic.quantities:
        parts = (quantity.name, quantity.category, quantity.component, _written(quantity.labels))
        label = " ".join(filter(None, parts))
        rows.append([*head, label, f"{statistic.quantity_noise_sd(quantity):.6g}"])
        head = [""] * len(head)
    return rows


def _sample_line(statistic: StatisticPlan, sample: SamplePlan) -> str:
    """Say what is drawn, how much the likelihood counts, and what of epsilon is unused."""
    lower, upper = map(format_number, sample.within)
    draws = "1 draw" if sample.draws == 1 else f"{sample.draws} draws"
    line = (
        f"{statistic.name}: {statistic.family}, epsilon {format_epsilon(statistic.epsilon)}: a sample of "
        f"{draws} of {sample.parameter} on {sample.grid} points of {lower}..{upper}, prior {sample.prior}; "
        f"range sensitivity {sample.range_sensitivity / 2**SCORE_BITS:.6g} nats, temperature "
        f"{float(sample.temperature):.7g}"
    )
    if sample.temperature > 1:
        return line
    unused = statistic.epsilon - sample.privacy_loss
    return (
        f"{line}; {float(unused):.6g} of its epsilon are unused, as a posterior is not drawn below "
        "temperature 1, and are charged all the same"
    )


def _sentences(plan: Plan) -> list[str]:
    """Say what statistics' parameters are of, under a column unit."""
    of: dict[str, list[str]] = {}
    for statistic in plan.statistics:
        if statistic.rows_of is not None:
            of.setdefault(statistic.rows_of, []).append(statistic.name)
    return [f"{', '.join(names)}: {sentence}" for sentence, names in of.items()]


def _written(labels: Label) -> str:
    return " ".join(f"{name}={value}" for name, value in labels)


def statistic_dict(statistic: StatisticPlan) -> dict[str, Any]:
    """Return a statistic's entry in what ``suffice plan --json`` prints."""
    if statistic.sample is not None:
        return _sampled_dict(statistic, statistic.sample)
    return {
        "name": statistic.name,
        "family": statistic.family,
        "columns": list(statistic.columns),
        "rows_of": statistic.rows_of,
        "design": str(statistic.design),
        "epsilon": format_epsilon(statistic.epsilon),
        "l1_sensitivity": statistic.l1_sensitivity,
        "scale": format_number(Fraction(statistic.scale)),
        **(
            {"moment_weight": format_number(statistic.moment_weight)}
            if statistic.moment_weight is not None
            else {}
        ),
        "components": [{"name": component} for component in statistic.components],
        "derived": [
            {
                "quantity": quantity.name,
                **({"category": quantity.category} if quantity.category is not None else {}),
                **({"component": quantity.component} if quantity.component is not None else {}),
                **dict(quantity.labels),
                "noise_sd": statistic.quantity_noise_sd(quantity),
            }
            for quantity in statistic.quantities
        ],
    }


def _sampled_dict(statistic: StatisticPlan, sample: SamplePlan) -> dict[str, Any]:
    return {
        "name": statistic.name,
        "family": statistic.family,
        "columns": list(statistic.columns),
        "rows_of": statistic.rows_of,
        "design": str(statistic.design),
        "epsilon": format_epsilon(statistic.epsilon),
        "sample": {
            "parameter": sample.parameter,
            "draws": sample.draws,
            "grid": sample.grid,
            "within": [format_number(end) for end in sample.within],
            "prior": sample.prior,
            "range_sensitivity": sample.range_sensitivity,
            "scale": sample.scale,
            "temperature": format_number(sample.temperature),
            "epsilon_unused": format_number(statistic.epsilon - sample.privacy_loss),
        },
    }
