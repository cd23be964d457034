"""How far a posterior moves with its prior, with one record and with its noise, as people look at it."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.judging.robustness import (
    ONE_RECORD,
    REPLACED,
    ranges_of,
    reason_against_nodes,
)
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
from suffice.pipeline.math.parameters.arguments import ends_of, require_finite
from suffice.pipeline.math.parameters.contrasts import finite, tidy_rows
from suffice.pipeline.terms.released.table import Table, number_beside

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence

    from suffice.pipeline.ask.judging.robustness import Neighbourhoods
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.ask.posterior.redrawn_noise import Redrawn

_UNBOUNDED = "any number"


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
    above = None if above is None else require_finite("above", above)
    noise, of_noise = _noise_again(posterior, redraws, mass, above, draws, rng)
    low, high = ends_of(mass)
    keys = tidy_rows(
        posterior.groups,
        posterior.label_columns,
        {parameter: {"mean": posterior.mean(parameter), "sd": posterior.sd(parameter)}},
        posterior.components,
    )
    reason = reason_against_nodes(posterior)
    rows = []
    for number, ranges in enumerate(ranges_of(posterior, parameter, asked, draws, rng)):
        key = {name: value for name, value in keys[number].items() if name not in {"mean", "sd"}}
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
    foot = explained(asked, {row["prior"] for row in rows})
    if reason:
        # (6) of neighbourhoods, inverted: the level that a factor moves to that of the lower end.
        beyond = low / (low + asked.factor**2 * (1.0 - low))
        foot.append(
            f"{reason}: {draws} draws tell of no other neighbourhood, and the least lower and the greatest "
            f"upper end rest on the outermost {draws * beyond:.2g} of them"
        )
    foot += of_noise
    foot += _on_records(posterior, low, high, draws, rng)
    return Table(
        rows,
        title=f"{posterior.about.of(posterior.statistic, parameter)}: {robustness_in_words(mass)}",
        notes=warnings_of(posterior),
        in_words=partial(
            _in_words, posterior, above, {_entry(row): row["sd"] for row in keys}, posterior.groups
        ),
        foot=foot,
    )


def robustness_in_words(mass: float) -> str:
    """Return what the table is of."""
    return f"how far mean and central {100 * mass:g} % interval move with the prior, one record and the noise"


def explained(asked: Neighbourhoods, names: Container[str]) -> list[str]:
    """Return a sentence for each neighbourhood among these names, and what ``a..b`` means."""
    any_other, within, moved = asked.names
    extreme = "of the lowest or the highest value that one can have; the noise stays"
    sentences = {
        any_other: (
            f"{100 * asked.share:g} % of the prior's probability is taken from where it is stated and put "
            "anywhere, be it all on one value"
        ),
        within: (
            f"the prior's density is up to {asked.factor:g} times as high or as low as stated, and "
            "differently so at different values"
        ),
        moved: (
            f"the prior is moved up or down by up to {asked.shift:g} of its standard deviations, on the "
            "scale (log, logit or as it is) on which it is nearly normal"
        ),
        ONE_RECORD: f"the data have one record more or one less, {extreme}",
        REPLACED: f"one record of the data is replaced by another one, {extreme}",
    }
    return [
        "a..b: the least and the greatest that the number can be in the cases of its row",
        *(f"{name}: {sentence}" for name, sentence in sentences.items() if name in names),
    ]


def _in_words(
    posterior: Posterior,
    above: float | None,
    spreads: Mapping[tuple[object, ...], float | None],
    columns: Iterable[str],
    rows: Sequence[dict[str, Any]],
) -> list[dict[str, Any]]:
    """Return rows for people: a range in one column, to as many digits as the posterior's sd tells."""
    named = {"mean": "mean", "lower": "lower", "upper": "upper"}
    if above is not None:
        named["above"] = f"probability above {above:g}"
    shown = []
    for row in rows:
        entry = _entry(row)
        digits = posterior.about.digits(posterior.statistic, row["parameter"])
        texts = {
            words: _range_in_words(
                row[f"{name}_least"],
                row[f"{name}_most"],
                (lambda value: f"{value:.3f}")
                if name == "above"
                else partial(number_beside, sd=spreads[entry], digits=digits),
            )
            for name, words in named.items()
        }
        shown.append({**dict(_keys(row)), "prior": row["prior"], **texts})
    return posterior.about.rows(posterior.statistic, shown, columns)


def _keys(row: Mapping[str, Any]) -> list[tuple[str, Any]]:
    names = list(row)
    end = names.index("prior") if "prior" in names else names.index("mean")
    return [(name, row[name]) for name in names[:end]]


def _entry(row: Mapping[str, Any]) -> tuple[object, ...]:
    """What tells the rows of a cell and entry from those of others."""
    return tuple(value for _, value in _keys(row))


def _range_in_words(least: float | None, most: float | None, text: Callable[[float], str]) -> str:
    """Return what a number lies between, of which None is no bound."""
    if least is None:
        return _UNBOUNDED if most is None else f"up to {text(most)}"
    if most is None:
        return f"{text(least)} or more"
    low, high = text(least), text(most)
    return low if low == high else f"{low}..{high}"


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
        f"{REDRAWN}: the same records, released again with fresh noise; from the 2.5 to the 97.5 percentile "
        f"of {number} redraws; Monte Carlo standard errors of both, of the mean: up to {np.max(errors):.2g} "
        "posterior sd"
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
        f"{constants.difference:.3g} in all: to release a draw of the posterior of exact records would cost "
        f"epsilon = {constants.draw_epsilon:.3g}"
    )
    if constants.concentration is None:
        return [changes]
    said = f"the concentration of the prior is c = {constants.concentration:.3g}, on which no guarantee rests"
    return [changes, said]
