r"""Posteriors of cells whose parameters walk over time: the step is integrated over.

Model. With the weights of ``walk_steps`` and the recursions of ``walk``,

.. math:: p(x_t \mid y) = \sum_s p(s \mid y) \, p(x_t \mid y, s), \qquad
    \text{own}_t = 1 - \sum_s p(s \mid y)
    \frac{\mathrm{Var}(x_t \mid y, s)}{\mathrm{Var}(x_t \mid y_{-t}, s)}. \qquad (1)

The first position of a series has the hyperprior of locations (``hyperparameters``). Joint draws take s
first, then a path of each series: differences between times are those of the walk.

Method. A draw lies within half a spacing of its point: by as much as the other times of its path.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.math.engines.pooled.held_out_scores import HeldOutScores
from suffice.pipeline.math.engines.pooled.hyperpriors import location_prior
from suffice.pipeline.math.engines.pooled.marginals import LineMarginals
from suffice.pipeline.math.engines.pooled.series import focus_of
from suffice.pipeline.math.engines.pooled.walk import drawn, filtered
from suffice.pipeline.math.engines.pooled.walk_steps import (
    StepPosterior,
    WalkNode,
    approximated,
    first_ends,
    least_step,
    narrowest,
    nodes_of,
    points_of,
    smoothed_at,
    weighed,
)
from suffice.pipeline.math.engines.pooled.walked import Walked

if TYPE_CHECKING:
    from suffice.pipeline.math.distributions.distribution import Line
    from suffice.pipeline.math.engines.pooled.series import CellsInOrder
    from suffice.pipeline.math.engines.pooled.walked import Block
    from suffice.typing import Cells, Floats

_FIRST_CELLS = 1_500
_FEW_CELLS, _FEWEST, _MOST = 5_000, (321, 161), 1601
_APART = (0.6, 0.45)
"""How far apart points are, in standard deviations of the narrowest posterior at the least step in question:
where a wide range of steps is, and where a part of the series has told it."""
_BEYOND, _TOO_MUCH = 2e-5, 5e-3
"""What of a posterior may lie beyond the points: from there on they go on, or are too few."""
_BEYOND_OF_OTHERS = 0.01
"""What of a law without a cell may lie beyond the points on which it is held out."""
_FURTHER = 0.5
"""How far points go on at either end at a time, in units of the line."""
_ROUNDS, _LONGEST = 3, 24
_FLOOR = 1e-300


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkDistribution(LineMarginals):
    """Made by ``walk_distribution``; ``outside`` is how probable it is that a jump leads to a cell.

    Attributes
    ----------
    steps : StepPosterior
    walked : Walked
        For joint draws.
    settled : bool
        Whether steps are resolved, and no posterior is narrower than points are apart.
    """

    steps: StepPosterior
    walked: Walked = field(repr=False)
    settled: bool

    @property
    def shape(self) -> tuple[int, int]:
        """How many series and times there are."""
        n_series, n_times = self.walked.cells.cell.shape
        return n_series, n_times

    @property
    def known(self) -> dict[str, tuple[float, float]]:
        """Posterior means and standard deviations of the hyperparameters, by name."""
        steps = self.steps
        known = {"step": (steps.mean, steps.sd)}
        return known if steps.nodes[0].levels is None else {**known, "coefficient": steps.coefficient}

    @property
    def log_sd(self) -> dict[str, float]:
        """Posterior standard deviations of logarithms of standard deviations."""
        return {"step": self.steps.log_sd}

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Joint draws: the step first, then a path of every series."""
        of_nodes = rng.multinomial(draws, self.steps.weight)
        position = np.empty((draws, self.n_cells))
        cell, spacing = self.walked.cells.cell, self.walked.points.spacing
        shift = (rng.random((draws, len(cell))) - 0.5) * spacing
        for block in self.walked.blocks():
            series, done = block.series, 0
            row, time = np.nonzero(cell[series] >= 0)
            for node, count in zip(self.steps.nodes, of_nodes.tolist(), strict=True):
                if not count:
                    continue
                path = _paths(self.walked, block, node, count, rng)[row, :, time].T
                at = block.grid[row, 0] + spacing * path
                position[done : done + count, cell[series[row], time]] = (
                    at + shift[done : done + count, series[row]]
                )
                done += count
        return {self.name: self.line.parameter(position[rng.permutation(draws)])}

    def left_out(self) -> HeldOutScores:
        """Return how probable what each cell released is, given all other times and series.

        What others say of a cell is wider than its posterior: points go on at either end until next to
        nothing of it lies beyond. Where they cannot, a score is rough.
        """
        walked, cell = self.walked, self.walked.cells.cell
        log_z, beyond = np.empty((len(self.steps.nodes), self.n_cells)), np.zeros(self.n_cells)
        series = np.arange(len(cell))
        while len(series):
            _hold_out(walked, self.steps, series, log_z, beyond)
            of_series = np.max(np.where(cell >= 0, beyond[cell], 0.0), axis=1)
            series = np.flatnonzero(of_series > _BEYOND_OF_OTHERS)
            further = min(walked.points.most, _MOST - walked.points.most) // 4
            if further < 1:
                break
            longer = np.zeros(len(cell), dtype=np.int64)
            longer[series] = 2 * further
            walked = replace(walked, points=walked.points.longer(longer), _kept={})
        scores = HeldOutScores.of_nodes(log_z, self.steps.weight)
        return replace(scores, effective=np.where(beyond > _BEYOND_OF_OTHERS, 0.0, scores.effective))


