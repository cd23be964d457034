"""Coverage: truth and N drawn from their priors, so an exact posterior has to cover exactly nominally.

The truth's rank among 199 exact draws is then uniform on 0..199, for every problem, and a central interval of
mass m covers with probability m. N is fixed where it is public and drawn from its prior where it is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pytest
from scipy.stats import binom

from suffice.pipeline.inference import posterior_of
from suffice.pipeline.n_prior import Uniform
from support.noisy import discrete_laplace, noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.posterior import Posterior

    Ranks: TypeAlias = NDArray[np.int64]

CELLS = 1000
DRAWS = 199
LEVELS = {0.5: 50, 0.8: 20, 0.95: 5}
"""By mass, the ranks on either side that its interval leaves out."""

FAMILIES: dict[str, dict[str, Any]] = {
    "bernoulli": {"family": "bernoulli"},
    "categorical": {"family": "categorical", "categories": ["a", "b", "c", "d"], "other": "true"},
}
CASES = [
    (family, public_n, n, epsilon)
    for family in FAMILIES
    for public_n in (False, True)
    for n in (20, 1000)
    for epsilon in ("0.1", "1")
]
FALSE_ALARM = 1e-6 / (len(CASES) * len(LEVELS))
"""Two-sided, of one level of one case: 1e-6 over the whole file."""


def simulate(
    family: str, public_n: bool, n: int, epsilon: str, method: str, rng: np.random.Generator
) -> Ranks:
    """Ranks of the truth among draws of the posterior, one a cell, of the first category or of true."""
    plan = statistic_plan(FAMILIES[family], epsilon=epsilon, public_n=public_n)
    categories = len(plan.parameters.categories) or 2
    truth = rng.dirichlet(np.ones(categories), CELLS)
    prior = Uniform(0, 2 * n)
    rows = np.full(CELLS, n) if public_n else rng.integers(0, 2 * n, CELLS, endpoint=True)
    exact = rng.multinomial(rows, truth)[:, -len(plan.components) :]
    values = exact + discrete_laplace(plan.scale, exact.shape, rng)
    posterior: Posterior = posterior_of(
        noisy_statistic(plan, values, public_n=n if public_n else None),
        method=method,
        n_prior=None if public_n or method == "plug-in" else prior,
    )
    draws = posterior.sample(DRAWS, rng)["probability"]
    first = draws if family == "bernoulli" else draws[..., 0]
    truth_of = truth[:, 1] if family == "bernoulli" else truth[:, 0]
    ranks: Ranks = np.sum(first < truth_of, axis=0)
    return ranks


def covered(ranks: Ranks) -> dict[float, int]:
    return {mass: int(np.sum((ranks >= out) & (ranks <= DRAWS - out))) for mass, out in LEVELS.items()}


def is_nominal(mass: float, count: int) -> bool:
    low = float(binom.ppf(FALSE_ALARM / 2, CELLS, mass))
    high = float(binom.isf(FALSE_ALARM / 2, CELLS, mass))
    return low <= count <= high


@pytest.mark.parametrize(("family", "public_n", "n", "epsilon"), CASES)
def test_noise_aware_posteriors_cover_nominally(family: str, public_n: bool, n: int, epsilon: str) -> None:
    counts = covered(simulate(family, public_n, n, epsilon, "noise-aware", np.random.default_rng()))
    shares = {mass: count / CELLS for mass, count in counts.items()}
    assert all(is_nominal(mass, count) for mass, count in counts.items()), shares


@pytest.mark.parametrize("public_n", [False, True])
@pytest.mark.parametrize("family", list(FAMILIES))
def test_plug_in_posteriors_of_few_rows_fail_the_same_test(family: str, public_n: bool) -> None:
    counts = covered(simulate(family, public_n, 20, "0.1", "plug-in", np.random.default_rng()))
    assert not any(is_nominal(mass, count) for mass, count in counts.items())
