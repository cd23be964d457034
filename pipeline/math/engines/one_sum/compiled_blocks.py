"""Latent pairs of many cells by the blocks of ``nodes``, in compiled loops; these are in ``block_kernel``.

Answers are those of ``nodes`` and ``merged`` but for rounding: which blocks there are, and what is merged,
is decided by the same numbers. Where a width lies on the very edge between two points of the lattice of
merging, as ratios of counts do, rounding decides: levels of quantiles differ by some 1e-5. A cell of very
many blocks or pairs, or with next to no noise, is left to arrays.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.distributions.adaptive_blocks import Blocks, nodes_of
from suffice.pipeline.math.distributions.compiled_mixtures import linear_update
from suffice.pipeline.math.distributions.many_cells import is_compiled, on_threads
from suffice.pipeline.math.distributions.merged import Components
from suffice.pipeline.math.engines.one_sum.nested_pairs import NestedPairs
from suffice.pipeline.math.engines.one_sum.nodes import MOMENT_NATS, NearMoments, edges_of_n
from suffice.pipeline.math.engines.one_sum.noisy_sum import BetaNegativeBinomial, GammaGamma, GammaPoisson
from suffice.pipeline.math.priors.record_count import Reciprocal, Uniform

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.engines.one_sum.noisy_sum import NoisySums
    from suffice.typing import Floats

    Update = Callable[[Floats, Floats], Distribution]

KERNEL = "suffice.pipeline.math.engines.one_sum.block_kernel"
_BATCH = 128
_MOST_CONCENTRATION, _MOST_SUMS = 50.0, 16


def can_compile(sums: NoisySums, update: Update) -> bool:
    """Whether the loops are made for a problem, whatever was released."""
    low, high = sums.n_prior.support
    return bool(
        _model(sums) is not None
        and isinstance(sums.n_prior, Reciprocal | Uniform)
        and low < high
        and not sums.from_nothing
        and len(sums.totals.scale) <= _MOST_SUMS
        and np.all(np.isfinite(sums.totals.scale))
        and is_compiled()
        and linear_update(update) is not None
    )


def _model(sums: NoisySums) -> Floats | None:
    """Numbers of a model as ``sum_weights`` has them; None of others."""
    marginal, lattice = sums.marginal, [sums.lower, sums.step]
    if isinstance(marginal, GammaPoisson):
        numbers = [0.0, marginal.concentration, marginal.rate, 1.0, 1.0]
    elif isinstance(marginal, BetaNegativeBinomial):
        numbers = [1.0, marginal.concentration1, marginal.concentration0, marginal.successes, 1.0]
    elif isinstance(marginal, GammaGamma):
        numbers = [2.0, marginal.concentration, marginal.rate, marginal.shape, marginal.share]
    else:
        return None
    if max(numbers[1], numbers[2] if numbers[0] == 1.0 else 0.0) > _MOST_CONCENTRATION:
        return None
    return np.array(numbers + lattice, dtype=np.float64)


@functools.cache
def _tables() -> tuple[Floats, Floats, Floats, Floats]:
    rules: Any = importlib.import_module("suffice.pipeline.math.distributions.block_rules")
    tables: tuple[Floats, Floats, Floats, Floats] = rules.tables()
    return tables


def resolve_blocks(sums: NoisySums, update: Update, threads: int | None = None) -> NestedPairs:
    """Resolve all cells; the numbers are the same for any number of threads.

    Parameters
    ----------
    sums, update
        As of ``LatentSumPosterior``, for which `can_compile` holds.
    threads : int, optional
        As many as there are processors by default.
    """
    kernel: Any = importlib.import_module(KERNEL)
    model, linear = _model(sums), linear_update(update)
    if model is None or linear is None:
        raise TypeError(type(sums.marginal).__name__)
    cells, (low, high) = sums.n_cells, (float(end) for end in sums.n_prior.support)
    falls = float(isinstance(sums.n_prior, Reciprocal))
    n_prior = np.array([float(sums.n_prior.log_prob(np.array([low]))[0]) + falls * np.log1p(low), falls])
    values = np.ascontiguousarray(sums.totals.values, dtype=np.float64)
    reaches = np.ascontiguousarray(sums.totals.coefficients[:, 0], dtype=np.float64)
    rates = np.ascontiguousarray(sums.totals.rate, dtype=np.float64)
    sizes, *rules = _tables()
    answers, counts = np.full((cells, 4), np.nan), np.zeros(cells, dtype=np.int64)
    edges = edges_of_n(sums, low, high)

    def work(batch: slice) -> Components:
        size = batch.stop - batch.start
        of_n, many = np.empty((size, 5, kernel.MOST_OF_N)), np.empty(size, dtype=np.int64)
        kernel.blocks_of_n(
            model, values[batch], reaches, rates, n_prior, edges[batch], MOMENT_NATS, sizes, many, of_n
        )
        is_used = np.arange(kernel.MOST_OF_N) < many[:, None]
        cell = np.repeat(np.arange(size), np.maximum(many, 0))
        left, right, sizes_of_n, depth, pole = (of_n[:, column][is_used] for column in range(5))
        blocks = Blocks(
            row=cell, left=left, right=right, size=sizes_of_n, depth=depth, pole=pole, top=np.zeros(size)
        )
        # Of no cell there may be blocks.
        columns = [(cell[:0], left[:0], left[:0])]
        for of_cell, nodes, weights in nodes_of(blocks, is_sum=True, at_integers=sums.is_sum):
            kept = weights != 0.0
            columns.append((np.broadcast_to(of_cell[:, None], kept.shape)[kept], nodes[kept], weights[kept]))
        cell, n, weight = (np.concatenate(column) for column in zip(*columns, strict=True))
        order = np.argsort(cell, kind="stable")
        cell, n, weight = cell[order], n[order], weight[order]
        merged = np.empty((size, kernel.MOST_MERGED, 4))
        kernel.resolve(
            model, values[batch], reaches, rates, np.searchsorted(cell, np.arange(size + 1)), n,
            sums.n_prior.log_prob(n) + np.log(weight), MOMENT_NATS, linear[0], linear[1], sizes,
            *rules, answers[batch], counts[batch], merged,
        )  # fmt: skip
        counts[batch][many < 0] = -1
        count = np.maximum(counts[batch], 0)
        used = np.concatenate([rows[:number] for rows, number in zip(merged, count, strict=True)])
        n, total, weight, scatter = used.T.copy()
        return Components(
            cell=np.repeat(np.arange(size), count), n=n, total=total, weight=weight, scatter=scatter
        )

    parts = on_threads(work, cells, _BATCH, threads)
    merged = Components.joined(parts, [min(_BATCH, cells - start) for start in range(0, cells, _BATCH)])
    return NestedPairs(
        near=NearMoments(
            means=answers[:, 0], sds=answers[:, 1], log_evidence=answers[:, 2], most=answers[:, 3]
        ),
        merged=merged,
        error=np.where(counts > 0, 0.0, np.inf),
    )
