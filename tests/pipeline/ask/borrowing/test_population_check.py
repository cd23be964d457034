"""Populations held against cells that are left out: how often they are blamed, rightly and wrongly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom, kstest

from suffice.errors import UsageError
from suffice.pipeline.ask.borrowing import held_out
from suffice.pipeline.ask.borrowing.doubtful_cells import size_times_epsilon
from suffice.pipeline.ask.borrowing.pooled_posterior import PooledPosterior, pooled_posterior
from suffice.pipeline.ask.borrowing.pooling import Pooling
from suffice.pipeline.ask.borrowing.population_check import FALSE_ALARM, PopulationCheck, holm
from suffice.pipeline.ask.inference.posterior_terms import PosteriorTerms
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.math.priors.record_count import Fixed
from support.noisy import discrete_laplace, noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

BERNOULLI: dict[str, Any] = {"family": "bernoulli", "column": "x"}


def released(
    logit: Floats,
    size: Any,
    rng: np.random.Generator,
    groups: dict[str, Any] | None = None,
) -> NoisyStatistic:
    plan = statistic_plan(BERNOULLI, epsilon="1", public_n=False)
    true = rng.binomial(size, expit(logit))
    counts = np.stack([size - true, true], axis=1)
    return noisy_statistic(plan, counts + discrete_laplace(plan.scale, counts.shape, rng), groups=groups)


def pooled(statistic: NoisyStatistic, asked: Any) -> PooledPosterior:
    return pooled_posterior(statistic, PosteriorTerms(), asked, lambda: posterior_of(statistic))


def gamma_logits(n: int, rng: np.random.Generator) -> Floats:
    """Skewed to the right, and no population's shape."""
    return -3.2 + rng.gamma(4.0, 0.25, n)


def places_of(releases: int, asked: str, draw: Any, rng: np.random.Generator) -> tuple[list[Floats], int]:
    """Places of held-out cells, and how many releases have a line."""
    places, blamed = [], 0
    for _ in range(releases):
        size = np.maximum(np.rint(np.exp(rng.normal(4.0, 1.0, 30))), 1.0).astype(np.int64)
        answer = pooled(released(draw(30, rng), size, rng), asked)
        check = answer.check_population()
        places.append(check.place)
        blamed += bool(check.lines([""] * 30))
    return places, blamed


@pytest.mark.audit
def test_places_are_uniform_where_the_population_is_right_and_are_not_where_it_is_wrong() -> None:
    """Two releases of 30 cells, at 1e-7; the control has two kinds of cells far apart."""
    rng = np.random.default_rng()
    right, _ = places_of(2, "logit-normal", lambda n, source: source.normal(-2.2, 0.5, n), rng)
    assert kstest(np.concatenate(right), "uniform").pvalue > 1e-7
    size = np.full(40, 400)
    two = np.where(np.arange(40) % 3 == 0, 1.0, -3.0)
    wrong = pooled(released(two, size, rng), "logit-normal")
    check = wrong.check_population()
    assert check.uniformity is not None
    assert check.uniformity < FALSE_ALARM / 3.0
    assert any("its shape or its slope is off" in line for line in wrong.misfits())


@pytest.mark.audit
@pytest.mark.timeout(3600)
def test_a_population_that_fits_is_seldom_blamed() -> None:
    """200 releases of a truth that is of no population: so many as .01 of each have a chance of 1e-6."""
    _, blamed = places_of(200, "contaminated", gamma_logits, np.random.default_rng())
    assert blamed <= binom.isf(1e-6, 200, FALSE_ALARM)


@pytest.mark.slow
def test_cells_and_keys_that_do_not_fit_are_listed() -> None:
    rng = np.random.default_rng(3)
    logit, size = rng.normal(-2.2, 0.3, 20), np.full(20, 200)
    logit[7] = 2.5
    regions = ["N", "S", "W", "E"] * 5
    groups = {"region": regions, "county": [*range(20)]}
    alone = pooled(released(logit, size, rng, groups), "logit-normal")
    (line,) = alone.misfits()
    assert line.startswith(
        "left out: the population of all others does not expect what 1 cell of 20 released"
    )
    assert "(fewer than 1 in 100 releases" in line
    assert np.flatnonzero(alone.check_population().is_misfit).tolist() == [7]
    shifted = np.where(np.array(regions) == "W", rng.normal(-0.6, 0.1, 20), rng.normal(-2.2, 0.1, 20))
    by_key = pooled(released(shifted, size, rng, groups), "contaminated")
    assert "region=W above it" in by_key.misfits()[0]
    rows = by_key.check_population().rows()
    assert set(rows[0]) == {"region", "county", "log_predictive", "place", "tail", "misfit"}


@pytest.mark.audit
def test_of_many_cells_the_farthest_out_and_evenly_spaced_ones_are_judged() -> None:
    rng = np.random.default_rng(4)
    logit = rng.normal(-2.2, 0.3, 60)
    logit[20] = 3.0
    answer = pooled(released(logit, np.full(60, 200), rng), "logit-normal")
    check = PopulationCheck.of(answer.distribution, answer.groups, most=24)  # type: ignore[arg-type]
    judged = ~np.isnan(check.tails)
    assert 12 <= np.sum(judged) <= 24
    assert check.is_misfit[20]
    assert np.all(check.adjusted[~judged] == 1.0)


def test_holm_is_the_textbooks() -> None:
    np.testing.assert_allclose(holm(np.array([0.01, 0.04, 0.03, 0.005])), [0.03, 0.06, 0.06, 0.02])
    assert holm(np.array([])).shape == (0,)


