"""Exact posteriors of latent counts, against enumeration and against themselves at other resolutions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from suffice.errors import PriorError, UsageError
from suffice.pipeline.math.distributions.dirichlet import sample_dirichlet
from suffice.pipeline.math.engines.multinomial import convolution, sampling
from suffice.pipeline.math.engines.multinomial import count_posterior as posterior
from suffice.pipeline.math.engines.multinomial import noisy_counts as noisy_counts_module
from suffice.pipeline.math.engines.multinomial.count_posterior import count_posterior
from suffice.pipeline.math.engines.multinomial.noisy_counts import (
    CountWeights,
    block_step,
    log_rising,
    quadrature,
)
from suffice.pipeline.math.engines.multinomial.sampling import count_sampler
from suffice.pipeline.math.priors.record_count import Fixed, NPrior, Reciprocal, Uniform
from support.latent_counts import (
    DRAWS,
    FALSE_ALARM,
    LARGEST_DISTANCE,
    PAIRS,
    TRIPLES,
    Enumeration,
    distance,
    noisy_counts,
    observed_again,
    rest_of_known_sum,
)

QUADRUPLES = [[3.0, 5.0, 2.0, 1.0], [-4.0, 2.0, 9.0, 3.0]]
N_PRIORS: list[NPrior] = [Fixed(12), Fixed(0), Uniform(0, 40), Uniform(5, 6), Uniform(7, 7), Reciprocal(60)]
PROBLEMS = [
    *itertools.product(
        [PAIRS], [[1.0, 1.0], [0.2, 0.2], [0.1, 3.0], [50.0, 80.0], [1e5, 3e4]], [0.5, 2.0], N_PRIORS
    ),
    *itertools.product(
        [TRIPLES],
        [[1.0, 1.0, 1.0], [0.2, 0.2, 0.05], [0.1, 3.0, 40.0]],
        [0.6, 1.3],
        [N_PRIORS[0], *N_PRIORS[2:]],
    ),
    *itertools.product(
        [QUADRUPLES],
        [[1.0, 1.0, 1.0, 1.0], [0.2, 2.0, 0.05, 1.0]],
        [0.5],
        [Fixed(12), Uniform(0, 25), Reciprocal(25)],
    ),
    # The posterior of N reaches far below, and above, what the balanced tilt resolves.
    ([[300.0, 300.0]], [1e4, 1e4], 50.0, Uniform(0, 1000)),
]


@pytest.mark.parametrize(("noisy", "concentration", "scale", "n_prior"), PROBLEMS)
def test_moments_equal_enumeration(
    noisy: list[list[float]], concentration: list[float], scale: float, n_prior: NPrior
) -> None:
    counts = noisy_counts(noisy, concentration, scale, n_prior)
    posterior = count_posterior(counts)
    for cell in range(len(noisy)):
        mean, sd = Enumeration(counts, cell).moments()
        assert np.max(np.abs(posterior.mean[cell] - mean) / sd) < 1e-6
        assert posterior.sd[cell] == pytest.approx(sd, rel=1e-6)


FURTHER = [
    (PAIRS, [[5.0, 1.0], [1.0, 1.0], [-7.0, 3.0], [4.0, 9.0], [0.0, 2.0]]),
    (TRIPLES, [[1.0, 7.0, -3.0], [3.0, 3.0, 3.0], [0.0, 8.0, 1.0]]),
]


@pytest.mark.parametrize("n_prior", [Fixed(12), Uniform(0, 40), Reciprocal(60)])
@pytest.mark.parametrize("concentration", [1.0, 0.2, 30.0])
@pytest.mark.parametrize(("noisy", "other"), FURTHER)
def test_counts_seen_through_several_noises_equal_enumeration(
    noisy: list[list[float]], other: list[list[float]], concentration: float, n_prior: NPrior
) -> None:
    counts = noisy_counts(noisy, [concentration] * len(noisy[0]), 2.0, n_prior)
    observation = np.array(other)
    counts = observed_again(counts, (observation, 1.3), (observation[::-1].copy(), 4.0))
    posterior = count_posterior(counts)
    for cell in range(len(noisy)):
        mean, sd = Enumeration(counts, cell).moments()
        assert np.max(np.abs(posterior.mean[cell] - mean) / sd) < 1e-6
        assert posterior.sd[cell] == pytest.approx(sd, rel=1e-6)


@pytest.mark.parametrize("n_prior", [Fixed(12), Uniform(0, 40)])
def test_draws_of_counts_seen_twice_follow_the_enumerated_distribution(n_prior: NPrior) -> None:
    counts = noisy_counts([[3.0, 5.0, 2.0]], [0.5, 1.0, 2.0], 2.0, n_prior)
    twice = observed_again(counts, (np.array([[6.0, 1.0, -1.0]]), 1.5))
    enumeration = Enumeration(twice, 0)
    draws = count_posterior(twice).sample(DRAWS, np.random.default_rng())
    alone = count_posterior(counts).sample(DRAWS, np.random.default_rng())
    for category in range(3):
        assert distance(draws[:, 0, category], enumeration, category) < LARGEST_DISTANCE
    assert distance(alone[:, 0, 1], enumeration, 1) > LARGEST_DISTANCE


def test_large_counts_seen_twice_are_those_of_their_average_where_noise_is_small() -> None:
    """Blocks of many counts: two sights with kinks far apart, whose flat product lies between them."""
    once = noisy_counts([[3e8, 7e8]], [1.0, 1.0], 1e5, Reciprocal(10**12))
    twice = observed_again(once, (np.array([[3e8, 7e8]]), 1e5))
    direct = noisy_counts([[3e8, 7e8]], [1.0, 1.0], 5e4, Reciprocal(10**12))
    assert count_posterior(twice).mean == pytest.approx(count_posterior(direct).mean, rel=1e-9)
    assert count_posterior(twice).sd == pytest.approx(count_posterior(direct).sd, rel=1e-6)


@pytest.mark.parametrize("observed", [[True, False], [False, True]])
def test_one_count_of_two_is_enough_where_n_is_known(observed: list[bool]) -> None:
    counts = noisy_counts(PAIRS, [0.5, 2.0], 3.0, Fixed(12), observed)
    posterior = count_posterior(counts)
    for cell in range(len(PAIRS)):
        mean, sd = Enumeration(counts, cell).moments()
        assert posterior.mean[cell] == pytest.approx(mean, rel=1e-12)
        assert posterior.sd[cell] == pytest.approx(sd, rel=1e-12)


DRAWN: list[tuple[list[float], list[float], float, NPrior]] = [
    ([3.0, 5.0], [1.0, 1.0], 2.0, Fixed(12)),
    ([3.0, 5.0], [1.0, 1.0], 2.0, Uniform(0, 40)),
    ([-6.0, 1.0], [0.2, 0.3], 2.0, Reciprocal(60)),
    ([2.0, 1.0], [50.0, 80.0], 2.0, Reciprocal(60)),
    ([3.0, 5.0, 2.0], [0.2, 0.2, 0.05], 1.3, Fixed(12)),
    ([3.0, 5.0, 2.0], [0.1, 3.0, 40.0], 1.3, Uniform(0, 40)),
]


@pytest.mark.parametrize(("noisy", "concentration", "scale", "n_prior"), DRAWN)
def test_draws_follow_the_enumerated_distribution(
    noisy: list[float], concentration: list[float], scale: float, n_prior: NPrior
) -> None:
    counts = noisy_counts([noisy], concentration, scale, n_prior)
    enumeration = Enumeration(counts, 0)
    draws = count_posterior(counts).sample(DRAWS, np.random.default_rng())
    assert draws.shape == (DRAWS, 1, len(noisy))
    assert np.sum(draws, axis=2) == pytest.approx(1.0)
    for category in range(len(noisy)):
        assert distance(draws[:, 0, category], enumeration, category) < LARGEST_DISTANCE


def test_draws_that_take_the_noisy_counts_for_exact_are_found_out() -> None:
    for noisy, concentration, scale, n_prior in DRAWN[1:3]:
        counts = noisy_counts([noisy], concentration, scale, n_prior)
        naive = np.array(concentration) + np.maximum(noisy, 0.0)
        draws = sample_dirichlet(np.tile(naive, (DRAWS, 1)), np.random.default_rng())
        assert distance(draws[:, 0], Enumeration(counts, 0), 0) > LARGEST_DISTANCE


@pytest.mark.parametrize("n_prior", [Fixed(12), Uniform(0, 40), Reciprocal(60)])
def test_draws_of_counts_above_the_cap_follow_the_distribution_too(
    n_prior: NPrior, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A cap 48 nats down sends almost every draw the long way: N first, then one count after the other.
    monkeypatch.setattr(sampling, "CAPS", np.array([48.0]))
    counts = noisy_counts([[3.0, 5.0, 2.0]], [0.2, 1.0, 3.0], 1.3, n_prior)
    draws = count_posterior(counts).sample(DRAWS, np.random.default_rng())
    enumeration = Enumeration(counts, 0)
    for category in range(3):
        assert distance(draws[:, 0, category], enumeration, category) < LARGEST_DISTANCE


def test_an_informative_prior_far_from_the_noisy_count_wins() -> None:
    # The noise's window around y = 1e5 ends before the posterior begins.
    counts = noisy_counts([[0.0, 1e5]], [1e5, 1e5], 10.0, Fixed(10**6), [False, True])
    posterior = count_posterior(counts)
    expected = (1e5 + 359_927) / (2e5 + 1e6)
    assert posterior.mean[0, 1] == pytest.approx(expected, abs=1e-6)


COARSE: list[tuple[list[list[float]], list[float], NPrior]] = [
    ([[900.0, 2500.0], [-300.0, 40.0]], [1.0, 1.0], Fixed(3000)),
    ([[900.0, 2500.0], [-300.0, 40.0]], [1.0, 1.0], Uniform(0, 6000)),
    ([[900.0, 2500.0], [4000.0, 40.0]], [0.5, 0.5], Reciprocal(10**6)),
    ([[900.0, 2500.0], [4000.0, 40.0]], [30.0, 10.0], Reciprocal(10**6)),
    ([[900.0, 2500.0, 300.0]], [1.0, 0.5, 2.0], Fixed(3500)),
]


@pytest.mark.parametrize(("noisy", "concentration", "n_prior"), COARSE)
def test_a_coarser_grid_gives_the_same_posterior(
    noisy: list[list[float]],
    concentration: list[float],
    n_prior: NPrior,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts = noisy_counts(noisy, concentration, 60.0, n_prior)
    fine = count_posterior(counts)
    points = 2**12
    for module, name in ((convolution, "MAX_GRID"), (posterior, "MAX_GRID"), (convolution, "TABLE_BLOCKS")):
        monkeypatch.setattr(module, name, points)
    monkeypatch.setattr(noisy_counts_module, "PAIR_BLOCKS", 256)
    coarse = count_posterior(counts)
    # The stated error, (step / scale)^2 / 8, for steps of 4.
    error = (4 / 60) ** 2 / 8
    assert np.max(np.abs(coarse.mean - fine.mean) / fine.sd) < error
    assert coarse.sd == pytest.approx(fine.sd, rel=error)
    assert np.max(np.abs(coarse.sd / fine.sd - 1.0)) > 0.0
    draws = coarse.sample(DRAWS, np.random.default_rng())
    for mean, sd, values in zip(fine.mean.ravel(), fine.sd.ravel(), draws.reshape(DRAWS, -1).T, strict=True):
        # Bernstein's inequality for draws within 0..1.
        nats = math.log(2 / FALSE_ALARM)
        limit = math.sqrt(2 * sd**2 * nats / DRAWS) + nats / (3 * DRAWS)
        assert abs(np.mean(values) - mean) < limit + error * sd


@pytest.mark.parametrize("categories", [2, 12])
@pytest.mark.parametrize(("scale", "n"), [(1.0, 10**12), (1e3, 10**6), (1e6, 20), (1e6, 10**9)])
def test_any_size_is_resolved(scale: float, n: int, categories: int) -> None:
    """Of arbitrary counts; 56 means of 500 draws by Bernstein's inequality."""
    rng = np.random.default_rng(7)
    exact = rng.multinomial(n, np.full(categories, 1 / categories))
    noise = np.rint(rng.laplace(0.0, scale, categories))
    counts = noisy_counts([list(exact + noise)], [1.0] * categories, scale, Reciprocal(10**13))
    posterior = count_posterior(counts)
    assert np.sum(posterior.mean) == pytest.approx(1.0, abs=1e-4)
    assert np.all(posterior.sd > 0.0)
    draws = posterior.sample(500, np.random.default_rng())[:, 0]
    nats = math.log(2 / FALSE_ALARM)
    limit = np.sqrt(2 * posterior.sd[0] ** 2 * nats / 500) + nats / (3 * 500)
    assert np.all(np.abs(draws.mean(axis=0) - posterior.mean[0]) < limit)


