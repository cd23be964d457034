"""What is made of draws of states: one numbering, the most probable path, whether restarts agree."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from suffice.pipeline.ask.models.hidden_markov_fit import align_states, most_probable_path, total_variation
from suffice.pipeline.ask.models.state_draws import StateDraws
from suffice.pipeline.ask.models.state_sampling import diagnose, state_entropy


def some_draws(seed: int = 1, *, n_restarts: int = 3, n_draws: int = 20, n_states: int = 4) -> StateDraws:
    """Draws around one truth, in one numbering, the states of unequal size."""
    rng = np.random.default_rng(seed)
    truth = [rng.dirichlet(np.full(size, 0.3), n_states) for size in (5, 2)]
    lead = (n_restarts, n_draws)
    size = np.array([0.4, 0.3, 0.2, 0.1])[:n_states]
    path = rng.choice(n_states, (3, 30), p=size / size.sum())
    emissions = tuple(
        np.array(
            [[rng.dirichlet(row * 400 + 1) for row in each] for _ in range(n_restarts * n_draws)]
        ).reshape(*lead, n_states, -1)
        for each in truth
    )
    transitions = rng.dirichlet(np.arange(1.0, n_states + 1) * 40, (*lead, n_states + 1))
    log_joint = rng.normal(-100.0, 1.0, lead)
    return StateDraws(
        states=np.broadcast_to(path, (*lead, 3, 30)).astype(np.int8),
        transitions=transitions,
        emissions=emissions,
        expected_rows=None,
        log_joint=log_joint,
        trace=np.repeat(log_joint, 2, axis=1),
    )


def shuffled(draws: StateDraws, seed: int = 2) -> StateDraws:
    """The same draws, the states of each numbered at random."""
    rng = np.random.default_rng(seed)
    lead, n_states = draws.log_joint.shape, draws.emissions[0].shape[2]
    states, transitions = draws.states.copy(), draws.transitions.copy()
    emissions = [each.copy() for each in draws.emissions]
    for index in itertools.product(*map(range, lead)):
        order = rng.permutation(n_states)  # the new state k is the old order[k]
        states[index] = np.argsort(order)[draws.states[index]]
        transitions[index] = draws.transitions[index][np.r_[0, order + 1]][:, order]
        for new, old in zip(emissions, draws.emissions, strict=True):
            new[index] = old[index][order]
    return StateDraws(
        states=states,
        transitions=transitions,
        emissions=tuple(emissions),
        expected_rows=None,
        log_joint=draws.log_joint,
        trace=draws.trace,
    )


def test_alignment_undoes_any_numbering() -> None:
    plain = some_draws()
    mixed = shuffled(plain)
    assert (mixed.states != plain.states).mean() > 0.3  # else there is nothing to undo
    aligned = align_states(mixed)
    by_size = np.argsort(-np.bincount(plain.states.ravel()))
    np.testing.assert_array_equal(aligned.states, np.argsort(by_size)[plain.states])
    np.testing.assert_array_equal(aligned.transitions[:, :, 0], plain.transitions[:, :, 0][..., by_size])
    np.testing.assert_array_equal(
        aligned.transitions[:, :, 1:], plain.transitions[:, :, 1:][:, :, by_size][..., by_size]
    )
    for each, truth in zip(aligned.emissions, plain.emissions, strict=True):
        np.testing.assert_array_equal(each, truth[:, :, by_size])


def test_total_variation_is_half_the_sum_of_differences() -> None:
    emissions = [np.array([[[0.5, 0.5], [1.0, 0.0]]]), np.array([[[0.2, 0.8], [0.2, 0.8]]])]
    reference = [np.array([[1.0, 0.0]]), np.array([[0.2, 0.8]])]
    np.testing.assert_allclose(total_variation(emissions, reference), [[[0.25, 0.0]]])


def test_the_most_probable_path_of_a_known_chain_is_found() -> None:
    """All paths of an inhomogeneous chain of 3 states over 5 steps, enumerated."""
    rng = np.random.default_rng(3)
    start, steps = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), (4, 3))
    paths = np.array(list(itertools.product(range(3), repeat=5)))
    probability = start[paths[:, 0]]
    for step in range(4):
        probability = probability * steps[step, paths[:, step], paths[:, step + 1]]
    drawn = paths[rng.choice(len(paths), 400_000, p=probability)]
    path = most_probable_path(drawn[:, None, :], 3)
    np.testing.assert_array_equal(path[0], paths[np.argmax(probability)])
    marginal = np.array([np.bincount(drawn[:, step]).argmax() for step in range(5)])
    assert probability[(paths == marginal).all(axis=1)] <= probability.max()


def test_a_path_never_takes_a_step_that_no_draw_took() -> None:
    """The likeliest state of each step by itself would give (0, 0), which is impossible."""
    drawn = np.array([[0, 1]] * 3 + [[1, 0]] * 2 + [[2, 0]] * 2)[:, None, :]
    assert most_probable_path(drawn, 3)[0].tolist() == [0, 1]


def test_restarts_that_agree_are_kept_and_a_poorer_one_is_named() -> None:
    plain = some_draws(n_draws=100)
    diagnostics = diagnose(plain)
    assert diagnostics.kept == (0, 1, 2)
    assert diagnostics.largest_r_hat < 1.1
    assert not any("poorer" in line for line in diagnostics.lines)
    log_joint = plain.log_joint.copy()
    log_joint[1] -= 50.0
    states = plain.states
    poor = StateDraws(
        states=states,
        transitions=plain.transitions,
        emissions=plain.emissions,
        expected_rows=None,
        log_joint=log_joint,
        trace=plain.trace,
    )
    diagnostics = diagnose(poor)
    assert (diagnostics.kept, diagnostics.poorer) == ((0, 2), (1,))
    assert diagnostics.lines[0].startswith("restart 2 is in a poorer mode, and its draws do not count")


def test_restarts_that_disagree_are_said_not_to_be_relied_on() -> None:
    plain = some_draws(n_draws=100)
    further = np.random.default_rng(4).normal(size=plain.log_joint.shape)
    assert diagnose(plain, {"score": further}).r_hat["score"] < 1.1
    diagnostics = diagnose(plain, {"score": further + 3.0 * np.arange(3)[:, None]})
    assert diagnostics.r_hat["score"] > 1.5
    assert any("do not rely" in line for line in diagnostics.lines)


def test_the_entropy_of_shares_is_theirs() -> None:
    draws = some_draws(n_restarts=1, n_draws=2)
    share = np.bincount(draws.states[0, 0].ravel(), minlength=4) / 90
    assert state_entropy(draws)[0, 1] == pytest.approx(-(share * np.log(share)).sum())
    mixed = shuffled(draws)
    np.testing.assert_allclose(state_entropy(mixed), state_entropy(draws))


def test_numbers_that_never_vary_are_not_judged() -> None:
    draws = some_draws(n_states=1)
    assert set(diagnose(draws).r_hat) == {"log_joint"}


def test_the_most_probable_path_is_no_path_of_most_probable_beginnings() -> None:
    """Of (0, 0), (0, 1) and (1, 1) with shares 0.3, 0.3 and 0.4 it is the last, though most begin with 0."""
    drawn = np.array([[0, 0]] * 3 + [[0, 1]] * 3 + [[1, 1]] * 4)[:, None]
    assert most_probable_path(drawn, 2).tolist() == [[1, 1]]
