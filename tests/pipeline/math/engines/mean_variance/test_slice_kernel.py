"""Likelihoods of clipped records by compiled loops against those of arrays, and where rounding is all."""

from __future__ import annotations

import numpy as np
import pytest

from suffice.pipeline.families import normal
from suffice.pipeline.math.engines.mean_variance.clipped_records import ClippedRecords
from suffice.pipeline.math.engines.mean_variance.likelihood import LatentRows
from suffice.pipeline.math.priors.mixtures import ScaleMixture
from suffice.pipeline.math.priors.record_count import Reciprocal
from support.noisy import noisy_statistic, statistic_plan

STEPS = 1 << 16
DEPTH = 20.0
ALIKE = 1e-9
"""What other orders of the same sums may change, beside 1 and the number itself."""
PLACES = np.sinh(np.linspace(-12.0, 12.0, 60))[None], np.linspace(-40.0, 40.0, 60)[None]
"""Means and log variances of which next to none, some, or next to all records are clipped."""


def latent_rows(n: int, mean: float, sd: float, *, by_loops: bool) -> LatentRows:
    """Return the likelihood of clipped records of a sample, its noise of about one scale."""
    plan = statistic_plan({"family": "normal", "lower": "-1", "upper": "1"}, epsilon="1", public_n=False)
    x = np.rint(np.clip(np.random.default_rng(n).normal(mean, sd, n), -1.0, 1.0) * STEPS).astype(object)
    sums = np.array([[n, x.sum(), (x * x).sum()]], dtype=object)
    spec = normal.NormalSpec.model_validate(
        {"family": "normal", "column": "x", "lower": "-1", "upper": "1"}, strict=False
    )
    noise = np.array([[round(share * plan.scale) for share in (0.7, -0.5, 1.2)]], dtype=object)
    values = normal.totals(spec, plan.design, sums) + noise
    noisy = normal.noisy_moments(noisy_statistic(plan, values), ScaleMixture(-1.0, 1.0), Reciprocal(n + 50))
    return LatentRows.of(noisy, DEPTH, clips=True, by_loops=by_loops)


@pytest.mark.slow
def test_moments_are_those_of_arrays() -> None:
    mean, log_variance = PLACES[0][:, :, None], PLACES[1][:, None, :]
    of_arrays, of_loops = (ClippedRecords.of(mean, log_variance, by_loops=loops) for loops in (False, True))
    for name in ("mean", "variance", "skewed", "kurtosis"):
        np.testing.assert_allclose(getattr(of_loops, name), getattr(of_arrays, name), rtol=1e-9, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "mean", "sd"),
    [(2, 0.3, 0.3), (40, 0.5, 0.5), (900, 0.1, 0.45), (900, 0.0, 30.0), (900, 20.0, 0.2), (5000, -1.4, 1.0)],
)
def test_likelihoods_are_those_of_arrays(n: int, mean: float, sd: float) -> None:
    of_arrays, of_loops = (
        latent_rows(n, mean, sd, by_loops=loops).log_likelihood(*PLACES) for loops in (False, True)
    )
    np.testing.assert_allclose(of_loops, of_arrays, rtol=ALIKE, atol=ALIKE)


@pytest.mark.parametrize("by_loops", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_likelihood_of_records_at_one_bound_is_flat(by_loops: bool) -> None:
    """However far beyond the bound the mean is: what rounding leaves of higher moments changes nothing."""
    rows = latent_rows(900, 20.0, 0.2, by_loops=by_loops)
    sds_away = np.linspace(6.5, 30.0, 200)
    for log_variance in np.linspace(-8.0, 14.0, 12):
        mean = 1.0 + sds_away * np.exp(log_variance / 2.0)
        value = rows.log_likelihood(mean[None], np.array([[log_variance]]))
        assert np.ptp(value) < 1e-6
