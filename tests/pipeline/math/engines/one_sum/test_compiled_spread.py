"""Compiled loops under priors that are spread over scales, beside arrays and blocks that are much finer."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from suffice.pipeline.math.distributions.distribution import coordinate_of
from suffice.pipeline.math.distributions.gamma import GammaDistribution, InverseGammaDistribution
from suffice.pipeline.math.distributions.intervals import moments_between
from suffice.pipeline.math.distributions.many_cells import FEWEST_CELLS, QUANTILES, SPREAD
from suffice.pipeline.math.engines.one_sum.compiled_spread import (
    can_compile_spread,
    far_sums,
    resolve_spread,
    split_pairs,
)
from suffice.pipeline.math.engines.one_sum.nodes import resolve
from suffice.pipeline.math.engines.one_sum.noisy_sum import GammaGamma, NoisySums
from suffice.pipeline.math.engines.one_sum.spread_sums import SpreadGammaGamma, moments_of_all
from suffice.pipeline.math.engines.one_sum.sum_posterior import LatentSumPosterior
from suffice.pipeline.math.priors.mixtures import SpreadGamma
from suffice.pipeline.math.priors.record_count import Fixed, NPrior, Reciprocal, Uniform
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.typing import Cells, Floats

    Update = Callable[[Floats, Floats], Distribution]

MOMENT = 0.001
"""Of means in standard deviations, of these over themselves, and of log evidences."""
LEVEL = 0.012
"""Of levels of quantiles; arrays are up to .055 off where noise hides all but a few records."""
ALIKE = 1e-3
"""Of answers of one N, where blocks are those of arrays."""
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
        [15.0, 640.0],
    ]
)
"""Both sums in scales of the noise: by a fixed rule, not by a prior."""
REACH = 2.0**10
KINDS = [("rate", 1.0), ("rate", 2.0), ("scale", 1.0), ("scale", 0.5)]


def noisy(
    kind: str, shape: float, epsilon: float, n_prior: NPrior, releases: int = 1
) -> tuple[NoisySums, Update]:
    """Sums of records in 0..1 under the default prior."""
    prior, share = SpreadGamma(1.0), 1.0 if kind == "rate" else shape
    marginal = SpreadGammaGamma(
        weights=prior.weights, concentration=3.0, rates=prior.rates, shape=shape, share=share
    )

    def update(n: Floats, total: Floats) -> Distribution:
        concentration, rate = 3.0 + shape * n, prior.rates[0] + share * total
        if kind == "rate":
            return GammaDistribution(concentration=concentration, rate=rate)
        return InverseGammaDistribution(concentration=concentration, scale=rate, name="scale")

    scale = REACH / epsilon
    values = [np.rint(np.roll(SHARES, each, axis=0) * scale * (1.0 + 2.0 * each)) for each in range(releases)]
    totals = NoisyTotals(
        values=np.concatenate(values, axis=1),
        scale=np.repeat([scale * (1.0 + 2.0 * each) for each in range(releases)], 2),
        coefficients=np.tile([[0.0, 1.0], [REACH, -1.0]], (releases, 1)),
        releases=releases,
    )
    if isinstance(n_prior, Fixed):
        totals = replace(
            totals, values=totals.values[:, :1], scale=totals.scale[:1], coefficients=np.array([[0.0, 1.0]])
        )
    sums = NoisySums(totals=totals, step=1.0 / REACH, lower=0.0, marginal=marginal, n_prior=n_prior)
    return sums, update


def finer_pairs(sums: NoisySums, update: Update) -> tuple[tuple[Cells, Floats], Distribution]:
    """Cells and weights of pairs of finer blocks, split among all components, and what is given them."""
    pairs, marginal = resolve(sums, evenly=True, finer=8), sums.marginal
    assert isinstance(marginal, SpreadGammaGamma)
    shares = marginal.shares(pairs.total, pairs.n) * pairs.weight
    component, pair = np.nonzero(shares > 1e-9)
    given = update(pairs.n[pair], pairs.total[pair] + marginal.shifts[component])
    return (pairs.cell[pair], shares[component, pair]), given


def levels_of(sums: NoisySums, update: Update, quantiles: Floats) -> Floats:
    """Levels of quantiles by finer blocks."""
    (cell, weight), given = finer_pairs(sums, update)
    line = coordinate_of(given)
    position = line.line.position(quantiles)[cell]
    return np.stack([np.bincount(cell, weight * line.cdf(at)) for at in position.T], axis=1)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "shape"), KINDS)
@pytest.mark.parametrize(
    ("epsilon", "n_prior", "releases"),
    [(0.1, Reciprocal(10**12), 1), (1.0, Reciprocal(10**9), 2), (0.3, Uniform(0, 60), 1)],
)
def test_answers_are_those_of_finer_blocks(
    kind: str, shape: float, epsilon: float, n_prior: NPrior, releases: int
) -> None:
    """No records, sums below 0, and what contradicts the prior are among these; far tails are in moments."""
    sums, update = noisy(kind, shape, epsilon, n_prior, releases)
    assert can_compile_spread(sums)
    loops, arrays = resolve_spread(sums, update), LatentSumPosterior.of(sums, update)
    assert np.all(loops.settled)
    means, sds = moments_of_all(sums, update, loops.near, far_sums)
    assert np.all(np.abs(means - arrays.means) < MOMENT * arrays.sds)
    assert sds == pytest.approx(arrays.sds, rel=MOMENT)
    assert loops.near.log_evidence == pytest.approx(arrays.log_evidence, abs=MOMENT)
    quantiles = loops.merged.quantiles(update, list(LEVELS), sums.n_cells)
    assert levels_of(sums, update, quantiles) == pytest.approx(np.tile(LEVELS, (sums.n_cells, 1)), abs=LEVEL)


@pytest.mark.parametrize(("kind", "shape"), [("rate", 1.0), ("scale", 0.5)])
def test_a_public_number_of_records_is_by_loops(kind: str, shape: float) -> None:
    """There is one released sum, and one N."""
    sums, update = noisy(kind, shape, 0.1, Fixed(40))
    loops, arrays = resolve_spread(sums, update), LatentSumPosterior.of(sums, update)
    assert np.all(loops.settled)
    means, sds = moments_of_all(sums, update, loops.near, far_sums)
    assert np.all(np.abs(means - arrays.means) < ALIKE * arrays.sds)
    assert sds == pytest.approx(arrays.sds, rel=ALIKE)
    assert loops.near.log_evidence == pytest.approx(arrays.log_evidence, abs=ALIKE)


def test_far_tails_count() -> None:
    """Of a rate most of a variance may be where the sum is next to 0: near pairs alone have less."""
    sums, update = noisy("rate", 1.0, 0.1, Reciprocal(10**9))
    values = np.array([[above, 200.0] for above in (15.0, 18.0, 20.0, 22.0)]) * REACH / 0.1
    sums = replace(sums, totals=replace(sums.totals, values=np.rint(values)))
    near, arrays = resolve_spread(sums, update).near, LatentSumPosterior.of(sums, update)
    means, sds = moments_of_all(sums, update, near, far_sums)
    assert np.max(sds / near.sds) > 1.2
    assert np.all(np.abs(means - arrays.means) < MOMENT * arrays.sds)
    assert sds == pytest.approx(arrays.sds, rel=MOMENT)


@pytest.mark.parametrize("name", ["rate", "scale"])
def test_many_cells_have_the_posterior_of_few(name: str) -> None:
    """By loops from so many cells on; quantiles of a scale are those of a rate from the other end."""
    for loops in (SPREAD, QUANTILES):
        importlib.import_module(loops.module)
    sums, update = noisy(name, 1.0, 1.0, Reciprocal(10**9))
    alone = LatentSumPosterior.of(sums, update)
    many = sums.take(np.resize(np.arange(sums.n_cells), FEWEST_CELLS))
    together = LatentSumPosterior.of(many, update)
    assert np.all(np.abs(together.means[: sums.n_cells] - alone.means) < MOMENT * alone.sds)
    assert together.sds[: sums.n_cells] == pytest.approx(alone.sds, rel=MOMENT)
    levels = np.tile(LEVELS, (FEWEST_CELLS, 1))
    quantiles = together.quantiles_at(name, levels)
    assert together.cdf(quantiles) == pytest.approx(levels, abs=2e-4)
    near = together.quantiles_at(name, levels, near=together.rough_quantiles_at(levels))
    assert together.cdf(near) == pytest.approx(levels, abs=2e-4)


def test_moments_within_limits_are_those_of_finer_blocks() -> None:
    """Of what merging spreads over a limit arrays are .001 to .01 off."""
    sums, update = noisy("scale", 1.0, 0.3, Reciprocal(10**9))
    limits, cells = (0.0, 0.4), sums.n_cells
    assert not split_pairs(sums, update)[1].size
    cell, given = finer_pairs(sums, update)
    mass, first, second = (
        np.bincount(cell[0], cell[1] * part, cells) for part in moments_between(given, limits, np.zeros(1))
    )
    within = np.flatnonzero(mass > 0.1)
    assert len(within) > cells / 2
    means = (first / np.maximum(mass, 0.1))[within]
    sds = np.sqrt((second / np.maximum(mass, 0.1))[within] - means**2)
    importlib.import_module(SPREAD.module)
    many = LatentSumPosterior.of(sums.take(np.resize(np.arange(cells), FEWEST_CELLS)), update)
    by_loops = many.moments_within(limits)
    assert by_loops is not None
    assert np.all(np.abs(by_loops[0][within] - means) < MOMENT * sds)
    assert by_loops[1][within] == pytest.approx(sds, rel=MOMENT)


@pytest.mark.slow
def test_moments_within_limits_of_a_cell_do_not_depend_on_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not on how many there are in a batch, nor on one that is left to arrays."""
    importlib.import_module(SPREAD.module)
    sums, update = noisy("scale", 1.0, 0.3, Reciprocal(10**9))
    limits, cells = (0.0, 0.4), sums.n_cells
    copies = np.resize(np.arange(cells), 256 + cells)
    many = LatentSumPosterior.of(sums.take(copies), update)
    for posterior in (many, many.take(np.arange(cells))):
        means, sds = cast("tuple[Floats, Floats]", posterior.moments_within(limits))
        first = copies[: len(means)]
        assert means == pytest.approx(means[:cells][first], rel=1e-12, nan_ok=True)
        assert sds == pytest.approx(sds[:cells][first], rel=1e-12, nan_ok=True)
    kernel: Any = importlib.import_module(SPREAD.module)
    plain, _ = split_pairs(sums, update)
    monkeypatch.setattr(kernel, "MOST_MERGED", int(np.median(np.bincount(plain.cell))))
    left = split_pairs(sums, update)[1]
    assert 0 < len(left) < cells
    kept = np.setdiff1d(np.arange(cells), left)
    fewer, _ = cast("tuple[Floats, Floats]", many.take(np.arange(cells)).moments_within(limits))
    assert fewer[kept] == pytest.approx(means[kept], rel=1e-12, nan_ok=True)
    assert np.all(np.isfinite(fewer[left]) == np.isfinite(means[left]))


