r"""Latent pairs of many cells by nested Gauss rules that are compared; the loops are in ``pair_kernel``.

Model and question as in ``nodes``, of successes among trials behind a private N, under betas whose
concentrations are from ``_LEAST_CONCENTRATION`` to ``_MOST_CONCENTRATION``: of smaller ones the prior has
poles next to sums of 0, and both rules were off alike.

Error. Rules differ in nodes, panels and cuts; each is compared with the one before. A cell is taken where
means differ by no more of a standard deviation, these by no more of themselves and log evidences by no more
than ``TOLERANCE`` of ``pair_kernel``, and where the posterior is not far below the likeliest noise. What a
node stands for, a piece of N and S in which the weight rises or falls, has the mass and the mean of that
piece, and widens its distribution; that changes the shape only where pieces that weigh much are wide beside
what is given them. So a cell is resolved anew by finer rules while such pieces are more than ``COARSE``, by
which levels of quantiles are off by about six tenths of it. Every other cell is left to blocks. This is an
estimate and no bound (decision 166 has errors, of a search for the worst cells too).
"""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.distributions.compiled_mixtures import linear_update
from suffice.pipeline.math.distributions.many_cells import PAIRS, is_compiled, on_threads
from suffice.pipeline.math.distributions.merged import Components
from suffice.pipeline.math.engines.one_sum.noisy_sum import BetaBinomial
from suffice.pipeline.math.engines.one_sum.spread_sums import NearMoments
from suffice.pipeline.math.priors.record_count import Fixed, Reciprocal

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.engines.one_sum.noisy_sum import NoisySums
    from suffice.typing import Floats, Mask

    Update = Callable[[Floats, Floats], Distribution]

_BATCH = 64
_LEAST_CONCENTRATION, _MOST_CONCENTRATION, _MOST_TRIALS, _MOST_SUMS = 1.0, 10.0, 1000.0, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class NestedPairs:
    """What the rules settled.

    Attributes
    ----------
    near : NearMoments
        Of all cells; numbers of cells that are not settled mean nothing.
    merged : Components
        Of all cells; of those that are not settled there are none.
    error : ndarray of shape (n_cells,), float64
        By how much the last two rules differ, or more; 0 where there was no second rule; infinite where a
        cell is not settled.
    """

    near: NearMoments
    merged: Components
    error: Floats

    @property
    def settled(self) -> Mask:
        """Cells whose numbers are taken."""
        return np.isfinite(self.error)


def can_resolve(sums: NoisySums, update: Update) -> bool:
    """Whether the rules are made for a problem, whatever was released."""
    marginal, totals = sums.marginal, sums.totals
    if not isinstance(marginal, BetaBinomial) or isinstance(sums.n_prior, Fixed) or not is_compiled():
        return False
    low, high = sums.n_prior.support
    first, second = totals.coefficients[:, 0], totals.coefficients[:, 1]
    concentrations = (marginal.concentration1, marginal.concentration0)
    is_pair = np.all(((first == 0.0) & (second == 1.0)) | ((first == marginal.trials) & (second == -1.0)))
    return bool(
        low < high
        and len(totals.scale) <= _MOST_SUMS
        and sums.step == 1.0
        and sums.lower == 0.0
        and np.all(np.isfinite(totals.scale))
        and is_pair
        and 0 < np.count_nonzero(first) < len(first)
        and min(concentrations) >= _LEAST_CONCENTRATION
        and max(concentrations) <= _MOST_CONCENTRATION
        and marginal.trials <= _MOST_TRIALS
        and linear_update(update) is not None
        and np.all(totals.values == np.rint(totals.values))
    )


def resolve_nested(sums: NoisySums, update: Update, threads: int | None = None) -> NestedPairs:
    """Resolve all cells; the numbers are the same for any number of threads.

    Parameters
    ----------
    sums, update
        As of ``LatentSumPosterior``, for which `can_resolve` holds.
    threads : int, optional
        As many as there are processors by default.
    """
    kernel: Any = importlib.import_module(PAIRS.module)
    marginal, linear = sums.marginal, linear_update(update)
    if not isinstance(marginal, BetaBinomial) or linear is None:
        raise TypeError(type(marginal).__name__)
    a, b = marginal.concentration1, marginal.concentration0
    cells, low = sums.n_cells, float(sums.n_prior.support[0])
    falls = float(isinstance(sums.n_prior, Reciprocal))
    constant = float(sums.n_prior.log_prob(np.array([low]))[0]) + falls * np.log1p(low)
    n_prior = np.array([constant, falls, low, float(sums.n_prior.support[1])])
    prior = np.array([a, b, 0.0, math.lgamma(a), math.lgamma(b), math.lgamma(a + b)])
    values, reaches, rates = released(sums)
    rules = np.array(kernel.RULES, dtype=np.float64)
    answers, counts = np.full((cells, 2, 6), np.nan), np.zeros(cells, dtype=np.int64)

    def work(batch: slice) -> Components:
        merged = np.empty((batch.stop - batch.start, kernel.MOST_MERGED, 6))
        kernel.resolve(
            values[batch], reaches, rates, marginal.most_per_row, prior, n_prior, linear[0],
            linear[1], rules, answers[batch], counts[batch], merged,
        )  # fmt: skip
        count = np.maximum(counts[batch], 0)
        used = np.concatenate([rows[:number, :4] for rows, number in zip(merged, count, strict=True)])
        n, total, weight, scatter = used.T.copy()
        cell = np.repeat(np.arange(batch.stop - batch.start), count)
        return Components(cell=cell, n=n, total=total, weight=weight, scatter=scatter)

    parts = on_threads(work, cells, _BATCH, threads)
    merged = Components.joined(parts, [min(_BATCH, cells - start) for start in range(0, cells, _BATCH)])
    return NestedPairs(
        near=NearMoments(
            means=answers[:, 1, 0],
            sds=answers[:, 1, 1],
            log_evidence=answers[:, 1, 2],
            most=answers[:, 1, 3],
        ),
        merged=merged,
        error=differences(answers[:, 0], answers[:, 1], counts > 0),
    )


def released(sums: NoisySums) -> tuple[Floats, Floats, Floats]:
    """Return released values (n_cells, n_sums), and each sum's coefficient of N and rate of the noise.

    They are copies: loops take no array that is read-only.
    """
    totals = sums.totals
    columns = (totals.values, totals.coefficients[:, 0], totals.rate)
    values, reaches, rates = (np.array(column, dtype=np.float64, order="C") for column in columns)
    return values, reaches, rates


def differences(first: Floats, second: Floats, settled: Mask) -> Floats:
    """By how much two answers differ, (n_cells,); infinite where they are not to be trusted.

    Parameters
    ----------
    first, second : ndarray of shape (n_cells, 3 or more)
        Mean, standard deviation, log evidence.
    settled : ndarray of shape (n_cells,)
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        errors = np.stack(
            [
                np.abs(second[:, 0] - first[:, 0]) / second[:, 1],
                np.abs(np.log(second[:, 1] / first[:, 1])),
                np.abs(second[:, 2] - first[:, 2]),
            ]
        )
    return np.where(settled, np.max(errors, axis=0), np.inf)
