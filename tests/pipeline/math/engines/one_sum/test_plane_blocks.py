"""Blocks of N and S together, beside sums over every N, and what they leave to blocks of S."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from suffice.pipeline.math.distributions.dirichlet import BetaDistribution
from suffice.pipeline.math.distributions.gamma import GammaDistribution
from suffice.pipeline.math.engines.one_sum import compiled_blocks
from suffice.pipeline.math.engines.one_sum.compiled_blocks import COARSE, resolve_blocks
from suffice.pipeline.math.engines.one_sum.noisy_sum import (
    BetaNegativeBinomial,
    GammaGamma,
    GammaPoisson,
    NoisySums,
)
from suffice.pipeline.math.priors.record_count import Uniform
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.pipeline.math.engines.one_sum.noisy_sum import Marginal
    from suffice.typing import Floats

    Update = Callable[[Floats, Floats], Distribution]

CLOSE = 3e-4
"""Of means, in standard deviations, these, in shares of themselves, and evidences, in nats."""
TOLERABLE = 0.0015
"""Error up to which blocks of both stay."""
LEVELS = np.array([0.005, 0.025, 0.25, 0.5, 0.75, 0.975, 0.995])
LEVEL = 0.006
NODES, WEIGHTS = np.polynomial.legendre.leggauss(10)
POISSON: tuple[Marginal, Update] = (
    GammaPoisson(concentration=4.0, rate=1.0),
    lambda n, total: GammaDistribution(concentration=4.0 + total, rate=1.0 + n),
)
GEOMETRIC: tuple[Marginal, Update] = (
    BetaNegativeBinomial(concentration1=8.0, concentration0=4.0, successes=1.0),
    lambda n, total: BetaDistribution(concentration1=8.0 + n, concentration0=4.0 + total),
)
EXPONENTIAL: tuple[Marginal, Update] = (
    GammaGamma(concentration=8.0, rate=8.0),
    lambda n, total: GammaDistribution(concentration=8.0 + n, rate=8.0 + total),
)


def noisy(
    model: tuple[Marginal, Update], values: list[float], scale: float, reach: float, most: int, step: float
) -> tuple[NoisySums, Update]:
    totals = NoisyTotals(
        values=np.array([values]),
        scale=np.array([scale, scale]),
        coefficients=np.array([[0.0, 1.0], [reach, -1.0]]),
        releases=1,
    )
    marginal, update = model
    return NoisySums(totals=totals, step=step, lower=0.0, marginal=marginal, n_prior=Uniform(1, most)), update


def all_pairs(sums: NoisySums) -> tuple[Floats, Floats, Floats]:
    """Every N and S up to what noise allows, or dense nodes of S; log weights."""
    (first, second), (reach, _) = sums.totals.values[0], sums.totals.coefficients[1]
    scale, (low, high) = sums.totals.scale[0], sums.n_prior.support
    n = np.arange(float(low), high + 1.0)
    if sums.is_sum:
        places = np.arange(0.0, max(first, reach * high - second, 0.0) + 30.0 * scale)
        weights = sums.log_joint(
            np.zeros(len(n), np.int64), n, np.broadcast_to(places, (len(n), len(places)))
        )
        return np.repeat(n, len(places)), np.tile(places, len(n)), weights.ravel()
    kinks = [np.full(len(n), max(first, 1e-3)), np.maximum(reach * n - second, 1e-3)]
    likely = [n / sums.step * share for share in np.exp(np.linspace(-9.0, 4.0, 40))]
    ends = np.sort(np.log(np.stack([*kinks, *likely], axis=1)), axis=1)
    half, middle = 0.5 * np.diff(ends, axis=1), 0.5 * (ends[:, 1:] + ends[:, :-1])
    places = (middle[:, :, None] + half[:, :, None] * NODES).reshape(len(n), -1)
    log_lengths = np.log(np.maximum(half[:, :, None] * WEIGHTS, 1e-300)).reshape(len(n), -1)
    weights = sums.log_joint(np.zeros(len(n), np.int64), n, places) + log_lengths
    return np.repeat(n, places.shape[1]), sums.step * np.exp(places).ravel(), weights.ravel()


def misses(sums: NoisySums, update: Update, *, is_coarse: bool = False) -> tuple[float, float, float, float]:
    """By how much a mean, a standard deviation, an evidence and levels of quantiles are off."""
    resolved = resolve_blocks(sums, update, 1, COARSE if is_coarse else None)
    n, total, log_weight = all_pairs(sums)
    top = np.max(log_weight)
    kept = log_weight > top - 40.0
    n, total, weight = n[kept], total[kept], np.exp(log_weight[kept] - top)
    evidence = float(np.sum(weight))
    weight /= evidence
    given = update(n, total)
    (name,) = given.parameters
    means, sds = given.mean(name), given.sd(name)
    mean = float(weight @ means)
    sd = float(np.sqrt(weight @ (sds**2 + (means - mean) ** 2)))
    near = resolved.near
    points = resolved.merged.quantiles(update, list(LEVELS), 1)
    exact = resolved.merged
    by_weight = np.argsort(-weight)[:40_000]
    few = replace(
        exact,
        cell=np.zeros(len(by_weight), np.int64),
        n=n[by_weight],
        total=total[by_weight],
        weight=weight[by_weight] / np.sum(weight[by_weight]),
        scatter=np.zeros(len(by_weight)),
    )
    level = float(np.max(np.abs(few.cdf(update, points) - LEVELS)))
    return (
        abs(float(near.means[0]) - mean) / sd,
        abs(float(near.sds[0]) / sd - 1.0),
        abs(float(near.log_evidence[0]) - top - np.log(evidence)),
        level,
    )


@pytest.mark.parametrize(
    ("model", "values", "scale", "reach", "most", "step"),
    [
        (POISSON, [25.0, 330.0], 40.0, 40.0, 60, 1.0),
        (POISSON, [-25.0, 26.0], 40.0, 40.0, 60, 1.0),
        (POISSON, [640.0, 178.0], 400.0, 40.0, 150, 1.0),
        (POISSON, [90.0, 1900.0], 12.0, 40.0, 70, 1.0),
        (GEOMETRIC, [1075.0, 59.0], 600.0, 60.0, 150, 1.0),
        (GEOMETRIC, [-52.0, 403.0], 60.0, 60.0, 60, 1.0),
        (GEOMETRIC, [30.0, 18.0], 15.0, 1.0, 200, 1.0),
        (EXPONENTIAL, [141_022.0, 5_753_720.0], 574_752.0, 65_536.0, 300, 0.001),
    ],
)
def test_pairs_are_those_of_sums_over_all(
    model: tuple[Marginal, Update], values: list[float], scale: float, reach: float, most: int, step: float
) -> None:
    """Of few records, where sides of blocks between whole sums would count parts of these."""
    problem = noisy(model, values, scale, reach, most, step)
    mean, sd, evidence, level = misses(*problem)
    assert max(mean, sd, evidence) < CLOSE
    assert max(mean, sd, evidence) < resolve_blocks(*problem, 1).error[0] <= TOLERABLE
    assert level < LEVEL


def test_kinks_that_meet_expected_sums_are_seen() -> None:
    """The other sum is 0 at 1744.8 records, where the noise of S is wide beside what is expected of it."""
    problem = noisy(
        EXPONENTIAL, [997_772.0, 114_348_000.0], 6_553_600.0, 65_536.0, 4000, 0.000_915_527_343_75
    )
    assert max(misses(*problem)[:3]) < 0.2 * CLOSE
    assert misses(*problem, is_coarse=True)[0] > 4.0 * CLOSE


def test_narrow_noise_and_broken_sums_are_left_to_blocks_of_sums() -> None:
    """Between whole numbers weights are not smooth there."""
    narrow, update = noisy(POISSON, [90.0, 1900.0], 2.0, 40.0, 70, 1.0)
    broken, _ = noisy(POISSON, [90.5, 1900.0], 40.0, 40.0, 70, 1.0)
    by_blocks = resolve_blocks(narrow, update, 1, COARSE)
    assert np.array_equal(resolve_blocks(narrow, update, 1).near.means, by_blocks.near.means)
    assert max(misses(narrow, update)[:3]) < CLOSE
    assert max(misses(broken, update)[:3]) < CLOSE


def test_errors_are_what_two_rules_differ_by() -> None:
    """A rule that is far too coarse says so; a finer one states less of the same cell."""
    problem = noisy(GEOMETRIC, [640.0, 1178.0], 400.0, 40.0, 150, 1.0)
    coarse, usual = (compiled_blocks._resolve_planes(*problem, 1, error) for error in (0.03, 1e-4))
    off = abs(coarse.near.log_evidence[0] - usual.near.log_evidence[0])
    assert max(off, TOLERABLE) < coarse.error[0]
    assert usual.error[0] < TOLERABLE


def test_cells_whose_error_is_not_tolerable_are_resolved_anew() -> None:
    """By finer blocks of both, which state less."""
    problem = noisy(
        EXPONENTIAL, [15_504_801.0, 562_946_739.0], 655_360.0, 65_536.0, 10**12, 0.000_915_527_343_75
    )
    usual, finer = (compiled_blocks._resolve_planes(*problem, 1, error) for error in (1e-4, 1e-5))
    resolved = resolve_blocks(*problem, 1)
    assert usual.error[0] > TOLERABLE >= resolved.error[0]
    assert resolved.error[0] == finer.error[0]
    assert resolved.near.log_evidence[0] == finer.near.log_evidence[0]


def test_cells_whose_pieces_are_too_wide_have_finer_blocks_of_both_first() -> None:
    """Their levels are as near to those of pairs as what had narrow pieces at once."""
    problem = noisy(POISSON, [1312.0, 5744.0], 400.0, 40.0, 150, 1.0)
    update = problem[1]
    usual, finer = (compiled_blocks._resolve_planes(*problem, 1, error) for error in (1e-4, 1e-5))
    pairs = compiled_blocks._resolve(*problem, 1, compiled_blocks.FINER)
    resolved = resolve_blocks(*problem, 1)
    blur = [float(compiled_blocks._blur(each.merged, update, 1)[0]) for each in (usual, finer)]
    assert blur[0] > compiled_blocks._BLURRED > blur[1]
    assert np.array_equal(resolved.merged.weight, finer.merged.weight)
    points = resolved.merged.quantiles(update, list(LEVELS), 1)
    assert np.max(np.abs(pairs.merged.cdf(update, points) - LEVELS)) < LEVEL


def test_errors_of_what_is_deep_below_a_cell_do_not_matter() -> None:
    """A cell whose records are nearly certain has most of its blocks there; both rules take these alike."""
    problem = noisy(POISSON, [640.0, 178.0], 400.0, 40.0, 150, 1.0)
    usual, finer = (compiled_blocks._resolve_planes(*problem, 1, error) for error in (1e-4, 1e-6))
    off = abs(usual.near.log_evidence[0] - finer.near.log_evidence[0])
    assert off < 0.1 * usual.error[0]
    assert finer.error[0] <= usual.error[0]
