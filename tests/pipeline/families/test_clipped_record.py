"""A clipped gamma variable on a lattice: its mean kept, its variance nearly, against quadrature by scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from suffice.pipeline.families.shared.clipped_record import clipped_gamma, steps_of_gamma

UPPER = 6.0
SHARES = (0.9, 0.5, 0.2, 0.05)


@pytest.mark.parametrize("shape", [0.5, 1.0, 2.0, 7.5, 200.0])
@pytest.mark.parametrize("share", SHARES)
def test_means_are_kept_and_variances_nearly(shape: float, share: float) -> None:
    """Of records of which that share is clipped: the mean exactly, the variance to 0.3 %."""
    rate = stats.gamma.isf(share, shape) / UPPER
    steps = steps_of_gamma(shape, 1025)
    (chances,) = clipped_gamma(np.array([rate]), UPPER, shape, steps)
    value = np.linspace(0.0, UPPER, steps + 1)
    record = stats.gamma(shape, scale=1.0 / rate)
    mean = record.expect(lambda x: x, lb=0.0, ub=UPPER, epsabs=1e-12) + UPPER * share
    square = record.expect(lambda x: x**2, lb=0.0, ub=UPPER, epsabs=1e-12) + UPPER**2 * share
    assert chances.sum() == pytest.approx(1.0, abs=1e-12)
    assert chances @ value == pytest.approx(mean, rel=1e-6)
    variance = float(chances @ (value - mean) ** 2)
    assert 0.9999 < variance / (square - mean**2) < 1.003
    assert steps <= 1025


def test_steps_have_the_chances_of_a_fine_lattice_shared_between_neighbours() -> None:
    rate, steps, fine = 0.4, 8, 4000
    (chances,) = clipped_gamma(np.array([rate]), UPPER, 1.0, steps)
    middle = (np.arange(steps * fine) + 0.5) / fine
    mass = np.diff(-np.exp(-rate * UPPER / steps * np.linspace(0.0, steps, steps * fine + 1)))
    step = np.arange(steps + 1)
    wanted = [float(mass @ np.maximum(1.0 - np.abs(middle - point), 0.0)) for point in step]
    wanted[-1] += float(np.exp(-rate * UPPER))
    assert chances == pytest.approx(wanted, rel=1e-6)


def test_any_rate_has_chances() -> None:
    rates = np.array([0.0, 1e-300, 1e-9, 1e-3, 1e3, 1e9, 1e300, np.inf])
    chances = clipped_gamma(rates, UPPER, 2.0, 64)
    assert np.all(np.isfinite(chances) & (chances > 0.0))
    assert chances.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    assert chances[:2, -1] == pytest.approx(1.0)
    assert chances[-3:, 0] == pytest.approx(1.0)
