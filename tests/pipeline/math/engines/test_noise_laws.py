"""The contract of every law of noise, against sums and integrals by brute force."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from suffice.pipeline.math.engines.noise_laws import LAWS, Gaussian, Laplace, NoiseLaw

SPREADS = (0.3, 1.0, 2.5, 18.25, 300.0)
CASES = [(name, spread) for name in LAWS for spread in SPREADS]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def law(request: pytest.FixtureRequest) -> NoiseLaw:
    name, spread = request.param
    return LAWS[name](spread)


def _grid(law: NoiseLaw, n_sd: float = 40.0) -> tuple[np.ndarray, float]:
    """Points at which the density is summed, and the width that each stands for."""
    if law.is_whole:
        return np.arange(-math.ceil(n_sd * law.spread), math.ceil(n_sd * law.spread) + 1.0), 1.0
    points, width = np.linspace(-n_sd * law.spread, n_sd * law.spread, 2_000_001, retstep=True)
    return points, float(width)


def test_sums_to_one_with_its_standard_deviation(law: NoiseLaw) -> None:
    points, width = _grid(law)
    density = np.exp(law.log_density(points)) * width

    assert np.sum(density) == pytest.approx(1.0, abs=1e-9)
    assert math.sqrt(np.sum(density * points**2)) == pytest.approx(law.sd, rel=1e-8)


def test_tails_are_sums_of_the_density(law: NoiseLaw) -> None:
    points, width = _grid(law, 8.0 if not law.is_whole else 40.0)
    mass = np.exp(law.log_density(points)) * width
    from_right = np.cumsum(mass[::-1])[::-1] - (0.0 if law.is_whole else (mass + mass[-1]) / 2.0)
    beyond = 0.0 if law.is_whole else math.exp(law.log_tail(points[-1:])[0])

    for index in np.linspace(0, len(points) - 1, 41).astype(int):
        tail = math.exp(law.log_tail(points[index : index + 1])[0])
        assert tail == pytest.approx(from_right[index] + beyond, rel=1e-4 if tail < 1e-6 else 1e-6, abs=1e-15)


def test_symmetric(law: NoiseLaw) -> None:
    points = np.arange(0.0, 50.0) * (1.0 if law.is_whole else 0.7 * law.spread)
    step = 1.0 if law.is_whole else 0.0
    below = 1.0 - np.exp(law.log_tail(-points + step))

    assert np.array_equal(law.log_density(points), law.log_density(-points))
    assert below == pytest.approx(np.exp(law.log_tail(points)), abs=1e-14)


def test_between_is_the_sum_between(law: NoiseLaw) -> None:
    points, width = _grid(law)
    mass = np.exp(law.log_density(points)) * width
    unit = math.ceil(law.spread) if law.is_whole else law.spread
    for low, high in [
        (-2, 3),
        (0, 0 if law.is_whole else 1),
        (1, 4),
        (-4, -1),
        (2, math.inf),
        (-math.inf, 1),
    ]:
        ends = [float(end * unit) for end in (low, high)]
        half = 0.0 if law.is_whole else width / 2.0
        within = (points >= ends[0] - half) & (points <= ends[1] + half)
        probability = math.exp(law.log_between(np.array(ends[0]), np.array(ends[1])))

        assert probability == pytest.approx(np.sum(mass[within]), rel=1e-4)


def test_far_out_nothing_cancels(law: NoiseLaw) -> None:
    unit = max(1.0, round(law.spread)) if law.is_whole else law.spread
    far = np.array([30.0, 60.0, 200.0]) * unit
    right = law.log_between(far, far + unit)
    left = law.log_between(-far - unit, -far)

    assert np.all(np.isfinite(right))
    assert right == pytest.approx(left, rel=1e-12)
    assert np.all(np.diff(right) < 0.0)
    # A probability is at most that of the tail, and at least that of its first value or density.
    assert np.all(right <= law.log_tail(far))
    if law.is_whole:
        assert np.all(right >= law.log_density(far))
    assert law.log_between(np.array(3.0), np.array(2.0)) == -np.inf


def test_beyond_its_reach_little_is_left(law: NoiseLaw) -> None:
    reach = math.ceil(law.reach(36.0))

    assert law.log_tail(np.array([float(reach)]))[0] <= -35.0


@pytest.mark.parametrize("spread", [0.5, 3.0])
def test_geometric_is_the_discrete_laplace_of_releases(spread: float) -> None:
    """Exact fractions of q, the number nearest to e^(-1 / b)."""
    q = Fraction(math.exp(-1.0 / spread))
    law = LAWS["geometric"](spread)

    for k in (0, 1, 2, 7, 40):
        exact = (1 - q) / (1 + q) * q**k
        assert law.log_density(np.array([float(k)]))[0] == pytest.approx(math.log(exact), rel=1e-12)


def test_wide_discrete_gaussian_joins_its_sum() -> None:
    summed, smooth = LAWS["discrete_gaussian"](1e4), LAWS["discrete_gaussian"](1e4 * (1.0 + 1e-12))
    points = np.array([-3e4, 0.0, 1.0, 5e3, 4e4, 1e5])

    assert summed.log_tail(points) == pytest.approx(smooth.log_tail(points), abs=1e-6)


def test_another_law_fails_the_same_test() -> None:
    """The control: of the wrong law the tails are no sums of the density."""
    points = np.linspace(0.0, 3.0, 7)

    assert not np.allclose(
        Laplace(1.0).log_tail(points), Gaussian(math.sqrt(2.0)).log_tail(points), atol=0.05
    )
