"""A plan as people and programs read it: what ``suffice plan`` prints."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from suffice.pipeline.terms.declaration.exact_numbers import format_epsilon, format_number
from suffice.pipeline.terms.released.text_table import text_table
from suffice.pipeline.terms.statistics.sample_plan import SCORE_BITS

if TYPE_CHECKING:
    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.terms.statistics.count_table import Label
    from suffice.pipeline.terms.statistics.sample_plan import SamplePlan
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan

MANY_CANDIDATES = 10**8
"""From here on drawing takes minutes, and the plan says about how long."""
_SECONDS_A_CANDIDATE = 5e-6
"""Of one core: 9e-7 to 7e-6 were measured, most where a posterior is sharp (`benchmarks/noise_rate.py`)."""
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
            _sample_line(statistic, statistic.sample, plan.n_cells)
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


def _sample_line(statistic: StatisticPlan, sample: SamplePlan, n_cells: int) -> str:
    """Say what is drawn, how much the likelihood counts, what of epsilon is unused, and what takes long."""
    lower, upper = map(format_number, sample.within)
    draws = "1 draw" if sample.draws == 1 else f"{sample.draws} draws"
    line = (
        f"{statistic.name}: {statistic.family}, epsilon {format_epsilon(statistic.epsilon)}: a sample of "
        f"{draws} of {sample.parameter} on {sample.grid} points of {lower}..{upper}, prior {sample.prior}; "
        f"range sensitivity {sample.range_sensitivity / 2**SCORE_BITS:.6g} nats, temperature "
        f"{float(sample.temperature):.7g}"
    )
    if not sample.is_tempered:
        unused = statistic.epsilon - sample.privacy_loss
        line += (
            f"; {float(unused):.6g} of its epsilon are unused, as a posterior is not drawn below "
            "temperature 1, and are charged all the same"
        )
    candidates = sample.candidates(n_cells)
    if candidates >= MANY_CANDIDATES:
        line += (
            f"; it is drawn from {candidates:,} candidates (cells x grid x draws): about "
            f"{_duration(candidates * _SECONDS_A_CANDIDATE)} of one core, and a run that dies meanwhile has "
            "spent its charge: fewer points, draws or cells take less"
        )
    return line


def _duration(seconds: float) -> str:
    """Return a rough duration in words."""
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{round(minutes / 60)} h"


def _sentences(plan: Plan) -> list[str]:
    """Say what statistics' parameters are of, under a column unit."""
    of: dict[str, list[str]] = {}
    for statistic in plan.statistics:
        if statistic.rows_of is not None:
            of.setdefault(statistic.rows_of, []).append(statistic.name)
    return [f"{', '.join(names)}: {sentence}" for sentence, names in of.items()]


def _written(labels: Label) -> str:
    return " ".join(f"{name}={value}" for name, value in labels)


def statistic_dict(statistic: StatisticPlan, n_cells: int) -> dict[str, Any]:
    """Return a statistic's entry in what ``suffice plan --json`` prints."""
    if statistic.sample is not None:
        return _sampled_dict(statistic, statistic.sample, n_cells)
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


def _sampled_dict(statistic: StatisticPlan, sample: SamplePlan, n_cells: int) -> dict[str, Any]:
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
            "candidates": sample.candidates(n_cells),
        },
    }
