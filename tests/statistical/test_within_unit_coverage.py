"""Coverage where rows of one unit are alike: widened by their design effect, and taken for independent.

The widening is approximate: 93 to 97 of 100 intervals of 95 % are asked for, and a binomial chance is left to
each. Controls take rows for independent, and have to fall below where rows are alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.stats import binom

from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from support.dependent_units import (
    BERNOULLI,
    MAX_ROWS,
    NORMAL,
    bernoulli_units,
    normal_units,
    plan_of_units,
)

if TYPE_CHECKING:
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.typing import Floats

FALSE_ALARM = 1e-6
LEAST, MOST = 0.93, 0.97
CELLS = 400
AUDIT_CELLS = 4000
AUDIT_NORMAL_CELLS = 400


def covered(statistic: NoisyStatistic, parameter: str, truth: Floats | float, within_unit: str) -> float:
    """The share of 95 % intervals that hold the truth."""
    posterior = posterior_of(statistic, within_unit=within_unit)
    ends = posterior.credible_interval(parameter, rng=1)
    return float(np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1])))


def assert_covers(share: float, cells: int, least: float = LEAST, most: float = MOST) -> None:
    """Refuse a share that a coverage of `least` to `most` gives with less than the false-alarm rate."""
    number = round(share * cells)
    assert binom.cdf(number, cells, least) > FALSE_ALARM, share
    assert binom.sf(number - 1, cells, most) > FALSE_ALARM, share


@pytest.mark.slow
def test_intervals_of_alike_rows_cover() -> None:
    rng = np.random.default_rng(20261122)
    truth = np.full(CELLS, 0.5)
    plan = plan_of_units(BERNOULLI)
    alike = bernoulli_units(plan, np.full((CELLS, 1000), MAX_ROWS), truth, 0.5, rng)
    assert_covers(covered(alike, "probability", truth, "modelled"), CELLS)
    independent = covered(alike, "probability", truth, "ignored")
    assert binom.cdf(round(independent * CELLS), CELLS, LEAST) < FALSE_ALARM, "the control must fail"


SIZES = {"3 rows each": [3], "1 to 3 rows": [1, 2, 3]}


@pytest.mark.audit
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("correlation", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("units", [100, 1000])
@pytest.mark.parametrize("chance", [0.5, 0.1, None])
@pytest.mark.parametrize("sizes", SIZES)
def test_bernoulli_units_of_every_kind(
    sizes: str, chance: float | None, units: int, correlation: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """With 100 units the noise hides much of the design effect: what no prior can tell is allowed for."""
    rng = np.random.default_rng([20261122, units])
    truth = rng.random(AUDIT_CELLS) if chance is None else np.full(AUDIT_CELLS, chance)
    rows = rng.choice(SIZES[sizes], (AUDIT_CELLS, units))
    statistic = bernoulli_units(plan_of_units(BERNOULLI), rows, truth, correlation, rng)
    shares = [covered(statistic, "probability", truth, way) for way in ("modelled", "ignored")]
    with capsys.disabled():
        print(f"\n{sizes}, p {chance}, {units} units, ICC {correlation}: {shares}")  # noqa: T201 - a table
    assert_covers(shares[0], AUDIT_CELLS, LEAST - 0.01, MOST + 0.01)


@pytest.mark.audit
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("correlation", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("units", [20_000])
def test_normal_units(units: int, correlation: float, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng([20261122, units])
    truth = (2.0, 1.0)
    shares = np.zeros((2, 2))
    batch = 20
    for _ in range(AUDIT_NORMAL_CELLS // batch):
        statistic = normal_units(plan_of_units(NORMAL), (batch, units), truth, correlation, rng)
        for row, way in enumerate(("modelled", "ignored")):
            shares[row] += [
                covered(statistic, "mean", truth[0], way),
                covered(statistic, "variance", truth[1], way),
            ]
    shares /= AUDIT_NORMAL_CELLS // batch
    with capsys.disabled():
        print(f"\nnormal, {units} units, ICC {correlation}: mean, variance {shares.tolist()}")  # noqa: T201 - a table
    assert_covers(shares[0, 0], AUDIT_NORMAL_CELLS, LEAST, MOST + 0.01)
    assert_covers(shares[0, 1], AUDIT_NORMAL_CELLS, LEAST, 1.0)
