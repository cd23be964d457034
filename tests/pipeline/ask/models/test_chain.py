"""Chains over a release: known truth, agreement with each other, coverage, refusals.

First passages and stationary distributions: known chains, linear systems, chains that trap.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from suffice import models, open_release
from suffice.errors import UsageError
from suffice.pipeline.ask.models.chain import all_first_passages, first_passage, stationary_law
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace
from support.model_releases import STATES, STATISTICS, TRANSITIONS, model_spec, publish_models
from support.releases import publish

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.ask.pooling.release import Release


TRIALS = 120
FALSE_ALARM = 1e-6


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return open_release("models", store=publish_models(tmp_path_factory.mktemp("models")))


@pytest.fixture(scope="module")
def chain(release: Release) -> models.Chain:
    return models.chain(release, "steps", draws=2000, rng=1)


def test_means_are_those_of_the_conjugate_update(release: Release) -> None:
    """Without noise, and by the plug-in, a row is Dirichlet(1 + counts)."""
    chain = models.chain(release, "steps", method="plug-in", draws=4000, rng=1)
    counts = release.statistic("steps").values.astype(float).reshape(2, 3, 3)
    expected = (counts + 1) / np.sum(counts + 1, axis=-1, keepdims=True)
    error = np.abs(chain.transitions.mean - expected) / (chain.transitions.sd / np.sqrt(4000))
    assert np.max(error) < 5.8  # of 18 normal numbers, once in 10^6 or less


def test_the_truth_is_found(chain: models.Chain) -> None:
    passages = all_first_passages(TRANSITIONS)
    assert chain.states == STATES
    assert np.all(np.abs(chain.transitions.mean - TRANSITIONS) < 6 * chain.transitions.sd)
    long_run = chain.stationary()
    assert np.all(np.abs(long_run.mean - stationary_law(passages)) < 6 * long_run.sd)
    for place, state in enumerate(STATES):
        steps = chain.steps_to(state)
        half_width = (steps.quantile(0.84) - steps.quantile(0.16)) / 2
        assert np.all(np.abs(steps.quantile(0.5) - passages[:, place]) < 6 * half_width)


def test_laws_after_steps_agree(chain: models.Chain) -> None:
    once = chain.transitions.draws
    np.testing.assert_allclose(chain.after(3).draws, once @ once @ once, rtol=1e-12)
    np.testing.assert_array_equal(chain.after(0).draws, np.broadcast_to(np.eye(3), once.shape))
    np.testing.assert_allclose(chain.after(3, "b").draws, (once @ once @ once)[:, :, 1], rtol=1e-12)
    mixed = chain.after(2, {"a": 0.25, "c": 0.75}).draws
    np.testing.assert_allclose(mixed, (once @ once)[:, :, [0, 2]].swapaxes(2, 3) @ [0.25, 0.75], rtol=1e-12)
    np.testing.assert_allclose(chain.after(10_000, "a").draws, chain.stationary().draws, rtol=1e-9)


def test_returning_takes_one_over_the_share(chain: models.Chain) -> None:
    steps = np.stack([chain.steps_to(state).draws[..., place] for place, state in enumerate(STATES)], axis=-1)
    np.testing.assert_allclose(chain.stationary().draws * steps, 1.0, rtol=1e-12)


def test_rows_name_every_number(chain: models.Chain) -> None:
    rows = chain.rows(0.8, steps=[2], to=["c"], start="a")
    quantities = ["transition"] * 9 + ["stationary"] * 3 + ["expected_steps"] * 3 + ["after_2"] * 3
    assert [row["quantity"] for row in rows] == quantities * 2
    assert [row["origin"] for row in rows] == ["JFK"] * 18 + ["LGA"] * 18
    (row,) = [row for row in rows if (row["origin"], row["quantity"], row["to"]) == ("LGA", "after_2", "c")]
    assert row["from"] == "a"
    np.testing.assert_allclose(row["mean"], chain.after(2, "a").mean[1, 2], rtol=1e-12)
    np.testing.assert_allclose(
        [row["lower"], row["upper"]], chain.after(2, "a").credible_interval(0.8)[1, 2], rtol=1e-12
    )
    assert all(row["mean"] is None for row in rows if row["quantity"] == "expected_steps")
    assert all(row["median"] > 1 for row in rows if row["quantity"] == "expected_steps")
    assert {row["from"] for row in chain.rows(steps=[1], start={"a": 0.5, "b": 0.5})[-3:]} == {None}


def test_cells_are_summed_up_a_block_at_a_time(chain: models.Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = chain.rows(steps=[2])
    monkeypatch.setattr("suffice.pipeline.ask.models.chain._NUMBERS", 1)
    assert chain.rows(steps=[2]) == rows


def test_a_long_run_that_depends_on_the_start_is_counted(chain: models.Chain) -> None:
    """In every fourth draw of the second cell the states a and b both keep what comes."""
    draws = chain.transitions.draws.copy()
    draws[::4, 1, :2] = np.eye(3)[:2]
    parted = dataclasses.replace(chain, transitions=models.DrawnQuantity(draws=draws))
    np.testing.assert_array_equal(parted.undefined_share, [0.0, 0.25])
    share, whole = (each.stationary().mean[1] for each in (parted, chain))
    np.testing.assert_allclose(share, whole, atol=0.01)
    never = parted.steps_to("c")
    assert never.probability(above=1e300)[1, 0] == 0.25
    assert np.isinf(never.quantile(0.9)[1, 0])
    (row,) = [
        row
        for row in parted.rows(0.95, to=["c"])
        if (row["origin"], row["quantity"], row["from"]) == ("LGA", "expected_steps", "a")
    ]
    assert row["upper"] is None
    assert row["lower"] > 1


def test_what_does_not_exist_is_refused(release: Release, chain: models.Chain) -> None:
    with pytest.raises(UsageError, match=r"heads is bernoulli.*in this release that is steps"):
        models.chain(release, "heads")
    with pytest.raises(UsageError, match="no statistic 'absent'"):
        models.chain(release, "absent")
    with pytest.raises(UsageError, match="no state 'd': it has a, b, c"):
        chain.steps_to("d")
    with pytest.raises(UsageError, match="no state 'd'"):
        chain.rows(to=["d"])
    for steps in (-1, True, 1.5, 10**7):
        with pytest.raises(UsageError, match="steps must be"):
            chain.after(steps)  # type: ignore[arg-type]
    for start in ({"a": 0.5}, {"a": 1.5, "b": -0.5}):
        with pytest.raises(UsageError, match="start"):
            chain.after(1, start)


def coverage(root: Path, method: str) -> int:
    """How many of many chains' 80 % intervals hold the share of a in the long run; N from 0..200, b = 10."""
    rng = np.random.default_rng(15)
    spec = model_spec(
        statistics={"steps": STATISTICS["steps"]},
        groups={"trial": {"range": [1, TRIALS]}},
        privacy={
            "epsilon": "0.5",
            "neighboring": "add_or_remove_one",
            "unit": {"column": "traveller", "max_rows": 6},
        },
    )
    plan = compile_plan(spec)
    (statistic,) = plan.statistics
    truth = rng.dirichlet(np.ones(3), (TRIALS, 3))
    left = rng.multinomial(rng.integers(0, 201, TRIALS), rng.dirichlet(np.ones(3), TRIALS))
    counts = rng.multinomial(left, truth).reshape(TRIALS, 9)
    noise = discrete_laplace(statistic.scale, counts.shape, rng, 1)
    assert statistic.scale > 5
    publish(root, plan, {"steps": (counts + noise).astype(object)})
    release = open_release("models", store=str(root))
    n_prior = "Uniform(0, 200)" if method == "noise-aware" else None
    chain = models.chain(release, "steps", method=method, n_prior=n_prior, draws=400, rng=rng)
    lower, upper = np.moveaxis(chain.stationary().credible_interval(0.8)[:, 0], -1, 0)
    share = stationary_law(all_first_passages(truth))[:, 0]
    return int(np.sum((lower <= share) & (share <= upper)))


