"""The mechanism: exact totals in, blocks of draws out, once. Claims and proof in ``mechanism.md``."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.beside_sums import totals_of
from suffice.pipeline.rows.chunk.exact_sums import Table, to_python, wipe, wipe_sums
from suffice.pipeline.rows.mechanism.held_noise import HeldNoise, blocks_of_cells
from suffice.pipeline.terms.statistics.statistic_plan import INT64

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from concurrent.futures import Future

    from numpy.typing import NDArray

    from suffice.pipeline.rows.chunk.exact_sums import ExactTotals, Sums
    from suffice.pipeline.rows.mechanism.held_noise import Noise
    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan

    Values = NDArray[np.int64] | NDArray[np.object_]
    Blocks = Generator[tuple[str, Values]]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _NoiseBlock:
    """Consecutive cells of one statistic, and their noise."""

    statistic: StatisticPlan
    noise: Noise

    @property
    def size(self) -> int:
        """How many draws of noise it is."""
        return self.noise.values.size

    def take(self, sums: Sums, spec: Spec) -> Values:
        """Wait for the noise, and add it to the totals in Python integers."""
        self.noise.wait()
        statistic = self.statistic
        exact = _exact(sums, statistic, self.noise.cells)
        totals = totals_of(FAMILIES[statistic.family], spec.statistics[statistic.name], statistic, exact)
        noise = self.noise.values.reshape(totals.shape)
        noisy: Values = noise if statistic.value_type == INT64 else np.empty(noise.shape, dtype=object)
        noisy[...] = np.clip(totals + noise.astype(object), *statistic.value_limits)
        if noisy is not noise:
            wipe(noise)
        return noisy

    def wipe(self) -> None:
        """Overwrite the noise."""
        wipe(self.noise.values)


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


def privatize(totals: ExactTotals, spec: Spec, plan: Plan, noise: HeldNoise | None = None) -> Blocks:
    r"""Add discrete Laplace noise to every component of every statistic in every cell, or draw its samples.

    .. math:: Y = S + Z, \qquad Z_i \sim \mathrm{DLap}(b_j) \text{ independently}

    Of a statistic that is sampled, draws of a grid point by the exponential mechanism are given instead.

    What was not drawn before is drawn while the blocks are taken, by threads that run ahead by a bounded
    number of draws. Close the generator where it is not taken to its end.

    The totals are opened when the first block is asked for. They and the noise are overwritten when the
    generator ends, however it ends. Call it once per charge, after the charge entered ``drawing``.

    Parameters
    ----------
    totals : ExactTotals
        What the pass over the data summed; empty afterwards.
    spec, plan : Spec, Plan
        The spec that was charged, and its plan.
    noise : HeldNoise, optional
        Of this very plan; none of it is left afterwards. Without it OpenDP's privacy map of every statistic
        is checked when this is called, and nothing is drawn before its block is asked for.

    Yields
    ------
    (str, ndarray of int64 or of Python integers, shape (n_block_cells, n_values))
        A statistic's name and noisy components of consecutive cells in lattice units, or points of its grid:
        statistics in the plan's order, the cells of each in theirs, none empty. The type is the one that the
        statistic's column has by the plan; a value beyond that type is set to its end. The array is the
        caller's, to be overwritten (`wipe`) when its values stand where they are kept.

    Raises
    ------
    ValueError
        Where the noise is another plan's or was used before, or a privacy map exceeds its epsilon.
    """
    # proof: draw-once
    if noise is None:
        noise = HeldNoise(spec, plan, most_held=0)
    elif noise.plan is not plan or noise.spec is not spec:
        message = "the noise was drawn for another plan"
        raise ValueError(message)
    return _drawn_blocks(totals, noise)


def _drawn_blocks(totals: ExactTotals, noise: HeldNoise) -> Blocks:
    """Keep the threads drawing; give what they have drawn, block by block."""
    waiting: deque[_NoiseBlock | _SampleBlock] = deque()
    ahead = 0
    sums = totals.open_totals()
    try:
        for block in _blocks(sums, noise):
            waiting.append(block)
            ahead += block.size
            while ahead - waiting[0].size >= noise.most_ahead:
                yield waiting[0].statistic.name, waiting[0].take(sums, noise.spec)
                ahead -= waiting.popleft().size
        while waiting:
            yield waiting[0].statistic.name, waiting[0].take(sums, noise.spec)
            waiting.popleft()
    finally:
        # proof: contained
        noise.wipe()
        for block in waiting:
            block.wipe()
        wipe_sums(sums)


def _blocks(sums: Sums, noise: HeldNoise) -> Iterator[_NoiseBlock | _SampleBlock]:
    """Divide statistics into blocks of cells, and start to draw for each when it is asked for."""
    for statistic in noise.plan.statistics:
        n_cells = len(sums[statistic.name].low)
        sampler = noise.sampler(statistic)
        if sampler is None:
            for drawn in noise.blocks(statistic, n_cells):
                yield _NoiseBlock(statistic=statistic, noise=drawn)
            continue
        for cells in blocks_of_cells(n_cells, len(sampler.log_prior)):
            scores = sampler.scores(_exact(sums, statistic, cells))
            chosen = np.zeros((len(scores), sampler.draws), np.int64)
            draws = sampler.start(scores, chosen, noise.threads)
            yield _SampleBlock(statistic=statistic, scores=scores, chosen=chosen, draws=draws)


def _exact(sums: Sums, statistic: StatisticPlan, cells: slice) -> NDArray[Any]:
    """Return the exact sums of some cells, in Python integers."""
    table = sums[statistic.name]
    part = Table(low=table.low[cells], high=None if table.high is None else table.high[cells])
    return to_python({statistic.name: part})[statistic.name]
