"""Cells under priors that are spread over scales, in compiled loops; these are in ``spread_kernel``.

Blocks of N are those of ``compiled_blocks``. A cell of very many blocks or pairs, or with next to no noise,
is left to arrays, which are the reference: ``spread_sums``.
"""

from __future__ import annotations

import functools
import importlib
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from suffice.pipeline.math.distributions.adaptive_blocks import Blocks, nodes_of
from suffice.pipeline.math.distributions.gamma import InverseGammaDistribution
from suffice.pipeline.math.distributions.many_cells import SPREAD, is_compiled, on_threads
from suffice.pipeline.math.distributions.merged import Components
from suffice.pipeline.math.engines.one_sum.compiled_blocks import COARSE, Fineness, tables_of
from suffice.pipeline.math.engines.one_sum.nested_pairs import NestedPairs, released
from suffice.pipeline.math.engines.one_sum.nodes import edges_of_n
from suffice.pipeline.math.engines.one_sum.spread_sums import NearMoments, SpreadGammaGamma, tilted_sums
from suffice.pipeline.math.priors.record_count import Reciprocal

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.engines.one_sum.noisy_sum import NoisySums
    from suffice.typing import Cells, Floats, Mask, Rows

    Update = Callable[[Floats, Floats], Distribution]

_BATCH = 128
_MOST_SUMS, _LARGEST_RATIO = 16, 1e6
"""Released sums, and rates over the smallest one, up to which tables reach far enough."""
_GAMMA, _ANSWERS = 2.0, 8
"""As in ``sum_weights`` and ``spread_kernel``."""

NEAR = replace(COARSE, of_n=1e-8, of_total=1e-5, per_spread=48.0, per_width=4.0, per_octave=3.0)
"""Of pairs that hold the mass; pairs are split before they are merged, so that levels rest on how finely."""
PARTS = replace(
    COARSE,
    of_n=1e-8,
    of_total=1e-5,
    has_pieces=False,
    light=1e-8,
    per_spread=64.0,
    per_width=3.0,
    per_octave=5.0,
)
"""Of pairs whose moments within limits are summed up."""
FAR = replace(COARSE, nats=28.0, of_n=1e-6, of_total=3e-4, has_pieces=False)
"""Of pairs that hold squares."""


def can_compile_spread(sums: NoisySums) -> bool:
    """Whether the loops are made for a problem, whatever was released."""
    marginal = sums.marginal
    return bool(
        isinstance(marginal, SpreadGammaGamma)
        and sums.n_prior.support[1] >= 1
        and sums.lower == 0.0
        and marginal.rates[-1] < _LARGEST_RATIO * marginal.rates[0]
        and len(sums.totals.scale) <= _MOST_SUMS
        and np.all(np.isfinite(sums.totals.scale))
        and is_compiled()
    )


def resolve_spread(
    sums: NoisySums, update: Update, threads: int | None = None, fineness: Fineness = NEAR
) -> NestedPairs:
    """Resolve all cells; the numbers are the same for any number of threads.

    Parameters
    ----------
    sums, update
        As of ``LatentSumPosterior``, for which ``can_compile_spread`` holds.
    threads : int, optional
        As many as there are processors by default.
    fineness : Fineness
    """
    answers = np.full((sums.n_cells, _ANSWERS), np.nan)
    merged, counts = _resolve(sums, update, fineness, threads, answers)
    means, sds, log_evidence, most = answers.T[:4]
    near = NearMoments(means=means, sds=sds, log_evidence=log_evidence, most=most, bounded=answers[:, 4:])
    return NestedPairs(near=near, merged=merged, error=np.where(counts > 0, 0.0, np.inf))


def far_sums(sums: NoisySums, update: Update, near: NearMoments, threads: int | None = None) -> Floats:
    """Return the second sums of (4) of ``spread_sums``, (n_cells, 2); no numbers of cells left to arrays."""
    tilted, prior = tilted_sums(sums, update)
    answers = np.empty((sums.n_cells, _ANSWERS))
    # What multiplies weights is where evidences would be.
    answers[:, 2], answers[:, 4:] = math.log(prior) - near.log_evidence, cast("Floats", near.bounded)
    _, counts = _resolve(sums, update, FAR, threads, answers, tilted)
    return np.where(counts[:, None] >= 0, answers[:, 6:], np.nan)


def split_pairs(sums: NoisySums, update: Update) -> tuple[Components, Cells]:
    """Return pairs, split among the prior's components and merged a little, and cells left to arrays."""
    split = resolve_spread(sums, update, fineness=PARTS)
    return split.merged, np.flatnonzero(~split.settled)


@functools.lru_cache(maxsize=16)
def _model(marginal: SpreadGammaGamma, step: float, *, from_nothing: bool) -> Floats:
    """Numbers of a model as ``sum_weights`` has them: that of the first component, and what others add."""
    factor: Any = importlib.import_module("suffice.pipeline.math.engines.one_sum.spread_factor")
    heaviest = marginal.rates[int(np.argmax(marginal.weights))]
    numbers = [_GAMMA, marginal.concentration, marginal.rates[0], marginal.shape, marginal.share, 0.0, step]
    table = factor.table_of(marginal.weights, marginal.concentration, marginal.rates)
    return np.concatenate([numbers, [heaviest, float(from_nothing)], table])


