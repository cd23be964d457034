"""Merged distributions: averages over them, and their numbers with and without sorting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from suffice.pipeline.math.distributions import merged
from suffice.pipeline.math.distributions.merged import Components
from suffice.pipeline.math.engines.one_sum.nodes import resolve
from suffice.pipeline.math.engines.one_sum.sum_posterior import LatentSumPosterior
from support.noisy import noisy_statistic, statistic_plan
from support.unrestricted import unrestricted_posterior

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

NOISY = np.array([[7.0, 2.0], [-40.0, -25.0], [310.0, 95.0], [7e5, 3e5]])


def distribution_of(family: str, epsilon: str) -> LatentSumPosterior:
    """The distribution behind few records and many, and behind values that are impossible without noise."""
    bounds = {"poisson": {"upper": "9"}, "geometric": {"upper": "9"}}.get(family, {})
    plan = statistic_plan({"family": family, **bounds}, epsilon=epsilon, public_n=False)
    distribution = unrestricted_posterior(noisy_statistic(plan, NOISY), clipping="ignored").distribution
    assert isinstance(distribution, LatentSumPosterior)
    return distribution


def parameters_at(family: str, position: Floats) -> Floats:
    return np.exp(position) if family == "poisson" else 1.0 / (1.0 + np.exp(-position))


@pytest.mark.parametrize("epsilon", ["0.1", "1"])
@pytest.mark.parametrize("family", ["bernoulli", "poisson", "geometric"])
def test_averages_over_merged_distributions(family: str, epsilon: str) -> None:
    """Of the parameter and of its square, which distributions know by themselves."""
    distribution = distribution_of(family, epsilon)
    cells = np.arange(len(NOISY))
    average = distribution.average(lambda position: parameters_at(family, position), cells)
    assert np.all(np.abs(average - distribution.means) < 0.01 * distribution.sds)
    squares = distribution.average(lambda position: parameters_at(family, position) ** 2, cells)
    assert squares == pytest.approx(distribution.means**2 + distribution.sds**2, rel=0.02)
    assert distribution.average(
        lambda position: parameters_at(family, position), cells[1:3]
    ) == pytest.approx(average[1:3])


@pytest.mark.parametrize("family", ["bernoulli", "poisson"])
def test_numbers_of_what_is_merged_are_the_same_by_sorting(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    distribution = distribution_of(family, "0.02")
    nodes = resolve(distribution.sums)
    single = Components.of(nodes, distribution.update, len(NOISY))
    monkeypatch.setattr(merged, "_MOST_NUMBERS", 0)
    other = Components.of(nodes, distribution.update, len(NOISY))
    assert len(single.cell) > 3 * len(NOISY)
    for name in ("cell", "n", "total", "weight", "scatter"):
        assert np.array_equal(getattr(single, name), getattr(other, name)), name
    assert np.bincount(single.cell, single.weight) == pytest.approx(np.ones(len(NOISY)))


def test_guesses_do_not_move_quantiles() -> None:
    """Places found from the normal guess alone agree, far less than the distribution is wide apart."""
    distribution = distribution_of("geometric", "0.1")
    levels, cells = (0.001, 0.3, 0.975), len(NOISY)
    plain = [
        parameters_at("geometric", position)
        for position in distribution.merged.positions(distribution.update, levels, cells)
    ]
    quantiles = distribution.merged.quantiles(distribution.update, levels, cells)
    assert np.all(np.abs(quantiles - np.stack(plain, axis=1)) < 1e-3 * distribution.sds[:, None])
