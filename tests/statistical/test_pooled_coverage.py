"""Posteriors from several releases hold the truth as often as they say, on average over their priors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pytest
from scipy.stats import binom

from suffice.pipeline.inference import noise_aware_posterior, plug_in_posterior
from suffice.pipeline.n_prior import Uniform
from suffice.pipeline.pooling.releases import pooled, seen_again
from support.noisy import discrete_laplace, noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.posterior import Posterior
    from suffice.pipeline.release import NoisyStatistic

    Ranks: TypeAlias = NDArray[np.int64]
    Floats: TypeAlias = NDArray[np.float64]

DRAWS = 199
LEVELS = {0.5: 50, 0.8: 20, 0.95: 5}
"""By mass, the ranks on either side that its interval leaves out."""
FAMILIES: dict[str, dict[str, Any]] = {
    "bernoulli": {"family": "bernoulli"},
    "categorical": {"family": "categorical", "categories": ["a", "b", "c"]},
}
CASES = [(family, kind, n) for family in FAMILIES for kind in ("disjoint", "same_data") for n in (20, 500)]
FALSE_ALARM = 1e-6 / (len(CASES) * len(LEVELS))
"""Two-sided, of one level of one case: 1e-6 over the whole file."""
EPSILONS = ("0.1", "0.5", "1")


def simulate(
    family: str, kind: str, n: int, cells: int, rng: np.random.Generator
) -> tuple[list[NoisyStatistic], Floats]:
    """Releases of cells whose truths come from the prior, and the truths of the first category or of true."""
    plans = [statistic_plan(FAMILIES[family], epsilon=epsilon, public_n=False) for epsilon in EPSILONS]
    truth = rng.dirichlet(np.ones(len(plans[0].components)), cells)
    exact = None
    released = []
    for plan in plans:
        if exact is None or kind == "disjoint":
            exact = rng.multinomial(rng.integers(0, 2 * n, cells, endpoint=True), truth)
        released.append(noisy_statistic(plan, exact + discrete_laplace(plan.scale, exact.shape, rng)))
    return released, truth[:, 1] if family == "bernoulli" else truth[:, 0]


def covered(posterior: Posterior, truth: Floats, rng: np.random.Generator) -> dict[float, int]:
    draws = posterior.sample(DRAWS, rng)["probability"]
    ranks: Ranks = np.sum((draws if draws.ndim == 2 else draws[..., 0]) < truth, axis=0)
    return {mass: int(np.sum((ranks >= out) & (ranks <= DRAWS - out))) for mass, out in LEVELS.items()}


def is_nominal(mass: float, count: int, cells: int) -> bool:
    low, high = binom.ppf(FALSE_ALARM / 2, cells, mass), binom.isf(FALSE_ALARM / 2, cells, mass)
    return bool(low <= count <= high)


@pytest.mark.parametrize(
    ("family", "kind", "n", "cells"),
    [
        *(pytest.param(*case, 512) for case in CASES if case[1] == "same_data"),
        *(pytest.param(*case, 96) for case in CASES if case[:2] == ("bernoulli", "disjoint")),
        *(pytest.param(*case, 1000, marks=[pytest.mark.audit, pytest.mark.timeout(3600)]) for case in CASES),
    ],
)
def test_posteriors_of_several_releases_cover_nominally(family: str, kind: str, n: int, cells: int) -> None:
    rng = np.random.default_rng()
    released, truth = simulate(family, kind, n, cells, rng)
    n_prior = Uniform(0, 2 * n)
    posterior = (
        pooled(released, prior=None, n_prior=n_prior, rng=rng)
        if kind == "disjoint"
        else noise_aware_posterior(seen_again(released), n_prior=n_prior)
    )
    counts = covered(posterior, truth, rng)
    shares = {mass: count / cells for mass, count in counts.items()}
    assert all(is_nominal(mass, count, cells) for mass, count in counts.items()), shares


@pytest.mark.parametrize("family", list(FAMILIES))
def test_sums_of_noisy_counts_taken_for_exact_fail_the_same_test(family: str) -> None:
    rng, cells = np.random.default_rng(), 512
    released, truth = simulate(family, "disjoint", 20, cells, rng)
    added = noisy_statistic(released[0].plan, np.sum([part.values for part in released], axis=0))
    counts = covered(plug_in_posterior(added), truth, rng)
    assert not any(is_nominal(mass, count, cells) for mass, count in counts.items())


@pytest.mark.audit
def test_one_data_set_released_three_times_is_not_three_data_sets() -> None:
    """Intervals are too narrow by a factor of nearly sqrt(3) where noise is small."""
    rng, cells, n = np.random.default_rng(), 256, 5000
    released, truth = simulate("bernoulli", "same_data", n, cells, rng)
    posterior = pooled(released, prior=None, n_prior=Uniform(0, 2 * n), rng=rng)
    counts = covered(posterior, truth, rng)
    assert not all(is_nominal(mass, count, cells) for mass, count in counts.items())