def test_cells_do_not_depend_on_their_company() -> None:
    rng = np.random.default_rng(7)
    noisy = [list(row) for row in np.rint(rng.laplace(100.0, 150.0, (300, 3)))]
    together = count_posterior(noisy_counts(noisy, [1.0, 1.0, 1.0], 5.0, Reciprocal(10**9)))
    alone = [
        count_posterior(noisy_counts([row], [1.0, 1.0, 1.0], 5.0, Reciprocal(10**9))) for row in noisy[::60]
    ]
    assert together.mean[::60] == pytest.approx(np.concatenate([single.mean for single in alone]), rel=1e-7)
    assert together.sample(7, rng).shape == (7, 300, 3)


def test_an_unreleased_count_needs_a_known_n() -> None:
    with pytest.raises(UsageError, match="known N"):
        noisy_counts([[0.0, 3.0]], [1.0, 1.0], 1.0, Uniform(0, 5), [False, True])


def test_extreme_concentrations_are_refused() -> None:
    with pytest.raises(PriorError, match="concentration"):
        noisy_counts([[0.0, 3.0]], [1.0, 1e12], 1.0, Fixed(5))


def test_log_rising_keeps_its_digits() -> None:
    def value(concentration: float, count: float) -> float:
        return float(log_rising(np.array([concentration]), np.array([count]))[0])

    assert value(1.0, 1e12) == 0.0
    assert value(2.0, 1e12) == pytest.approx(math.log(1e12 + 1), rel=1e-15)
    assert value(3.0, 1e9) == pytest.approx(math.log((1e9 + 1) / 2) + math.log(1e9 + 2), rel=1e-15)
    assert value(1e9, 2.0) == pytest.approx(math.log(1e9 * (1e9 + 1) / 2), rel=1e-15)
    exact = sum(math.log((0.3 + i) / (1.0 + i)) for i in range(30_000))
    assert value(0.3, 30_000.0) == pytest.approx(exact, rel=1e-12)


