"""Roll-ups of pooled cells: weights by latent numbers of records, and what cells have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from suffice.errors import UsageError
from suffice.pipeline.ask.borrowing.pooled_posterior import PooledPosterior, pooled_posterior
from suffice.pipeline.ask.borrowing.pooling import Pooling
from suffice.pipeline.ask.inference.posterior_terms import PosteriorTerms
from suffice.pipeline.ask.pooling.roll_up import roll_up
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.math.engines.pooled.distribution import PooledDistribution
from support.noisy import discrete_laplace, noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from collections.abc import Iterator

DRAWS = 800


def pooled(
    size: Any,
    probability: Any,
    rng: np.random.Generator,
    epsilon: str,
    asked: Any = "logit-normal",
    **terms: Any,
) -> PooledPosterior:
    plan = statistic_plan({"family": "bernoulli", "column": "x"}, epsilon=epsilon, public_n=False)
    true = rng.binomial(size, probability)
    counts = np.stack([size - true, true], axis=1)
    values = counts + discrete_laplace(plan.scale, counts.shape, rng)
    groups: dict[str, list[str | int]] = {
        "region": ["N", "S"] * (len(size) // 2),
        "county": [cell // 2 for cell in range(len(size))],
    }
    statistic = noisy_statistic(plan, values, groups=groups)
    return pooled_posterior(statistic, PosteriorTerms(**terms), asked, lambda: posterior_of(statistic))


def regional(n_cells: int, rng: np.random.Generator) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
    """The truth of each of two regions, and draws of it: with what cells share, and without.

    Truths are skewed, regions have populations of their own, and noise hides most of a cell.
    """
    size = np.maximum(np.rint(np.exp(rng.normal(3.4, 0.7, 2 * n_cells))), 1.0).astype(np.int64)
    probability = expit(-2.6 + rng.gamma(4.0, 0.15, 2 * n_cells))
    answer = pooled(size, probability, rng, "0.2", "region")
    drawn, records = answer.distribution.sample_with_records(DRAWS, rng)  # type: ignore[attr-defined]
    together = answer.roll_up("county").sample(DRAWS, rng)["probability"]
    for region in range(2):
        cells = np.arange(region, 2 * n_cells, 2)
        truth = float(np.sum((size * probability)[cells]) / np.sum(size[cells]))
        apart = np.sum(records[:, cells] * rng.permuted(drawn[:, cells], axis=0), axis=1)
        yield truth, together[:, region], apart / np.sum(records[:, cells], axis=1)


@pytest.mark.audit
def test_what_cells_share_widens_regional_rates() -> None:
    """Draws of each cell by itself forget it: their averages are less than half as wide."""
    for truth, together, apart in regional(50, np.random.default_rng(11)):
        assert abs(np.mean(together) - truth) < 5.0 * np.std(together)
        assert np.std(apart) < 0.5 * np.std(together)


@pytest.mark.audit
@pytest.mark.timeout(3600)
def test_regional_rates_are_covered_and_are_not_by_draws_that_forget_what_cells_share() -> None:
    """Of 80 intervals of 95 % at least 64 hold the truth, but for a chance below 1e-6."""
    least = int(binom.ppf(1e-6, 80, 0.95))
    rng, inside = np.random.default_rng(), [0, 0]
    for _ in range(40):
        for truth, *draws in regional(50, rng):
            for place, each in enumerate(draws):
                low, high = np.quantile(each, (0.025, 0.975))
                inside[place] += int(low <= truth <= high)
    assert inside[1] < least <= inside[0], (inside, least)


@pytest.mark.slow
def test_records_add_up_and_averages_agree_with_those_of_merged_sums() -> None:
    rng = np.random.default_rng(2)
    size = np.array([40, 60, 30, 80] * 6)
    probability = rng.beta(6.0, 54.0, 24)
    answer = pooled(size, probability, rng, "0.3", "contaminated")
    merged = answer.roll_up("county")
    assert merged.groups == {"region": ["N", "S"]}
    assert merged.parameters == ("probability", "n")
    totals = np.array([size[::2].sum(), size[1::2].sum()])
    assert np.all(np.abs(merged.mean("n") - totals) < 5.0 * merged.sd("n"))
    # Two noises of scale 1 / .3 a cell: 4.7 each, of 24 of them.
    assert merged.sd("n") == pytest.approx([4.7 * 24**0.5] * 2, rel=0.2)
    apart = roll_up(answer.observed[0], "county").posterior()
    gap = np.abs(merged.mean("probability") - apart.mean("share"))
    assert np.all(gap < 4.0 * np.hypot(merged.sd("probability"), apart.sd("share")))
    everything = answer.roll_up("county", "region")
    assert everything.groups == {}
    assert everything.sample(50, np.random.default_rng(1))["n"].shape == (50, 1)
    assert "averages of up to 12 pooled cells" in str(merged.rows_of)
    assert [row["parameter"] for row in merged.summary(draws=100)] == ["probability", "n"] * 2


def test_a_public_number_of_records_weighs() -> None:
    rng = np.random.default_rng(3)
    answer = pooled(np.full(8, 50), np.full(8, 0.2), rng, "1", n_prior=50)
    merged = answer.roll_up("county")
    assert merged.mean("n").tolist() == [200.0, 200.0]
    expected = [answer.mean()[::2].mean(), answer.mean()[1::2].mean()]
    np.testing.assert_allclose(merged.mean("probability"), expected, atol=0.01)


@pytest.mark.parametrize("columns", [(), ("month",)], ids=["none", "unknown"])
def test_columns_that_are_no_groups_are_refused(columns: tuple[str, ...]) -> None:
    answer = pooled(np.full(4, 50), np.full(4, 0.2), np.random.default_rng(1), "1")
    with pytest.raises(UsageError, match="roll_up takes group columns of the pooled cells"):
        answer.roll_up(*columns)


@pytest.mark.slow
def test_what_merged_cells_do_not_have_is_refused() -> None:
    answer = pooled(np.full(4, 50), np.full(4, 0.2), np.random.default_rng(1), "1").roll_up("county")
    assert answer.conflict.lines() == []
    with pytest.raises(UsageError, match="have no evidence"):
        _ = answer.log_evidence
    with pytest.raises(UsageError, match="have no robustness"):
        answer.robustness()
    with pytest.raises(UsageError, match="have no check"):
        answer.check()


@pytest.mark.slow
def test_cells_with_covariates_and_on_maps_are_rolled_up_with_what_they_have_in_common() -> None:
    """3,000 draws: means within 6 standard errors of the answer's, and of noisy sizes within 6 of theirs."""
    rng = np.random.default_rng(5)
    # Of one cell next to nothing is known: neighbours say that it is high, and all others nothing.
    size, probability = np.full(10, 400), expit(np.array([-3.0] * 4 + [1.0] * 6))
    size[6] = 3
    pairs = {"county": [*range(4)], "next": [*range(1, 5)]}
    for asked in (Pooling(formula="~ C(region)"), Pooling(adjacency=pairs)):
        answer = pooled(size, probability, rng, "1", asked)
        drawn, records = answer.distribution.sample_with_records(3000, rng)  # type: ignore[attr-defined]
        # Regressions take 256 of their hyperparameters.
        error = (6.0 / 3000**0.5 + 0.05) * answer.sd()
        assert np.all(np.abs(np.mean(drawn, axis=0) - answer.mean()) < error)
        assert np.all(np.abs(np.mean(records, axis=0) - size) < 6.0 * 2.0 * 2.0**0.5)
        rolled = answer.roll_up("county")
        expected = np.sum((size * probability).reshape(5, 2), axis=0) / np.sum(size.reshape(5, 2), axis=0)
        assert np.all(np.abs(rolled.mean("probability") - expected) < 5.0 * rolled.sd("probability"))
        assert np.all(rolled.sd("probability") < 0.05)
    # Control: draws of a population without the map are of other cells.
    (pool,) = answer.distribution.pools  # type: ignore[attr-defined]
    other = expit(PooledDistribution._joint(pool, 3000, rng, with_sizes=False)[0])
    assert np.any(np.abs(np.mean(other, axis=0) - answer.mean()) > error)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["poisson", "exponential"])
