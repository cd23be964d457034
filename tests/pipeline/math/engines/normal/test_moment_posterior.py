"""Posteriors of mean and variance behind noisy sums, against dense quadrature, bounds and limits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from suffice.errors import PriorError
from suffice.pipeline.math.engines.normal.covering import SHARE, cover
from suffice.pipeline.math.engines.normal.moment_posterior import MomentPosterior
from suffice.pipeline.math.engines.normal.moment_weights import (
    BERNSTEIN,
    LOG_ZERO,
    MOMENTS,
    Boxes,
    MomentsPrior,
    MomentWeights,
    NoisyMoments,
)
from suffice.pipeline.math.priors.record_count import Fixed, NPrior, Reciprocal, Uniform
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals

if TYPE_CHECKING:
    from suffice.typing import Floats


FALSE_ALARM = 1e-8
"""Of every single statistical comparison; there are fewer than a hundred."""
DRAWS = 40_000
LARGEST_DISTANCE = np.sqrt(np.log(2.0 / FALSE_ALARM) / (2.0 * DRAWS))
"""Dvoretzky, Kiefer, Wolfowitz."""


def problem(
    values: list[float],
    rate: float,
    n_prior: NPrior,
    prior: tuple[float, float, float, float] = (0.0, 0.5, 3.0, 0.04),
    *parts: tuple[float, float, float, float, float],
    further: tuple[tuple[list[float], float], ...] = (),
) -> NoisyMoments:
    """Return moments that were released once, or again with other values and rates."""
    bernstein = len(values) == 3
    return NoisyMoments(
        totals=NoisyTotals(
            values=np.array([[*values, *(value for more, _ in further for value in more)]]),
            scale=1.0
            / np.concatenate(
                [
                    np.full(3, own) if bernstein else np.array([own, 2.0 * own])
                    for own in (rate, *(own for _, own in further))
                ]
            ),
            coefficients=np.tile(BERNSTEIN if bernstein else MOMENTS, (1 + len(further), 1)),
            releases=1 + len(further),
        ),
        prior=MomentsPrior.of([(1.0, *prior), *parts]),
        n_prior=n_prior,
    )


PROBLEMS = {
    "uniform": problem([2.0, 4.0, 3.0], 1.0, Uniform(0, 7)),
    "reciprocal": problem([-1.0, 5.0, 0.5], 0.3, Reciprocal(7)),
    "impossible": problem([5.0, -3.0, 5.0], 1.0, Uniform(0, 7), (0.0, 0.5, 6.0, 0.1)),
    "nothing": problem([-2.0, -1.0, -3.0], 0.5, Uniform(0, 6)),
    "informative": problem([2.0, 4.0, 3.0], 5.0, Uniform(0, 7), (0.1, 20.0, 50.0, 5.0)),
    "three": problem([1.0, 2.0, 1.0], 1.0, Fixed(3)),
    "minimal": problem([3.0, -1.0], 0.5, Fixed(8)),
    "minimal two": problem([3.0, 2.0], 0.5, Fixed(2)),
    "minimal one": problem([0.3, 2.0], 0.5, Fixed(1)),
    "minimal none": problem([0.3, 2.0], 0.5, Fixed(0)),
    "two parts": problem(
        [2.0, 4.0, 3.0], 1.0, Uniform(0, 7), (0.0, 0.5, 3.0, 0.04), (3.0, 0.4, 2.0, 5.0, 1e-3)
    ),
    "spread": problem(
        [2.0, 4.0, 3.0],
        1.0,
        Fixed(7),
        (0.0, 4.0, 3.0, 2.0),
        *((2.0**-own, 0.0, 4.0 * 4.0**-own, 3.0, 2.0 * 4.0**-own) for own in range(1, 8)),
    ),
    "two releases": problem([2.0, 4.0, 3.0], 1.0, Uniform(0, 7), further=(([-1.0, 5.0, 1.0], 0.3),)),
    "three releases, minimal": problem(
        [3.0, -1.0], 0.5, Fixed(8), further=(([2.0, 3.0], 1.0), ([-4.0, 2.0], 0.2))
    ),
}


class Dense:
    """The posterior on a dense grid of (N, m, s): the distributions of s and of m given s are scipy's.

    A coarse grid finds the rectangle in which anything is, which the fine one then divides.
    """

    def __init__(self, noisy: NoisyMoments, points: int = 300) -> None:
        first, last = noisy.n_prior.support
        found = []
        for part in range(noisy.prior.n_parts):
            own = replace(noisy, prior=noisy.prior.at(np.array([part])))
            prior = own.prior
            for number in range(first, last + 1):
                n, mean, square, log_weight = self.of_n(own, number, points, *self.window(own, number))
                precision = prior.precision + n
                loc = (prior.precision * prior.loc + n * mean) / precision
                between = prior.precision * n * (mean - prior.loc) ** 2 / precision
                scale = prior.scale + (square + between) / 2.0
                log_weight = log_weight + np.log(prior.weight)
                found.append((log_weight, loc, precision, prior.concentration + n / 2.0, scale))
        log_weight, *given = (np.concatenate(column) for column in zip(*found, strict=True))
        top = float(np.max(log_weight))
        kept = log_weight > top - 25.0
        self.loc, self.precision, self.concentration, self.scale = (column[kept] for column in given)
        self.weight = np.exp(log_weight[kept] - top)
        self.log_evidence = top + np.log(np.sum(self.weight)) + np.sum(np.log(noisy.totals.rate / 2.0))
        self.weight /= np.sum(self.weight)

    @classmethod
    def window(cls, noisy: NoisyMoments, n: int) -> tuple[Floats, Floats]:
        """Ends of both sides, beyond which 25 nats are lost; sides of means are stretched."""
        ends: tuple[Floats, Floats] = (np.array([-6.0, 6.0]), np.array([-45.0, 20.0]))
        if n < 2:
            return ends
        coarse = 240
        log_weight = cls.of_n(noisy, n, coarse, *ends)[3].reshape(coarse, coarse)
        kept = log_weight > np.max(log_weight) - 25.0
        found = []
        # The grid's first axis is that of the squares.
        for axis, own in ((0, ends[0]), (1, ends[1])):
            positions = np.linspace(own[0], own[1], coarse)
            inside = np.flatnonzero(np.any(kept, axis=axis))
            step = positions[1] - positions[0]
            found.append(np.clip(positions[inside[[0, -1]]] + [-step, step], *own))
        return found[0], found[1]

    @staticmethod
    def of_n(noisy: NoisyMoments, n: int, points: int, means: Floats, squares: Floats) -> tuple[Floats, ...]:
        prior = noisy.prior
        unit = np.sqrt(prior.scale / prior.concentration * (1.0 / prior.precision + 1.0 / max(n, 1)))
        positions = np.linspace(means[0], means[1], points if n > 1 else 50_000)
        stretched = np.sinh(positions)
        mean, step = (
            prior.loc + unit * stretched,
            np.cosh(positions) * (positions[1] - positions[0]) * unit,
        )
        square = np.zeros_like(mean)
        if n == 0:
            mean, square, log_weight = np.zeros(1), np.zeros(1), np.zeros(1)
        elif n == 1:
            log_weight = stats.t.logpdf(mean, 2 * prior.concentration, prior.loc, unit) + np.log(step)
        else:
            logs = np.linspace(squares[0], squares[1], points)
            mean, square = (grid.ravel() for grid in np.meshgrid(mean, 2.0 * prior.scale * np.exp(logs)))
            step = np.tile(step, points)
            distribution = stats.betaprime((n - 1) / 2, prior.concentration)
            log_weight = np.repeat(
                distribution.logpdf(np.exp(logs)) + logs + np.log(logs[1] - logs[0]), points
            )
            degrees = 2 * prior.concentration + n - 1
            width = np.sqrt((2 * prior.scale + square) / degrees * (1.0 / prior.precision + 1.0 / n))
            log_weight += stats.t.logpdf(mean, degrees, prior.loc, width) + np.log(step)
        sums = np.stack([np.full_like(mean, n), n * mean, square + n * mean**2])
        distance = np.abs(noisy.totals.values[0][:, None] - noisy.totals.coefficients @ sums)
        log_weight = log_weight - noisy.totals.rate @ distance + noisy.n_prior.log_prob(np.array([float(n)]))
        return np.full_like(mean, n), mean, square, log_weight

    def moments(self) -> tuple[Floats, Floats]:
        within = self.scale / (self.concentration - 1.0)
        mean = np.array([self.weight @ self.loc, self.weight @ within])
        variances = [within / self.precision, within**2 / (self.concentration - 2.0)]
        between = [(self.loc - mean[0]) ** 2, (within - mean[1]) ** 2]
        return mean, np.sqrt([self.weight @ (v + b) for v, b in zip(variances, between, strict=True)])

    def cdf(self, parameter: int, at: Floats) -> Floats:
        width = np.sqrt(self.scale / self.concentration / self.precision)
        distributions = (
            stats.t(2 * self.concentration, self.loc, width),
            stats.invgamma(self.concentration, scale=self.scale),
        )
        return np.array([self.weight @ distributions[parameter].cdf(point) for point in at])


@pytest.mark.slow
@pytest.mark.parametrize("name", list(PROBLEMS))
def test_means_deviations_evidence_and_draws_are_those_of_dense_quadrature(name: str) -> None:
    noisy = PROBLEMS[name]
    mean, sd = (dense := Dense(noisy)).moments()
    # Distribution functions are compared less closely, and cost more.
    coarse = Dense(noisy, points=100)
    fine = MomentPosterior(noisy=noisy, share=4e-6 * noisy.prior.n_parts)
    usual = MomentPosterior(noisy=noisy)
    for posterior, tolerance in ((fine, 1e-4), (usual, 4e-3)):
        assert np.max(np.abs(posterior.mean[0] - mean) / sd) < tolerance
        assert np.max(np.abs(posterior.sd[0] / sd - 1.0)) < 2.0 * tolerance
        assert posterior.log_evidence[0] == pytest.approx(dense.log_evidence, abs=10 * tolerance)
    for parameter in range(2):
        asked = (0.025, 0.5, 0.9)
        for posterior, tolerance in ((fine, 1.5e-3), (usual, 1e-2)):
            found = coarse.cdf(parameter, posterior.quantiles(parameter, asked)[0])
            assert found == pytest.approx(asked, abs=tolerance)
    for parameter, draws in enumerate(usual.sample(DRAWS, np.random.default_rng())):
        levels = np.array([0.03, 0.3, 0.6, 0.97])
        points = np.quantile(draws, levels)
        # The distance at the draws' own quantiles is a lower bound of the largest one.
        assert np.max(np.abs(coarse.cdf(parameter, points) - levels)) < LARGEST_DISTANCE + 1e-3


@pytest.mark.parametrize("concentration", [0.3, 0.6, 1.0, 1.5, 2.0, 2.5])
@pytest.mark.parametrize("n_prior", [Uniform(0, 7), Uniform(1, 7)], ids=["from 0", "from 1"])
def test_moments_are_infinite_where_the_fewest_records_leave_none(
    concentration: float, n_prior: NPrior
) -> None:
    """And those that exist are not touched by it; warnings are errors."""
    noisy = problem([2.0, 4.0, 3.0], 1.0, n_prior, (0.1, 0.5, concentration, 0.04))
    posterior = MomentPosterior(noisy=noisy, share=1e-4)
    dense, least = Dense(noisy, points=150), concentration + n_prior.support[0] / 2.0
    mean, sd = posterior.mean[0], posterior.sd[0]
    assert list(np.isfinite([*mean, *sd])) == [least > 0.5, least > 1.0, least > 1.0, least > 2.0]
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.concatenate(dense.moments())
    found = np.concatenate([mean, sd])
    known = np.isfinite(found) & np.isfinite(expected)
    assert known.sum() >= np.isfinite(found).sum() - (least <= 1.0)
    assert found[known] == pytest.approx(expected[known], rel=2e-3, abs=2e-3)


@pytest.mark.parametrize("n", [2, 3, 5, 10])
def test_the_density_of_both_sums_integrates_to_one(n: int) -> None:
    for prior in ((0.2, 0.5, 3.0, 0.04), (-0.1, 3.0, 0.4, 2.0)):
        silent = problem([0.0, 0.0], 1e-300, Fixed(n), prior)
        position, log_e = np.linspace(-25.0, 25.0, 700), np.linspace(-90.0, 90.0, 700)
        mean, both = (grid.ravel() for grid in np.meshgrid(np.sinh(position), log_e))
        step = np.tile(np.cosh(position), 700) * (position[1] - position[0]) * (log_e[1] - log_e[0])
        weights = MomentWeights.of(silent)
        first = np.zeros(len(mean), dtype=int)
        density = weights.log_weight(first, first, np.full_like(mean, n), mean, both)
        assert np.sum(np.exp(density) * step) == pytest.approx(1.0, rel=1e-4)


@pytest.mark.parametrize("name", list(PROBLEMS))
@pytest.mark.parametrize("reach", [1.0, 1e6])
def test_bounds_hold_everywhere_in_a_box(name: str, reach: float) -> None:
    rng = np.random.default_rng(7)
    noisy = replace(PROBLEMS[name], n_prior=Uniform(2, 10**12))
    weights = MomentWeights.of(noisy)
    ends = rng.normal(0.0, 1.0, (2, 3000, 3)) * rng.exponential(1.0, (2, 3000, 1)) * [1.0, 0.5, 3.0]
    ends[..., 0] = np.floor(2.0 + reach * np.abs(ends[..., 0]))
    zeros = np.zeros(3000, dtype=int)
    part = rng.integers(0, noisy.prior.n_parts, 3000)
    boxes = Boxes(cell=zeros, part=part, low=ends.min(axis=0), high=ends.max(axis=0))
    bound = weights.log_bound(boxes)
    for _ in range(30):
        sides = np.where(rng.random((3000, 3)) < 0.3, np.rint(rng.random((3000, 3))), rng.random((3000, 3)))
        point = boxes.low + sides * (boxes.high - boxes.low)
        point[:, 0] = np.floor(point[:, 0])
        density = weights.log_weight(boxes.cell, boxes.part, *point.T)
        assert np.all(density <= bound + 1e-9 * np.abs(bound))
    corner = replace(boxes, high=boxes.low)
    density = weights.log_weight(boxes.cell, boxes.part, *boxes.low.T)
    assert weights.log_bound(corner) == pytest.approx(density, rel=1e-6)


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_boxes_tile_what_they_cover(name: str) -> None:
    boxes, mass = cover(MomentWeights.of(PROBLEMS[name]))
    assert np.all(boxes.low <= boxes.high)
    assert np.all(np.diff(boxes.cell) >= 0)
    assert np.all(np.isfinite(mass))
    few = boxes.take(np.argsort(-mass)[:300])
    inside = (few.low[:, None] < few.high[None]) & (few.low[None] < few.high[:, None])
    point = (few.low == few.high)[:, None] & (few.low[:, None] == few.low[None])
    same_n = (few.low[:, None, 0] <= few.high[None, :, 0]) & (few.low[None, :, 0] <= few.high[:, None, 0])
    same_part = few.part[:, None] == few.part[None]
    overlap = np.all((inside | point)[..., 1:], axis=2) & same_n & same_part
    assert np.array_equal(overlap, np.eye(len(few.cell), dtype=bool))


@pytest.mark.parametrize("n", [10**3, 10**6, 10**9, 10**12])
@pytest.mark.parametrize("rate", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("prior", [(0.0, 0.5, 3.0, 0.04), (0.0, 1e-4, 0.1, 1e-4)])
def test_every_scale_is_resolved(n: int, rate: float, prior: tuple[float, float, float, float]) -> None:
    """Grids against finer ones; means of 2,000 draws are within eight standard errors: 48 times 1e-15."""
    noisy = problem([0.3 * n, 0.4 * n, 0.3 * n], rate, Uniform(10, 10**12), prior)
    coarse, fine = MomentPosterior(noisy=noisy), MomentPosterior(noisy=noisy, share=SHARE / 5)
    for posterior in (coarse, fine):
        assert np.all(np.isfinite(posterior.log_evidence))
    assert np.max(np.abs(coarse.mean - fine.mean) / fine.sd) < 0.02
    assert np.max(np.abs(coarse.sd / fine.sd - 1.0)) < 0.05
    draws = coarse.sample(2000, np.random.default_rng())
    for parameter in range(2):
        error = abs(np.mean(draws[parameter]) - fine.mean[0, parameter]) / fine.sd[0, parameter]
        assert error < 0.2


@pytest.mark.slow
def test_informative_priors_are_found_wherever_they_are() -> None:
    """Means of 4,000 draws are within 7.6 standard errors: 6e-14."""
    # Far from the estimates: the mean is 0.3 and the variance 0.01, and what was observed says otherwise.
    noisy = problem([500.0, 300.0, 200.0], 0.05, Reciprocal(10**12), (0.3, 1e5, 1e5, 1e3))
    posterior = MomentPosterior(noisy=noisy)
    assert posterior.mean[0] == pytest.approx([0.3, 0.01], abs=3e-3)
    mean, variance = posterior.sample(4000, np.random.default_rng())
    for parameter, draws in enumerate((mean, variance)):
        error = np.mean(draws) - posterior.mean[0, parameter]
        assert abs(error) < 0.12 * posterior.sd[0, parameter]


def test_little_noise_leaves_the_conjugate_update() -> None:
    n, t, q = 1e6, 1e5, 3e5
    values = np.array(BERNSTEIN) @ [n, t, q]
    posterior = MomentPosterior(noisy=problem(list(values), 20.0, Reciprocal(10**12)))
    concentration = 3.0 + n / 2
    scale = 0.04 + (q - t**2 / n + 0.5 * n * (t / n) ** 2 / (n + 0.5)) / 2
    assert posterior.mean[0] == pytest.approx([t / (n + 0.5), scale / (concentration - 1)], rel=1e-5)
    width = np.sqrt(scale / (concentration - 1) / (n + 0.5))
    assert posterior.sd[0] == pytest.approx([width, scale / concentration**1.5], rel=1e-3)


def test_moments_that_do_not_exist_are_infinite() -> None:
    values = [20.0, 10.0, 20.0]
    none = MomentPosterior(noisy=problem(values, 1.0, Uniform(0, 100), (0.0, 1.0, 0.4, 1.0)))
    assert np.isnan(none.mean[0, 0])
    assert np.all(np.isinf([none.mean[0, 1], *none.sd[0]]))
    some = MomentPosterior(noisy=problem(values, 1.0, Uniform(2, 100), (0.0, 1.0, 0.4, 1.0)))
    assert np.all(np.isfinite([*some.mean[0], some.sd[0, 0]]))
    assert np.isinf(some.sd[0, 1])


def test_priors_beyond_float64_are_refused() -> None:
    for prior in ((1e9, 1.0, 1.0, 1.0), (0.0, 1e-20, 1.0, 1.0), (0.0, 1.0, 1.0, 1e20)):
        with pytest.raises(PriorError, match=r"choose another prior|million half ranges"):
            problem([1.0, 2.0], 1.0, Fixed(5), prior)


def test_zero_and_one_are_told_apart_by_the_noise() -> None:
    for n, mean in ((0.0, 0.0), (1.0, 0.7)):
        values = np.array(BERNSTEIN) @ [n, n * mean, n * mean**2]
        posterior = MomentPosterior(noisy=problem(list(values), 200.0, Uniform(0, 50)))
        kept = (0.5 * 0.0 + n * mean) / (0.5 + n)
        scale = 0.04 + 0.5 * n * mean**2 / (0.5 + n) / 2
        assert posterior.mean[0] == pytest.approx([kept, scale / (2.0 + n / 2)], abs=2e-2)
    assert LOG_ZERO < -500.0
