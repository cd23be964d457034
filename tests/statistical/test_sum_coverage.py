"""Coverage in families with one sum, as in `test_posterior_coverage.py`.

Truth and N come from their priors and sums from their own distributions, without clipping. The intervals are
those of the distribution function, which rest on no draws.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pytest
from scipy.stats import binom

from suffice.pipeline.math.distributions.dirichlet import Beta
from suffice.pipeline.math.distributions.gamma import Gamma, InverseGamma
from suffice.pipeline.math.distributions.normal import Normal
from suffice.pipeline.math.priors.record_count import Uniform
from support.noisy import discrete_laplace, noisy_statistic, statistic_plan
from support.unrestricted import unrestricted_posterior

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from suffice.pipeline.math.distributions.distribution import Prior
    from suffice.typing import Floats

    Draw: TypeAlias = Callable[[Floats, Floats, np.random.Generator], NDArray[np.float64 | np.int64]]

CELLS = 100
AUDIT_CELLS = 1000
CONTROL_CELLS = 300
MASSES = (0.5, 0.8, 0.95)


@dataclass(frozen=True, kw_only=True)
class Sum:
    """A family with one sum: its entry, a prior, and draws of sums of T given the truth and the rows."""

    entry: dict[str, str]
    prior: Prior
    draw: Draw

    def truth(self, cells: int, rng: np.random.Generator) -> Floats:
        match self.prior:
            case Beta(concentration1, concentration0):
                return rng.beta(concentration1, concentration0, cells)
            case Gamma(concentration, rate):
                return rng.gamma(concentration, 1.0 / rate, cells)
            case InverseGamma(concentration, scale):
                return scale / rng.gamma(concentration, 1.0, cells)
            case Normal(loc, scale):
                return rng.normal(loc, scale, cells)
        raise TypeError(self.prior)


def gammas(shape: float) -> Draw:
    return lambda rate, rows, rng: rng.standard_gamma(shape * rows) / rate


def failures(successes: float) -> Draw:
    return lambda p, rows, rng: rng.poisson(rng.standard_gamma(successes * rows) * (1 - p) / p).astype(float)


SUMS = {
    "binomial": Sum(
        entry={"trials": "6"},
        prior=Beta(1, 1),
        draw=lambda p, rows, rng: rng.binomial(rows.astype(int) * 6, p),
    ),
    "poisson": Sum(
        entry={"upper": "20"}, prior=Gamma(2, 0.5), draw=lambda rate, rows, rng: rng.poisson(rate * rows)
    ),
    "geometric": Sum(entry={"upper": "20"}, prior=Beta(3, 2), draw=failures(1.0)),
    "negative_binomial": Sum(entry={"successes": "2.5", "upper": "40"}, prior=Beta(4, 3), draw=failures(2.5)),
    "exponential": Sum(entry={"upper": "10"}, prior=Gamma(2, 3), draw=gammas(1.0)),
    "gamma": Sum(entry={"shape": "2", "upper": "10"}, prior=Gamma(2, 2), draw=gammas(2.0)),
    "weibull": Sum(entry={"shape": "2", "upper": "4"}, prior=Gamma(2, 3), draw=gammas(1.0)),
    "pareto": Sum(entry={"minimum": "1", "upper": "1000"}, prior=Gamma(3, 2), draw=gammas(1.0)),
    "laplace": Sum(
        entry={"location": "0", "half_range": "15"},
        prior=InverseGamma(3, 4),
        draw=lambda scale, rows, rng: scale * rng.standard_gamma(rows),
    ),
    "normal_known_mean": Sum(
        entry={"mean": "0", "half_range": "6"},
        prior=InverseGamma(3, 4),
        draw=lambda variance, rows, rng: 2 * variance * rng.standard_gamma(rows / 2),
    ),
    "normal_known_variance": Sum(
        entry={"variance": "4", "lower": "-10", "upper": "10"},
        prior=Normal(1, 2),
        draw=lambda mean, rows, rng: rng.normal(mean * rows, 2 * np.sqrt(rows)),
    ),
}
SETTINGS = [
    (public_n, n, epsilon) for public_n in (False, True) for n in (20, 1000) for epsilon in ("0.1", "1")
]
SHORT = [(False, 20, "0.1"), (False, 20, "1"), (True, 20, "1"), (True, 1000, "0.1")]
"""Few rows with N latent, and settings that `test_calibration.py` leaves out; the audit takes all of them."""
CASES = [
    pytest.param(family, *setting, cells, marks=marks)
    for family in SUMS
    for settings, cells, marks in ((SHORT, CELLS, ()), (SETTINGS, AUDIT_CELLS, pytest.mark.audit))
    for setting in settings
]
FALSE_ALARM = 1e-6 / (len(CASES) * len(MASSES))
"""Two-sided, of one level of one case: 1e-6 over the whole file, the audit's cases included."""


