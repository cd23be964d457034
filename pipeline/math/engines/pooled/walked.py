r"""Series on their points: likelihoods, and chains of the recursions at every node of the hyperparameters.

Model. ``walk``. A random walk has one chain at each node. A process that returns to a level m has one for
each of some evenly spaced levels, of which a series has its own,

.. math:: p(m \mid y_i, h) \propto p(m) \, p(y_i \mid m, h), \qquad
    p(y_i \mid h) = \sum_m p(m) \, p(y_i \mid m, h). \qquad (1)

Levels are as far from the middle point of a series as from that of any other, so that all have the same
matrices of steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.pooled.series import focus_of
from suffice.pipeline.math.engines.pooled.walk import JUMP_SCALE, StepKernel, log_evidence, smoothed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from suffice.pipeline.math.engines.pooled.hyperpriors import LocationPrior
    from suffice.pipeline.math.engines.pooled.series import CellsInOrder
    from suffice.pipeline.math.engines.pooled.walk import Smoothed
    from suffice.pipeline.math.engines.pooled.walk_steps import Points, WalkNode
    from suffice.typing import Cells, Floats, Mask

_KEPT = 40_000_000
"""Numbers of likelihoods that are kept between rounds: 320 MB."""
_AT_ONCE = 300_000
_LEVELS_AT_ONCE = 1_000_000
"""Numbers of matrices, and of likelihoods, of the levels that are followed together."""
_NEGLIGIBLE = 1e-7
"""Of a level: it is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Some series of about the same width.

    Attributes
    ----------
    series : ndarray of int64
    grid : ndarray of shape (n_series, n_points), float64
    likelihood : ndarray of shape (n_series, n_times, n_points), float64
    """

    series: Cells
    grid: Floats
    likelihood: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """What the recursions need of some series at one node, and at one level where there are levels.

    Attributes
    ----------
    kernel : StepKernel
    first : ndarray of shape (n_series, n_points), float64
        Masses of first positions.
    log_prior : ndarray of shape (n_series,), float64
        log p(m) of (1), with the spacing of levels; 0 of a walk.
    """

    kernel: StepKernel
    first: Floats
    log_prior: Floats


@dataclass(frozen=True, slots=True)
class Walked:
    """Likelihoods of series on their points, and the law of first positions, or of levels."""

    cells: CellsInOrder
    points: Points
    prior: LocationPrior
    jumps: float
    _kept: dict[int, Block] = field(default_factory=dict)

    def blocks(self, series: Cells | None = None) -> Iterator[Block]:
        """Give all series, or these, with their likelihoods: those of the same width together."""
        n_series, n_times = self.cells.cell.shape
        chosen = np.arange(n_series) if series is None else series
        chosen = chosen[np.argsort(-self.points.reach[chosen], kind="stable")]
        is_kept = series is None and n_series * n_times * self.points.most <= _KEPT
        focus, start = focus_of(*self.points.ends), 0
        while start < len(chosen):
            n_points = 2 * int(self.points.reach[chosen[start]]) + 1
            stop = start + max(1, _AT_ONCE // (n_times * n_points))
            block = self._kept.get(start) if is_kept else None
            if block is None:
                rows = chosen[start:stop]
                grid = self.points.grid(rows)
                log_likelihood = self.cells.log_likelihood(rows, grid, focus)
                block = Block(series=rows, grid=grid, likelihood=np.exp(log_likelihood))
                if is_kept:
                    self._kept[start] = block
            yield block
            start = stop

    def chains(self, node: WalkNode, block: Block, levels: Cells | None = None) -> Iterator[Chain]:
        """Give the chain of some series at a node, or that of each level, or of these."""
        n_points, spacing = block.grid.shape[1], self.points.spacing
        if node.levels is None:
            kernel = StepKernel.of(node.step, spacing, n_points, self.jumps)
            log_first = self.prior.log_density(block.grid)
            yield Chain(kernel=kernel, first=_scaled(log_first), log_prior=np.zeros(len(block.series)))
            return
        middle = block.grid[:, n_points // 2]
        apart = np.log(node.levels[1] - node.levels[0])
        sd = node.step / np.sqrt(1.0 - node.coefficient**2)
        for level in node.levels[slice(None) if levels is None else levels].tolist():
            place = spacing * (np.arange(n_points) - n_points // 2) - level
            kernel = StepKernel.returning(place, node.step, node.coefficient, self.jumps)
            normal = (1.0 - self.jumps) * np.exp(-0.5 * (place / sd) ** 2) / (sd * np.sqrt(2.0 * np.pi))
            jump = self.jumps * np.exp(-np.abs(place) / JUMP_SCALE) / (2.0 * JUMP_SCALE)
            first = np.broadcast_to(spacing * (normal + jump), block.grid.shape)
            yield Chain(kernel=kernel, first=first, log_prior=self.prior.log_density(middle + level) + apart)

    def shared(self, node: WalkNode, block: Block) -> Iterator[tuple[Chain, Floats]]:
        """Give chains with p(m | y_i, h) of (1), (n_series,); 1 of a walk."""
        if node.levels is None:
            for chain in self.chains(node, block):
                yield chain, np.ones(len(block.series))
            return
        log_joint = self.log_joint(node, block)
        share = np.exp(log_joint - np.logaddexp.reduce(log_joint, axis=0))
        counts = np.flatnonzero(np.max(share, axis=1) > _NEGLIGIBLE)
        yield from zip(self.chains(node, block, counts), share[counts], strict=True)

    def smoothed(self, node: WalkNode, block: Block, is_seen: Mask) -> Iterator[tuple[Smoothed, Floats]]:
        """Give what each chain says of every time, with p(m | y_i, h) of (1), (n_series,)."""
        chains, shares = zip(*self.shared(node, block), strict=True)
        for start, chain, likelihood in self._together(chains, block):
            n_levels = len(chain.first) // len(block.series)
            of_levels = smoothed(likelihood, chain.first, chain.kernel, np.tile(is_seen, (n_levels, 1)))
            for level in range(n_levels):
                rows = slice(level * len(block.series), (level + 1) * len(block.series))
                yield of_levels.take(rows), shares[start + level]

    def log_joint(self, node: WalkNode, block: Block) -> Floats:
        """Return log p(m) p(y_i | m, h) of (1), (n_levels, n_series)."""
        log_joint = [
            log_evidence(likelihood, chain.first, chain.kernel) + chain.log_prior
            for _, chain, likelihood in self._together(list(self.chains(node, block)), block)
        ]
        return np.concatenate(log_joint).reshape(-1, len(block.series))

    def _together(self, chains: Sequence[Chain], block: Block) -> Iterator[tuple[int, Chain, Floats]]:
        """Give chains of several levels as one, the number of the first, and likelihoods of its series."""
        at_once = max(1, _LEVELS_AT_ONCE // max(chains[0].kernel.normal.size, block.likelihood.size))
        for start in range(0, len(chains), at_once):
            few = chains[start : start + at_once]
            if len(few) == 1:
                yield start, few[0], block.likelihood
                continue
            together = Chain(
                kernel=StepKernel.of_levels([each.kernel for each in few]),
                first=np.concatenate([each.first for each in few]),
                log_prior=np.concatenate([each.log_prior for each in few]),
            )
            yield start, together, np.tile(block.likelihood, (len(few), 1, 1))

    def evidence(self, nodes: Sequence[WalkNode]) -> Floats:
        """Return log evidence of all series together, (n_nodes,)."""
        total = np.zeros(len(nodes))
        for block in self.blocks():
            for number, node in enumerate(nodes):
                total[number] += np.sum(np.logaddexp.reduce(self.log_joint(node, block), axis=0))
        return total


def _scaled(log_density: Floats) -> Floats:
    """Return masses that add up to 1 over points."""
    mass = np.exp(log_density - np.max(log_density, axis=1, keepdims=True))
    return np.asarray(mass / np.sum(mass, axis=1, keepdims=True))