@pytest.mark.slow
def test_a_normal_approximation_is_said() -> None:
    plan = statistic_plan(
        {"family": "exponential", "column": "x", "upper": "20"}, epsilon="1", public_n=False
    )
    rng = np.random.default_rng(6)
    sums = np.stack([rng.gamma(40.0, rate, 6) for rate in (2.0,)], axis=0)[0]
    whole = float(plan.partition_total or 1)
    first = np.rint(sums / 20.0 * whole)
    order = [first, np.rint(40.0 * whole - first)]
    values = np.stack(order, axis=1).astype(np.int64)
    answer = pooled(noisy_statistic(plan, values + discrete_laplace(plan.scale, values.shape, rng)), "gamma")
    check = answer.check_population()
    assert check.method == "normal approximation"
    assert np.all((check.tails > 1e-4) & (check.tails <= 1.0))


def test_scores_alone_are_the_evidence_but_for_a_constant_and_pooled_ones_are_higher() -> None:
    rng = np.random.default_rng(8)
    statistic = released(gamma_logits(60, rng), rng.integers(20, 200, 60), rng)
    answers = {name: pooled(statistic, name) for name in ("contaminated", "beta")}
    compared = held_out.held_out(answers)
    evidence = posterior_of(statistic).log_evidence
    np.testing.assert_allclose(np.ptp(compared.log_score[:, 0] - evidence), 0.0, atol=0.02)
    assert compared.answers == ("alone", "contaminated", "beta")
    gain, error = compared.difference(1, 0)
    assert gain > 5.0 * error > 0.0
    assert compared.best in {"contaminated", "beta"}
    assert "better than alone by more than 2 standard errors" in compared.said
    assert [row["behind"] for row in compared.totals()].count(0.0) == 1
    assert str(compared).splitlines()[-1] == compared.said


def test_cells_that_have_nothing_in_common_are_not_said_to_be_better_together() -> None:
    """Their law is that of cells alone: a gain of five standard errors has a chance below 1e-6."""
    rng = np.random.default_rng(9)
    probability = rng.uniform(size=40)
    statistic = released(np.log(probability / (1.0 - probability)), np.full(40, 200), rng)
    gain, error = held_out.held_out({"beta": pooled(statistic, "beta")}).difference(1, 0)
    assert gain < 5.0 * error


@pytest.mark.slow
def test_cells_in_order_and_neighbours_are_compared_with_the_same_constants() -> None:
    """Rates on a line that go up and down: what is next to a cell says most of it."""
    rng = np.random.default_rng(14)
    logit = -1.5 + 1.2 * np.sin(np.arange(12) / 1.5)
    groups = {"day": [*range(12)]}
    statistic = released(logit, np.full(12, 300), rng, groups)
    ways = [True, Pooling(over="day"), Pooling(adjacency=[(day, day + 1) for day in range(11)])]
    names = held_out.names_of(ways)
    assert names == ["pooled: all", "pooled: over day", "pooled: adjacency"]
    answers = {name: pooled(statistic, way) for name, way in zip(names, ways, strict=True)}
    compared = held_out.held_out(answers)
    gain, error = compared.difference(2, 1)
    assert gain > 2.0 * error
    assert compared.difference(3, 1)[0] > 0.0
    # A likelihood that is 300 records wide has the same integral whatever is next to it, within some nats.
    assert np.max(np.abs(compared.log_score - compared.log_score[:, :1])) < 6.0
    assert compared.notes == ("scores of pooled: adjacency are by expectation propagation",)
    for name in names[1:]:
        with pytest.raises(UsageError, match="compare ways to pool by suffice"):
            answers[name].check_population()


def test_ways_are_named_apart_and_of_one_release() -> None:
    table = {"county": ["a"], "income": [1.0]}
    asked = [
        Pooling(covariates=table, formula="~ income"),
        Pooling(covariates=dict(table), formula="~ income"),
    ]
    first = "pooled: formula ~ income, covariates"
    assert held_out.names_of(asked) == [first, f"{first} (2)"]
    with pytest.raises(UsageError, match="is of a series, and held-out cells"):
        held_out.check_of_one_release(Pooling(over="window jumps=0"))


def test_ways_without_a_score_are_refused() -> None:
    class NoScore:
        distribution = object()

    with pytest.raises(UsageError, match="have no score of held-out cells"):
        held_out.pooled_scores("pooled: all", NoScore())  # type: ignore[arg-type]


@pytest.mark.audit
def test_small_cells_outliers_and_misfits_are_shown_alone_beside_the_pooled_answer() -> None:
    rng = np.random.default_rng(12)
    logit, size = np.linspace(-2.6, -1.8, 14), np.full(14, 150)
    logit[7], size[:3] = 2.5, 8
    answer = pooled(released(logit, size, rng), "contaminated")
    rows = answer.doubtful()
    assert {row["cell"]: row["why"] for row in rows} == {0: "small", 1: "small", 2: "small", 7: "outlier"}
    assert all(row["alone_lower"] < row["alone_upper"] and row["lower"] < row["upper"] for row in rows)
    assert answer.misfits()[-1].startswith("3 of 14 cells have a size times epsilon below 30: an outlier")
    by_check = pooled(released(logit, np.full(14, 150), rng), "logit-normal")
    assert {row["cell"]: row["why"] for row in by_check.doubtful()} == {7: "misfit"}
    # A public number of records is what is compared.
    assert set(size_times_epsilon(answer.observed[0], Fixed(20))) == {20.0}
