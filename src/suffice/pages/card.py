"""The posterior card: one self-contained page on what was inferred, from what, and what it does not say.

Names, keys and categories come from other people's specs: every text is escaped, and the page forbids itself
scripts and anything from elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suffice.data_files.tables import MARK
from suffice.errors import UsageError
from suffice.pages.pooled_forest import PairedForest, forests_of_parameters
from suffice.pages.posterior_figures import ParameterFigure, parameter_figure
from suffice.pages.rendering import markup, render
from suffice.pipeline.ask.borrowing.over_time import WalkedPosterior
from suffice.pipeline.ask.borrowing.pooled_posterior import PooledPosterior
from suffice.pipeline.ask.borrowing.side_by_side import beside_alone, populations
from suffice.pipeline.ask.inference.posterior_terms import PLUG_IN
from suffice.pipeline.ask.pooling.roll_up import UnionPosterior
from suffice.pipeline.ask.posterior import notes
from suffice.pipeline.ask.posterior.curves import in_words as parameter_in_words
from suffice.pipeline.ask.posterior.summaries import summarise
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.parameters.arguments import interval_in_words
from suffice.pipeline.terms.declaration.delta import shown_epsilons
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.declaration.row_rules import in_words
from suffice.pipeline.terms.released.table import texts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy as np

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan


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
    if len(posterior.releases) > 1:
        facts["releases"] = _several(posterior)
    return {**facts, **_rests_on(posterior)}


def _several(posterior: Posterior) -> str:
    """Name the first and the last of the releases that a posterior is of, and say how many there are."""
    first, last = (named.partition(" ")[0] for named in (posterior.releases[0], posterior.releases[-1]))
    return f"{first} to {last}, {len(posterior.releases)} releases"


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
    lines = [
        *notes.clipping_warnings(posterior),
        *notes.prior_lines(posterior),
        *notes.conflict_lines(posterior),
        *notes.default_lines(posterior),
        notes.unsettled_warning(posterior),
    ]
    warnings += [f"{warning[0].upper()}{warning[1:]}." for warning in lines if warning]
    if statistic.n_saturated:
        warnings.append(
            f"{statistic.n_saturated} released values are saturated: there were more records than "
            "max_total_rows, and what rests on those values is too small."
        )
    return warnings


def _rests_on(posterior: Posterior) -> dict[str, object]:
    """What a sampled posterior rests on; its draws are over all chains, not those that are stated above."""
    diagnostics = notes.diagnostics_text(posterior)
    return {"sampler's draws" if name == "draws" else name: value for name, value in diagnostics.items()}


def release_facts(release: Release, statistic: NoisyStatistic) -> dict[str, object]:
    """Return what a release states of itself and of one statistic."""
    signature = release.manifest["signature"]
    parameters = statistic.plan.parameters
    about = release.about
    said = {name: getattr(about, name) for name in ("title", "source", "licence", "contact")}
    facts: dict[str, object] = {
        **{name: text for name, text in said.items() if text},
        "name": release.name,
        "dataset": release.dataset,
        "window": release.window,
        "release id": release.release_id,
        f"{release.loss.measure} of the release": release.loss.text,
        f"{statistic.plan.loss.measure} of this statistic": statistic.plan.loss.text,
        "neighbouring relation": release.neighboring,
        "privacy unit": _unit(release),
        "number of records": "private" if release.public_n is None else release.public_n,
        "columns": ", ".join(statistic.plan.columns),
        "noise": f"discrete Laplace of scale {statistic.plan.scale:.6g} on every released integer"
        if statistic.plan.cone is None
        else f"cone noise, {statistic.plan.cone}",
    }
    if parameters.lower is not None and parameters.upper is not None:
        facts["bounds of a record's statistic"] = (
            f"{_bound(parameters.lower)} to {_bound(parameters.upper)}; values beyond were clipped"
        )
    facts["signed by"] = f"{signature['key_id']} (not checked on this page)" if signature else "nobody"
    facts["plan hash"] = release.manifest["plan_hash"]
    return facts


def noise_of(plans: Sequence[StatisticPlan]) -> str:
    """Name the noise of the statistics that have one: discrete Laplace, on a cone, or both."""
    kinds = {plan.cone is not None for plan in plans if plan.sample is None}
    laplace = "discrete Laplace noise of a stated scale"
    cone = "cone noise of a stated rate, which is as private as Laplace noise of the same epsilon"
    if kinds == {True}:
        return cone
    return f"{laplace} or, where its statistic says so, {cone}" if True in kinds else laplace


def _unit(release: Release) -> str:
    if release.unit == "row":
        return release.unit
    without = {"drop": "enter nothing", "own_unit": "are a unit each"}[release.manifest["unit_nulls"]]
    return f"{in_words(release.unit)}, with all of its rows; rows without one {without}"


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
    if statistic.plan.cone is None:
        yield "The noise that was added for privacy is taken into account exactly as the release states it."
    else:
        yield (
            "The noise that was added for privacy is taken into account as the release states it, but for a "
            "fifth of its variance, which is taken for normal noise."
        )
    if is_of_records:
        yield "No model of the records is used, and merged cells may differ as they like."
        return
    if isinstance(posterior, PooledPosterior):
        yield f"What was pooled with what: {posterior.rows_of}."
        yield (
            f"Of such intervals {100 * mass:g} in 100 hold their cell's parameter, on average over the cells "
            "of a population and not for every cell: one that differs from the others is drawn to them, the "
            "less so the larger its own share is."
        )
        if statistic.public_n is None:
            yield f"The number of records is private here, and unknown under the prior {posterior.n_prior}."
        return
    yield (
        "Such intervals are calibrated on average over the priors, the number of records included: simulated "
        f"with suffice calibrate, {100 * mass:g} of 100 hold the truth where records follow the model."
    )
    of_records = f"they are {posterior.estimand}" if posterior.estimand else ""
    for said in filter(None, [of_records, notes.design_effect_text(posterior)]):
        yield f"{said[0].upper()}{said[1:]}."
    if statistic.public_n is None:
        yield f"The number of records is private here, and unknown under the prior {posterior.n_prior}."


def _model_of(posterior: Posterior) -> str:
    """Return the family's name in words, after its article; a labelled statistic's stands below."""
    if posterior.about.words(posterior.statistic).label:
        return "the"
    name = posterior.family.replace("_", " ")
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def does_not_say(posterior: Posterior, loss: PrivacyLoss) -> Iterable[str]:
    """Say what they do not mean, of a release that costs `loss`."""
    if loss.rho is None:
        yield f"Anything about one person or record: the release is private at epsilon {loss.text}."
    else:
        yield (
            "Anything much about one person or record: the release is zero-concentrated private at rho "
            f"{loss.text}, which is (epsilon, delta) = {shown_epsilons(loss.rho)}."
        )
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


MOST_ROWS = 400
"""Rows of intervals on one card; a page with more is not read."""
_NUMBERS = ("mean", "sd", "lower", "upper")


def card(
    release: Release,
    posterior: Posterior,
    *,
    mass: float,
    interval: str | None = None,
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
    interval : {"central", "highest-density"}, optional
        Their kind, the posterior's default otherwise.
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
    kind = posterior.interval_kind(interval)
    rows = summarise(posterior, mass, draws, rng, interval=kind)
    named = release.about.rows(posterior.statistic, rows, posterior.groups)
    paired: list[PairedForest] = []
    figures: list[ParameterFigure] = []
    if isinstance(posterior, PooledPosterior):
        paired = _paired(release, posterior, rows, mass=mass, interval=kind, draws=draws, rng=rng)
    else:
        figures = [
            parameter_figure(
                posterior, name, mass=mass, interval=kind, draws=draws, rng=rng, most_intervals=MOST_ROWS
            )
            for name in posterior.parameters
        ]
    return render(
        "card.html",
        styles=("style.css", "figures.css", "card.css"),
        mark=MARK,
        title=release.titled(posterior.statistic),
        label=release.about.label(posterior.statistic),
        about=release.about,
        description=release.about.words(posterior.statistic).description or "",
        release=release,
        posterior=posterior,
        of=_several(posterior) if len(posterior.releases) > 1 else release.label,
        loss=statistic.plan.loss,
        prior=_prior_in_short(posterior),
        interval=f"{100 * mass:g} % {kind}",
        intervals=count,
        warnings=warnings_of(posterior, statistic),
        figures=[(figure, markup(figure.svg)) for figure in figures],
        paired=paired,
        paired_interval=kind,
        paired_mass=f"{100 * mass:g} %",
        columns=[*_columns(named)],
        rows=[
            _cells(row, release.about.digits(posterior.statistic, of["parameter"]))
            for row, of in zip(named, rows, strict=True)
        ],
        posterior_facts=posterior_facts(posterior, mass, kind, draws, seed),
        release_facts=release_facts(release, statistic),
        says=list(says(posterior, statistic, mass)),
        does_not_say=list(does_not_say(posterior, release.loss)),
    )


def _prior_in_short(posterior: Posterior) -> tuple[str, str]:
    """Return what stands as the prior above all, and what it is called."""
    if isinstance(posterior, WalkedPosterior):
        return "walk over", str(posterior.walk)
    if isinstance(posterior, PooledPosterior):
        # Categories have one population together.
        n_pools = len({(*pool.keys.items(), pool.parameter) for pool in posterior.pools})
        return "one population" if n_pools == 1 else f"{n_pools} populations", posterior.population
    return "prior", str(posterior.prior)


def _paired(
    release: Release,
    together: PooledPosterior,
    rows: Sequence[Mapping[str, Any]],
    *,
    mass: float,
    interval: str,
    draws: int,
    rng: np.random.Generator,
) -> list[PairedForest]:
    """Return pictures of every cell alone beside itself pooled."""
    beside = beside_alone(together, rows, mass, draws, rng, interval=interval)
    named, pools = (
        release.about.rows(together.statistic, each, together.groups)
        for each in (beside, populations(together))
    )
    names = {parameter: iter(together.entry_names(parameter)) for parameter in together.parameters}

    def axis(parameter: str) -> str:
        words = parameter_in_words(together, parameter)
        return f"{words[0].upper()}{words[1:]}"

    return forests_of_parameters(
        named,
        pools,
        axis=axis,
        heading=", ".join(together.about.groups(together.groups)),
        names=[next(names[row["parameter"]]) for row in rows],
        digits=lambda parameter: release.about.digits(together.statistic, parameter),
        most=MOST_ROWS,
    )


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, bool]]:
    """Names of columns, and whether they hold numbers: the last four do."""
    names = list(rows[0])
    return [(name, position >= len(names) - len(_NUMBERS)) for position, name in enumerate(names)]


def _cells(row: Mapping[str, Any], digits: int | None) -> list[tuple[str, bool]]:
    """What cells of a row say, and whether they are numbers."""
    texts = [*zip(row.values(), texts_of(row, digits), strict=True)]
    labels, numbers = texts[: -len(_NUMBERS)], texts[-len(_NUMBERS) :]
    return [
        *(("" if value is None else str(value), False) for value, _ in labels),
        *(("none" if value is None else text, True) for value, text in numbers),
    ]
