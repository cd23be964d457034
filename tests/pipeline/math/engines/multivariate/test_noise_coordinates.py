"""Coordinates of noise tell the same density as those of moments."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.engines.multivariate import column_posterior, hmc, noise_coordinates
from suffice.pipeline.math.engines.multivariate.hmc import Course, sample_until_settled
from suffice.pipeline.math.engines.multivariate.noise_coordinates import NoiseTarget, is_flat
from suffice.pipeline.terms.statistics.simulated_noise import simulated_noise
from support.cone_calibration import moments_of
from support.joint import plan_of, spec_of
from support.noisy import noisy_statistic
from support.slopes import assert_gradient

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.math.engines.multivariate.shared_target import SharedTarget

    Floats = NDArray[np.float64]

CHAINS = 2


class _CaughtError(Exception):
    """The target is known: nothing has to be drawn."""


def target_of(n: Sequence[int], epsilon: str, *, intercept: bool, predictors: int = 2) -> SharedTarget:
    """Return the density of regressions of so many rows."""
    d, rng = predictors + 1, np.random.default_rng(7)
    unit = {"lower": -1, "upper": 1}
    entry: dict[str, Any] = {
        "family": "linear_regression",
        "predictors": {f"x{column}": unit for column in range(predictors)},
        "outcome": {"y": unit},
        "intercept": intercept,
        "noise": "cone",
    }
    root = np.repeat(0.3 * np.eye(d)[None], len(n), axis=0)
    plan = plan_of(entry, epsilon=epsilon, public_n=False)
    spec = spec_of(entry, epsilon=epsilon, public_n=False)
    sums = moments_of(np.array(n), np.zeros((len(n), d)), root, rng)
    totals = FAMILIES[plan.family].totals(spec.statistics["s"], plan.design, sums)
    statistic = noisy_statistic(plan, totals + simulated_noise(plan, (len(n),), rng).astype(object))
    caught: list[SharedTarget] = []

    def catch(target: SharedTarget, _: object) -> None:
        caught.append(target)
        raise _CaughtError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_posterior, "_flat_cells", catch)
        with pytest.raises(_CaughtError):
            posterior_of(statistic)
    return caught[0]


def log_density(target: NoiseTarget, x: Floats) -> Floats:
    return target(x)[0]


def squares_of(target: SharedTarget) -> Floats | None:
    squares = target.likely_squares(1)
    return None if squares is None else squares[:, 0]


@pytest.mark.parametrize("intercept", [True, False])
def test_either_coordinates_tell_the_same_density(intercept: bool) -> None:
    """Log densities differ by the log Jacobian, taken by differences, and by one constant."""
    target, rng = target_of([2_000, 3_000], "1", intercept=intercept), np.random.default_rng(8)
    by_noise = NoiseTarget.of(target.targets[0], target.shared)
    start, _ = by_noise.start(CHAINS, rng)
    apart, without = [], []
    for cell, chain in ((0, 0), (0, 1), (1, 0)):
        one, other = by_noise.take(np.array([cell])), target.take(np.array([cell]))
        x = start[:, cell, chain, None]
        steps = 1e-5 * np.eye(len(x))
        moved = np.concatenate([x, x + steps, x - steps], axis=1)
        changed = one.in_other_coordinates(moved[None, :, None], squares_of(target))[0, :, 0]
        values, gradient = one(moved)
        above, below = np.split(np.arange(1, 1 + 2 * len(x)), 2)
        assert_gradient(partial(log_density, one), x, gradient[:, :1])
        jacobian = (changed[:, above] - changed[:, below]) / 2e-5
        log_jacobian = np.linalg.slogdet(jacobian)[1]
        apart.append(other(changed[:, :1])[0][0] + log_jacobian - values[0])
        without.append(other(changed[:, :1])[0][0] - values[0])
    assert np.ptp(apart) < 1e-3
    assert np.ptp(without) > 0.1, "the Jacobian is not constant"


def test_cells_whose_noise_is_well_below_their_scatter_are_told() -> None:
    target = target_of([60, 100_000, 60], "0.5", intercept=True)
    by_noise = NoiseTarget.of(target.targets[0], target.shared)
    assert is_flat(by_noise, np.random.default_rng(8)).tolist() == [False, True, False]


def test_chains_do_not_start_beyond_the_wall() -> None:
    """They start where others of their cell do; in a cell without any they stay."""
    x = np.arange(8.0).reshape(1, 2, 4)
    valid = np.array([[False, True, False, True], [False, False, False, False]])
    assert noise_coordinates._possible(x, valid)[0].tolist() == [[1, 1, 1, 3], [4, 5, 6, 7]]


class _Normal:
    """Independent standard normal numbers in every cell."""

    def take(self, _: object) -> _Normal:
        return self

    def __call__(self, x: Floats) -> tuple[Floats, Floats]:
        return -0.5 * np.sum(x**2, axis=0), -x


def test_parts_of_chains_side_by_side_draw_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains that are never settled are run on, and of six cells' means none is six estimated errors off."""
    monkeypatch.setattr(hmc, "FEWEST_EFFECTIVE", 10**9)
    monkeypatch.setattr(hmc, "SETTLED", 0.0)
    rng = np.random.default_rng(7)
    course = Course(stages=(20, 20), fewest_steps=3, first_step=0.4, independent=True, abreast=True)
    kept = sample_until_settled(_Normal(), np.full((3, 2, 6), 4.0), np.ones((3, 2)), 200, rng, course)
    assert kept.shape == (200, 3, 2, 6)
    draws = np.moveaxis(kept, 3, 1)
    assert hmc.split_r_hat(draws).max() < 1.05
    room = 6 / np.sqrt(hmc.effective_draws(draws).min())
    assert np.abs(kept.mean(axis=(0, 3))).max() < room
    assert kept.var(axis=(0, 3)) == pytest.approx(1.0, abs=2 * room)


def test_parts_are_put_one_after_the_other() -> None:
    """Four parts of two chains: parts of a chain stand side by side, and end to end behind one another."""
    draws = np.arange(3 * 8).reshape(3, 1, 1, 8).astype(np.float64)
    joined = hmc._end_to_end(draws, 4)
    assert joined.shape == (12, 1, 1, 2)
    assert joined[:, 0, 0, 0].tolist() == [0, 8, 16, 1, 9, 17, 2, 10, 18, 3, 11, 19]
