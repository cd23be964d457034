"""Walks over time: beside enumeration of all paths, beside dense quadrature, and what has to hold of any."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import dlaplace, norm, poisson

from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.engines.pooled.series import CellsInOrder
from suffice.pipeline.math.engines.pooled.walk import (
    JUMP_SCALE,
    BetweenPoints,
    StepKernel,
    drawn,
    filtered,
    log_evidence,
    smoothed,
)
from suffice.pipeline.math.engines.pooled.walk_distribution import plugged_in, walk_distribution
from support.counts_in_order import SCALE, NoisyCounts, series_of

if TYPE_CHECKING:
    from suffice.typing import Floats

FEW = settings(max_examples=12, deadline=None)


@pytest.mark.parametrize(
    ("step", "jumps", "gap", "returns"),
    [(0.9, 0.1, False, False), (0.3, 0.1, True, False), (0.9, 0.0, True, False), (0.6, 0.1, True, True)],
    ids=["wide steps", "narrow steps and a gap", "no jumps and a gap", "a return to a level"],
)
def test_recursions_agree_with_all_paths(step: float, jumps: float, gap: bool, returns: bool) -> None:
    """Of 9 points at 4 times, each step with or without a jump: 9^4 x 2^3 paths, summed one by one."""
    rng, n, spacing = np.random.default_rng(3), 9, 0.5
    likelihood = rng.random((1, 4, n)) ** 4
    is_seen = np.ones((1, 4), dtype=bool)
    if gap:
        likelihood[:, 1], is_seen[:, 1] = 1.0, False
    first = rng.random((1, n))
    first /= first.sum()
    kernel = StepKernel.of(step, spacing, n, jumps)
    if returns:
        kernel = StepKernel.returning(np.linspace(-1.3, 2.7, n), step, 0.6, jumps)
    mass, others, jumped, total = np.zeros((4, n)), np.zeros((4, n)), np.zeros(4), 0.0
    points = np.array(list(product(range(n), repeat=4)))
    for labels in product((False, True), repeat=3):
        steps = [kernel.jump if label else kernel.normal for label in labels]
        of_prior = first[0, points[:, 0]]
        for time in range(3):
            of_prior = of_prior * steps[time][points[:, time], points[:, time + 1]]
        each = np.stack([likelihood[0, time, points[:, time]] for time in range(4)])
        weight = of_prior * np.prod(each, axis=0)
        total += weight.sum()
        for time in range(4):
            mass[time] += np.bincount(points[:, time], weight, n)
            others[time] += np.bincount(points[:, time], weight / each[time], n)
        seen = np.flatnonzero(is_seen[0])
        for before, after in pairwise(seen):
            jumped[after] += weight.sum() * any(labels[before:after])
    answer = smoothed(likelihood, first, kernel, is_seen)
    np.testing.assert_allclose(answer.mass[0], mass / mass.sum(axis=1, keepdims=True), rtol=1e-10)
    np.testing.assert_allclose(answer.of_others[0], others / others.sum(axis=1, keepdims=True), rtol=1e-10)
    np.testing.assert_allclose(answer.jumped[0], jumped / total, atol=1e-10)
    for evidence in (log_evidence(likelihood, first, kernel), filtered(likelihood, first, kernel)[1]):
        assert evidence[0] == pytest.approx(np.log(total), abs=1e-10)


def test_steps_that_are_known_at_some_points_are_those_at_all() -> None:
    """Kernels of two levels, about 30 points wide, known at every sixth of 601."""
    place, step, coefficient, jumps = np.linspace(-3.0, 3.0, 601), 0.3, 0.6, 0.01
    levels, rng = (-0.5, 0.4), np.random.default_rng(5)
    dense = []
    for level in levels:
        gap = place - level - coefficient * (place[:, None] - level)
        normal = norm.pdf(gap, 0.0, step)
        dense.append(0.01 * ((1.0 - jumps) * normal + jumps * np.exp(-np.abs(gap) / JUMP_SCALE) / 2.0))
    kernels = [StepKernel.returning(place - level, step, coefficient, jumps) for level in levels]
    assert all(len(kernel.normal) < 130 for kernel in kernels)
    together = StepKernel.of_levels(kernels)
    # Masses of one point, as of a well told cell, and of many; two series a level.
    mass = np.stack([np.eye(601)[200], rng.random(601), np.eye(601)[333], rng.random(601)])
    moved = together.moved(mass, together.whole), together.moved(mass, np.swapaxes(together.whole, 1, 2))
    for number, (kernel, exact) in enumerate(zip(kernels, dense, strict=True)):
        whole = kernel.at_all_points().whole
        np.testing.assert_allclose(whole, exact, atol=1e-4 * np.max(exact))
        rows = slice(2 * number, 2 * number + 2)
        for seen, matrix in zip(moved, (exact, exact.T), strict=True):
            wanted = mass[rows] @ matrix
            assert np.max(np.abs(seen[rows] - wanted) / np.max(wanted, axis=1, keepdims=True)) < 2e-4
    # Controls: the other level, and points that are a step apart.
    assert np.max(np.abs(moved[0][:2] - mass[:2] @ dense[1])) > 0.01 * np.max(dense[1])
    rough = BetweenPoints.of(601, 30)
    at = place[0] + 0.01 * rough.at
    known = norm.pdf(at - coefficient * at[:, None], 0.0, step)
    of_all = rough.spread(rough.spread(known).T).T
    exact = norm.pdf(place - coefficient * place[:, None], 0.0, step)
    assert np.max(np.abs(of_all - exact)) > 0.005 * np.max(exact)


@pytest.mark.parametrize("returns", [False, True], ids=["a walk", "a return to a level"])
def test_joint_draws_have_the_differences_of_the_walk(returns: bool) -> None:
    """20,000 draws: shares within 6 standard errors, of 121 pairs, so that a false alarm is below 1e-6."""
    rng, n, draws = np.random.default_rng(4), 11, 20_000
    likelihood = rng.random((1, 2, n)) ** 3
    first = np.full((1, n), 1.0 / n)
    kernel = StepKernel.of(0.6, 0.5, n, 0.2)
    if returns:
        kernel = StepKernel.returning(np.linspace(-2.2, 2.8, n), 0.6, 0.5, 0.2)
    forward, _ = filtered(likelihood, first, kernel)
    path = drawn(forward, kernel, draws, rng)[0]
    joint = first.T * likelihood[0, 0][:, None] * (kernel.normal + kernel.jump) * likelihood[0, 1]
    joint /= joint.sum()
    seen = np.bincount(path[:, 0] * n + path[:, 1], minlength=n * n).reshape(n, n) / draws
    error = 6.0 * np.sqrt(joint * (1.0 - joint) / draws) + 6.0 / draws
    assert np.all(np.abs(seen - joint) < error)
    apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    assert np.any(np.abs(seen - apart) > 3.0 * error), "independent draws would be seen"


@dataclass(frozen=True)
class Dense:
    """Posteriors of three counts by quadrature over positions and steps, without the engine's code."""

    position: Floats
    mass: Floats
    step: float

    @classmethod
    def of(cls, values: list[float], scale: float, jumps: float) -> Dense:
        middle = float(np.log(max(float(np.mean(values)), 1.0)))
        x = np.linspace(middle - 1.7, middle + 1.3, 600)
        h = x[1] - x[0]
        k = np.arange(int(max(values) + 60 * scale + 200))
        noise = [dlaplace.pmf(k - value, 1.0 / scale) for value in values]
        each = np.array([np.asarray(poisson.pmf(k[:, None], np.exp(x))).T @ row for row in noise])
        each /= each.max(axis=1, keepdims=True)
        gap = np.abs(x - middle) / 2.0
        first = np.exp(-gap - 2.0 * np.log1p(np.exp(-gap)))
        far = x[:, None] - x
        log_steps = np.linspace(np.log(1.5 * h), np.log(5.0 * SCALE), 41)
        weights, masses = [], []
        for step in np.exp(log_steps):
            normal = np.exp(-0.5 * (far / step) ** 2) / (step * np.sqrt(2.0 * np.pi))
            kernel = h * (
                (1.0 - jumps) * normal + jumps * np.exp(-np.abs(far) / JUMP_SCALE) / 2.0 / JUMP_SCALE
            )
            passed = first * each[0]
            two = (passed @ kernel) * each[1]
            last = kernel @ each[2]
            posterior = np.array([passed * (kernel @ (each[1] * last)), two * last, (two @ kernel) * each[2]])
            # Below the first step all are alike: it has what a half-normal law has there.
            rule = step * (log_steps[1] - log_steps[0]) * (0.5 if step in np.exp(log_steps[[0, -1]]) else 1.0)
            rule += step if step == np.exp(log_steps[0]) else 0.0
            weights.append(posterior[0].sum() * np.exp(-0.5 * (step / SCALE) ** 2) * rule)
            masses.append(posterior / posterior.sum(axis=1, keepdims=True))
        weight = np.array(weights) / np.sum(weights)
        return cls(x, np.tensordot(weight, np.array(masses), 1), float(weight @ np.exp(log_steps)))

    def moments(self) -> tuple[Floats, Floats]:
        mean = self.mass @ np.exp(self.position)
        return mean, np.sqrt(self.mass @ np.exp(2.0 * self.position) - mean**2)


