"""The noise of one release: drawn before it meets totals where memory holds it, used once, overwritten."""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.rows.chunk.exact_sums import wipe
from suffice.pipeline.rows.mechanism.cone.sampler import ConeSampler, cone_noise
from suffice.pipeline.rows.mechanism.noise import CHUNK, Sampler, discrete_laplace
from suffice.pipeline.rows.mechanism.sampling import CellSampler
from suffice.pipeline.rows.sources.contract import name_alone, refuse
from suffice.pipeline.terms.statistics.sensitivity import cone_records
from suffice.pipeline.terms.statistics.statistic_plan import INT64

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    from numpy.typing import NDArray

    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.fields import StatisticSpec
    from suffice.pipeline.terms.statistics.sensitivity import NeighboringRelation
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan

BLOCK_DRAWS = 1 << 16
"""Draws of a block, or those of one cell where they are more: its totals are Python integers at a time."""

MOST_HELD = 1 << 29
"""Bytes of noise that may wait for totals; of a release with more none does."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Noise:
    """The noise of consecutive cells of one statistic, which threads are drawing.

    Its values are int64, or on a cone perhaps Python integers, as the statistic's are. It is an array of its
    own: overwriting it overwrites no other's.
    """

    cells: slice
    values: NDArray[Any]
    draws: list[Future[None]]

    def wait(self) -> None:
        """Wait until it is drawn; raise what a thread raised."""
        for draw in self.draws:
            draw.result()


class HeldNoise:
    """The noise of one release, and the threads that draw it.

    OpenDP's privacy map of every statistic, or the rate of its cone noise, is checked when it is made, before
    anything is drawn. Where all
    noise of the release takes at most `most_held` bytes, drawing begins then; else the noise of a block is
    drawn when that block is asked for, as samples always are, which depend on exact totals. Each block is
    handed out once. It is not printed, pickled, copied or compared.

    Parameters
    ----------
    spec, plan : Spec, Plan
        The spec that is charged, and its plan.
    most_held : int
        Bytes; 0 holds nothing.

    Raises
    ------
    ValueError
        Where OpenDP's map of a measurement, or the rate of cone noise, exceeds its statistic's epsilon, or a
        scale is out of range.
    """

    def __init__(self, spec: Spec, plan: Plan, *, most_held: int = MOST_HELD) -> None:
        self.spec = spec
        self.plan = plan
        self._held: dict[str, deque[Noise]] = {}
        self.n_threads = os.cpu_count() or 1
        self.threads = ThreadPoolExecutor(self.n_threads, thread_name_prefix="suffice-noise")
        self._is_open = True
        self._samplers = {
            statistic.name: _sampler(statistic, spec.statistics[statistic.name], plan.neighboring)
            for statistic in plan.statistics
        }
        noisy = [statistic for statistic in plan.statistics if statistic.sample is None]
        if sum(map(_size, noisy)) <= most_held:
            # proof: drawn-before
            for statistic in noisy:
                self._held[statistic.name] = deque(self._blocks(statistic, statistic.n_cells))

    __repr__ = name_alone
    __reduce_ex__ = refuse

    def wait(self) -> None:
        """Wait until all that is held is drawn; raise what a thread raised."""
        for blocks in self._held.values():
            for block in blocks:
                block.wait()

    def sampler(self, statistic: StatisticPlan) -> CellSampler | None:
        """Return what draws a statistic's samples; None where noise is added to it."""
        sampler = self._samplers[statistic.name]
        return sampler if isinstance(sampler, CellSampler) else None

    def blocks(self, statistic: StatisticPlan, n_cells: int) -> Iterator[Noise]:
        """Hand out a statistic's noise, in blocks of cells, once; whoever takes a block overwrites it.

        Raises
        ------
        ValueError
            Where it was handed out, or overwritten, before.
        """
        # proof: drawn-before
        if not self._is_open:
            message = "the noise was used before"
            raise ValueError(message)
        held = self._held.get(statistic.name)
        if held is None:
            yield from self._blocks(statistic, n_cells)
            return
        while held:
            yield held.popleft()

    def wipe(self) -> None:
        """Stop drawing, and overwrite all noise that nobody has taken; it cannot be used any more."""
        self._is_open = False
        self.threads.shutdown(cancel_futures=True)
        for blocks in self._held.values():
            for block in blocks:
                wipe(block.values)
            blocks.clear()

    def __del__(self) -> None:
        """Overwrite what an interrupt left behind."""
        if getattr(self, "_is_open", False):
            self.wipe()

    def _blocks(self, statistic: StatisticPlan, n_cells: int) -> Iterator[Noise]:
        """Divide a statistic's cells, and start to draw for each block when it is asked for."""
        sampler = self._samplers[statistic.name]
        if isinstance(sampler, CellSampler):
            message = f"no noise is added to {statistic.name}"
            raise TypeError(message)
        for cells in blocks_of_cells(n_cells, statistic.n_values):
            size = cells.stop - cells.start
            values: NDArray[Any] = np.zeros(size * statistic.n_values, np.int64)
            if isinstance(sampler, ConeSampler):  # those of a cell are drawn together
                kind = np.int64 if statistic.value_type == INT64 else object
                values = np.zeros((size, statistic.n_values), kind)
            yield Noise(cells=cells, values=values, draws=sampler.start(values, self.threads))

    @property
    def most_ahead(self) -> int:
        """How many draws the threads may be ahead of the blocks that were taken."""
        return 2 * self.n_threads * CHUNK


def _size(statistic: StatisticPlan) -> int:
    """Return how many bytes its noise takes: of a value 8, and some 48 of a Python integer."""
    is_wide = statistic.cone is not None and statistic.value_type != INT64
    return statistic.n_cells * statistic.n_values * (48 if is_wide else 8)


def _sampler(
    statistic: StatisticPlan, entry: StatisticSpec, neighboring: NeighboringRelation
) -> Sampler | ConeSampler | CellSampler:
    """Return what draws a statistic's noise or its samples; nothing has been drawn from it.

    Raises
    ------
    ValueError
        Where it would lose more than the statistic may.
    """
    if statistic.sample is not None:
        return CellSampler.of(statistic, entry)
    if statistic.cone is None:
        return discrete_laplace(
            scale=statistic.scale,
            loss=statistic.loss,
            l1_sensitivity=statistic.l1_sensitivity,
            l2_squared=statistic.l2_squared,
        )
    noise, contribution = statistic.cone, statistic.contribution
    # proof: cone-privacy
    records = cone_records(neighboring, 1 if contribution is None else contribution.rows)
    if statistic.loss.rho is not None or noise.rate * records > statistic.loss.amount:
        message = "the rate of cone noise exceeds epsilon over the records that a unit changes"
        raise ValueError(message)
    # A record is 1 on the cone of the lattice that its columns are on, and of no other.
    columns, bits = statistic.parameters.columns, statistic.parameters.lattice_bits
    if bits is None or (noise.columns, noise.steps) != (len(columns), 1 << bits):
        message = "cone noise is of other columns, or of another lattice, than the statistic"
        raise ValueError(message)
    return cone_noise(rate=noise.rate, columns=noise.columns, linear=noise.linear, steps=noise.steps)


def blocks_of_cells(n_cells: int, of_cell: int) -> Iterator[slice]:
    """Divide cells into consecutive blocks of at most `BLOCK_DRAWS` draws, so many in each cell."""
    most = max(1, BLOCK_DRAWS // of_cell)
    for start in range(0, n_cells, most):
        yield slice(start, min(start + most, n_cells))