def is_nominal(mass: float, count: int, cells: int) -> bool:
    low = float(binom.ppf(FALSE_ALARM / 2, cells, mass))
    high = float(binom.isf(FALSE_ALARM / 2, cells, mass))
    return low <= count <= high


def covered_sums(
    family: str,
    public_n: bool,
    n: int,
    epsilon: str,
    *,
    cells: int,
    method: str = "noise-aware",
    believed_scale: float = 1.0,
) -> dict[float, int]:
    """How many cells' intervals cover, by mass; the posterior believes in this multiple of the scale."""
    rng, case = np.random.default_rng(), SUMS[family]
    plan = statistic_plan({"family": family, **case.entry}, epsilon=epsilon, public_n=public_n)
    lower, upper = float(plan.parameters.lower or 0), float(plan.parameters.upper or 0)
    truth = case.truth(cells, rng)
    rows = np.full(cells, n) if public_n else rng.integers(0, 2 * n, cells, endpoint=True)
    total = case.draw(truth, rows.astype(float), rng)
    reach = plan.partition_total or plan.l1_sensitivity
    lowest = -(reach // 2) if family == "normal_known_variance" else 0
    first = np.rint((total - lower * rows) / (upper - lower) * reach).astype(np.int64)
    exact = np.stack([first, reach * rows - first], axis=1)
    if public_n:
        exact = (first + lowest * rows)[:, None]
    values = exact + discrete_laplace(plan.scale, exact.shape, rng)
    posterior = unrestricted_posterior(
        noisy_statistic(
            dataclasses.replace(plan, scale=plan.scale * believed_scale),
            values,
            public_n=n if public_n else None,
        ),
        method=method,
        prior=case.prior,
        n_prior=None if public_n or method == "plug-in" else Uniform(0, 2 * n),
        clipping="ignored",  # sums are drawn as a whole, and nothing clips their records
    )
    (parameter,) = posterior.parameters
    counts = {}
    for mass in MASSES:
        low, high = posterior.credible_interval(parameter, mass).T
        counts[mass] = int(np.sum((low < truth) & (truth < high)))
    return counts


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("family", "public_n", "n", "epsilon", "cells"), CASES)
def test_noise_aware_posteriors_of_sums_cover_nominally(
    family: str, public_n: bool, n: int, epsilon: str, cells: int
) -> None:
    counts = covered_sums(family, public_n, n, epsilon, cells=cells)
    shares = {mass: count / cells for mass, count in counts.items()}
    assert all(is_nominal(mass, count, cells) for mass, count in counts.items()), shares


@pytest.mark.parametrize("public_n", [False, True])
@pytest.mark.parametrize("family", list(SUMS))
def test_plug_in_posteriors_of_few_sums_fail_the_same_test(family: str, public_n: bool) -> None:
    """Their 95 % intervals cover under 40 % in every family: 300 cells pass with chance below 1e-30."""
    counts = covered_sums(family, public_n, 20, "0.1", cells=CONTROL_CELLS, method="plug-in")
    assert not all(is_nominal(mass, count, CONTROL_CELLS) for mass, count in counts.items())


@pytest.mark.parametrize("family", list(SUMS))
def test_a_tenth_of_the_noise_fails_the_same_test(family: str) -> None:
    """80 % intervals cover under 46 %, 95 % ones under 64 %: 300 cells pass with chance 1e-13 at most."""
    counts = covered_sums(family, public_n=True, n=20, epsilon="0.5", cells=CONTROL_CELLS, believed_scale=0.1)
    assert not all(is_nominal(mass, count, CONTROL_CELLS) for mass, count in counts.items())
