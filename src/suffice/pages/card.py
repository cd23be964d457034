"""The posterior card: one self-contained page on what was inferred, from what, and what it does not say.

Names, keys and categories come from other people's specs: every text is escaped, and the page forbids itself
scripts and anything from elsewhere.
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from suffice.data_files.tables import MARK
from suffice.errors import UsageError
from suffice.pages.card_plot import forest
from suffice.pipeline.declaration.exact_numbers import format_epsilon, format_number
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.posterior.notes import (
    clipping_model,
    clipping_warnings,
    conflict_lines,
    design_effect_text,
    diagnostics_text,
    unsettled_warning,
)
from suffice.pipeline.posterior.posterior import PLUG_IN, summarise

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy as np

    from suffice.pipeline.pooling.release import Release
    from suffice.pipeline.posterior.posterior import Posterior
    from suffice.pipeline.released.noisy_statistic import NoisyStatistic

MOST_ROWS = 400
"""Rows of intervals on one card; a page with more is not read."""

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; font-size: .9rem; }
td, th { padding: .2rem .7rem .2rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid #ddd;
overflow-wrap: anywhere; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.warning { border-left: .3rem solid #b00; padding: .3rem 1rem; background: #fee; }
svg { max-width: 100%; height: auto; display: block; margin: 1.5rem 0 .5rem; }
"""


def card(
    release: Release,
    posterior: Posterior,
    *,
    mass: float,
    draws: int,
    seed: int | None,
    rng: np.random.Generator,
) -> str:
    """Return the page of a posterior, HTML text without any reference to elsewhere.

    Parameters
    ----------
    release : Release
        What the posterior was computed from.
    posterior : Posterior
    mass : float
        Of the credible intervals.
    draws : int
        Posterior draws per cell that quantiles rest on.
    seed : int or None
        Of the draws, where there is one.
    rng : numpy.random.Generator
        For the draws.

    Raises
    ------
    UsageError
        Where there are more than ``MOST_ROWS`` intervals.
    """
    count = posterior.n_groups * sum(max(1, len(posterior.labels(name)[1])) for name in posterior.parameters)
    if count > MOST_ROWS:
        message = f"--card: {count} intervals are too many for one page: keep some cells with --where"
        raise UsageError(message)
    statistic = release.statistic(posterior.statistic)
    rows = summarise(posterior, mass, draws, rng)
    title = f"{release.name}: {posterior.statistic}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        _warning(posterior, statistic),
        "<h2>Posterior</h2>",
        _facts(
            {
                "statistic": posterior.statistic,
                "family": posterior.family,
                **({"parameters": posterior.rows_of} if posterior.rows_of is not None else {}),
                "method": posterior.method,
                "prior": posterior.prior,
                "prior of N": "none" if posterior.n_prior is None else posterior.n_prior,
                **(
                    {}
                    if posterior.predictor_prior is None
                    else {"prior of predictors": posterior.predictor_prior}
                ),
                "intervals": f"central, {100 * mass:g} % posterior probability each",
                "draws": f"{draws} a cell" + ("" if seed is None else f", seed {seed}"),
                **_rests_on(posterior),
            }
        ),
        *(forest(posterior, parameter, mass, draws, rng) for parameter in posterior.parameters),
        _table(rows),
        "<h2>Release</h2>",
        _facts(_release_facts(release, statistic)),
        "<h2>What this says</h2>",
        _list(_says(posterior, statistic, mass)),
        "<h2>What this does not say</h2>",
        _list(_does_not_say(posterior)),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f'<meta name="generator" content="written by {MARK}">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(filter(None, parts))
        + "\n</body>\n</html>\n"
    )


def escape(value: object) -> str:
    """Return a text as HTML shows it literally; what cannot be seen is written as its code."""
    visible = "".join(sign if sign.isprintable() else f"\\u{{{ord(sign):x}}}" for sign in str(value))
    return html.escape(visible, quote=True)


def _warning(posterior: Posterior, statistic: NoisyStatistic) -> str:
    warnings = []
    if posterior.method == PLUG_IN:
        warnings.append(
            "Plug-in: the noisy statistics were taken for exact. These intervals are too narrow where the "
            "noise is not small; they are not calibrated."
        )
        if FAMILIES[posterior.family].of_release:
            warnings.append(
                "Plug-in: each row or unit is taken for drawn by itself. These intervals are not of the "
                "shares of these data."
            )
    told = [*clipping_warnings(posterior), *conflict_lines(posterior), unsettled_warning(posterior)]
    warnings += [f"{warning[0].upper()}{warning[1:]}." for warning in told if warning]
    if statistic.n_saturated:
        warnings.append(
            f"{statistic.n_saturated} released values are saturated: there were more records than "
            "max_total_rows, and what rests on those values is too small."
        )
    return "".join(f'<p class="warning">{escape(warning)}</p>' for warning in warnings)


