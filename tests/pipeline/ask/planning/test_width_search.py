"""The search for a smallest epsilon finds where the median comes down, from few of the widths.

Prices of one width with and without counts of moved records: the sums' noise is the same at each.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from suffice.pipeline.ask.planning.width_search import LARGEST_EPSILON, MedianWidth, counts_beside, smallest
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.spec.spec import Spec


SIZE = 200


class Curves:
    """Widths that fall as those of posteriors do, each at its own rate, up to a prior's; counted."""

    def __init__(self, noise: float, size: int = SIZE, prior: float = math.inf) -> None:
        rng = np.random.default_rng(5)
        self.without = np.exp(rng.normal(0.0, 0.3, size))
        self.noise = noise * self.without**0.3 * np.exp(rng.normal(0.0, 0.1, size))
        self.prior = prior
        self.asked = 0

    def __call__(self, epsilon: Fraction, rows: np.ndarray | None = None) -> np.ndarray:
        chosen = np.arange(len(self.without)) if rows is None else rows
        self.asked += len(chosen)
        precision = 1.0 / (self.without[chosen] ** 2 + (self.noise[chosen] / float(epsilon)) ** 2)
        return np.asarray((precision + 1.0 / self.prior**2) ** -0.5)

    def crossing(self, target: float) -> float:
        low, high = 1e-9, 1e9
        for _ in range(200):
            middle = math.sqrt(low * high)
            above = np.median(self(Fraction(middle))) > target
            low, high = (middle, high) if above else (low, middle)
        return high


def test_a_median_is_that_of_all_widths() -> None:
    """From all of them at first, from none where nothing moved, from below 75 % after small steps."""
    curves = Curves(1.0)
    median = MedianWidth(curves, SIZE)
    shares = []
    for epsilon in (1.0, 1.03, 1.0, 0.97, 0.9, 0.056, 0.056, 0.058):
        before = curves.asked
        width, error = median.at(Fraction(epsilon))
        shares.append((curves.asked - before) / SIZE)
        every = np.sort(curves(Fraction(epsilon)))
        assert width == pytest.approx(np.median(every), rel=1e-12)
        assert error == pytest.approx((every[108] - every[92]) / 2, rel=1e-12)
    assert shares[0] == 1.0
    assert shares[6] == 0.0
    assert max(shares[i] for i in (1, 2, 3, 7)) < 0.75


@pytest.mark.parametrize("noise", [1e-5, 0.03, 1.0, 20.0])
@pytest.mark.parametrize("target", [1.01, 1.5, 7.0])
@pytest.mark.parametrize("prior", [math.inf, 8.0])
def test_the_smallest_loss_is_found_to_a_hundredth(noise: float, target: float, prior: float) -> None:
    """And rounded up to three digits: at most 1 % each; from 3 medians of all widths rather than dozens."""
    curves = Curves(noise, prior=prior)
    scaled = target * float(np.median(curves.without))
    exact = curves.crossing(scaled)
    curves.asked = 0
    loss = smallest(curves, curves.without, scaled)
    if exact > LARGEST_EPSILON:
        assert loss is None
        return
    assert loss is not None
    assert curves.asked < 5 * SIZE
    assert loss.width == pytest.approx(float(np.median(curves(loss.epsilon))))
    assert loss.width <= scaled
    assert exact <= float(loss.epsilon) <= 1.02 * exact + 1e-6
    step = Fraction(101, 100)
    slope = math.log(np.median(curves(loss.epsilon * step)) / np.median(curves(loss.epsilon))) / math.log(
        step
    )
    assert loss.slope == pytest.approx(slope, rel=0.5)


def test_no_epsilon_below_the_least_is_tried() -> None:
    curves = Curves(1e-5)
    tried = []

    def widths(epsilon: Fraction, rows: np.ndarray) -> np.ndarray:
        tried.append(epsilon)
        return curves(epsilon, rows)

    loss = smallest(widths, curves.without, 3.0 * float(np.median(curves.without)), least=250)
    assert loss is not None
    assert loss.epsilon == min(tried) == Fraction(250, 10**6)


@pytest.mark.parametrize("size", [1, 2, 7])
def test_few_simulations_are_enough(size: int) -> None:
    curves: Callable[[Fraction, np.ndarray], np.ndarray] = Curves(1.0, size)
    without = Curves(1.0, size).without
    loss = smallest(curves, without, 2.0 * float(np.median(without)))
    assert loss is not None
    assert loss.width <= 2.0 * float(np.median(without))


def spec_of(neighboring: str, epsilon: str = "1", **entry: Any) -> Spec:
    return load_spec(
        {
            "name": "planned",
            "dataset": "planned",
            "source": {"parquet": "rows/"},
            "privacy": {"epsilon": epsilon, "neighboring": neighboring},
            "statistics": {"delay": {"column": "d", **entry}},
        }
    )


NORMAL: dict[str, Any] = {"family": "normal", "lower": "-60", "upper": "180"}


@pytest.mark.parametrize("neighboring", ["add_or_remove_one", "replace_one"])
@pytest.mark.parametrize("stated", [None, "0.1"])
def test_the_noise_of_the_sums_is_the_same_at_every_price(neighboring: str, stated: str | None) -> None:
    counted: dict[str, Any] = {} if stated is None else {"count_clipped": {"weight": stated}}
    noises = counts_beside(
        spec_of(neighboring, **NORMAL, **counted), "delay", PrivacyLoss.of_epsilon(Fraction(1, 10))
    )
    assert noises is not None
    assert noises.stated == (None if stated is None else Fraction(stated))
    weights = [price.weight for price in noises.prices]
    stated_loss = [] if stated is None else [Fraction(stated)]
    assert weights == sorted([Fraction(1, 16), Fraction(1, 4), Fraction(1), *stated_loss])

    def sd_of(quantity: str, epsilon: Fraction, **entry: Any) -> float:
        (plan,) = compile_plan(spec_of(neighboring, f"{float(epsilon):.6f}", **NORMAL, **entry)).statistics
        (chosen,) = (each for each in plan.quantities if each.name == quantity)
        return plan.quantity_noise_sd(chosen)

    alone = sd_of("total", noises.without.amount)
    for price in noises.prices:
        entry = {"count_clipped": {"weight": f"{float(price.weight)}"}}
        assert sd_of("total", price.loss.amount, **entry) == pytest.approx(alone, rel=1e-4)
        assert sd_of("n_above", price.loss.amount, **entry) == pytest.approx(price.noise_sd, rel=1e-4)
    (as_stated,) = [price.loss.amount for price in noises.prices if price.weight == noises.stated] or [
        noises.without.amount
    ]
    assert as_stated == Fraction(1, 10)
    # A control: at the price without counts a release with them has noisier sums.
    assert sd_of("total", noises.without.amount, count_clipped={"weight": "1"}) > 1.5 * alone


def test_families_that_count_nothing_have_no_such_prices() -> None:
    spec = spec_of("add_or_remove_one", family="bernoulli")
    assert counts_beside(spec, "delay", PrivacyLoss.of_epsilon(Fraction(1))) is None
