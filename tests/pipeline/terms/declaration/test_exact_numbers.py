"""Exact numbers: text both ways, and the one float boundary."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.pipeline.rows.mechanism.noise import privacy_map
from suffice.pipeline.terms.declaration.exact_numbers import (
    float_rounded_down,
    float_rounded_up,
    format_number,
    parse_decimal,
    parse_epsilon,
    scale_rounded_up,
)
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss

positive = st.fractions(min_value=Fraction(1, 10**6), max_value=10**6)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Fraction(1), "1"),
        (Fraction(1, 4), "0.25"),
        (Fraction(-1, 8), "-0.125"),
        (Fraction(1, 3), "1/3"),
        (Fraction(100), "100"),
        (Fraction(0), "0"),
        (Fraction(-7, 6), "-7/6"),
    ],
)
def test_numbers_are_written_without_trailing_zeros(number: Fraction, text: str) -> None:
    assert format_number(number) == text


@given(st.fractions())
def test_writing_and_reading_is_the_identity(number: Fraction) -> None:
    text = format_number(number)
    assert not text.partition(".")[2].endswith("0")
    assert Fraction(text) == number


@pytest.mark.parametrize(
    "text", ["", "nan", "inf", "1e9999", "0x1", "1_000", " 1", "1 ", "٣", "--1", "1/2", "1e"]
)
def test_what_is_no_decimal_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a finite decimal number"):
        parse_decimal(text)


@pytest.mark.parametrize("text", ["0", "-1", "1000001", "0.0000001", "1e-7", "inf"])
def test_what_is_no_epsilon_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"epsilon|finite"):
        parse_epsilon(text)


def test_epsilon_is_exact() -> None:
    assert parse_epsilon("0.1") == Fraction(1, 10)
    assert PrivacyLoss.of_epsilon(parse_epsilon("0.000001")).count == 1
    with pytest.raises(ValueError, match="no multiple of 1/1000000"):
        _ = PrivacyLoss.of_epsilon(Fraction(1, 3)).count


@given(positive)
def test_directed_rounding_brackets_the_number(number: Fraction) -> None:
    below, above = float_rounded_down(number), float_rounded_up(number)
    assert Fraction(below) <= number <= Fraction(above)
    assert above in {below, math.nextafter(below, math.inf)}


@given(st.integers(min_value=1, max_value=2**51), positive)
def test_the_scale_is_the_least_whose_opendp_map_is_within_epsilon(
    l1_sensitivity: int, epsilon: Fraction
) -> None:
    scale = scale_rounded_up(l1_sensitivity, epsilon)
    assert Fraction(l1_sensitivity) / Fraction(scale) <= epsilon
    assert Fraction(privacy_map(l1_sensitivity, scale)) <= epsilon
    smaller = math.nextafter(scale, 0)
    assert Fraction(privacy_map(l1_sensitivity, smaller)) > epsilon


def test_plain_division_would_overspend() -> None:
    """The control: sensitivity over epsilon in floats is sometimes one ulp too small a scale."""
    cases = [(1, Fraction(share, total)) for total in range(2, 40) for share in range(1, total)]
    naive = [Fraction(privacy_map(1, float(1 / epsilon))) > epsilon for _, epsilon in cases]
    assert any(naive)
