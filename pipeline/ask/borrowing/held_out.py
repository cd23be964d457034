r"""Cells alone and together, compared by how well each predicts a cell that is held out.

The score of a cell is the log probability of what it released, before that was known:

.. math:: \log p(y_c \mid y_{-c}) \quad \text{pooled}, \qquad
    \log \int L_c(\theta, N) \, \pi(\theta) \, g(N) \, d\theta \, dN \quad \text{alone}, \qquad (1)

under the family's default prior. Likelihood, prior of N and noise are the same, and so are constants.
Two ways differ by the sum of the cells' differences :math:`d_c`, with the standard error

.. math:: \sqrt n \, \mathrm{sd}(d_c), \qquad (2)

which takes cells for independent: those of a release borrow from the same others, so that it is approximate.
A score is of predictions, and says nothing of whether either way is right (``PopulationCheck`` does).

References
----------
Vehtari, Gelman, Gabry. Practical Bayesian model evaluation using leave-one-out cross-validation and WAIC.
Stat. Comput. 27, 2017.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.borrowing.walk import WINDOW, Walk
from suffice.pipeline.ask.inference.pooled_sources import cells_source
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.distribution import coordinate_of
from suffice.pipeline.math.engines.pooled.cells import Focus
from suffice.pipeline.math.engines.pooled.distribution import PooledDistribution
from suffice.pipeline.math.engines.pooled.held_out_scores import HoldsOut
from suffice.pipeline.math.engines.pooled.kept_nodes import BLOCK
from suffice.pipeline.math.engines.pooled.left_out import left_out
from suffice.pipeline.math.engines.pooled.populations import DEFAULT
from suffice.pipeline.math.priors.mixtures import Mixture
from suffice.pipeline.terms.declaration.documents import Rows, printed
from suffice.pipeline.terms.declaration.wording import counted, text_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.ask.borrowing.pooled_posterior import PooledPosterior
    from suffice.pipeline.ask.borrowing.pooling import Pooling
    from suffice.pipeline.math.engines.pooled.held_out_scores import HeldOutScores
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Cells, Floats

ALONE = "alone"
TOLD = 2.0
"""Standard errors from which on one way is called better than another."""
_WIDTH = 0.5


class Score(TypedDict):
    """Of a way to answer: the log score of all cells, and its difference from the best, with its error."""

    answer: str
    log_score: float
    behind: float
    standard_error: float


@printed("statistic answers n_prior best said totals rows")
@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutComparison:
    """Log scores of cells that are held out, alone and pooled; made by ``compare_pooled``.

    Attributes
    ----------
    statistic : str
    answers : tuple of str
        Ways to answer: ``alone``, and what cells were pooled by, in the order given.
    n_prior : str
        The prior of N, the same with all of them.
    groups : dict of str to list
        The key of every cell, by group column.
    log_score : ndarray of shape (n_cells, n_answers), float64
        (1), in nats.
    notes : tuple of str
        What scores rest on, where that is an approximation.
    """

    statistic: str
    answers: tuple[str, ...]
    n_prior: str
    groups: Mapping[str, list[str | int]] = field(repr=False)
    log_score: Floats = field(repr=False)
    notes: tuple[str, ...] = ()

    @property
    def best(self) -> str:
        """The way with the highest score; how sure that is, ``said`` says."""
        return self.answers[self._best]

    @property
    def _best(self) -> int:
        return int(np.argmax(np.sum(self.log_score, axis=0)))

    def difference(self, first: int, second: int) -> tuple[float, float]:
        """Return the first's score less the second's, of all cells, and its standard error (2)."""
        each = self.log_score[:, first] - self.log_score[:, second]
        return float(np.sum(each)), float(np.std(each, ddof=1) * len(each) ** 0.5)

    def totals(self) -> list[Score]:
        """One row an answer: log_score, how far behind the best, and the standard error of that."""
        total = np.sum(self.log_score, axis=0)
        rows = []
        for place, answer in enumerate(self.answers):
            behind, error = self.difference(self._best, place)
            rows.append(
                Score(answer=answer, log_score=float(total[place]), behind=behind, standard_error=error)
            )
        return rows

    def rows(self) -> Annotated[list[dict[str, Any]], Rows(answer=str, log_score=float)]:
        """One row a cell and answer: keys, answer, log_score."""
        return [
            {
                **{column: keys[cell] for column, keys in self.groups.items()},
                "answer": answer,
                "log_score": float(self.log_score[cell, place]),
            }
            for cell in range(len(self.log_score))
            for place, answer in enumerate(self.answers)
        ]

    @property
    def said(self) -> str:
        """Say which way predicts held-out cells best, and of which others it is not told apart."""
        others = [row for row in self.totals() if row["answer"] != self.best]
        told, alike = (
            [row["answer"] for row in others if (row["behind"] > TOLD * row["standard_error"]) == is_told]
            for is_told in (True, False)
        )
        parts = [f"better than {', '.join(told)} by more than {TOLD:g} standard errors"] if told else []
        parts += [f"not told apart from {', '.join(alike)}"] if alike else []
        return f"{self.best} predicts held-out cells best: {'; '.join([*parts, *self.notes])}"

    def __str__(self) -> str:
        """Return the totals as a text table, and a sentence."""
        cells = [
            [
                row["answer"],
                *(f"{value:.4g}" for value in (row["log_score"], row["behind"], row["standard_error"])),
            ]
            for row in self.totals()
        ]
        return f"{text_table(['answer', 'log_score', 'behind', 'standard_error'], cells)}\n{self.said}"


def held_out(posteriors: Mapping[str, PooledPosterior]) -> HeldOutComparison:
    """Compare pooled posteriors of the same cells with each other and with cells alone.

    Raises
    ------
    UsageError
        Where cells are pooled by a way that has no score.
    """
    first = next(iter(posteriors.values()))
    (statistic,) = first.observed
    n_prior: Any = first.n_prior
    notes, of_ways = [], {}
    for name, posterior in posteriors.items():
        pools = pooled_scores(name, posterior)
        of_ways[name] = np.empty(posterior.n_groups)
        for cells, score in pools:
            of_ways[name][cells] = score.log_predictive
        notes += _notes(name, [score for _, score in pools])
    scores = {ALONE: alone_log_score(statistic, n_prior), **of_ways}
    return HeldOutComparison(
        statistic=first.statistic,
        answers=tuple(scores),
        n_prior=str(n_prior),
        groups=first.groups,
        log_score=np.stack(list(scores.values()), axis=1),
        notes=tuple(notes),
    )


def pooled_scores(name: str, posterior: PooledPosterior) -> list[tuple[Cells, HeldOutScores]]:
    """Return log p(y_c | y_-c) of pooled cells: of each pool, with the numbers of its cells.

    Raises
    ------
    UsageError
        Where cells are pooled by a way that has no score.
    """
    distribution: Any = posterior.distribution
    scores: list[tuple[Cells, HeldOutScores]] = []
    for pool, cells in zip(
        getattr(distribution, "pools", ()), getattr(distribution, "cells", ()), strict=True
    ):
        if type(pool) is PooledDistribution:
            scores.append((cells, left_out(pool)))
        elif isinstance(pool, HoldsOut):
            scores.append((cells, pool.left_out()))
    if scores:
        return scores
    message = (
        f"{name}: cells that are pooled in this way have no score of held-out cells, which are of cells with "
        "one parameter: leave it out"
    )
    raise UsageError(message)


def _notes(name: str, scores: Sequence[HeldOutScores]) -> list[str]:
    """Say what scores rest on, where they are not exact."""
    notes = [f"scores of {name} are by {each}" for each in {score.approximation for score in scores} if each]
    n_rough = sum(int(np.sum(score.is_rough)) for score in scores)
    if n_rough:
        notes.append(
            f"scores of {name} are rough in {counted(n_rough, 'cell')}: without one of these, few of the "
            "hyperparameters that were tried count"
        )
    return notes


def alone_log_score(statistic: NoisyStatistic, n_prior: NPrior) -> Floats:
    """Return (1) of cells alone, (n_cells,)."""
    source = cells_source(statistic, n_prior)
    prior: Any = FAMILIES[statistic.plan.family].default_prior(statistic.plan.parameters)
    parts: list[tuple[float, Any]] = [(1.0, prior)]
    if isinstance(prior, Mixture):
        parts = list(zip(prior.weights, prior.components, strict=True))
    total_share = sum(share for share, _ in parts)
    coordinates = [(np.log(share / total_share), coordinate_of(each.distribution())) for share, each in parts]
    score = np.zeros(source.n_cells)
    for start in range(0, source.n_cells, BLOCK):
        cells = np.arange(start, min(start + BLOCK, source.n_cells))
        nodes = source.nodes(cells, Focus(centre=source.middle, width=_WIDTH))
        flat = nodes.position.reshape(-1, 1)
        log_prior = np.logaddexp.reduce(
            [log_share + coordinate.log_density(flat)[:, 0] for log_share, coordinate in coordinates], axis=0
        ).reshape(nodes.position.shape)
        total = np.sum(np.sum(nodes.weight, axis=2) * np.exp(log_prior), axis=1)
        score[cells] = nodes.log_scale + np.log(np.maximum(total, 1e-300))
    return score


def check_of_one_release(asked: object) -> None:
    """Refuse a walk over the windows of a series.

    Raises
    ------
    UsageError
    """
    from suffice.pipeline.ask.borrowing.pooling import Pooling

    if isinstance(asked, Pooling) and asked.over is not None and Walk.of(asked.over).over == WINDOW:
        message = (
            f"over={asked.over} is of a series, and held-out cells are compared within a statistic, "
            "which is of one release: walk over a group column of it"
        )
        raise UsageError(message)


def names_of(asked: Sequence[Any]) -> list[str]:
    """Return what ways to pool are called, each by another name."""
    from suffice.pipeline.ask.borrowing.pooling import Pooling

    names: list[str] = []
    for each in asked:
        if isinstance(each, Pooling):
            further = _further(each)
            population = [] if further and each.population == DEFAULT else [each.population]
            name = ", ".join([*population, *each.within, *further])
        else:
            name = "all" if each is True else each if isinstance(each, str) else ", ".join(map(str, each))
        name = f"pooled: {name}"
        n_alike = sum(known == name or known.startswith(f"{name} (") for known in names)
        names.append(f"{name} ({n_alike + 1})" if n_alike else name)
    return names


def _further(pooling: Pooling) -> list[str]:
    """Return in words what is asked for beside a population; a table by its place, if it has one."""
    said = []
    for name in ("formula", "covariates", "over", "adjacency"):
        value = getattr(pooling, name)
        if value is not None:
            is_said = isinstance(value, str | PurePath | Walk)
            said.append(f"{name} {value}" if is_said else name)
    return said