def test_threads_and_other_cells_change_no_digit() -> None:
    sums, update = noisy("rate", 1.0, 1.0, Reciprocal(10**6))
    values = np.arange(300.0)[:, None] * [400.0, 9000.0] - 900.0
    sums = replace(sums, totals=replace(sums.totals, values=values))
    alone, together = (resolve_spread(sums, update, threads) for threads in (1, 3))
    part = resolve_spread(sums.take(np.arange(40, 171)), update)
    for name in ("means", "sds", "log_evidence", "most", "bounded"):
        assert np.array_equal(getattr(alone.near, name), getattr(together.near, name))
        assert np.array_equal(getattr(alone.near, name)[40:171], getattr(part.near, name))
    for name in ("cell", "n", "total", "weight", "scatter"):
        assert np.array_equal(getattr(alone.merged, name), getattr(together.merged, name))


def test_released_values_may_be_read_only() -> None:
    sums, update = noisy("rate", 1.0, 1.0, Reciprocal(10**6))
    values, coefficients = sums.totals.values.copy(), sums.totals.coefficients.copy()
    for array in (values, coefficients):
        array.setflags(write=False)
    locked = replace(sums, totals=replace(sums.totals, values=values, coefficients=coefficients))
    expected = resolve_spread(sums, update).near.means
    assert np.array_equal(resolve_spread(locked, update).near.means, expected)


