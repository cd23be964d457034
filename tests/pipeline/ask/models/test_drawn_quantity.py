"""Draws of a quantity that may not be defined, be infinite, or have no moments."""

from __future__ import annotations

import numpy as np
import pytest

from suffice.errors import UsageError
from suffice.pipeline.ask.models.rows_and_draws import DrawnQuantity

NORMAL = np.random.default_rng(3).normal(5.0, 2.0, (4001, 2))


def test_moments_and_quantiles_are_those_of_the_draws() -> None:
    found = DrawnQuantity(draws=NORMAL).summary(0.8)
    np.testing.assert_allclose(found["mean"], NORMAL.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found["sd"], NORMAL.std(axis=0), rtol=1e-12)
    for name, level in (("lower", 0.1), ("median", 0.5), ("upper", 0.9)):
        np.testing.assert_allclose(found[name], np.quantile(NORMAL, level, axis=0), atol=0.01)


def test_what_is_not_defined_is_left_out_and_counted() -> None:
    draws = np.concatenate([NORMAL, np.full((4001, 2), np.nan)])
    found, plain = DrawnQuantity(draws=draws), DrawnQuantity(draws=NORMAL)
    np.testing.assert_array_equal(found.undefined_share, [0.5, 0.5])
    for name, values in found.summary().items():
        np.testing.assert_allclose(values, plain.summary()[name], rtol=1e-12)
    np.testing.assert_allclose(found.probability(above=5.0), plain.probability(above=5.0) / 2)
    nothing = DrawnQuantity(draws=np.full((3, 1), np.nan))
    assert all(np.isnan(values).all() for values in nothing.summary().values())


def test_infinite_draws_have_quantiles_and_no_moments() -> None:
    found = DrawnQuantity(draws=np.array([[1.0], [2.0], [np.inf]]), has_moments=False)
    assert np.isnan(found.mean).all()
    assert np.isnan(found.sd).all()
    np.testing.assert_array_equal(found.quantile(0.5), [2.0])
    np.testing.assert_array_equal(found.credible_interval(0.9), [[1.0, np.inf]])


@pytest.mark.parametrize("mass", [0.0, 1.0, "a"])
def test_masses_outside_of_0_to_1_are_refused(mass: float) -> None:
    with pytest.raises(UsageError, match="mass"):
        DrawnQuantity(draws=NORMAL).credible_interval(mass)