def one_row(mean: float, rest: float, scale: float, value: float, rest_value: float | None) -> CountWeights:
    return CountWeights(
        concentration=np.array([mean]),
        tilt=np.zeros(1),
        n=np.array([1000.0]),
        rest_concentration=np.array([rest]),
        kinks=np.array([[value], [1000.0 - (rest_value or 0.0)]]),
        rates=np.array([1.0, 0.0 if rest_value is None else 1.0]) / scale,
    )


ROWS = [
    one_row(1.0, 1.0, 10.0, 5.0, None),
    one_row(0.2, 1.0, 10.0, 50.0, None),
    one_row(40.0, 0.3, 10.0, 300.0, None),
    one_row(0.2, 30.0, 10.0, 300.0, 600.0),
    one_row(0.1, 0.1, 30.0, 500.0, 450.0),
    one_row(900.0, 400.0, 3.0, 20.0, 990.0),
]


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("blocks", [2000, 64])
def test_windows_sums_bounds_and_draws_of_one_row(row: CountWeights, blocks: int) -> None:
    every = np.arange(1001.0)
    log_weight = row.log_weight(every[None])[0]
    low, high = row.window()
    inside = np.flatnonzero(log_weight >= log_weight.max() - 45.0)
    assert (low[0], high[0]) == (inside[0], inside[-1])
    edges = row.blocks(low, high, block_step(high - low + 1.0, blocks))
    weight = np.exp(log_weight - log_weight.max())
    nodes, lengths = quadrature(edges)
    at_nodes = np.exp(row.log_weight(np.minimum(nodes, 1000.0)) - log_weight.max())
    assert np.sum(at_nodes * lengths) == pytest.approx(weight.sum(), rel=1e-4)
    bounds = np.repeat(row.block_bounds(edges)[0], np.diff(edges[0]).astype(int))
    assert np.all(bounds >= log_weight[inside[0] : inside[-1] + 1])
    draws = count_sampler(row, edges).sample(np.zeros(DRAWS, dtype=np.int64), np.random.default_rng())
    observation = np.bincount(draws.astype(int), minlength=1001).cumsum() / DRAWS
    assert np.max(np.abs(observation - weight.cumsum() / weight.sum())) < LARGEST_DISTANCE


