"""The mechanism: exact totals in, blocks of noisy totals out, once. Claims and proof in ``mechanism.md``."""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.chunk.exact_sums import Table, to_python, wipe, wipe_sums
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.within_unit import totals_of
from suffice.pipeline.mechanism.noise import CHUNK, Sampler, discrete_laplace
from suffice.pipeline.statistics.statistic_plan import INT64

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping
    from concurrent.futures import Future

    from numpy.typing import NDArray

    from suffice.pipeline.chunk.exact_sums import Sums
    from suffice.pipeline.chunk.exact_totals import ExactTotals
    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.statistics.statistic_plan import StatisticPlan

    Values = NDArray[np.int64] | NDArray[np.object_]
    Blocks = Generator[tuple[str, Values]]

BLOCK_DRAWS = 1 << 16
"""Draws of a block, or those of one cell where they are more: its totals are Python integers at a time."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _Block:
    """Consecutive cells of one statistic, and the noise that threads are drawing for them."""

    statistic: StatisticPlan
    cells: slice
    noise: NDArray[np.int64]
    draws: list[Future[None]]


def privatize(totals: ExactTotals, spec: Spec, plan: Plan) -> Blocks:
    r"""Add discrete Laplace noise to every component of every statistic in every cell.

    .. math:: Y = S + Z, \qquad Z_i \sim \mathrm{DLap}(b_j) \text{ independently}

    OpenDP's privacy map of every statistic is checked when this is called, before anything is drawn. Noise
    is drawn while the blocks are taken, by threads that run ahead by a bounded number of draws. Close the
    generator where it is not taken to its end.

    The totals are opened when the first block is asked for, and overwritten when the generator ends, however
    it ends. Call it once per charge, after the charge entered ``drawing``.

    Parameters
    ----------
    totals : ExactTotals
        What the pass over the data summed; empty afterwards.
    spec, plan : Spec, Plan
        The spec that was charged, and its plan.

    Yields
    ------
    (str, ndarray of int64 or of Python integers, shape (n_block_cells, n_components))
        A statistic's name and noisy components of consecutive cells in lattice units: statistics in the
        plan's order, the cells of each in theirs, none empty. The type is the one that the statistic's
        column has by the plan; a value beyond that type is set to its end. The array is the caller's, to be
        overwritten (`wipe`) when its values stand where they are kept.
    """
    # proof: draw-once
    samplers = {
        statistic.name: discrete_laplace(
            scale=statistic.scale, l1_sensitivity=statistic.l1_sensitivity, epsilon=statistic.epsilon
        )
        for statistic in plan.statistics
    }
    return _noisy_blocks(totals, spec, plan, samplers)


def _noisy_blocks(totals: ExactTotals, spec: Spec, plan: Plan, samplers: Mapping[str, Sampler]) -> Blocks:
    """Keep the threads drawing; add what they have drawn, block by block."""
    n_threads = os.cpu_count() or 1
    most_ahead = 2 * n_threads * CHUNK
    waiting: deque[_Block] = deque()
    ahead = 0
    sums = totals.open_totals()
    with ThreadPoolExecutor(n_threads, thread_name_prefix="suffice-noise") as threads:
        try:
            for block in _blocks(sums, plan, samplers, threads):
                waiting.append(block)
                ahead += block.noise.size
                while ahead - waiting[0].noise.size >= most_ahead:
                    yield waiting[0].statistic.name, _noisy(waiting[0], sums, spec)
                    ahead -= waiting.popleft().noise.size
            while waiting:
                yield waiting[0].statistic.name, _noisy(waiting[0], sums, spec)
                waiting.popleft()
        finally:
            # proof: contained
            threads.shutdown(cancel_futures=True)
            for block in waiting:
                wipe(block.noise)
            wipe_sums(sums)


def _blocks(
    sums: Sums, plan: Plan, samplers: Mapping[str, Sampler], threads: ThreadPoolExecutor
) -> Iterator[_Block]:
    """Divide statistics into blocks of cells, and start to draw the noise of each when it is asked for."""
    for statistic in plan.statistics:
        n_cells, n_components = len(sums[statistic.name].low), len(statistic.components)
        most = max(1, BLOCK_DRAWS // n_components)
        for start in range(0, n_cells, most):
            cells = slice(start, min(start + most, n_cells))
            noise = np.zeros((cells.stop - cells.start) * n_components, np.int64)
            draws = samplers[statistic.name].start(noise, threads)
            yield _Block(statistic=statistic, cells=cells, noise=noise, draws=draws)


def _noisy(block: _Block, sums: Sums, spec: Spec) -> Values:
    """Wait for a block's noise, and add it to the totals in Python integers."""
    for draw in block.draws:
        draw.result()  # raises what a thread raised
    statistic, table = block.statistic, sums[block.statistic.name]
    part = Table(low=table.low[block.cells], high=None if table.high is None else table.high[block.cells])
    exact = to_python({statistic.name: part})[statistic.name]
    totals = totals_of(FAMILIES[statistic.family], spec.statistics[statistic.name], statistic, exact)
    noise = block.noise.reshape(totals.shape)
    noisy: Values = noise if statistic.value_type == INT64 else np.empty(noise.shape, dtype=object)
    noisy[...] = np.clip(totals + noise.astype(object), *statistic.value_limits)
    if noisy is not noise:
        wipe(noise)
    return noisy
