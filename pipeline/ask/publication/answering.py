"""What answers a request: rows of summaries, draws and diagnostics, one answer a statistic.

Every number is a function of the request and of the releases that it names: each statistic draws from a
generator of its own, one for summaries and one for draws, whose seeds follow from the request's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suffice.pipeline.ask.pooling.comparison import compare
from suffice.pipeline.ask.pooling.pool import pool
from suffice.pipeline.ask.pooling.roll_up import ONE_PARAMETER, roll_up
from suffice.pipeline.ask.posterior.cells import cells_of
from suffice.pipeline.ask.posterior.notes import diagnostics_text
from suffice.pipeline.ask.posterior.posterior import summarise
from suffice.pipeline.ask.publication.answer import Answer, notes_of
from suffice.pipeline.ask.publication.draw_columns import comparison_columns, draw_columns
from suffice.pipeline.ask.publication.question import given_n_prior
from suffice.pipeline.ask.publication.sensitivity import sensitivity
from suffice.pipeline.ask.publication.streams import Streams, quantile_draws

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.ask.publication.question import Question
    from suffice.pipeline.ask.publication.request import StatisticRequest
    from suffice.pipeline.math.distributions.cell_blocks import CellProgress


def answers(question: Question, progress: CellProgress | None = None) -> Iterator[Answer]:
    """Compute what is asked, a statistic at a time. Costs no privacy.

    Raises
    ------
    UsageError, PriorError
        Where releases are not related as the request says, or a family cannot do what is asked.
    """
    from suffice.pipeline.ask.publication.model_answer import model_answer  # few ask a model

    request = question.request
    for position, asked in enumerate(request.statistics):
        streams = Streams(seed=request.seed, place=(position,))
        if request.kind == "model":
            yield model_answer(question, streams)
            return
        if request.kind == "comparison":
            yield _comparison(question, asked, streams)
        elif request.kind == "prior_sensitivity":
            yield _sensitivity(question, asked, streams)
        else:
            yield _of_posterior(question, asked, streams, progress)


def _of_posterior(
    question: Question, asked: StatisticRequest, streams: Streams, progress: CellProgress | None
) -> Answer:
    request = question.request
    posterior = posterior_of_request(question, asked, streams.computation(), progress)
    draws = request.draws
    return Answer(
        name=asked.statistic,
        statistics=(asked.statistic,),
        rows=summarise(
            posterior,
            float(request.mass),
            quantile_draws(draws),
            streams.summaries(),
            progress,
            interval=asked.interval,
        ),
        draws=lambda: draw_columns(posterior, draws, streams.draws()),
        to_arviz=lambda: posterior.to_arviz(draws, streams.draws()),
        posterior=posterior,
        rng=streams.summaries,
        diagnostics=diagnostics_text(posterior),
        notes=notes_of(posterior),
    )


def posterior_of_request(
    question: Question,
    asked: StatisticRequest,
    rng: np.random.Generator | None = None,
    progress: CellProgress | None = None,
) -> Posterior:
    """Return the posterior of one statistic that a request of kind posterior, pool or roll_up asks for."""
    request, first = question.request, question.releases[0]
    statistic = first.statistic(asked.statistic)
    if request.kind == "roll_up" and not asked.priors:
        return roll_up(cells_of(statistic, request.where), *request.over).posterior()
    terms: dict[str, Any] = {
        "prior": asked.priors[0].prior,
        "n_prior": given_n_prior(statistic, asked),
        "clipping": request.clipping,
        "predictor_prior": asked.predictor_prior,
    }
    if request.kind == "pool":
        related: dict[str, Any] = {str(request.relation): list(question.releases)}
        return pool(
            asked.statistic, **related, **terms, where=request.where, vouched=request.vouched, rng=rng
        )
    if request.kind == "roll_up":
        merged = roll_up(cells_of(statistic, request.where), *request.over)
        return merged.posterior(**terms, rng=rng, assume=ONE_PARAMETER)
    return first.posterior(
        asked.statistic,
        where=request.where,
        method=request.method,
        within_unit=request.within_unit,
        progress=progress,
        **terms,
    )


def _comparison(question: Question, asked: StatisticRequest, streams: Streams) -> Answer:
    request = question.request
    first, second = question.releases
    found = compare(
        first,
        second,
        asked.statistic,
        prior=asked.priors[0].prior,
        n_prior=given_n_prior(first.statistic(asked.statistic), asked),
        clipping=request.clipping,
        predictor_prior=asked.predictor_prior,
        where=request.where,
        vouched=request.vouched,
        draws=quantile_draws(request.draws),
        rng=streams.draws(),
    )
    sides = ((found.first, found.before), (found.second, found.after))
    return Answer(
        name=asked.statistic,
        statistics=(asked.statistic,),
        rows=found.rows(float(request.mass), interval=asked.interval),
        draws=lambda: comparison_columns(found),
        rng=streams.summaries,
        diagnostics={
            f"{label}: {name}": text for label, side in sides for name, text in diagnostics_text(side).items()
        },
        notes=tuple(f"{label}: {line}" for label, side in sides for line in notes_of(side)),
    )


def _sensitivity(question: Question, asked: StatisticRequest, streams: Streams) -> Answer:
    request = question.request
    (release,) = question.releases
    statistic = release.statistic(asked.statistic)
    found = sensitivity(
        release,
        asked.statistic,
        {str(named.name): named.prior for named in asked.priors},
        n_prior=given_n_prior(statistic, asked),
        clipping=request.clipping,
        within_unit=request.within_unit,
        predictor_prior=asked.predictor_prior,
        where=request.where,
    )
    sides = found.posteriors.items()
    return Answer(
        name=asked.statistic,
        statistics=(asked.statistic,),
        rows=found.rows(
            float(request.mass),
            quantile_draws(request.draws),
            streams.summaries(),
            interval=asked.interval,
        ),
        draws=lambda: found.draw_columns(request.draws, streams.draws()),
        rng=streams.summaries,
        diagnostics={
            f"{name}: {what}": text for name, side in sides for what, text in diagnostics_text(side).items()
        },
        notes=(
            *found.notes,
            *(f"prior {name}: {line}" for name, side in sides for line in notes_of(side)),
        ),
    )
