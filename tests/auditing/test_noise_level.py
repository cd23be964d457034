"""The noise level: its law is exact at any scale, its false alarm is computed, and wrong noise fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from suffice.auditing import levels
from suffice.auditing.audit import FALSE_ALARM as WHOLE
from suffice.auditing.levels import BLACK_BOX_FALSE_ALARM, DRAWS, NOISE_FALSE_ALARM, power, tails, try_noise
from suffice.auditing.mutants import MUTANTS, mutants_of
from suffice.pipeline.spec.spec import load_spec
from support.audited import SPECS, running
from support.noise_distribution import distribution_of_sum

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("scale", "size"), [(0.3, 50), (1.0, 200), (17.25, 400), (300.0, 2000)])
def test_the_law_of_the_sum_is_that_of_its_convolution(scale: float, size: int) -> None:
    law = distribution_of_sum(scale, size)
    below = np.cumsum(law)
    for total in np.searchsorted(below, [1e-9, 1e-4, 0.3, 0.5, 0.9, 1 - 1e-6]):
        lower, upper = tails(int(total), size, scale)
        assert lower == pytest.approx(below[total], rel=1e-6, abs=1e-12)
        assert upper == pytest.approx(1 - below[total] + law[total], rel=1e-6, abs=1e-12)


def test_both_forms_of_the_law_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    totals = [int(share * DRAWS * 1e6) for share in (0.88, 0.95, 1.0, 1.1)]
    gamma = [tails(total, DRAWS, 1e6) for total in totals]
    monkeypatch.setattr(levels, "LARGE", 1e9)
    beta = [tails(total, DRAWS, 1e6) for total in totals]
    assert np.allclose(gamma, beta, rtol=1e-6, atol=1e-14)


@pytest.mark.parametrize("scale", [1e6, 1e11, 2.0**55])
def test_at_large_scales_it_is_a_gamma_law(scale: float) -> None:
    for share in (0.9, 1.0, 1.1):
        total = int(share * DRAWS * scale)
        assert tails(total, DRAWS, scale)[0] == pytest.approx(stats.gamma.cdf(total / scale, DRAWS), rel=1e-4)


def test_the_false_alarm_of_an_audit_is_at_most_one_in_a_million() -> None:
    assert NOISE_FALSE_ALARM + BLACK_BOX_FALSE_ALARM <= WHOLE <= 1e-6
    for scale in (0.5, 6.0, 1e11):
        assert power(scale, DRAWS, 1.25, 1e-8) > 0.995
        assert power(scale, DRAWS, 1.0, 1e-8) <= 1e-8


def test_right_noise_is_not_found(tmp_path: Path) -> None:
    with running(load_spec(SPECS["units in parquet"]), tmp_path) as (runner, _):
        level = try_noise(runner, [], draws=DRAWS, first_only=False)
    assert level.findings == ()
    assert level.draws >= 2 * DRAWS


NOISE = [mutant.name for mutant in MUTANTS if mutant.level == "noise"]


@pytest.mark.parametrize("name", NOISE)
def test_wrong_noise_is_found(tmp_path: Path, name: str) -> None:
    with running(load_spec(SPECS["units in parquet"]), tmp_path) as (runner, _):
        (mutant,) = (each for each in mutants_of(runner.plan(), loose=True) if each.name == name)
        with mutant.apply():
            assert try_noise(runner, [], draws=DRAWS, first_only=True).findings


@pytest.mark.slow
@pytest.mark.parametrize("name", [None, *NOISE])
def test_wrong_noise_on_a_cone_is_found_and_right_noise_is_not(tmp_path: Path, name: str | None) -> None:
    with running(load_spec(SPECS["on a cone"]), tmp_path) as (runner, _):
        if name is None:
            level = try_noise(runner, [], draws=DRAWS, first_only=False)
            assert level.findings == ()
            assert level.power > 0.99
            return
        (mutant,) = (each for each in mutants_of(runner.plan(), loose=True) if each.name == name)
        with mutant.apply():
            assert try_noise(runner, [], draws=DRAWS, first_only=True).findings


@pytest.mark.slow
@pytest.mark.parametrize("name", ["no noise on the last statistic", "the same noise in every release"])
def test_wrong_draws_of_a_sample_are_found(tmp_path: Path, name: str) -> None:
    spec = {**SPECS["a sample beside noise"]}
    spec["statistics"] = {"flag": spec["statistics"]["flag"]}
    with running(load_spec(spec), tmp_path) as (runner, _):
        assert try_noise(runner, [], draws=DRAWS, first_only=False).findings == ()
        (mutant,) = (each for each in MUTANTS if each.name == name)
        with mutant.apply():
            assert try_noise(runner, [], draws=DRAWS, first_only=True).findings
