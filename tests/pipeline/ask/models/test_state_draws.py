"""States given parameters: known answers, all paths of a small model, draws of them.

One sweep over single states leaves their exact law as it is, transitions summed out.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import binom, chi2

from suffice.pipeline.ask.models.noisy_counts import log_emission
from suffice.pipeline.ask.models.state_draws import (
    count_transitions,
    draw_single_sites,
    draw_states,
    log_evidence,
    state_probability,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.typing import Floats


THETA = np.array([[0.8, 0.2], [0.3, 0.7]])
TRANSITIONS = np.array([[[0.5, 0.5], [0.9, 0.1], [0.2, 0.8]]])
RELEASED = np.array([[9, 3], [4, 8], [1, 12]])
SCALE, ROWS, N = 2.0, 10.0, 12


def noise_aware() -> Floats:
    emissions: Floats = log_emission(RELEASED[:, None, :], ROWS * THETA, SCALE).sum(axis=-1)
    return emissions[None, None]


def plug_in() -> Floats:
    emissions: Floats = RELEASED @ np.log(THETA).T
    return emissions[None, None]


def multinomial() -> Floats:
    """Of 12 rows, a public number."""
    n = np.arange(N + 1)
    noise = -(np.abs(RELEASED[:, :1] - n) + np.abs(RELEASED[:, 1:] - (N - n))) / SCALE
    emissions: Floats = logsumexp(noise[:, None] + binom.logpmf(n, N, THETA[:, :1]), axis=-1)
    return emissions[None, None]


@pytest.mark.parametrize(
    ("emissions", "wanted"),
    [
        (noise_aware, [0.377775, 0.946465, 0.993938]),
        (plug_in, [0.047780, 0.997597, 1.000000]),
        (multinomial, [0.241036, 0.976450, 0.998659]),
    ],
)
def test_known_answers(emissions: Callable[[], Floats], wanted: list[float]) -> None:
    log_emissions = emissions()
    assert state_probability(log_emissions, TRANSITIONS)[0, 0, :, 1] == pytest.approx(wanted, abs=5.1e-7)
    # Draws, within what 40,000 of them leave with chance 1e-8 (Hoeffding).
    many = np.broadcast_to(log_emissions, (1, 40_000, 3, 2))
    share = draw_states(many, TRANSITIONS, np.random.default_rng()).mean(axis=(0, 1))
    assert np.max(np.abs(share - wanted)) < np.sqrt(np.log(6e8) / 80_000)


def test_the_evidence() -> None:
    assert log_evidence(noise_aware(), TRANSITIONS)[0, 0] == pytest.approx(-16.749478, abs=5e-7)


def small_model(rng: np.random.Generator) -> tuple[Floats, Floats, dict[tuple[int, ...], float]]:
    """Three states over five times, the third one not observed, and the log joint of each path."""
    log_emissions = rng.normal(size=(1, 1, 5, 3))
    log_emissions[..., 2, :] = 0.0
    transitions = rng.dirichlet(np.ones(3), size=(1, 4))
    joint = {}
    for path in itertools.product(range(3), repeat=5):
        before = (-1, *path[:-1])
        joint[path] = sum(
            float(np.log(transitions[0, a + 1, z]) + log_emissions[0, 0, t, z])
            for t, (a, z) in enumerate(zip(before, path, strict=True))
        )
    return log_emissions, transitions, joint


def test_against_all_paths() -> None:
    log_emissions, transitions, joint = small_model(np.random.default_rng(7))
    paths, log_joint = np.array(list(joint)), np.array(list(joint.values()))
    total = logsumexp(log_joint)
    assert log_evidence(log_emissions, transitions)[0, 0] == pytest.approx(total)
    chance = np.exp(log_joint - total)
    marginal = [[chance[paths[:, time] == state].sum() for state in range(3)] for time in range(5)]
    assert np.allclose(state_probability(log_emissions, transitions)[0, 0], marginal)


def test_restarts_and_chains_go_their_own_ways() -> None:
    """Two restarts with transitions of their own, three chains: each as if it were alone."""
    rng = np.random.default_rng(7)
    log_emissions, transitions = rng.normal(size=(2, 3, 4, 3)), rng.dirichlet(np.ones(3), size=(2, 4))
    together = state_probability(log_emissions, transitions)
    evidence = log_evidence(log_emissions, transitions)
    for restart, chain in itertools.product(range(2), range(3)):
        alone = log_emissions[restart : restart + 1, chain : chain + 1], transitions[restart : restart + 1]
        assert np.allclose(together[restart, chain], state_probability(*alone)[0, 0])
        assert evidence[restart, chain] == pytest.approx(log_evidence(*alone)[0, 0])
    certain = np.where(rng.permutation(3)[:, None] == np.arange(3), 0.0, -800.0) * np.ones((2, 3, 4, 1, 1))
    states = draw_states(certain[..., 0, :], transitions, rng)
    assert np.all(states == certain[..., 0, :].argmax(axis=-1))


ALPHA, CHAINS, TIMES, STATES = 0.3, 2, 3, 2
PATHS = np.array(list(itertools.product(range(STATES), repeat=CHAINS * TIMES))).reshape(-1, CHAINS, TIMES)
RESTARTS = 100_000
THRESHOLD = float(chi2.isf(1e-7, len(PATHS) - 1))
"""Each path is expected 26 times or more; the control was at 6,000 in four runs, where 140 is enough."""
LOG_EMISSIONS = np.log(np.array([[[1, 2], [3, 1], [1, 1]], [[1, 1], [1, 2], [2, 1]]]))


def law(alpha: float) -> Floats:
    steps = count_transitions(PATHS, STATES)
    of_rows = gammaln(alpha + steps).sum(axis=2) - gammaln(STATES * alpha + steps.sum(axis=2))
    cells = np.indices((CHAINS, TIMES))
    log_joint = of_rows.sum(axis=1) + LOG_EMISSIONS[cells[0], cells[1], PATHS].sum(axis=(1, 2))
    chances: Floats = np.exp(log_joint - logsumexp(log_joint))
    return chances


def distance_after_a_sweep(alpha: float) -> float:
    """Chi-square of paths drawn from the exact law, after one sweep of a prior."""
    rng = np.random.default_rng()
    exact = law(ALPHA)
    states = PATHS[rng.choice(len(PATHS), RESTARTS, p=exact)].astype(np.int8)
    emissions = np.broadcast_to(LOG_EMISSIONS, (RESTARTS, *LOG_EMISSIONS.shape))
    drawn = draw_single_sites(states, emissions, alpha, rng)
    places = drawn.reshape(RESTARTS, -1) @ (2 ** np.arange(CHAINS * TIMES)[::-1])
    visits = np.bincount(places, minlength=len(PATHS))
    return float(np.sum((visits - RESTARTS * exact) ** 2 / (RESTARTS * exact)))


def test_a_sweep_leaves_the_exact_law_as_it_is() -> None:
    assert distance_after_a_sweep(ALPHA) < THRESHOLD
    # The control: a sweep of another prior.
    assert distance_after_a_sweep(0.5) > THRESHOLD