@pytest.mark.slow
def test_intervals_of_stationary_shares_cover(tmp_path: Path) -> None:
    """By chance outside of this range at most once in 10^6; the plug-in, for control, is below it."""
    ends = (FALSE_ALARM / 2, 1 - FALSE_ALARM / 2)
    least, most = (float(binom.ppf(end, TRIALS, 0.8)) for end in ends)
    assert least <= coverage(tmp_path / "noise-aware", "noise-aware") <= most
    assert coverage(tmp_path / "plug-in", "plug-in") < least


def test_two_states_in_closed_form() -> None:
    passages = all_first_passages(np.array([[0.9, 0.1], [0.2, 0.8]]))
    np.testing.assert_allclose(passages, [[1.5, 10.0], [5.0, 3.0]], rtol=1e-14)
    np.testing.assert_allclose(stationary_law(passages), [2 / 3, 1 / 3], rtol=1e-14)


def test_the_walk_along_a_line() -> None:
    """With a wall at 0, it takes k^2 steps from 0 to k."""
    size = 9
    walk = np.zeros((size, size))
    walk[0, 1] = walk[-1, -2] = 1.0
    inner = np.arange(1, size - 1)
    walk[inner, inner - 1] = walk[inner, inner + 1] = 0.5
    np.testing.assert_allclose(all_first_passages(walk)[0, 1:], np.arange(1, size) ** 2, rtol=1e-12)


