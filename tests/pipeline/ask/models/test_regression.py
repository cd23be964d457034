"""Predictions of rows: closed forms, cells, what is missing or beyond bounds, and real flights."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import t as student

from suffice import models, open_release
from suffice.errors import UsageError
from suffice.pipeline.ask.models.regression import numbers_of
from support.flight_delays import clipped_flights, least_squares, release_flights
from support.model_releases import CONJUGATE, INTERCEPT, PLACES, SD, SLOPES, publish_models

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.ask.pooling.release import Release

ROWS: dict[str, Any] = {
    "origin": ["JFK", "LGA", "JFK"],
    "departure": [10.0, -5.0, 30.0],
    "distance": [900, 200, 1500],
}
MEANS = [
    INTERCEPT[place] + SLOPES[0] * departure + SLOPES[1] * distance
    for place, departure, distance in zip(*ROWS.values(), strict=True)
]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return open_release("models", store=publish_models(tmp_path_factory.mktemp("models")))


@pytest.fixture(scope="module")
def regression(release: Release) -> models.Regression:
    return models.regression(release, "arrival", method="plug-in", prior=CONJUGATE, rng=1)


def test_the_truth_is_predicted(regression: models.Regression) -> None:
    predicted = regression.predict(ROWS)
    np.testing.assert_array_equal(predicted.cell, [0, 1, 0])
    half_widths = (predicted.upper - predicted.lower) / 2
    assert np.all(np.abs(predicted.mean - MEANS) < 3 * half_widths)  # six standard deviations
    predictive = (predicted.predictive_upper - predicted.predictive_lower) / 2
    np.testing.assert_allclose(predictive, 1.96 * SD, rtol=0.06)
    assert not predicted.is_extrapolated.any()


def test_predictive_intervals_are_student_t(release: Release) -> None:
    """Of the conjugate posterior, which a plug-in has, in closed form."""
    regression = models.regression(release, "arrival", method="plug-in", prior=CONJUGATE, draws=40_000, rng=2)
    drawn = {name: values[:, 0] for name, values in regression.draws.items()}
    row = np.array([30.0, 1500.0, 1.0])
    beta = np.column_stack([drawn["coefficient"], drawn["intercept"]])
    expected, variance = beta @ row, drawn["variance"]
    # v is inverse gamma(a, s), and the expectation is normal with variance c v: a, s and c from moments.
    mean, second = variance.mean(), np.mean(variance**2)
    shape = 2 + mean**2 / (second - mean**2)
    spread = np.var(expected) / mean
    scale = np.sqrt(mean * (shape - 1) / shape * (1 + spread))
    ends = expected.mean() + scale * student.ppf([0.05, 0.95], 2 * shape)
    predicted = regression.predict({name: values[2:] for name, values in ROWS.items()}, mass=0.9)
    np.testing.assert_allclose(
        [predicted.predictive_lower[0], predicted.predictive_upper[0]], ends, atol=0.05
    )
    np.testing.assert_allclose(predicted.mean, expected.mean(), rtol=1e-12)
    np.testing.assert_allclose([predicted.lower[0], predicted.upper[0]], np.quantile(expected, [0.05, 0.95]))


def test_rows_without_a_prediction_have_no_numbers(regression: models.Regression) -> None:
    rows = {
        "origin": ["JFK", "XXX", None, "LGA", "LGA", "LGA", "LGA"],
        "departure": [10.0, 10.0, 10.0, None, np.nan, np.inf, 1.7e308],
        "distance": [500] * 7,
        "carrier": ["UA"] * 7,
    }
    predicted = regression.predict(rows)
    expected = {"rows": 7, "predicted": 1, "extrapolated": 0, "incomplete": 4, "of_no_cell": 2}
    assert predicted.counts == expected
    np.testing.assert_array_equal(predicted.cell, [0, -1, -1, 1, 1, 1, 1])
    for row in predicted.rows()[1:]:
        assert {row["mean"], row["lower"], row["predictive_upper"]} == {None}
        assert row["is_extrapolated"] is False
    assert [row["origin"] for row in predicted.rows()] == ["JFK", None, None, "LGA", "LGA", "LGA", "LGA"]
    nothing = regression.predict({"origin": pa.array([], pa.string()), "departure": [], "distance": []})
    assert nothing.counts["rows"] == 0


def test_beyond_the_bounds_the_line_is_carried_on(regression: models.Regression) -> None:
    """On the bounds is within them; the departure of 100 is no clipped 60."""
    rows = {"origin": ["JFK"] * 4, "departure": [60, 100, -20, -20.5], "distance": [0, 900, 2000, 900]}
    predicted = regression.predict(rows)
    assert predicted.is_extrapolated.tolist() == [False, True, False, True]
    assert predicted.counts["extrapolated"] == 2
    assert abs(predicted.mean[1] - (INTERCEPT["JFK"] + 100 * SLOPES[0] + 900 * SLOPES[1])) < 3


def test_one_cell_needs_no_keys_and_keeps_to_those_that_are_there(release: Release) -> None:
    regression = models.regression(
        release, "arrival", where={"origin": "LGA"}, method="plug-in", prior=CONJUGATE, rng=1
    )
    plain = {"departure": [10.0, 10.0], "distance": [500, 500]}
    assert regression.predict(plain).cell.tolist() == [0, 0]
    assert regression.predict({**plain, "origin": ["JFK", "LGA"]}).cell.tolist() == [-1, 0]


def test_many_rows_are_predicted_as_one_by_one(
    regression: models.Regression, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(4)
    rows: dict[str, Any] = {
        "origin": rng.choice(PLACES, 50),
        "departure": rng.uniform(-20, 60, 50),
        "distance": rng.uniform(0, 2000, 50),
    }
    whole = regression.predict(rows)
    monkeypatch.setattr("suffice.pipeline.ask.models.regression._NUMBERS", 7 * 4000)
    parts = regression.predict(pa.table(rows))
    for name in ("mean", "lower", "upper", "predictive_lower", "predictive_upper"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-12)
    for place in (0, 49):
        alone = regression.predict({name: values[place : place + 1] for name, values in rows.items()})
        np.testing.assert_allclose(alone.predictive_lower, whole.predictive_lower[place], rtol=1e-12)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([1, None, 3]), [1, np.nan, 3]),
        (pa.array([2**63, 1, 0], pa.uint64()), [2**63, 1, 0]),
        (pa.array([True, False, None]), [1, 0, np.nan]),
        (pa.array([Decimal("1.5"), None, Decimal(2)]), [1.5, np.nan, 2]),
        (pa.array([1.5, float("inf"), float("nan")]), [1.5, np.nan, np.nan]),
        (pa.array([5, 5, None]).dictionary_encode(), [5, 5, np.nan]),
        (pa.nulls(2), [np.nan, np.nan]),
    ],
)
def test_columns_of_every_numeric_type_are_numbers(values: pa.Array, expected: list[float]) -> None:
    np.testing.assert_array_equal(numbers_of("x", values), expected)


def test_what_cannot_be_predicted_is_refused(release: Release, regression: models.Regression) -> None:
    with pytest.raises(UsageError, match=r"steps is markov_chain.*in this release that is arrival"):
        models.regression(release, "steps")
    with pytest.raises(UsageError, match="no column distance, from which arrival is predicted"):
        regression.predict({"origin": ["JFK"], "departure": [1.0]})
    with pytest.raises(UsageError, match="'origin'"):
        regression.predict({"departure": [1.0], "distance": [1.0]})
    with pytest.raises(UsageError, match="'departure' must hold numbers, and is of type string") as caught:
        regression.predict({**ROWS, "departure": ["secret"] * 3})
    assert "secret" not in str(caught.value)
    with pytest.raises(UsageError, match="not all of one length"):
        regression.predict({**ROWS, "departure": [1.0]})
    with pytest.raises(UsageError, match="mass"):
        regression.predict(ROWS, mass=1.5)


@pytest.mark.slow
def test_flights_are_predicted_as_without_noise(tmp_path: Path) -> None:
    """At epsilon 1: all of least squares lies in the intervals, and predictive intervals cover as often.

    The noise is a generator's, so that nothing here is left to chance. Credible intervals of what is
    expected, for control, hold far fewer outcomes.
    """
    rows = clipped_flights()
    coefficients, variance = least_squares(rows)
    np.testing.assert_allclose(coefficients, [1.02430, -0.002528, -3.298], rtol=2e-4)
    assert abs(variance - 310.28) < 0.005
    is_held_out = np.random.default_rng(15).random(len(rows["distance"])) < 0.03
    kept, held_out = (
        {name: of[chosen] for name, of in rows.items()} for chosen in (~is_held_out, is_held_out)
    )
    release = release_flights(tmp_path, kept, epsilon="1", seed=0)
    regression = models.regression(release, "delay", draws=1000, rng=1)
    drawn = regression.draws
    columns = np.column_stack([drawn["coefficient"][:, 0], drawn["intercept"][:, 0], drawn["variance"][:, 0]])
    lower, upper = np.quantile(columns, [0.025, 0.975], axis=0)
    assert np.all((lower < [*coefficients, variance]) & ([*coefficients, variance] < upper))
    outcome, predicted = held_out["arr_delay"], regression.predict(held_out)
    by_least_squares, residual = least_squares(kept)
    design = np.column_stack([held_out["dep_delay"], held_out["distance"], np.ones(len(outcome))])
    without_noise = np.mean(np.abs(outcome - design @ by_least_squares) <= 1.96 * np.sqrt(residual))
    is_held = (predicted.predictive_lower <= outcome) & (outcome <= predicted.predictive_upper)
    assert abs(np.mean(is_held) - without_noise) < 0.01
    assert np.mean((predicted.lower <= outcome) & (outcome <= predicted.upper)) < 0.1
