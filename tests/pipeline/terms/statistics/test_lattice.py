"""Transforms: compiled as written, accurate, the same wherever a value stands, and never an error."""

from __future__ import annotations

from decimal import Context
from fractions import Fraction

import numpy as np
import pytest

from suffice.pipeline.rows.chunk import clipping
from suffice.pipeline.terms.statistics.lattice import Quantiser, Shape, Transform, log_bound, power_bound

TRANSFORMS = [
    Transform(shape=Shape.ABSOLUTE, centre=0.1, unit=3.0),
    Transform(shape=Shape.SQUARE, centre=-7.0, unit=1e-150),
    Transform(shape=Shape.LOG),
    Transform(shape=Shape.LOG, unit=0.3),
    Transform(shape=Shape.POWER, unit=60.0, exponent=1.7),
    Transform(shape=Shape.POWER, unit=1e-3, exponent=0.05),
    Transform(shape=Shape.POWER, unit=4.0, exponent=300.0),
]
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, -5e-324, 2.0**-1022, 1.7e308, -1.7e308, 1.0]
EXACT = Context(prec=50)


def hostile_values() -> np.ndarray:
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 2**64, 50_000, dtype=np.uint64).view(np.float64)
    near = np.concatenate([rng.uniform(-100, 100, 50_000), np.exp(rng.uniform(-3, 3, 50_000))])
    near_one = np.nextafter(1.0, [0.0, 2.0])
    return np.concatenate([bits, near, np.array(SPECIAL), near_one, 0.3 * near_one, np.sqrt([0.5, 2.0])])


def compiled(values: np.ndarray, by: Transform) -> np.ndarray:
    out = np.empty(len(values))
    clipping.transform(values, by.shape, by.centre, by.unit, by.exponent, out)
    return out


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_the_kernel_equals_the_reference_bit_for_bit(transform: Transform) -> None:
    values = hostile_values()
    ours, reference = compiled(values, transform), transform.apply(values)
    assert np.array_equal(np.isnan(ours), np.isnan(values)), "NaN stays NaN, and nothing else becomes it"
    assert np.array_equal(np.isnan(reference), np.isnan(values))
    known = ~np.isnan(values)
    assert np.array_equal(ours[known].view(np.uint64), reference[known].view(np.uint64))


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_a_value_gives_the_same_wherever_it_stands(transform: Transform) -> None:
    values = hostile_values()[-4000:]
    whole = compiled(values, transform)
    for start in (1, 2, 3, 5):
        assert np.array_equal(compiled(values[start:], transform), whole[start:], equal_nan=True)
    alone = np.concatenate([compiled(values[row : row + 1], transform) for row in range(1000)])
    assert np.array_equal(alone, whole[:1000], equal_nan=True)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("bits", [2, 16, 24])
def test_nothing_leaves_the_lattice(transform: Transform, bits: int) -> None:
    values = hostile_values()
    quantiser = Quantiser.from_zero(Fraction(1), bits)
    values = np.append(values[~np.isnan(values)], transform.centre)
    lattice = quantiser.quantise(transform.apply(values))
    assert lattice.min() == 0
    assert lattice.max() == 2**bits


def test_the_logarithm_is_within_one_unit_in_the_last_place() -> None:
    rng = np.random.default_rng(6)
    values = np.concatenate(
        [np.exp(rng.uniform(-700, 700, 1500)), rng.uniform(0.5, 2.0, 1500), [5e-324, 2.0**-1022, 1.7e308]]
    )
    for value, ours in zip(values, compiled(values, TRANSFORMS[2]), strict=True):
        truth = EXACT.ln(EXACT.create_decimal_from_float(value))
        assert abs(Fraction(ours) - Fraction(truth)) <= Fraction(float(np.spacing(abs(float(truth)))))
    assert compiled(np.array([1.0]), TRANSFORMS[2])[0] == 0.0


@pytest.mark.parametrize("transform", [each for each in TRANSFORMS if each.shape is Shape.POWER])
def test_powers_are_accurate_where_a_lattice_can_tell(transform: Transform) -> None:
    ratios = np.random.default_rng(7).uniform(0.0, 1.0, 2000) ** (1 / transform.exponent)
    values = ratios * transform.unit
    for value, ours in zip(values, compiled(values, transform), strict=True):
        z = EXACT.create_decimal_from_float(value / transform.unit)
        truth = float(EXACT.power(z, EXACT.create_decimal_from_float(transform.exponent)))
        assert abs(ours - truth) <= 2.0**-50  # a quarter of 2**24 lattice steps is 2**-26
    assert compiled(np.array([transform.unit, 0.0]), transform).tolist() == [1.0, 0.0]


def test_public_bounds_are_exact_numbers() -> None:
    assert log_bound(Fraction(1)) == 0
    assert log_bound(Fraction(1, 7)) == -log_bound(Fraction(7))
    assert float(log_bound(Fraction(10) ** 150)) == pytest.approx(150 * np.log(10), abs=2.0**-32)
    assert log_bound(Fraction(3)).denominator <= 2**32
    assert power_bound(Fraction(4), Fraction(2)) == 16
    assert power_bound(Fraction(4), Fraction(1, 2)) == 2
    assert float(power_bound(Fraction("0.3"), Fraction("1.7"))) == pytest.approx(0.3**1.7, rel=1e-15)
    with pytest.raises(OverflowError):
        power_bound(Fraction(10), Fraction(300))
