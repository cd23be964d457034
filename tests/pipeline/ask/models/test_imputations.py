"""Rules that combine synthetic data sets, against the law of estimates that they are for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from scipy.stats import t as student

import suffice
from suffice.errors import UsageError

FALSE_ALARM = 1e-8
"""Of one of fourteen coverages, by the exact binomial."""
CASES = 40_000
"""An interval that covers .935 of cases in place of .95 passes with a chance below 1e-12."""
Q = np.array([0.31, 0.24, 0.35, 0.29, 0.26])
V = np.full(5, 0.0002)


def test_it_is_the_rule_of_wholly_synthetic_data() -> None:
    combined = suffice.combine_imputations(Q, V)
    between = 1.2 * Q.var(ddof=1)
    total, freedom = between - 0.0002, 4 * (1 - 0.0002 / between) ** 2
    assert combined.estimate == pytest.approx(0.29)
    assert combined.is_within_subtracted == (
        student.ppf(0.975, freedom) * total**0.5 < student.ppf(0.975, 4) * between**0.5
    )
    wide = suffice.combine_imputations(Q, V, mass=0.5)
    assert wide.is_within_subtracted
    assert wide.sd == pytest.approx(total**0.5)
    assert wide.degrees_of_freedom == pytest.approx(freedom)
    assert wide.upper - wide.estimate == pytest.approx(student.ppf(0.75, freedom) * total**0.5)
    assert wide.imputations == 5


def test_a_variance_is_never_negative() -> None:
    """Where sets differ less than their rows would, nothing is taken off."""
    combined = suffice.combine_imputations(Q, V * 1000)
    assert not combined.is_within_subtracted
    assert combined.sd == pytest.approx(np.sqrt(1.2 * Q.var(ddof=1)))
    assert combined.degrees_of_freedom == 4
    same = suffice.combine_imputations([1.0, 1.0], [0.5, 0.5])
    np.testing.assert_array_equal([same.lower, same.upper], 1.0)


def test_quantities_are_combined_each_by_itself() -> None:
    both = suffice.combine_imputations(np.stack([Q, 2 * Q], axis=1), np.stack([V, 4 * V], axis=1), 0.5)
    assert both.sd.shape == (2,)
    np.testing.assert_allclose(both.sd[1], 2 * both.sd[0])


def covered(
    sets: int, ratio: float, rng: np.random.Generator
) -> tuple[suffice.CombinedEstimate, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return combined estimates of a quantity that is 0, of posterior variance 1, and each set's numbers.

    A release has a posterior with a mean of its own, by variance 1 off the truth; rows add `ratio`.
    """
    centre = rng.standard_normal(CASES)
    q = centre + rng.standard_normal((sets, CASES)) * np.sqrt(1.0 + ratio)
    v = np.full(q.shape, ratio)
    return suffice.combine_imputations(q, v), q, v


@pytest.mark.parametrize("sets", [5, 20, 100])
@pytest.mark.parametrize("ratio", [0.01, 0.5, 1.0, 3.0])
def test_intervals_cover_however_many_sets_and_rows_there_are(sets: int, ratio: float) -> None:
    combined, _, _ = covered(sets, ratio, np.random.default_rng())
    hits = np.sum((combined.lower <= 0) & (combined.upper >= 0))
    assert hits >= binom.ppf(FALSE_ALARM, CASES, 0.95)


def test_intervals_of_many_sets_are_no_wider_than_they_need_be() -> None:
    combined, _, _ = covered(100, 0.5, np.random.default_rng())
    hits = np.sum((combined.lower <= 0) & (combined.upper >= 0))
    assert hits <= binom.ppf(1 - FALSE_ALARM, CASES, 0.955)


def test_rules_for_other_data_do_not_hold() -> None:
    """The controls: of missing values, of partially synthetic data, and one set alone."""
    _, q, v = covered(100, 0.5, np.random.default_rng())
    between, within, centre = q.var(axis=0, ddof=1), v.mean(axis=0), q.mean(axis=0)
    missing = np.mean(np.abs(centre) < 1.96 * np.sqrt(within + 1.01 * between))
    partial = np.mean(np.abs(centre) < 1.96 * np.sqrt(within + between / 100))
    alone = np.mean(np.abs(q[0]) < 1.96 * np.sqrt(v[0]))
    assert missing > 0.98
    assert partial < 0.90
    assert alone < 0.80


@pytest.mark.parametrize(
    ("estimates", "variances", "mass", "said"),
    [
        ([0.1], [0.1], 0.95, "at least two"),
        (0.1, 0.1, 0.95, "at least two"),
        (Q, V[:4], 0.95, "same shape"),
        (Q, -V, 0.95, "not be negative"),
        ([0.1, np.nan], [0.1, 0.1], 0.95, "estimates must be finite"),
        (Q, ["a"] * 5, 0.95, "variances must be finite"),
        (["1", "2"], [0.1, 0.1], 0.95, "estimates must be finite"),
        (Q, V, 1.5, "mass"),
    ],
    ids=["one", "no axis", "shapes", "negative", "nan", "text", "texts of numbers", "mass"],
)
def test_what_cannot_be_combined_is_refused(estimates: Any, variances: Any, mass: float, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        suffice.combine_imputations(estimates, variances, mass)
