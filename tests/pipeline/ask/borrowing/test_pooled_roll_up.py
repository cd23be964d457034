"""Roll-ups of pooled cells: weights by latent numbers of records, and what cells have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from suffice.errors import UsageError
from suffice.pipeline.ask.borrowing.pooled_posterior import PooledPosterior, pooled_posterior
from suffice.pipeline.ask.inference.posterior_terms import PosteriorTerms
from suffice.pipeline.ask.pooling.roll_up import roll_up
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from support.noisy import discrete_laplace, noisy_statistic, statistic_plan

N_CELLS, DRAWS = 24, 800


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
    groups = {"region": ["N", "S"] * (len(size) // 2), "county": [*range(len(size))]}
    statistic = noisy_statistic(plan, values, groups=groups)
    return pooled_posterior(statistic, PosteriorTerms(**terms), asked, lambda: posterior_of(statistic))


def test_regional_rates_are_covered_and_are_not_by_draws_that_forget_what_cells_share() -> None:
    """Truths are skewed, and noise hides most of a cell; two regions of each of 20 releases.

    Of 40 intervals of 95 % at least 29 have to hold the truth; were they as good as 20 independent pairs that
    hold both or none, as few pairs as 14 have a chance below 1e-4, and of independent ones below 1e-6.
    """
    assert binom.cdf(28, 40, 0.95) < 1e-6
    rng, inside = np.random.default_rng(), {"together": 0, "forgetful": 0}
    for _ in range(20):
        size = np.maximum(np.rint(np.exp(rng.normal(3.4, 0.7, N_CELLS))), 1.0).astype(np.int64)
        probability = expit(-2.6 + rng.gamma(4.0, 0.15, N_CELLS))
        answer = pooled(size, probability, rng, "0.15")
        merged = answer.roll_up("county")
        records, drawn = answer.distribution.sample_with_records(DRAWS, rng)[::-1]  # type: ignore[attr-defined]
        low, high = merged.credible_interval(draws=DRAWS, rng=rng).T
        for region in range(2):
            cells = np.arange(region, N_CELLS, 2)
            truth = np.sum((size * probability)[cells]) / np.sum(size[cells])
            inside["together"] += int(low[region] <= truth <= high[region])
            apart = rng.permuted(drawn[:, cells], axis=0)
            average = np.sum(records[:, cells] * apart, axis=1) / np.sum(records[:, cells], axis=1)
            ends = np.quantile(average, (0.025, 0.975))
            inside["forgetful"] += int(ends[0] <= truth <= ends[1])
    assert inside["together"] >= 29
    assert inside["forgetful"] < 29, inside


def test_records_add_up_and_averages_are_narrower_than_those_of_merged_sums() -> None:
    rng = np.random.default_rng(2)
    size = np.array([40, 60, 30, 80] * 6)
    probability = rng.beta(6.0, 54.0, 24)
    answer = pooled(size, probability, rng, "0.3", True)
    merged = answer.roll_up("county")
    assert merged.groups == {"region": ["N", "S"]}
    assert merged.parameters == ("probability", "n")
    totals = np.array([size[::2].sum(), size[1::2].sum()])
    assert np.all(np.abs(merged.mean("n") - totals) < 5.0 * merged.sd("n"))
    # Two noises of scale 1 / .3 a cell: 4.7 each, of 24 of them.
    assert merged.sd("n") == pytest.approx([4.7 * 24**0.5] * 2, rel=0.2)
    apart = roll_up(answer.observed[0], "county").posterior()
    width = np.diff(merged.credible_interval("probability", rng=1))
    assert np.all(width < np.diff(apart.credible_interval("share")))
    everything = answer.roll_up("county", "region")
    assert everything.groups == {}
    assert len(everything.mean("probability")) == 1
    assert merged.mean("probability").tolist() == answer.roll_up("county").mean("probability").tolist()
    assert "averages of up to 12 pooled cells" in str(merged)
    assert [row["parameter"] for row in merged.summary()] == ["probability", "n"] * 2


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
    with pytest.raises(
        UsageError, match="roll_up takes group columns of the pooled cells, which are: region"
    ):
        answer.roll_up(*columns)


def test_what_merged_cells_do_not_have_is_refused() -> None:
    answer = pooled(np.full(4, 50), np.full(4, 0.2), np.random.default_rng(1), "1").roll_up("county")
    assert answer.conflict.lines() == []
    with pytest.raises(UsageError, match="have no evidence"):
        _ = answer.log_evidence
    with pytest.raises(UsageError, match="have no robustness"):
        answer.robustness()
    with pytest.raises(UsageError, match="have no check"):
        answer.check()
