"""Nested rules over latent pairs against blocks thirty times as fine and enumeration, and what they leave."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from suffice.pipeline.math.distributions.compiled_mixtures import compiled_quantiles, linear_update
from suffice.pipeline.math.distributions.dirichlet import BetaDistribution
from suffice.pipeline.math.distributions.distribution import coordinate_of
from suffice.pipeline.math.distributions.gamma import GammaDistribution
from suffice.pipeline.math.distributions.intervals import shortest_intervals
from suffice.pipeline.math.distributions.many_cells import FEWEST_CELLS, PAIRS, QUANTILES
from suffice.pipeline.math.engines.one_sum.nested_pairs import can_resolve, resolve_nested
from suffice.pipeline.math.engines.one_sum.nodes import LatentPairs, resolve
from suffice.pipeline.math.engines.one_sum.noisy_sum import BetaBinomial, NoisySums
from suffice.pipeline.math.engines.one_sum.sum_posterior import LatentSumPosterior
from suffice.pipeline.math.priors.record_count import Fixed, NPrior, Reciprocal, Uniform
from suffice.pipeline.terms.released.noise_distribution import NoisyTotals

for loops in (PAIRS, QUANTILES):
    importlib.import_module(loops.module)

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.math.distributions.distribution import Distribution
    from suffice.typing import Floats

    Update = Callable[[Floats, Floats], Distribution]

MOMENT, LEVEL = 0.001, 0.006
"""What is said of means, standard deviations and evidences, and of levels of quantiles."""
LEVELS = (0.025, 0.25, 0.5, 0.75, 0.975)
FINER = 30
SHARES = np.array(
    [[0.0, 0.0], [-0.6, 0.4], [7.0, 2.0], [0.5, 14.0], [40.0, 55.0], [3000.0, 10.0], [-2.0, 9.0]]
)
"""Sums of true and of false in scales of the noise: by a fixed rule, not by a prior."""


def noisy(
    trials: float, scale: float, prior: tuple[float, float], n_prior: NPrior, shares: Floats = SHARES
) -> tuple[NoisySums, Update]:
    a, b = prior
    sums = NoisySums(
        totals=NoisyTotals(
            values=np.rint(shares * scale),
            scale=np.full(2, scale),
            coefficients=np.array([[0.0, 1.0], [trials, -1.0]]),
        ),
        step=1.0,
        lower=0.0,
        marginal=BetaBinomial(concentration1=a, concentration0=b, trials=trials),
        n_prior=n_prior,
    )

    def update(n: Floats, total: Floats) -> BetaDistribution:
        return BetaDistribution(concentration1=a + total, concentration0=b + trials * n - total)

    return sums, update


def enumerated(sums: NoisySums) -> LatentPairs:
    """Every pair (N, S), one by one."""
    cell, n, total, log_weight = [], [], [], []
    for count in range(sums.n_prior.support[0], sums.n_prior.support[1] + 1):
        amounts = np.arange(sums.marginal.most_per_row * count + 1.0)
        for each in range(sums.n_cells):
            weights = sums.log_joint(np.array([each]), np.array([float(count)]), amounts[None])[0]
            cell.append(np.full(len(amounts), each))
            n.append(np.full(len(amounts), float(count)))
            total.append(amounts)
            log_weight.append(weights)
    cells = np.concatenate(cell)
    logs = np.concatenate(log_weight)
    top = np.max(logs)
    evidence = np.bincount(cells, np.exp(logs - top))
    order = np.argsort(cells, kind="stable")
    return LatentPairs(
        cell=cells[order],
        n=np.concatenate(n)[order],
        total=np.concatenate(total)[order],
        weight=(np.exp(logs - top) / evidence[cells])[order],
        log_evidence=top + np.log(evidence),
    )


def off(sums: NoisySums, update: Update, pairs: LatentPairs) -> tuple[Floats, Floats, Floats]:
    """By how much moments and levels of quantiles are off, and the stated error, of every cell."""
    nested = resolve_nested(sums, update)
    given = update(pairs.n, pairs.total)
    (name,) = given.parameters
    mean = np.bincount(pairs.cell, pairs.weight * given.mean(name)).astype(np.float64)
    away = given.sd(name) ** 2 + (given.mean(name) - mean[pairs.cell]) ** 2
    sd = np.sqrt(np.bincount(pairs.cell, pairs.weight * away))
    moments = np.max(
        [
            np.abs(nested.near.means - mean) / sd,
            np.abs(np.log(nested.near.sds / sd)),
            np.abs(nested.near.log_evidence - pairs.log_evidence),
        ],
        axis=0,
    )
    # The compiled quantiles of as many cells as it takes; what is not settled has none.
    settled = np.flatnonzero(nested.settled)
    repeated = np.resize(settled, FEWEST_CELLS)
    wanted = np.broadcast_to(LEVELS, (FEWEST_CELLS, len(LEVELS)))
    merged = nested.merged
    parts = [merged.take(np.array([cell])) for cell in repeated]
    quantiles = compiled_quantiles(merged.joined(parts, [1] * len(parts)), update, wanted)
    assert quantiles is not None
    line = coordinate_of(given)
    of_cells = np.full((sums.n_cells, len(LEVELS)), 0.5)
    of_cells[settled] = quantiles[: len(settled)]
    position = line.line.position(of_cells)[pairs.cell]
    levels = [np.bincount(pairs.cell, pairs.weight * line.cdf(column)) for column in position.T]
    return moments, np.max(np.abs(np.stack(levels, axis=1) - LEVELS), axis=1), nested.error


@pytest.mark.parametrize(
    ("trials", "scale", "prior"),
    [
        (1.0, 10.0, (1.0, 1.0)),
        (1.0, 1.0, (1.5, 3.0)),
        (1.0, 100.0, (1.0, 1.0)),
        (5.0, 50.0, (1.0, 1.0)),
        (5.0, 5.0, (2.0, 1.0)),
        (20.0, 60.0, (9.0, 4.0)),
    ],
)
def test_answers_are_those_of_blocks_thirty_times_as_fine(
    trials: float, scale: float, prior: tuple[float, float]
) -> None:
    sums, update = noisy(trials, scale, prior, Reciprocal(10**9))
    moments, levels, error = off(sums, update, resolve(sums, evenly=True, finer=FINER))
    settled = np.isfinite(error)
    assert np.count_nonzero(settled) >= len(settled) - (3 if max(prior) > 5.0 else 1)
    assert np.all(moments[settled] < MOMENT)
    assert np.all(levels[settled] < LEVEL)


@pytest.mark.parametrize("n_prior", [Reciprocal(30), Uniform(0, 25), Uniform(7, 31)])
@pytest.mark.parametrize(("trials", "prior"), [(1.0, (1.0, 1.0)), (1.0, (1.0, 2.0)), (4.0, (1.7, 1.0))])
def test_answers_are_those_of_all_pairs(trials: float, prior: tuple[float, float], n_prior: NPrior) -> None:
    """No records, one, and the last that the prior allows are among these."""
    sums, update = noisy(trials, 6.0 * trials, prior, n_prior, SHARES[:4])
    moments, levels, error = off(sums, update, enumerated(sums))
    settled = np.isfinite(error)
    assert np.count_nonzero(settled) >= 3
    assert np.all(moments[settled] < MOMENT)
    assert np.all(levels[settled] < LEVEL)


@pytest.mark.parametrize("trials", [1.0, 3.0])
def test_several_releases_are_taken_together(trials: float) -> None:
    sums, update = noisy(trials, 4.0 * trials, (1.5, 1.0), Reciprocal(40), SHARES[:4])
    totals = sums.totals
    both = replace(
        sums,
        totals=NoisyTotals(
            values=np.concatenate([totals.values, totals.values[::-1] + 3.0], axis=1),
            scale=np.concatenate([totals.scale, totals.scale * 3.0]),
            coefficients=np.tile(totals.coefficients, (2, 1)),
            releases=2,
        ),
    )
    moments, levels, error = off(both, update, enumerated(both))
    settled = np.isfinite(error)
    assert np.count_nonzero(settled) >= 3
    assert np.all(moments[settled] < MOMENT)
    assert np.all(levels[settled] < LEVEL)


@pytest.mark.parametrize(
    ("prior", "n_prior", "scales", "values"),
    [
        ((3.74, 1.72), Reciprocal(148), [32.7, 0.13], [108.0, -426.0, 86.0, 117.0]),
        ((6.36, 1.0), Uniform(30, 67), [15.58, 16.17], [30.0, 124.0, -592.0, -1160.0]),
        ((1.33, 2.15), Uniform(21, 25), [2.12], [21.0, -178.0]),
        ((3.19, 1.0), Uniform(16, 40), [9.75], [16.0, -19.0]),
    ],
)
def test_the_worst_cells_of_a_search_are_right(
    prior: tuple[float, float], n_prior: NPrior, scales: list[float], values: list[float]
) -> None:
    """Their levels were off by .015 to .024 while pieces had the masses of nodes, or did not grow with N."""
    sums, update = noisy(1.0, 1.0, prior, n_prior)
    totals = NoisyTotals(
        values=np.array([values]),
        scale=np.repeat(scales, 2),
        coefficients=np.tile(sums.totals.coefficients, (len(scales), 1)),
        releases=len(scales),
    )
    cell = replace(sums, totals=totals)
    moments, levels, error = off(cell, update, enumerated(cell))
    assert np.isfinite(error[0])
    assert moments[0] < 0.005
    assert levels[0] < LEVEL


def test_tails_of_many_pairs_that_weigh_little_are_kept() -> None:
    """Each pair of the tail is below the share that is left out of few pairs; together they are 3 %."""
    kernel: Any = importlib.import_module(QUANTILES.module)
    middle, tail = 100, 29_900
    pairs = np.zeros((middle + tail, 6))
    pairs[:, 2] = np.repeat([0.97 / middle, 0.03 / tail], [middle, tail])
    pairs[:, 3] = np.repeat([0.0, 5.0], [middle, tail])
    pairs[:, 5] = 1.0
    merged, keys = np.empty((50, 6)), np.empty((len(pairs), 2), np.int64)
    count = kernel.merge(pairs, len(pairs), 0.5, kernel.NEGLIGIBLE, np.empty(1 << 16, np.int64), keys, merged)
    assert merged[:count, 2] @ merged[:count, 4] == pytest.approx(0.15)
    # So a cell with too many pairs to be kept is left to blocks: its tails were off by .009 of a level.
    sums, update = noisy(20.0, 1.0, (10.0, 1.07), Reciprocal(10**4))
    values = [[22371.0, -6056.0, 23282.0, -10461.0, -2479.0, 676.0]]
    totals = NoisyTotals(
        values=np.array(values),
        scale=np.repeat([3989.3, 4586.0, 5397.9], 2),
        coefficients=np.tile(sums.totals.coefficients, (3, 1)),
        releases=3,
    )
    assert not np.any(resolve_nested(replace(sums, totals=totals), update).settled)


def test_few_nodes_that_stand_for_much_are_refined(monkeypatch: pytest.MonkeyPatch) -> None:
    """N is all but known, and the noise says nothing of S."""
    kernel: Any = importlib.import_module(PAIRS.module)
    sums, update = noisy(5.0, 400.0, (10.0, 1.0), Uniform(15, 17), np.array([[0.9, 0.8], [-0.2, -0.3]]))
    _, levels, error = off(sums, update, enumerated(sums))
    assert np.all(np.isfinite(error))
    assert np.all(levels < 0.004)
    monkeypatch.setattr(kernel, "RULES", kernel.RULES[:2])
    assert not np.any(resolve_nested(sums, update).settled)


def test_rules_that_are_too_coarse_settle_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel: Any = importlib.import_module(PAIRS.module)
    sums, update = noisy(1.0, 10.0, (1.0, 1.0), Reciprocal(10**9), SHARES[2:5])
    assert np.all(resolve_nested(sums, update).settled)
    monkeypatch.setattr(kernel, "RULES", ((2, 8.0, 8.0, 18.0, 9.0, 9.0), (3, 8.0, 8.0, 22.0, 9.0, 9.0)))
    assert not np.any(resolve_nested(sums, update).settled)


def test_a_posterior_far_from_the_likeliest_noise_is_left_to_blocks() -> None:
    """All of 60 trials succeeded, says the noise; the prior says that hardly any do."""
    sums, update = noisy(1.0, 20.0, (1.0, 9.9), Uniform(50, 10**6), np.array([[20.0, -20.0], [3.0, 30.0]]))
    settled = resolve_nested(sums, update).settled
    assert settled.tolist() == [False, True]


def test_threads_and_other_cells_change_no_digit() -> None:
    steps = np.arange(150.0)[:, None]
    sums, update = noisy(5.0, 15.0, (1.0, 1.0), Reciprocal(10**6), steps * [1.0, 2.5] - 9.0)
    alone, together = (resolve_nested(sums, update, threads) for threads in (1, 3))
    some = resolve_nested(sums.take(np.arange(40, 101)), update)
    for name in ("means", "sds", "log_evidence"):
        assert np.array_equal(getattr(alone.near, name), getattr(together.near, name))
        assert np.array_equal(getattr(alone.near, name)[40:101], getattr(some.near, name))
    for name in ("cell", "n", "total", "weight", "scatter"):
        assert np.array_equal(getattr(alone.merged, name), getattr(together.merged, name))


def test_few_and_many_cells_have_the_same_posterior() -> None:
    steps = np.arange(float(FEWEST_CELLS))[:, None]
    sums, update = noisy(1.0, 10.0, (1.0, 1.0), Reciprocal(10**6), steps * [0.3, 0.9] - 1.0)
    together, few = LatentSumPosterior.of(sums, update), np.array([0, 1, 7, 30])
    alone = LatentSumPosterior.of(sums.take(few), update)
    assert np.all(np.abs(together.means[few] - alone.means) < MOMENT * alone.sds)
    assert together.sds[few] == pytest.approx(alone.sds, rel=MOMENT)
    assert together.log_evidence[few] == pytest.approx(alone.log_evidence, abs=MOMENT)
    n, total = together.latent_means
    assert n[few] == pytest.approx(alone.latent_means[0], rel=0.01, abs=0.05)
    assert total[few] == pytest.approx(alone.latent_means[1], rel=0.01, abs=0.05)
    rng = np.random.default_rng(7)
    shortest = shortest_intervals(together, together.name, 0.95, (0.0, 1.0), 0, rng)
    of_alone = shortest_intervals(alone, alone.name, 0.95, (0.0, 1.0), 0, rng)
    assert np.diff(alone.cdf(shortest[few]), axis=1) == pytest.approx(0.95, abs=LEVEL)
    assert np.diff(shortest[few], axis=1) == pytest.approx(np.diff(of_alone, axis=1), rel=0.03)


def test_quantiles_in_compiled_code_are_those_without() -> None:
    steps = np.arange(float(FEWEST_CELLS))[:, None]
    sums, beta = noisy(1.0, 10.0, (0.7, 1.0), Reciprocal(10**6), steps * [0.05, 0.9] - 1.0)

    def gamma(n: Floats, total: Floats) -> GammaDistribution:
        return GammaDistribution(concentration=0.5 + total, rate=2.0 + n)

    merged = LatentSumPosterior.of(sums, beta).merged
    for update in (beta, gamma):
        levels = np.broadcast_to(LEVELS, (FEWEST_CELLS, len(LEVELS)))
        quantiles = compiled_quantiles(merged, update, levels)
        # As many as shortest intervals look at.
        many = np.concatenate([np.linspace(0.002, 0.05, 16), np.linspace(0.95, 0.998, 16)])
        looked_at = np.broadcast_to(many, (FEWEST_CELLS, len(many)))
        rough = compiled_quantiles(merged, update, looked_at, rough=True)
        assert quantiles is not None
        assert rough is not None
        assert merged.cdf(update, quantiles) == pytest.approx(levels, abs=2e-4)
        assert merged.cdf(update, rough) == pytest.approx(looked_at, abs=0.01)
        near = compiled_quantiles(merged, update, levels, near=quantiles * 0.98)
        assert near is not None
        assert merged.cdf(update, near) == pytest.approx(levels, abs=2e-4)


def test_what_rules_are_not_made_for_is_left_to_blocks() -> None:
    sums, update = noisy(1.0, 10.0, (1.0, 1.0), Reciprocal(10**6))
    assert can_resolve(sums, update)
    assert not can_resolve(replace(sums, n_prior=Fixed(30)), update)
    assert not can_resolve(noisy(1.0, 10.0, (11.0, 1.0), Reciprocal(10**6))[0], update)
    assert not can_resolve(noisy(1.0, 10.0, (1.0, 0.9), Reciprocal(10**6))[0], update)
    halves = replace(sums.totals, values=sums.totals.values + 0.5)
    assert not can_resolve(replace(sums, totals=halves), update)


def test_updates_that_are_not_linear_are_told() -> None:
    _, update = noisy(3.0, 1.0, (1.0, 2.0), Reciprocal(10))
    linear = linear_update(update)
    assert linear is not None
    assert linear[1] == pytest.approx([1.0, 0.0, 1.0, 2.0, 3.0, -1.0])
    assert linear_update(lambda n, total: GammaDistribution(concentration=1 + n * total, rate=1 + n)) is None
