"""Places on a map over time: what an answer holds, says and refuses, at the jump of a region."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from suffice.errors import UsageError
from suffice.pipeline.ask.borrowing.held_out import held_out
from suffice.pipeline.ask.borrowing.panels import PanelPosterior, posterior_over
from suffice.pipeline.ask.borrowing.pooled_posterior import pooled_posterior
from suffice.pipeline.ask.borrowing.pooling import Pooling
from suffice.pipeline.ask.borrowing.side_by_side import populations
from suffice.pipeline.ask.borrowing.walk import Walk
from suffice.pipeline.ask.borrowing.walk_known import Steps, doubts
from suffice.pipeline.ask.inference.posterior_terms import PosteriorTerms
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.math.distributions.distribution import Line
from support.noisy import discrete_laplace, noisy_statistic, statistic_plan

SIDE, MONTHS = 4, 8
N = SIDE**2
ROW, COLUMN = np.divmod(np.arange(N), SIDE)
PAIRS = [(cell, cell + 1) for cell in range(N) if COLUMN[cell] < SIDE - 1]
PAIRS += [(cell, cell + SIDE) for cell in range(N - SIDE)]
LINKED = [pair for pair in PAIRS if N - 1 not in pair]
COMMON = np.array([0.0, 0.1, 0.0, -0.1, 0.6, 0.7, 0.6, 0.7])
JUMPED = (ROW < 2) & (COLUMN < 2)
LOGIT = (-1.5 + 0.5 * np.sin(ROW / 1.5) + 0.4 * np.cos(COLUMN / 1.5))[:, None] + COMMON
LOGIT[JUMPED, 5:] += 1.5
LOGIT[10] += 3.0
GROUPS: dict[str, Any] = {
    "county": [*np.repeat(np.arange(N), MONTHS).tolist()],
    "month": [f"2024-{month + 1:02d}" for month in range(MONTHS)] * N,
}


def released(logit: Any, size: int = 200, groups: dict[str, Any] = GROUPS) -> Any:
    rng = np.random.default_rng(1)
    plan = statistic_plan({"family": "bernoulli", "column": "x"}, epsilon="1", public_n=False)
    true = rng.binomial(size, 1.0 / (1.0 + np.exp(-np.ravel(logit))))
    counts = np.stack([size - true, true], axis=1)
    return noisy_statistic(plan, counts + discrete_laplace(plan.scale, counts.shape, rng), groups=groups)


def asked(statistic: Any, **further: Any) -> PanelPosterior:
    pooling = Pooling(
        **{"adjacency": {"county": [a for a, _ in LINKED], "next": [b for _, b in LINKED]}} | further
    )
    answer = pooled_posterior(statistic, PosteriorTerms(), pooling, lambda: posterior_of(statistic))
    assert isinstance(answer, PanelPosterior)
    return answer


@pytest.fixture(scope="module")
def answer() -> PanelPosterior:
    return asked(released(LOGIT), over="month")


@pytest.mark.slow
def test_it_says_what_borrowed_from_what(answer: PanelPosterior) -> None:
    said = str(answer)
    assert f"{N} series of {N * MONTHS} cells walk over month, in the order of months" in said
    assert f"places have neighbours by county, {len(LINKED)} pairs; 8 cells of islands borrow" in said
    assert "steps of all together" in said
    assert "share of places' steps that are jumps 0.0" in said
    assert "too small" not in said
    assert "is the map's, slope on log(1 + size)" in said
    assert "by expectation propagation with the exact likelihood of each cell" in said
    prior = str(answer.prior)
    assert "a smooth field over neighbours by county (BYM2) and parts of places' own, 5 % of them" in prior
    assert "0.99 Normal(0, s^2) + 0.01 Laplace(0, 1)" in prior
    assert "share of jumps of places integrated over 0.0003, 0.001, 0.003, 0.01, 0.03, equally" in prior
    assert answer.population == "contaminated"
    assert answer.islands == tuple(range((N - 1) * MONTHS, N * MONTHS))
    (row,) = populations(answer)
    assert row.keys() >= {"step", "common_step", "spread", "of_map", "settled", "in_words"}
    assert row["settled"]


@pytest.mark.slow
def test_jumps_of_a_region_and_of_all_are_told_apart(answer: PanelPosterior) -> None:
    jumped = {(row["county"], row["month"]) for row in answer.jumps()}
    assert jumped == {(county, "2024-06") for county in np.flatnonzero(JUMPED).tolist()}
    common = answer.common()
    assert [row["month"] for row in common] == GROUPS["month"][:MONTHS]
    gap = np.array([row["mean"] for row in common]) - (COMMON - COMMON[MONTHS // 2])
    assert np.max(np.abs(gap)) < 0.25
    assert np.all(np.abs(gap) < 4.5 * np.array([row["sd"] for row in common]) + 1e-9)
    assert [row["county"] for row in answer.outlying()] == [10]
    # Four of 112 steps are jumps, seen well: 3 % is 1e6 times as probable as .03 %, and 9 times as 1 %.
    (part,) = answer.distribution.pools  # type: ignore[attr-defined]
    assert part.share_of_jumps[0] > 0.01
    # Logits of 200 records have a variance of 1 / (200 p (1 - p)) or more, noise aside.
    step = float(np.exp(part.points[int(np.argmax(part.weight))].theta[0]))
    assert 0.02 < part.noise_over_step * step**2 < 0.12


@pytest.mark.parametrize(
    ("noise", "sd", "is_said"),
    [(30.0, 0.04, True), (30.0, 0.3, True), (30.0, 0.9, False), (3.0, 0.04, False)],
)
def test_steps_that_cells_tell_behind_noise_are_called_too_small(
    noise: float, sd: float, is_said: bool
) -> None:
    part: Any = SimpleNamespace(
        shape=(3, 4),
        n_cells=12,
        known={"step": (0.054, 0.054 * sd)},
        log_sd={"step": sd},
        settled=True,
        noise_over_step=noise,
    )
    said = doubts((Steps.of({}, part),))
    assert any("too small" in sentence for sentence in said) == is_said


@pytest.mark.parametrize(("log_sd", "is_said"), [(0.68, True), (0.65, False)])
def test_a_spread_of_places_that_cells_do_not_tell_is_said(log_sd: float, *, is_said: bool) -> None:
    """The logarithm of its hyperprior has a standard deviation of 1.11: six tenths of that are .67."""
    part: Any = SimpleNamespace(
        shape=(3, 4),
        n_cells=12,
        known={"step": (0.05, 0.01)},
        log_sd={"step": 0.2, "spread": log_sd},
        settled=True,
    )
    said = doubts((Steps.of({}, part),))
    assert any("spread of places is not identified" in sentence for sentence in said) == is_said


def test_intervals_hold_and_are_narrower_than_alone(answer: PanelPosterior) -> None:
    truth = 1.0 / (1.0 + np.exp(-LOGIT.ravel()))
    low, high = answer.interval(0.95)
    # Of 128 that hold with a chance of .95, 106 or fewer do with one below 1e-6.
    assert np.sum((low <= truth) & (truth <= high)) > 106
    alone_low, alone_high = answer.alone.interval(0.95)
    assert np.mean(high - low) < 0.7 * np.mean(alone_high - alone_low)
    assert np.mean((answer.mean() - truth) ** 2) < 0.5 * np.mean((answer.alone.mean() - truth) ** 2)
    share = answer.own_share
    assert np.all((share > 0.0) & (share < 1.0))


@pytest.mark.slow
def test_draws_have_the_margins_and_go_together(answer: PanelPosterior) -> None:
    drawn = answer.sample(2000, np.random.default_rng(1))["probability"]
    np.testing.assert_allclose(drawn.mean(axis=0), answer.mean(), atol=6.0 * np.max(answer.sd()) / 2000**0.5)
    np.testing.assert_allclose(drawn.std(axis=0), answer.sd(), rtol=0.25)
    by_place = drawn.reshape(-1, N, MONTHS)
    along = [np.corrcoef(by_place[:, place, 0], by_place[:, place, 1])[0, 1] for place in range(N)]
    assert np.mean(along) > 0.3


def test_held_out_cells_are_foretold_better_than_alone(answer: PanelPosterior) -> None:
    comparison = held_out({"both": answer})
    assert comparison.best == "both"
    assert "expectation propagation on the map" in comparison.said


@pytest.mark.slow
def test_an_answer_that_is_not_resolved_says_so() -> None:
    """Released numbers below 0 leave probabilities anywhere, of which much lies beyond the points."""
    plan = statistic_plan({"family": "bernoulli", "column": "x"}, epsilon="1", public_n=False)
    groups: dict[str, Any] = {
        "county": np.repeat(np.arange(6), 4).tolist(),
        "month": GROUPS["month"][:4] * 6,
    }
    unresolved = asked(
        noisy_statistic(plan, np.array([[-3, 5]] * 24), groups=groups),
        over="month",
        adjacency={"county": [*range(5)], "next": [*range(1, 6)]},
    )
    assert "or not resolved" in str(unresolved)
    assert "nan" not in str(unresolved)
    assert np.all(np.isfinite([unresolved.mean(), unresolved.sd(), unresolved.own_share]))
    assert not populations(unresolved)[0]["settled"]


@pytest.mark.parametrize(
    ("further", "says"),
    [
        ({"over": "month season=4"}, "over=month season=4 does not go with adjacency"),
        ({"over": "month order=2"}, "does not go with adjacency: places on a map take a walk of first order"),
        ({"over": "month kind=ar1"}, "does not go with adjacency"),
        ({"over": "county"}, "county is walked over, and has no neighbours"),
        ({"over": "month", "population": "beta"}, "population beta has no neighbours"),
        ({"over": "month", "within": ("county",)}, "within county no cell has a neighbour"),
        ({"over": "month", "adjacency": [(0, 999)]}, "999 is no key of county|pairs without a name"),
    ],
    ids=["season", "order", "return", "the same column", "beta", "within", "unknown key"],
)
def test_what_does_not_go_together_is_refused(further: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        asked(released(LOGIT), **further)


@pytest.mark.slow
def test_cells_of_two_noises_are_those_of_a_series_of_windows(answer: PanelPosterior) -> None:
    """Windows of a series may differ in noise: here halves have the same, and so have answers."""
    statistic = released(LOGIT)
    first = np.flatnonzero(np.arange(N * MONTHS) % MONTHS < 4)
    second = np.setdiff1d(np.arange(N * MONTHS), first)
    pooling = Pooling(
        adjacency={"county": [a for a, _ in LINKED], "next": [b for _, b in LINKED]}, over=Walk(over="month")
    )
    parts = [(statistic.take(cells), cells) for cells in (first, second)]
    apart = posterior_over(
        statistic, pooling, Line.LOGIT, None, lambda: posterior_of(statistic),
        declared=GROUPS["month"][:MONTHS], parts=parts,
    )  # fmt: skip
    np.testing.assert_allclose(apart.mean(), answer.mean(), atol=2e-3)
    assert apart.conflict.lines() == answer.conflict.lines()
