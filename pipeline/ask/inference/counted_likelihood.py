r"""Likelihoods of counts where the number of records is latent under a mixture of Poisson laws.

Model. Counts of a cell are then independent given the mean of N, and what was released says of probabilities
what ``several_counts`` integrates. A total of Poisson counts of a known number of records,
:math:`S \sim \mathrm{Poisson}(N \lambda)`, is one noisy count itself: its likelihood is that of the mean
:math:`N \lambda`, in closed form.

Symbols:

- x: ``position``, the logit of a probability or the logarithm of a rate
- y: released values, (n_cells, K, n_releases)

Method. Tables of x are those of ``tabulated``, block by block of cells. Their error is what the polynomials
miss, plus what the tables of single counts miss, plus what the sum over means of N misses at one place of
every panel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.ask.inference.any_prior import conjugate_default
from suffice.pipeline.ask.inference.tabled_likelihood import FITTED, LikelihoodTable
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.engines.count_likelihoods import NoisyCount
from suffice.pipeline.math.engines.one_sum.noisy_sum import GammaPoisson
from suffice.pipeline.math.engines.several_counts import SeveralCounts
from suffice.pipeline.math.engines.tabulated import DEPTH, joined, tabulate
from suffice.pipeline.math.priors.record_count import Fixed
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals
from suffice.pipeline.terms.statistics.sensitivity import Design

if TYPE_CHECKING:
    from suffice.pipeline.math.engines.tabulated import Table
    from suffice.pipeline.math.priors.record_count import NPrior
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats, Rows

COUNTED = ("bernoulli", "categorical", "contingency")
"""Families whose components are counts of records, each record in one of them."""
_CELLS = 1024
"""Cells that are tabulated together."""
_LEFT, _RIGHT = -40.0, 36.0
_WIDTHS = np.array([-8.0, -4.0, 0.0, 4.0, 8.0])
_WIDEST = 3.0
_BETWEEN = 0.31
"""The place of a panel, -1..1, at which sums are looked at: no node of its polynomial."""
_AROUND = np.linspace(-30.0, 30.0, 25)


def several_counts(statistic: NoisyStatistic, n_prior: NPrior) -> SeveralCounts | None:
    """Return the likelihood of a cell's probabilities; None where the engine does not serve it."""
    plan = statistic.plan
    if plan.family not in COUNTED or plan.design is not Design.PARTITION_OF_UNITY:
        return None
    if statistic.cells_summed > 1:  # the sum of several noises has another law
        return None
    totals = NoisyTotals.of(statistic)
    return SeveralCounts.of(
        np.swapaxes(totals.by_release, 1, 2), totals.scale_by_release[:, 0].copy(), n_prior
    )


def constant_of(statistic: NoisyStatistic, n_prior: NPrior) -> float:
    """Return what turns (1) of ``several_counts`` into the sum over counts and N, as other engines have it.

    The prior's own constant, less those of the noise.
    """
    scales = np.array([observation.plan.scale for observation in statistic.observations])
    of_noise = len(statistic.plan.components) * float(np.sum(np.log(np.tanh(0.5 / scales))))
    return float(n_prior.log_prob(np.zeros(1))[0]) - of_noise


def tabled_counts(statistic: NoisyStatistic, n_prior: NPrior) -> LikelihoodTable | None:
    """Tabulate the log likelihood of a probability or a rate; None where this engine does not serve it."""
    family = statistic.plan.family
    if family not in {"bernoulli", "poisson"}:
        return None
    parts = []
    for first in range(0, len(statistic.values), _CELLS):
        few = statistic.take(np.arange(first, min(first + _CELLS, len(statistic.values))))
        part = _of_probability(few, n_prior) if family == "bernoulli" else _of_rate(few, n_prior)
        if part is None:
            return None
        parts.append(part)
    return LikelihoodTable(
        table=joined([table for table, _ in parts]),
        depth=np.full(len(statistic.values), DEPTH),
        error=np.concatenate([error for _, error in parts]),
    )


def _of_probability(statistic: NoisyStatistic, n_prior: NPrior) -> tuple[Table, Floats] | None:
    counts = several_counts(statistic, n_prior)
    if counts is None:
        return None
    constant = constant_of(statistic, n_prior)

    def evaluate(cell: Rows, position: Floats) -> Floats:
        return counts.of_panels(cell, _log_probabilities(position)) + constant

    table = tabulate(evaluate, _edges(statistic), tolerance=FITTED)
    fine = np.flatnonzero(table.is_fine)
    middle, half = (table.left + table.right)[fine] / 2.0, (table.right - table.left)[fine] / 2.0
    cell = table.cell[fine]
    _, miss = counts.log_likelihood(cell, _log_probabilities(middle + _BETWEEN * half))
    largest = np.zeros(table.n_cells)
    np.maximum.at(largest, cell, miss)
    return table, table.error + counts.error + largest


def _log_probabilities(position: Floats) -> Floats:
    """Return logarithms of the probabilities of false and true, on the last axis."""
    return np.stack([-np.logaddexp(0.0, position), -np.logaddexp(0.0, -position)], axis=-1)


def _edges(statistic: NoisyStatistic) -> Floats:
    """Panels to begin with: the line as far as numbers go, and where the released values are."""
    totals = NoisyTotals.of(statistic)
    count = np.maximum(np.mean(totals.by_release, axis=1), 0.0) + 0.5
    centre = np.log(count[:, 1] / count[:, 0])
    # The variance of a log odds, of counts and of noise.
    square = np.sum((count + 2.0 * float(np.min(totals.scale)) ** 2) / count**2, axis=1)
    inner = centre[:, None] + np.minimum(np.sqrt(square), _WIDEST)[:, None] * _WIDTHS
    everywhere = np.broadcast_to(np.linspace(_LEFT, _RIGHT, 9), (len(count), 9))
    return np.sort(np.concatenate([np.clip(inner, _LEFT, _RIGHT), everywhere], axis=1), axis=1)


def _of_rate(statistic: NoisyStatistic, n_prior: NPrior) -> tuple[Table, Floats] | None:
    if not isinstance(n_prior, Fixed) or n_prior.n == 0:
        return None
    family = FAMILIES[statistic.plan.family]
    assert family.latent is not None  # noqa: S101 - it has one parameter
    sums, _ = family.latent(statistic, conjugate_default(family, statistic.plan.parameters), n_prior)
    if not isinstance(sums.marginal, GammaPoisson):
        return None
    totals = sums.totals
    # y = c_N N + c_S S with c_S = 1 or -1: each is a noisy number of S.
    of_records, of_sum = totals.coefficients.T
    values = (totals.values - of_records * n_prior.n) / of_sum
    counts = NoisyCount(values=values, scales=totals.scale)
    constant = -float(np.sum(np.log(np.tanh(0.5 / totals.scale))))

    def evaluate(cell: Rows, position: Floats) -> Floats:
        return counts.take(cell).log_likelihood(position + np.log(n_prior.n)) + constant

    centre = np.log(np.maximum(np.mean(values, axis=1), 1.0) / n_prior.n)
    table = tabulate(evaluate, centre[:, None] + _AROUND, tolerance=FITTED)
    return table, table.error.copy()
