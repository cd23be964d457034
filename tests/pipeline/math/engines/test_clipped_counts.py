"""The chance of noisy sums of clipped counts, against enumeration record by record."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from suffice.pipeline.families.shared.clipped_record import clipped_failures, clipped_poisson
from suffice.pipeline.math.engines.clipped_counts import ClippedSums, _product, log_product
from suffice.pipeline.math.priors.record_count import Fixed, NPrior, Reciprocal, Uniform

if TYPE_CHECKING:
    from suffice.typing import Floats


MEANS = np.array([1e-6, 0.01, 0.3, 1.0, 2.0, 5.0, 9.0, 20.0, 60.0, 1000.0])
"""Of records before they are clipped, in eighths of the bound."""


def noisy_counts(
    first: int, second: int | None, *, reach: int, epsilon: float, n_prior: NPrior
) -> ClippedSums:
    low, high = n_prior.support
    return ClippedSums(
        first=np.array([float(first)]),
        second=None if second is None else np.array([float(second)]),
        reach=reach,
        scale=reach / epsilon,
        low=float(low),
        high=float(high),
    )


def enumerated(counts: ClippedSums, n_prior: NPrior, chance: Floats) -> float:
    """Log chance of the noisy sums under one distribution of a record, by repeated convolution."""
    low, high = n_prior.support
    distribution, terms = np.ones(1), []
    for n in range(high + 1):
        if n >= low:
            total = np.arange(float(len(distribution)))
            distance = np.abs(total - counts.first[0])
            if counts.second is not None:
                distance = distance + np.abs(counts.reach * n - total - counts.second[0])
            with np.errstate(divide="ignore"):
                log_terms = np.log(distribution) - distance / counts.scale
            terms.append(np.logaddexp.reduce(log_terms) + n_prior.log_prob(np.array([float(n)]))[0])
        distribution = np.convolve(distribution, chance)
    return float(np.logaddexp.reduce(terms))


def distributions(family: str, reach: int) -> Floats:
    means = MEANS * reach / 8.0
    if family == "poisson":
        return clipped_poisson(means, reach)
    successes = {"geometric": 1.0, "negative_binomial": 0.3}[family]
    return clipped_failures(successes / (successes + means), reach, successes)


@pytest.mark.parametrize("family", ["poisson", "geometric", "negative_binomial"])
@pytest.mark.parametrize("reach", [1, 8, 40])
def test_distributions_of_a_clipped_record(family: str, reach: int) -> None:
    laws = distributions(family, reach)
    for mean, distribution in zip(MEANS * reach / 8.0, laws, strict=True):
        successes = {"geometric": 1.0, "negative_binomial": 0.3}.get(family, 1.0)
        count = np.arange(reach)
        given = (
            stats.poisson(mean)
            if family == "poisson"
            else stats.nbinom(successes, successes / (successes + mean))
        )
        assert distribution[:-1] == pytest.approx(given.pmf(count), rel=1e-9, abs=1e-300)
        assert distribution[-1] == pytest.approx(given.sf(reach - 1), rel=1e-9)
    assert laws.sum(axis=1) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("family", ["poisson", "geometric", "negative_binomial"])
@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("reach", [1, 3, 8, 40])
def test_chances_of_few_records_are_those_of_enumeration(family: str, reach: int, epsilon: float) -> None:
    """Any noisy values, also impossible ones, and all parameters at once, however little they fit."""
    cases: list[tuple[int, int | None, NPrior]] = [
        (3, 5, Uniform(0, 6)),
        (-20, 4, Uniform(0, 6)),
        (30, -3, Uniform(0, 6)),
        (5 * reach, reach, Uniform(2, 6)),
        (4 * reach, 2 * reach, Fixed(6)),
        (4 * reach, None, Fixed(5)),
        (-8, None, Fixed(3)),
    ]
    chance = distributions(family, reach)
    for first, second, n_prior in cases:
        counts = noisy_counts(first, second, reach=reach, epsilon=epsilon, n_prior=n_prior)
        log_chances = log_product(counts, n_prior, chance, np.zeros(len(chance)))
        wanted = np.array([enumerated(counts, n_prior, distribution) for distribution in chance])
        near = wanted > wanted.max() - 10.0
        assert log_chances[near] == pytest.approx(wanted[near], abs=1e-8)


@pytest.mark.parametrize(("epsilon", "n"), [(1.0, 60), (0.02, 300), (5.0, 60)])
def test_chances_of_more_records_than_are_taken_one_by_one(epsilon: float, n: int) -> None:
    """Up to 600 records; the highest weights count, and are right to a hundred thousandth of the highest."""
    n_prior = Reciprocal(2 * n)
    chance = clipped_poisson(np.array([4.0, 7.0, 9.0, 10.0, 11.0, 14.0, 40.0]), 8)
    first = round(n * float(chance[3] @ np.arange(9)))
    counts = noisy_counts(first, 8 * n - first, reach=8, epsilon=epsilon, n_prior=n_prior)
    log_chances = log_product(counts, n_prior, chance, np.zeros(len(chance)))
    wanted = np.array([enumerated(counts, n_prior, distribution) for distribution in chance])
    top = wanted.max()
    assert np.exp(log_chances - top) == pytest.approx(np.exp(wanted - top), abs=1e-5)


@pytest.mark.parametrize("n", [10**4, 10**9])
def test_many_records_have_a_normal_distribution(n: int) -> None:
    """The log of a normal density is -z^2 / 2; N public, noise small beside the distribution of the sum."""
    chance = clipped_poisson(np.array([10.0]), 8)
    mean = float(chance[0] @ np.arange(9.0))
    sd = math.sqrt(n * float(chance[0] @ (np.arange(9.0) - mean) ** 2))
    n_prior = Fixed(n)
    distances = []
    for z in (0.0, 3.0):
        counts = noisy_counts(round(n * mean + z * sd), None, reach=8, epsilon=8.0, n_prior=n_prior)
        distances.append(float(log_product(counts, n_prior, chance, np.zeros(1))[0]))
    # The skewness of a record moves it by about z^3 / (6 sqrt(n)).
    assert distances[1] - distances[0] == pytest.approx(-4.5, abs=10.0 / math.sqrt(n))
    assert distances[0] == pytest.approx(-math.log(sd * math.sqrt(2 * math.pi) * math.tanh(0.5)), abs=2e-3)


@pytest.mark.parametrize(
    ("left", "right"), [((5, 7), (7, 3)), ((40, 31), (31, 900)), ((3, 30, 5000), (3, 5000, 4))]
)
def test_products_in_blocks_are_products(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    rng = np.random.default_rng(7)
    first, second = rng.random(left), rng.random(right) + 1j * rng.random(right)
    product = _product(first, second)
    assert product.dtype == np.complex128
    assert np.allclose(product, np.einsum("...ij,...jk->...ik", first, second), rtol=1e-12)
