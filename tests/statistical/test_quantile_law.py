"""Drawn bins of a quantile against the law that their plan states, and the test against wrong laws.

By the chi-square statistic of `test_sample_law`: the law that is claimed fails with chance 1e-6, and the
number of draws is one at which any of the wrong ones passes with chance 1e-7.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
import pytest

from statistical.test_sample_law import FALSE_ALARM, draws_needed, p_value
from suffice.pipeline.rows.chunk.exact_sums import ExactTotals, Table
from suffice.pipeline.rows.mechanism.mechanism import privatize
from suffice.pipeline.rows.mechanism.sampling import CellSampler, exponential_mechanism
from suffice.pipeline.spec.plan import compile_plan
from support.exact import collected
from support.samples import drawn_quantile, log_law, quantile_of, sampled_spec

if TYPE_CHECKING:
    from suffice.typing import Cells, Floats

COUNTS = (4, 0, 3, 7, 1, 0, 2, 6, 2)
"""Of eight bins and an atom; the quantile .9 of 25 is in the last but one."""
QUANTILE, SCALE = 0.9, 1.8 / 0.5
"""In records, of one draw at epsilon 1/2."""


def law(*, quantile: float = QUANTILE, scale: float = SCALE, one_sided: bool = False) -> Floats:
    """Return the law of a bin from its formula, or a wrong one."""
    target = quantile * sum(COUNTS)
    through = np.array(list(accumulate(COUNTS)), dtype=np.float64)
    below = through - COUNTS
    errors = np.maximum(0.0, below - target)
    if not one_sided:
        errors = np.maximum(errors, target - through)
    return np.exp(log_law(-errors, scale))


MUTANTS = {
    "twice as sharp": law(scale=SCALE / 2.0),
    "half as sharp": law(scale=SCALE * 2.0),
    "one side alone": law(one_sided=True),
    "the other quantile": law(quantile=1.0 - QUANTILE),
}
NEEDED = max(draws_needed(law(), wrong) for wrong in MUTANTS.values())


def released(quantile: str = "0.9") -> Cells:
    """Draw in many cells that all hold the same records, by the mechanism itself."""
    draws, n_cells = 100, -(-NEEDED // 100)
    entry = drawn_quantile(sample={"quantile": quantile, "draws": str(draws)})
    groups = {"g": {"range": ["1", str(n_cells)]}}
    spec = sampled_spec({"x": entry}, epsilon=str(draws // 2), groups=groups)
    plan = compile_plan(spec)
    sums = {"x": Table(low=np.tile(np.array([COUNTS]), (n_cells, 1)))}
    return collected(privatize(ExactTotals(sums), spec, plan))["x"]


def test_draws_follow_the_law_that_the_plan_states() -> None:
    assert p_value(released(), law()) > FALSE_ALARM


@pytest.mark.parametrize("mutant", MUTANTS)
def test_no_wrong_law_passes(mutant: str) -> None:
    rng = np.random.default_rng()
    drawn = rng.choice(len(COUNTS), size=NEEDED, p=MUTANTS[mutant])
    assert p_value(drawn, law()) < FALSE_ALARM


def test_a_mechanism_of_another_quantile_is_seen() -> None:
    assert p_value(released("0.1"), law()) < FALSE_ALARM


def test_a_mechanism_that_is_twice_as_sharp_is_seen_and_refused() -> None:
    spec = sampled_spec({"x": drawn_quantile(sample={"draws": "1"})}, epsilon="0.5")
    plan = compile_plan(spec)
    sampler, sample = CellSampler.of(plan.statistics[0], spec.statistics["x"]), quantile_of(plan)
    scores = sampler.scores(np.array([COUNTS], dtype=object))[0]
    loose = exponential_mechanism(scale=sample.scale // 2, range_sensitivity=1, rho=plan.rho)
    drawn = np.zeros(NEEDED, np.int64)
    loose.draw_into(scores, drawn)
    assert p_value(drawn, law()) < FALSE_ALARM
    with pytest.raises(ValueError, match="privacy map exceeds"):
        exponential_mechanism(
            scale=sample.scale // 2, range_sensitivity=sample.range_sensitivity, rho=plan.rho
        )
