r"""What a private posterior loses to the data themselves as N grows: nothing.

With ``p`` known and data drawn from it, :math:`N \, \mathrm{E}(\hat p - p)^2 / p(1 - p)` tends to 1 for the
posterior mean and to 2 for a single draw, as it does without noise (Foulds et al. 2016).
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.stats import chi2

from support.noisy import discrete_laplace, noisy_statistic, statistic_plan
from support.unrestricted import unrestricted_posterior

if TYPE_CHECKING:
    from suffice.typing import Floats


P = 0.3
DETECTABLE = 0.25
"""Relative error of an efficiency that is found out."""
FALSE_ALARM = 1e-6 / 4
"""Two-sided, of one of the four comparisons below."""
REACH = DETECTABLE / 2


def chance_beyond_reach(releases: int) -> float:
    """Of a mean of squares of normal errors: it is a chi square, skewed even where there are thousands."""
    squares = chi2(releases)
    return float(squares.cdf(releases * (1 - REACH)) + squares.sf(releases * (1 + REACH)))


RELEASES = next(number for number in itertools.count(1000, 50) if chance_beyond_reach(number) <= FALSE_ALARM)


def efficiencies(n: int, epsilon: str, public_n: bool) -> tuple[float, float]:
    """Of the posterior mean, and of one posterior draw, over so many releases of data with the same p."""
    rng = np.random.default_rng()
    plan = statistic_plan({"family": "bernoulli"}, epsilon=epsilon, public_n=public_n)
    true = rng.binomial(n, P, RELEASES)
    exact = np.stack([n - true, true], axis=1)[:, -len(plan.components) :]
    values = exact + discrete_laplace(plan.scale, exact.shape, rng)
    posterior = unrestricted_posterior(noisy_statistic(plan, values, public_n=n if public_n else None))
    mean: Floats = posterior.mean("probability")
    draw: Floats = posterior.sample(1, rng)["probability"][0]
    of_mean, of_draw = (float(n * np.mean((values - P) ** 2) / (P * (1 - P))) for values in (mean, draw))
    return of_mean, of_draw


@pytest.mark.slow
@pytest.mark.parametrize("public_n", [False, True])
def test_nothing_is_lost_as_n_grows(public_n: bool) -> None:
    of_mean, of_draw = efficiencies(1_000_000, "1", public_n)
    assert of_mean == pytest.approx(1.0, rel=REACH)
    assert of_draw == pytest.approx(2.0, rel=REACH)


def test_where_noise_matters_the_same_test_fails() -> None:
    """Noise of scale 10 nearly doubles the error: both efficiencies are ten standard errors beyond."""
    of_mean, of_draw = efficiencies(1_000, "0.1", public_n=True)
    assert of_mean > 1.0 + DETECTABLE
    assert of_draw > 2.0 * (1.0 + DETECTABLE)
