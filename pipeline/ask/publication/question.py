"""From what a caller asks to a request: everything is read, checked and written out, and nothing computed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from pydantic import TypeAdapter, ValidationError

from suffice.errors import PriorError, UsageError
from suffice.pipeline.ask.inference import chosen_priors
from suffice.pipeline.ask.inference.posterior_terms import (
    IGNORED,
    MODELLED,
    NOISE_AWARE,
    PLUG_IN,
    PosteriorTerms,
)
from suffice.pipeline.ask.models.state_sampling import HOLDOUT, SPLITS, read_settings
from suffice.pipeline.ask.pooling.roll_up import quantities_of, require_assumption, require_totals, roll_up
from suffice.pipeline.ask.pooling.series import Series
from suffice.pipeline.ask.posterior.cells import cells_of
from suffice.pipeline.ask.posterior.choice_of_engine import plug_in
from suffice.pipeline.ask.publication.pooled_terms import read_pooling
from suffice.pipeline.ask.publication.request import (
    FORMATS,
    LARGEST_SEED,
    MOST_DRAWS,
    HiddenMarkov,
    ModelTerms,
    NamedPrior,
    Request,
    RequestPart,
    StatisticRequest,
    derived_seed,
    reference_to,
)
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.interval_kinds import CENTRAL, HIGHEST_DENSITY
from suffice.pipeline.math.parameters.arguments import ends_of
from suffice.pipeline.math.parameters.contrasts import require_interval
from suffice.pipeline.math.parameters.parameter_posterior import DRAWS, MASS
from suffice.pipeline.math.priors.coefficients import NonConjugate
from suffice.pipeline.terms.released.noisy_statistic import HeldCells, rows_alone

if TYPE_CHECKING:
    from typing import Unpack

    from suffice.pipeline.ask.borrowing.pooling import Pooling
    from suffice.pipeline.ask.inference.posterior_terms import FurtherTerms, SharedTerms
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.pooling.series import Windows
    from suffice.pipeline.ask.publication.request import Kind, Relation
    from suffice.pipeline.terms.released.noisy_statistic import Cells, NoisyStatistic

_Part = TypeVar("_Part", bound=RequestPart)
_MODEL_TERMS: TypeAdapter[Any] = TypeAdapter(ModelTerms)
NETCDF_KINDS = ("posterior", "pool", "roll_up")
"""Kinds whose draws are those of one posterior, as ArviZ has them; hidden Markov fits too."""
LIKELIHOOD = "likelihood"
LIKELIHOOD_FORMATS = ("csv", "netcdf", "parquet")
LEAST_WINDOWS = 2
MOST_POOLED_DRAWS = 10_000_000
"""Rows of draws of pooled cells, which rest on each other and are published whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request, and the opened releases that it is asked of, in its order.

    Of pooled cells with what they have in common, and of windows that walk with their series.
    """

    request: Request
    releases: tuple[Release, ...] = field(repr=False)
    pooling: Pooling | None = field(default=None, repr=False)
    series: Series | None = field(default=None, repr=False)


def ask(  # noqa: PLR0915 - all that is asked, in order
    releases: Sequence[Release] | Series,
    statistics: Sequence[str],
    *,
    kind: Kind = "posterior",
    prior: chosen_priors.AnyPrior | Mapping[str, chosen_priors.AnyPrior] = None,
    priors: Mapping[str, chosen_priors.AnyPrior] | None = None,
    relation: Relation | None = None,
    over: Sequence[str] = (),
    assume: str | None = None,
    model: Mapping[str, Any] | None = None,
    vouched: bool = False,
    mass: float = MASS,
    interval: str | None = None,
    draws: int | None = None,
    seed: int | None = None,
    formats: Sequence[str],
    cells_per_part: int | None = None,
    pooled: bool | str | Sequence[str] | Pooling = False,
    **further: Unpack[FurtherTerms],
) -> Question:
    """Read and check all that is asked, and write it out as a request.

    Parameters
    ----------
    releases : sequence of Release, or Series
        In the order in which they are compared, or follow each other. A series is of pooled cells: those
        of its windows that have the statistics count.
    statistics : sequence of str
        Their names, in every release.
    kind : str
        As ``Request.kind``.
    prior : prior or mapping of str to prior, optional
        Of every statistic, or by statistic; the family's default otherwise.
    priors : mapping of str to prior, optional
        Of a sensitivity table, by name: two or more.
    interval : {"central", "highest-density"}, optional
        The kind of the intervals; each family's default otherwise. Those of models are central.
    assume : {"one parameter"}, optional
        Of cells that are rolled up, as in ``RolledUp.posterior``.
    relation, over, model, vouched, mass, draws, seed, formats, cells_per_part
        As in ``Request``. Of a likelihood there are no draws and no intervals.
    pooled : bool, str, sequence of str or Pooling, optional
        Let cells borrow strength, as in ``Release.posterior``; tables have to be files.
    **further
        See :class:`PosteriorTerms`.

    Raises
    ------
    UsageError, PriorError
        Where a choice does not exist, does not fit, or cannot be written as text.
    """
    series = releases if isinstance(releases, Series) else None
    releases = [releases.releases[-1]] if isinstance(releases, Series) else releases
    names = _checked_names(releases, statistics)
    further = {**further, "where": releases[0].in_names(further.get("where"))}
    terms = PosteriorTerms(prior=None if isinstance(prior, Mapping) else prior, **further)
    _check_choices(kind, terms)
    if kind == LIKELIHOOD:
        _check_likelihood(terms, mass, interval, draws, seed)
        _check_columns(releases[0], names, formats)
        draws, terms = 0, dataclasses.replace(terms, clipping=IGNORED)
    is_union = _is_union(kind, assume, terms.clipping, prior, terms.n_prior, terms.predictor_prior)
    ends_of(mass)
    asked_model = None if model is None else read_model_terms(model)
    if isinstance(asked_model, HiddenMarkov):
        asked_model, draws = resolved_fit(asked_model, terms.method, draws)
    draws = _checked("draws", DRAWS if draws is None else draws, 0, MOST_DRAWS)
    kept = {str(column): str(key) for column, key in (terms.where or {}).items()}
    unknown = sorted(set(prior) - set(names)) if isinstance(prior, Mapping) else []
    if unknown:
        message = f"prior: {unknown[0]!r} is none of the statistics that are asked for: {', '.join(names)}"
        raise UsageError(message)
    asked, firsts, most_cells = [], [], 0
    windows = _windows(series, names, terms.where)
    for name in names:
        if series is None:
            cells = [cells_asked(release, name, terms.where) for release in releases]
            parts = [each.slice(0, 1) for each in cells]
            most_cells = max(most_cells, len(cells[0]))
        else:
            parts = [part.take(np.arange(1)) for part, _ in windows[name].parts]
            most_cells = max(most_cells, len(windows[name].statistic.values))
        firsts.append(parts[0])
        stated = prior.get(name) if isinstance(prior, Mapping) else prior
        given: dict[str | None, chosen_priors.AnyPrior] = {None: stated}
        if priors is not None:
            given = dict(priors.items())
        if is_union:
            require_totals(parts[0].plan)
        has_priors = not isinstance(asked_model, HiddenMarkov) and not is_union
        has_priors = has_priors and pooled is False and kind != LIKELIHOOD
        chosen = _interval_of(parts[0], kind, interval, is_pooled=pooled is not False)
        given = given if has_priors else {}
        counts_have_prior = bool(given) or kind == LIKELIHOOD or pooled is not False
        asked.append(_statistic_request(parts, given, terms, chosen, has_n_prior=counts_have_prior))
    pooling, pooled_terms = None, None
    if pooled is not False:
        _check_pooled(prior, priors, draws, most_cells)
        pooling, pooled_terms = read_pooling(firsts, pooled, are_windows=series is not None)
    if series is not None:
        counted_in = {id(release) for each in windows.values() for release in each.releases}
        releases = [release for release in series if id(release) in counted_in]
    unseeded = _read(
        Request,
        "",
        kind=kind,
        releases=tuple(map(reference_to, releases)),
        statistics=tuple(asked),
        where=kept,
        method=terms.method,
        clipping=terms.clipping,
        within_unit=terms.within_unit,
        mass=None if kind == LIKELIHOOD else repr(float(mass)),
        draws=draws,
        seed=0 if seed is None else _checked("seed", seed, 0, LARGEST_SEED),
        formats=_checked_formats(formats, kind, asked_model, draws),
        cells_per_part=cells_per_part,
        relation=relation,
        vouched=vouched,
        over=_in_order(releases[0], names[0], over),
        model=asked_model,
        pooled=pooled_terms,
    )
    return Question(
        request=unseeded if seed is not None else derived_seed(unseeded),
        releases=tuple(releases),
        pooling=pooling,
        series=series,
    )


def _windows(
    series: Series | None, names: Sequence[str], where: Mapping[str, object] | None
) -> dict[str, Windows]:
    """Return the cells of each statistic in all windows; none where there is no series.

    Raises
    ------
    UsageError
        Where fewer than two windows have a statistic.
    """
    windows = {} if series is None else {name: series.windows_of(name, where) for name in names}
    for name, each in windows.items():
        if len(each.releases) < LEAST_WINDOWS:
            message = (
                f"{name}: one window alone has it: publish that as {each.releases[0].label}, or release "
                "more windows"
            )
            raise UsageError(message)
    return windows


def _is_union(kind: Kind, assume: str | None, clipping: str, *priors: object) -> bool:
    """Tell whether cells are rolled up without an assumption; refuse an assumption or a prior without use."""
    if kind == "roll_up":
        require_assumption(assume, clipping, *priors)
        return assume is None
    if assume is not None:
        message = "assume: only cells that are rolled up may be assumed to share their parameters"
        raise UsageError(message)
    return False


def read_model_terms(model: Mapping[str, Any]) -> Any:
    """Read what is asked of a model.

    Raises
    ------
    UsageError
        Where there is no such model, or one of its choices is not one.
    """
    try:
        return _MODEL_TERMS.validate_python(dict(model), strict=False)
    except (ValidationError, TypeError, ValueError) as error:
        place = ""
        if isinstance(error, ValidationError):
            place = ".".join(str(part) for part in error.errors()[0]["loc"][1:])
        message = (
            f"model: {place or 'name'} does not fit: a model has the name transitions, query or "
            "hidden_markov, and the options that its command has"
        )
        raise UsageError(message) from None


def resolved_fit(terms: HiddenMarkov, method: str, draws: int | None) -> tuple[HiddenMarkov, int]:
    """Write the defaults of a hidden Markov fit out, its number of draws too.

    Raises
    ------
    UsageError
        Where a choice is impossible, or has no use.
    """
    settings = read_settings(
        states=terms.states[0],
        method=method,
        project=terms.project,
        sampler=terms.sampler,
        restarts=terms.restarts,
        sweeps=terms.sweeps,
        draws=draws,
        alpha=float(terms.alpha),
        beta=float(terms.beta),
        rate=float(terms.rate),
    )
    several = len(terms.states) > 1
    changes: dict[str, object] = {
        "project": settings.project,
        "sampler": settings.sampler,
        "holdout": (terms.holdout or repr(HOLDOUT)) if several else terms.holdout,
        "splits": (terms.splits or SPLITS) if several else terms.splits,
    }
    return terms.model_copy(update=changes), settings.n_draws


def shared_terms(request: Request, asked: StatisticRequest, statistic: NoisyStatistic) -> SharedTerms:
    """Return the terms that a computation of one statistic gets, beside its prior and its method."""
    text = asked.n_prior
    # N is public, or each release has a prior of N of its own, which is its default
    is_given = text is not None and statistic.public_n is None and ";" not in text
    return {
        "n_prior": text if is_given else None,
        "where": request.where,
        "clipping": request.clipping,
        "predictor_prior": asked.predictor_prior,
    }


def further_terms(request: Request, terms: SharedTerms) -> FurtherTerms:
    """Return the same with the method, and with the way of units."""
    return {**terms, "method": request.method, "within_unit": request.within_unit}


def intervals_of(
    release: Release,
    statistic: str,
    where: Mapping[str, object] | None,
    over: Sequence[str] = (),
    assume: str | None = None,
) -> int:
    """Return how many intervals a statistic's posterior has: cells, parameters, entries.

    Raises
    ------
    UsageError
        Where the release has no such statistic, cells or columns.
    """
    cells = cells_asked(release, statistic, where)
    if over:
        cells = HeldCells(roll_up(cells.slice(0, len(cells)), *over).parts[0])
        if assume is None:
            return len(cells) * quantities_of(cells.plan)
    first_cell = plug_in(cells.slice(0, 1), PosteriorTerms(method=PLUG_IN))
    entries = sum(max(1, len(first_cell.labels(parameter)[1])) for parameter in first_cell.parameters)
    return len(cells) * entries


def cells_asked(release: Release, statistic: str, where: Mapping[str, object] | None) -> Cells:
    """Return the cells that a posterior is of: those with some keys, or all together as one.

    Raises
    ------
    UsageError
        Where the release has no such statistic, cells or columns.
    """
    cells = release.cells(statistic)
    if FAMILIES[cells.plan.family].of_release:
        return HeldCells(cells_of(release.statistic(statistic), where))
    return release.cells(statistic, where)


def _checked_names(releases: Sequence[Release], statistics: Sequence[str]) -> tuple[str, ...]:
    names = (statistics,) if isinstance(statistics, str) else tuple(statistics)
    if not names or not releases:
        message = "name at least one release, and one of its statistics"
        raise UsageError(message)
    if len(set(names)) < len(names):
        message = f"a statistic is named twice: {', '.join(names)}"
        raise UsageError(message)
    for release in releases:
        for name in names:
            release.cells(name)
    return names


def _check_choices(kind: str, terms: PosteriorTerms) -> None:
    """Refuse a method or a way of units that answers of a kind do not have."""
    alone = kind in {"comparison", "pool", "roll_up"}
    if alone and (terms.method, terms.within_unit) != (NOISE_AWARE, MODELLED):
        message = f"a {kind.replace('_', ' ')} is {NOISE_AWARE}, and takes no other method or way of units"
        raise UsageError(message)
    if kind == "prior_sensitivity" and terms.method != NOISE_AWARE:
        message = f"priors are set side by side under {NOISE_AWARE} alone"
        raise UsageError(message)


def _check_likelihood(
    terms: PosteriorTerms, mass: float, interval: str | None, draws: int | None, seed: int | None
) -> None:
    """Refuse what a likelihood does not have."""
    stated = {
        "prior": terms.prior,
        "predictor_prior": terms.predictor_prior,
        "method": terms.method != NOISE_AWARE,
        "clipping": terms.clipping == MODELLED,
        "within_unit": terms.within_unit != MODELLED,
        "mass": mass != MASS,
        "interval": interval,
        "draws": draws,
        "seed": seed is not None,
    }
    given = [name for name, value in stated.items() if value]
    if given:
        message = f"{given[0]}: a likelihood has none: leave it out, or publish a posterior"
        raise UsageError(message)


def _check_columns(release: Release, names: Sequence[str], formats: Sequence[str]) -> None:
    """Refuse CSV of likelihoods that are more than one number a row."""
    several = [name for name in names if FAMILIES[release.cells(name).plan.family].latent is None]
    if several and "csv" in ((formats,) if isinstance(formats, str) else formats):
        message = (
            f"formats: csv holds the likelihood of one parameter, and {several[0]} has more: choose parquet"
        )
        raise UsageError(message)


def _check_pooled(prior: object, priors: object, draws: int, cells: int) -> None:
    """Refuse priors of pooled cells, and more draws than one file holds."""
    if prior is not None or priors is not None:
        message = "the prior of pooled cells is their population: leave prior and priors out"
        raise PriorError(message)
    if draws * cells > MOST_POOLED_DRAWS:
        message = (
            f"draws: pooled cells are published whole, and {draws} draws of {cells} cells are more than "
            f"{MOST_POOLED_DRAWS} rows: ask for {MOST_POOLED_DRAWS // cells} draws, or for none"
        )
        raise UsageError(message)


def _statistic_request(
    parts: Sequence[NoisyStatistic],
    priors: Mapping[str | None, chosen_priors.AnyPrior],
    terms: PosteriorTerms,
    interval: str | None,
    *,
    has_n_prior: bool,
) -> StatisticRequest:
    """Write out the priors of one statistic, of which every release has a part."""
    rows = [rows_alone(part) for part in parts]
    if FAMILIES[rows[0].plan.family].noise_aware is None and terms.method == NOISE_AWARE:
        message = f"{rows[0].plan.name} is {rows[0].plan.family}, which has no {NOISE_AWARE} posterior yet"
        raise UsageError(message)
    written = tuple(
        _read(NamedPrior, "priors", name=name, prior=prior_text(rows[0], prior))
        for name, prior in priors.items()
    )
    counts = predictors = None
    if has_n_prior and terms.method != PLUG_IN:
        predictors = chosen_priors.predictor_prior_for(rows[0], terms.predictor_prior)
        counts = "; ".join(
            dict.fromkeys(str(chosen_priors.n_prior_for(part, terms.n_prior)) for part in rows)
        )
    return _read(
        StatisticRequest,
        "statistics",
        statistic=rows[0].plan.name,
        priors=written,
        n_prior=counts,
        predictor_prior=None if predictors is None else str(predictors),
        interval=interval,
    )


def _interval_of(part: NoisyStatistic, kind: str, interval: str | None, *, is_pooled: bool) -> str | None:
    """Return the kind of a statistic's intervals: what is asked for, or the default; None of likelihoods."""
    if interval is not None:
        require_interval(interval)
    if kind == LIKELIHOOD:
        return None
    if is_pooled:
        return interval or CENTRAL
    if kind != "model":
        return interval or FAMILIES[part.plan.family].interval
    if interval == HIGHEST_DENSITY:
        message = f"the intervals of a model are {CENTRAL}: leave interval out"
        raise UsageError(message)
    return CENTRAL