@pytest.mark.parametrize(
    ("values", "scale"), [([30.0, 34.0, 95.0], 1.0), ([90.0, 110.0, 100.0], 3.0)], ids=["a jump", "none"]
)
def test_three_windows_agree_with_dense_quadrature(values: list[float], scale: float) -> None:
    """Means to 1e-3 standard deviations, which is what points and steps of the dense rule are good for."""
    series = series_of(values, scale)
    answer = walk_distribution(series, "rate", Line.LOGARITHM, jumps=0.01, scale=SCALE)
    dense = Dense.of(values, scale, 0.01)
    mean, sd = dense.moments()
    assert answer.settled
    assert np.max(np.abs(answer.mean("rate") - mean) / sd) < 1e-3
    assert np.max(np.abs(answer.sd("rate") / sd - 1.0)) < 1e-3
    assert answer.steps.mean == pytest.approx(dense.step, rel=5e-3)
    # A step that is plugged in, and a kernel without jumps, are other posteriors.
    plug_in = plugged_in(answer)
    assert np.max(np.abs(plug_in.sd("rate") / sd - 1.0)) > 1e-2
    straight = walk_distribution(series, "rate", Line.LOGARITHM, jumps=0.0, scale=SCALE)
    moved = np.max(np.abs(straight.mean("rate") - mean) / sd)
    assert moved > 1.5e-3
    mean, sd = Dense.of(values, scale, 0.0).moments()
    assert np.max(np.abs(straight.mean("rate") - mean) / sd) < 1e-3


