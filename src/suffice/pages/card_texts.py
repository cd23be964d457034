"""What a card says in words: of the posterior, of its release, and of what neither says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suffice.pipeline.ask.pooling.union import UnionPosterior
from suffice.pipeline.ask.posterior.notes import (
    clipping_warnings,
    conflict_lines,
    default_lines,
    design_effect_text,
    diagnostics_text,
    unsettled_warning,
)
from suffice.pipeline.ask.posterior.parameter_posterior import interval_in_words
from suffice.pipeline.ask.posterior.posterior import PLUG_IN
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.terms.declaration.exact_numbers import format_epsilon, format_number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic


def posterior_facts(
    posterior: Posterior, mass: float, interval: str, draws: int, seed: int | None
) -> dict[str, object]:
    """Return what a posterior rests on."""
    facts: dict[str, object] = {"statistic": posterior.statistic, "family": posterior.family}
    if posterior.rows_of is not None:
        facts["parameters"] = posterior.rows_of
    facts["method"] = posterior.method
    facts["prior"] = posterior.prior
    facts["prior of N"] = "none" if posterior.n_prior is None else posterior.n_prior
    if posterior.predictor_prior is not None:
        facts["prior of predictors"] = posterior.predictor_prior
    facts["intervals"] = interval_in_words(interval, mass)
    facts["draws"] = f"{draws} a cell" + ("" if seed is None else f", seed {seed}")
    return {**facts, **_rests_on(posterior)}


def warnings_of(posterior: Posterior, statistic: NoisyStatistic) -> list[str]:
    """Return what a reader has to know before any number, a sentence each."""
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
    told = [
        *clipping_warnings(posterior),
        *conflict_lines(posterior),
        *default_lines(posterior),
        unsettled_warning(posterior),
    ]
    warnings += [f"{warning[0].upper()}{warning[1:]}." for warning in told if warning]
    if statistic.n_saturated:
        warnings.append(
            f"{statistic.n_saturated} released values are saturated: there were more records than "
            "max_total_rows, and what rests on those values is too small."
        )
    return warnings


def _rests_on(posterior: Posterior) -> dict[str, object]:
    """What a sampled posterior rests on; its draws are over all chains, not those that are stated above."""
    told = diagnostics_text(posterior)
    return {"sampler's draws" if name == "draws" else name: value for name, value in told.items()}


def release_facts(release: Release, statistic: NoisyStatistic) -> dict[str, object]:
    """Return what a release states of itself and of one statistic."""
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


def says(posterior: Posterior, statistic: NoisyStatistic, mass: float) -> Iterable[str]:
    """Say what the intervals mean, a sentence each."""
    is_of_records = isinstance(posterior, UnionPosterior)
    if is_of_records or FAMILIES[posterior.family].of_release:
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
    if is_of_records:
        yield "No model of the records is used, and merged cells may differ as they like."
        return
    yield (
        "Such intervals are calibrated on average over the priors, the number of records included: simulated "
        f"with suffice calibrate, {100 * mass:g} of 100 hold the truth where records follow the model."
    )
    of_records = f"they are {posterior.estimand}" if posterior.estimand else ""
    for said in filter(None, [of_records, design_effect_text(posterior)]):
        yield f"{said[0].upper()}{said[1:]}."
    if statistic.public_n is None:
        yield f"The number of records is private here, and unknown under the prior {posterior.n_prior}."


def _model_of(posterior: Posterior) -> str:
    """Return the family's name in words, after its article."""
    name = posterior.family.replace("_", " ")
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def does_not_say(posterior: Posterior) -> Iterable[str]:
    """Say what they do not mean."""
    yield "Anything about one person or record: the release is private at the epsilon stated above."
    is_of_records = isinstance(posterior, UnionPosterior)
    if is_of_records or FAMILIES[posterior.family].of_release:
        yield "That the prior is right: it is an assumption."
    else:
        yield (
            f"That {_model_of(posterior)} model of the records is right: it is an assumption, and so is the "
            "prior."
        )
    if is_of_records:
        yield "What other records of the same kind would add up to: the numbers are of the released records."
    elif posterior.estimand and not posterior.before_clipping:
        yield "What values beyond the bounds were: each counts as the bound that it is beyond."
    yield "Anything about several intervals jointly: each stands alone, none is adjusted for the others."
    yield "That this page is genuine: suffice verify checks the release; draw the posterior again from it."
