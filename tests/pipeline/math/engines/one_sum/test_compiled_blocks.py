"""Compiled blocks against those of arrays, number by number, and what they leave to these."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from suffice.pipeline.math.distributions import quadrature, rule_sizes
from suffice.pipeline.math.distributions.dirichlet import BetaDistribution
from suffice.pipeline.math.distributions.distribution import coordinate_of
from suffice.pipeline.math.distributions.gamma import GammaDistribution, InverseGammaDistribution
from suffice.pipeline.math.distributions.many_cells import BLOCKS, FEWEST_CELLS
from suffice.pipeline.math.engines.one_sum.compiled_blocks import (
    AS_ARRAYS,
    COARSE,
    Fineness,
    can_compile,
    fineness_of,
    resolve_blocks,
)
from suffice.pipeline.math.engines.one_sum.nodes import resolve
from suffice.pipeline.math.engines.one_sum.noisy_sum import (
    BetaBinomial,
    BetaNegativeBinomial,
    GammaGamma,
    GammaPoisson,
    Marginal,
    NoisySums,
)
from suffice.pipeline.math.engines.one_sum.sum_posterior import LatentSumPosterior
from suffice.pipeline.math.priors.record_count import Fixed, NPrior, Reciprocal, Uniform
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.typing import Floats

    Update = Callable[[Floats, Floats], Distribution]

ALIKE = 1e-8
"""Of moments and evidences, in standard deviations, shares of these, and nats: what rounding may change."""
LEVEL = 1e-4
"""Of levels of quantiles: a width on the very edge between two points of a lattice is merged to either."""
MOMENT, COARSELY = 0.001, 0.008
"""What coarse blocks may change of moments and evidences, and of levels of quantiles."""
LEVELS = np.array([0.005, 0.025, 0.25, 0.5, 0.75, 0.975, 0.995])
SHARES = np.array(
    [
        [0.0, 0.0],
        [-0.6, 0.4],
        [7.0, 2.0],
        [0.5, 14.0],
        [400.0, 30.0],
        [3000.0, 10.0],
        [-20.0, 9.0],
        [2.0, 6e4],
    ]
)
"""Both sums in scales of the noise: by a fixed rule, not by a prior."""
REACH = 20.0


def poisson(a: float, b: float) -> tuple[Marginal, Update]:
    return GammaPoisson(concentration=a, rate=b), lambda n, total: GammaDistribution(
        concentration=a + total, rate=b + n
    )


def negative_binomial(a: float, b: float, successes: float) -> tuple[Marginal, Update]:
    marginal = BetaNegativeBinomial(concentration1=a, concentration0=b, successes=successes)
    return marginal, lambda n, total: BetaDistribution(
        concentration1=a + successes * n, concentration0=b + total
    )


def exponential(a: float, b: float, shape: float = 1.0, share: float = 1.0) -> tuple[Marginal, Update]:
    marginal = GammaGamma(concentration=a, rate=b, shape=shape, share=share)
    return marginal, lambda n, total: GammaDistribution(concentration=a + shape * n, rate=b + share * total)


def noisy(
    model: tuple[Marginal, Update], scale: float, n_prior: NPrior, releases: int = 1, lower: float = 0.0
) -> tuple[NoisySums, Update]:
    marginal, update = model
    is_sum = not isinstance(marginal, GammaGamma)
    values = [np.rint(np.roll(SHARES, each, axis=0) * scale * (1.0 + 2.0 * each)) for each in range(releases)]
    totals = NoisyTotals(
        values=np.concatenate(values, axis=1),
        scale=np.repeat([scale * (1.0 + 2.0 * each) for each in range(releases)], 2),
        coefficients=np.tile([[0.0, 1.0], [REACH, -1.0]], (releases, 1)),
        releases=releases,
    )
    step = 1.0 if is_sum else 0.0625
    return NoisySums(totals=totals, step=step, lower=lower, marginal=marginal, n_prior=n_prior), update


@pytest.mark.parametrize(
    ("model", "scale", "n_prior", "releases", "lower"),
    [
        (poisson(4.0, 1.0), 40.0, Reciprocal(10**12), 1, 0.0),
        (poisson(1.0, 0.2), 3.0, Uniform(0, 60), 2, 0.0),
        (poisson(0.4, 2.0), 300.0, Reciprocal(10**6), 3, 0.0),
        (negative_binomial(8.0, 4.0, 1.0), 60.0, Reciprocal(10**12), 1, 0.0),
        (negative_binomial(1.0, 1.0, 2.5), 7.0, Uniform(3, 90), 2, 0.0),
        (exponential(8.0, 8.0), 400.0, Reciprocal(10**12), 1, 0.0),
        (exponential(1.0, 0.7, 0.5, 0.5), 50.0, Uniform(0, 40), 2, 0.0),
        (exponential(3.0, 2.0, 2.0), 90.0, Reciprocal(10**4), 1, 0.25),
    ],
)
def test_answers_are_those_of_arrays(
    model: tuple[Marginal, Update], scale: float, n_prior: NPrior, releases: int, lower: float
) -> None:
    """No records, one, and the last that the prior allows are among these."""
    sums, update = noisy(model, scale, n_prior, releases, lower)
    assert can_compile(sums, update)
    loops = resolve_blocks(sums, update, fineness=AS_ARRAYS)
    arrays = LatentSumPosterior.of(sums, update)
    assert np.all(loops.settled)
    means, sds = arrays.near
    assert np.all(np.abs(loops.near.means - means) < ALIKE * sds)
    assert loops.near.sds == pytest.approx(sds, rel=ALIKE)
    assert loops.near.log_evidence == pytest.approx(arrays.log_evidence, abs=ALIKE)
    points = arrays.merged.quantiles(update, list(LEVELS), sums.n_cells)
    below = arrays.merged.cdf(update, points)
    assert loops.merged.cdf(update, points) == pytest.approx(below, abs=LEVEL)
    counts = [np.bincount(merged.cell) for merged in (loops.merged, arrays.merged)]
    assert counts[0] == pytest.approx(counts[1], rel=0.02)


@pytest.mark.parametrize(
    ("model", "scale", "n_prior", "reach"),
    [
        (poisson(4.0, 1.0), 400.0, Reciprocal(10**12), 40.0),
        (poisson(0.5, 0.2), 12.0, Uniform(0, 60), 20.0),
        (negative_binomial(8.0, 4.0, 1.0), 600.0, Reciprocal(10**12), 60.0),
        (negative_binomial(1.0, 1.0, 2.5), 25.0, Uniform(3, 90), 20.0),
        (exponential(8.0, 8.0), 700.0, Reciprocal(10**12), 20.0),
    ],
)
def test_coarse_blocks_are_right(
    model: tuple[Marginal, Update], scale: float, n_prior: NPrior, reach: float
) -> None:
    """Beside blocks that are four times as fine everywhere; without pieces levels are off by more."""
    sums, update = noisy(model, scale, n_prior)
    totals = sums.totals
    # Sums of N records of which the noise leaves a pair of N and S that is narrow beside its nodes.
    values = np.concatenate([totals.values, scale * np.array([[2.4, 30.0], [1.0, 74.0], [0.6, 9.0]])])
    coefficients = np.array([[0.0, 1.0], [reach, -1.0]])
    sums = replace(sums, totals=replace(totals, values=np.rint(values), coefficients=coefficients))
    assert fineness_of(sums) is COARSE
    loops = resolve_blocks(sums, update)
    assert np.all(loops.settled)
    pairs = resolve(sums, evenly=True, finer=4)
    given = update(pairs.n, pairs.total)
    (name,) = given.parameters
    mean = np.bincount(pairs.cell, pairs.weight * given.mean(name)).astype(np.float64)
    square = given.sd(name) ** 2 + (given.mean(name) - mean[pairs.cell]) ** 2
    sd = np.sqrt(np.bincount(pairs.cell, pairs.weight * square))
    assert np.all(np.abs(loops.near.means - mean) < MOMENT * sd)
    assert loops.near.sds == pytest.approx(sd, rel=MOMENT)
    assert loops.near.log_evidence == pytest.approx(pairs.log_evidence, abs=MOMENT)
    quantiles = loops.merged.quantiles(update, list(LEVELS), sums.n_cells)
    line = coordinate_of(given)
    position = line.line.position(quantiles)[pairs.cell]
    levels = np.stack([np.bincount(pairs.cell, pairs.weight * line.cdf(at)) for at in position.T], axis=1)
    assert levels == pytest.approx(np.broadcast_to(LEVELS, levels.shape), abs=COARSELY)


def test_cells_of_wide_pieces_are_resolved_finer() -> None:
    """N is next to its limit, and noise is many times as wide as a sum is given the parameter."""
    sums, update = noisy(negative_binomial(15.0, 17.0, 1.0), 500.0, Uniform(0, 756))
    values, coefficients = np.array([[5700.0, 227_500.0]]), np.array([[0.0, 1.0], [300.0, -1.0]])
    scale = np.array([500.0, 3200.0])
    totals = replace(sums.totals, values=values, scale=scale, coefficients=coefficients)
    sums = replace(sums, totals=totals)
    pairs = resolve(sums, evenly=True, finer=4)
    given = coordinate_of(update(pairs.n, pairs.total))

    def misses(fineness: Fineness | None) -> float:
        merged = resolve_blocks(sums, update, fineness=fineness).merged
        (positions,) = given.line.position(merged.quantiles(update, list(LEVELS), 1))
        below = [pairs.weight @ given.cdf(np.full_like(pairs.n, at)) for at in positions]
        return float(np.max(np.abs(below - LEVELS)))

    assert misses(COARSE) > 2.0 * COARSELY
    assert misses(None) < 0.25 * COARSELY


def test_cells_whose_variance_is_far_away_are_resolved_finer() -> None:
    """A mode far from the mean has 2e-4 of the mass, and half of the variance."""
    sums, update = noisy(negative_binomial(19.47, 0.5, 0.906), 484.0, Uniform(2000, 3467), releases=2)
    totals = replace(
        sums.totals,
        values=np.array([[9244.0, 32392.0, 7969.0, 27149.0]]),
        scale=np.array([484.0, 437.5, 2226.0, 2013.0]),
    )
    sums = replace(sums, totals=totals)
    pairs = resolve(sums, evenly=True, finer=2)
    given = update(pairs.n, pairs.total)
    mean, sd = given.mean("probability"), given.sd("probability")
    exact = np.sqrt(pairs.weight @ (sd**2 + (mean - pairs.weight @ mean) ** 2))
    coarse, finer = (resolve_blocks(sums, update, fineness=fineness).near for fineness in (COARSE, None))
    assert abs(coarse.sds[0] / exact - 1.0) > 3.0 * MOMENT
    assert finer.sds[0] == pytest.approx(exact, rel=0.1 * MOMENT)


def test_design_effects_count_what_pieces_spread() -> None:
    """Standard deviations of tempered cells, whose rows count as fewer, beside those of all pairs."""
    importlib.import_module(BLOCKS.module)
    sums, update = noisy(poisson(4.0, 1.0), 400.0, Reciprocal(10**6))
    cells, effects = sums.n_cells, np.array([1.0, 3.0])
    many = sums.take(np.resize(np.arange(cells), FEWEST_CELLS))
    tempered = LatentSumPosterior.of(many, update).tempered(np.tile(effects, (FEWEST_CELLS, 1)))
    pairs = resolve(sums, evenly=True, finer=4)
    mean, square = np.zeros((2, cells))
    for effect in effects:
        given = update(pairs.n / effect, pairs.total / effect)
        centre, sd = given.mean("rate"), given.sd("rate")
        mean += np.bincount(pairs.cell, pairs.weight * centre) / len(effects)
        square += np.bincount(pairs.cell, pairs.weight * (sd**2 + centre**2)) / len(effects)
    sds = np.sqrt(square - mean**2)
    assert tempered.sds[:cells] == pytest.approx(sds, rel=0.005)


def test_priors_with_poles_and_sharp_ones_are_resolved_as_by_arrays() -> None:
    for model, fineness in (
        (poisson(0.5, 3.0), COARSE),
        (poisson(0.4, 3.0), AS_ARRAYS),
        (negative_binomial(1.0, 21.0, 1.0), AS_ARRAYS),
        (exponential(21.0, 1.0), AS_ARRAYS),
    ):
        assert fineness_of(noisy(model, 10.0, Reciprocal(10**6))[0]) is fineness


def test_many_cells_have_the_posterior_of_few() -> None:
    """One cell contradicts the prior of N; in another the noise is next to none."""
    importlib.import_module(BLOCKS.module)
    sums, update = noisy(exponential(8.0, 8.0), 400.0, Reciprocal(10**9))
    steps = np.arange(float(FEWEST_CELLS))[:, None]
    values = np.rint(steps * [31.0, 900.0] - 500.0)
    values[3] = [9e5, -9e5]
    for scale in (400.0, 0.01):
        totals = replace(sums.totals, values=values, scale=np.full(2, scale))
        together = LatentSumPosterior.of(replace(sums, totals=totals), update)
        few = np.array([0, 3, 7, 30])
        alone = LatentSumPosterior.of(replace(sums, totals=totals).take(few), update)
        assert np.all(np.abs(together.means[few] - alone.means) < MOMENT * alone.sds)
        assert together.log_evidence[few] == pytest.approx(alone.log_evidence, abs=MOMENT)
        rng = np.random.default_rng()
        quantiles = together.quantiles("rate", list(LEVELS), 0, rng)[few]
        assert alone.cdf(quantiles) == pytest.approx(np.tile(LEVELS, (len(few), 1)), abs=COARSELY)


def test_threads_and_other_cells_change_no_digit() -> None:
    sums, update = noisy(poisson(2.0, 1.0), 15.0, Reciprocal(10**6))
    values = np.arange(300.0)[:, None] * [1.0, 2.5] - 9.0
    sums = replace(sums, totals=replace(sums.totals, values=values))
    alone, together = (resolve_blocks(sums, update, threads) for threads in (1, 3))
    part = resolve_blocks(sums.take(np.arange(40, 171)), update)
    for name in ("means", "sds", "log_evidence", "most"):
        assert np.array_equal(getattr(alone.near, name), getattr(together.near, name))
        assert np.array_equal(getattr(alone.near, name)[40:171], getattr(part.near, name))
    for name in ("cell", "n", "total", "weight", "scatter"):
        assert np.array_equal(getattr(alone.merged, name), getattr(together.merged, name))


def test_released_values_may_be_read_only() -> None:
    sums, update = noisy(poisson(2.0, 1.0), 15.0, Reciprocal(10**6))
    values, coefficients = sums.totals.values.copy(), sums.totals.coefficients.copy()
    for array in (values, coefficients):
        array.setflags(write=False)
    locked = replace(sums, totals=replace(sums.totals, values=values, coefficients=coefficients))
    expected = resolve_blocks(sums, update).near.means
    assert np.array_equal(resolve_blocks(locked, update).near.means, expected)


def test_cells_of_too_many_pairs_are_left_to_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    planes: Any = importlib.import_module(BLOCKS.module)
    kernel: Any = importlib.import_module(f"{BLOCKS.module.rpartition('.')[0]}.block_kernel")
    sums, update = noisy(poisson(4.0, 1.0), 40.0, Reciprocal(10**12))
    for module in (planes, kernel):
        monkeypatch.setattr(module, "MOST_MERGED", 60)
    settled = resolve_blocks(sums, update).settled
    assert 0 < np.count_nonzero(settled) < len(settled)
    many = sums.take(np.resize(np.arange(sums.n_cells), FEWEST_CELLS))
    together, alone = LatentSumPosterior.of(many, update), LatentSumPosterior.of(sums, update)
    assert np.all(np.abs(together.means[: sums.n_cells] - alone.means) < MOMENT * alone.sds)
    monkeypatch.setattr(kernel, "MOST_OF_N", 5)
    assert not np.any(resolve_blocks(sums, update, fineness=COARSE).settled)


def test_what_loops_are_not_made_for_is_left_to_arrays() -> None:
    model, update = poisson(4.0, 1.0)
    sums, _ = noisy((model, update), 40.0, Reciprocal(10**6))
    assert can_compile(sums, update)
    assert not can_compile(replace(sums, n_prior=Fixed(30)), update)
    assert not can_compile(replace(sums, from_nothing=True), update)
    assert not can_compile(replace(sums, marginal=GammaPoisson(concentration=51.0, rate=1.0)), update)
    successes = BetaBinomial(concentration1=1.0, concentration0=1.0, trials=1.0)
    assert not can_compile(replace(sums, marginal=successes), update)
    inverse = InverseGammaDistribution(concentration=np.ones(4), scale=np.ones(4))
    assert not can_compile(sums, lambda _n, _total: inverse)


def test_rules_of_sums_are_those_of_the_tables() -> None:
    """Up to 48 integers from a table; beyond them the polynomials are right where the length is no power."""
    rules: Any = importlib.import_module("suffice.pipeline.math.distributions.block_rules")
    _, *tables = rules.tables(rule_sizes.TOLERABLE)
    nodes, weights = np.zeros((2, 40))
    for length in (1, 2, 7, 12, 13, 48, 49, 77, 300, 1024, 9000, 10**7):
        for rule, points in enumerate(quadrature.FEWER):
            count = rules.put_nodes(*tables, rule, 7.0, 7.0 + length, True, nodes, weights, 3)  # noqa: FBT003
            expected = quadrature.sum_rule(np.array([7.0]), np.array([7.0 + length]), points)
            if length > quadrature.LONGEST:  # of which the table is less exact
                from_middle, exact = quadrature.gauss_rules(np.array([float(length)]), points)
                expected = from_middle + 7.0 + (length - 1.0) / 2.0, exact
            assert count == min(points, length)
            for given, wanted in zip((nodes, weights), expected, strict=True):
                assert given[3 : 3 + count] == pytest.approx(wanted[0, :count], abs=2e-12 * length)


def test_vector_functions_are_right() -> None:
    functions: Any = importlib.import_module("suffice.pipeline.math.distributions.vector_functions")
    places = np.random.default_rng(3).uniform(-690.0, 690.0, 2000)
    for x in [*places, *(places * 1e-3), 0.0]:
        assert functions.exp(x) == pytest.approx(np.exp(x), rel=1e-15)
        assert functions.log(np.exp(x)) == pytest.approx(np.log(np.exp(x)), rel=1e-15, abs=1e-300)
        assert functions.log1p(np.exp(x)) == pytest.approx(np.log1p(np.exp(x)), rel=1e-15)
    assert functions.exp(-1e9) == pytest.approx(np.exp(-700.0))
