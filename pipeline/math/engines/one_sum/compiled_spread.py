"""Cells under priors that are spread over scales, in compiled loops; these are in ``spread_kernel``.

Blocks of N are those of ``compiled_blocks``. A cell of very many blocks or pairs, or with next to no noise, is
left to arrays, which are the reference: ``spread_sums``.
"""

from __future__ import annotations

import functools
import importlib
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.math.distributions.adaptive_blocks import Blocks, nodes_of
from suffice.pipeline.math.distributions.gamma import GammaDistribution, InverseGammaDistribution
from suffice.pipeline.math.distributions.many_cells import BLOCKS, SPREAD, is_compiled, on_threads
from suffice.pipeline.math.distributions.merged import Components
from suffice.pipeline.math.engines.one_sum.compiled_blocks import COARSE, Fineness, _tables
from suffice.pipeline.math.engines.one_sum.nested_pairs import NestedPairs
from suffice.pipeline.math.engines.one_sum.nodes import edges_of_n
from suffice.pipeline.math.engines.one_sum.spread_sums import NearMoments, SpreadGammaGamma, tilted_sums
from suffice.pipeline.math.priors.record_count import Fixed, Reciprocal, Uniform

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.engines.one_sum.noisy_sum import NoisySums
    from suffice.typing import Floats

    Update = Callable[[Floats, Floats], Distribution]

_BATCH = 128
_MOST_SUMS, _LARGEST_RATIO = 16, 1e6

NEAR = replace(COARSE, light=1e-6, per_spread=24.0, per_width=4.0, per_octave=3.0)
FAR = replace(COARSE, nats=26.0, of_n=1e-6, of_total=1e-3)
PARTS = replace(COARSE, light=1e-8, per_spread=48.0, per_width=6.0, per_octave=4.0)


def can_compile_spread(sums: NoisySums) -> bool:
    """Whether the loops are made for a problem, whatever was released."""
    marginal = sums.marginal
    return bool(
        isinstance(marginal, SpreadGammaGamma)
        and isinstance(sums.n_prior, Reciprocal | Uniform | Fixed)
        and sums.n_prior.support[1] >= 1
        and sums.lower == 0.0
        and marginal.rates[-1] < _LARGEST_RATIO * marginal.rates[0]
        and len(sums.totals.scale) <= _MOST_SUMS
        and np.all(np.isfinite(sums.totals.scale))
        and is_compiled()
    )


@functools.cache
def _model(marginal: SpreadGammaGamma, step: float, *, from_nothing: bool) -> Floats:
    """Numbers of a model as ``sum_weights`` has them."""
    factor: Any = importlib.import_module("suffice.pipeline.math.engines.one_sum.spread_factor")
    heaviest = marginal.rates[int(np.argmax(marginal.weights))]
    numbers = [
        2.0, marginal.concentration, marginal.rates[0], marginal.shape, marginal.share, 0.0, step, heaviest,
        float(from_nothing),
    ]  # fmt: skip
    table = factor.table_of(marginal.weights, marginal.concentration, marginal.rates)
    return np.concatenate([numbers, table])


def _components(marginal: SpreadGammaGamma) -> Floats:
    rates = np.array(marginal.rates)
    return np.stack([np.log(marginal.weights) + marginal.concentration * np.log(rates / rates[0]), rates])


def resolve_spread(
    sums: NoisySums, update: Update, threads: int | None = None, fineness: Fineness = NEAR
) -> NestedPairs:
    """Resolve all cells; the numbers are the same for any number of threads."""
    answers, merged, counts = _resolve(sums, sums, update, np.empty((sums.n_cells, 8)), False, threads, fineness)
    near = NearMoments(
        means=answers[:, 0], sds=answers[:, 1], log_evidence=answers[:, 2], most=answers[:, 3],
        bounded=answers[:, 4:],
    )  # fmt: skip
    return NestedPairs(near=near, merged=merged, error=np.where(counts > 0, 0.0, np.inf))


