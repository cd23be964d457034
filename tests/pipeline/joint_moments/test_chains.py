"""Chains draw from the density that they are given, and diagnostics tell good ones from bad."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest

from suffice.pipeline.joint_moments.chains import effective_draws, sample_chains, split_r_hat
from suffice.pipeline.joint_moments.target import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray


def test_chains_draw_from_a_density_with_kinks() -> None:
    """Independent Laplace numbers of very different scales, guided by rounded gradients, in two cells."""
    scales = np.array([[1e-3, 4.0], [1.0, 1e3], [50.0, 0.2]])

    def target(x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        scale = np.repeat(scales, x.shape[1] // 2, axis=1)
        return -np.abs(x / scale).sum(axis=0), -np.tanh(x / scale / ROUNDING) / scale

    rng = np.random.default_rng()
    start = 2 * scales[:, :, None] * rng.standard_normal((3, 2, 64))
    kept = sample_chains(target, start, scales, 200, rng)
    assert kept.shape == (200, 3, 2, 64)
    draws = np.moveaxis(kept, 3, 1)
    assert split_r_hat(draws).max() < 1.02
    assert effective_draws(draws).min() > 2000
    for column, cell in itertools.product(range(3), range(2)):
        values = kept[:, column, cell] / scales[column, cell]
        for bound in (0.1, 0.7, 2.0):
            share, beyond = np.exp(-bound), np.abs(values) > bound
            # Whether a chain is in its tails changes more slowly than where it is: its own effective draws.
            room = 8 * np.sqrt(share * (1 - share) / effective_draws(beyond.astype(np.float64)))
            assert np.mean(beyond) == pytest.approx(share, abs=room)


def test_short_steps_lead_somewhere_else() -> None:
    """120 kinks allow short steps: 24 are worth 3,800 to 7,600 of 9,600 draws, 8 only 360 to 830.

    Each in 25 repetitions; 1,500 is ten standard deviations of its logarithm below the former's mean.
    """

    def target(x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return -np.abs(x).sum(axis=0), -np.tanh(x / ROUNDING)

    rng = np.random.default_rng()
    kept = sample_chains(target, rng.standard_normal((120, 1, 64)), np.ones((120, 1)), 150, rng)
    assert effective_draws(np.moveaxis(kept, 3, 1)).min() > 1500


def test_diagnostics_tell_good_chains_from_bad() -> None:
    """Every bound is eight standard deviations or more from what 60 repetitions gave on average."""
    rng, length, chains = np.random.default_rng(), 2000, 32
    independent = rng.standard_normal((length, chains))
    assert split_r_hat(independent) == pytest.approx(1, abs=0.002)
    assert effective_draws(independent) == pytest.approx(length * chains, rel=0.1)
    slow = np.empty((length, chains))
    slow[0] = independent[0]
    for row in range(1, length):
        slow[row] = 0.9 * slow[row - 1] + np.sqrt(0.19) * independent[row]
    # An autoregression of 0.9 is worth (1 - 0.9) / (1 + 0.9) of its draws.
    assert effective_draws(slow) == pytest.approx(length * chains / 19, rel=0.5)
    apart = independent + np.where(np.arange(chains) < chains // 2, 0.0, 3.0)
    assert split_r_hat(apart) > 1.5
    assert effective_draws(apart) < 100
    drifting = independent + np.linspace(0, 4, length)[:, None]
    assert split_r_hat(drifting) > 1.2
