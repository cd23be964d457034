"""The sampler against the exact discrete Laplace distribution, and the test against wrong samplers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

from suffice.pipeline.rows.mechanism.noise import CHUNK, Sampler, discrete_laplace
from suffice.pipeline.terms.declaration.exact_numbers import scale_rounded_up
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
from support.noise_distribution import (
    FALSE_ALARM,
    acceptance,
    accepts,
    distribution_of_sum,
    miss_probability,
    sample_size,
)

FACTOR = 1.5
ONE = PrivacyLoss.of_epsilon(Fraction(1))
CASES = [(1, Fraction(1, 2)), (1, Fraction(1, 10)), (7, Fraction(1)), (64, Fraction(3, 2))]


def draw(size: int, l1_sensitivity: int, epsilon: Fraction) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    scale = scale_rounded_up(l1_sensitivity, epsilon)
    return drawn(
        size,
        discrete_laplace(scale=scale, l1_sensitivity=l1_sensitivity, loss=PrivacyLoss.of_epsilon(epsilon)),
    )


def drawn(size: int, sampler: Sampler) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    noise = np.zeros(size, np.int64)
    with ThreadPoolExecutor() as threads:
        for draw in sampler.start(noise, threads):
            draw.result()
    return noise


def test_the_distribution_is_that_of_brute_force_convolution() -> None:
    q = np.exp(-1 / 2.5)
    magnitude = np.r_[(1 - q) / (1 + q), 2 * (1 - q) / (1 + q) * q ** np.arange(1, 200)]
    direct = np.convolve(np.convolve(magnitude, magnitude), magnitude)
    distribution = distribution_of_sum(2.5, 3)
    assert distribution[:150] == pytest.approx(direct[:150], abs=1e-14)
    lower, upper = acceptance(2.5, 400)
    long = distribution_of_sum(2.5, 400)
    assert long[:lower].sum() <= FALSE_ALARM / 2
    assert long[upper + 1 :].sum() <= FALSE_ALARM / 2 + 1e-12


@pytest.mark.parametrize(("l1_sensitivity", "epsilon"), CASES)
def test_the_noise_has_exactly_the_planned_scale(l1_sensitivity: int, epsilon: Fraction) -> None:
    scale = scale_rounded_up(l1_sensitivity, epsilon)
    size = sample_size(scale, FACTOR)
    noise = draw(size, l1_sensitivity, epsilon)
    assert accepts(noise, scale)
    assert not accepts(noise, scale * FACTOR), "noise of the planned scale must not pass for a larger one"
    assert not accepts(noise, scale / FACTOR), "noise of the planned scale must not pass for a smaller one"


@pytest.mark.parametrize("factor", [1 / FACTOR, FACTOR])
def test_a_mechanism_with_a_wrong_scale_is_caught(factor: float) -> None:
    scale = scale_rounded_up(1, Fraction(1, 4))
    size = sample_size(scale, FACTOR)
    wrong = drawn(
        size,
        discrete_laplace(scale=scale * factor, l1_sensitivity=1, loss=ONE),
    )
    assert not accepts(wrong, scale)
    assert miss_probability(scale * factor, scale, size) <= 1e-7


def test_draws_are_independent_and_symmetric() -> None:
    """Signs of 40,000 draws and of products of neighbours balance within 5.5 standard errors (4e-8)."""
    noise = draw(40_000, 1, Fraction(1, 1000))
    signs = np.sign(noise)
    assert abs(signs.sum()) <= 5.5 * np.sqrt(np.abs(signs).sum())
    products = signs[1:] * signs[:-1]
    assert abs(products.sum()) <= 5.5 * np.sqrt(np.abs(products).sum())
    repeated = np.repeat(np.sign(draw(20_000, 1, Fraction(1, 1000))), 2)
    control = repeated[1:] * repeated[:-1]
    assert abs(control.sum()) > 5.5 * np.sqrt(np.abs(control).sum()), "one draw used twice must be seen"


def test_large_draws_do_not_repeat() -> None:
    """At b = 2^40 two of 1,000 draws coincide with chance about n^2 / 8b = 1e-7."""
    noise = drawn(1000, discrete_laplace(scale=2.0**40, l1_sensitivity=1, loss=ONE))
    assert len(set(noise.tolist())) == 1000


@pytest.mark.slow
def test_no_chunk_is_left_out_or_drawn_twice() -> None:
    """At b = 2^55 two of n = 131,079 draws coincide, or one is 0, with chance about n^2 / 8b = 6e-8."""
    size = 16 * CHUNK + 7
    noise = drawn(size, discrete_laplace(scale=2.0**55, l1_sensitivity=1, loss=ONE))
    assert noise.shape == (size,)
    assert len(np.unique(noise)) == size
    assert noise.all()


def test_chunks_of_threads_are_independent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signs at the same place of chunks near each other balance within 5.5 standard errors (4e-8 each)."""
    monkeypatch.setattr("suffice.pipeline.rows.mechanism.noise.CHUNK", 50)
    signs = np.sign(draw(40_000, 1, Fraction(1, 1000))).reshape(-1, 50)
    for distance in (1, 2, 3, 4):
        products = signs[distance:] * signs[:-distance]
        assert abs(products.sum()) <= 5.5 * np.sqrt(np.abs(products).sum())
    repeated = np.repeat(signs[::2], 2, axis=0)
    control = repeated[1:] * repeated[:-1]
    assert abs(control.sum()) > 5.5 * np.sqrt(np.abs(control).sum()), (
        "two threads with one stream must be seen"
    )


def test_the_distribution_holds_across_the_borders_of_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first and the last draws of chunks alone, the last and short chunk's too."""
    scale = scale_rounded_up(1, Fraction(1, 10))
    chunk, n_chunks = 16, -(-sample_size(scale, FACTOR) // 2)
    monkeypatch.setattr("suffice.pipeline.rows.mechanism.noise.CHUNK", chunk)
    size = chunk * n_chunks + 3
    noise = draw(size, 1, Fraction(1, 10))
    borders = np.r_[noise[0:size:chunk], noise[chunk - 1 : size : chunk], noise[-1]]
    assert len(borders) == 2 * n_chunks + 2
    assert accepts(borders, scale)
    for wrong in (scale * FACTOR, scale / FACTOR):
        assert not accepts(borders, wrong)
