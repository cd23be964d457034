"""Noise on a cone in the mechanism: by the plan's law, held or not, and overwritten."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from suffice.pipeline.rows.chunk.exact_sums import ExactTotals, zeros
from suffice.pipeline.rows.mechanism.held_noise import HeldNoise
from suffice.pipeline.rows.mechanism.mechanism import privatize
from suffice.pipeline.spec.plan import compile_plan, measures
from support.hostile import make_spec

UNIT = {"lower": "-1", "upper": "1"}


def release_of(bits: str, epsilon: str) -> tuple[Any, Any, Any]:
    entry = {
        "family": "multivariate_normal",
        "columns": dict.fromkeys("abc", UNIT),
        "noise": "cone",
        "lattice_bits": bits,
    }
    privacy = {"epsilon": epsilon, "neighboring": "add_or_remove_one"}
    groups = {"g": {"range": ["1", "300"]}}
    spec = make_spec("rows", {"s": entry}, privacy=privacy, groups=groups, max_total_rows="1000")
    return spec, compile_plan(spec), measures(spec)


@pytest.mark.slow
@pytest.mark.parametrize("is_held", [True, False])
@pytest.mark.parametrize(("bits", "epsilon", "kind"), [("4", "1", np.int64), ("24", "0.000001", object)])
def test_noise_is_that_of_the_plan_whether_or_not_it_waits_for_totals(
    bits: str, epsilon: str, kind: Any, is_held: bool
) -> None:
    """The variance of the first component of 300 cells, within a factor of 2: 10 standard errors."""
    spec, plan, measure = release_of(bits, epsilon)
    (statistic,) = plan.statistics
    sums = zeros(measure, {"s": 300})
    held = HeldNoise(spec, plan) if is_held else None
    blocks = [block for _, block in privatize(ExactTotals(sums), spec, plan, held)]
    values = np.concatenate(blocks)
    assert values.shape == (300, 10)
    assert values.dtype == kind
    assert len(set(values[:, 0].tolist())) > 20
    expected = float(statistic.cone.covariance_of((0, 0), (0, 0)))
    assert 0.5 < np.mean(values[:, 0].astype(float) ** 2) / expected < 2.0
    if held is not None:
        with pytest.raises(ValueError, match="used before"):
            next(held.blocks(statistic, 300))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rate": Fraction(1) + Fraction(1, 10**12)}, "rate of cone noise exceeds"),
        ({"steps": 15}, "another lattice"),
        ({"columns": 2}, "other columns"),
    ],
)
def test_a_plan_that_would_lose_more_is_refused_before_anything_is_drawn(
    changes: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, plan, _ = release_of("4", "1")
    monkeypatch.setattr("os.urandom", lambda _: pytest.fail("bits were asked for"))
    (statistic,) = plan.statistics
    assert statistic.cone is not None
    wrong = replace(statistic, cone=replace(statistic.cone, **changes))
    with pytest.raises(ValueError, match=message):
        HeldNoise(spec, replace(plan, statistics=(wrong,)))


@pytest.mark.parametrize(("relation", "records"), [("add_or_remove_one", 3), ("replace_one", 6)])
def test_rates_are_of_the_records_that_a_unit_changes(relation: str, records: int) -> None:
    """Epsilon over all records that neighbours differ by passes, and over one less does not."""
    entry = {"family": "multivariate_normal", "columns": dict.fromkeys("abc", UNIT), "noise": "cone"}
    privacy = {"epsilon": "1", "neighboring": relation, "unit": {"column": "person", "max_rows": "3"}}
    spec = make_spec("rows", {"s": entry}, privacy=privacy, max_total_rows="1000")
    plan = compile_plan(spec)
    (statistic,) = plan.statistics
    assert statistic.cone is not None
    assert statistic.cone.rate == Fraction(1, records)
    HeldNoise(spec, plan).wipe()
    wrong = replace(statistic, cone=replace(statistic.cone, rate=Fraction(1, records - 1)))
    with pytest.raises(ValueError, match="rate of cone noise exceeds"):
        HeldNoise(spec, replace(plan, statistics=(wrong,)))


def test_what_nobody_took_is_overwritten() -> None:
    spec, plan, _ = release_of("24", "0.000001")
    held = HeldNoise(spec, plan)
    held.wait()
    arrays = [noise.values for noise in held._held["s"]]
    assert all(np.any(array) for array in arrays)
    held.wipe()
    assert not any(np.any(array) for array in arrays)
