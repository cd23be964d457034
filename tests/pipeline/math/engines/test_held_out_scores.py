"""Cells of regressions, walks and maps held out, beside fits without them and sums over everything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pytest
from scipy.stats import dlaplace, poisson

from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.count_likelihoods import NoisyCount
from suffice.pipeline.math.engines.pooled.cells import Focus, Nodes, nodes_of_positions
from suffice.pipeline.math.engines.pooled.distribution import pooled_distribution
from suffice.pipeline.math.engines.pooled.field import field_distribution
from suffice.pipeline.math.engines.pooled.field_map import FieldMap
from suffice.pipeline.math.engines.pooled.held_out_scores import HeldOutScores
from suffice.pipeline.math.engines.pooled.left_out import left_out
from suffice.pipeline.math.engines.pooled.populations import POPULATIONS
from suffice.pipeline.math.engines.pooled.regression_distribution import regression_distribution
from suffice.pipeline.math.engines.pooled.series import CellsInOrder
from suffice.pipeline.math.engines.pooled.walk import JUMP_SCALE
from suffice.pipeline.math.engines.pooled.walk_distribution import _hold_out, walk_distribution

if TYPE_CHECKING:
    from suffice.typing import Cells, Floats

LOGNORMAL = POPULATIONS[Line.LOGARITHM]["lognormal"]
SCALE = 0.3


@dataclass(frozen=True)
class Rates:
    """Counts behind noise, each of one unit of time; a ``CellsSource``."""

    values: Floats
    scale: float
    has_sizes: ClassVar[bool] = False

    @property
    def n_cells(self) -> int:
        return len(self.values)

    @property
    def middle(self) -> float:
        return float(np.log(np.mean(self.values)))

    def nodes(self, cells: Cells, focus: Focus) -> Nodes:
        value = self.values[cells]
        spread = np.sqrt(value + 2.0 * self.scale**2) / value
        x, log_dx = nodes_of_positions(np.log(value), spread, focus, (-60.0, 34.0))
        counts = NoisyCount(values=value[:, None], scales=np.array([self.scale]))
        return Nodes.of(x, log_dx, np.zeros((len(x), 1)), counts.log_likelihood(x)[:, :, None])


def test_shares_of_nodes_are_the_textbooks() -> None:
    z, weight = np.array([[1.0], [0.5]]), np.array([0.25, 0.75])
    scores = HeldOutScores.of_nodes(np.log(z), weight)
    assert scores.log_predictive[0] == pytest.approx(-np.log(0.25 + 1.5))
    assert scores.effective[0] == pytest.approx(1.75**2 / (0.25 + 3.0))
    assert not scores.is_rough[0]


def test_cells_with_a_covariate_are_those_of_a_fit_without_them() -> None:
    values = 10.0 + np.arange(12.0) % 4.0
    values[[4, 9]] = 240.0, 30.0
    cells, design = Rates(values, 1.0), np.linspace(-1.0, 1.0, 12)[:, None]
    pool = regression_distribution(cells, LOGNORMAL, "rate", Line.LOGARITHM, design)
    scores = pool.left_out()
    # The outlier is taken out for good, as it decides the others; no other is.
    assert list(scores.again) == [4]
    assert not np.any(scores.is_rough)
    assert np.argmin(scores.log_predictive) == 4
    # By draws: some hundredths.
    assert scores.log_predictive[9] == pytest.approx(pool._log_predictive_again(9), abs=0.12)
    # Constants are those of cells without a covariate: one that tells nothing changes little.
    plain = left_out(pooled_distribution(cells, LOGNORMAL, "rate", Line.LOGARITHM))
    others = np.arange(12) != 4
    np.testing.assert_allclose(scores.log_predictive[others], plain.log_predictive[others], atol=0.7)


@dataclass(frozen=True)
class Quadrature:
    """Three times by sums over even positions and steps, without the engine's code."""

    each: Floats
    first: Floats
    kernels: list[Floats]
    weight: Floats

    @classmethod
    def of(cls, values: list[float], jumps: float) -> Quadrature:
        middle = float(np.log(np.mean(values)))
        x = np.linspace(middle - 7.0, middle + 7.0, 561)
        h = x[1] - x[0]
        k = np.arange(int(max(values) + 150))
        chance = poisson.pmf(k, np.exp(x)[:, None])
        gap, far = np.abs(x - middle) / 2.0, x[:, None] - x
        log_steps = np.linspace(np.log(1.5 * h), np.log(5.0 * SCALE), 21)
        step = np.exp(log_steps)
        jump = jumps * np.exp(-np.abs(far) / JUMP_SCALE) / 2.0 / JUMP_SCALE
        root = np.sqrt(2.0 * np.pi)
        # Below the first step all are alike: it has what a half-normal law has there.
        rule = step * (log_steps[1] - log_steps[0])
        rule[[0, -1]] *= 0.5
        rule[0] += step[0]
        return cls(
            each=np.array([chance @ dlaplace.pmf(k - value, 1.0) for value in values]),
            first=h * np.exp(-gap - 2.0 * np.log1p(np.exp(-gap))) / 2.0,
            kernels=[
                h * ((1.0 - jumps) * np.exp(-0.5 * (far / s) ** 2) / (s * root) + jump) for s in step.tolist()
            ],
            weight=rule * np.exp(-0.5 * (step / SCALE) ** 2),
        )

    def evidence(self, left: int | None = None) -> float:
        """Log evidence of all times, or of all but one."""
        ones, two, three = (np.ones_like(row) if n == left else row for n, row in enumerate(self.each))
        chances = [((self.first * ones) @ kernel * two) @ kernel @ three for kernel in self.kernels]
        return float(np.log(self.weight @ np.array(chances)))


