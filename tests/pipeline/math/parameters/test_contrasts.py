"""Probabilities, differences and ratios between cells, against closed forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from suffice.errors import UsageError
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.math.parameters import parameter_posterior
from suffice.pipeline.math.parameters.contrasts import contrast_between, parse_statement
from support.noisy import noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from suffice.pipeline.ask.posterior.posterior import Posterior


DRAWS = 40_000
FALSE_ALARM = 1e-8
"""Of one comparison with draws; fewer than a hundred are made in this file."""
REACH = float(stats.norm.isf(FALSE_ALARM / 2)) * 0.5 / np.sqrt(DRAWS)
"""How far a share of draws may lie from its probability."""

GROUPS: dict[str, list[str | int]] = {
    "origin": ["JFK", "JFK", "LGA", "LGA"],
    "month": [1, 2, 1, 2],
}


def rates(counts: list[list[int]], groups: dict[str, list[str | int]] = GROUPS) -> Posterior:
    """Posteriors of independent beta distributions: counts of false and true taken for exact."""
    plan = statistic_plan({"family": "bernoulli"}, epsilon="0.5", public_n=False)
    return posterior_of(noisy_statistic(plan, np.array(counts), groups=groups), method="plug-in")


COUNTS = [[60, 40], [90, 10], [70, 30], [30, 70]]


def test_a_probability_is_the_distributions_own() -> None:
    posterior = rates(COUNTS)
    distributions = [stats.beta(1 + true, 1 + false) for false, true in COUNTS]
    above = posterior.probability("probability", above=0.35, draws=DRAWS)
    below = posterior.probability("probability", below=0.35, draws=DRAWS)
    between = posterior.probability("probability", above=0.2, below=0.35, draws=DRAWS)
    assert above == pytest.approx([distribution.sf(0.35) for distribution in distributions], abs=REACH)
    assert below == pytest.approx([distribution.cdf(0.35) for distribution in distributions], abs=REACH)
    assert between == pytest.approx(
        [distribution.cdf(0.35) - distribution.cdf(0.2) for distribution in distributions], abs=REACH
    )


def test_a_difference_pairs_cells_whose_other_keys_agree() -> None:
    contrast = rates(COUNTS).difference("probability", {"origin": "JFK"}, {"origin": "LGA"}, draws=DRAWS)
    assert contrast.groups == {"month": [1, 2]}
    assert (contrast.first, contrast.second) == ("origin=JFK", "origin=LGA")
    distributions = [stats.beta(1 + true, 1 + false) for false, true in COUNTS]
    assert contrast.mean() == pytest.approx(
        [distributions[k].mean() - distributions[k + 2].mean() for k in (0, 1)]
    )
    assert contrast.sd() == pytest.approx(
        [np.hypot(distributions[k].std(), distributions[k + 2].std()) for k in (0, 1)]
    )
    points = np.linspace(0, 1, 20_001)
    exact = []
    for pair in (0, 1):
        density, below = distributions[pair].pdf(points), distributions[pair + 2].cdf(points)
        exact.append(float(np.sum(density * below) * (points[1] - points[0])))
    assert contrast.probability() == pytest.approx(exact, abs=REACH)
    assert contrast.probability(below=0.0) == pytest.approx(1 - np.array(exact), abs=REACH)
    first, second = contrast.rows()
    assert list(first) == ["month", "parameter", "mean", "sd", "lower", "upper", "probability_above"]
    assert first["lower"] < first["mean"] < first["upper"]
    assert second["upper"] < 0 < first["upper"]


def test_the_other_way_round_changes_the_sign() -> None:
    posterior = rates(COUNTS)
    forwards = posterior.difference("probability", {"origin": "JFK"}, {"origin": "LGA"}, rng=1)
    other = posterior.difference("probability", {"origin": "LGA"}, {"origin": "JFK"}, rng=1)
    assert np.array_equal(forwards.draws, -other.draws)


def test_a_ratio_is_that_of_independent_cells() -> None:
    contrast = rates(COUNTS).ratio(
        "probability", {"origin": "JFK", "month": 1}, {"origin": "LGA", "month": 2}, draws=DRAWS
    )
    assert contrast.groups == {}
    first, second = stats.beta(41, 61), stats.beta(71, 31)
    points = np.linspace(0, 1, 20_001)
    exact = float(np.sum(second.pdf(points) * first.sf(0.5 * points)) * (points[1] - points[0]))
    assert contrast.probability(above=0.5) == pytest.approx([exact], abs=REACH)
    # E[1 / beta(a, b)] = (a + b - 1) / (a - 1)
    assert contrast.mean() == pytest.approx([first.mean() * 101 / 70], rel=0.02)
    assert contrast.quantile(0.5)[0] == pytest.approx(np.median(contrast.draws))


def test_categories_are_compared_one_by_one() -> None:
    plan = statistic_plan({"family": "categorical", "categories": ["a", "b"]}, epsilon="1", public_n=False)
    groups: dict[str, list[str | int]] = {"origin": ["JFK", "LGA"]}
    posterior = posterior_of(noisy_statistic(plan, np.array([[80, 20], [40, 60]]), groups=groups))
    contrast = posterior.difference("probability", {"origin": "JFK"}, {"origin": "LGA"})
    assert contrast.mean().shape == (1, 2)
    assert contrast.credible_interval(0.8).shape == (1, 2, 2)
    assert [row["category"] for row in contrast.rows()] == ["a", "b"]
    assert contrast.probability()[0] == pytest.approx([1.0, 0.0], abs=0.01)


def test_two_posteriors_match_by_their_keys_in_any_order() -> None:
    first = rates(COUNTS)
    order = [3, 1, 0, 2]
    further = {column: [keys[cell] for cell in order] for column, keys in GROUPS.items()}
    second = rates([COUNTS[cell] for cell in order], further)
    same = contrast_between(
        "difference", "probability", first, second, draws=100, rng=np.random.default_rng(1)
    )
    assert same.mean() == pytest.approx(np.zeros(4))
    assert same.groups == GROUPS


def test_a_contrast_shows_itself_as_a_table() -> None:
    contrast = rates(COUNTS).difference({"origin": "JFK"}, {"origin": "LGA"}, rng=1)
    assert repr(contrast) == "<Contrast of probability: origin=JFK minus origin=LGA>"
    text = str(contrast)
    assert "origin=JFK minus origin=LGA" in text
    assert "probability_above: that the difference is above 0, of 4000 draws" in text
    assert "<table" in contrast._repr_html_()
    lower, upper = contrast.interval(0.5)
    assert np.all(lower < upper)
    assert [*contrast.to_frame("pandas")["month"]] == [1, 2]


def test_the_chance_of_being_among_the_highest_is_that_of_independent_cells() -> None:
    posterior = rates(COUNTS)
    true, false = np.transpose([(count[1], count[0]) for count in COUNTS])
    drawn = np.random.default_rng(5).beta(1 + true, 1 + false, (DRAWS, len(COUNTS)))
    places = np.argsort(np.argsort(-drawn, axis=1), axis=1)
    for k in (1, 2, 3):
        shares = posterior.among_highest(k, draws=DRAWS, rng=1)
        assert shares.sum() == pytest.approx(k)
        assert shares == pytest.approx(np.mean(places < k, axis=0), abs=2 * REACH)
    table = posterior.highest(1, rng=1)
    assert (table[0]["origin"], table[0]["month"]) == ("LGA", 2)
    assert table[0]["probability"] > 0.99
    assert [row["probability"] for row in table] == sorted(
        (row["probability"] for row in table), reverse=True
    )
    for wrong in (0, 4, True, 1.5):
        with pytest.raises(UsageError, match=r"k must be an integer in 1\.\.3"):
            posterior.among_highest(wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="there is one cell"):
        rates(COUNTS[:1], {"origin": ["JFK"]}).highest()


def test_many_draws_of_cells_are_ordered_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parameter_posterior, "_MOST_VALUES", 40)
    shares = rates(COUNTS).among_highest(1, draws=25, rng=1)
    assert shares.sum() == pytest.approx(1.0)


def test_comparisons_that_make_no_sense_are_refused() -> None:
    posterior = rates(COUNTS)
    jfk: dict[str, object] = {"origin": "JFK"}
    refused: list[tuple[dict[str, object], dict[str, object], str]] = [
        ({}, {}, "same group columns"),
        (jfk, {"month": 1}, "same group columns"),
        (jfk, jfk, "compared with itself"),
        (jfk, {"origin": "BOS"}, "no cell of the release has origin=BOS"),
        ({"carrier": "UA"}, {"carrier": "DL"}, "no group 'carrier'"),
    ]
    for first, second, rule in refused:
        with pytest.raises(UsageError, match=rule):
            posterior.difference("probability", first, second)
    with pytest.raises(UsageError, match="no parameter"):
        posterior.ratio("mean", jfk, {"origin": "LGA"})
    with pytest.raises(UsageError, match="state above"):
        posterior.probability("probability")
    with pytest.raises(UsageError, match="nothing lies"):
        posterior.probability("probability", above=0.5, below=0.5)
    with pytest.raises(UsageError, match="must be one number"):
        posterior.probability("probability", above=float("nan"))
    wrong: Any
    for wrong in ([0.1, 0.2], np.array([0.1, 0.2]), "0.1"):
        with pytest.raises(UsageError, match="above must be one number"):
            posterior.probability("probability", above=wrong)
    for wrong in ([0.1, 1.0], "0.5", 1.0, 0.0, float("nan")):
        with pytest.raises(UsageError, match="q must lie between 0 and 1"):
            posterior.quantile("probability", wrong)
    for wrong in ([0.1, 0.9], "0.5", None, 1.0, 0.0, float("nan")):
        with pytest.raises(UsageError, match="mass must lie between 0 and 1"):
            posterior.credible_interval("probability", wrong)
    with pytest.raises(UsageError, match="same cells"):
        contrast_between(
            "difference",
            "probability",
            posterior,
            rates(COUNTS[:2], {"origin": ["JFK", "LGA"], "month": [1, 1]}),
            draws=1,
            rng=np.random.default_rng(7),
        )


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("mean > 10", ("mean", 10.0, None)),
        ("mean<-1.5e1", ("mean", None, -15.0)),
        (" .5 < log_mean < 2 ", ("log_mean", 0.5, 2.0)),
        ("3 < rate", ("rate", 3.0, None)),
    ],
)
def test_statements_are_read(text: str, statement: tuple[str, float | None, float | None]) -> None:
    assert parse_statement(text) == statement


@pytest.mark.parametrize("text", ["mean", "mean > x", "3 < mean > 2", "> 3", "__import__('os')", "mean = 3"])
def test_other_statements_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--probability"):
        parse_statement(text)
