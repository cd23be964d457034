"""Distributions on coarse grids near 0, against sums over the integers."""

from __future__ import annotations

import numpy as np
import pytest

from suffice.pipeline.math.engines.multinomial.convolution import (
    GRADED,
    log_mean_reciprocal,
    log_rising_on_grid,
    on_grid,
)
from suffice.pipeline.math.engines.multinomial.noisy_counts import log_rising


@pytest.mark.parametrize(("step", "precision"), [(4.0, 1e-9), (64.0, 1e-5)])
@pytest.mark.parametrize("concentration", [[1.0], [1.0, 1.0, 1.0], [0.2, 0.7, 3.0]])
def test_distributions_of_sums_on_a_grid_are_those_of_integers_split_between_points(
    concentration: list[float], step: float, precision: float
) -> None:
    counts = np.arange(40 * step)
    total = np.ones(1)
    for alpha in concentration:
        row = np.exp(log_rising(np.array([alpha]), counts))
        total = np.convolve(total, on_grid(counts[None], row[None], np.zeros(1), np.array([step]))[0])
    points = np.arange(30.0)
    rising = log_rising_on_grid(np.array(concentration), np.array([step]), step * points[None])
    assert rising[0] == pytest.approx(np.log(total[:30] / step), abs=precision)


@pytest.mark.parametrize("concentration", [[1.0, 1.0], [0.2, 0.7, 3.0]])
def test_far_from_zero_and_on_integers_a_grid_changes_nothing(concentration: list[float]) -> None:
    alphas, n = np.array(concentration), np.array([[0.0, 8.0, 80.0, 8.0 * (GRADED - 1), 8.0 * GRADED]])
    plain = log_rising(np.array([np.sum(alphas)]), n)
    assert np.array_equal(log_rising_on_grid(alphas, np.ones(1), n), plain)
    coarse = log_rising_on_grid(alphas, np.array([8.0]), n)
    assert coarse[0, -1] == plain[0, -1]
    assert coarse[0, -2] == pytest.approx(plain[0, -2], abs=1e-5)


@pytest.mark.parametrize("step", [2.0, 64.0])
def test_reciprocals_are_means_over_what_a_point_stands_for(step: float) -> None:
    points = step * np.array([0.0, 1.0, 2.0, 20.0, 63.0])
    every = np.arange(80 * step)
    share = np.maximum(1.0 - np.abs(every - points[:, None]) / step, 0.0)
    expected = np.log(share @ (1.0 / (every + 1.0)) / np.sum(share, axis=1) * (points + 1.0))
    assert log_mean_reciprocal(points[None], np.array([[step]]))[0] == pytest.approx(expected, abs=1e-9)
    assert not np.any(log_mean_reciprocal(points[None], np.ones((1, 1))))
