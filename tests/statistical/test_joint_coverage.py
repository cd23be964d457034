"""Do intervals of several columns' posteriors cover the truth as often as they say?

Truths come from the priors, N's included; moments from the model, noise from the release's law. With the
right posterior a truth's rank among its draws is uniform.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from suffice.pipeline.inference import posterior_of
from suffice.pipeline.joint_priors import NormalInverseGammaRegression, NormalInverseWishart
from suffice.pipeline.n_prior import Uniform
from support.joint import plan_of, simulate
from support.noisy import discrete_laplace, noisy_statistic

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNIT = {"lower": -1, "upper": 1}
FAMILIES: dict[str, tuple[dict[str, Any], Any]] = {
    "multivariate_normal": (
        {"family": "multivariate_normal", "columns": {"x": UNIT, "y": UNIT}},
        NormalInverseWishart(0, 2, 9, [[0.5, 0.2], [0.2, 0.5]]),
    ),
    "linear_regression": (
        {"family": "linear_regression", "predictors": {"x": UNIT}, "outcome": {"y": UNIT}},
        NormalInverseGammaRegression([0.5, 0], [1, 4], 4, 0.3),
    ),
    "without_intercept": (
        {
            "family": "linear_regression",
            "predictors": {"x": UNIT},
            "outcome": {"y": UNIT},
            "intercept": False,
        },
        NormalInverseGammaRegression(0.5, 1, 4, 0.3),
    ),
}
SETTINGS = {
    "multivariate_normal": [("0.1", 20, False), ("0.1", 1000, True)],
    "linear_regression": [("1", 20, False)],
}
"""Epsilon, N and whether it is public; the audit has every combination."""
DRAWS = 99


def ranks(
    name: str,
    epsilon: str,
    n: int,
    simulations: int,
    *,
    public_n: bool,
    method: str = "noise-aware",
    believed: float = 1.0,
) -> NDArray[np.float64]:
    """Return the share of posterior draws below the truth, (simulations, parameters).

    The posterior takes `believed` times the noise's scale for the noise's scale.
    """
    rng = np.random.default_rng()
    entry, prior = FAMILIES[name]
    plan = plan_of(entry, epsilon=epsilon, public_n=public_n)
    sizes = np.full(simulations, n) if public_n else rng.integers(4, 2 * n + 1, simulations)
    truth, totals = simulate(entry, prior, sizes, epsilon=epsilon, public_n=public_n, rng=rng)
    values = totals + discrete_laplace(plan.scale, totals.shape, rng).astype(object)
    statistic = noisy_statistic(
        dataclasses.replace(plan, scale=believed * plan.scale), values, public_n=n if public_n else None
    )
    latent = method == "noise-aware" and not public_n
    posterior = posterior_of(
        statistic, method=method, prior=prior, n_prior=Uniform(4, 2 * n) if latent else None
    )
    drawn = posterior.sample(DRAWS, rng)
    flat = [drawn[parameter].reshape(DRAWS, simulations, -1) for parameter in posterior.parameters]
    shares: NDArray[np.float64] = np.mean(np.concatenate(flat, axis=2) < truth, axis=0)
    return shares


def covered(shares: NDArray[np.float64], mass: float) -> NDArray[np.int64]:
    """How many truths lie in the central interval of this mass, by parameter."""
    inside: NDArray[np.int64] = np.sum(np.abs(shares - 0.5) < mass / 2, axis=0)
    return inside


def check(shares: NDArray[np.float64], alarm: float) -> None:
    """Coverage at 50, 80 and 95 percent, each parameter: together a false alarm of at most `alarm`."""
    simulations, parameters = shares.shape
    each = alarm / (6 * parameters)
    for mass in (0.5, 0.8, 0.95):
        # Of 99 draws as many may lie below as 0..99: the interval holds this many of the 100 outcomes.
        outcomes = np.sum(np.abs(np.arange(DRAWS + 1) / DRAWS - 0.5) < mass / 2) / (DRAWS + 1)
        lower, upper = (stats.binom.ppf(tail, simulations, outcomes) for tail in (each, 1 - each))
        inside = covered(shares, mass)
        assert (lower <= inside).all(), (mass, inside / simulations)
        assert (inside <= upper).all(), (mass, inside / simulations)


@pytest.mark.parametrize("name", SETTINGS)
def test_intervals_cover_as_often_as_they_say(name: str) -> None:
    """False alarm: 1e-7 for each family."""
    parts = [
        ranks(name, epsilon, n, 80 // len(SETTINGS[name]), public_n=public_n)
        for epsilon, n, public_n in SETTINGS[name]
    ]
    check(np.concatenate(parts), 1e-7)


@pytest.mark.parametrize("name", FAMILIES)
def test_taking_noise_for_data_is_caught(name: str) -> None:
    """A control: 95 % intervals of the plug-in at small N hold under 20 %; 80 % of 200 never (1e-70)."""
    plug_in = ranks(name, "0.1", 20, 200, public_n=True, method="plug-in")
    with pytest.raises(AssertionError):
        check(plug_in, 1e-7)
    assert (covered(plug_in, 0.95).min() < 0.8 * 200).all()


@pytest.mark.audit
def test_believing_in_a_quarter_of_the_noise_is_caught() -> None:
    """A control: intervals of 80 percent hold 31 to 45 (80 simulations): 400 pass with chance below 1e-9."""
    with pytest.raises(AssertionError):
        check(ranks("multivariate_normal", "0.1", 2000, 400, public_n=True, believed=0.25), 1e-7)


@pytest.mark.audit
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1"])
@pytest.mark.parametrize("n", [20, 100, 1000, 10000])
@pytest.mark.parametrize("public_n", [False, True])
@pytest.mark.parametrize("name", FAMILIES)
def test_intervals_cover_in_the_long_audit(name: str, public_n: bool, n: int, epsilon: str) -> None:
    shares = ranks(name, epsilon, n, 1000, public_n=public_n)
    check(shares, 1e-6)
    for parameter in range(shares.shape[1]):
        counts = np.histogram(shares[:, parameter], bins=20, range=(0, 1 + 1e-9))[0]
        assert stats.chisquare(counts).pvalue > 1e-8
