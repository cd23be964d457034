"""Simulated data sets: summed as the engine's reference sums them, and drawn from the family's own law."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest

from suffice.pipeline.calibration import simulate
from suffice.pipeline.posterior import PLUG_IN
from suffice.pipeline.simulation import _RECORDS, code_counts, discrete_laplace, power_sums
from suffice.pipeline.sums import PowerSums
from suffice.pipeline.verdict import LEFT_OUT
from suffice.pipeline.world import World
from support.worlds import CONDITIONS, simulated_world

if TYPE_CHECKING:
    from suffice.pipeline.simulation import SimulatedSums
    from suffice.pipeline.world import Counts, Floats

SUMMED = [name for name in CONDITIONS if name not in {"bernoulli", "categorical"}]
SIMULATIONS = 1000
FALSE_ALARM = 1e-6 / (2 * (len(CONDITIONS) + 6) * (len(LEFT_OUT) + 1))
"""Of one check: 1e-6 over both designs of all families, of which three have more than one parameter."""


def summed(world: World) -> PowerSums:
    measure = world.family.measure(world.entry)
    assert isinstance(measure, PowerSums)
    return measure


@pytest.mark.parametrize("family", SUMMED)
def test_sums_are_those_of_the_public_lattice(family: str) -> None:
    world = simulated_world(family, n=10, method=PLUG_IN)
    measure = summed(world)
    rng = np.random.default_rng()
    sizes = np.array([0, 3, 1, _RECORDS + 5, 0, 2000, 0])
    values = rng.standard_cauchy(int(sizes.sum())) * 10.0
    values[:3] = [np.inf, -np.inf, 0.0]
    taken = 0

    def draw(data_set: np.ndarray) -> np.ndarray:
        nonlocal taken
        taken += len(data_set)
        return values[taken - len(data_set) : taken]

    sums = power_sums(measure, sizes, draw)
    transformed = values if measure.of.transform is None else measure.of.transform.apply(values)
    lattice = measure.of.quantiser.quantise(transformed)
    for row, part in zip(sums.clipped, np.split(lattice, np.cumsum(sizes)[:-1]), strict=True):
        exact = [sum(int(entry) ** power for entry in part) for power in range(measure.degree + 1)]
        assert row.tolist() == exact
    assert taken == sizes.sum()
    assert sums.n_clipped > 0
    assert sums.unclipped[:, 0].tolist() == sizes.tolist()


def test_without_bounds_nothing_is_clipped() -> None:
    """Values beyond the bounds, by hand: 7 and 3 of 0..4 in steps of one, and powers past their unit."""
    world = simulated_world("poisson", n=1, method=PLUG_IN, conditions=({"upper": "4"}, None))
    sums = power_sums(summed(world), np.array([2]), lambda _: np.array([7.0, 3.0]))
    assert (sums.clipped.tolist(), sums.unclipped.tolist(), sums.n_clipped) == ([[2, 7]], [[2, 10]], 1)
    world = simulated_world(
        "weibull", n=1, method=PLUG_IN, conditions=({"shape": "2", "upper": "2", "lattice_bits": "2"}, None)
    )
    sums = power_sums(summed(world), np.array([2]), lambda _: np.array([4.0, 1.0]))
    assert (sums.clipped.tolist(), sums.unclipped.tolist()) == ([[2, 5]], [[2, 17]])


def test_codes_are_counted_by_their_probabilities() -> None:
    rng = np.random.default_rng()
    probability = np.array([[0.0, 0.25, 0.75], [1.0, 0.0, 0.0]])
    sums = code_counts(np.array([10**12, 10**15]), probability, rng)
    assert sums.clipped[1].tolist() == [10**15, 0, 0]
    assert sums.clipped[0, 0] == 0
    assert abs(sums.clipped[0, 1] / 10**12 - 0.25) < 6 * (0.25 * 0.75 / 10**12) ** 0.5
    assert sums.n_clipped == 0


def test_simulated_noise_has_its_law() -> None:
    """Mean absolute value of 40,000 draws within 6 standard errors, at scales from 0 to the largest."""
    rng = np.random.default_rng()
    assert not discrete_laplace(1e-3, (100,), rng).any()
    for scale in (0.5, 40.0, 2.0**57):
        noise = np.abs(discrete_laplace(scale, (40_000,), rng).astype(np.float64))
        q = np.exp(-1 / scale)
        expected = 2 * q / -np.expm1(-2 / scale)
        assert abs(noise.mean() - expected) < 6 * noise.std() / 200


@pytest.mark.parametrize("public_n", [False, True])
@pytest.mark.parametrize("family", list(CONDITIONS))
def test_without_noise_the_conjugate_posterior_is_calibrated(family: str, public_n: bool) -> None:
    """Draws, sums, totals and priors fit one another in every family: the plug-in posterior is then exact."""
    world = simulated_world(family, n=40, public_n=public_n, method=PLUG_IN)
    found = simulate(dataclasses.replace(world, scale=1e-3), SIMULATIONS, np.random.default_rng())
    assert found.clipped_share < 1e-5
    for ranks in found.clipped:
        assert min(ranks.p_values()) > FALSE_ALARM, ranks


class Faster(World):
    """A simulator with one wrong factor."""

    def sums(self, truth: Floats, sizes: Counts, rng: np.random.Generator) -> SimulatedSums:
        return super().sums(1.2 * truth, sizes, rng)


def test_data_of_another_law_fail_the_same_check() -> None:
    """The control: rates a fifth too high at N = 40, of which the posterior knows about a sixth."""
    world = dataclasses.replace(simulated_world("exponential", n=40, method=PLUG_IN), scale=1e-3)
    wrong = Faster(**{entry.name: getattr(world, entry.name) for entry in dataclasses.fields(world)})
    found = simulate(wrong, SIMULATIONS, np.random.default_rng())
    assert min(found.clipped[0].p_values()) < FALSE_ALARM