def prior_text(statistic: NoisyStatistic, prior: chosen_priors.AnyPrior) -> str:
    """Return a prior's canonical text.

    Raises
    ------
    PriorError
        Where the family does not take it, or a text cannot hold it: a function.
    """
    read = chosen_priors.prior_for(statistic, prior)
    text = str(read)
    if isinstance(read, NonConjugate):
        try:
            is_text = str(chosen_priors.read_prior(text)) == text
        except PriorError:
            is_text = False
        if not is_text:
            message = (
                f"{statistic.plan.name}: a publication states its prior as text, and {text} cannot be read "
                "back from it: name a density, as 'HalfCauchy(2)'"
            )
            raise PriorError(message)
    return text


def _checked(name: str, value: object, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        message = f"{name} is an integer in {least}..{most}, not {value!r}"
        raise UsageError(message)
    return value


def _checked_formats(formats: Sequence[str], kind: str, terms: object, draws: int) -> tuple[Any, ...]:
    wanted_formats = tuple(sorted({formats} if isinstance(formats, str) else set(formats)))
    unknown = [name for name in wanted_formats if name not in FORMATS]
    if unknown or not wanted_formats:
        message = f"formats are {', '.join(FORMATS)}" + (f", not {unknown[0]!r}" if unknown else "")
        raise UsageError(message)
    if kind == LIKELIHOOD:
        others = [name for name in wanted_formats if name not in LIKELIHOOD_FORMATS]
        if others:
            message = f"formats of a likelihood are {', '.join(LIKELIHOOD_FORMATS)}, not {others[0]}"
            raise UsageError(message)
        return wanted_formats
    of_one = kind in NETCDF_KINDS
    if "netcdf" in wanted_formats and not (of_one or isinstance(terms, HiddenMarkov)):
        message = "netcdf holds draws of one posterior: choose parquet or csv for what compares several"
        raise UsageError(message)
    if "netcdf" in wanted_formats and draws == 0:
        message = "netcdf holds draws, and none are asked for: ask for draws, or leave netcdf out"
        raise UsageError(message)
    if "card" in wanted_formats and not of_one:
        message = "a card shows one posterior: choose parquet, csv or json for what compares several"
        raise UsageError(message)
    return wanted_formats


def _in_order(release: Release, statistic: str, over: Sequence[str]) -> tuple[str, ...]:
    """Return columns that are rolled up in the release's order, which changes nothing; others stay behind."""
    columns = list(release.plan_of(statistic).groups) if over else []
    return tuple(sorted(over, key=lambda name: columns.index(name) if name in columns else len(columns)))


def _read(part: type[_Part], place: str, /, **fields: Any) -> _Part:
    try:
        return part(**fields)
    except ValidationError as error:
        first = error.errors()[0]
        named = ".".join(str(step) for step in (place, *first["loc"]) if step != "")
        rule = str(first["msg"]).removeprefix("Value error, ")
        message = f"this cannot be published: {f'{named}: ' if named else ''}{rule}"
        raise UsageError(message) from None
