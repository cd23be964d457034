"""What an audit sees of noise on a cone: wrong noise is caught, right noise is not, losses are from below."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from suffice.auditing.on_cones import beyond, flaws_of, least_loss, power
from suffice.pipeline.rows.mechanism.cone.sampler import cone_noise
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.terms.statistics.simulated_noise import simulated_noise
from support.hostile import make_spec

UNIT = {"lower": "-1", "upper": "1"}
ALARM = 1e-8
SIZE = 4000
"""Draws, of which noise 1.25 times too large fails with chance 1 - 3e-8, too small with 1 - 1e-11 (exact)."""


def statistic_of(neighboring: str = "add_or_remove_one") -> Any:
    entry = {"family": "multivariate_normal", "columns": {"a": UNIT, "b": UNIT}, "noise": "cone"}
    privacy = {"epsilon": "1", "neighboring": neighboring}
    return compile_plan(make_spec("rows", {"s": entry}, privacy=privacy)).statistics[0]


def draws(statistic: Any, size: int = SIZE) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng()
    return [simulated_noise(statistic, (size // 2,), rng).ravel() for _ in range(2)]


def test_right_noise_passes_and_wrong_noise_is_caught() -> None:
    """Five tests, each with a false alarm of ``ALARM``."""
    statistic = statistic_of()
    right = draws(statistic)
    assert list(flaws_of(statistic, right, ALARM)) == []
    wrong: dict[str, list[np.ndarray[Any, Any]]] = {
        "smaller": [np.rint(each / 1.25).astype(np.int64) for each in right],
        "larger": [np.rint(each * 1.25).astype(np.int64) for each in right],
        "one sign": [abs(each) for each in right],
        "alike": [right[0], right[0]],
    }
    for said, each in wrong.items():
        assert any(said in what for what in flaws_of(statistic, each, ALARM))
    silent = [0 * each for each in right]
    assert any("smaller" in what for what in flaws_of(statistic, silent, ALARM))
    assert power(statistic.cone, SIZE, 1.25, ALARM) > 1.0 - 1e-6
    assert power(statistic.cone, SIZE, 1.0, ALARM) <= ALARM


@pytest.mark.slow
def test_the_exact_sampler_passes() -> None:
    statistic = statistic_of()
    noise = statistic.cone
    sampler = cone_noise(rate=noise.rate, columns=2, linear=True, steps=noise.steps)
    runs = []
    for _ in range(2):
        out = np.zeros((1000, noise.n_components), np.int64)
        sampler.draw_into(out)
        runs.append(out.ravel())
    assert list(flaws_of(statistic, runs, ALARM)) == []


@pytest.mark.parametrize("shape", [2, 6, 15])
def test_the_law_of_a_difference_of_gamma_numbers(shape: int) -> None:
    """Shares of 100,000 beyond a place, within 6 standard errors: 3e-9 at most a place, by the binomial."""
    rng = np.random.default_rng()
    magnitude = np.abs(np.subtract(*rng.standard_gamma(shape, (2, 100_000))))
    assert beyond(0.0, shape) == pytest.approx(1.0)
    for x in (0.5, 2.0, 6.0):
        chance = beyond(x, shape)
        assert abs(np.mean(magnitude > x) - chance) < 6 * np.sqrt(chance * (1 - chance) / 100_000)


def test_losses_are_those_of_records_and_no_more() -> None:
    statistic = statistic_of("replace_one")
    noise = dataclasses.replace(statistic.cone, steps=4)
    lowest = np.array([[16, -16, -16, 16, 16, 16]], dtype=object)
    highest = np.array([[16, 16, 16, 16, 16, 16]], dtype=object)
    assert least_loss(lowest, noise) == noise.rate == Fraction(1, 2)
    assert least_loss(highest - lowest, noise) == 2 * noise.rate
    assert least_loss(2 * highest, noise) == 2 * noise.rate
    assert least_loss(np.concatenate([highest, -lowest]), noise) == 2 * noise.rate
    middle = np.array([[16, 0, 0, 0, 0, 0]], dtype=object)
    assert noise.rate <= least_loss(highest - middle, noise) <= 2 * noise.rate
