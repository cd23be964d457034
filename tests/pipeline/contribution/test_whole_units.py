"""Statistics of whole units: neighbours, all of them over tiny domains, and a plain reference in Python."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from suffice.pipeline.chunk.unit_accumulators import rounded_ratio
from support.unit_engine import OF_UNITS, UnitEngine, farthest
from support.units import KEY, OTHER_KEY

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.contribution.unit_key import UnitKey

RELATIONS = ["add_or_remove_one", "replace_one"]
OF_UNITS_NAMES = [f"{name} of units" for name in OF_UNITS]


@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("name", OF_UNITS_NAMES)
def test_a_unit_costs_what_a_record_costs(tmp_path: Path, name: str, neighboring: str) -> None:
    engine = UnitEngine(tmp_path, name, neighboring)
    record_l1 = engine.plan.statistics[0].partition_total
    assert record_l1 is not None
    assert engine.declared == record_l1 * (1 if neighboring == "add_or_remove_one" else 2)
    assert farthest(engine.of_every_unit(), neighboring) == engine.declared, "claimed tight"
    of_rows = UnitEngine(tmp_path, name.removesuffix(" of units"), neighboring)
    assert farthest(of_rows.of_every_unit(), neighboring) > engine.declared, "the rows kept would be caught"


@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("shape", ["groups", "window"])
@pytest.mark.parametrize(
    ("name", "key"), [("bernoulli of units", OTHER_KEY), ("normal of units", KEY), ("poisson of units", KEY)]
)
def test_a_unit_is_in_one_cell(tmp_path: Path, name: str, shape: str, neighboring: str, key: UnitKey) -> None:
    engine = UnitEngine(tmp_path, name, neighboring, shape, key)
    vectors = engine.of_every_unit()
    assert farthest(vectors, neighboring) == engine.declared
    beside = vectors - vectors[0]
    by_cell = beside.reshape(len(vectors), engine.plan.n_cells, -1).sum(axis=2)
    assert (np.count_nonzero(by_cell, axis=1) <= 1).all()


def test_ratios_are_rounded_to_the_even_integer() -> None:
    totals, counts = (each.ravel() for each in np.meshgrid(np.arange(-40, 41), np.arange(1, 12)))
    expected = [round(Fraction(int(total), int(count))) for total, count in zip(totals, counts, strict=True)]
    assert rounded_ratio(totals, counts).tolist() == expected
    extremes = np.array([2**54 + 1, -(2**54) - 1])
    assert rounded_ratio(extremes, np.array([2, 2])).tolist() == [2**53, -(2**53)]
