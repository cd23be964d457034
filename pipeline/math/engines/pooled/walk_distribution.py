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
from suffice.pipeline.math.engines.pooled.walk import StepKernel, drawn, filtered, log_evidence, smoothed
from suffice.pipeline.math.engines.pooled.walk_steps import (
    StepPosterior,
    approximated,
    first_ends,
    least_step,
    narrowest,
    points_of,
    weighed,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.math.distributions.distribution import Line
    from suffice.pipeline.math.engines.pooled.hyperpriors import LocationPrior
    from suffice.pipeline.math.engines.pooled.series import CellsInOrder
    from suffice.pipeline.math.engines.pooled.walk_steps import Points
    from suffice.typing import Cells, Floats

_KEPT = 40_000_000
"""Numbers of likelihoods that are kept between rounds: 320 MB."""
_AT_ONCE = 300_000
_FIRST_CELLS = 1_500
_FEW_CELLS, _FEWEST, _MOST = 5_000, (321, 161), 1601
_APART = (0.6, 0.45)
"""How far apart points are, in standard deviations of the narrowest posterior at the least step in question:
where a wide range of steps is, and where a part of the series has told it."""
_AT_AN_END, _TOO_MUCH = 5e-4, 5e-3
_BEYOND = 0.01
"""What of a law without a cell may lie beyond the points on which it is held out."""
_FLOOR = 1e-300
_WIDER = ((1.0, 1.5, 2.5), (1.4, 2.0, 3.0))
"""What ranges of points are tried, of few series and of many: among these are cells that say next to nothing
on one side, and may have jumped."""


@dataclass(frozen=True, slots=True)
class Walked:
    """Likelihoods of series on their points, and the law of first positions."""

    cells: CellsInOrder
    points: Points
    prior: LocationPrior
    jumps: float
    _kept: dict[int, Floats] = field(default_factory=dict)

    def blocks(self, series: Cells | None = None) -> Iterator[tuple[Cells, Floats, Floats]]:
        """Give series, their likelihoods (n_series, n_times, n_points), and masses of first positions.

        All series, or these.
        """
        n_series, n_times = self.cells.cell.shape
        chosen = np.arange(n_series) if series is None else series
        at_once = max(1, _AT_ONCE // (n_times * self.points.n_points))
        is_kept = series is None and n_series * n_times * self.points.n_points <= _KEPT
        whole = self.points.grid
        focus = focus_of(whole)
        for start in range(0, len(chosen), at_once):
            rows = chosen[start : start + at_once]
            likelihood = self._kept.get(start) if is_kept else None
            if likelihood is None:
                likelihood = np.exp(self.cells.log_likelihood(rows, whole[rows], focus))
                if is_kept:
                    self._kept[start] = likelihood
            log_first = self.prior.log_density(whole[rows])
            first = np.exp(log_first - np.max(log_first, axis=1, keepdims=True))
            yield rows, likelihood, first / np.sum(first, axis=1, keepdims=True)

    def kernel(self, step: float) -> StepKernel:
        """Steps between points."""
        return StepKernel.of(step, self.points.spacing, self.points.n_points, self.jumps)

    def evidence(self, step: Floats) -> Floats:
        """Return log evidence of all series together, (n_steps,)."""
        kernels = [self.kernel(each) for each in step.tolist()]
        total = np.zeros(len(step))
        for _, likelihood, first in self.blocks():
            total += [np.sum(log_evidence(likelihood, first, kernel)) for kernel in kernels]
        return total


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

    def sample(self, draws: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Joint draws: the step first, then a path of every series."""
        of_steps = rng.multinomial(draws, self.steps.weight)
        position = np.empty((draws, self.n_cells))
        points, cell = self.walked.points, self.walked.cells.cell
        shift = (rng.random((draws, len(cell))) - 0.5) * points.spacing
        kernels = [self.walked.kernel(step) for step in self.steps.step.tolist()]
        for series, likelihood, first in self.walked.blocks():
            done = 0
            row, time = np.nonzero(cell[series] >= 0)
            for kernel, count in zip(kernels, of_steps.tolist(), strict=True):
                if not count:
                    continue
                forward, _ = filtered(likelihood, first, kernel)
                path = drawn(forward, kernel, count, rng)[row, :, time].T
                at = points.low[series[row]] + points.spacing * path
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
        log_z, beyond = np.empty((len(self.steps.step), self.n_cells)), np.zeros(self.n_cells)
        series = np.arange(len(cell))
        while len(series):
            _hold_out(walked, self.steps, series, log_z, beyond)
            of_series = np.max(np.where(cell >= 0, beyond[cell], 0.0), axis=1)
            series = np.flatnonzero(of_series > _BEYOND)
            further = min(walked.points.n_points, _MOST - walked.points.n_points) // 2
            if further < 1:
                break
            walked = replace(walked, points=walked.points.longer(further), _kept={})
        scores = HeldOutScores.of_nodes(log_z, self.steps.weight)
        return replace(scores, effective=np.where(beyond > _BEYOND, 0.0, scores.effective))


def _hold_out(walked: Walked, steps: StepPosterior, series: Cells, log_z: Floats, beyond: Floats) -> None:
    """Put log p(y_t | y_-t, s) of the cells of some series, and what lies beyond the points, in their places.

    ``log_z`` is (n_steps, n_cells), ``beyond`` (n_cells,).
    """
    cells, points = walked.cells, walked.points
    for rows, likelihood, first in walked.blocks(series):
        is_seen = cells.cell[rows] >= 0
        row, time = np.nonzero(is_seen)
        of_block = cells.cell[rows][row, time]
        highest = cells.highest(rows, points.grid[rows], focus_of(points.grid))[row, time]
        beyond[of_block] = 0.0
        for number, (step, weight) in enumerate(zip(steps.step.tolist(), steps.weight.tolist(), strict=True)):
            of_others = smoothed(likelihood, first, walked.kernel(step), is_seen).of_others[row, time]
            z = np.einsum("ij,ij->i", of_others, likelihood[row, time])
            log_z[number, of_block] = highest + np.log(np.maximum(z, _FLOOR))
            # Tails of jumps fall by a factor of e over 1, those of first positions over at most 2.
            ends = (of_others[:, 0] + of_others[:, -1]) / points.spacing
            beyond[of_block] += weight * 2.0 * ends


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

    def walked_of(series: Cells, ends: tuple[float, float], apart: float, wider: float) -> Walked:
        points = points_of(
            mean[series],
            precision[series],
            prior,
            ends,
            apart=apart,
            least_points=_FEWEST[cells.n_cells > _FEW_CELLS],
            most_points=_MOST,
            wider=wider,
        )
        return Walked(replace(cells, cell=cells.cell[series]), points, prior, jumps)

    def weighed_of(walked: Walked, ends: tuple[float, float]) -> tuple[StepPosterior, tuple[float, float]]:
        least, n_cells = least_step(walked.points, n_times), int(np.sum(walked.cells.cell >= 0))
        return weighed(walked.evidence, ends, scale=scale, least=least, n_cells=n_cells)

    first = first_ends(approximated(mean[few], precision[few], prior), scale)
    ends, apart, ranges = first, _APART[0], _WIDER[0]
    if len(few) < n_series:
        # Of all series the ends are nearer, and the least step, which points are for, is larger.
        steps, of_few = weighed_of(walked_of(few, ends, apart, 1.0), ends)
        half = 1.3 * (len(few) / n_series) ** 0.5 * (of_few[1] - of_few[0]) / 2.0
        ends = steps.log_mean - half, steps.log_mean + half
        apart, ranges = _APART[1], _WIDER[1]
    for wider in ranges:
        of_points = max(ends[0], first[0]), max(ends[1], first[1])
        walked = walked_of(np.arange(n_series), of_points, apart, wider)
        steps, moved = weighed_of(walked, ends)
        ends = min(ends[0], moved[0]), max(ends[1], moved[1])
        least = max(ends[0], first[0])
        is_fine = walked.points.are_fine_for(narrowest(mean, precision, prior, least))
        result, at_an_end = _mixture(walked, steps, name, line, is_fine=is_fine)
        if at_an_end < _AT_AN_END and (is_fine or walked.points.n_points == _MOST):
            break
    return result


def plugged_in(answer: WalkDistribution) -> WalkDistribution:
    """Return the same with the most probable of some steps plugged in: for comparison, as it is too sure."""
    tried = np.geomspace(0.2 * answer.walked.points.spacing, 3.0, 24)
    best = int(np.argmax(answer.walked.evidence(tried)))
    steps = StepPosterior(step=tried[best : best + 1], weight=np.ones(1), settled=True)
    return _mixture(answer.walked, steps, answer.name, answer.line, is_fine=answer.settled)[0]


def _mixture(
    walked: Walked, steps: StepPosterior, name: str, line: Line, *, is_fine: bool
) -> tuple[WalkDistribution, float]:
    """Return (1), and the largest mass of a cell at the ends of its points."""
    kept, points, cells = steps.kept(), walked.points, walked.cells
    kernels = [walked.kernel(step) for step in kept.step.tolist()]
    mass = np.empty((cells.n_cells, points.n_points))
    own_share, jumped = np.zeros((2, cells.n_cells))
    place = np.arange(points.n_points)
    for series, likelihood, first in walked.blocks():
        is_seen = cells.cell[series] >= 0
        row, time = np.nonzero(is_seen)
        of_block = cells.cell[series][row, time]
        total = np.zeros((len(row), points.n_points))
        for kernel, weight in zip(kernels, kept.weight.tolist(), strict=True):
            of_step = smoothed(likelihood, first, kernel, is_seen)
            here = of_step.mass[row, time]
            total += weight * here
            told = 1.0 - _variance(here, place) / np.maximum(
                _variance(of_step.of_others[row, time], place), 1e-12
            )
            own_share[of_block] += weight * np.clip(told, 0.0, 1.0)
            jumped[of_block] += weight * of_step.jumped[row, time]
        mass[of_block] = total
    series_of = np.empty(cells.n_cells, dtype=np.int64)
    row, time = np.nonzero(cells.cell >= 0)
    series_of[cells.cell[row, time]] = row
    at_an_end = float(np.max(np.concatenate([mass[:, :2], mass[:, -2:]], axis=1)))
    result = WalkDistribution(
        name=name,
        line=line,
        position=points.grid[series_of],
        mass=mass,
        spacing=np.full(mass.shape, points.spacing),
        own_share=own_share,
        outside=jumped,
        steps=kept,
        walked=walked,
        settled=steps.settled and is_fine and at_an_end < _TOO_MUCH,
    )
    return result, at_an_end


def _variance(mass: Floats, place: Cells) -> Floats:
    """Return variances of places, (n_rows,)."""
    mean = mass @ place
    result: Floats = mass @ (place.astype(np.float64) ** 2) - mean**2
    return result
