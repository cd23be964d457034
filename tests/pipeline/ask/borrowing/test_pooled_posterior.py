"""Pooled cells as they are asked for: what they say, what they refuse, and every family that has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from suffice.errors import PriorError, UsageError
from suffice.pipeline.ask.borrowing.pooled_posterior import PooledPosterior, pooled_posterior
from suffice.pipeline.ask.borrowing.pooling import Pooling
from suffice.pipeline.ask.inference.posterior_terms import PosteriorTerms
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from support.noisy import discrete_laplace, noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic

BERNOULLI: dict[str, Any] = {"family": "bernoulli", "column": "x"}


def released(
    truth: np.ndarray, size: np.ndarray, seed: int = 1, groups: dict[str, Any] | None = None
) -> NoisyStatistic:
    rng = np.random.default_rng(seed)
    plan = statistic_plan(BERNOULLI, epsilon="1", public_n=False)
    true = rng.binomial(size, truth)
    counts = np.stack([size - true, true], axis=1)
    values = counts + discrete_laplace(plan.scale, counts.shape, rng)
    return noisy_statistic(plan, values, groups=groups)


def pooled(statistic: NoisyStatistic, asked: Any = True, **terms: Any) -> PooledPosterior:
    return pooled_posterior(statistic, PosteriorTerms(**terms), asked, lambda: posterior_of(statistic))


@pytest.mark.slow
def test_an_outlier_is_listed_and_stays_itself() -> None:
    truth, size = np.random.default_rng(5).beta(6, 54, 40), np.full(40, 150)
    truth[7] = 0.8
    statistic = released(truth, size)
    answer = pooled(statistic)
    assert np.flatnonzero(answer.outside > 0.5).tolist() == [7]
    assert answer.mean()[7] == pytest.approx(0.8, abs=0.15)
    (said,) = answer.conflict.lines()
    assert said.startswith("the population does not fit 1 of 40 cells (7)")
    assert [row["conflict"] for row in answer.summary()].count(True) == 1
    assert answer.own_share[7] > 0.9
    assert np.all(np.delete(answer.own_share, 7) < answer.own_share[7])
    # Without outliers in the population, it is drawn to the others.
    assert pooled(statistic, "logit-normal").outside.max() == 0.0


@pytest.mark.slow
def test_a_spread_that_two_cells_do_not_tell_is_said_and_each_alone_is_shown_first() -> None:
    answer = pooled(released(np.array([0.2, 0.3]), np.array([30, 30])))
    assert not answer.is_identified
    assert "is not identified by its 2 cells" in answer.conflict.lines()[0]
    text = str(answer)
    assert text.index("Each cell alone:") < text.index("Pooled:")
    many = pooled(released(np.random.default_rng(3).beta(4, 16, 60), np.full(60, 200)))
    assert many.is_identified
    assert "alone" not in str(many)


@pytest.mark.slow
def test_keys_have_populations_of_their_own() -> None:
    regions = ["N", "S"] * 20
    truth = np.where(np.array(regions) == "N", 0.1, 0.6)
    statistic = released(truth, np.full(40, 60), groups={"region": regions, "county": [*range(40)]})
    within = pooled(statistic, ["region", "logit-normal"])
    assert [pool.keys for pool in within.pools] == [{"region": "N"}, {"region": "S"}]
    alone = pooled(statistic.take(np.arange(0, 40, 2)), "logit-normal")
    np.testing.assert_allclose(within.mean()[::2], alone.mean(), rtol=1e-9)
    together = pooled(statistic, "logit-normal")
    assert together.pools[0].spread[0] > 2.0 * within.pools[0].spread[0]
    drawn = within.sample(500, np.random.default_rng(1))["probability"]
    assert drawn.shape == (500, 40)
    np.testing.assert_allclose(drawn.mean(axis=0), within.mean(), atol=0.04)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statistic", "truth", "population"),
    [
        ({"family": "binomial", "column": "x", "trials": "4"}, 0.3, "beta"),
        ({"family": "poisson", "column": "x", "upper": "20"}, 3.0, "gamma"),
        ({"family": "exponential", "column": "x", "upper": "20"}, 0.5, "lognormal"),
    ],
    ids=["binomial", "poisson", "exponential"],
)
def test_families_with_one_probability_or_rate_are_pooled(
    statistic: dict[str, Any], truth: float, population: str
) -> None:
    from suffice.pipeline.families import FAMILIES
    from suffice.pipeline.spec.spec import load_spec

    plan = statistic_plan(statistic, epsilon="1", public_n=False)
    spec = {
        "name": "s", "dataset": "s", "source": {"parquet": "r"},
        "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": "row"},
        "statistics": {"measured": statistic},
    }  # fmt: skip
    entry = load_spec(spec).statistics["measured"]
    family, rng = FAMILIES[plan.family], np.random.default_rng(2)
    assert family.simulate is not None
    sums = family.simulate(entry, np.full(11, truth), np.full(11, 40), rng)
    values = family.totals(entry, plan.design, sums.clipped)
    noisy = noisy_statistic(plan, values + discrete_laplace(plan.scale, values.shape, rng))
    for asked in (True, population):
        answer = pooled(noisy, asked)
        low, high = answer.interval(0.999)
        assert np.all((low < truth) & (truth < high))
        assert np.mean(high - low) < np.mean(np.diff(answer.alone.credible_interval(mass=0.999)))


@pytest.mark.parametrize(
    ("asked", "terms", "error", "says"),
    [
        (
            "gamma",
            {},
            UsageError,
            "takes True, a population \\(contaminated, dictionary, logit-normal, beta\\)",
        ),
        ("nowhere", {}, UsageError, "group columns within whose keys cells are pooled \\(cell\\)"),
        (["beta", "logit-normal"], {}, UsageError, "one population, not beta and logit-normal"),
        ("cell", {}, UsageError, "leaves every cell alone"),
        (True, {"prior": "Beta(1, 1)"}, PriorError, "their population: leave prior out"),
        (True, {"method": "plug-in"}, UsageError, "leave method out"),
        (True, {"clipping": "modelled"}, UsageError, "leave clipping out"),
    ],
    ids=["other line", "unknown", "two", "every cell", "prior", "plug-in", "clipping"],
)
def test_what_pooled_cells_do_not_take(asked: Any, terms: dict[str, Any], error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        pooled(released(np.full(4, 0.2), np.full(4, 30)), asked, **terms)


@pytest.mark.slow
def test_a_population_without_a_shape_takes_nothing_further_and_says_its_error() -> None:
    statistic = released(np.random.default_rng(3).beta(4, 16, 12), np.full(12, 60))
    with pytest.raises(UsageError, match="dictionary goes with no covariates, order or neighbours"):
        pooled(statistic, Pooling(population="dictionary", over="cell"))
    answer = pooled(statistic, "dictionary")
    assert "halves of them differ by at most" in str(answer.rows_of)
    assert "shares Dirichlet with total 2" in str(answer.prior)
    assert answer.pools[0].chain_gap is not None
    assert answer.pools[0].chain_gap < 0.3


def test_other_families_and_single_cells_are_refused() -> None:
    plan = statistic_plan(
        {"family": "normal_known_variance", "column": "x", "lower": "0", "upper": "1", "variance": "1"},
        epsilon="1",
        public_n=False,
    )
    values = np.ones((3, len(plan.components)), dtype=np.int64)
    with pytest.raises(UsageError, match="is normal_known_variance: pooled cells have probabilities"):
        pooled(noisy_statistic(plan, values))
    with pytest.raises(UsageError, match="has one cell, and borrows from none"):
        pooled(released(np.array([0.3]), np.array([50])))
    answer = pooled(released(np.full(4, 0.2), np.full(4, 30)))
    with pytest.raises(UsageError, match="have no evidence each"):
        _ = answer.log_evidence
    with pytest.raises(UsageError, match="is their population"):
        answer.robustness()


@pytest.mark.slow
def test_the_prior_of_sizes_is_the_one_that_is_stated_and_is_judged() -> None:
    """Its upper end is within reach of cells of 60: where it was left out, all three answers were one."""
    statistic = released(np.random.default_rng(4).beta(4, 16, 12), np.full(12, 60))
    usual, wide, narrow = (
        pooled(statistic, n_prior=n_prior) for n_prior in (None, "Uniform(0, 100000)", "Uniform(0, 20)")
    )
    assert usual.mean() == pytest.approx(wide.mean(), abs=0.01)
    assert np.max(np.abs(narrow.mean() - wide.mean())) > 0.02
    assert not any("prior of N" in line for line in usual.conflict.lines())
    assert "the prior of N, Uniform(0, 20), and the released n disagree in" in narrow.conflict.lines()[0]
    assert "own_share" in str(usual)
    assert "rows are taken" not in str(usual.rows_of)


@pytest.mark.parametrize("asked", [None, 1, [], ["x", 1]], ids=["nothing", "a number", "empty", "mixed"])
def test_what_names_no_pool_is_refused(asked: Any) -> None:
    with pytest.raises(UsageError, match=r"takes True, a population \(contaminated"):
        pooled(released(np.full(4, 0.2), np.full(4, 30)), asked)


CATEGORICAL: dict[str, Any] = {"family": "categorical", "column": "x", "categories": ["a", "b", "c"]}


@pytest.mark.slow
def test_categories_have_one_population_and_probabilities_that_add_up_to_1() -> None:
    rng = np.random.default_rng(3)
    plan = statistic_plan(CATEGORICAL, epsilon="1", public_n=False)
    truth = rng.dirichlet([4, 12, 2], 10)
    counts = np.array([rng.multinomial(60, p) for p in truth])
    statistic = noisy_statistic(plan, counts + discrete_laplace(plan.scale, counts.shape, rng))
    answer = pooled(statistic)
    assert answer.population == "dirichlet"
    assert [pool.category for pool in answer.pools] == ["a", "b", "c"]
    drawn = answer.sample(100, rng)["probability"]
    np.testing.assert_allclose(drawn.sum(axis=2), 1.0)
    assert np.mean((answer.mean() - truth) ** 2) < np.mean((answer.alone.mean() - truth) ** 2)
    rows = answer.summary()
    assert [row["category"] for row in rows[:3]] == ["a", "b", "c"]
    assert [row["own_share"] for row in rows[::3]] == [round(float(each), 3) for each in answer.own_share]
    assert "ends of intervals are from draws" in str(answer)
    for asked, terms in (("beta", {}), (True, {"n_prior": "Uniform(0, 1000)"})):
        with pytest.raises(UsageError, match=r"population \(dirichlet\)|not under Uniform"):
            pooled(statistic, asked, **terms)


def test_means_and_variances_have_a_population_each() -> None:
    rng = np.random.default_rng(6)
    entry = {"family": "normal", "column": "x", "lower": "-1", "upper": "1"}
    plan = statistic_plan(entry, epsilon="1", public_n=False)
    steps = 1 << int(plan.parameters.lattice_bits or 0)
    mean = np.array([0.1, 0.2, 0.15, 0.3, 0.12, 0.22, 0.18, 0.25])
    values = []
    for each in mean:
        x = np.rint(np.clip(rng.normal(each, 0.2, 60), -1.0, 1.0) * steps).astype(np.int64)
        values.append([np.sum((steps - x) ** 2), np.sum(2 * (steps**2 - x**2)), np.sum((steps + x) ** 2)])
    noisy = np.array(values) + discrete_laplace(plan.scale, (8, 3), rng)
    statistic = noisy_statistic(plan, noisy, groups={"half": ["a", "b"] * 4, "cell": [*range(8)]})
    answer = pooled(statistic, ["half", "normal"])
    assert [(pool.parameter, pool.keys) for pool in answer.pools] == [
        ("means", {"half": "a"}), ("log standard deviations", {"half": "a"}),
        ("means", {"half": "b"}), ("log standard deviations", {"half": "b"}),
    ]  # fmt: skip
    assert answer.mean("mean") == pytest.approx(mean, abs=0.15)
    assert np.sqrt(answer.mean("variance")) == pytest.approx(0.2, abs=0.12)
    rows = answer.with_own(answer.summary())
    # A mean is told by far more than a standard deviation is.
    assert rows[0]["own_share"] > rows[1]["own_share"]
    assert "of means Logistic(0, 0.5)" in str(answer.prior)
    assert "rows are taken to be normal: where tails are heavier" in str(answer.rows_of)
    with pytest.raises(UsageError, match=r"a population \(contaminated, normal\)"):
        pooled(statistic, "gamma")
