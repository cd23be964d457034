"""How far a posterior moves with its prior and with one record, as people look at it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from suffice.pipeline.ask.judging.robustness import ranges_of, reason_against_nodes
from suffice.pipeline.ask.posterior.shown import warnings_of
from suffice.pipeline.math.parameters.arguments import ends_of
from suffice.pipeline.math.parameters.contrasts import finite, tidy_rows
from suffice.pipeline.terms.released.table import Table

if TYPE_CHECKING:
    import numpy as np

    from suffice.pipeline.ask.judging.robustness import Neighbourhoods
    from suffice.pipeline.ask.posterior.posterior import Posterior


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
    rows = []
    for number, ranges in enumerate(ranges_of(posterior, parameter, asked, draws, rng)):
        key = {name: value for name, value in keys[number].items() if name != "mean"}
        for name, of in ranges:
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
