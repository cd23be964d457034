"""Scores of held-out cells against integrals and sums written out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from suffice.pipeline.ask.models.chain_tables import CountsOverTime
from suffice.pipeline.ask.models.hidden_markov import (
    exact_log_likelihood,
    held_out_log_likelihood,
    log_mean_exp,
)
from suffice.pipeline.ask.models.noisy_counts import log_emission
from suffice.pipeline.ask.models.state_draws import StateDraws, StatePriors
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace

if TYPE_CHECKING:
    from suffice.typing import Floats

PRIORS = StatePriors(transitions=1.0, emissions=1.0, rate=1e-2)
SIZES, SHAPE = (4, 12, 2), (2, 3)
HELD_OUT = np.array([[False, True, False], [True, False, True]])


def draws_of(rng: np.random.Generator, n_draws: int = 2) -> StateDraws:
    return StateDraws(
        states=rng.integers(2, size=(1, n_draws, *SHAPE)).astype(np.int8),
        transitions=rng.dirichlet(np.ones(2), (1, n_draws, 3)),
        emissions=tuple(rng.dirichlet(np.full(size, 0.5), (1, n_draws, 2)) for size in SIZES),
        expected_rows=None,
        log_joint=np.zeros((1, n_draws)),
        trace=np.zeros((1, n_draws)),
    )


def chances(draws: StateDraws, draw: int, chain: int, time: int) -> Floats:
    """Of the cell's states given those drawn beside it."""
    states, steps = draws.states[0, draw, chain].astype(int), draws.transitions[0, draw]
    weights = steps[states[time - 1] + 1 if time else 0].copy()
    if time < 2:
        weights *= steps[1:, states[time + 1]]
    log_chances: Floats = np.log(weights / weights.sum())
    return log_chances


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scale", "rows"), [(0.5, 4), (1.0, 30), (5.0, 35), (50.0, 35), (5.0, 2000), (0.3, 1_000_000)]
)
def test_noisy_counts_with_expected_rows_integrated_out(scale: float, rows: int) -> None:
    rng = np.random.default_rng(rows)
    draws = draws_of(rng)
    exact = [rng.multinomial(rows, each[0, 0, 0], size=SHAPE) for each in draws.emissions]
    counts = tuple(each + discrete_laplace(scale, each.shape, rng) for each in exact)
    table = CountsOverTime(counts=counts, is_observed=np.ones(SHAPE, dtype=bool), scales=(scale,) * 3)
    score = held_out_log_likelihood(table, HELD_OUT, draws, PRIORS, restart=0, n_draws=10)
    # Much is known of a large cell's expected rows, and the density is narrow.
    start = np.sqrt(rows) - 10.0 if rows > 10_000 else 0.0
    end = np.sqrt(rows) + 10.0 if rows > 10_000 else 3.0 * np.sqrt(rows + 40.0 * scale)
    roots = np.linspace(start, end, 2001)[1:]
    weight = np.log(2.0 * PRIORS.rate * roots) - PRIORS.rate * roots**2
    n_compared = 0
    for draw in range(2):
        for place, (chain, time) in enumerate(np.argwhere(HELD_OUT)):
            total = chances(draws, draw, chain, time)
            for state in range(2):
                density = weight.copy()
                for each, of_feature in zip(counts, draws.emissions, strict=True):
                    expected = roots[:, None] ** 2 * of_feature[0, draw, state]
                    density += log_emission(each[chain, time], expected, scale).sum(axis=-1)
                highest = density.max()
                total[state] += highest + np.log(np.trapezoid(np.exp(density - highest), roots))
            wanted = np.logaddexp(*total)
            if wanted > -1000.0 - PRIORS.rate * rows:
                assert score[draw, place] == pytest.approx(wanted, abs=1e-2)
                n_compared += 1
            else:  # Tables of emissions are rough where all states are out of the question.
                assert score[draw, place] < -900.0 - PRIORS.rate * rows
    assert n_compared >= 2


def test_exact_counts() -> None:
    """Of single rows the chance of a row; held-out cells see the states on both of their sides."""
    rng = np.random.default_rng(7)
    draws = draws_of(rng)
    picked = [rng.integers(size, size=SHAPE) for size in SIZES]
    counts = tuple(np.eye(size, dtype=int)[each] for size, each in zip(SIZES, picked, strict=True))
    score = exact_log_likelihood(counts, HELD_OUT, draws, restart=0, n_draws=3)
    for draw in range(2):
        for place, (chain, time) in enumerate(np.argwhere(HELD_OUT)):
            total = chances(draws, draw, chain, time)
            for each, of_feature in zip(picked, draws.emissions, strict=True):
                total = total + np.log(of_feature[0, draw, :, each[chain, time]])
            assert score[draw, place] == pytest.approx(np.logaddexp(*total))
    assert np.allclose(log_mean_exp(score), np.log(np.exp(score).mean(axis=0)))
    from_start = exact_log_likelihood(counts, HELD_OUT, draws, restart=0, n_draws=1)
    assert from_start.shape == (1, 3)
