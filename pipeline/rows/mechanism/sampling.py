"""Draws of a posterior on its grid, and of a quantile's bin: exact totals of cells in, indices out.

The other module that draws: by OpenDP's noisy maximum, which is the exponential mechanism exactly. An index
has the probability ``exp(score / t)`` over the sum of all, as that of the largest of sums with independent
standard Gumbel variables times t. OpenDP draws it by rejection: a uniform index is accepted with probability
``exp((score - highest) / t)``. How many it proposes depends on the scores, so the run time does. Everything
that `noise` says of its generator holds here: there is no seed, and nothing else may draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import opendp.domains
import opendp.measurements
import opendp.measures
import opendp.metrics
import opendp.mod

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.priors.mixtures import log_prior_on_points
from suffice.pipeline.rows.chunk.exact_sums import wipe
from suffice.pipeline.spec.compiled_statistics import scores_of
from suffice.pipeline.terms.declaration.fields import sample_entry
from suffice.pipeline.terms.statistics.drawn_quantile import QuantilePlan
from suffice.pipeline.terms.statistics.exponential_draws import LARGEST_SAMPLE_SCALE

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    from numpy.typing import NDArray
    from opendp.mod import Measurement

    from suffice.pipeline.terms.declaration.fields import StatisticSpec
    from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
    from suffice.pipeline.terms.statistics.drawn_quantile import QuantileScores
    from suffice.pipeline.terms.statistics.sample_plan import ScoreTables
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.typing import Cells


@dataclass(frozen=True, slots=True)
class Selector:
    """The one measurement that draws a statistic's samples; its privacy map was checked.

    OpenDP's sampler runs without the interpreter's lock, so several threads may draw at a time.

    Parameters
    ----------
    measurement : Measurement
        OpenDP's.
    """

    measurement: Measurement

    def draw_into(self, scores: Cells, out: Cells) -> None:
        """Overwrite an array of one dimension with independent draws of an index into `scores`."""
        # proof: noisy-maximum
        candidates = scores.tolist()
        for position in range(len(out)):
            out[position] = self.measurement(candidates)


def exponential_mechanism(*, scale: int, range_sensitivity: int, rho: Fraction) -> Selector:
    r"""Return a selector of grid points, after OpenDP's own privacy map has been checked.

    .. math:: P(g) = e^{s_g / t} \Big/ \sum_h e^{s_h / t}

    Parameters
    ----------
    scale : int, >= 1
        ``t``, in units of the scores.
    range_sensitivity : int, > 0
        The largest range of a change of all scores between neighbours, in units of the scores.
    rho : Fraction, > 0
        What one draw may cost; an epsilon costs its square over 8.

    Returns
    -------
    Selector
        Nothing has been drawn from it.

    Raises
    ------
    ValueError
        Where OpenDP's map of this measurement exceeds rho, or the scale is out of range.

    References
    ----------
    McSherry, Talwar 2007 (`mcsherry2007mechanism`); the range of a change is what it costs: Dong, Durfee,
    Rogers 2020 (`dong2020optimal`).
    """
    if not 1 <= scale <= LARGEST_SAMPLE_SCALE:
        message = "the scale of a sample is out of range"
        raise ValueError(message)
    # proof: selection-map
    measurement = _measurement(scale)
    if Fraction(_zero_concentrated_loss(measurement, range_sensitivity)) > rho:
        message = "OpenDP's privacy map exceeds the rho of a draw"
        raise ValueError(message)
    return Selector(measurement)


def _rho_of_a_draw(loss: PrivacyLoss, draws: int) -> Fraction:
    """Return what one of so many draws may cost in rho."""
    return loss.rho / draws if loss.rho is not None else (loss.amount / draws) * (loss.amount / draws) / 8


def _zero_concentrated_loss(measurement: Measurement, range_sensitivity: int) -> float:
    """Return OpenDP's rho: its metric is the largest change of a score, half of the range once centred."""
    return float(measurement.map(-(-range_sensitivity // 2)))  # type: ignore[no-untyped-call]


def _measurement(scale: int) -> Measurement:
    # The measure decides on the law: for pure privacy it would be that of permute-and-flip, which is no
    # posterior's. Of the exponential mechanism OpenDP states zero-concentrated privacy only; that it is
    # epsilon-private is our proof.
    opendp.mod.enable_features("contrib")
    domain = opendp.domains.vector_domain(opendp.domains.atom_domain(T="i64"))
    return opendp.measurements.make_noisy_max(
        domain,
        opendp.metrics.linf_distance(T="i64"),
        opendp.measures.zero_concentrated_divergence(),
        scale=float(scale),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSampler:
    r"""What draws one statistic's samples; nothing in it was read from data.

    Parameters
    ----------
    selector : Selector
    tables : ScoreTables or QuantileScores
        Of the scores.
    log_prior : ndarray of int64, shape (n_points,)
        ``rint(t log prior)``: constants that are added to the scores; 0 for bins, of which none is favoured.
    draws : int
        In each cell.
    entry : StatisticSpec
        The statistic in the spec.
    """

    selector: Selector
    tables: ScoreTables | QuantileScores
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
        shares = (
            np.zeros(sample.n_points)
            if isinstance(sample, QuantilePlan)
            else log_prior_on_points(sample.prior, sample.values())
        )
        return cls(
            selector=exponential_mechanism(
                scale=sample.scale,
                range_sensitivity=sample.range_sensitivity,
                rho=_rho_of_a_draw(statistic.loss, sample.draws),
            ),
            tables=scores_of(entry, stated),
            log_prior=np.rint(sample.scale * shares).astype(np.int64),
            draws=sample.draws,
            entry=entry,
        )

    def scores(self, exact: NDArray[Any]) -> NDArray[np.int64]:
        """Return what is drawn by, shape (n_cells, n_points), of exact sums (n_cells, n_sums)."""
        sampled = FAMILIES[self.entry.family].drawn
        if sampled is None:
            message = f"{self.entry.family} is not sampled"
            raise ValueError(message)
        scores = np.zeros((len(exact), len(self.log_prior)), np.int64)
        try:
            for cell, totals in enumerate(sampled.totals(self.entry, exact).tolist()):
                scores[cell] = self.tables.scores(*totals)
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
