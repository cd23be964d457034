"""Regions of several columns' parameters: what bounded records have lies inside, and the ends are reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from suffice.errors import UsageError
from suffice.pipeline.ask.pooling.pool import pooled
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.math.distributions.regions import RegionOfColumns, RegionOfRegression, WithinSeveral
from suffice.pipeline.math.distributions.within_limits import unrestricted
from suffice.pipeline.math.engines.multivariate import column_posterior as posteriors
from support.joint import STEPS, plan_of, spec_of
from support.noisy import noisy_statistic

if TYPE_CHECKING:
    from suffice.pipeline.terms.statistics.sensitivity import Constants
    from suffice.typing import Floats

BOUNDS = ((0, 4), (-3, 1), (2, 10))
ROUNDING = 1e-6
"""By how much wider bounds may be so that what lies at them is within in spite of rounding."""
LOW, HIGH = np.array(BOUNDS, dtype=np.float64).T


def constants(*, linear: bool = True, wider: float = 0.0) -> Constants:
    first, second, third = (
        {name: {"lower": f"{low - wider:.9f}", "upper": f"{high + wider:.9f}"}}
        for name, (low, high) in zip("xyz", BOUNDS, strict=True)
    )
    entry = {"family": "linear_regression", "predictors": {**first, **second}, "outcome": third}
    return plan_of({**entry, "intercept": str(linear).lower()}, epsilon="1", public_n=False).parameters


def rows_at_bounds(rng: np.random.Generator) -> list[Floats]:
    """Few rows, many of them at a bound, so that moments lie at the edge as well as inside of it."""
    rows = []
    for _ in range(2000):
        share = rng.random((int(rng.integers(1, 7)), 3))
        ends = rng.random(share.shape) < rng.choice([0.0, 0.5, 1.0])
        rows.append(LOW + (HIGH - LOW) * np.where(ends, np.rint(share), share))
    return rows


def moments(rows: Floats) -> tuple[Floats, Floats]:
    covariance = np.cov(rows, rowvar=False, ddof=0)
    return rows.mean(axis=0), np.asarray(covariance)


@pytest.mark.slow
def test_moments_of_bounded_rows_lie_in_the_region_of_columns_up_to_its_edge() -> None:
    rng = np.random.default_rng(7)
    region, wider = (RegionOfColumns.of(constants(wider=wider)) for wider in (0.0, ROUNDING))
    first, second = np.triu_indices(3, 1)
    edges = []
    for rows in rows_at_bounds(rng):
        mean, covariance = moments(rows)
        variance, off = np.diag(covariance), covariance[first, second]
        flat = np.concatenate([mean, variance, off])[:, None]
        inside = region.named(flat)
        assert wider.inside(inside).all()
        for name in ("variance", "covariance"):
            more = {**inside, name: inside[name] * 1.01 + 1e-9 * np.sign(inside[name])}
            edges.append(bool(region.inside(more).all()))
    # Rows at bounds alone have variances, or covariances, than which there are none larger.
    assert 0.1 < np.mean(edges) < 0.9
    below = region.named(np.array([LOW[0] - 1e-6, 0, 4, 0, 0, 0, 0, 0, 0])[:, None])
    assert not region.inside(below).any()


@pytest.mark.parametrize("linear", [True, False])
def test_least_squares_of_bounded_rows_lie_in_the_region_of_regressions(linear: bool) -> None:
    rng = np.random.default_rng(7)
    region, wider = (
        RegionOfRegression.of(constants(linear=linear, wider=wider)) for wider in (0.0, ROUNDING)
    )
    for rows in rows_at_bounds(rng):
        design = np.column_stack([rows[:, :2], np.ones(len(rows))]) if linear else rows[:, :2]
        # Of any that least squares has, the least coefficients.
        coefficient, *_ = np.linalg.lstsq(design, rows[:, 2], rcond=None)
        variance = np.mean((rows[:, 2] - design @ coefficient) ** 2)
        fitted = region.named(np.array([*coefficient, variance])[:, None])
        assert wider.inside(fitted).all()
        most = 16.0 if linear else 100.0  # half the bounds' width, or the farther bound, squared
        assert not region.inside({**fitted, "variance": np.array([most * 1.001])}).any()


@pytest.mark.parametrize("family", ["columns", "regression"])
def test_what_is_moved_lies_in_the_region_and_what_is_inside_stays(family: str) -> None:
    rng = np.random.default_rng(7)
    kind = RegionOfColumns if family == "columns" else RegionOfRegression
    region, wider = kind.of(constants()), kind.of(constants(wider=ROUNDING))
    if family == "columns":
        mean = (LOW + HIGH) / 2.0 + rng.normal(0.0, 1.0, (500, 4, 3))
        root = rng.normal(0.0, 0.8, (500, 4, 3, 3))
        matrix = root @ np.swapaxes(root, 2, 3)
        first, second = np.triu_indices(3, 1)
        drawn = {
            "mean": mean,
            "variance": np.einsum("...ii->...i", matrix),
            "covariance": matrix[..., first, second],
        }
    else:
        drawn = {
            "coefficient": rng.normal(0.0, 1.0, (500, 4, 2)),
            "intercept": rng.normal(5.0, 8.0, (500, 4)),
            "variance": rng.gamma(1.0, 8.0, (500, 4)),
        }
    inside = region.inside(drawn)
    assert 0.01 < inside.mean() < 0.9
    moved = region.nearest(drawn)
    assert wider.inside(moved).all()
    for name, values in moved.items():
        assert values[inside] == pytest.approx(drawn[name][inside], rel=1e-9)


UNIT = {"lower": -1, "upper": 1}
ENTRIES = {
    "multivariate_normal": {"family": "multivariate_normal", "columns": {"x": UNIT, "y": UNIT}},
    "linear_regression": {
        "family": "linear_regression",
        "predictors": {"x": UNIT},
        "outcome": {"y": UNIT},
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("family", list(ENTRIES))
def test_nothing_of_noisy_cells_lies_outside_of_what_bounded_columns_can_have(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first cell, of few rows and much noise, is cut off, as draws left out tell; the second is not."""
    monkeypatch.setattr(posteriors, "lengths", lambda _: (16, 256))
    plan = plan_of(ENTRIES[family], epsilon="0.2", public_n=False)
    spec = spec_of(ENTRIES[family], epsilon="0.2", public_n=False).statistics["s"]
    # Rows, sums of x and y, of x^2, x y and y^2.
    each = np.array([1.0, 0.5, 0.5, 0.34, 0.31, 0.41]) * STEPS ** np.array([0, 1, 1, 2, 2, 2])
    sums = np.array([[int(rows * moment) for moment in each] for rows in (30, 40_000)], dtype=object)
    statistic = noisy_statistic(plan, FAMILIES[family].totals(spec, plan.design, sums))
    posterior = posterior_of(statistic)
    restricted = posterior.distribution
    assert isinstance(restricted, WithinSeveral)
    assert restricted.cut.tolist() == [True, False]
    drawn = posterior.sample(4000, 0)
    plain = unrestricted(restricted).sample(20_000, np.random.default_rng(1))
    assert restricted.region.inside(drawn).all()
    inside = restricted.region.inside(plain)
    assert inside[:, 0].mean() < 0.99
    for name, values in plain.items():
        kept = values[inside[:, 0], 0]
        sd = kept.std(axis=0)
        room = 7.0 * sd * np.sqrt(1 / 8000 + 1 / len(kept) + 1 / 300)
        assert np.all(np.abs(posterior.mean(name)[0] - kept.mean(axis=0)) < room)
        for q in (0.1, 0.9):
            below = np.mean(drawn[name][:, 0] < np.quantile(kept, q, axis=0), axis=0)
            assert np.all(np.abs(below - q) < 0.08)
    assert "as the public bounds leave them" in posterior.estimand
    assert posterior.models_clipping is None


@pytest.mark.parametrize("family", list(ENTRIES))
def test_clipping_of_several_columns_is_refused_by_name(family: str) -> None:
    plan = plan_of(ENTRIES[family], epsilon="1", public_n=False)
    statistic = noisy_statistic(plan, np.zeros((1, len(plan.components)), dtype=object))
    with pytest.raises(UsageError, match=f"s cannot be modelled: of {family} there is no model"):
        posterior_of(statistic, clipping="modelled")
    with pytest.raises(UsageError, match="there is no model"):
        pooled(
            [statistic, statistic],
            prior=None,
            n_prior=None,
            clipping="modelled",
            rng=np.random.default_rng(7),
        )
