"""Draws of states against their exact posterior: parameters integrated out for every path of a small model.

Two chains of three times have 64 paths of two states. Given a path transitions leave counts of steps, a
Dirichlet-multinomial each; the emissions of all cells in a state leave one integral over its theta, of a
product of integrals over each cell's lambda.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.special import betaln, gammaln, logsumexp
from scipy.stats import beta, kstest

from suffice.pipeline.ask.models.chain_tables import CountsOverTime
from suffice.pipeline.ask.models.noise_aware_states import noise_aware_draws
from suffice.pipeline.ask.models.noisy_counts import log_emission
from suffice.pipeline.ask.models.state_draws import (
    StatePriors,
    cell_totals,
    kept_sweeps,
    plug_in_draws,
    projected_counts,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.ask.models.state_draws import StateSampler
    from suffice.typing import Floats

PRIORS = StatePriors(transitions=0.7, emissions=1.5, rate=0.1)
RELEASED = np.array([[[9, 2], [3, 8], [1, 7]], [[12, -1], [5, 5], [2, 9]]])
MISSING = (1, 1)
PATHS = list(itertools.product(range(2), repeat=6))
RESTARTS = 2000
THRESHOLD = float(np.sqrt(np.log(2 * 64 / 1e-7) / (2 * RESTARTS)))
"""Of any path's share, by Hoeffding: 1e-7 over all paths, 6e-7 for the test with most comparisons."""


def table(scale: float, released: np.ndarray = RELEASED) -> CountsOverTime:
    observed = np.ones((2, 3), dtype=bool)
    observed[MISSING] = False
    return CountsOverTime(counts=(released,), is_observed=observed, scales=(scale,))


def posterior(evidence: Callable[[list[int]], float], alpha: float = PRIORS.transitions) -> Floats:
    """The chance of every path; `evidence` is of the observed cells of one state."""
    missing = MISSING[0] * 3 + MISSING[1]
    of_cells = {
        cells: evidence(list(cells))
        for size in range(6)
        for cells in itertools.combinations([cell for cell in range(6) if cell != missing], size)
    }
    log_joint = []
    for path in PATHS:
        steps = np.zeros((3, 2))
        for chain in (path[:3], path[3:]):
            for before, state in zip((-1, *chain[:-1]), chain, strict=True):
                steps[before + 1, state] += 1
        of_rows = gammaln(2 * alpha) - gammaln(2 * alpha + steps.sum(axis=1))
        total = of_rows.sum() + (gammaln(alpha + steps) - gammaln(alpha)).sum()
        for state in range(2):
            total += of_cells[tuple(cell for cell in range(6) if path[cell] == state and cell != missing)]
        log_joint.append(total)
    chance: Floats = np.exp(np.array(log_joint) - logsumexp(log_joint))
    return chance


def noise_aware_evidence(scale: float) -> Callable[[list[int]], float]:
    """Middles of equal steps in theta and in the root of lambda."""
    theta = (np.arange(400) + 0.5) / 400
    roots = (np.arange(240) + 0.5) * (10.0 / 240)
    rows = roots[:, None] ** 2
    weight = np.log(2.0 * PRIORS.rate * roots * 10.0 / 240) - PRIORS.rate * roots**2
    cells = []
    for first, second in RELEASED.reshape(6, 2):
        emission = log_emission(first, rows * theta, scale) + log_emission(second, rows * (1 - theta), scale)
        cells.append(logsumexp(emission + weight[:, None], axis=0))
    beta = PRIORS.emissions
    prior = (beta - 1) * np.log(theta * (1 - theta)) - betaln(beta, beta) - np.log(400)
    return lambda counts: float(logsumexp(prior + sum((cells[cell] for cell in counts), np.zeros(400))))


def multinomial_evidence(counts: np.ndarray) -> Callable[[list[int]], float]:
    beta, flat = PRIORS.emissions, counts.reshape(6, 2)

    def evidence(n_each: list[int]) -> float:
        first, second = flat[n_each].sum(axis=0)
        return float(betaln(beta + first, beta + second) - betaln(beta, beta))

    return evidence


def shares(states: np.ndarray) -> Floats:
    """Of each path among the last draws of all restarts."""
    places = states[:, -1].reshape(len(states), 6).astype(int) @ (2 ** np.arange(5, -1, -1))
    return np.bincount(places, minlength=64) / len(states)


def noise_aware(scale: float, released: np.ndarray = RELEASED, sweeps: int = 40) -> Floats:
    draws = noise_aware_draws(
        [table(scale, released)] * RESTARTS,
        n_states=2,
        n_sweeps=sweeps,
        n_draws=1,
        priors=PRIORS,
        rng=np.random.default_rng(),
    )
    return shares(draws.states)


def plug_in(released: np.ndarray, alpha: float = PRIORS.transitions, **options: Any) -> Floats:
    draws = plug_in_draws(
        table(2.0, released),
        n_states=2,
        n_restarts=RESTARTS,
        n_sweeps=40,
        n_draws=1,
        priors=StatePriors(transitions=alpha, emissions=PRIORS.emissions, rate=PRIORS.rate),
        rng=np.random.default_rng(),
        **options,
    )
    return shares(draws.states)


