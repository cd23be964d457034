"""95 % intervals from tables with suppressed cells hold the truth in 94 to 96 %; filled-in ones do not.

Sample size. Of n intervals that each hold the truth with chance .95, the share lies outside of .94 to .96
with the chance 2 Phi(-.01 / sqrt(.95 * .05 / n)): at most 1e-6 from n = 11,400 on. Zeros and minima in the
place of suppressed cells have to leave the range, and so has a law that is declared wrong.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from support.adopted_worlds import LAWS, Covered, cell_coverage, pooled_coverage, world

pytestmark = pytest.mark.filterwarnings("ignore::suffice.errors.ConflictWarning")  # rates may exceed `upper`

FALSE_ALARM = 1e-6
DAYS = 365
KINDS = ("flights", "lognormal", "prior")
ITEMS = 952
"""Of every kind of rate and law: 11,424 intervals in all."""


def chance_outside(n: int) -> float:
    return float(2.0 * norm.cdf(-0.01 / math.sqrt(0.95 * 0.05 / n)))


def test_so_many_intervals_are_enough() -> None:
    assert chance_outside(ITEMS * len(KINDS) * len(LAWS)) <= FALSE_ALARM


@pytest.mark.audit
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("share", [0.2, 0.6])
def test_pooled_rates_hold_the_truth(share: float) -> None:
    rng = np.random.default_rng()
    covered = Covered()
    for kind in KINDS:
        for law in LAWS:
            covered += pooled_coverage(world(kind, law, share, items=ITEMS, days=DAYS, rng=rng))
    shares = {name: getattr(covered, name) / covered.intervals for name in ("censored", "zeros", "minima")}

    assert 0.94 <= shares["censored"] <= 0.96, shares
    assert shares["zeros"] < 0.6, shares
    assert shares["minima"] < 0.6, shares
    assert abs(covered.suppressed / covered.intervals - share) < 0.05


@pytest.mark.slow
def test_a_law_that_is_declared_wrong_fails_the_same_count() -> None:
    """The control: a standard deviation of 1 for 5. Of 100 intervals 70 hold the truth, or not.

    Of right ones fewer do with the chance 1e-16 if each does with .95, and 3e-7 with .88. Of wrong ones about
    30 % do: as many do with the chance 2e-16, and 4e-7 with .45 of each.
    """
    n, least = 100, 70
    assert max(binom.cdf(least - 1, n, 0.88), binom.sf(least - 1, n, 0.45)) < FALSE_ALARM
    made = world("flights", "gaussian", 0.6, items=n, days=30, rng=np.random.default_rng())

    right = pooled_coverage(made, cells="alike")
    wrong = pooled_coverage(made, noise={"law": "gaussian", "sd": 1}, cells="alike")

    assert right.censored >= least
    assert wrong.censored < least


@pytest.mark.audit
@pytest.mark.timeout(600)
def test_days_that_vary_are_held_and_days_taken_to_be_alike_are_not() -> None:
    """Twice the variance of a Poisson count, 60 % suppressed: of 300 right intervals 260 hold the truth."""
    rng = np.random.default_rng()
    made = world("flights", "geometric", 0.6, items=300, days=DAYS, rng=rng, days_as="twice the variance")
    least = 260

    assert pooled_coverage(made).censored >= least
    assert pooled_coverage(made, cells="alike").censored < least


@pytest.mark.audit
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("share", [0.2, 0.6])
def test_single_cells_hold_rates_of_the_prior(share: float) -> None:
    """One threshold for all: 11,424 cells, suppressed ones too."""
    rng = np.random.default_rng()
    held = cells = 0
    for law in LAWS:
        made = world("prior", law, share, items=3 * ITEMS, days=1, rng=rng, one_threshold=True)
        of_published, of_suppressed, published, suppressed = cell_coverage(made, "rate")
        held += of_published + of_suppressed
        cells += published + suppressed

    assert 0.94 <= held / cells <= 0.96
