"""Draws of a posterior on its grid: exact totals of cells in, indices out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.priors.mixtures import log_prior_on_points
from suffice.pipeline.rows.chunk.exact_sums import wipe
from suffice.pipeline.rows.mechanism.selection import Selector, exponential_mechanism
from suffice.pipeline.spec.plan import score_tables
from suffice.pipeline.terms.declaration.fields import sample_entry

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    from numpy.typing import NDArray

    from suffice.pipeline.terms.declaration.fields import StatisticSpec
    from suffice.pipeline.terms.statistics.statistic_plan import ScoreTables, StatisticPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSampler:
    r"""What draws one statistic's samples; nothing in it was read from data.

    Parameters
    ----------
    selector : Selector
    tables : ScoreTables
        Of the scores.
    log_prior : ndarray of int64, shape (n_points,)
        ``rint(t log prior)``: constants that are added to the scores.
    draws : int
        In each cell.
    entry : StatisticSpec
        The statistic in the spec.
    """

    selector: Selector
    tables: ScoreTables
    log_prior: NDArray[np.int64]
    draws: int
    entry: StatisticSpec

    @classmethod
    def of(cls, statistic: StatisticPlan, entry: StatisticSpec) -> Self:
        """Return the sampler of a statistic's plan, its privacy map checked.

        Raises
        ------
        ValueError
            Where the map exceeds what the statistic may cost, or plan and entry are not of a sample.
        """
        sample, stated = statistic.sample, sample_entry(entry)
        if sample is None or stated is None:
            message = f"{statistic.name} is not sampled"
            raise ValueError(message)
        shares = log_prior_on_points(sample.prior, sample.values())
        return cls(
            selector=exponential_mechanism(
                scale=sample.scale,
                range_sensitivity=sample.range_sensitivity,
                epsilon=statistic.epsilon / sample.draws,
            ),
            tables=score_tables(entry, stated),
            log_prior=np.rint(sample.scale * shares).astype(np.int64),
            draws=sample.draws,
            entry=entry,
        )

    def scores(self, exact: NDArray[Any]) -> NDArray[np.int64]:
        """Return what is drawn by, shape (n_cells, n_points), of exact sums (n_cells, n_sums)."""
        sampled = FAMILIES[self.entry.family].sampled
        if sampled is None:
            message = f"{self.entry.family} is not sampled"
            raise ValueError(message)
        scores = np.zeros((len(exact), len(self.log_prior)), np.int64)
        try:
            for cell, (n, total) in enumerate(sampled.totals(self.entry, exact).tolist()):
                scores[cell] = self.tables.scores(n, total)
                scores[cell] += self.log_prior
        except BaseException:
            wipe(scores)
            raise
        return scores

    def start(
        self, scores: NDArray[np.int64], out: NDArray[np.int64], threads: Executor
    ) -> list[Future[None]]:
        """Have threads overwrite `out`, a cell each, once; it is drawn when all are done."""
        return [threads.submit(self.selector.draw_into, scores[cell], out[cell]) for cell in range(len(out))]