def _rests_on(posterior: Posterior) -> dict[str, object]:
    """What a sampled posterior rests on; its draws are over all chains, not those that are stated above."""
    told = diagnostics_text(posterior)
    return {"sampler's draws" if name == "draws" else name: value for name, value in told.items()}


def _release_facts(release: Release, statistic: NoisyStatistic) -> dict[str, object]:
    signature = release.manifest["signature"]
    parameters = statistic.plan.parameters
    facts: dict[str, object] = {
        "name": release.name,
        "dataset": release.dataset,
        "window": release.window,
        "release id": release.release_id,
        "epsilon of the release": format_epsilon(release.epsilon),
        "epsilon of this statistic": format_epsilon(statistic.plan.epsilon),
        "neighbouring relation": release.neighboring,
        "privacy unit": _unit(release),
        "number of records": "private" if release.public_n is None else release.public_n,
        "columns": ", ".join(statistic.plan.columns),
        "noise": f"discrete Laplace of scale {statistic.plan.scale:.6g} lattice units on every component",
    }
    if parameters.lower is not None and parameters.upper is not None:
        facts["bounds of a record's statistic"] = (
            f"{_bound(parameters.lower)} to {_bound(parameters.upper)}; values beyond were clipped"
        )
    facts["signed by"] = f"{signature['key_id']} (not checked on this page)" if signature else "nobody"
    facts["plan hash"] = release.manifest["plan_hash"]
    return facts


def _unit(release: Release) -> str:
    if release.unit == "row":
        return release.unit
    without = {"drop": "enter nothing", "own_unit": "are a unit each"}[release.manifest["unit_nulls"]]
    most = release.manifest["max_rows"]
    return f"{release.unit}, at most {most} rows of each; rows without one {without}"


def _bound(number: Any) -> str:
    text = format_number(number)
    return text if len(text) <= 16 else f"{float(number):.9g}"


def _says(posterior: Posterior, statistic: NoisyStatistic, mass: float) -> Iterable[str]:
    if FAMILIES[posterior.family].of_release:
        yield (
            f"Given the released numbers and the prior {posterior.prior}, each interval holds its parameter "
            f"with probability {mass:g}. The parameters are {posterior.rows_of}."
        )
    else:
        yield (
            f"Given the released numbers, the prior {posterior.prior} and {_model_of(posterior)} model of "
            f"the records, each interval holds its parameter with probability {mass:g}."
        )
    if posterior.method == PLUG_IN:
        yield "The noise that was added for privacy is ignored."
        return
    yield "The noise that was added for privacy is taken into account exactly as the release states it."
    yield (
        "Such intervals are calibrated on average over the priors, the number of records included: simulated "
        f"with suffice calibrate, {100 * mass:g} of 100 hold the truth where records follow the model."
    )
    for said in filter(None, [clipping_model(posterior), design_effect_text(posterior)]):
        yield f"{said[0].upper()}{said[1:]}."
    if statistic.public_n is None:
        yield f"The number of records is private here, and unknown under the prior {posterior.n_prior}."


def _model_of(posterior: Posterior) -> str:
    """Return the family's name in words, after its article."""
    name = posterior.family.replace("_", " ")
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _does_not_say(posterior: Posterior) -> Iterable[str]:
    yield "Anything about one person or record: the release is private at the epsilon stated above."
    if FAMILIES[posterior.family].of_release:
        yield "That the prior is right: it is an assumption."
    else:
        yield (
            f"That {_model_of(posterior)} model of the records is right: it is an assumption, and so is the "
            "prior."
        )
    if FAMILIES[posterior.family].outside is not None and posterior.models_clipping is None:
        yield (
            "What values beyond the bounds were: the model knows nothing of clipping, so where many values "
            "were clipped these intervals are about the clipped values and may miss the true parameter."
        )
    yield "Anything about several intervals jointly: each stands alone, none is adjusted for the others."
    yield "That this page is genuine: suffice verify checks the release; draw the posterior again from it."


def _facts(facts: Mapping[str, object]) -> str:
    lines = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in facts.items()
    )
    return f"<table>{lines}</table>"


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    columns = list(rows[0])
    numbers = {"mean", "sd", "lower", "upper"}
    head = "".join(
        f"<th{' class=number' * (column in numbers and position >= len(columns) - 4)}>{escape(column)}</th>"
        for position, column in enumerate(columns)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="number">{escape(_number(value))}</td>'
            if position >= len(columns) - 4
            else f"<td>{'' if value is None else escape(value)}</td>"
            for position, value in enumerate(row.values())
        )
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.6g}"


def _list(lines: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"
