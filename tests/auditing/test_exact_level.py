"""The exact level: right releases lose what they declare and no more, wrong ones are found."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.special import ndtr

from suffice.auditing.levels import joint_loss, rho_of_event, try_chains
from suffice.auditing.mutants import MUTANTS, mutants_of
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from support.audited import SPECS, running

if TYPE_CHECKING:
    from pathlib import Path

FIRST = {
    "rows in parquet",
    "folders",
    "csv",
    "rows in duckdb",
    "windows of a zone",
    "a parsed window and unit",
    "rows and units",
    "units in rho",
    "rows in cells",
}
"""What each commit tries: kinds and paths that differ most; whole audits go through all of them."""
TRIED = [pytest.param(name, marks=[] if name in FIRST else pytest.mark.audit) for name in SPECS]


@pytest.mark.slow
@pytest.mark.parametrize("name", TRIED)
def test_neighbours_lose_no_more_than_declared(tmp_path: Path, name: str) -> None:
    with running(load_spec(SPECS[name]), tmp_path) as (runner, maker):
        modes = (("spark", "pandas"),) if "parquet" in SPECS[name]["source"] else (("spark", "spark"),)
        level = try_chains(runner, maker.chains(24, modes), first_only=False)
    assert level.findings == []
    assert level.pairs == 24
    assert level.largest <= 1
    if "sample" not in name and name != "two columns in rho":
        # Scales are rounded up to a float.
        assert level.largest > 1 - 1e-12, "the hardest neighbours lose all that is declared"


@pytest.mark.slow
@pytest.mark.parametrize("name", [None, "half of the sensitivity", "every record counts twice"])
def test_neighbours_on_a_cone_lose_no_more_than_declared_and_mutants_do(
    tmp_path: Path, name: str | None
) -> None:
    with running(load_spec(SPECS["on a cone"]), tmp_path) as (runner, maker):
        if name is None:
            level = try_chains(runner, maker.chains(16), first_only=False)
            assert level.findings == []
            assert 0 < level.largest <= 1
            return
        (mutant,) = (each for each in mutants_of(runner.plan(), loose=True) if each.name == name)
        with mutant.apply():
            assert try_chains(runner, maker.chains(24), first_only=True).findings


def test_the_joint_loss_adds_up_over_statistics(tmp_path: Path) -> None:
    with running(load_spec(SPECS["units in parquet"]), tmp_path) as (runner, maker):
        (chain,) = maker.chains(1, (("spark", "spark"),))
        plan = runner.plan()
        first, second = (runner.totals(data) for data in chain)
    parts = [
        Fraction(int(abs(second[statistic.name] - first[statistic.name]).sum())) / Fraction(statistic.scale)
        for statistic in plan.statistics
    ]
    assert joint_loss(first, second, plan) == sum(parts) == plan.loss.epsilon
    assert joint_loss(first, first, plan) == 0


IN_RHO = {
    "the L1 sensitivity in the place of the square of the L2 sensitivity",
    "rho without its half",
    "a scale times 0.9",
}
EXACT = [mutant.name for mutant in MUTANTS if mutant.level == "exact" and mutant.name not in IN_RHO]


@pytest.mark.parametrize("name", EXACT)
def test_a_mutant_of_the_sums_is_found(tmp_path: Path, name: str) -> None:
    tried = "rows in cells" if "in cells" in name else "units in parquet"
    with running(load_spec(SPECS[tried]), tmp_path) as (runner, maker):
        (mutant,) = (each for each in mutants_of(runner.plan(), loose=True) if each.name == name)
        with mutant.apply():
            findings = try_chains(runner, maker.chains(24), first_only=True).findings
    assert [finding.level for finding in findings] == ["exact"] * len(findings)
    assert findings


def test_the_joint_loss_in_rho_is_half_the_sum_of_squares(tmp_path: Path) -> None:
    with running(load_spec(SPECS["units in rho"]), tmp_path) as (runner, maker):
        plan = runner.plan()
        (chain,) = maker.chains(1, (("spark", "spark"),))
        first, second = (runner.totals(data) for data in chain)
    assert plan.loss.rho is not None
    parts = [
        Fraction(sum(int(each) ** 2 for each in (second[statistic.name] - first[statistic.name]).ravel()))
        / (2 * Fraction(statistic.scale) ** 2)
        for statistic in plan.statistics
    ]
    assert 0 < joint_loss(first, second, plan) == sum(parts) <= plan.loss.rho


@pytest.mark.parametrize("name", sorted({*IN_RHO, "half of the sensitivity"}))
def test_a_mutant_of_scales_in_rho_is_found(tmp_path: Path, name: str) -> None:
    with running(load_spec(SPECS["units in rho"]), tmp_path) as (runner, maker):
        (mutant,) = (each for each in mutants_of(runner.plan(), loose=True) if each.name == name)
        with mutant.apply():
            findings = try_chains(runner, maker.chains(24), first_only=True).findings
    assert [finding.level for finding in findings] == ["exact"] * len(findings)
    assert findings
    assert "declared rho" in findings[0].what


@pytest.mark.parametrize(
    ("p", "q", "rho"),
    [(0.5, 0.5, 0.0), (0.4, 0.5, 0.0), (0.0, 0.1, 0.0), (0.9, 0.1, 1.75), (0.55, 0.45, 0.02)],
)
def test_an_event_bounds_rho_from_below(p: float, q: float, rho: float) -> None:
    assert rho_of_event(p, q) == pytest.approx(rho, rel=0.02)


def test_an_event_of_gaussians_shows_no_more_than_their_rho() -> None:
    """Two normal distributions one apart lose rho 1/2: no half line shows more, and one shows a third."""
    ends = np.linspace(-4, 4, 81)
    shown = [rho_of_event(float(ndtr(1 - end)), float(ndtr(-end))) for end in ends]
    assert 0.3 < max(shown) < 0.5


@pytest.mark.parametrize("name", ["rows of a unit are not cut", "a unit keeps twice its rows"])
def test_rows_that_are_not_cut_are_found_beside_a_bound_in_cells(tmp_path: Path, name: str) -> None:
    with running(load_spec(SPECS["rows in cells"]), tmp_path) as (runner, maker):
        (mutant,) = (each for each in mutants_of(runner.plan(), loose=True) if each.name == name)
        with mutant.apply():
            assert try_chains(runner, maker.chains(24), first_only=True).findings


@pytest.mark.parametrize("name", ["transitions", "whole units", "rows and units", "one public number"])
def test_mutants_that_change_nothing_are_not_tried(name: str) -> None:
    plan = compile_plan(load_spec(SPECS[name]))
    tried = {mutant.name for mutant in mutants_of(plan, loose=True)}
    assert len(tried) >= 12
    assert ("rows of a unit are not cut" in tried) == (name == "rows and units")
    assert ("a record counts in the next cell, too" in tried) == (plan.n_cells > 1)
