"""Any transform of any float64: the compiled one is the written one, ordered, and within the lattice."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.pipeline.rows.chunk import clipping
from suffice.pipeline.terms.statistics.lattice import Quantiser, Shape, Transform

UNITS = st.floats(1e-150, 1e150)
TRANSFORMS = st.one_of(
    st.builds(
        Transform,
        shape=st.sampled_from([Shape.ABSOLUTE, Shape.SQUARE]),
        centre=st.floats(-1e150, 1e150),
        unit=UNITS,
    ),
    st.builds(Transform, shape=st.just(Shape.LOG), unit=UNITS),
    st.builds(Transform, shape=st.just(Shape.POWER), unit=UNITS, exponent=st.floats(0.01, 500.0)),
)
VALUES = st.lists(st.floats(width=64), min_size=1, max_size=50)


def compiled(values: np.ndarray, by: Transform) -> np.ndarray:
    out = np.empty(len(values))
    clipping.transform(values, by.shape, by.centre, by.unit, by.exponent, out)
    return out


@pytest.mark.slow
@settings(max_examples=300)
@given(transform=TRANSFORMS, values=VALUES, data=st.data())
def test_the_kernel_is_the_reference_in_any_order(
    transform: Transform, values: list[float], data: st.DataObject
) -> None:
    given_values = np.array(values)
    with np.errstate(all="ignore"):
        reference = transform.apply(given_values)
    assert np.array_equal(compiled(given_values, transform), reference, equal_nan=True)
    assert [math.isnan(value) for value in reference] == [math.isnan(value) for value in values]
    order = np.array(data.draw(st.permutations(range(len(values)))))
    assert np.array_equal(compiled(given_values[order], transform), reference[order], equal_nan=True)


@pytest.mark.slow
@settings(max_examples=300)
@given(transform=TRANSFORMS, values=VALUES, bits=st.integers(2, 24))
def test_lattice_values_keep_the_order_and_the_bounds(
    transform: Transform, values: list[float], bits: int
) -> None:
    """Distances grow away from the centre, logarithms and powers with the value: rounding keeps that."""
    centre = transform.centre if transform.shape in {Shape.ABSOLUTE, Shape.SQUARE} else -math.inf
    ordered = np.array(sorted(value for value in values if value >= centre))
    with np.errstate(all="ignore"):
        lattice = Quantiser.from_zero(Fraction(1), bits).quantise(compiled(ordered, transform))
    assert (np.diff(lattice) >= 0).all()
    assert ((lattice >= 0) & (lattice <= 2**bits)).all()
