"""Cells that walk over a column, as they are asked for: what they say and refuse, and orders of keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import suffice
from suffice.errors import UsageError
from suffice.pipeline.ask.borrowing.over_time import WalkedPosterior
from suffice.pipeline.ask.borrowing.pooled_posterior import pooled_posterior
from suffice.pipeline.ask.borrowing.walk import MOST_TIMES, Walk, times_of
from suffice.pipeline.ask.inference.posterior_terms import PosteriorTerms
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from support.noisy import discrete_laplace, noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic

MONTHS = [f"{2013 + month // 12}-{month % 12 + 1:02d}" for month in range(24)]


def released(truth: np.ndarray, groups: dict[str, Any], size: int = 150, seed: int = 1) -> NoisyStatistic:
    rng = np.random.default_rng(seed)
    plan = statistic_plan({"family": "bernoulli", "column": "x"}, epsilon="1", public_n=False)
    true = rng.binomial(size, truth)
    counts = np.stack([size - true, true], axis=1)
    return noisy_statistic(plan, counts + discrete_laplace(plan.scale, counts.shape, rng), groups=groups)


def walked(statistic: NoisyStatistic, **asked: Any) -> WalkedPosterior:
    answer = pooled_posterior(
        statistic, PosteriorTerms(), suffice.Pooling(**asked), lambda: posterior_of(statistic)
    )
    assert isinstance(answer, WalkedPosterior)
    return answer


@pytest.mark.slow
def test_a_jump_is_listed_and_the_rest_is_narrower_than_alone() -> None:
    truth = np.where(np.arange(24) < 13, 0.2, 0.55)
    answer = walked(released(truth, {"month": MONTHS}), over="month")
    assert [row["month"] for row in answer.jumps()] == ["2014-02"]
    assert "a jump leads to 2014-02: " in str(answer)
    assert "in the order of months" in str(answer)
    assert np.argmax(answer.own_share) in {12, 13}
    low, high = answer.interval(0.999)
    assert np.all((low < truth) & (truth < high))
    alone = np.diff(answer.alone.credible_interval(mass=0.999))
    assert np.mean(high - low) < 0.7 * np.mean(alone)
    # Without jumps the step is wider, and nothing is a jump.
    straight = walked(released(truth, {"month": MONTHS}), over="month jumps=0")
    assert straight.steps[0].step[0] > 1.5 * answer.steps[0].step[0]
    assert not straight.jumps(1e-9)
    (row,) = answer.highest(1, rng=1)[:1]
    assert row["month"] >= "2014-02"
    assert answer.probability(above=0.35, rng=1)[:12].max() < 1e-3


@pytest.mark.slow
def test_series_share_steps_unless_they_are_pooled_within_a_column() -> None:
    rng = np.random.default_rng(2)
    moving = 1.0 / (1.0 + np.exp(1.0 - np.cumsum(rng.normal(0.0, 0.4, 24))))
    truth = np.concatenate([moving, np.full(24, 0.4)])
    groups = {"site": ["A"] * 24 + ["B"] * 24, "month": MONTHS * 2}
    statistic = released(truth, groups, size=600)
    (together,) = walked(statistic, over="month").steps
    assert (together.n_series, together.n_cells, together.n_times) == (2, 48, 24)
    apart = walked(statistic, over="month", within=("site",))
    assert [steps.keys for steps in apart.steps] == [{"site": "A"}, {"site": "B"}]
    first, second = (steps.step[0] for steps in apart.steps)
    assert second < together.step[0] < first
    # The order in which a release has its cells is none.
    order = np.random.default_rng(3).permutation(48)
    turned = walked(statistic.take(order), over="month")
    np.testing.assert_allclose(turned.mean(), walked(statistic, over="month").mean()[order], rtol=1e-6)


def test_a_step_that_is_not_told_is_said_and_each_alone_is_shown_first() -> None:
    answer = walked(released(np.array([0.3, 0.32, 0.31]), {"month": MONTHS[:3]}, size=40), over="month")
    assert not answer.is_identified
    assert "is not identified by its 3 cells" in answer.conflict.lines()[0]
    text = str(answer)
    assert text.index("Each cell alone:") < text.index("Pooled:")


@pytest.mark.parametrize(
    ("keys", "places", "words"),
    [
        (["2013-01", "2013-02", "2013-05"], [0, 1, 4], "months"),
        (["2012-12-31", "2013-01-02"], [0, 1], "days"),
        (["2013-01-01", "2013-01-02", "2013-01-04"], [0, 1, 3], "days"),
        (["2020-W53", "2021-W01", "2021-W03"], [0, 1, 3], "weeks"),
        (["2000", "2005", "2010", "2020"], [0, 5, 10, 20], "years"),
        ([3, 4, 7], [0, 1, 4], "integers"),
        (["10", "30", "20"], [0, 2, 1], "integers"),
        (["low", "middle", "high"], [0, 1, 2], "the spec's keys"),
    ],
    ids=["months", "two days", "days", "weeks", "years", "integers", "listed integers", "names"],
)
def test_orders_of_keys(keys: list[Any], places: list[int], words: str) -> None:
    of_key, said = times_of("column", keys)
    if words == "years":
        places = [place // 5 for place in places]  # steps of five years
    assert [of_key[key] for key in keys] == places
    assert said == words


def test_keys_that_span_too_many_times_are_refused() -> None:
    with pytest.raises(UsageError, match=f"at most {MOST_TIMES} are walked over"):
        times_of("day", [0, 1, MOST_TIMES])


@pytest.mark.parametrize(
    ("text", "walk"),
    [
        ("month", Walk(over="month")),
        ("month jumps=0 step=0.5", Walk(over="month", jumps=0.0, step=0.5)),
        ("window order=2", Walk(over="window", order=2)),
        ("month season=12 jumps=0", Walk(over="month", season=12, jumps=0.0)),
        ("month order=2 jumps=0.1", Walk(over="month", order=2, jumps=0.1)),
        ("month kind=ar1", Walk(over="month", kind="ar1")),
    ],
    ids=["column", "numbers", "order", "season", "trend with jumps", "kind"],
)
def test_walks_are_read_as_they_are_written(text: str, walk: Walk) -> None:
    assert Walk.of(text) == walk
    assert Walk.of(str(walk)) == walk


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "over is a group column"),
        ("month often", "after the column come order="),
        ("month order=3", "order is 1 or 2, not 3"),
        ("month order=two", "order is no number"),
        ("month jumps=0.9", "jumps is a share from 0 to 0.5"),
        ("month step=0", "step is a scale above 0"),
        ("month season=1", "season is a number of times from 2"),
        ("month kind=drift", "kind is one of walk, ar1"),
        ("month kind=ar1 order=2", "leave one of them out"),
    ],
    ids=["empty", "word", "third order", "no number", "jumps", "step", "season", "kind", "both"],
)
def test_walks_that_are_none(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Walk.of(text)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"over": "nowhere"}, "has no such group column \\(its columns: site, month\\)"),
        ({"over": "month", "within": ("month",)}, "cells walk over month"),
        ({"over": "month", "population": "beta"}, "population does not go with over=month"),
        ({"over": "month", "covariates": "file.csv"}, "covariates and over do not go together"),
        ({"over": "site", "within": ("month",)}, "no series of month=2013-01 has two cells"),
        ({"over": "month season=3"}, "no series spans two seasons, 6 times"),
    ],
    ids=["unknown", "within", "population", "covariates", "one cell", "season"],
)
def test_what_a_walk_does_not_go_with(asked: dict[str, Any], says: str) -> None:
    statistic = released(np.full(4, 0.3), {"site": ["A"] * 4, "month": MONTHS[:4]})
    with pytest.raises(UsageError, match=says):
        walked(statistic, **asked)


@pytest.mark.slow
def test_a_season_is_told_and_its_effects_are_listed() -> None:
    """Of 24 months whose logits have a season of .8 and next to no steps, with 600 records each."""
    effects = 0.8 * np.sin(2.0 * np.pi * np.arange(24) / 12.0)
    truth = 1.0 / (1.0 + np.exp(1.0 - effects))
    statistic = released(truth, {"month": MONTHS}, size=600)
    answer, plain = walked(statistic, over="month season=12"), walked(statistic, over="month")
    (steps,) = answer.steps
    assert steps.season is not None
    assert steps.season[0] > 5.0 * steps.step[0]
    assert plain.steps[0].step[0] > 3.0 * steps.step[0]
    listed = answer.seasons()
    assert [row["month"] for row in listed] == MONTHS[:12]
    means, sds = (np.array([row[name] for row in listed]) for name in ("mean", "sd"))
    assert np.all(np.abs(means - effects[:12]) < 5.0 * sds)
    assert abs(np.sum(means)) < 1e-6
    assert np.mean(answer.sd()) < 0.85 * np.mean(plain.sd())
    for said in ("a season of 12 effects that add up to 0", "first position Normal(0, 1.81^2)"):
        assert said in str(answer.prior)
    assert "by expectation propagation" in str(answer)
    with pytest.raises(UsageError, match="has no season"):
        plain.seasons()


@pytest.mark.slow
def test_what_returns_to_a_level_and_what_has_a_slope_is_said() -> None:
    statistic = released(np.full(8, 0.3), {"month": MONTHS[:8]})
    returning, sloped = walked(statistic, over="month kind=ar1"), walked(statistic, over="month order=2")
    assert returning.steps[0].coefficient is not None
    assert sloped.steps[0].slope_step is not None
    assert "0.01 Laplace(0, 1)" in str(returning.prior)
    assert "what is left of a distance from the level" in str(returning)
    assert "local linear trend of logits" in str(sloped.prior)
    assert "0.01 Normal(0, s^2 + 2)" in str(sloped.prior)
    assert sloped.jumps(0.0)[0]["probability"] < 0.2
    row = sloped.steps[0].row
    assert row.keys() >= {"step", "slope_step", "slope_step_sd"}
    assert "coefficient" not in row


@pytest.mark.parametrize("terms", ["season=4", "order=2"])
def test_a_jump_beside_a_season_or_a_trend_is_listed(terms: str) -> None:
    """A jump of 1.6 logits: steps are smaller than without jumps, and intervals away from it narrower."""
    logit = 0.3 * np.sin(np.pi * np.arange(24) / 2.0) if "season" in terms else 0.02 * np.arange(24)
    truth = 1.0 / (1.0 + np.exp(1.4 - logit - 1.6 * (np.arange(24) >= 13)))
    statistic = released(truth, {"month": MONTHS}, size=400)
    answer, straight = (walked(statistic, over=f"month {terms}{more}") for more in ("", " jumps=0"))
    assert [row["month"] for row in answer.jumps()] == ["2014-02"]
    assert not straight.jumps(1e-9)
    assert answer.steps[0].step[0] < 0.5 * straight.steps[0].step[0]
    assert answer.steps[0].settled
    low, high = answer.interval(0.95)
    # Of 24 that hold with a chance of .95, 14 or fewer do with one below 1e-6.
    assert np.sum((low < truth) & (truth < high)) > 14
    wide_low, wide_high = straight.interval(0.95)
    assert np.mean(high - low) < 0.85 * np.mean(wide_high - wide_low)
    drawn = answer.sample(1000, np.random.default_rng(1))["probability"]
    np.testing.assert_allclose(drawn.mean(axis=0), answer.mean(), atol=6.0 * np.max(answer.sd()) / 1000**0.5)


def test_a_season_of_keys_that_are_apart_counts_their_unit() -> None:
    """Of every second month, a season of 12 months has six effects, not one of 24."""
    statistic = released(np.full(12, 0.3), {"month": MONTHS[::2]})
    assert len(walked(statistic, over="month season=6").seasons()) == 3
    with pytest.raises(UsageError, match="no series spans two seasons, 24 times"):
        walked(statistic, over="month season=12")


def test_too_many_times_for_normal_laws_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.pipeline.ask.borrowing.over_time.LONGEST", 7)
    with pytest.raises(UsageError, match="8 times of over=month kind=ar1"):
        walked(released(np.full(8, 0.3), {"month": MONTHS[:8]}), over="month kind=ar1")


def test_a_sum_without_sizes_walks_too() -> None:
    from suffice.pipeline.families import FAMILIES
    from suffice.pipeline.spec.spec import load_spec

    entry = {"family": "exponential", "column": "x", "upper": "20"}
    plan = statistic_plan(entry, epsilon="1", public_n=False)
    spec = {
        "name": "s", "dataset": "s", "source": {"parquet": "r"},
        "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": "row"},
        "statistics": {"measured": entry},
    }  # fmt: skip
    family, rng = FAMILIES[plan.family], np.random.default_rng(2)
    assert family.simulate is not None
    stated = load_spec(spec).statistics["measured"]
    sums = family.simulate(stated, np.full(8, 0.5), np.full(8, 60), rng)
    values = family.totals(stated, plan.design, sums.clipped)
    noisy = noisy_statistic(
        plan, values + discrete_laplace(plan.scale, values.shape, rng), groups={"year": [*range(2001, 2009)]}
    )
    answer = walked(noisy, over="year")
    low, high = answer.interval(0.999)
    assert np.all((low < 0.5) & (high > 0.5))
    assert np.mean(high - low) < np.mean(np.diff(answer.alone.credible_interval(mass=0.999)))