@pytest.mark.slow
def test_noise_aware_states() -> None:
    wanted = posterior(noise_aware_evidence(2.0))
    assert np.max(np.abs(noise_aware(2.0) - wanted)) < THRESHOLD
    # The control: a sampler that believes in three times the noise. One path is 0.21 less probable there, so
    # that it passes with a chance below 1e-30; with a third of the noise, 0.103, once in 400 runs.
    assert np.max(np.abs(noise_aware(6.0) - wanted)) > THRESHOLD


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.0, 0.05])
def test_without_noise_all_methods_agree(scale: float) -> None:
    """Poisson counts are multinomial given their number, which says nothing of theta."""
    exact = np.maximum(RELEASED, 0)
    wanted = posterior(multinomial_evidence(exact))
    assert np.max(np.abs(noise_aware(scale, exact) - wanted)) < THRESHOLD


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["ffbs", "single-site"])
def test_plug_in_states(sampler: str) -> None:
    exact = np.maximum(RELEASED, 0)
    wanted = posterior(multinomial_evidence(exact))
    for project in ("clip", "none"):
        states = plug_in(exact, project=project, sampler=sampler)
        assert np.max(np.abs(states - wanted)) < THRESHOLD
    # The control: rows of transitions that are more alike. It passes with a chance of 8e-9 (binomial).
    states = plug_in(exact, alpha=20.0, project="clip", sampler=sampler)
    assert np.max(np.abs(states - wanted)) > THRESHOLD
    assert np.max(np.abs(states - posterior(multinomial_evidence(exact), alpha=20.0))) < THRESHOLD


def test_projections() -> None:
    """Clipped; left as they are; or of the average total, here (11 + 14) / 2 where variances are the same."""
    counts = (np.array([[[12, -1]]]), np.array([[[10, 4]]]))
    two = CountsOverTime(counts=counts, is_observed=np.array([[True]]), scales=(2.0, 2.0))
    assert projected_counts(two, "clip").tolist() == [[12.0, 0.0, 10.0, 4.0]]
    assert projected_counts(two, "none").tolist() == [[12.0, -1.0, 10.0, 4.0]]
    assert np.allclose(projected_counts(two, "simplex"), [[12.5, 0.0, 9.25, 3.25]])
    unseen = CountsOverTime(counts=counts, is_observed=np.array([[False]]), scales=(2.0, 2.0))
    assert not projected_counts(unseen, "clip").any()


def test_totals_of_more_categories_count_for_less() -> None:
    """They have more noise: of totals 10 of three categories and 20 of two the average is 16."""
    released = np.array([[4, 3, 3, 12, 8]])
    starts = np.array([0, 3])
    assert cell_totals(released, starts, np.full(5, 2.0)) == pytest.approx([16.0])
    # Counts without noise decide.
    assert cell_totals(released, starts, np.array([2.0] * 3 + [0.0] * 2)) == pytest.approx([20.0], abs=1e-5)


@pytest.mark.parametrize("sampler", ["ffbs", "single-site"])
def test_without_observations_parameters_are_those_of_the_prior(sampler: StateSampler) -> None:
    """By Kolmogorov and Smirnov: 2,000 draws are 0.069 off at a p-value of 1e-8.

    The controls are 0.22 off the prior: by 13 standard errors of a share of 2,000 draws more.
    """
    counts = np.zeros((1, 2, 2), dtype=int)
    unseen = CountsOverTime(counts=(counts,), is_observed=np.zeros((1, 2), dtype=bool), scales=(2.0,))
    priors = StatePriors(transitions=0.5, emissions=0.4, rate=0.1)
    draws = plug_in_draws(
        unseen,
        project="none",
        sampler=sampler,
        n_states=2,
        n_restarts=RESTARTS,
        n_sweeps=20,
        n_draws=1,
        priors=priors,
        rng=np.random.default_rng(),
    )
    for state in range(2):
        theta = draws.emissions[0][:, 0, state, 0]
        assert kstest(theta, beta(0.4, 0.4).cdf).pvalue > 1e-8
        assert kstest(theta, beta(2.0, 2.0).cdf).pvalue < 1e-8  # the control
        steps = draws.transitions[:, 0, 1 + state, 0]
        assert kstest(steps, beta(0.5, 0.5).cdf).pvalue > 1e-8
        assert kstest(steps, beta(2.5, 2.5).cdf).pvalue < 1e-8


def test_what_is_kept() -> None:
    assert kept_sweeps(10, 100) == [5, 6, 7, 8, 9]
    assert kept_sweeps(200, 4) == [124, 149, 174, 199]
    assert kept_sweeps(6, 2) == [4, 5]
    assert kept_sweeps(1, 5) == [0]
    told: list[int] = []
    draws = noise_aware_draws(
        [table(2.0)] * 2,
        n_states=3,
        n_sweeps=6,
        n_draws=2,
        priors=PRIORS,
        rng=np.random.default_rng(7),
        progress=told.append,
    )
    assert told == [1, 2, 3, 4, 5, 6]
    assert draws.states.shape == (2, 2, 2, 3)
    assert draws.transitions.shape == (2, 2, 4, 3)
    assert [each.shape for each in draws.emissions] == [(2, 2, 3, 2)]
    assert draws.expected_rows is not None
    assert draws.expected_rows.shape == (2, 2, 2, 3)
    assert draws.trace.shape == (2, 6)
    assert np.array_equal(draws.log_joint, draws.trace[:, kept_sweeps(6, 2)])
    assert np.allclose(draws.transitions.sum(axis=-1), 1.0)
    assert np.allclose(draws.emissions[0].sum(axis=-1), 1.0)