@given(
    seed=st.integers(0, 2**32 - 1), size=st.integers(2, 7), concentration=st.sampled_from([0.05, 0.5, 3.0])
)
def test_first_passages_solve_their_equations(seed: int, size: int, concentration: float) -> None:
    chances = np.random.default_rng(seed).dirichlet(np.full(size, concentration), (3, size))
    chances = np.maximum(chances, 1e-9) / np.maximum(chances, 1e-9).sum(axis=-1, keepdims=True)
    for state in range(size):
        passages = first_passage(chances, state)
        others = np.where(np.arange(size) == state, 0.0, chances)
        np.testing.assert_allclose(passages, 1.0 + np.einsum("dij,dj->di", others, passages), rtol=1e-9)
    law = stationary_law(all_first_passages(chances))
    np.testing.assert_allclose(np.einsum("di,dij->dj", law, chances), law, rtol=1e-8, atol=1e-15)
    np.testing.assert_allclose(law.sum(axis=-1), 1.0, rtol=1e-12)


@given(seed=st.integers(0, 2**32 - 1), size=st.integers(2, 9), share=st.sampled_from([0.15, 0.3, 0.6]))
def test_steps_are_endless_just_where_a_state_may_never_be_entered(
    seed: int, size: int, share: float
) -> None:
    """Where, without entering it, a state can be reached that it cannot be reached from."""
    rng = np.random.default_rng(seed)
    chances = rng.dirichlet(np.ones(size), size) * (rng.random((size, size)) < share)
    chances += np.where(chances.sum(axis=1) == 0.0, 1.0, 0.0)[:, None] * np.eye(size)
    chances /= chances.sum(axis=1, keepdims=True)
    passages = all_first_passages(chances)
    for state in range(size):
        others = np.where(np.arange(size) == state, 0.0, chances)
        within = np.linalg.matrix_power(np.eye(size) + others, size) > 0.0
        can_enter = within @ (chances[:, state] > 0.0)
        np.testing.assert_array_equal(np.isfinite(passages[:, state]), ~(within & ~can_enter).any(axis=1))
        is_finite = np.isfinite(passages[:, state])
        steps = np.where(is_finite, passages[:, state], 0.0)
        np.testing.assert_allclose(steps[is_finite], (1.0 + others @ steps)[is_finite], rtol=1e-9)
        np.testing.assert_allclose(first_passage(chances, state), passages[:, state], rtol=1e-9)


def test_small_probabilities_keep_their_digits() -> None:
    """Where a linear system has lost them all."""
    rare = np.array([[1.0, 3e-200], [1e-200, 1.0]])
    passages = all_first_passages(rare)
    np.testing.assert_allclose(passages[0, 1], 1.0 / 3e-200, rtol=1e-12)
    np.testing.assert_allclose(stationary_law(passages), [0.25, 0.75], rtol=1e-12)
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.solve(np.eye(2) - np.where([True, False], rare, 0.0), np.ones(2))


@pytest.mark.parametrize("chance", [1e-302, 5e-324])
def test_chances_that_have_no_inverse_count_as_none(chance: float) -> None:
    passages = all_first_passages(np.array([[1.0, chance], [1e-250, 1.0]]))
    np.testing.assert_allclose(passages, [[1.0, np.inf], [1e250, np.inf]], rtol=1e-12)
    far = np.array([[1.0, 1e-200, 0.0], [1.0, 0.0, 1e-200], [1.0, 0.0, 0.0]])
    assert all_first_passages(far)[0, 2] == np.inf


def test_a_period_leaves_a_stationary_law() -> None:
    passages = all_first_passages(np.roll(np.eye(4), 1, axis=1))
    np.testing.assert_array_equal(passages[0], [4.0, 1.0, 2.0, 3.0])
    np.testing.assert_array_equal(stationary_law(passages), np.full(4, 0.25))


def test_states_that_are_left_for_good_have_no_share() -> None:
    left = np.array([[0.0, 0.5, 0.5], [0.0, 0.3, 0.7], [0.0, 0.6, 0.4]])
    passages = all_first_passages(left)
    assert np.all(np.isinf(passages[:, 0]))
    np.testing.assert_allclose(stationary_law(passages), [0.0, 6 / 13, 7 / 13], rtol=1e-14)


def test_two_parts_that_cannot_be_left_have_no_one_law() -> None:
    """The first and the third state keep what comes, the second goes to either; beside a plain chain."""
    parted = np.array([[1.0, 0.0, 0.0], [0.4, 0.2, 0.4], [0.0, 0.0, 1.0]])
    plain = np.full((3, 3), 1 / 3)
    passages = all_first_passages(np.stack([parted, plain]))
    expected = [[1.0, np.inf, np.inf], [np.inf, np.inf, np.inf], [np.inf, np.inf, 1.0]]
    np.testing.assert_array_equal(passages[0], expected)
    np.testing.assert_allclose(passages[1], 3.0, rtol=1e-14)
    law = stationary_law(passages)
    assert np.all(np.isnan(law[0]))
    np.testing.assert_allclose(law[1], 1 / 3, rtol=1e-14)