def _paths(walked: Walked, block: Block, node: WalkNode, count: int, rng: np.random.Generator) -> Cells:
    """Draw paths of some series at a node: numbers of points, (n_series, count, n_times)."""
    chains, shares = zip(*walked.shared(node, block), strict=True)
    n_series, n_times = block.likelihood.shape[:2]
    result = np.empty((n_series, count, n_times), dtype=np.int64)
    # The level of every draw of every series.
    ends = np.cumsum(shares, axis=0)
    chosen = np.sum(rng.random((n_series, count)) * ends[-1][:, None] >= ends[:, :, None], axis=0)
    for number, chain in enumerate(chains):
        is_here = chosen == number
        most = int(np.max(np.sum(is_here, axis=1)))
        if most:
            forward, _ = filtered(block.likelihood, chain.first, chain.kernel)
            path = drawn(forward, chain.kernel, most, rng)
            series, draw = np.nonzero(is_here)
            turn = (np.cumsum(is_here, axis=1) - 1)[series, draw]
            result[series, draw] = path[series, turn]
    return result


def _hold_out(walked: Walked, steps: StepPosterior, series: Cells, log_z: Floats, beyond: Floats) -> None:
    """Put log p(y_t | y_-t, s) of the cells of some series, and what lies beyond the points, in their places.

    ``log_z`` is (n_steps, n_cells), ``beyond`` (n_cells,).
    """
    cells, points = walked.cells, walked.points
    for block in walked.blocks(series):
        is_seen = cells.cell[block.series] >= 0
        row, time = np.nonzero(is_seen)
        of_block = cells.cell[block.series][row, time]
        highest = cells.highest(block.series, block.grid, focus_of(*points.ends))[row, time]
        beyond[of_block] = 0.0
        for number, (node, weight) in enumerate(zip(steps.nodes, steps.weight.tolist(), strict=True)):
            inverse = np.zeros(len(row))
            for of_chain, share in walked.smoothed(node, block, is_seen):
                of_others = of_chain.of_others[row, time]
                z = np.einsum("ij,ij->i", of_others, block.likelihood[row, time])
                inverse += share[row] / np.maximum(z, _FLOOR)
                # Tails of jumps fall by a factor of e over 1, those of first positions over at most 2.
                ends = (of_others[:, 0] + of_others[:, -1]) / points.spacing
                beyond[of_block] += weight * share[row] * 2.0 * ends
            log_z[number, of_block] = highest - np.log(inverse)


