"""Mixtures of conjugate distributions: moments, draws, and in which order states are taken."""

from __future__ import annotations

import numpy as np
import pytest

from suffice.pipeline.math.distributions.composite import ConjugateMixture, states_in_turn
from suffice.pipeline.math.distributions.normal import NormalDistribution

LOCATIONS = np.array([[0.0, 10.0], [2.0, 14.0], [4.0, 18.0]])
"""Of three states in two cells; widths are next to nothing, so that draws tell which state they are of."""


def mixture(*, in_turn: bool) -> ConjugateMixture:
    conditional = NormalDistribution(loc=LOCATIONS.ravel(), scale=np.full(6, 1e-6))
    return ConjugateMixture(conditional=conditional, n_states=3, n_cells=2, diagnostics={}, in_turn=in_turn)


def test_moments_are_those_of_the_mixture() -> None:
    composite = mixture(in_turn=True)
    assert composite.mean("mean") == pytest.approx(LOCATIONS.mean(axis=0))
    assert composite.sd("mean") == pytest.approx(LOCATIONS.std(axis=0))
    assert composite.parameters == ("mean",)
    assert composite.components == {}


def test_a_state_without_a_mean_leaves_the_mixture_none() -> None:
    conditional = NormalDistribution(loc=np.array([0.0, 1.0, np.inf, 3.0]), scale=np.ones(4))
    both = ConjugateMixture(conditional=conditional, n_states=2, n_cells=2, diagnostics={}, in_turn=True)
    assert both.mean("mean").tolist() == [np.inf, 2.0]
    assert both.sd("mean") == pytest.approx([np.inf, 2.0**0.5])


def test_no_state_comes_back_before_all_have_been_taken() -> None:
    states = states_in_turn(7, 30, np.random.default_rng(7))
    assert states.shape == (30,)
    for start in (0, 7, 14, 21):
        assert sorted(states[start : start + 7]) == list(range(7))
    assert len(set(states[28:].tolist())) == 2


def test_draws_in_turn_take_one_state_in_all_cells() -> None:
    drawn = mixture(in_turn=True).sample(8, np.random.default_rng(7))["mean"]
    assert drawn.shape == (8, 2)
    assert drawn[:, 1] == pytest.approx(10.0 + 2.0 * drawn[:, 0], abs=1e-4)
    assert np.sort(drawn[:3, 0]) == pytest.approx([0.0, 2.0, 4.0], abs=1e-4)


def test_draws_at_random_take_states_cell_by_cell() -> None:
    drawn = mixture(in_turn=False).sample(400, np.random.default_rng())["mean"]
    states = np.rint(drawn / [2.0, 4.0] - [0.0, 2.5]).astype(int)
    pairs = {tuple(pair) for pair in states.tolist()}
    # One of nine pairs stays out with a chance below 1e-19.
    assert pairs == {(first, second) for first in range(3) for second in range(3)}


def test_quantiles_are_those_of_the_draws() -> None:
    composite = mixture(in_turn=True)
    levels = (0.1, 0.5, 0.9)
    quantiles = composite.quantiles("mean", levels, 99, np.random.default_rng(1))
    drawn = composite.sample(99, np.random.default_rng(1))["mean"]
    assert quantiles == pytest.approx(np.quantile(drawn, levels, axis=0).T)
