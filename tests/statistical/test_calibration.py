"""Every noise-aware posterior is calibrated: truth, N, data and noise simulated, ranks uniform.

A family that gets a noise-aware posterior and a simulator is picked up by itself; it needs an entry in
`tests/support/worlds.py` that says under which conditions next to nothing is clipped.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import bdtr, bdtrc, chdtrc

from suffice.pipeline.posterior import PLUG_IN
from suffice.pipeline.verdict import BINS
from support.audit import (
    EPSILONS,
    MOST_CLIPPED,
    ROWS,
    SIMULATIONS,
    TOLERANCE,
    Problem,
    problems,
    ranks_of,
    within,
)
from support.worlds import CONDITIONS, noise_aware_families

FAMILIES = noise_aware_families()
FEW = 400
SHORT = [
    problem
    for problem in problems(FAMILIES, (20, 1000), ("0.1", "1"))
    if (problem.n, problem.epsilon) in {(20, "0.1"), (1000, "1")}
]
FALSE_ALARM = 1e-6 / (8 * max(1, len(SHORT)))
"""Of one check of one parameter, of which there are at most 8 a problem: 1e-6 over all."""


def test_every_family_that_can_be_calibrated_is() -> None:
    assert set(FAMILIES) <= set(CONDITIONS)
    assert {"bernoulli", "categorical"} <= set(FAMILIES)
    assert MOST_CLIPPED * max(ROWS) < 1


def test_the_tolerances_have_the_stated_false_alarm_rate() -> None:
    """A calibrated parameter of one problem is called otherwise with chance 4e-7, by exact binomials."""
    chance = 0.0
    for mass, tolerance in TOLERANCE.items():
        low = np.ceil(SIMULATIONS * (mass - tolerance))
        high = np.floor(SIMULATIONS * (mass + tolerance))
        chance += bdtr(low - 1, SIMULATIONS, mass) + bdtrc(high, SIMULATIONS, mass)
    assert 1e-7 < chance < 4e-7
    # One of the audit's 24 problems a family, two parameters each, over fifteen families.
    assert 4e-7 * 2 * len(ROWS) * len(EPSILONS) * (len(CONDITIONS) + 3) < 1e-4 * 2


@pytest.mark.parametrize("problem", SHORT, ids=str)
def test_noise_aware_posteriors_are_calibrated(problem: Problem) -> None:
    for ranks in ranks_of(problem, simulations=FEW):
        assert min(ranks.p_values()) > FALSE_ALARM, ranks.p_values()


@pytest.mark.parametrize("problem", [one for one in SHORT if one.n == 20], ids=str)
def test_the_controls_fail_the_same_check(problem: Problem) -> None:
    """At N = 20 and epsilon = 0.1 the noise is larger than the sampling error, whatever the family."""
    plug_in = ranks_of(problem, method=PLUG_IN, simulations=FEW)
    assert all(min(ranks.p_values()) < FALSE_ALARM for ranks in plug_in)


@pytest.mark.audit
@pytest.mark.timeout(1200)
def test_all_noise_aware_posteriors_are_calibrated() -> None:
    """Coverage of every parameter of every problem, and one test of all the ranks together at 1e-6."""
    outside, chi_square, freedom = [], 0.0, 0
    for problem in problems(FAMILIES):
        for ranks in ranks_of(problem):
            chi_square, freedom = chi_square + ranks.chi_square, freedom + BINS - 1
            if not within(ranks):
                outside.append((str(problem), ranks.parameter, [ranks.coverage(mass) for mass in TOLERANCE]))
    assert not outside
    assert chdtrc(freedom, chi_square) > 1e-6


@pytest.mark.audit
@pytest.mark.timeout(600)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_posterior_that_believes_in_half_the_noise_fails(family: str) -> None:
    for public_n in (False, True):
        problem = Problem(family=family, public_n=public_n, n=20, epsilon="0.5")
        assert not all(within(ranks) for ranks in ranks_of(problem, noise=2.0))


@pytest.mark.audit
@pytest.mark.timeout(600)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_plug_in_posterior_fails_where_noise_exceeds_sampling(family: str) -> None:
    for problem in problems([family], (20, 100), ("0.1",)):
        assert not all(within(ranks) for ranks in ranks_of(problem, method=PLUG_IN))