@pytest.mark.parametrize("values", [[30.0, 34.0, 95.0], [90.0, 110.0, 100.0]], ids=["a jump", "none"])
def test_times_of_a_walk_are_as_quadrature_has_them(values: list[float]) -> None:
    """Constants included."""
    series = CellsInOrder(sources=((Rates(np.array(values), 1.0), np.arange(3)),), cell=np.arange(3)[None])
    answer = walk_distribution(series, "rate", Line.LOGARITHM, jumps=0.01, scale=SCALE)
    scores = answer.left_out()
    dense = Quadrature.of(values, 0.01)
    expected = [dense.evidence() - dense.evidence(cell) for cell in range(3)]
    np.testing.assert_allclose(scores.log_predictive, expected, atol=0.03)
    assert not np.any(scores.is_rough)


@pytest.mark.slow
def test_what_others_say_beyond_the_points_of_a_walk_counts() -> None:
    """Of a time alone others say nothing but the law of first positions, wider than any posterior."""
    values = [300.0] * 5
    cells = np.append(np.arange(5), np.full(3, -1)).reshape(2, 4)
    series = CellsInOrder(sources=((Rates(np.array(values), 1.0), np.arange(5)),), cell=cells)
    answer = walk_distribution(series, "rate", Line.LOGARITHM, jumps=0.01, scale=SCALE)
    dense = Quadrature.of(values, 0.01)
    expected = float(np.log(dense.first @ dense.each[4]))
    assert answer.left_out().log_predictive[4] == pytest.approx(expected, abs=0.03)
    # Control: on the points of the posterior alone it would be far more probable.
    log_z, beyond = np.zeros((len(answer.steps.nodes), 5)), np.zeros(5)
    _hold_out(answer.walked, answer.steps, np.arange(2), log_z, beyond)
    assert log_z[0, 4] > expected + 0.2
    assert beyond[4] > 0.1


@dataclass(frozen=True)
class Unseen:
    """The same cells, of which nothing is known of one."""

    source: Rates
    cell: int
    has_sizes: ClassVar[bool] = False

    @property
    def n_cells(self) -> int:
        return self.source.n_cells

    @property
    def middle(self) -> float:
        return self.source.middle

    def nodes(self, cells: Cells, focus: Focus) -> Nodes:
        nodes = self.source.nodes(cells, focus)
        log_weight = np.log(np.maximum(nodes.weight, 1e-300)) + nodes.log_scale[:, None, None]
        log_dx = np.log(nodes.spacing)
        log_weight = np.where((cells == self.cell)[:, None, None], 0.0, log_weight - log_dx[:, :, None])
        return Nodes.of(nodes.position, log_dx, nodes.log_size, log_weight)


def test_cells_on_a_map_are_those_of_a_map_on_which_they_are_not_seen() -> None:
    values = np.array([20.0, 24.0, 30.0, 41.0, 52.0, 55.0, 71.0, 30.0])
    source = Rates(values, 1.0)
    field_map = FieldMap.of(8, np.array([[n, n + 1] for n in range(7)]), np.zeros(8, dtype=np.int64))
    scores = field_distribution(source, LOGNORMAL, "rate", Line.LOGARITHM, field_map).left_out()
    assert scores.approximation == "expectation propagation"
    for cell in (3, 7):
        others = field_distribution(Unseen(source, cell), LOGNORMAL, "rate", Line.LOGARITHM, field_map)
        count = NoisyCount(values=values[[cell], None], scales=np.array([1.0]))
        chance = np.exp(count.log_likelihood(others.position[[cell]])[0])
        expected = float(np.log(others.mass[cell] @ chance))
        assert scores.log_predictive[cell] == pytest.approx(expected, abs=0.12)