def far_sums(sums: NoisySums, update: Update, near: NearMoments, threads: int | None = None) -> Floats:
    """Return the second sums of (4) of ``spread_sums``, (n_cells, 2); no numbers of cells left to arrays."""
    tilted, prior = tilted_sums(sums, update)
    answers = np.empty((sums.n_cells, 8))
    answers[:, 4:], answers[:, 2] = near.bounded, math.log(prior) - near.log_evidence
    answers, _, counts = _resolve(tilted, sums, update, answers, True, threads, FAR)
    return np.where(counts[:, None] >= 0, answers[:, 6:], np.nan)


def split_pairs(sums: NoisySums, update: Update) -> Components | None:
    """Return pairs that are split among the prior's components, and merged much less; None where it cannot."""
    split = resolve_spread(sums, update, fineness=PARTS)
    return split.merged if np.all(split.settled) else None


def _resolve(tilted, sums, update, answers, is_far, threads, fineness):
    kernel: Any = importlib.import_module(SPREAD.module)
    blocks: Any = importlib.import_module(BLOCKS.module)
    marginal = sums.marginal
    model = _model(tilted.marginal, sums.step, from_nothing=tilted.from_nothing)
    components = _components(marginal)
    given = update(np.zeros(1), np.zeros(1))
    is_inverse = isinstance(given, InverseGammaDistribution)
    linear = np.array([marginal.concentration, marginal.shape, 0.0, marginal.rates[0], 0.0, marginal.share])
    numbers = fineness.numbers
    cells, (low, high) = sums.n_cells, (float(end) for end in sums.n_prior.support)
    values = np.ascontiguousarray(sums.totals.values, dtype=np.float64)
    reaches = np.ascontiguousarray(sums.totals.coefficients[:, 0], dtype=np.float64)
    rates = np.ascontiguousarray(sums.totals.rate, dtype=np.float64)
    if len(rates) < 2:  # loops take at least two sums
        values, reaches, rates = np.repeat(values, 2, axis=1), np.repeat(reaches, 2), np.append(rates, 0.0)
    sizes, *_, integrals = _tables(fineness.of_total)
    counts = np.zeros(cells, dtype=np.int64)
    if low < high:
        falls = float(isinstance(sums.n_prior, Reciprocal))
        n_prior = np.array([float(sums.n_prior.log_prob(np.array([low]))[0]) + falls * np.log1p(low), falls])
        allowed_of_n, *_ = _tables(fineness.of_n)
        edges = edges_of_n(sums, low, high)

    def rows(batch):
        size = batch.stop - batch.start
        if low == high:
            return np.arange(size), np.full(size, low), np.ones(size), np.ones(size, dtype=np.int64)
        of_n, many = np.empty((size, 5, blocks.MOST_OF_N)), np.empty(size, dtype=np.int64)
        blocks.blocks_of_n(
            model, values[batch], reaches, rates, n_prior, edges[batch], numbers, allowed_of_n, many, of_n
        )
        is_used = np.arange(blocks.MOST_OF_N) < many[:, None]
        cell = np.repeat(np.arange(size), np.maximum(many, 0))
        left, right, sizes_of_n, depth, pole = (of_n[:, column][is_used] for column in range(5))
        found_blocks = Blocks(
            row=cell, left=left, right=right, size=sizes_of_n, depth=depth, pole=pole, top=np.zeros(size)
        )
        # Of no cell there may be blocks.
        columns = [(cell[:0], left[:0], left[:0])]
        for of_cell, nodes, weights in nodes_of(found_blocks, is_sum=True, tolerance=fineness.of_n):
            kept = weights != 0.0
            columns.append((np.broadcast_to(of_cell[:, None], kept.shape)[kept], nodes[kept], weights[kept]))
        cell, n, weight = (np.concatenate(column) for column in zip(*columns, strict=True))
        order = np.argsort(cell, kind="stable")
        return cell[order], n[order], weight[order], many

    def work(batch: slice) -> Components:
        size = batch.stop - batch.start
        cell, n, weight, many = rows(batch)
        merged = np.empty((size, kernel.MOST_MERGED, 4))
        kernel.resolve(
            model, values[batch], reaches, rates, np.searchsorted(cell, np.arange(size + 1)), n,
            sums.n_prior.log_prob(n) + np.log(weight), components, marginal.concentration, is_inverse, is_far,
            numbers, linear, sizes, integrals, answers[batch], counts[batch], merged,
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
    return answers, merged, counts