def _components(marginal: SpreadGammaGamma) -> Floats:
    """Logs of w_j (b_j / b_0)^a, and b_j, (2, n_components)."""
    rates = np.array(marginal.rates)
    return np.stack([np.log(marginal.weights) + marginal.concentration * np.log(rates / rates[0]), rates])


def _resolve(
    sums: NoisySums,
    update: Update,
    fineness: Fineness,
    threads: int | None,
    answers: Floats,
    tilted: NoisySums | None = None,
) -> tuple[Components, Rows]:
    """Resolve all cells under their prior or a tilted one; merged pairs, and how many, -1 of cells left."""
    kernel: Any = importlib.import_module(SPREAD.module)
    marginal, weighed = cast("SpreadGammaGamma", sums.marginal), tilted or sums
    model = _model(cast("SpreadGammaGamma", weighed.marginal), sums.step, from_nothing=weighed.from_nothing)
    is_inverse = isinstance(update(np.zeros(1), np.zeros(1)), InverseGammaDistribution)
    # Natural parameters by 1, N and S.
    linear = np.array([marginal.concentration, marginal.shape, 0.0, marginal.rates[0], 0.0, marginal.share])
    values, reaches, rates = released(sums)
    if len(rates) == 1:
        # Loops take at least two sums: the second one's noise says nothing.
        values, reaches, rates = np.repeat(values, 2, axis=1), np.repeat(reaches, 2), np.append(rates, 0.0)
    sizes, _, _, integrals = tables_of(fineness.of_total)
    counts, components = np.zeros(sums.n_cells, dtype=np.int64), _components(marginal)
    rows_of = _rows_by_loops(sums, model, values, reaches, rates, fineness)

    def work(batch: slice) -> Components:
        size = batch.stop - batch.start
        cell, n, weight, is_left = rows_of(batch)
        merged = np.empty((size, kernel.MOST_MERGED, 4))
        kernel.resolve(
            model, values[batch], reaches, rates, np.searchsorted(cell, np.arange(size + 1)), n,
            sums.n_prior.log_prob(n) + np.log(weight), components, marginal.concentration, is_inverse,
            tilted is not None, fineness.numbers, linear, sizes, integrals, answers[batch], counts[batch],
            merged,
        )  # fmt: skip
        counts[batch][is_left] = -1
        count = np.maximum(counts[batch], 0)
        used = np.concatenate([rows[:number] for rows, number in zip(merged, count, strict=True)])
        n, total, weight, scatter = used.T.copy()
        return Components(
            cell=np.repeat(np.arange(size), count), n=n, total=total, weight=weight, scatter=scatter
        )

    parts = on_threads(work, sums.n_cells, _BATCH, threads)
    sizes_of_parts = [min(_BATCH, sums.n_cells - start) for start in range(0, sums.n_cells, _BATCH)]
    return Components.joined(parts, sizes_of_parts), counts


def _rows_by_loops(
    sums: NoisySums, model: Floats, values: Floats, reaches: Floats, rates: Floats, fineness: Fineness
) -> Callable[[slice], tuple[Cells, Floats, Floats, Mask]]:
    """Cells of a batch -> as ``nodes.rows_of``: cell, N and weight, and which cells are left to arrays."""
    low, high = (float(end) for end in sums.n_prior.support)
    if low == high:

        def known(batch: slice) -> tuple[Cells, Floats, Floats, Mask]:
            size = batch.stop - batch.start
            return np.arange(size), np.full(size, low), np.ones(size), np.zeros(size, dtype=np.bool_)

        return known
    kernel: Any = importlib.import_module("suffice.pipeline.math.engines.one_sum.block_kernel")
    falls = float(isinstance(sums.n_prior, Reciprocal))
    n_prior = np.array([float(sums.n_prior.log_prob(np.array([low]))[0]) + falls * np.log1p(low), falls])
    allowed, *_ = tables_of(fineness.of_n)
    edges, numbers = edges_of_n(sums, low, high), fineness.numbers

    def private(batch: slice) -> tuple[Cells, Floats, Floats, Mask]:
        size = batch.stop - batch.start
        of_n, many = np.empty((size, 5, kernel.MOST_OF_N)), np.empty(size, dtype=np.int64)
        kernel.blocks_of_n(
            model, values[batch], reaches, rates, n_prior, edges[batch], numbers, allowed, many, of_n
        )
        is_used = np.arange(kernel.MOST_OF_N) < many[:, None]
        cell = np.repeat(np.arange(size), np.maximum(many, 0))
        left, right, sizes, depth, pole = (of_n[:, column][is_used] for column in range(5))
        blocks = Blocks(
            row=cell, left=left, right=right, size=sizes, depth=depth, pole=pole, top=np.zeros(size)
        )
        # Of no cell there may be blocks.
        columns = [(cell[:0], left[:0], left[:0])]
        for of_cell, nodes, weights in nodes_of(blocks, is_sum=True, tolerance=fineness.of_n):
            kept = weights != 0.0
            columns.append((np.broadcast_to(of_cell[:, None], kept.shape)[kept], nodes[kept], weights[kept]))
        cell, n, weight = (np.concatenate(column) for column in zip(*columns, strict=True))
        order = np.argsort(cell, kind="stable")
        return cell[order], n[order], weight[order], many < 0

    return private
