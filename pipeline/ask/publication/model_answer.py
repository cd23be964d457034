"""What answers a request of a model: the same rows and draws as its command prints and writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.pipeline.ask.models.chain import chain
from suffice.pipeline.ask.models.hidden_markov import hidden_markov
from suffice.pipeline.ask.models.hidden_markov_fit import HiddenMarkovFit
from suffice.pipeline.ask.models.network import network
from suffice.pipeline.ask.posterior.notes import diagnostics_text
from suffice.pipeline.ask.publication.answer import Answer, notes_of, quantile_draws
from suffice.pipeline.ask.publication.model_terms import HiddenMarkov, Query, Transitions
from suffice.pipeline.ask.publication.question import further_terms, shared_terms

if TYPE_CHECKING:
    from suffice.pipeline.ask.models.state_comparison import StateComparison
    from suffice.pipeline.ask.publication.answer import Streams
    from suffice.pipeline.ask.publication.question import Question


def model_answer(question: Question, streams: Streams) -> Answer:
    """Compute what is asked of a model. Costs no privacy.

    Raises
    ------
    UsageError, PriorError
        Where the statistic is of another family, or a choice does not fit.
    """
    terms = question.request.model
    if isinstance(terms, Transitions):
        return _transitions(question, terms, streams)
    if isinstance(terms, Query):
        return _query(question, terms, streams)
    if isinstance(terms, HiddenMarkov):
        return _hidden_markov(question, terms, streams)
    message = "a request of kind model names one"
    raise TypeError(message)


def _transitions(question: Question, terms: Transitions, streams: Streams) -> Answer:
    request, asked = question.request, question.request.statistics[0]
    (release,) = question.releases
    chain_answer = chain(
        release,
        asked.statistic,
        prior=asked.priors[0].prior,
        **further_terms(request, shared_terms(request, asked, release.statistic(asked.statistic))),
        draws=quantile_draws(request.draws),
        rng=streams.draws(),
    )
    wanted = {"steps": terms.steps, "to": terms.to, "start": terms.start}
    undefined = float(chain_answer.undefined_share.max())
    notes = ["expected_steps have medians and intervals: their means need not exist"]
    if undefined > 0.0:
        notes.append(f"the stationary distribution is not defined in up to {100 * undefined:.3g} % of draws")
    return Answer(
        name=f"{asked.statistic}-transitions",
        statistics=(asked.statistic,),
        rows=chain_answer.rows(float(request.mass), **wanted),  # type: ignore[arg-type]
        draws=lambda: chain_answer.draw_columns(**wanted),  # type: ignore[arg-type]
        rng=streams.summaries,
        diagnostics=diagnostics_text(chain_answer.posterior),
        notes=(*notes, *notes_of(chain_answer.posterior)),
    )


def _query(question: Question, terms: Query, streams: Streams) -> Answer:
    request, asked = question.request, question.request.statistics[0]
    (release,) = question.releases
    network_answer = network(
        release,
        asked.statistic,
        prior=asked.priors[0].prior,
        **further_terms(request, shared_terms(request, asked, release.statistic(asked.statistic))),
        draws=quantile_draws(request.draws),
        rng=streams.draws(),
    )
    answer = network_answer.query(terms.target, terms.given, terms.do, float(request.mass))
    undefined = float(answer.probability.undefined_share.max())
    notes = ["do: holds in the world only where the declared graph does"] if terms.do else []
    if undefined > 0.0:
        notes.append(f"what is given has no chance in up to {100 * undefined:.3g} % of draws")
    return Answer(
        name=f"{asked.statistic}-query",
        statistics=(asked.statistic,),
        rows=answer.rows(),
        draws=answer.draw_columns,
        rng=streams.summaries,
        diagnostics=diagnostics_text(network_answer.posterior),
        notes=(*notes, *notes_of(network_answer.posterior)),
    )


def _hidden_markov(question: Question, terms: HiddenMarkov, streams: Streams) -> Answer:
    request = question.request
    names = tuple(asked.statistic for asked in request.statistics)
    fit: HiddenMarkovFit | StateComparison = hidden_markov(
        question.releases if len(question.releases) > 1 else question.releases[0],
        names,
        chain=terms.chain,
        time=terms.time,
        states=terms.states if len(terms.states) > 1 else terms.states[0],
        method=request.method,
        project=terms.project,
        sampler=terms.sampler,
        restarts=terms.restarts,
        sweeps=terms.sweeps,
        draws=request.draws,
        holdout=None if terms.holdout is None else float(terms.holdout),
        splits=terms.splits,
        alpha=float(terms.alpha),
        beta=float(terms.beta),
        rate=float(terms.rate),
        where=request.where,
        rng=streams.computation(),
    )
    if not isinstance(fit, HiddenMarkovFit):
        return Answer(
            name="hidden_markov",
            statistics=names,
            rows=fit.rows(),
            rng=streams.summaries,
            diagnostics={f"R-hat, {row['states']} states": f"{row['r_hat']:.4g}" for row in fit.rows()},
            notes=(f"highest score: {fit.best} states", *fit.settings[0].lines),
        )
    judged = fit.diagnostics
    return Answer(
        name="hidden_markov",
        statistics=names,
        rows=fit.rows(float(request.mass)),
        draws=fit.draw_columns,
        further={"cells": fit.cells()},
        to_arviz=fit.to_arviz,
        rng=streams.summaries,
        diagnostics={
            **{f"R-hat of {name}": f"{value:.4g}" for name, value in judged.r_hat.items()},
            **{
                f"effective draws of {name}": f"{value:.0f}" for name, value in judged.effective_draws.items()
            },
        },
        notes=(*judged.lines, *fit.settings.lines),
    )
