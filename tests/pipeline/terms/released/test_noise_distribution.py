"""Released values of latent totals: their noise along a line, their releases, cells and parts."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from suffice.pipeline.terms.released.noise_distribution import NoisyTotals, log_laplace
from support.noisy import noisy_statistic, statistic_plan

KINKS = np.array([[[3.0], [-2.0]], [[3.0], [7.0]], [[0.5], [10.0]]])
POSITIONS = np.array([[-4.0, 0.0, 3.0], [5.5, 7.0, 20.0]])


@pytest.mark.parametrize("rates", [[], [0.7], [0.7, 0.7], [0.7, 0.7, 2.0], [2.0, 0.1, 0.4]])
def test_noise_along_a_line_falls_by_its_rates_away_from_its_kinks(rates: list[float]) -> None:
    expected = np.zeros(POSITIONS.shape)
    for kink, rate in zip(KINKS, rates, strict=False):
        expected -= rate * np.abs(POSITIONS - kink)
    log_density = log_laplace(POSITIONS, KINKS[: len(rates)], np.array(rates))
    assert log_density == pytest.approx(expected, rel=1e-14, abs=1e-14)


def test_noise_of_whole_numbers_is_discrete_laplace() -> None:
    scale, counts = 1.7, np.arange(-60.0, 61.0)
    log_density = log_laplace(counts[None], [np.array([[4.0]])], np.array([1.0 / scale]))[0]
    q = math.exp(-1.0 / scale)
    exact = (1.0 - q) / (1.0 + q) * q ** np.abs(4.0 - counts)
    assert np.exp(log_density) * (1.0 - q) / (1.0 + q) == pytest.approx(exact, rel=1e-12)


def test_further_releases_are_further_rows() -> None:
    rows = np.array([[5, 40], [-3, 21]], dtype=object)
    first, second = (
        noisy_statistic(
            statistic_plan(
                {"family": "poisson", "column": "x", "upper": "4"}, epsilon=epsilon, public_n=False
            ),
            rows + shift,
        )
        for epsilon, shift in (("2", 0), ("1", 7))
    )
    both = dataclasses.replace(first, further=(second,))
    totals = NoisyTotals.of(both, np.array([[0.0, 1.0], [4.0, -1.0]]), shift=2)
    assert totals.releases == 2
    assert totals.values.tolist() == [[3.0, 38.0, 10.0, 45.0], [-5.0, 19.0, 2.0, 26.0]]
    assert totals.scale.tolist() == [first.plan.scale] * 2 + [second.plan.scale] * 2
    assert totals.coefficients.tolist() == [[0.0, 1.0], [4.0, -1.0]] * 2
    assert totals.by_release[1].tolist() == [[-5.0, 19.0], [2.0, 26.0]]
    latent = np.array([11.0, 6.0])
    expected = np.abs(totals.values - [6.0, 38.0, 6.0, 38.0]) @ totals.rate
    assert totals.distance(latent) == pytest.approx(expected)
    assert totals.in_scales().distance(latent) == pytest.approx(expected)
    assert totals.take(np.array([1])).values.tolist() == [[-5.0, 19.0, 2.0, 26.0]]


def test_parts_are_taken_from_every_release() -> None:
    counts = np.arange(12.0).reshape(2, 6)
    totals = NoisyTotals.of_counts([counts, -counts], [1.5, 3.0]).part(np.array([4, 1]))
    assert totals.values.tolist() == [[4.0, 1.0, -4.0, -1.0], [10.0, 7.0, -10.0, -7.0]]
    assert totals.scale.tolist() == [1.5, 1.5, 3.0, 3.0]