def walk_distribution(
    cells: CellsInOrder, name: str, line: Line, *, jumps: float, scale: float
) -> WalkDistribution:
    """Return the posterior of every cell's parameter, the step integrated over.

    Parameters
    ----------
    cells : CellsInOrder
    name : str
        The parameter's.
    line : Line
    jumps : float
        The share of steps that are jumps, in 0..1.
    scale : float
        Of the half-normal hyperprior of steps.
    """
    prior = location_prior(line, cells.middle)
    n_series, n_times = cells.cell.shape
    mean, precision = cells.moments(np.arange(n_series))
    n_few = int(np.clip(_FIRST_CELLS // n_times, min(n_series, 4), n_series))
    few = np.unique(np.linspace(0, n_series - 1, n_few).astype(np.int64))

    def walked_of(series: Cells, ends: tuple[float, float], apart: float) -> Walked:
        points = points_of(
            mean[series],
            precision[series],
            smoothed_at(mean[series], precision[series], prior, ends),
            apart=apart,
            least_points=_FEWEST[cells.n_cells > _FEW_CELLS],
            most_points=_MOST,
        )
        walked = Walked(replace(cells, cell=cells.cell[series]), points, prior, jumps)
        return stretched(walked, WalkNode(step=float(np.exp(0.4 * ends[0] + 0.6 * ends[1]))))

    def weighed_of(walked: Walked, ends: tuple[float, float]) -> tuple[StepPosterior, tuple[float, float]]:
        least, n_cells = least_step(walked.points, n_times), int(np.sum(walked.cells.cell >= 0))
        return weighed(walked.evidence, ends, scale=scale, least=least, n_cells=n_cells)

    first = first_ends(approximated(mean[few], precision[few], prior), scale)
    ends, apart = first, _APART[0]
    if len(few) < n_series:
        # Of all series the ends are nearer, and the least step, which points are for, is larger.
        steps, of_few = weighed_of(walked_of(few, ends, apart), ends)
        half = 1.3 * (len(few) / n_series) ** 0.5 * (of_few[1] - of_few[0]) / 2.0
        ends, apart = (steps.log_mean - half, steps.log_mean + half), _APART[1]
    for _ in range(_ROUNDS):
        of_points = max(ends[0], first[0]), max(ends[1], first[1])
        walked = walked_of(np.arange(n_series), of_points, apart)
        steps, moved = weighed_of(walked, ends)
        ends = min(ends[0], moved[0]), max(ends[1], moved[1])
        is_fine = walked.points.are_fine_for(narrowest(mean, precision, prior, max(ends[0], first[0])))
        if is_fine or walked.points.most >= _MOST:
            break
    return mixture(walked, steps, name, line, is_fine=is_fine)


def stretched(walked: Walked, node: WalkNode) -> Walked:
    """Let points of each series go on until next to nothing of its posterior at a node lies beyond.

    A cell that says next to nothing on one side may have jumped there: tails of jumps fall by a factor of e
    over 1, so that what lies beyond is about the density at an end.
    """
    series = np.arange(len(walked.cells.cell))
    further = int(np.ceil(_FURTHER / walked.points.spacing))
    for _ in range(_LONGEST):
        longer = np.zeros(len(walked.cells.cell), dtype=np.int64)
        for block in walked.blocks(series):
            is_seen = walked.cells.cell[block.series] >= 0
            # The ends of each series: its block may be wider.
            reach, n_points = walked.points.reach[block.series], block.grid.shape[1]
            ends = np.stack([n_points // 2 - reach, n_points // 2 + reach], axis=1)[:, None]
            beyond = np.zeros(len(block.series))
            for of_chain, share in walked.smoothed(node, block, is_seen):
                at_ends = np.sum(np.take_along_axis(of_chain.mass, ends, axis=2), axis=2)
                beyond += share * np.max(np.where(is_seen, at_ends, 0.0), axis=1) / walked.points.spacing
            longer[block.series] = np.where(beyond > _BEYOND, further, 0)
        longer = np.minimum(longer, np.maximum(_MOST // 2 - walked.points.reach, 0))
        series = np.flatnonzero(longer)
        if not len(series):
            break
        walked = replace(walked, points=walked.points.longer(longer), _kept={})
    return walked


def plugged_in(answer: WalkDistribution) -> WalkDistribution:
    """Return the same with the most probable of some steps plugged in: for comparison, as it is too sure."""
    tried = nodes_of(np.geomspace(0.2 * answer.walked.points.spacing, 3.0, 24))
    best = tried[int(np.argmax(answer.walked.evidence(tried)))]
    steps = StepPosterior(nodes=(best,), weight=np.ones(1), settled=True)
    return mixture(answer.walked, steps, answer.name, answer.line, is_fine=answer.settled)


def mixture(
    walked: Walked, steps: StepPosterior, name: str, line: Line, *, is_fine: bool
) -> WalkDistribution:
    """Return (1)."""
    kept, points, cells = steps.kept(), walked.points, walked.cells
    mass = np.zeros((cells.n_cells, points.most))
    own_share, jumped = np.zeros((2, cells.n_cells))
    series_of = np.empty(cells.n_cells, dtype=np.int64)
    for block in walked.blocks():
        is_seen = cells.cell[block.series] >= 0
        row, time = np.nonzero(is_seen)
        of_block = cells.cell[block.series][row, time]
        series_of[of_block] = block.series[row]
        n_points = block.grid.shape[1]
        place, total = np.arange(n_points), np.zeros((len(row), n_points))
        for node, weight in zip(kept.nodes, kept.weight.tolist(), strict=True):
            for of_chain, share in walked.smoothed(node, block, is_seen):
                of_cell = weight * share[row]
                here = of_chain.mass[row, time]
                total += of_cell[:, None] * here
                of_others = np.maximum(_variance(of_chain.of_others[row, time], place), 1e-12)
                own_share[of_block] += of_cell * np.clip(1.0 - _variance(here, place) / of_others, 0.0, 1.0)
                jumped[of_block] += of_cell * of_chain.jumped[row, time]
        start = (points.most - n_points) // 2
        mass[of_block, start : start + n_points] = total
        beyond = float(np.max(total[:, 0] + total[:, -1])) / points.spacing
        is_fine = is_fine and beyond < _TOO_MUCH
    return WalkDistribution(
        name=name,
        line=line,
        position=points.grid(series_of),
        mass=mass,
        spacing=np.broadcast_to(points.spacing, mass.shape),
        own_share=own_share,
        outside=jumped,
        steps=kept,
        walked=walked,
        settled=steps.settled and is_fine,
    )


def _variance(mass: Floats, place: Cells) -> Floats:
    """Return variances of places, (n_rows,)."""
    mean = mass @ place
    result: Floats = mass @ (place.astype(np.float64) ** 2) - mean**2
    return result
