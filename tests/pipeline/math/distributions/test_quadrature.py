"""Distributions on the nodes of a quadrature: what they say of densities that have closed forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from suffice.pipeline.math.distributions.distribution import Line
from suffice.pipeline.math.distributions.quadrature import GriddedDistribution

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

SHAPES = (2.0, 30.0, 500.0)
GAMMAS = [stats.gamma(shape, scale=1 / 3) for shape in SHAPES]


def distribution_of_gammas() -> GriddedDistribution:
    """One cell for each, on panels of half a standard deviation of the logarithm."""

    def log_density(shape: float) -> Callable[[Floats], Floats]:
        return lambda position: shape * position - 3.0 * np.exp(position)

    cells = []
    for shape in SHAPES:
        edges = np.log(shape / 3.0) + np.arange(-40.0, 12.0) / 2.0 / np.sqrt(shape)
        cells.append((edges[:-1], edges[1:], log_density(shape)))
    return GriddedDistribution.of("rate", Line.LOGARITHM, cells)


def test_moments_and_quantiles_are_those_of_the_density() -> None:
    distribution = distribution_of_gammas()
    assert distribution.mean("rate") == pytest.approx([gamma.mean() for gamma in GAMMAS], rel=1e-6)
    assert distribution.sd("rate") == pytest.approx([gamma.std() for gamma in GAMMAS], rel=1e-6)
    levels = (0.001, 0.3, 0.975)
    expected = np.array([gamma.ppf(levels) for gamma in GAMMAS])
    assert distribution.quantiles("rate", levels, 1, np.random.default_rng(7)) == pytest.approx(
        expected, rel=1e-3
    )


def test_averages_are_taken_cell_by_cell_in_the_order_asked_for() -> None:
    distribution = distribution_of_gammas()
    expected = [gamma.mean() for gamma in GAMMAS]
    assert distribution.average(np.exp, np.arange(3)) == pytest.approx(expected, rel=1e-4)
    assert distribution.average(np.exp, np.array([2, 0])) == pytest.approx(
        [expected[2], expected[0]], rel=1e-4
    )


@pytest.mark.parametrize("cell", range(3))
def test_averages_count_the_tails(cell: int) -> None:
    """Of a function that differs from 0 far out alone, where there are few knots."""
    gamma = GAMMAS[cell]
    far = gamma.mean() + 3.0 * gamma.std()

    def is_far(position: Floats) -> Floats:
        return (np.exp(position) > far).astype(np.float64)

    average = distribution_of_gammas().average(is_far, np.array([cell]))
    assert average == pytest.approx([gamma.sf(far)], rel=0.05)