@pytest.mark.slow
@FEW
@given(
    values=st.lists(st.integers(-8, 60), min_size=10, max_size=10),
    scale=st.sampled_from([0.5, 2.0, 9.0]),
)
def test_ten_windows_whatever_was_released(values: list[int], scale: float) -> None:
    series = series_of([float(value) for value in values], scale)
    answer = walk_distribution(series, "rate", Line.LOGARITHM, jumps=0.01, scale=SCALE)
    np.testing.assert_allclose(answer.mass.sum(axis=1), 1.0, rtol=1e-9)
    assert answer.steps.weight.sum() == pytest.approx(1.0)
    for share in (answer.own_share, answer.outside):
        assert np.all((share >= 0.0) & (share <= 1.0))
    assert answer.outside[0] == 0.0
    low, middle, high = answer.quantiles("rate", (0.025, 0.5, 0.975), 0, np.random.default_rng(1)).T
    assert np.all((low < middle) & (middle < high))


@pytest.mark.slow
def test_a_gap_is_a_longer_step() -> None:
    """What a window says of the next fades with the time between them."""
    widths = []
    for last in (2, 3, 12):
        values = [400.0, 405.0, 380.0, 200.0]
        times = [0, 1, 2, 2 + last]
        # A cell that says next to nothing: it has its position from the others.
        cells = np.array([300.0]), 2000.0
        series = series_of(values[:3], 0.5, times[:3])
        whole = np.full((1, times[-1] + 1), -1)
        whole[0, times] = np.arange(4)
        joined = CellsInOrder(sources=(*series.sources, (NoisyCounts(*cells), np.array([3]))), cell=whole)
        answer = walk_distribution(joined, "rate", Line.LOGARITHM, jumps=0.01, scale=SCALE)
        low, high = answer.quantiles("rate", (0.25, 0.75), 0, np.random.default_rng(1))[3]
        widths.append(float(np.log(high / low)))
    assert widths[0] < widths[1] < widths[2]


