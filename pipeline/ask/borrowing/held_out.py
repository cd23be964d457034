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
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import numpy as np

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.pooled_sources import cells_source
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.distribution import coordinate_of
from suffice.pipeline.math.engines.pooled.cells import Focus
from suffice.pipeline.math.engines.pooled.hyperparameters import BLOCK
from suffice.pipeline.math.engines.pooled.left_out import left_out
from suffice.pipeline.math.engines.pooled.pools import PooledCells
from suffice.pipeline.math.priors.mixtures import Mixture
from suffice.pipeline.terms.declaration.documents import Rows, printed
from suffice.pipeline.terms.declaration.wording import text_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.ask.borrowing.pooled_posterior import PooledPosterior
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

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
    """

    statistic: str
    answers: tuple[str, ...]
    n_prior: str
    groups: Mapping[str, list[str | int]] = field(repr=False)
    log_score: Floats = field(repr=False)

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
        return f"{self.best} predicts held-out cells best: {'; '.join(parts)}"

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
    scores = {ALONE: alone_log_score(statistic, n_prior)}
    scores |= {name: pooled_log_score(name, posterior) for name, posterior in posteriors.items()}
    return HeldOutComparison(
        statistic=first.statistic,
        answers=tuple(scores),
        n_prior=str(n_prior),
        groups=first.groups,
        log_score=np.stack(list(scores.values()), axis=1),
    )


def pooled_log_score(name: str, posterior: PooledPosterior) -> Floats:
    """Return log p(y_c | y_-c) of pooled cells, (n_cells,)."""
    distribution: Any = posterior.distribution
    if isinstance(distribution, PooledCells) and distribution.by_one_population:
        score = np.zeros(distribution.n_cells)
        for pool, cells in zip(distribution.by_one_population, distribution.cells, strict=True):
            score[cells] = left_out(pool).log_predictive
        return score
    if hasattr(distribution, "log_predictive"):
        return np.asarray(distribution.log_predictive, dtype=np.float64)
    message = f"{name}: cells that are pooled in this way have no score of held-out cells: leave it out"
    raise UsageError(message)


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


def names_of(asked: Sequence[Any]) -> list[str]:
    """Return what ways to pool are called."""
    from suffice.pipeline.ask.borrowing.pooling import Pooling

    names = []
    for each in asked:
        if isinstance(each, Pooling):
            further = [
                f"{name} {getattr(each, name) if isinstance(getattr(each, name), str) else ''}".strip()
                for name in ("formula", "covariates", "over", "adjacency")
                if getattr(each, name) is not None
            ]
            name = ", ".join([each.population, *each.within, *further])
        else:
            name = "all" if each is True else each if isinstance(each, str) else ", ".join(map(str, each))
        names.append(f"pooled: {name}")
    return names
