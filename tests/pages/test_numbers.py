"""Numbers on pages: ticks that enclose, texts that read back, noise intervals that hold what they say."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from suffice.pages.drawing import Scale, number, series
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.released.noise_distribution import noise_half_width
from suffice.pipeline.terms.statistics.sensitivity import Quantity
from support.making import mapping

FINITE = st.floats(min_value=-1e12, max_value=1e12, allow_nan=False)


@given(FINITE, FINITE)
@example(0.0, 5e-324)
@example(1e-310, 2e-310)
def test_a_scale_encloses_what_it_is_of_in_few_even_steps(first: float, second: float) -> None:
    low, high = min(first, second), max(first, second)
    scale = Scale.enclosing(low, high)
    slack = 1e-6 * (scale.ticks[-1] - scale.ticks[0])
    assert scale.ticks[0] <= low + slack
    assert scale.ticks[-1] >= high - slack
    assert 2 <= len(scale.ticks) <= 8
    assert 0.0 <= scale.at(low) <= scale.at(high) <= 1.0
    assert len(set(scale.labels())) == len(scale.ticks)


@given(st.floats(min_value=1e-9, max_value=1e9) | st.floats(min_value=-1e9, max_value=-1e-9))
def test_a_number_reads_back_to_its_digits(value: float) -> None:
    read = float(number(value, 6).replace(",", "").replace("\u2212", "-"))
    assert math.isclose(read, value, rel_tol=6e-6)


def test_what_is_no_number_is_none() -> None:
    assert number(math.inf) == number(math.nan) == "none"


@pytest.mark.parametrize("epsilon", ["0.1", "1", "4", "20"])
@pytest.mark.parametrize("weights", [(1,), (3,), (1, 1), (1, -2), (1, 1, 1, 1, 1), (1, 10, 100)])
def test_noise_stays_within_its_interval_as_often_as_is_said(epsilon: str, weights: tuple[int, ...]) -> None:
    """By the exact distribution of the sum, out to where nothing of it is left; no draws."""
    categories = [str(number) for number in range(len(weights))]
    statistic = {"family": "categorical", "column": "k", "categories": categories, "other": True}
    privacy = {"epsilon": epsilon, "neighboring": "add_or_remove_one"}
    (plan,) = compile_plan(
        load_spec(mapping("data", statistics={"k": statistic}, privacy=privacy))
    ).statistics
    coefficients = {place: Fraction(weight) for place, weight in enumerate(weights)}
    width = noise_half_width(plan, Quantity(name="count", coefficients=coefficients))
    law = np.ones(1)
    for weight in weights:
        law = np.convolve(law, weighted_law(plan.scale, abs(weight)))
    distance = np.abs(np.arange(law.size) - law.size // 2)
    assert law.sum() == pytest.approx(1.0, abs=1e-9)
    assert law[distance <= width].sum() >= 0.95 - 1e-9
    if len(weights) == 1 and width > 0:  # and no shorter one would do
        assert law[distance <= width - abs(weights[0])].sum() < 0.95
    if plan.scale > 1:  # the control: half of it holds much less
        assert law[distance <= width / 2].sum() < 0.9


def weighted_law(noise_scale: float, weight: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the probabilities of discrete Laplace noise times a weight, from far below to far above."""
    reach = math.ceil(30 * noise_scale)
    steps = np.abs(np.arange(-reach, reach + 1))
    law = np.zeros(2 * reach * weight + 1)
    law[::weight] = math.tanh(0.5 / noise_scale) * np.exp(-steps / noise_scale)
    return law


@given(st.floats(1e-12, 1e12), st.floats(101.0, 1e12))
def test_a_logarithmic_scale_puts_equal_ratios_equally_far_apart(low: float, ratio: float) -> None:
    scale = Scale.logarithmic(low, low * ratio, 0.0, 100.0)
    middle = low * math.sqrt(ratio)
    assert scale.at(low) == 0.0
    assert scale.at(low * ratio) == 100.0
    assert math.isclose(scale.at(middle), 50.0, abs_tol=1e-6)
    assert 1 <= len(scale.ticks) <= 8
    assert all(low * (1.0 - 1e-6) <= tick <= low * ratio * (1.0 + 1e-6) for tick in scale.ticks)
    assert len(set(scale.labels())) == len(scale.ticks)


@pytest.mark.parametrize(
    ("labels", "written"),
    [
        ("January February March April May June July", "Jan Feb Mar Apr May Jun Jul"),
        ("alpha1 alpha2 alpha3 alpha4 alpha5 alpha6", "alpha1 alpha3 alpha5"),
        ("spring summer autumn", "spring summer autumn"),
    ],
)
def test_months_are_shortened_where_an_axis_would_leave_them_out(labels: str, written: str) -> None:
    names = labels.split()
    chart = series(names, [None] * len(names), title="t", description="d", axes=("month", "share"))
    along = re.findall(r'y="165" text-anchor="middle">([^<]+)<', str(chart))
    assert along[: len(written.split())] == written.split()[: len(along)]
    assert len(along) >= 3