def test_families_whose_records_are_not_told_are_refused_and_rates_are_printed(family: str) -> None:
    rng = np.random.default_rng(7)
    plan = statistic_plan({"family": family, "column": "x", "upper": "10"}, epsilon="1", public_n=False)
    values = np.tile([300, 900], (12, 1)) + discrete_laplace(plan.scale, (12, 2), rng)
    statistic = noisy_statistic(plan, values, groups={"day": [*range(12)], "site": ["A", "B"] * 6})
    answer = pooled_posterior(statistic, PosteriorTerms(), "all", lambda: posterior_of(statistic))
    if family == "exponential":
        with pytest.raises(UsageError, match="are told for bernoulli and poisson cells"):
            answer.roll_up("day")
        return
    rolled = answer.roll_up("day")
    assert rolled.clipping is None
    assert "averages of up to 6 pooled cells" in str(rolled)
    with pytest.raises(UsageError, match="averages of pooled cells have no new rows"):
        rolled.predictive()


def test_cells_that_walk_are_rolled_up_where_numbers_of_records_are_public() -> None:
    rng = np.random.default_rng(6)
    asked, size = Pooling(over="county"), np.full(12, 80)
    with pytest.raises(UsageError, match="bernoulli and poisson cells that do not walk"):
        pooled(size, np.full(12, 0.3), rng, "1", asked).roll_up("county")
    rolled = pooled(size, np.full(12, 0.3), rng, "1", asked, n_prior=80).roll_up("county")
    assert rolled.mean("n").tolist() == [480.0, 480.0]
    assert np.all(np.abs(rolled.mean("probability") - 0.3) < 5.0 * rolled.sd("probability"))
