r"""Series of a panel at one step and one common walk: exact recursions from both ends to the middle.

Model. Less the common walk, :math:`z_{it} = x_{it} - \gamma_t` takes steps with the kernel K of ``walk``, and
has the law f_i at the time a. As K is symmetric, both directions of time are alike:

.. math:: p(z_i, y_i) = f_i(z_{ia}) \prod_t K(z_{it} - z_{i,t-1}) \, L_{it}(z_{it} + \gamma_t). \qquad (1)

Method. On evenly spaced points,

.. math::
    A_{t+1} = K (L_t A_t), \quad t < a, \qquad B_{t-1} = K (L_t B_t), \quad t > a, \qquad
    M_i = A_a L_a B_a \qquad (2)

is all that the series says of :math:`z_{ia}`, whatever f is: to a map it is one cell. Going on from there,
with f A_a forwards and f B_a backwards, gives what all others say of each time. (1) is linear in f: a mixture
of hyperparameters that f depends on needs no recursion of its own.

Messages have seven digits where steps may be jumps, which keep them above the least of such numbers.

Symbols: L: ``likelihood``; A, B: ``before``, ``after``; M: ``measure``; f: ``law``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.pooled.cells import cubic
from suffice.pipeline.math.engines.pooled.series import focus_of
from suffice.pipeline.math.engines.pooled.walk import come_from

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.math.engines.pooled.series import CellsInOrder
    from suffice.pipeline.math.engines.pooled.walk import StepKernel
    from suffice.pipeline.math.engines.pooled.walk_steps import Points
    from suffice.typing import Cells, Floats, Mask

_AT_ONCE = 4_000_000
_MARGIN = 0.6
"""How far the common walk may move from where it was first thought to be, in units of the line."""
_FLOOR = 1e-37


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelBlock:
    """Some series, and log likelihoods of their cells on points that go further than z does.

    Attributes
    ----------
    series : ndarray of int64
    grid : ndarray of shape (n_series, n_points), float64
        Of z.
    log_likelihood : ndarray of shape (n_series, n_times, n_points + 2 margin), float32
        Of x, less its highest.
    highest : ndarray of shape (n_series, n_times), float64
        What it is less.
    is_seen : ndarray of shape (n_series, n_times), bool
    """

    series: Cells
    grid: Floats
    log_likelihood: Floats
    highest: Floats
    is_seen: Mask

    @property
    def spacing(self) -> float:
        """Of points."""
        return float(self.grid[0, 1] - self.grid[0, 0])

    @property
    def reach(self) -> float:
        """How far the common walk may go: points on either side, but for those of a cubic."""
        margin = (self.log_likelihood.shape[2] - self.grid.shape[1]) // 2
        return float(margin - 3) * self.spacing

    def take(self, rows: Cells | slice) -> PanelBlock:
        """Return some of its series."""
        return PanelBlock(
            series=self.series[rows],
            grid=self.grid[rows],
            log_likelihood=self.log_likelihood[rows],
            highest=self.highest[rows],
            is_seen=self.is_seen[rows],
        )

    def shifted(self, common: Floats) -> Floats:
        """Return log L of z at a common walk, (n_series, n_times, n_points): cubics between points."""
        n_points = self.grid.shape[1]
        margin = (self.log_likelihood.shape[2] - n_points) // 2
        result = np.empty((*self.log_likelihood.shape[:2], n_points), np.float32)
        for time, shift in enumerate((common / self.spacing).tolist()):
            low = int(np.clip(np.floor(shift), 1 - margin, margin - 3))
            taps = cubic(np.array(1.0 + shift - low))
            start = margin + low - 1
            of_time = self.log_likelihood[:, time]
            result[:, time] = sum(
                of_time[:, start + tap : start + tap + n_points] * float(weight)
                for tap, weight in enumerate(taps)
            )
        return result


def panel_blocks(
    cells: CellsInOrder, points: Points, common: Floats, series: Cells | None = None
) -> list[PanelBlock]:
    """Return all series or some, those of about the same width together.

    Parameters
    ----------
    cells : CellsInOrder
    points : Points
        Of z.
    common : ndarray of shape (n_times,), float64
        About where the common walk is.
    series : ndarray of int64, optional
    """
    n_times = cells.cell.shape[1]
    margin = int(np.ceil((np.max(np.abs(common)) + _MARGIN) / points.spacing)) + 4
    low, high = points.ends
    focus = focus_of(low - margin * points.spacing, high + margin * points.spacing)
    order = np.argsort(-points.reach, kind="stable")
    order = order if series is None else order[np.isin(order, series)]
    blocks, start = [], 0
    while start < len(order):
        n_points = 2 * int(points.reach[order[start]]) + 1
        rows = order[start : start + max(1, _AT_ONCE // (n_times * n_points))]
        grid = points.grid(rows)
        further = np.arange(-margin, grid.shape[1] + margin) * points.spacing
        wide = grid[:, :1] + further
        log_likelihood, highest = cells.with_highest(rows, wide, focus)
        blocks.append(
            PanelBlock(
                series=rows,
                grid=grid,
                log_likelihood=log_likelihood.astype(np.float32),
                highest=highest,
                is_seen=cells.cell[rows] >= 0,
            )
        )
        start += len(rows)
    return blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class Chains:
    """(2) of some series.

    Attributes
    ----------
    block : PanelBlock
    kernel : StepKernel
    anchor : int
    log_likelihood, likelihood : ndarray of shape (n_series, n_times, n_points), float32
    height : ndarray of shape (n_series, n_times), float64
        The logarithm of what the likelihood was divided by.
    before, after : sequence of ndarray of shape (n_series, n_points), float32
        A of times up to the anchor, B of times from it on; each has the highest of 1.
    measure : ndarray of shape (n_series, n_points), float32
        M; the highest of each series is 1.
    log_scale : ndarray of shape (n_series,), float64
        What it was divided by.
    """

    block: PanelBlock
    kernel: StepKernel
    anchor: int
    log_likelihood: Floats
    likelihood: Floats
    height: Floats
    before: Sequence[Floats]
    after: Sequence[Floats]
    measure: Floats
    log_scale: Floats

    @classmethod
    def of(cls, block: PanelBlock, kernel: StepKernel, common: Floats, anchor: int) -> Chains:
        """Run both ways to the anchor."""
        log_likelihood = block.shifted(common)
        highest = np.max(log_likelihood, axis=2)
        likelihood = np.exp(log_likelihood - highest[:, :, None]).astype(kernel.normal.dtype, copy=False)
        height_of = block.highest + highest
        log_scale = np.sum(height_of, axis=1)
        whole = kernel.whole
        n_times = likelihood.shape[1]
        ends: list[list[Floats]] = []
        for times in (range(anchor), range(n_times - 1, anchor, -1)):
            message = np.ones_like(block.grid, kernel.normal.dtype)
            messages = [message]
            for time in times:
                message = kernel.moved(message * likelihood[:, time], whole)
                height = np.maximum(np.max(message, axis=1), _FLOOR)
                message = message / height[:, None]
                log_scale += np.log(height)
                messages.append(message)
            ends.append(messages)
        measure = ends[0][-1] * likelihood[:, anchor] * ends[1][-1]
        height = np.maximum(np.max(measure, axis=1), _FLOOR)
        return cls(
            block=block,
            kernel=kernel,
            anchor=anchor,
            log_likelihood=log_likelihood,
            likelihood=likelihood,
            height=height_of,
            before=tuple(ends[0]),
            after=tuple(ends[1][::-1]),
            measure=measure / height[:, None],
            log_scale=log_scale + np.log(height),
        )

    def paths(self, first: Cells, rng: np.random.Generator) -> Cells:
        """Draw paths both ways from points at the anchor, (n_series, draws): (n_series, draws, n_times)."""
        n_times, a = self.likelihood.shape[1], self.anchor
        result = np.empty((*first.shape, n_times), dtype=np.int64)
        result[:, :, a] = first
        for time in range(a + 1, n_times):
            told = self.likelihood[:, time] * self.after[time - a]
            result[:, :, time] = come_from(told, result[:, :, time - 1], self.kernel, rng)
        for time in range(a - 1, -1, -1):
            told = self.likelihood[:, time] * self.before[time]
            result[:, :, time] = come_from(told, result[:, :, time + 1], self.kernel, rng)
        return result

    def smoothed(self, law: Floats, *, with_jumps: bool = False) -> PanelSmoothed:
        """Go on from the anchor with a law of z there, (n_series, n_points)."""
        n_series, n_times, n_points = self.likelihood.shape
        kind = self.likelihood.dtype
        of_others = np.empty((n_series, n_times, n_points), kind)
        law = (law / np.maximum(np.max(law, axis=1, keepdims=True), _FLOOR)).astype(kind)
        jumped = np.zeros((n_series, n_times))
        whole, jump, a = self.kernel.whole, self.kernel.jump, self.anchor
        of_others[:, a] = self.before[a] * law * self.after[0]
        for times, first, meets in (
            (range(a, n_times - 1), self.before[a] * law, [*self.after[1:]]),
            (range(a, 0, -1), self.after[0] * law, [*self.before[:a]][::-1]),
        ):
            message, direction = first, 1 if times.step > 0 else -1
            for time, met in zip(times, meets, strict=True):
                here = message * self.likelihood[:, time]
                message = self.kernel.moved(here, whole)
                height = np.maximum(np.max(message, axis=1, keepdims=True), _FLOOR)
                message = message / height
                of_others[:, time + direction] = message * met
                if with_jumps:
                    told = met * self.likelihood[:, time + direction]
                    by_jump = np.einsum("ij,ij->i", self.kernel.moved(here, jump) / height, told)
                    in_all = np.maximum(np.einsum("ij,ij->i", message, told), _FLOOR)
                    jumped[:, max(time, time + direction)] = np.clip(by_jump / in_all, 0.0, 1.0)
        of_others /= np.maximum(np.sum(of_others, axis=2, keepdims=True), _FLOOR)
        mass = of_others * self.likelihood
        total = np.maximum(np.sum(mass, axis=2, keepdims=True), _FLOOR)
        mass /= total
        return PanelSmoothed(
            chains=self,
            mass=mass,
            of_others=of_others,
            log_z=np.log(total[:, :, 0].astype(np.float64)),
            jumped=jumped,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelSmoothed:
    """What is known of z at every time.

    Attributes
    ----------
    chains : Chains
    mass, of_others : ndarray of shape (n_series, n_times, n_points), float32
        Given all cells of the series, and given all but that of the time; each adds up to 1.
    log_z : ndarray of shape (n_series, n_times), float64
        Of the likelihood under the latter, but for its scale.
    jumped : ndarray of shape (n_series, n_times), float64
        How probable it is that the step to each time is a jump, where it was asked for.
    """

    chains: Chains
    mass: Floats
    of_others: Floats
    log_z: Floats
    jumped: Floats

    def variances(self) -> tuple[Floats, Floats]:
        """Return those given all cells, and given all but one, (n_series, n_times) each."""
        # Places in points: equal numbers for all series.
        place = np.arange(self.mass.shape[2], dtype=np.float64) - self.mass.shape[2] // 2
        h = self.chains.block.spacing
        powers = np.stack([place**0, place, place**2], axis=1)

        def variance(mass: Floats) -> Floats:
            total, first, second = np.moveaxis(mass.astype(np.float64) @ powers, 2, 0)
            total = np.maximum(total, _FLOOR)
            return np.asarray(np.maximum(second / total - (first / total) ** 2, 1e-6) * h**2)

        return variance(self.mass), variance(self.of_others)

    def gradient(self) -> tuple[Floats, Floats]:
        r"""Return derivatives of log p(y_i) by the common walk, and precisions of cells.

        Both (n_series, n_times). With the score l of a cell the precision is
        :math:`-\operatorname{Cov}(l, z) / \operatorname{Var} z` given all cells: that of a normal cell
        whatever its position has for a law, jumps included.
        """
        h = self.chains.block.spacing
        score = np.gradient(self.chains.log_likelihood, h, axis=2)
        place = np.arange(self.mass.shape[2], dtype=np.float64) - self.mass.shape[2] // 2
        mean = np.einsum("ijk,ijk->ij", self.mass, score, dtype=np.float64)
        centre = self.mass.astype(np.float64) @ place
        gap = place - centre[:, :, None]
        square = np.einsum("ijk,ijk,ijk->ij", self.mass, gap, gap)
        together = np.einsum("ijk,ijk,ijk->ij", self.mass, gap, score)
        return mean, -together / np.maximum(square * h, _FLOOR)
