"""The mechanism: exact totals in, blocks of draws out, once. Claims and proof in ``mechanism.md``."""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.chunk.exact_sums import Table, to_python, wipe, wipe_sums
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.within_unit import totals_of
from suffice.pipeline.mechanism.noise import CHUNK, Sampler, discrete_laplace
from suffice.pipeline.mechanism.sampling import CellSampler
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
class _NoiseBlock:
    """Consecutive cells of one statistic, and the noise that threads are drawing for them."""

    statistic: StatisticPlan
    cells: slice
    noise: NDArray[np.int64]
    draws: list[Future[None]]

    @property
    def size(self) -> int:
        """How many draws of noise it is."""
        return self.noise.size

    def take(self, sums: Sums, spec: Spec) -> Values:
        """Wait for the noise, and add it to the totals in Python integers."""
        for draw in self.draws:
            draw.result()  # raises what a thread raised
        statistic = self.statistic
        exact = _exact(sums, statistic, self.cells)
        totals = totals_of(FAMILIES[statistic.family], spec.statistics[statistic.name], statistic, exact)
        noise = self.noise.reshape(totals.shape)
        noisy: Values = noise if statistic.value_type == INT64 else np.empty(noise.shape, dtype=object)
        noisy[...] = np.clip(totals + noise.astype(object), *statistic.value_limits)
        if noisy is not noise:
            wipe(noise)
        return noisy

    def wipe(self) -> None:
        """Overwrite the noise."""
        wipe(self.noise)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _SampleBlock:
    """Consecutive cells of one statistic, and the grid points that threads are drawing for them."""

    statistic: StatisticPlan
    scores: NDArray[np.int64]
    chosen: NDArray[np.int64]
    draws: list[Future[None]]

    @property
    def size(self) -> int:
        """How many candidates it is: a draw goes over all of its cell."""
        return self.scores.size

    def take(self, _sums: Sums, _spec: Spec) -> Values:
        """Wait for the draws, and overwrite what they were drawn by."""
        for draw in self.draws:
            draw.result()
        wipe(self.scores)
        return self.chosen

    def wipe(self) -> None:
        """Overwrite scores and draws."""
        wipe(self.scores)
        wipe(self.chosen)


def privatize(totals: ExactTotals, spec: Spec, plan: Plan) -> Blocks:
    r"""Add discrete Laplace noise to every component of every statistic in every cell, or draw its samples.

    .. math:: Y = S + Z, \qquad Z_i \sim \mathrm{DLap}(b_j) \text{ independently}

    Of a statistic that is sampled, draws of a grid point by the exponential mechanism are given instead.

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
    (str, ndarray of int64 or of Python integers, shape (n_block_cells, n_values))
        A statistic's name and noisy components of consecutive cells in lattice units, or points of its grid:
        statistics in the plan's order, the cells of each in theirs, none empty. The type is the one that the
        statistic's column has by the plan; a value beyond that type is set to its end. The array is the
        caller's, to be overwritten (`wipe`) when its values stand where they are kept.
    """
    # proof: draw-once
    samplers: dict[str, Sampler | CellSampler] = {
        statistic.name: CellSampler.of(statistic, spec.statistics[statistic.name])
        if statistic.sample is not None
        else discrete_laplace(
            scale=statistic.scale, l1_sensitivity=statistic.l1_sensitivity, epsilon=statistic.epsilon
        )
        for statistic in plan.statistics
    }
    return _drawn_blocks(totals, spec, plan, samplers)


def _drawn_blocks(
    totals: ExactTotals, spec: Spec, plan: Plan, samplers: Mapping[str, Sampler | CellSampler]
) -> Blocks:
    """Keep the threads drawing; give what they have drawn, block by block."""
    n_threads = os.cpu_count() or 1
    most_ahead = 2 * n_threads * CHUNK
    waiting: deque[_NoiseBlock | _SampleBlock] = deque()
    ahead = 0
    sums = totals.open_totals()
    with ThreadPoolExecutor(n_threads, thread_name_prefix="suffice-noise") as threads:
        try:
            for block in _blocks(sums, plan, samplers, threads):
                waiting.append(block)
                ahead += block.size
                while ahead - waiting[0].size >= most_ahead:
                    yield waiting[0].statistic.name, waiting[0].take(sums, spec)
                    ahead -= waiting.popleft().size
            while waiting:
                yield waiting[0].statistic.name, waiting[0].take(sums, spec)
                waiting.popleft()
        finally:
            # proof: contained
            threads.shutdown(cancel_futures=True)
            for block in waiting:
                block.wipe()
            wipe_sums(sums)


def _blocks(
    sums: Sums, plan: Plan, samplers: Mapping[str, Sampler | CellSampler], threads: ThreadPoolExecutor
) -> Iterator[_NoiseBlock | _SampleBlock]:
    """Divide statistics into blocks of cells, and start to draw for each when it is asked for."""
    for statistic in plan.statistics:
        sampler = samplers[statistic.name]
        n_cells = len(sums[statistic.name].low)
        of_cell = statistic.n_values if statistic.sample is None else statistic.sample.grid
        most = max(1, BLOCK_DRAWS // of_cell)
        for start in range(0, n_cells, most):
            cells = slice(start, min(start + most, n_cells))
            if isinstance(sampler, Sampler):
                noise = np.zeros((cells.stop - cells.start) * of_cell, np.int64)
                draws = sampler.start(noise, threads)
                yield _NoiseBlock(statistic=statistic, cells=cells, noise=noise, draws=draws)
            else:
                scores = sampler.scores(_exact(sums, statistic, cells))
                chosen = np.zeros((len(scores), sampler.draws), np.int64)
                draws = sampler.start(scores, chosen, threads)
                yield _SampleBlock(statistic=statistic, scores=scores, chosen=chosen, draws=draws)


def _exact(sums: Sums, statistic: StatisticPlan, cells: slice) -> NDArray[Any]:
    """Return the exact sums of some cells, in Python integers."""
    table = sums[statistic.name]
    part = Table(low=table.low[cells], high=None if table.high is None else table.high[cells])
    return to_python({statistic.name: part})[statistic.name]
