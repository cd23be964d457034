"""Rho in the words of approximate privacy: against the formula in 60 digits, and against OpenDP's curve."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction

import opendp.combinators
import opendp.domains
import opendp.measurements
import opendp.metrics
import opendp.mod
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.pipeline.terms.declaration.delta import (
    DELTAS,
    epsilon_at,
    largest_rho,
    shown_delta,
    shown_epsilon,
    shown_epsilons,
)
from suffice.pipeline.terms.declaration.exact_numbers import PICO

MILLIONTH = Fraction(1, 10**6)
rhos = st.one_of(
    st.integers(1, 10**6).map(lambda count: Fraction(count, PICO)),
    st.integers(10**6, 100 * PICO).map(lambda count: Fraction(count, PICO)),
)
deltas = st.one_of(st.sampled_from(DELTAS), st.integers(2, 10**15).map(lambda whole: Fraction(1, whole)))


def log_delta(rho: Fraction, epsilon: float) -> Decimal:
    """Return the infimum over alpha of the paper's formula for log delta, in 60 digits.

    Its derivative in alpha is ``(2 alpha - 1) rho - epsilon + log(1 - 1 / alpha)``, which grows.
    """
    with decimal.localcontext(decimal.Context(prec=60)):
        loss = Decimal(rho.numerator) / Decimal(rho.denominator)
        wanted = Decimal(epsilon)
        low, high = Decimal(-40), Decimal(40)  # log(alpha - 1)
        for _ in range(110):  # the value at the infimum is flat: half of its digits are enough
            middle = (low + high) / 2
            order = 1 + middle.exp()
            if (2 * order - 1) * loss - wanted + (1 - 1 / order).ln() < 0:
                low = middle
            else:
                high = middle
        order = 1 + high.exp()
        return (order - 1) * (order * loss - wanted) - (order - 1).ln() + order * (1 - 1 / order).ln()


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(rho=rhos, delta=deltas)
def test_epsilons_are_the_least_floats_above_the_infimum(rho: Fraction, delta: Fraction) -> None:
    epsilon = epsilon_at(rho, delta)
    log = decimal.Context(prec=60).divide(Decimal(1), Decimal(delta.denominator)).ln(decimal.Context(prec=60))
    if epsilon < 1e-30:  # the whole of the loss may stand in so large a delta
        assert log_delta(rho, 0.0) <= log + Decimal("1e-30")
        return
    assert log_delta(rho, epsilon) <= log
    assert log_delta(rho, math.nextafter(epsilon, 0.0)) > log - Decimal("1e-30")


@pytest.mark.parametrize("delta", DELTAS)
def test_opendp_states_the_same_curve(delta: Fraction) -> None:
    opendp.mod.enable_features("contrib")
    domain = opendp.domains.vector_domain(opendp.domains.atom_domain(T="i64"))
    gaussian = opendp.measurements.make_gaussian(domain, opendp.metrics.l2_distance(T="f64"), scale=1.0)
    curve = opendp.combinators.make_zCDP_to_approxDP(gaussian)
    for exponent in range(-18, 5):
        rho = Fraction(gaussian.map(1.7**exponent))  # type: ignore[no-untyped-call]
        theirs = curve.map(1.7**exponent).epsilon(float(delta))  # type: ignore[no-untyped-call]
        assert theirs == pytest.approx(epsilon_at(rho, Fraction(float(delta))), rel=4e-15)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(epsilon=st.integers(1, 10**7).map(lambda count: Fraction(count, 10**6)), delta=st.sampled_from(DELTAS))
def test_the_largest_rho_stays_below_its_epsilon_and_the_next_does_not(
    epsilon: Fraction, delta: Fraction
) -> None:
    try:
        rho = largest_rho(epsilon, delta)
    except ValueError as refusal:
        assert "no rho of 1e-12 or more" in str(refusal)  # noqa: PT017 - which epsilons have none is a property
        assert epsilon_at(Fraction(1, PICO), delta) > epsilon
        return
    assert (rho * PICO).denominator == 1
    assert epsilon_at(rho, delta) <= math.nextafter(float(epsilon), math.inf)
    assert epsilon_at(rho + Fraction(1, PICO), delta) >= epsilon


def test_one_at_a_millionth_is_what_the_literature_has() -> None:
    assert largest_rho(Fraction(1), MILLIONTH) == Fraction("0.024355970359")
    assert shown_epsilons(largest_rho(Fraction(1), MILLIONTH)) == "(1, 1e-6), (1.29, 1e-9), (1.53, 1e-12)"


def test_shown_epsilons_are_rounded_up() -> None:
    for count in (1, 10**3, 3 * 10**9, PICO, 10**6 * PICO):
        rho = Fraction(count, PICO)
        shown = shown_epsilon(rho, MILLIONTH)
        assert epsilon_at(rho, MILLIONTH) <= float(shown) <= 1.01 * epsilon_at(rho, MILLIONTH)
        assert "e" not in shown.lower()
    assert shown_delta(Fraction(1, 10)) == "1e-1"
    assert shown_delta(Fraction(1, 3)) == "1/3"


@pytest.mark.parametrize("exponent", [7, 20, 40])
@pytest.mark.parametrize("delta", [Fraction(1, 2), *DELTAS, Fraction(1, 10**300)])
def test_sums_beyond_the_largest_rho_have_a_curve(exponent: int, delta: Fraction) -> None:
    """As of a year of days, or of very many rows: at most rho + 2 sqrt(rho log(1 / delta))."""
    rho = 10**exponent
    log = math.log(delta.denominator)
    epsilon = epsilon_at(Fraction(rho), delta)
    assert rho < epsilon <= (rho + 2 * math.sqrt(rho * log)) * (1 + 1e-15)


@pytest.mark.parametrize(
    ("rho", "delta"),
    [
        (0, MILLIONTH),
        (Fraction(1, 10**13), MILLIONTH),
        (10**40 + 1, MILLIONTH),
        (1, 0),
        (1, 1),
        (1, Fraction(2, 3)),
    ],
)
def test_what_has_no_curve_is_refused(rho: Fraction, delta: Fraction) -> None:
    with pytest.raises(ValueError, match="is not from"):
        epsilon_at(Fraction(rho), Fraction(delta))


@pytest.mark.parametrize(("epsilon", "delta"), [(0, MILLIONTH), (-1, MILLIONTH), (1, 1)])
def test_what_has_no_rho_is_refused(epsilon: int, delta: Fraction) -> None:
    with pytest.raises(ValueError, match="is not"):
        largest_rho(Fraction(epsilon), Fraction(delta))


def test_epsilons_below_every_rho_are_refused() -> None:
    with pytest.raises(ValueError, match=r"no rho of 1e-12 or more loses at most epsilon 0\.000001 at delta"):
        largest_rho(Fraction(1, 10**6), Fraction(1, 10**12))
