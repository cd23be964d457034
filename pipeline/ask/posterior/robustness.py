"""How far a posterior moves with its prior, with one record and with its noise, as people look at it."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.judging.robustness import ranges_of, reason_against_nodes
from suffice.pipeline.ask.judging.smoothness import smoothness
from suffice.pipeline.ask.posterior.redrawn_noise import (
    LEAST_REDRAWS,
    REDRAWN,
    REDRAWS,
    reason_against,
    reason_to_ask,
    redrawn,
)
from suffice.pipeline.ask.posterior.shown import warnings_of
from suffice.pipeline.math.parameters.arguments import ends_of
from suffice.pipeline.math.parameters.contrasts import finite, tidy_rows
from suffice.pipeline.terms.released.table import Table

if TYPE_CHECKING:
    from suffice.pipeline.ask.judging.robustness import Neighbourhoods
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.ask.posterior.redrawn_noise import Redrawn

WORDS = "how far it moves with the prior, one record and the noise"


def robustness_table(
    posterior: Posterior,
    parameter: str,
    asked: Neighbourhoods,
    mass: float,
    above: float | None,
    redraws: int | None,
    draws: int,
    rng: np.random.Generator,
) -> Table:
    """Return what means, ends of central intervals and a tail lie between; see ``Posterior.robustness``."""
    noise, of_noise = _noise_again(posterior, redraws, mass, above, draws, rng)
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
        of_cell: list[tuple[str, dict[str, tuple[float, float]]]] = [
            (
                name,
                {
                    "mean": of.mean,
                    "lower": of.quantile(low),
                    "upper": of.quantile(high),
                    **({} if above is None else {"above": of.above(above)}),
                },
            )
            for name, of in ranges
        ]
        if noise is not None:
            of_cell.append((REDRAWN, noise.between(number)))
        for name, answers in of_cell:
            between = {
                f"{what}_{end}": finite(value)
                for what, ends in answers.items()
                for end, value in zip(("least", "most"), ends, strict=True)
            }
            rows.append({**key, "prior": name, **between})
    foot = ["each number lies between its two columns, whichever prior of the neighbourhood is taken"]
    if reason:
        foot.append(f"{reason}: draws tell nothing of other neighbourhoods")
    foot += of_noise
    foot += _on_records(posterior, low, high, draws, rng)
    return Table(
        rows,
        title=f"{posterior.about.of(posterior.statistic, parameter)}: {WORDS}",
        notes=warnings_of(posterior),
        in_words=partial(posterior.about.rows, posterior.statistic, columns=posterior.groups),
        digits=partial(posterior.about.digits, posterior.statistic),
        foot=foot,
    )


def _noise_again(
    posterior: Posterior,
    redraws: int | None,
    mass: float,
    above: float | None,
    draws: int,
    rng: np.random.Generator,
) -> tuple[Redrawn | None, list[str]]:
    """Return answers under redrawn noise, where they are asked for or quick, and what is said of them."""
    if redraws == 0 or (redraws is None and reason_against(posterior)):
        return None, []
    if redraws is None and (reason := reason_to_ask(posterior)):
        return None, [f"{REDRAWN} is left out, as {reason}: ask for it in Python, with redraws=100"]
    number = REDRAWS if redraws is None else redraws
    if type(number) is not int or number < LEAST_REDRAWS:
        message = f"robustness: redraws is a whole number of {LEAST_REDRAWS} or more, or 0 for none"
        raise UsageError(message)
    noise = redrawn(posterior, number, mass, above, draws, rng)
    errors = noise.error("mean") / posterior.sd(posterior.parameters[0])
    said = (
        f"{REDRAWN}, the records as they were: between the 2.5 and the 97.5 percentile of {number} redraws; "
        f"Monte Carlo standard errors of both, of the mean: up to {np.max(errors):.2g} posterior sd"
    )
    return noise, [said]


def _on_records(
    posterior: Posterior, low: float, high: float, draws: int, rng: np.random.Generator
) -> list[str]:
    """Say how much one record can change likelihoods where the intervals of all cells are."""
    intervals = {}
    for name in posterior.parameters:
        ends = posterior.distribution.quantiles(name, (low, high), draws, rng)
        intervals[name] = (float(np.min(ends[..., 0])), float(np.max(ends[..., -1])))
    try:
        constants = smoothness(posterior, **intervals)
    except UsageError:
        return []  # there are none, or of other parameters
    if not math.isfinite(constants.difference):
        return []
    where = ", ".join(f"{name} in {least:.4g}..{most:.4g}" for name, (least, most) in intervals.items())
    changes = (
        f"where the intervals of all cells are, {where}, one record changes log likelihoods by at most L = "
        f"{constants.lipschitz:.3g} for each unit of {constants.distance}, and C = "
        f"{constants.difference:.3g} in all: a draw given exact records would cost "
        f"{constants.draw_epsilon:.3g}"
    )
    if constants.concentration is None:
        return [changes]
    return [changes, f"the concentration of the prior is c = {constants.concentration:.3g}"]
