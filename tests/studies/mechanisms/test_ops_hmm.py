"""One posterior sample of a hidden Markov model: both costs, and the law of its chain on a small case."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats
from scipy.special import betainc, betaln

from studies.mechanisms.ops_hmm import Sampler, ops_change, ops_hmm
from suffice.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

SAMPLERS: tuple[Sampler, ...] = ("ffbs", "single-site")


def _logs(rng: np.random.Generator) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """Counts of 4 chains of 15 cells of 200 rows in two features; two states that stay."""
    moves = rng.random((4, 15)) < 0.2
    states = np.cumsum(moves, axis=1) % 2
    first = np.array([[0.7, 0.1, 0.1, 0.05, 0.05], [0.05, 0.05, 0.1, 0.3, 0.5]])
    second = np.array([[0.9, 0.1], [0.3, 0.7]])
    return [rng.multinomial(200, each[states]) for each in (first, second)], states


def test_both_costs_stand_in_every_output() -> None:
    rng = np.random.default_rng(1)
    counts, _ = _logs(rng)
    observed = np.ones((4, 15), dtype=bool)
    change = math.log(5 * 9 + 1) + math.log(2 * 9 + 1)
    assert ops_change((5, 2), 10) == pytest.approx(change)
    assert ops_change((10, 60, 2, 2, 2), 10) == pytest.approx(19.64, abs=0.005)
    assert ops_change((10, 60, 2, 2, 2), 100) == pytest.approx(31.47, abs=0.005)
    sample = ops_hmm(counts, observed, n_states=2, epsilon=1.0, n_sweeps=200, rng=rng)
    assert sample.temperature == pytest.approx(2 * change)
    assert sample.nominal_epsilon == pytest.approx(1.0)
    assert sample.unconverged_epsilon == pytest.approx(400.0)
    assert sample.label == "not a release"
    for text in (str(sample), sample.csv()):
        assert "epsilon 1 only if the chain has converged" in text
        assert "epsilon 400 for 200 sweeps" in text
    # Without a temperature there is less to pay than was asked for, and more rounds are more queries.
    free = ops_hmm(counts, observed, n_states=2, epsilon=100.0, n_sweeps=2, rounds=3, rng=rng)
    assert free.temperature == 1.0
    assert free.nominal_epsilon == pytest.approx(2 * change)
    assert free.unconverged_epsilon == pytest.approx(2 * 4 * 2 * change)
    one_more = ops_hmm(
        counts, observed, n_states=2, epsilon=1.0, n_sweeps=1, relation="add_or_remove_one", rng=rng
    )
    assert one_more.temperature == pytest.approx(change)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_states_of_clear_logs_are_found(sampler: Sampler) -> None:
    rng = np.random.default_rng(2)
    counts, states = _logs(rng)
    observed = rng.random(states.shape) < 0.9
    sample = ops_hmm(
        counts,
        observed,
        n_states=2,
        epsilon=5.0,
        sampler=sampler,
        n_sweeps=40,
        n_draws=10,
        n_restarts=3,
        rng=rng,
    )
    draws = sample.draws
    assert draws.states.shape == (3, 10, 4, 15)
    assert draws.transitions.shape == (3, 10, 3, 2)
    assert [each.shape for each in draws.emissions] == [(3, 10, 2, 5), (3, 10, 2, 2)]
    for each, n_categories in zip(draws.emissions, (5, 2), strict=True):
        assert each.min() >= 1.0 / (10 * n_categories) - 1e-12
        np.testing.assert_allclose(each.sum(axis=-1), 1.0, rtol=1e-9)
    agreement = (draws.states[:, -1] == states)[:, observed].mean(axis=-1)
    assert np.maximum(agreement, 1 - agreement).min() > 0.95


def _log_path_chances(ones: NDArray[np.int64], rows: int, tempered: float, least: float) -> dict[str, float]:
    """The law of the states of one chain of one feature of two categories, everything else integrated."""
    log_chances = {}
    for path in itertools.product((0, 1), repeat=len(ones)):
        log_chance = math.log(0.5)  # the start: Dirichlet(1, 1)
        for state in (0, 1):
            steps = [sum(1 for pair in itertools.pairwise(path) if pair == (state, to)) for to in (0, 1)]
            log_chance += float(betaln(1 + steps[0], 1 + steps[1]))
            here = np.array(path) == state
            first = 1 + ones[here].sum() / tempered
            second = 1 + (rows * here.sum() - ones[here].sum()) / tempered
            mass = betainc(first, second, 1 - least) - betainc(first, second, least)
            log_chance += float(betaln(first, second) + np.log(mass))
        log_chances["".join(map(str, path))] = log_chance
    return log_chances


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_chain_has_the_tempered_truncated_posterior_as_its_law(sampler: Sampler) -> None:
    """1,500 restarts of 20 sweeps: 8 paths by chi-square below the 1e-7 quantile; T halved is caught."""
    ones, rows, size = np.array([3, 17, 2]), 20, 1500
    counts = np.stack([ones, rows - ones], axis=-1)[None]
    sample = ops_hmm(
        [counts],
        np.ones((1, 3), dtype=bool),
        n_states=2,
        epsilon=2.0,
        multiplier=5.0,
        sampler=sampler,
        n_sweeps=20,
        n_restarts=size,
        rng=np.random.default_rng(3),
    )
    assert sample.temperature == pytest.approx(math.log(9))
    paths = ["".join(map(str, path)) for path in sample.draws.states[:, -1, 0].tolist()]

    def statistic(tempered: float) -> float:
        law = _log_path_chances(ones, rows, tempered, 0.1)
        weights = np.exp(np.array(list(law.values())))
        expected = size * weights / weights.sum()
        seen = np.array([paths.count(path) for path in law])
        return float(((seen - expected) ** 2 / expected).sum())

    limit = stats.chi2.isf(1e-7, 7)
    assert statistic(sample.temperature) < limit
    assert statistic(sample.temperature / 2) > limit


def test_what_has_no_meaning_is_refused() -> None:
    rng = np.random.default_rng(4)
    counts = np.ones((1, 3, 2), dtype=np.int64)
    observed = np.ones((1, 3), dtype=bool)
    with pytest.raises(UsageError, match="multiplier"):
        ops_hmm([counts], observed, n_states=2, epsilon=1.0, multiplier=1.0, rng=rng)
    with pytest.raises(UsageError, match="counts_0"):
        ops_hmm([-counts], observed, n_states=2, epsilon=1.0, rng=rng)
    with pytest.raises(UsageError, match="at least 1"):
        ops_hmm([counts], observed, n_states=0, epsilon=1.0, rng=rng)
    with pytest.raises(UsageError, match="epsilon"):
        ops_hmm([counts], observed, n_states=2, epsilon=math.inf, rng=rng)
