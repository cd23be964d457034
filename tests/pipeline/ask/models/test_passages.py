"""First passages and stationary distributions: known chains, linear systems, chains that trap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.pipeline.ask.models.chain import all_first_passages, first_passage, stationary_law


def test_two_states_in_closed_form() -> None:
    found = all_first_passages(np.array([[0.9, 0.1], [0.2, 0.8]]))
    np.testing.assert_allclose(found, [[1.5, 10.0], [5.0, 3.0]], rtol=1e-14)
    np.testing.assert_allclose(stationary_law(found), [2 / 3, 1 / 3], rtol=1e-14)


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
        found = first_passage(chances, state)
        others = np.where(np.arange(size) == state, 0.0, chances)
        np.testing.assert_allclose(found, 1.0 + np.einsum("dij,dj->di", others, found), rtol=1e-9)
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
    found = all_first_passages(chances)
    for state in range(size):
        others = np.where(np.arange(size) == state, 0.0, chances)
        within = np.linalg.matrix_power(np.eye(size) + others, size) > 0.0
        can_enter = within @ (chances[:, state] > 0.0)
        np.testing.assert_array_equal(np.isfinite(found[:, state]), ~(within & ~can_enter).any(axis=1))
        is_finite = np.isfinite(found[:, state])
        steps = np.where(is_finite, found[:, state], 0.0)
        np.testing.assert_allclose(steps[is_finite], (1.0 + others @ steps)[is_finite], rtol=1e-9)
        np.testing.assert_allclose(first_passage(chances, state), found[:, state], rtol=1e-9)


def test_small_probabilities_keep_their_digits() -> None:
    """Where a linear system has lost them all."""
    rare = np.array([[1.0, 3e-200], [1e-200, 1.0]])
    found = all_first_passages(rare)
    np.testing.assert_allclose(found[0, 1], 1.0 / 3e-200, rtol=1e-12)
    np.testing.assert_allclose(stationary_law(found), [0.25, 0.75], rtol=1e-12)
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.solve(np.eye(2) - np.where([True, False], rare, 0.0), np.ones(2))


@pytest.mark.parametrize("chance", [1e-302, 5e-324])
def test_chances_that_have_no_inverse_count_as_none(chance: float) -> None:
    found = all_first_passages(np.array([[1.0, chance], [1e-250, 1.0]]))
    np.testing.assert_allclose(found, [[1.0, np.inf], [1e250, np.inf]], rtol=1e-12)
    far = np.array([[1.0, 1e-200, 0.0], [1.0, 0.0, 1e-200], [1.0, 0.0, 0.0]])
    assert all_first_passages(far)[0, 2] == np.inf


def test_a_period_leaves_a_stationary_law() -> None:
    found = all_first_passages(np.roll(np.eye(4), 1, axis=1))
    np.testing.assert_array_equal(found[0], [4.0, 1.0, 2.0, 3.0])
    np.testing.assert_array_equal(stationary_law(found), np.full(4, 0.25))


def test_states_that_are_left_for_good_have_no_share() -> None:
    left = np.array([[0.0, 0.5, 0.5], [0.0, 0.3, 0.7], [0.0, 0.6, 0.4]])
    found = all_first_passages(left)
    assert np.all(np.isinf(found[:, 0]))
    np.testing.assert_allclose(stationary_law(found), [0.0, 6 / 13, 7 / 13], rtol=1e-14)


def test_two_parts_that_cannot_be_left_have_no_one_law() -> None:
    """The first and the third state keep what comes, the second goes to either; beside a plain chain."""
    parted = np.array([[1.0, 0.0, 0.0], [0.4, 0.2, 0.4], [0.0, 0.0, 1.0]])
    plain = np.full((3, 3), 1 / 3)
    found = all_first_passages(np.stack([parted, plain]))
    expected = [[1.0, np.inf, np.inf], [np.inf, np.inf, np.inf], [np.inf, np.inf, 1.0]]
    np.testing.assert_array_equal(found[0], expected)
    np.testing.assert_allclose(found[1], 3.0, rtol=1e-14)
    law = stationary_law(found)
    assert np.all(np.isnan(law[0]))
    np.testing.assert_allclose(law[1], 1 / 3, rtol=1e-14)
