"""Likelihoods of means from noisy counts, against sums over counts and the two recursions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import integrate, signal, special

from suffice.pipeline.math.engines.count_likelihoods import NoisyCount, log_mixing
from suffice.pipeline.math.engines.tabulated import DEPTH, tabulate
from suffice.pipeline.math.priors.record_count import Fixed, Reciprocal, Uniform

if TYPE_CHECKING:
    from suffice.typing import Floats, Rows


def enumerated(mean: float, values: list[float], scales: list[float], most: int = 20_000) -> float:
    """The sum of (1), term by term."""
    counts = np.arange(float(most))
    term = special.xlogy(counts, mean) - mean - special.gammaln(counts + 1.0)
    for value, scale in zip(values, scales, strict=True):
        term = term - np.abs(value - counts) / scale + np.log(np.tanh(0.5 / scale))
    return float(np.logaddexp.reduce(term))


RELEASES: list[tuple[list[float], list[float]]] = [
    ([7], [1]),
    ([0], [0.2]),
    ([-30], [13]),
    ([900], [200]),
    ([50, 54], [1, 1]),
    ([3, 3], [2, 5]),
    ([-4, 60, 20], [3, 40, 1]),
]


@pytest.mark.parametrize(("values", "scales"), RELEASES, ids=str)
def test_it_is_the_sum_over_counts(values: list[float], scales: list[float]) -> None:
    means = np.array([0.0, 1e-5, 0.3, 4.0, 55.0, 800.0, 4000.0])
    with np.errstate(divide="ignore"):
        positions = np.log(means)[None]
    count = NoisyCount(values=np.array([values], np.float64), scales=np.array(scales, np.float64))
    exact = np.array([enumerated(mean, values, scales) for mean in means])
    np.testing.assert_allclose(count.log_likelihood(positions)[0], exact, rtol=1e-11, atol=1e-10)
    # A scale that is wrong by a hundredth does not pass.
    wrong = NoisyCount(values=count.values, scales=1.01 * count.scales).log_likelihood(positions)[0]
    assert np.max(np.abs(wrong - exact)) > 1e-3


def test_two_recursions_give_the_same_for_all_numbers_at_once() -> None:
    scale, mean, most = 4.0, 37.0, 400
    counts = np.arange(float(most))
    share = np.exp(special.xlogy(counts, mean) - mean - special.gammaln(counts + 1.0))
    q = np.exp(-1.0 / scale)
    forward = signal.lfilter([1.0], [1.0, -q], share)
    backward = signal.lfilter([1.0], [1.0, -q], share[::-1])[::-1]
    table = np.log(forward + backward - share) + np.log(np.tanh(0.5 / scale))
    values = counts[:200, None]
    count = NoisyCount(values=values, scales=np.array([scale]))
    got = count.log_likelihood(np.full((200, 1), np.log(mean)))[:, 0]
    np.testing.assert_allclose(got, table[:200], rtol=0, atol=1e-10)


def test_a_trillion_does_not_cancel() -> None:
    count = NoisyCount(values=np.array([[1e12]]), scales=np.array([2.0]))
    apart = np.linspace(-8.0, 8.0, 9) * 1e6
    value = count.log_likelihood(np.log(1e12 + apart)[None])[0]
    # The count is normal there, and its noise is nothing.
    np.testing.assert_allclose(value - value[4], -(apart**2) / 2e12, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("n", [0, 1, 7, 40])
def test_priors_of_n_are_mixtures_of_poisson_laws(n: int) -> None:
    def integrand(mean: float) -> float:
        mixing = log_mixing(Reciprocal(10), np.array(mean))
        assert mixing is not None
        return float(np.exp(mixing + n * np.log(mean) - mean - special.gammaln(n + 1.0)))

    total, _ = integrate.quad(integrand, 0.0, 400.0, limit=400, points=[1.0, 50.0])
    assert total == pytest.approx(1.0 / (n + 1.0), rel=1e-7)


def test_known_numbers_of_records_are_no_mixtures() -> None:
    mean = np.array([1.0, 2.0])
    assert log_mixing(Fixed(3), mean) is None
    assert log_mixing(Uniform(1, 9), mean) is None
    np.testing.assert_array_equal(log_mixing(Uniform(0, 9), mean), np.zeros(2))


@pytest.mark.parametrize(
    ("scale", "values"),
    [(5.0, [-40, 0, 3, 77, 400]), (200.0, [-400, 10, 2000]), (0.2, [0, 1, 30]), (2.0, [10**12])],
    ids=str,
)
def test_tables_miss_by_no_more_than_they_say(scale: float, values: list[int]) -> None:
    rng = np.random.default_rng(12)
    count = NoisyCount(values=np.array(values, np.float64)[:, None], scales=np.array([scale]))

    def evaluate(cell: Rows, position: Floats) -> Floats:
        return count.take(cell).log_likelihood(position)

    edges = np.tile(np.linspace(-20.0, 40.0, 31), (len(values), 1))
    table = tabulate(evaluate, edges, tolerance=1e-6)
    assert np.all(table.error <= 1e-6)
    low, high = table.ends
    position = low[:, None] + (high - low)[:, None] * rng.random((len(values), 2000))
    exact = count.log_likelihood(position)
    near = exact > table.top[:, None] - DEPTH
    missed = np.abs(table(np.arange(len(values))[:, None], position) - exact)
    # Held-out points of a panel do not see its largest miss to the last digit.
    assert np.max(missed[near]) <= 1.5e-6
    assert near.mean() > 0.3
    # Outside it falls, or stays.
    outside = table(np.arange(len(values))[:, None], np.array([[-25.0, 45.0]]))
    assert np.all(outside <= table.top[:, None] + 1e-6)
    # A table of other noise is not this one.
    other = NoisyCount(values=count.values, scales=1.02 * count.scales).log_likelihood(position)
    assert np.max(np.abs(other - exact)[near]) > 1e-5 or values == [10**12]
    # The given cells, in the given order.
    turned = table.take(np.arange(len(values))[::-1])
    np.testing.assert_array_equal(
        turned(np.arange(len(values))[:, None], position[::-1]),
        table(np.arange(len(values))[:, None], position)[::-1],
    )


@pytest.mark.slow
@pytest.mark.parametrize("value", [1e6, 1e7, 1e9])
def test_a_large_number_behind_wide_noise(value: float) -> None:
    """Far below it the tail of the Poisson law counts, many standard deviations away."""
    scale = 0.7 * np.sqrt(value)
    away = np.array([-9.0, -6.0, -3.1, -2.0, 0.0, 3.0])
    means = value + away * np.sqrt(value)
    exact = []
    for mean in means:
        # By their deviance, so that large numbers do not cancel, and between 40 standard deviations.
        counts = np.arange(np.floor(mean - 40.0 * np.sqrt(mean)), mean + 40.0 * np.sqrt(mean))
        apart = (counts - mean) / mean
        deviance = mean * ((1.0 + apart) * np.log1p(apart) - apart)
        term = -deviance - 0.5 * np.log(2.0 * np.pi * counts) - np.abs(value - counts) / scale
        exact.append(np.logaddexp.reduce(term) + np.log(np.tanh(0.5 / scale)))
    count = NoisyCount(values=np.array([[value]]), scales=np.array([scale]))
    np.testing.assert_allclose(count.log_likelihood(np.log(means)[None])[0], exact, atol=2e-6)
