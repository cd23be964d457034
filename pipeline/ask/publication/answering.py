"""What answers a request: rows of summaries, draws and diagnostics, one answer a statistic or a model.

Every number is a function of the request and of the releases that it names: each statistic draws from a
generator of its own, one for summaries and one for draws, whose seeds follow from the request's. A model is
answered by the same rows and draws as its command prints and writes; a sensitivity table has one statistic's
posterior under several named priors, side by side.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.borrowing.side_by_side import beside_alone, pool_tables
from suffice.pipeline.ask.models.chain import chain
from suffice.pipeline.ask.models.hidden_markov import hidden_markov
from suffice.pipeline.ask.models.hidden_markov_fit import HiddenMarkovFit
from suffice.pipeline.ask.models.network import network
from suffice.pipeline.ask.pooling.comparison import compare
from suffice.pipeline.ask.pooling.pool import pool
from suffice.pipeline.ask.pooling.roll_up import ONE_PARAMETER, roll_up
from suffice.pipeline.ask.posterior.cells import cells_of
from suffice.pipeline.ask.posterior.notes import diagnostics_text
from suffice.pipeline.ask.posterior.summaries import summarise
from suffice.pipeline.ask.publication.answer import (
    Answer,
    Streams,
    comparison_columns,
    draw_columns,
    joined,
    notes_of,
    quantile_draws,
)
from suffice.pipeline.ask.publication.pooled_terms import require_unchanged
from suffice.pipeline.ask.publication.question import further_terms, shared_terms
from suffice.pipeline.ask.publication.request import (
    HiddenMarkov,
    Query,
    Transitions,
    kind_of_intervals,
    mass_of,
)
from suffice.pipeline.math.parameters.contrasts import finite

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Unpack

    from suffice.pipeline.ask.borrowing.pooled_posterior import PooledPosterior
    from suffice.pipeline.ask.inference.posterior_terms import FurtherTerms
    from suffice.pipeline.ask.models.hidden_markov import StateComparison
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.pipeline.ask.publication.question import Question
    from suffice.pipeline.ask.publication.request import StatisticRequest
    from suffice.pipeline.math.distributions.composite import CellProgress
    from suffice.typing import Floats


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


def _modelled(question: Question, streams: Streams) -> tuple[Release, str, dict[str, Any]]:
    """Return the release and the statistic that a model is made of, and how its posterior is drawn from."""
    request, asked = question.request, question.request.statistics[0]
    (release,) = question.releases
    stated = shared_terms(request, asked, release.statistic(asked.statistic))
    terms = {
        "prior": asked.priors[0].prior,
        **further_terms(request, stated),
        "draws": quantile_draws(request.draws),
        "rng": streams.draws(),
    }
    return release, asked.statistic, terms


def _transitions(question: Question, terms: Transitions, streams: Streams) -> Answer:
    release, statistic, drawn_as = _modelled(question, streams)
    chain_answer = chain(release, statistic, **drawn_as)
    wanted = {"steps": terms.steps, "to": terms.to, "start": terms.start}
    undefined = float(chain_answer.undefined_share.max())
    notes = ["expected_steps have medians and intervals: their means need not exist"]
    if undefined > 0.0:
        notes.append(f"the stationary distribution is not defined in up to {100 * undefined:.3g} % of draws")
    return Answer(
        name=f"{statistic}-transitions",
        statistics=(statistic,),
        rows=chain_answer.rows(mass_of(question.request), **wanted),  # type: ignore[arg-type]
        draws=lambda: chain_answer.draw_columns(**wanted),  # type: ignore[arg-type]
        rng=streams.summaries,
        diagnostics=diagnostics_text(chain_answer.posterior),
        notes=(*notes, *notes_of(chain_answer.posterior)),
    )


def _query(question: Question, terms: Query, streams: Streams) -> Answer:
    release, statistic, drawn_as = _modelled(question, streams)
    network_answer = network(release, statistic, **drawn_as)
    answer = network_answer.query(terms.target, terms.given, terms.do, mass_of(question.request))
    undefined = float(answer.probability.undefined_share.max())
    notes = ["do: holds in the world only where the declared graph does"] if terms.do else []
    if undefined > 0.0:
        notes.append(f"what is given has no chance in up to {100 * undefined:.3g} % of draws")
    return Answer(
        name=f"{statistic}-query",
        statistics=(statistic,),
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
            rows=[dict(row) for row in fit.rows()],
            rng=streams.summaries,
            diagnostics={f"R-hat, {row['states']} states": f"{row['r_hat']:.4g}" for row in fit.rows()},
            notes=(f"highest score: {fit.best} states", *fit.settings[0].lines),
        )
    judged = fit.diagnostics
    return Answer(
        name="hidden_markov",
        statistics=names,
        rows=fit.rows(mass_of(request)),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """The posteriors of one statistic under several priors.

    Attributes
    ----------
    posteriors : dict of str to Posterior
        By the prior's name, in the order given.
    log_bayes_factors : ndarray of shape (n_cells, n_priors), float64, or None
        Log of each prior's evidence over the first's; None where posteriors have no evidence.
    notes : tuple of str
        Why there are none.
    """

    posteriors: Mapping[str, Posterior] = field(repr=False)
    log_bayes_factors: Floats | None = field(repr=False)
    notes: tuple[str, ...] = ()

    def rows(
        self, mass: float, draws: int, rng: np.random.Generator, *, interval: str | None = None
    ) -> list[dict[str, Any]]:
        """One row a cell, parameter, entry and prior.

        Keys, parameter, labels; ``prior_name``, ``prior``; ``mean``, ``sd``, ``lower``, ``upper``; and
        ``log_bayes_factor`` of the cell, against the first prior.
        """
        by_prior = [
            summarise(posterior, mass, draws, rng, interval=interval)
            for posterior in self.posteriors.values()
        ]
        entries = len(by_prior[0]) // next(iter(self.posteriors.values())).n_groups
        numbers = ("mean", "sd", "lower", "upper")
        rows = []
        for place, same in enumerate(zip(*by_prior, strict=True)):
            for position, (name, row) in enumerate(zip(self.posteriors, same, strict=True)):
                factors = self.log_bayes_factors
                rows.append(
                    {
                        **{key: value for key, value in row.items() if key not in numbers},
                        "prior_name": name,
                        "prior": str(self.posteriors[name].prior),
                        **{key: row[key] for key in numbers},
                        "log_bayes_factor": (
                            None if factors is None else finite(factors[place // entries, position])
                        ),
                    }
                )
        return rows

    def draw_columns(self, draws: int, rng: np.random.Generator) -> dict[str, Any]:
        """Return draws under every prior as tidy columns; ``prior_name`` says which."""
        parts = []
        for name, posterior in self.posteriors.items():
            part = draw_columns(posterior, draws, rng)
            parts.append({**part, "prior_name": np.full(len(part["draw"]), name)})
        return joined(parts)


def sensitivity(
    release: Release, statistic: str, priors: Mapping[str, str], **terms: Unpack[FurtherTerms]
) -> Sensitivity:
    """Compute the posterior under each of several named priors. Costs no privacy.

    Raises
    ------
    UsageError, PriorError
        As ``Release.posterior``.
    """
    posteriors = {name: release.posterior(statistic, prior, **terms) for name, prior in priors.items()}
    try:
        evidence = np.stack([posterior.log_evidence for posterior in posteriors.values()], axis=1)
    except UsageError as error:
        return Sensitivity(
            posteriors=posteriors, log_bayes_factors=None, notes=(f"no Bayes factors: {error}",)
        )
    return Sensitivity(posteriors=posteriors, log_bayes_factors=evidence - evidence[:, :1])


def answers(question: Question, progress: CellProgress | None = None) -> Iterator[Answer]:
    """Compute what is asked, a statistic at a time. Costs no privacy.

    Raises
    ------
    UsageError, PriorError
        Where releases are not related as the request says, or a family cannot do what is asked.
    """
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
        elif request.kind == "likelihood":
            yield _likelihood(question, asked, streams)
        elif request.pooled is not None:
            yield _pooled(question, asked, streams)
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
            mass_of(request),
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


def _pooled(question: Question, asked: StatisticRequest, streams: Streams) -> Answer:
    """Answer cells that borrow strength, each beside itself alone."""
    request, newest = question.request, question.releases[-1]
    pooling, terms = question.pooling, request.pooled
    if pooling is None or terms is None:
        message = "cells that are pooled are asked for with what they have in common"
        raise TypeError(message)
    stated = further_terms(request, shared_terms(request, asked, newest.statistic(asked.statistic)))
    asked_of = question.series or newest
    together = cast("PooledPosterior", asked_of.posterior(asked.statistic, pooled=pooling, **stated))
    require_unchanged(pooling, terms)
    mass, draws = mass_of(request), quantile_draws(request.draws)
    rows = summarise(together, mass, draws, streams.summaries(), interval=asked.interval)
    return Answer(
        name=asked.statistic,
        statistics=(asked.statistic,),
        rows=beside_alone(
            together, rows, mass, draws, streams.computation(), interval=kind_of_intervals(asked)
        ),
        draws=lambda: draw_columns(together, request.draws, streams.draws()),
        further=pool_tables(together),
        to_arviz=lambda: together.to_arviz(request.draws, streams.draws()),
        posterior=together,
        rng=streams.summaries,
        diagnostics=diagnostics_text(together),
        notes=notes_of(together),
    )


def _likelihood(question: Question, asked: StatisticRequest, streams: Streams) -> Answer:
    request, (release,) = question.request, question.releases
    stated = shared_terms(request, asked, release.statistic(asked.statistic))
    likelihood = release.likelihood(asked.statistic, n_prior=stated["n_prior"], where=stated["where"])
    return Answer(
        name=asked.statistic,
        statistics=(asked.statistic,),
        rows=[],
        likelihood=likelihood,
        rng=streams.summaries,
        notes=("parameters: of records as the bounds leave them", likelihood.error_text),
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
    prior, terms = asked.priors[0].prior, shared_terms(request, asked, statistic)
    if request.kind == "pool":
        related: dict[str, Any] = {str(request.relation): list(question.releases)}
        return pool(asked.statistic, **related, prior=prior, **terms, vouched=request.vouched, rng=rng)
    if request.kind == "roll_up":
        merged = roll_up(cells_of(statistic, terms.pop("where")), *request.over)
        return merged.posterior(prior, **terms, rng=rng, assume=ONE_PARAMETER)
    return first.posterior(asked.statistic, prior, progress=progress, **further_terms(request, terms))


def _comparison(question: Question, asked: StatisticRequest, streams: Streams) -> Answer:
    request = question.request
    first, second = question.releases
    comparison = compare(
        first,
        second,
        asked.statistic,
        prior=asked.priors[0].prior,
        **shared_terms(request, asked, first.statistic(asked.statistic)),
        vouched=request.vouched,
        draws=quantile_draws(request.draws),
        rng=streams.draws(),
    )
    sides = ((comparison.first, comparison.before), (comparison.second, comparison.after))
    return Answer(
        name=asked.statistic,
        statistics=(asked.statistic,),
        rows=comparison.rows(mass_of(request), interval=asked.interval),
        draws=lambda: comparison_columns(comparison),
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
    table = sensitivity(
        release,
        asked.statistic,
        {str(named.name): named.prior for named in asked.priors},
        **further_terms(request, shared_terms(request, asked, statistic)),
    )
    sides = table.posteriors.items()
    return Answer(
        name=asked.statistic,
        statistics=(asked.statistic,),
        rows=table.rows(
            mass_of(request), quantile_draws(request.draws), streams.summaries(), interval=asked.interval
        ),
        draws=lambda: table.draw_columns(request.draws, streams.draws()),
        rng=streams.summaries,
        diagnostics={
            f"{name}: {what}": text for name, side in sides for what, text in diagnostics_text(side).items()
        },
        notes=(*table.notes, *(f"prior {name}: {line}" for name, side in sides for line in notes_of(side))),
    )