def test_small_concentrations_do_not_underflow() -> None:
    draws = sample_dirichlet(np.full((1000, 3), 1e-4), np.random.default_rng(7))
    assert np.all(np.isfinite(draws))
    assert np.sum(draws, axis=1) == pytest.approx(1.0)


@pytest.mark.parametrize("concentration", [1e-6, 0.3, 2.5, 90.0, 4e4])
def test_log_rising_is_one_product_on_both_sides_of_its_series(concentration: float) -> None:
    border = int(9.5 * concentration) + 10
    steps = np.log((concentration + np.arange(2 * border)) / (1.0 + np.arange(2 * border)))
    count = np.unique(np.linspace(0, 2 * border, 200, dtype=np.int64))
    expected = np.append(0.0, np.cumsum(steps, dtype=np.longdouble)).astype(float)[count]
    assert log_rising(np.array([concentration]), count.astype(float)) == pytest.approx(
        expected, rel=1e-11, abs=1e-9
    )


@pytest.mark.parametrize("scale", [13.6, 13.4])
def test_one_category_that_may_hold_all_of_a_known_number_has_its_mean_on_a_coarse_grid(
    scale: float,
) -> None:
    counts = noisy_counts([[99960.0, 3.0, 10.0]], [0.01, 0.01, 0.01], scale, Fixed(100_000))
    exact = count_posterior(counts)
    rest = rest_of_known_sum(counts, 3000)
    others = float(rest @ (0.02 + np.arange(3001.0))) / (100_000 + 0.03)
    assert abs(1.0 - exact.mean[0, 0] - others) < 0.002 * exact.sd[0, 0]
