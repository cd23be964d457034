"""Answers under noise that is drawn again: against enumeration of all records and all noise."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import special, stats

from suffice.errors import UsageError
from suffice.pipeline.ask.posterior.redrawn_noise import REDRAWN, redrawn
from suffice.pipeline.math.priors.record_count import Uniform
from support.noisy import noisy_statistic, statistic_plan
from support.unrestricted import unrestricted_posterior

if TYPE_CHECKING:
    from suffice.pipeline.ask.posterior.posterior import Posterior
    from suffice.typing import Floats

MOST = 12
"""Records that there may be."""


def posterior_of(row: list[int], prior: str = "Beta(2, 8)", *, epsilon: str = "1") -> Posterior:
    plan = statistic_plan({"family": "bernoulli", "column": "x"}, epsilon=epsilon, public_n=False)
    return unrestricted_posterior(
        noisy_statistic(plan, np.array([row])), prior=prior, n_prior=Uniform(0, MOST)
    )


def law_of_means(
    released: list[int], scale: float, prior: Any, *, noise: float = 1.0
) -> tuple[Floats, Floats]:
    """Posterior means after a redraw, ascending, and their probabilities: all sums, all noise.

    A control draws noise of another scale.
    """
    pairs = [(n, true) for n in range(MOST + 1) for true in range(n + 1)]
    chance = np.array([math.log(prior(n, true)) for n, true in pairs])
    exact = np.array([[n - true, true] for n, true in pairs])
    log_noise = -np.abs(exact - np.array(released)).sum(axis=1) / scale
    given = special.softmax(chance + log_noise)
    # Of every redrawn release within 25 scales: the mean, and its probability given what was released.
    reach = np.arange(-25, MOST + 26)
    again = np.array(list(itertools.product(reach, reach)))
    away = np.abs(again[:, None] - exact[None]).sum(axis=2)
    weight = special.softmax(chance - away / scale, axis=1)
    parameter = np.array([(2.0 + true) / (10.0 + n) for n, true in pairs])
    means = weight @ parameter
    fresh = np.exp(-away / (noise * scale)) * math.tanh(0.5 / noise / scale) ** 2
    order = np.argsort(means)
    return means[order], (fresh @ given)[order]


def beta_binomial(n: int, true: int) -> float:
    return float(stats.betabinom.pmf(true, n, 2, 8))


REDRAWS = 2000


@pytest.mark.parametrize("row", [[7, 3], [-2, 1]], ids=str)
def test_percentiles_are_those_of_all_records_and_all_noise(row: list[int]) -> None:
    posterior = posterior_of(row)
    low, high = redrawn(posterior, REDRAWS, 0.95, None, 100, np.random.default_rng()).between(0)["mean"]
    means, chance = law_of_means(row, 1.0, beta_binomial)
    assert float(chance.sum()) == pytest.approx(1.0, abs=1e-6)
    # Six standard errors of a share of 2,000: 4.3e-8 a side and row, by the binomial.
    room = 6.0 * math.sqrt(0.025 * 0.975 / REDRAWS)
    step = 1e-4
    assert chance[means < low - step].sum() <= 0.025 + room
    assert chance[means <= low + step].sum() >= 0.025 - room
    assert chance[means < high - step].sum() <= 0.975 + room
    assert chance[means <= high + step].sum() >= 0.975 - room
    # Noise of half the scale would stay well within.
    quiet_means, quiet = law_of_means(row, 1.0, beta_binomial, noise=0.5)
    assert quiet[(quiet_means > low) & (quiet_means < high)].sum() > 0.95 + room


@pytest.mark.slow
def test_a_density_is_redrawn_as_its_conjugate_equal() -> None:
    prior = "Truncated(Uniform(0, 1), 0, 1)"
    rng = np.random.default_rng(7)
    by_density = redrawn(posterior_of([7, 3], prior), 100, 0.95, 0.3, 100, rng)
    by_conjugate = redrawn(posterior_of([7, 3], "Beta(1, 1)"), 4000, 0.95, 0.3, 100, rng)
    for name, answer in by_density.answers.items():
        every = by_conjugate.answers[name]
        # The mean of 100 redraws within six standard errors.
        assert abs(answer.mean() - every.mean()) < 6.0 * every.std() / 10.0


MEAN = {"variance": "4", "lower": "-9", "upper": "9", "lattice_bits": "4"}


@pytest.mark.parametrize(
    ("family", "keys", "values", "public"),
    [
        ("poisson", {"upper": "9"}, [[20, 160]], None),
        ("poisson", {"upper": "9"}, [[20]], 20),
        ("geometric", {"upper": "12"}, [[20, 220]], None),
        ("exponential", {"upper": "10", "lattice_bits": "8"}, [[800, 4000]], None),
        ("normal_known_variance", MEAN, [[150, 400]], None),
        ("normal_known_variance", MEAN, [[-60]], 20),
        ("bernoulli", {}, [[4]], 20),
    ],
)  # fmt: skip
def test_components_are_moved_by_the_difference_of_two_noises(
    family: str, keys: dict[str, str], values: list[list[int]], public: int | None
) -> None:
    """Whatever the lattice, and whatever order engines take components in: exact sums are possible ones."""
    from suffice.pipeline.ask.posterior.redrawn_noise import _redrawn_statistic

    plan = statistic_plan({"family": family, "column": "x", **keys}, epsilon="1", public_n=public is not None)
    statistic = noisy_statistic(plan, np.array(values), public_n=public)
    posterior = unrestricted_posterior(statistic, clipping="ignored")
    drawn = _redrawn_statistic(posterior, 400, np.random.default_rng(7)).values.astype(np.float64)
    moved = drawn - np.array(values)
    # Two discrete Laplace numbers of scale b, of which the first is given what was released: sd below 4 b.
    assert 0.5 * plan.scale < moved.std() < 4.0 * plan.scale
    assert np.abs(np.median(moved, axis=0)).max() < 2.0 * plan.scale
    answers = redrawn(posterior, 100, 0.9, None, 100, np.random.default_rng(7)).between(0)
    (name,) = posterior.parameters
    ends = posterior.credible_interval(name, 0.9, interval="central")[0]
    for end, (low, high) in zip(ends, (answers["lower"], answers["upper"]), strict=True):
        assert low < end < high


@pytest.mark.slow
def test_robustness_says_how_many_redraws_and_their_error() -> None:
    posterior = posterior_of([7, 3])
    table = posterior.robustness(above=0.2, redraws=60, rng=5)
    row = next(row for row in table if row["prior"] == REDRAWN)
    stated = table[0]
    assert row["mean_least"] < stated["mean_least"] < row["mean_most"]
    assert row["above_least"] < stated["above_least"] < row["above_most"]
    assert "of 60 redraws; Monte Carlo standard errors" in str(table)
    assert table == posterior.robustness(above=0.2, redraws=60, rng=5)
    assert all(row["prior"] != REDRAWN for row in posterior.robustness(redraws=0))


def test_what_takes_long_is_left_out_and_said() -> None:
    table = posterior_of([7, 3], "Truncated(Uniform(0, 1), 0, 1)").robustness()
    assert "tenth of a second a cell: ask for it in Python, with redraws=100" in str(table)


@pytest.mark.parametrize("redraws", [39, 1, -5, 100.0, True, "9"])
def test_numbers_of_redraws_that_are_none(redraws: Any) -> None:
    with pytest.raises(UsageError, match="redraws is a whole number of 40 or more, or 0"):
        posterior_of([7, 3]).robustness(redraws=redraws)


def test_several_parameters_have_no_redraws() -> None:
    plan = statistic_plan(
        {"family": "categorical", "column": "x", "categories": ["a", "b", "c"], "other": "false"},
        epsilon="1",
        public_n=False,
    )
    posterior = unrestricted_posterior(noisy_statistic(plan, np.array([[30, 50, 20]])))
    with pytest.raises(UsageError, match="it has several parameters: leave redraws out"):
        posterior.robustness(redraws=100)
