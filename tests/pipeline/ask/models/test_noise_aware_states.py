"""Sweeps of the noise-aware sampler over data of the prior leave parameters to the prior.

Parameters are drawn from the prior, and released counts given them: then parameters come from their posterior
given these counts, and any number of right sweeps keeps them there. Over many restarts, each with data of its
own, they are the prior's. A wrong term in any step leads away from it.

Sums over categories, cells and states are those of single log emissions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import beta, expon, kstest

from suffice.pipeline.ask.models.chain_tables import CountsOverTime
from suffice.pipeline.ask.models.noise_aware_states import CellEmissions, noise_aware_draws
from suffice.pipeline.ask.models.noisy_counts import log_emission
from suffice.pipeline.ask.models.state_draws import StateDraws, StatePriors
from suffice.pipeline.terms.statistics.simulated_sums import discrete_laplace

if TYPE_CHECKING:
    from suffice.typing import Floats


RESTARTS, SWEEPS, SCALE = 6000, 12, 3.0
PRIORS = StatePriors(transitions=0.7, emissions=0.6, rate=0.1)
SIZES, TIMES, STATES = (3, 2), 3, 2


def from_the_prior(rng: np.random.Generator) -> tuple[StateDraws, list[CountsOverTime]]:
    """Draw parameters, states and released counts; the last cell is not observed."""
    theta = [rng.dirichlet([PRIORS.emissions] * size, (RESTARTS, STATES)) for size in SIZES]
    theta = [np.maximum(each, 1e-290) for each in theta]
    transitions = rng.dirichlet([PRIORS.transitions] * STATES, (RESTARTS, STATES + 1))
    rows = rng.exponential(1.0 / PRIORS.rate, (RESTARTS, TIMES))
    states = np.zeros((RESTARTS, TIMES), dtype=np.int64)
    restart = np.arange(RESTARTS)
    before = np.zeros(RESTARTS, dtype=np.int64)
    for time in range(TIMES):
        states[:, time] = rng.random(RESTARTS) < transitions[restart, before, 1]
        before = states[:, time] + 1
    counts = []
    for each in theta:
        exact = rng.poisson(rows[..., None] * each[restart[:, None], states])
        counts.append(exact + discrete_laplace(SCALE, exact.shape, rng))
    observed = np.arange(TIMES)[None] < TIMES - 1
    tables = [
        CountsOverTime(
            counts=tuple(each[number][None] for each in counts),
            is_observed=observed,
            scales=(SCALE,) * len(SIZES),
        )
        for number in range(RESTARTS)
    ]
    start = StateDraws(
        states=states[:, None, None].astype(np.int8),
        transitions=np.maximum(transitions, 1e-290)[:, None],
        emissions=tuple(each[:, None] for each in theta),
        expected_rows=rows[:, None, None],
        log_joint=np.zeros((RESTARTS, 1)),
        trace=np.zeros((RESTARTS, 1)),
    )
    return start, tables


def p_values(priors: StatePriors) -> tuple[Floats, Floats, Floats]:
    """Of lambda, transitions and theta after sweeps of some priors, by Kolmogorov and Smirnov."""
    rng = np.random.default_rng()
    start, tables = from_the_prior(rng)
    drawn = noise_aware_draws(
        tables, n_states=STATES, n_sweeps=SWEEPS, n_draws=1, priors=priors, rng=rng, start=start
    )
    assert drawn.expected_rows is not None
    a, b = PRIORS.transitions, PRIORS.emissions
    of_rows = expon(scale=1.0 / PRIORS.rate).cdf
    rows = [kstest(drawn.expected_rows[:, 0, 0, time], of_rows).pvalue for time in range(TIMES)]
    steps = [kstest(drawn.transitions[:, 0, row, 0], beta(a, a).cdf).pvalue for row in range(STATES + 1)]
    theta = []
    for size, each in zip(SIZES, drawn.emissions, strict=True):
        law = beta(b, (size - 1) * b).cdf
        theta += [kstest(each[:, 0, state, size - 1], law).pvalue for state in range(STATES)]
    return np.array(rows), np.array(steps), np.array(theta)


@pytest.mark.slow
def test_sweeps_keep_the_prior() -> None:
    """At a false-alarm rate of 1e-7 over all numbers.

    The control believes in other priors. Roots of half the nats of its least p-values were 7.0 to 7.7 in
    three repetitions, and 14.6 or more for lambda; they scatter by half at most, and 3.1 is enough.
    """
    levels = np.concatenate(p_values(PRIORS))
    assert levels.min() > 1e-7 / len(levels)
    for part in p_values(StatePriors(transitions=0.4, emissions=1.0, rate=0.17)):
        assert part.min() < 1e-7 / len(levels)


def test_log_joint_is_the_density_of_what_was_drawn() -> None:
    """Emissions, expected rows of observed cells, states, and the priors as densities of log odds."""
    rng = np.random.default_rng(3)
    _, tables = from_the_prior(rng)
    drawn = noise_aware_draws(tables[:5], n_states=STATES, n_sweeps=8, n_draws=2, priors=PRIORS, rng=rng)
    assert drawn.expected_rows is not None
    for restart, table in enumerate(tables[:5]):
        for draw in range(2):
            transitions = drawn.transitions[restart, draw]
            rows, states = drawn.expected_rows[restart, draw, 0], drawn.states[restart, draw, 0].astype(int)
            wanted = _log_odds_density(transitions, PRIORS.transitions)
            for time, state in enumerate(states):
                wanted += np.log(transitions[states[time - 1] + 1 if time else 0, state])
            for time in range(TIMES - 1):
                wanted += np.log(PRIORS.rate) - PRIORS.rate * rows[time]
            for counts, each in zip(table.counts, drawn.emissions, strict=True):
                theta = each[restart, draw]
                wanted += _log_odds_density(theta, PRIORS.emissions)
                for time in range(TIMES - 1):
                    expected = rows[time] * theta[states[time]]
                    wanted += log_emission(counts[0, time], expected, SCALE).sum()
            assert drawn.log_joint[restart, draw] == pytest.approx(wanted, abs=1e-3)


def _log_odds_density(rows: Floats, parameter: float) -> float:
    size = rows.shape[-1]
    constant = gammaln(size * parameter) - size * gammaln(parameter)
    return float(len(rows) * constant + parameter * np.log(rows).sum())


@pytest.mark.parametrize("scales", [(5.0, 5.0), (2.0, 0.4), (3.0, 0.0), (0.0, 0.0)])
def test_sums_in_all_three_ways(scales: tuple[float, float]) -> None:
    """Two restarts with tables of their own; one cell each is not observed, and one has nothing above 0."""
    rng = np.random.default_rng(7)
    n_states, shape, sizes = 3, (2, 4), (3, 2)
    tables = []
    for _ in range(2):
        counts = [
            rng.integers(-6 if scale else 0, 30, (*shape, size))
            for scale, size in zip(scales, sizes, strict=True)
        ]
        for each, scale in zip(counts, scales, strict=True):
            each[0, 1] = -2 if scale else 0
        observed = np.ones(shape, dtype=bool)
        observed[1, rng.integers(4)] = False
        tables.append(CountsOverTime(counts=tuple(counts), is_observed=observed, scales=scales))
    theta = np.concatenate([rng.dirichlet(np.ones(size), (2, n_states)) for size in sizes], axis=-1)
    rows = rng.gamma(5.0, 4.0, (2, 8))
    states = rng.integers(n_states, size=(2, 8))
    terms = np.zeros((2, 8, n_states, 5))
    for restart, table in enumerate(tables):
        released = np.concatenate([counts.reshape(8, -1) for counts in table.counts], axis=1)
        for column, scale in enumerate(np.repeat(scales, sizes)):
            expected = rows[restart][:, None] * theta[restart, :, column]
            terms[restart, :, :, column] = log_emission(released[:, column, None], expected, float(scale))
        terms[restart, ~table.is_observed.ravel()] = 0.0
    emissions = CellEmissions.of(tables, n_states)
    assert np.allclose(emissions.by_state(theta, rows), terms.sum(axis=-1), atol=1e-3)
    chosen = np.take_along_axis(terms, states[..., None, None], axis=2)[:, :, 0]
    assert np.allclose(emissions.by_cell(theta, states, rows), chosen.sum(axis=-1), atol=1e-3)
    # By category only what depends on theta is right: differences between two of them.
    other = np.concatenate([rng.dirichlet(np.ones(size), (2, n_states)) for size in sizes], axis=-1)
    difference = emissions.by_category(other, states, rows) - emissions.by_category(theta, states, rows)
    wanted = np.zeros_like(difference)
    for restart, cell in np.ndindex(2, 8):
        if not tables[restart].is_observed.ravel()[cell]:
            continue
        state = states[restart, cell]
        for column, scale in enumerate(np.repeat(scales, sizes)):
            y = emissions.released[restart, cell, column]
            now, then = (rows[restart, cell] * each[restart, state, column] for each in (theta, other))
            wanted[restart, state, column] += log_emission(y, then, scale) - log_emission(y, now, scale)
    assert np.allclose(difference, wanted, atol=1e-3)


def test_exact_counts_are_drawn_where_something_was_released() -> None:
    rng = np.random.default_rng()
    table = CountsOverTime(
        counts=(np.array([[[40, -9], [7, 3]]]), np.array([[[30, 5], [1, 2]]])),
        is_observed=np.array([[True, False]]),
        scales=(2.0, 0.0),
    )
    emissions = CellEmissions.of([table] * 500, 1)
    theta = np.tile([0.6, 0.4, 0.5, 0.5], (500, 1, 1))
    drawn = emissions.draw_latent_counts(theta, np.zeros((500, 2), dtype=int), np.full((500, 2), 50.0), rng)
    assert np.all(drawn[:, 1] == 0)
    assert np.all(drawn[:, 0, 2:] == [30, 5])
    # Of -9 the exact count is Poisson(20 q), q = exp(-1/2): within 6 errors, 2e-9.
    assert abs(drawn[:, 0, 1].mean() - 20.0 * np.exp(-0.5)) < 6.0 * np.sqrt(12.2 / 500)
    assert 25 < drawn[:, 0, 0].mean() < 45
