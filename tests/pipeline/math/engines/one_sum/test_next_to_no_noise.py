"""Sums behind next to no noise: one pair of N and S has all of the mass."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta

from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from support.noisy import noisy_statistic
from support.releases import make_plan


@pytest.mark.parametrize("epsilon", ["800", "1000", "5000"])
@pytest.mark.parametrize("counts", [(100_000, 3), (1_000_000, 2), (300, 700)])
def test_the_posterior_is_that_of_exact_counts(epsilon: str, counts: tuple[int, int]) -> None:
    plan = make_plan(
        groups=None,
        privacy={"epsilon": epsilon, "neighboring": "add_or_remove_one"},
        statistics={"cancelled": {"family": "bernoulli", "column": "c"}},
    )
    statistic = noisy_statistic(plan.statistics[0], np.array([counts], dtype=object))
    posterior = posterior_of(statistic, prior="Beta(1, 1)")
    no, yes = counts
    exact = beta(1 + yes, 1 + no)
    assert posterior.mean("probability")[0] == pytest.approx(exact.mean(), rel=1e-9)
    assert posterior.sd("probability")[0] == pytest.approx(exact.std(), rel=1e-6)
    assert np.isfinite(posterior.log_evidence[0])
