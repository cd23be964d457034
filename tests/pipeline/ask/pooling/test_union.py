"""What merged cells add up to: against enumeration, and over worlds in which cells differ."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from suffice.errors import UsageError
from suffice.pipeline.ask.pooling.roll_up import roll_up, union_posterior
from suffice.pipeline.math.engines.unions import EXPONENTS
from support.noisy import discrete_laplace, noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

FALSE_ALARM = 1e-7
"""Of one of at most eight coverages of a test."""
COUNTIES = 12


def released(entry: dict[str, Any], epsilon: str, totals: Any, rng: np.random.Generator) -> NoisyStatistic:
    """Totals (states, counties, components) behind noise, a cell for every county."""
    plan = statistic_plan(entry, epsilon=epsilon, public_n=False)
    states, counties, components = totals.shape
    values = totals.reshape(-1, components)
    values = values + discrete_laplace(plan.scale, values.shape, rng)
    groups: dict[str, list[str | int]] = {
        "state": np.repeat(np.arange(states), counties).tolist(),
        "county": np.tile(np.arange(counties), states).tolist(),
    }
    return noisy_statistic(plan, values, groups=groups)


def counties(states: int, rng: np.random.Generator) -> tuple[Any, Floats]:
    """Sizes from 1 to some thousands, and effects on rates that rise with them: no model here has either."""
    size = rng.negative_binomial(0.5, 0.002, (states, COUNTIES)) + 1
    return size, 0.7 * np.log(size / 250.0) + rng.normal(0.0, 0.5, size.shape)


def flags(states: int, epsilon: str, rng: np.random.Generator) -> tuple[NoisyStatistic, Floats]:
    size, effect = counties(states, rng)
    true = rng.binomial(size, 1.0 / (1.0 + np.exp(1.5 - effect)))
    statistic = released(
        {"family": "bernoulli", "column": "x"}, epsilon, np.stack([size - true, true], axis=-1), rng
    )
    return statistic, true.sum(axis=1) / size.sum(axis=1)


def held(posterior: Any, parameter: str, truth: Floats) -> Any:
    ends = posterior.credible_interval(parameter)
    return (ends[..., 0] <= truth + 1e-9) & (truth <= ends[..., 1] + 1e-9)


@pytest.mark.parametrize(
    ("values", "epsilon"), [([[1, 2], [0, 3]], "1"), ([[4, -2], [1, -1], [2, 0]], "0.5")]
)
def test_totals_of_few_records_are_those_of_enumeration(values: list[list[int]], epsilon: str) -> None:
    plan = statistic_plan({"family": "bernoulli", "column": "x"}, epsilon=epsilon, public_n=False)
    posterior = roll_up(noisy_statistic(plan, np.array(values)), "cell").posterior()
    sums, most = np.sum(values, axis=0), 400
    kernel = np.exp(-np.abs(np.arange(-most, most + 1)) / plan.scale)
    noise = kernel
    for _ in values[1:]:
        noise = np.convolve(noise, kernel, mode="same")
    counts = np.arange(200.0)
    sd = np.sqrt(len(values)) * plan.component_noise_sd
    bound = max(sums.sum() + 3.0 * sd * np.sqrt(2.0), 1.0)
    weight = np.zeros((200, 200))
    for exponent in EXPONENTS:
        grid = np.linspace(0.0, bound, 200_001)
        parts = [(1.0 + counts) ** -exponent * noise[most + value - counts.astype(int)] for value in sums]
        weight += np.outer(*parts) / np.trapezoid((1.0 + grid) ** -exponent, grid) ** 2
    weight[0, 0] = 0.0
    weight /= weight.sum()
    false, true = np.meshgrid(counts, counts, indexing="ij")
    for name, quantity in {
        "n": false + true,
        "total": true,
        "share": true / np.maximum(false + true, 1.0),
    }.items():
        mean = np.sum(weight * quantity)
        spread = np.sqrt(np.sum(weight * (quantity - mean) ** 2))
        assert posterior.mean(name)[0] == pytest.approx(mean, abs=0.02 * spread)
        assert posterior.sd(name)[0] == pytest.approx(spread, rel=0.03)
        order = np.argsort(quantity, axis=None)
        below = np.cumsum(weight.ravel()[order])
        for level in (0.025, 0.975):
            end = posterior.quantile(name, level)[0]
            at = np.searchsorted(quantity.ravel()[order], [end - 1e-9, end + 1e-9], side="right")
            low, high = (below[place - 1] if place else 0.0 for place in at.tolist())
            assert low - 0.01 <= level <= high + 0.01


@pytest.mark.slow
def test_shares_hold_where_rates_rise_with_sizes() -> None:
    """At a coverage of 0.93 fewer than the least are held with a chance below 1e-7."""
    rng = np.random.default_rng()
    states = 200
    statistic, truth = flags(states, "1", rng)
    least = stats.binom.ppf(FALSE_ALARM, states, 0.93)
    assert held(roll_up(statistic, "county").posterior(), "share", truth).sum() >= least
    # Who believes in the noise of one cell misses: of 800 shares 370 were held, and 164 of 200 never are.
    summed = dataclasses.replace(roll_up(statistic, "county").statistic, cells_summed=1)
    assert held(union_posterior(summed), "share", truth).sum() < least


@pytest.mark.audit
@pytest.mark.timeout(1800)
def test_a_shared_parameter_misses_where_rates_rise_with_sizes() -> None:
    """Of 24 such states the shared parameter held 16; 120 make a chance of it impossible."""
    rng = np.random.default_rng()
    states = 120
    size = rng.negative_binomial(0.7, 0.7 / 30.7, (states, COUNTIES)) + 1
    effect = 1.5 * np.log(size / 30.0) + rng.normal(0.0, 0.5, size.shape)
    true = rng.binomial(size, 1.0 / (1.0 + np.exp(1.5 - effect)))
    entry = {"family": "bernoulli", "column": "x"}
    rolled = roll_up(released(entry, "0.3", np.stack([size - true, true], axis=-1), rng), "county")
    truth = true.sum(axis=1) / size.sum(axis=1)
    least = stats.binom.ppf(FALSE_ALARM, states, 0.93)
    assert held(rolled.posterior(), "share", truth).sum() >= least
    assert held(rolled.posterior(assume="one parameter"), "probability", truth).sum() < least


@pytest.mark.slow
def test_means_of_waits_hold_where_no_model_is_right() -> None:
    """Of means and of numbers of records: 2e-7 at a coverage of 0.93."""
    rng = np.random.default_rng()
    states, entry = 100, {"family": "exponential", "column": "x", "upper": "50"}
    reach = int(statistic_plan(entry, epsilon="1", public_n=False).partition_total or 1)
    size, effect = counties(states, rng)
    # Of a lognormal column whose counties differ: sums of clipped, rounded values.
    mean = np.minimum(2.0 * np.exp(effect), 20.0)
    amount = np.rint(rng.gamma(size / 3.0, 3.0 * mean) / 50.0 * reach).astype(np.int64)
    amount = np.minimum(amount, reach * size)
    statistic = released(entry, "1", np.stack([amount, reach * size - amount], axis=-1), rng)
    truth = amount.sum(axis=1) * 50.0 / reach / size.sum(axis=1)
    posterior = roll_up(statistic, "county").posterior()
    least = stats.binom.ppf(FALSE_ALARM, states, 0.93)
    assert held(posterior, "mean", truth).sum() >= least
    assert held(posterior, "n", size.sum(axis=1)).sum() >= least


@pytest.mark.slow
@pytest.mark.parametrize(("family", "bounds"), [("normal", ("-10", "10")), ("lognormal", ("0.1", "1000"))])
def test_moments_hold_of_columns_that_are_not_normal(family: str, bounds: tuple[str, str]) -> None:
    """Values of two clusters in every county, whose weights rise with its size.

    Eight coverages: 8e-7 at 0.93. The control held 102 of 240 means: it passes with a chance below 1e-8.
    """
    rng = np.random.default_rng()
    states, entry = 90, {"family": family, "column": "x", "lower": bounds[0], "upper": bounds[1]}
    plan = statistic_plan(entry, epsilon="1", public_n=False)
    steps = round(float((plan.partition_total or 1) / 4) ** 0.5)
    size, effect = counties(states, rng)
    high = rng.binomial(size, 1.0 / (1.0 + np.exp(1.0 - effect)))
    places = np.rint(np.array([-0.4, 0.5]) * steps).astype(np.int64)
    counts = np.stack([size - high, high], axis=-1)
    basis = np.stack(
        [(steps - places) ** 2, 2 * (steps - places) * (steps + places), (steps + places) ** 2], axis=-1
    )
    statistic = released(entry, "1", counts @ basis, rng)
    lower, upper = float(plan.parameters.lower or 0), float(plan.parameters.upper or 0)
    x = (lower + upper) / 2 + (upper - lower) / 2 * places / steps
    share = counts.sum(axis=1) / size.sum(axis=1)[:, None]
    mean = share @ x
    variance = share @ x**2 - mean**2
    posterior = roll_up(statistic, "county").posterior()
    truths = dict(
        zip(posterior.parameters, (size.sum(axis=1), size.sum(axis=1) * mean, mean, variance), strict=True)
    )
    least = stats.binom.ppf(FALSE_ALARM, states, 0.93)
    for name, truth in truths.items():
        assert held(posterior, name, truth).sum() >= least, name
    wrong = dataclasses.replace(roll_up(statistic, "county").statistic, cells_summed=1)
    assert held(union_posterior(wrong), "mean" if family == "normal" else "log_mean", mean).sum() < least


def test_counts_of_categories_add_up_in_every_draw() -> None:
    rng = np.random.default_rng()
    entry = {"family": "categorical", "column": "x", "categories": ["a", "b", "c"]}
    size, _ = counties(20, rng)
    totals = rng.multinomial(size, [0.9, 0.0999, 0.0001])
    posterior = roll_up(released(entry, "1", totals, rng), "county").posterior()
    assert posterior.labels("share") == ("category", ("a", "b", "c"))
    drawn = posterior.sample(100, rng)
    assert drawn["share"].sum(axis=2) == pytest.approx(1.0)
    assert drawn["count"].min() >= 0.0
    # Intervals of a category that nobody is in reach 0 in 95 % of states: that 9 of 20 do not has a chance
    # of 2e-7.
    assert np.sum(posterior.credible_interval("count")[:, 2, 0] > 3.0) <= 8
    for call in (lambda: posterior.log_evidence, posterior.check):
        with pytest.raises(UsageError, match="no model of rows"):
            call()


def test_cells_without_a_record_have_no_share_but_an_answer() -> None:
    plan = statistic_plan({"family": "bernoulli", "column": "x"}, epsilon="20", public_n=False)
    values = np.array([[-9, -8], [-9, -9], [50, 5], [40, 5]])
    groups: dict[str, list[str | int]] = {"state": [0, 0, 1, 1], "county": [0, 1, 0, 1]}
    posterior = roll_up(noisy_statistic(plan, values, groups=groups), "county").posterior()
    assert posterior.mean("n") == pytest.approx([0.0, 100.0], abs=1.0)
    assert np.isnan(posterior.mean("share")[0])
    assert posterior.mean("share")[1] == pytest.approx(0.1, abs=0.01)