def test_cells_of_too_many_pairs_are_left_to_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel: Any = importlib.import_module(SPREAD.module)
    sums, update = noisy("rate", 1.0, 1.0, Reciprocal(10**9))
    alone = LatentSumPosterior.of(sums, update)
    monkeypatch.setattr(kernel, "MOST_MERGED", 150)
    settled = resolve_spread(sums, update).settled
    assert 0 < np.count_nonzero(settled) < len(settled)
    together = LatentSumPosterior.of(sums.take(np.resize(np.arange(sums.n_cells), FEWEST_CELLS)), update)
    assert np.all(np.abs(together.means[: sums.n_cells] - alone.means) < MOMENT * alone.sds)
    assert together.sds[: sums.n_cells] == pytest.approx(alone.sds, rel=MOMENT)


def test_what_loops_are_not_made_for_is_left_to_arrays() -> None:
    sums, _ = noisy("rate", 1.0, 1.0, Reciprocal(10**6))
    assert can_compile_spread(sums)
    assert not can_compile_spread(replace(sums, lower=0.5))
    assert not can_compile_spread(replace(sums, n_prior=Fixed(0)))
    assert not can_compile_spread(replace(sums, marginal=GammaGamma(concentration=3.0, rate=1.0)))
    assert isinstance(sums.marginal, SpreadGammaGamma)
    wide = replace(sums.marginal, rates=(1e-9, *sums.marginal.rates[1:]))
    assert not can_compile_spread(replace(sums, marginal=wide))


