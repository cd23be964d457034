"""From what a caller of ``suffice.publish`` says to one question: of which kind, in what files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suffice.errors import UsageError, shortened
from suffice.pipeline.ask.pooling.series import Series
from suffice.pipeline.ask.publication.question import LIKELIHOOD, ask, intervals_of
from suffice.pipeline.ask.publication.request import model_text, pooled_text
from suffice.pipeline.math.parameters.parameter_posterior import DRAWS
from suffice.publishing.parts import FORMATS as PART_FORMATS
from suffice.publishing.parts import cells_of_parts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.ask.borrowing.pooling import Pooling
    from suffice.pipeline.ask.inference.chosen_priors import AnyPrior
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.publication.question import Question
    from suffice.pipeline.ask.publication.request import Kind, StatisticRequest


def question_of(
    release: Release | Series,
    statistics: str | Sequence[str],
    *,
    disjoint: Sequence[Release] = (),
    same_data: Sequence[Release] = (),
    compare: Release | None = None,
    series: Sequence[Release] = (),
    roll_up: str | Sequence[str] = (),
    assume: str | None = None,
    priors: Mapping[str, AnyPrior] | None = None,
    model: Mapping[str, Any] | None = None,
    formats: str | Sequence[str] | None = None,
    kind: str = "posterior",
    pooled: bool | str | Sequence[str] | Pooling = False,
    **terms: Any,
) -> Question:
    """Read and check what is asked, as :func:`publish` takes it, and write it out as a request.

    Raises
    ------
    UsageError, PriorError
        As there.
    """
    windows = release if isinstance(release, Series) else None
    if windows is not None and pooled is False:
        message = (
            f"the windows of {windows.name} are published as cells that are pooled: state pooled, or over"
        )
        raise UsageError(message)
    release = release.releases[-1] if isinstance(release, Series) else release
    over = (roll_up,) if isinstance(roll_up, str) else tuple(roll_up)
    kinds: dict[Kind, object] = {
        "pool": disjoint or same_data,
        "comparison": compare,
        "roll_up": over,
        "prior_sensitivity": priors,
        "model": model,
    }
    chosen = [each for each, asked in kinds.items() if asked]
    if kind not in {"posterior", LIKELIHOOD}:
        message = f"kind (--kind) is posterior or {LIKELIHOOD}, not {shortened(repr(kind))}"
        raise UsageError(message)
    if chosen and (kind == LIKELIHOOD or pooled is not False):
        what = "a likelihood" if kind == LIKELIHOOD else "pooled cells"
        message = (
            f"{what}: of one release or series, without {chosen[0].replace('_', ' ')}: leave one of them out"
        )
        raise UsageError(message)
    if kind == LIKELIHOOD and pooled is not False:
        message = "a likelihood is of each cell alone: leave pooled out"
        raise UsageError(message)
    if len(chosen) > 1 or (disjoint and same_data):
        message = (
            "a publication is one of these: releases pooled as disjoint or as same_data, a comparison, cells "
            "rolled up, several priors, a model: ask for one at a time"
        )
        raise UsageError(message)
    if priors is not None and terms.get("prior") is not None:
        message = "prior or priors: one posterior has one prior, a sensitivity table several; leave one out"
        raise UsageError(message)
    if series and model is None:
        message = (
            "series: further windows are time in a hidden Markov model alone; to pool them, use disjoint"
        )
        raise UsageError(message)
    further = (*disjoint, *same_data, *series, *(() if compare is None else (compare,)))
    names = (statistics,) if isinstance(statistics, str) else tuple(statistics)
    if not names:
        message = f"name one or more statistics to publish: {release.label} has {', '.join(release)}"
        raise UsageError(message)
    asked_kind: Kind = chosen[0] if chosen else ("likelihood" if kind == LIKELIHOOD else "posterior")
    releases = (release, *further)
    chosen_formats, cells_per_part = _formats(
        asked_kind,
        windows or release,
        names,
        {**terms, "assume": assume},
        over,
        formats,
        in_parts=pooled is False,
    )
    return ask(
        windows or releases,
        names,
        kind=asked_kind,
        priors=priors,
        relation=("disjoint" if disjoint else "same_data") if asked_kind == "pool" else None,
        over=over,
        assume=assume,
        model=model,
        formats=chosen_formats,
        cells_per_part=cells_per_part,
        pooled=pooled,
        **terms,
    )


def _formats(
    kind: Kind,
    release: Release | Series,
    names: Sequence[str],
    terms: Mapping[str, Any],
    over: Sequence[str],
    asked: str | Sequence[str] | None,
    *,
    in_parts: bool,
) -> tuple[Sequence[str], int | None]:
    """Return the formats, and how many cells a part has where very many cells are published in parts."""
    formats = (asked,) if isinstance(asked, str) else asked
    where, draws, assume = (terms.get(name) for name in ("where", "draws", "assume"))
    if kind == "posterior" and in_parts and not isinstance(release, Series):
        most = cells_of_parts(release, names, where, DRAWS if draws is None else draws)
        if most is not None:
            chosen = PART_FORMATS if formats is None else formats
            _check_formats_of_parts(chosen, most)
            return chosen, most
    shows_one = kind in {"posterior", "pool", "roll_up"}
    if formats is None:
        fits = shows_one and _fits_a_card(release, names, where, over, assume)
        return ("card", "parquet") if fits else ("parquet",), None
    if "card" in formats and shows_one and not _fits_a_card(release, names, where, over, assume):
        from suffice.pages.card import MOST_ROWS  # as below

        message = (
            f"formats: a card shows at most {MOST_ROWS} intervals, and there are more: keep some cells with "
            "where, or leave the card out"
        )
        raise UsageError(message)
    return formats, None


def _check_formats_of_parts(formats: Sequence[str], most: int) -> None:
    others = sorted({*formats} - {*PART_FORMATS})
    if others:
        message = (
            f"formats: so many cells are published in parts of at most {most} cells, as Parquet alone: leave "
            f"{others[0]} out, or keep fewer cells with where"
        )
        raise UsageError(message)


def _fits_a_card(
    release: Release | Series,
    names: Sequence[str],
    where: Mapping[str, object] | None,
    over: Sequence[str],
    assume: str | None,
) -> bool:
    from suffice.pages.card import MOST_ROWS  # only where a card may be made

    def intervals(name: str) -> int:
        if isinstance(release, Series):
            return sum(intervals_of(each, name, where) for each in release.windows_of(name, where).releases)
        return intervals_of(release, name, where, over, assume)

    return all(intervals(name) <= MOST_ROWS for name in names)


def title_of(question: Question) -> str:
    """Return one line that says what a publication is of, and tells it from another of the same release."""
    request = question.request
    names = ", ".join(_under_its_prior(asked) for asked in request.statistics)
    if request.kind == LIKELIHOOD:
        names = f"likelihood of {names}"
    if request.pooled is not None:
        names = f"{names}, {pooled_text(request.pooled)}"
    labels = [release.label for release in question.releases]
    several = f"{labels[0]} to {labels[-1]}, {len(labels)} windows"
    of = {
        "posterior": labels[0] if question.series is None else several,
        "comparison": f"from {labels[0]} to {labels[-1]}",
        "pool": f"{len(labels)} releases pooled, {labels[0]} to {labels[-1]}",
        "roll_up": f"{labels[0]}, rolled up over {', '.join(request.over)}",
        "prior_sensitivity": labels[0],
        "model": f"{labels[0]}, {'' if request.model is None else model_text(request.model)}",
        "likelihood": labels[0],
    }[request.kind]
    keys = [f"{column}={key}" for column, key in request.where.items()]
    if request.method == "plug-in":
        keys.append("plug-in")
    return shortened(", ".join([f"{names}: {of}", *keys]), 300)


def _under_its_prior(asked: StatisticRequest) -> str:
    """Return a statistic with its prior, or with their number; alone where a model has priors of its own."""
    if len(asked.priors) == 1:
        return f"{asked.statistic} under {shortened(asked.priors[0].prior, 60)}"
    return f"{asked.statistic} under {len(asked.priors)} priors" if asked.priors else asked.statistic
