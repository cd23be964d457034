"""Noise on a cone in the mechanism: by the plan's law, held or not, and overwritten."""

from __future__ import annotations

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


def test_what_nobody_took_is_overwritten() -> None:
    spec, plan, _ = release_of("24", "0.000001")
    held = HeldNoise(spec, plan)
    held.wait()
    arrays = [noise.values for noise in held._held["s"]]
    assert all(np.any(array) for array in arrays)
    held.wipe()
    assert not any(np.any(array) for array in arrays)
