r"""How far a posterior moves with its prior and with one record, as people look at it.

One record more or less, of the lowest or the highest value that it can have, changes the released components
by its contribution c; where the number of records is public one is replaced, and the sum changes by R:

.. math::
    p(\theta \mid y \pm c), \quad c \in \{(0, R), (R, 0)\}, \qquad \text{or} \quad p(\theta \mid y \pm R).
    \qquad (1)

The noise is as it was: (1) are posteriors given what would then have been released, by the same engine.

Symbols:

- y: ``values``, (n_cells, n_components), in lattice units
- R: what a record adds to the components together

Method. Distribution functions under (1) are known at 257 quantiles, between which they are linear. Ranges
over neighbourhoods of the prior: ``judging/robustness.py``.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.ask.judging.robustness import ranges_of, reason_against_nodes
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.ask.posterior.shown import warnings_of
from suffice.pipeline.math.parameters.arguments import ends_of
from suffice.pipeline.math.parameters.contrasts import finite, tidy_rows
from suffice.pipeline.math.priors.neighbourhoods import Ranges
from suffice.pipeline.terms.released.table import Table
from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    from suffice.pipeline.ask.judging.robustness import Neighbourhoods
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic

ONE_RECORD, REPLACED = "one record more or less", "one record replaced"
_LEVELS = np.linspace(0.0, 1.0, 258)[:-1] + 0.5 / 257


def robustness_table(
    posterior: Posterior,
    parameter: str,
    asked: Neighbourhoods,
    mass: float,
    above: float | None,
    draws: int,
    rng: np.random.Generator,
) -> Table:
    """Return what means, ends of central intervals and a tail lie between; see ``Posterior.robustness``."""
    low, high = ends_of(mass)
    keys = tidy_rows(
        posterior.groups,
        posterior.label_columns,
        {parameter: {"mean": posterior.mean(parameter)}},
        posterior.components,
    )
    reason = reason_against_nodes(posterior)
    of_neighbours = [] if reason else with_one_record(posterior, parameter)
    rows = []
    for number, ranges in enumerate(ranges_of(posterior, parameter, asked, draws, rng)):
        key = {name: value for name, value in keys[number].items() if name != "mean"}
        for name, of in (*ranges, *of_neighbours[number : number + 1]):
            asked_for = {"mean": of.mean, "lower": of.quantile(low), "upper": of.quantile(high)}
            if above is not None:
                asked_for["above"] = of.above(above)
            between = {
                f"{what}_{end}": finite(value)
                for what, ends in asked_for.items()
                for end, value in zip(("least", "most"), ends, strict=True)
            }
            rows.append({**key, "prior": name, **between})
    foot = ["each number lies between its two columns, whichever prior of the neighbourhood is taken"]
    if reason:
        foot.append(f"{reason}: draws tell nothing of other neighbourhoods")
    return Table(
        rows,
        title=f"{posterior.about.of(posterior.statistic, parameter)}: how far it moves with the prior",
        notes=warnings_of(posterior),
        in_words=partial(posterior.about.rows, posterior.statistic, columns=posterior.groups),
        digits=partial(posterior.about.digits, posterior.statistic),
        foot=foot,
    )


def with_one_record(posterior: Posterior, parameter: str) -> list[tuple[str, Ranges]]:
    """Return what (1) and the posterior lie between, cell by cell, and what that is called."""
    (statistic,) = posterior.observed
    is_public = statistic.plan.design is Design.MINIMAL
    called = REPLACED if is_public else ONE_RECORD
    changed = [
        posterior_of(each, prior=posterior.prior, n_prior=None if is_public else posterior.n_prior)
        for each in one_record(statistic)
    ]
    every = []
    for of in (posterior, *changed):
        quantiles = of.distribution.quantiles(parameter, tuple(_LEVELS), 1, np.random.default_rng(0))
        every.append((of.mean(parameter), quantiles))
    return [
        (
            called,
            Ranges.over(
                [
                    Ranges(mean=(means[cell],) * 2, least=_LEVELS, most=_LEVELS, parameter=quantiles[cell])
                    for means, quantiles in every
                ]
            ),
        )
        for cell in range(posterior.n_groups)
    ]


def one_record(statistic: NoisyStatistic) -> list[NoisyStatistic]:
    """Return what would have been released with one record more or less, or another one, (1)."""
    plan = statistic.plan
    if plan.design is Design.MINIMAL:
        (step,) = (each.coefficients[0] for each in plan.quantities if each.coefficients)
        lower, upper = plan.parameters.lower or 0, plan.parameters.upper or 0
        # A true value has no bounds: it counts one.
        contributions = [[int((upper - lower) / step) or 1]]
    else:
        reach = int(plan.partition_total or 1)
        contributions = [[0, reach], [reach, 0]]
    # Counts of what clipping moved stand behind the sums: a record at a bound was not moved.
    beside = [0] * (len(plan.components) - len(contributions[0]))
    return [
        dataclasses.replace(statistic, values=statistic.values + sign * np.array([*contribution, *beside]))
        for contribution in contributions
        for sign in (-1, 1)
    ]