@pytest.mark.parametrize(("tilt", "tolerance", "records"), [(0, 7e-5, 1.0), (2, 3e-5, 0.5), (0, 5e-4, 0.5)])
def test_the_table_has_the_factor(tilt: int, tolerance: float, records: float) -> None:
    """At random N and positions, beside all powers added up."""
    factor: Any = importlib.import_module("suffice.pipeline.math.engines.one_sum.spread_factor")
    prior, rng = SpreadGamma(1.0), np.random.default_rng(5)
    marginal = SpreadGammaGamma(weights=prior.weights, concentration=3.0, rates=prior.rates).tilted(tilt)
    weights, a, rates = marginal.weights, marginal.concentration, np.array(marginal.rates)
    numbers = factor.table_of(weights, a, marginal.rates)
    rows = records * np.exp(rng.uniform(0.0, 16.0, 400))
    table = np.zeros((3, 400))
    table[0] = rows
    factor.set_factor(numbers, np.log(rates[0]), a, 400, table)
    row, position = rng.integers(0, 400, 5000), rng.uniform(-30.0, 30.0, 5000)
    scratch, out = np.zeros((2, 5000))
    factor.add_factor(numbers, table, 5000, row, position, scratch, out)
    power = a + rows[row]
    x = np.log(rates[0] * power) - position
    ratios = rates / rates[0]
    exact = factor.log_factor(x, 1.0 / power, np.log(weights) + a * np.log(ratios), ratios)
    assert out == pytest.approx(exact, abs=tolerance)