@pytest.mark.slow
def test_series_share_the_step_and_stay_apart() -> None:
    """A step that one series tells is the other's; its position is not, and the order of series is none."""
    rng = np.random.default_rng(5)
    x = np.stack([3.0 + np.cumsum(rng.normal(0.0, 0.3, 16)), np.full(16, 5.0)])
    values = rng.poisson(np.exp(x)).astype(float)
    cell = np.arange(32).reshape(2, 16)
    source = NoisyCounts(values.ravel(), 1.0)
    both, turned = (
        walk_distribution(
            CellsInOrder(sources=((source, np.arange(32)),), cell=order),
            "rate",
            Line.LOGARITHM,
            jumps=0.01,
            scale=SCALE,
        )
        for order in (cell, cell[::-1])
    )
    np.testing.assert_allclose(both.mean("rate"), turned.mean("rate"), rtol=1e-6)
    alone = walk_distribution(
        CellsInOrder(sources=((NoisyCounts(values[1], 1.0), np.arange(16)),), cell=cell[:1]),
        "rate", Line.LOGARITHM, jumps=0.01, scale=SCALE,
    )  # fmt: skip
    assert alone.steps.mean < both.steps.mean
    assert np.mean(both.sd("rate")[16:]) > np.mean(alone.sd("rate"))
    drawn_paths = both.sample(400, np.random.default_rng(6))["rate"]
    assert drawn_paths.shape == (400, 32)
    together = np.corrcoef(np.log(drawn_paths[:, 4]), np.log(drawn_paths[:, 5]))[0, 1]
    across = np.corrcoef(np.log(drawn_paths[:, 4]), np.log(drawn_paths[:, 20]))[0, 1]
    assert together > across + 0.2


@pytest.mark.slow
def test_points_that_a_part_of_the_series_places_are_fine_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 20 series, 4 place rule and points: beside points half as far apart, that are placed by all."""
    rng = np.random.default_rng(8)
    x = 3.0 + rng.normal(0.0, 0.7, (20, 1)) + np.cumsum(rng.normal(0.0, 0.15, (20, 8)), axis=1)
    source = NoisyCounts(rng.poisson(np.exp(x)).astype(float).ravel(), 1.0)
    cells = CellsInOrder(sources=((source, np.arange(160)),), cell=np.arange(160).reshape(20, 8))
    engine = "suffice.pipeline.math.engines.pooled.walk_distribution"
    answers = []
    for first_cells, apart in ((32, None), (1500, 0.3), (32, 3.0)):
        monkeypatch.setattr(f"{engine}._FIRST_CELLS", first_cells)
        if apart:
            monkeypatch.setattr(f"{engine}._APART", (apart, apart))
            monkeypatch.setattr(f"{engine}._FEWEST", (41, 41))
        answers.append(walk_distribution(cells, "rate", Line.LOGARITHM, jumps=0.01, scale=SCALE))
    placed, fine, coarse = answers
    assert placed.settled
    off, of_coarse = (
        np.max(np.abs(each.mean("rate") - fine.mean("rate")) / fine.sd("rate")) for each in (placed, coarse)
    )
    assert off < 1e-2
    assert np.max(np.abs(placed.sd("rate") / fine.sd("rate") - 1.0)) < 1e-2
    assert of_coarse > 3e-2, "points that are far apart are seen"
    assert not coarse.settled


@pytest.mark.slow
@pytest.mark.parametrize("value", [-3.0, 4.0], ids=["below 0", "few"])
def test_points_reach_as_far_as_tails_do(value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of counts that noise hides: beside points that go on until a ten-millionth lies beyond."""
    engine = "suffice.pipeline.math.engines.pooled.walk_distribution"
    series, ends = series_of([value, 2.0, 5.0, 1.0], 9.0), []
    for beyond, rounds in ((2e-5, 24), (1e-7, 60), (2e-5, 0)):
        monkeypatch.setattr(f"{engine}._BEYOND", beyond)
        monkeypatch.setattr(f"{engine}._LONGEST", rounds)
        answer = walk_distribution(series, "rate", Line.LOGARITHM, jumps=0.01, scale=SCALE)
        ends.append(np.log(answer.quantiles("rate", (0.025, 0.975), 0, np.random.default_rng(1))))
        spread = np.sqrt(answer.mass @ answer.position[0] ** 2 - (answer.mass @ answer.position[0]) ** 2)
    of_rule, of_tails, without = ends
    assert np.max(np.abs(of_rule - of_tails) / spread[:, None]) < 0.02
    assert np.max(np.abs(without - of_tails) / spread[:, None]) > 0.05, "points that stop short are seen"


def test_points_that_are_too_few_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.pipeline.math.engines.pooled.walk_distribution._MOST", 321)
    series = series_of([1e9, 1e9 + 1e5, 4e9], 0.5)
    assert not walk_distribution(series, "rate", Line.LOGARITHM, jumps=0.01, scale=SCALE).settled
