"""Exact integers: limbs that never wrap, and addition whose order and grouping do not matter."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from suffice.pipeline.rows.chunk.exact_sums import LIMB_MASK, Sums, Table, combine, to_python, zeros
from suffice.pipeline.terms.declaration.domains import boolean_domain
from suffice.pipeline.terms.statistics.lattice import Quantiser
from suffice.pipeline.terms.statistics.measure import CodeColumn, CodeCounts, LatticeColumn, PowerSums

COUNTS = CodeCounts(of=CodeColumn(column="x", domain=boolean_domain(), fallback=2))
POWERS = PowerSums(
    of=LatticeColumn(column="x", quantiser=Quantiser.centred(Fraction(-1), Fraction(1), 24), fallback=None),
    degree=2,
)


def limbs(*numbers: int) -> Table:
    low = np.array([[number & LIMB_MASK for number in numbers]], np.int64)
    high = np.array([[number >> 48 for number in numbers]], np.int64)
    return Table(low=low, high=high)


def test_zeros_have_a_cell_for_every_key_and_a_column_for_every_sum() -> None:
    sums = to_python(zeros({"c": COUNTS, "p": POWERS}, {"c": 4, "p": 4}))
    assert sums["c"].shape == (4, 3)
    assert sums["p"].shape == (4, 3)
    assert sums["c"].dtype == sums["p"].dtype == object
    assert not sums["c"].any()
    assert not sums["p"].any()


@pytest.mark.parametrize(
    "number", [0, 1, -1, 2**48 - 1, 2**48, -(2**48), 2**63, -(2**63) - 1, 10**15 * 2**48]
)
def test_limbs_hold_what_int64_cannot(number: int) -> None:
    sums: Sums = {"x": limbs(number, -number)}
    assert to_python(sums)["x"].tolist() == [[number, -number]]
    doubled = to_python(combine([sums, sums, sums]))["x"]
    assert doubled.tolist() == [[3 * number, -3 * number]]
    assert all(type(value) is int for value in doubled[0])


def test_the_largest_number_of_parts_carries_in_time() -> None:
    part: Sums = {"x": limbs(2**48 - 1, -1)}
    total = combine([part] * 2**14)
    assert to_python(total)["x"].tolist() == [[2**14 * (2**48 - 1), -(2**14)]]
    assert ((total["x"].low >= 0) & (total["x"].low <= LIMB_MASK)).all()


def test_any_order_and_grouping_gives_the_same_bits() -> None:
    rng = np.random.default_rng(5)
    parts: list[Sums] = [
        {"x": limbs(int(rng.integers(-(2**62), 2**62)) << 28, int(rng.integers(2**20)))} for _ in range(20)
    ]
    whole = combine(parts)
    for _ in range(20):
        parts = [parts[position] for position in rng.permutation(20)]
        cut = int(rng.integers(1, 20))
        again = combine([combine(parts[:cut]), combine(parts[cut:])])
        assert np.array_equal(again["x"].low, whole["x"].low)
        assert again["x"].high is not None
        assert whole["x"].high is not None
        assert np.array_equal(again["x"].high, whole["x"].high)


def test_combining_changes_no_part() -> None:
    part: Sums = {"x": limbs(2**48 - 1), "c": Table(low=np.array([[3]]))}
    combine([part, part])
    assert to_python(part)["x"].tolist() == [[2**48 - 1]]
    assert to_python(part)["c"].tolist() == [[3]]


def test_int64_alone_would_have_wrapped() -> None:
    wrapped = np.int64(2**62 - 1)
    for _ in range(8):
        wrapped = np.add(wrapped, np.int64(2**60))
    assert wrapped < 0
    table = limbs(2**62 - 1)
    total = combine([{"x": table}, *({"x": limbs(2**60)} for _ in range(8))])
    assert to_python(total)["x"].tolist() == [[2**62 - 1 + 2**63]]
