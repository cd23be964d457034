"""The mechanism: exact totals plus noise, whatever the block of cells, cut off at the ends of the type."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np
import pytest

from suffice.pipeline.chunk.exact_sums import Table
from suffice.pipeline.chunk.exact_totals import ExactTotals
from suffice.pipeline.chunk.partition import chunk_job
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.mechanism import mechanism, noise
from suffice.pipeline.mechanism.mechanism import privatize
from suffice.pipeline.mechanism.noise import Sampler
from suffice.pipeline.reduce.tree import zero_sums
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import Spec, load_spec
from suffice.pipeline.statistics.statistic_plan import DECIMAL, INT64
from support.exact import collected
from support.hostile import bernoulli, categorical, normal, poisson

N_CELLS = 11
NO_NOISE = "1000000"
"""An epsilon at which a draw differs from 0 with chance 2 exp(-10^5), for a third of it and sensitivity 3."""


def make_spec(statistics: dict[str, Any], *, epsilon: str = NO_NOISE, **others: Any) -> Spec:
    return load_spec(
        {
            "name": "n",
            "dataset": "d",
            "source": {"parquet": "absent/"},
            "privacy": {"epsilon": epsilon, "neighboring": "add_or_remove_one"},
            "groups": {"g": {"range": ["1", str(N_CELLS)]}},
            "statistics": statistics,
            **others,
        }
    )


def random_sums(spec: Spec) -> tuple[dict[str, Table], dict[str, list[list[int]]]]:
    """Sums that a pass could have made of up to 2^40 rows a cell, and the same as Python integers."""
    rng = np.random.default_rng(3)
    sums, exact = {}, {}
    for name, table in zero_sums(chunk_job(spec)).items():
        low = rng.integers(0, 2**40, table.low.shape)
        high = None if table.high is None else rng.integers(0, 2**12, table.low.shape)
        sums[name] = Table(low=low, high=high)
        upper = np.zeros_like(low) if high is None else high
        exact[name] = [
            [int(h) * 2**48 + int(x) for h, x in zip(*row, strict=True)]
            for row in zip(upper, low, strict=True)
        ]
    return sums, exact


@pytest.mark.parametrize("block", [1, 3, N_CELLS, 1000])
def test_every_cell_gets_its_own_total(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(mechanism, "BLOCK_DRAWS", block)
    spec = make_spec(
        {
            "kind": categorical("k", ["a", "b"], other="true"),
            "count": poisson("c", "3"),
            "flag": bernoulli("f"),
        }
    )
    sums, exact = random_sums(spec)
    noisy = collected(privatize(ExactTotals(sums), spec, compile_plan(spec)))
    count = np.array(exact["count"], dtype=object)
    assert noisy["kind"].tolist() == exact["kind"]
    assert noisy["flag"].tolist() == exact["flag"]
    assert noisy["count"].tolist() == np.stack([count[:, 1], 3 * count[:, 0] - count[:, 1]], axis=1).tolist()
    assert {values.dtype for values in noisy.values()} == {np.dtype(np.int64)}


def test_wide_values_are_python_integers() -> None:
    spec = make_spec({"amount": normal("a", "0", "1", lattice_bits="24")}, epsilon="1")
    plan = compile_plan(spec)
    assert plan.statistics[0].value_type == DECIMAL
    sums, exact = random_sums(spec)
    values = collected(privatize(ExactTotals(sums), spec, plan))["amount"]
    assert {type(value) for value in values.ravel().tolist()} == {int}
    entry = spec.statistics["amount"]
    totals = FAMILIES["normal"].totals(
        entry, plan.statistics[0].design, np.array(exact["amount"], dtype=object)
    )
    assert max(map(abs, totals.flat)) > 2**100
    noise = values - totals
    assert (abs(noise) < 100 * plan.statistics[0].scale).all()  # missed with chance 33 exp(-100)
    assert len(set(noise.flat)) == noise.size


def test_more_rows_than_the_declared_most_saturate() -> None:
    spec = make_spec({"count": poisson("c", str(2**20))}, epsilon="1000000", max_total_rows="1000")
    plan = compile_plan(spec)
    assert plan.statistics[0].value_type == INT64
    sums = zero_sums(chunk_job(spec))
    high = sums["count"].high
    assert high is not None
    high[0, 1] = 2**40  # a sum of 2^88
    values = collected(privatize(ExactTotals(sums), spec, plan))["count"]
    assert values[0].tolist() == [2**63 - 1, -(2**63)]
    assert abs(values[1:]).max() < 1000


def no_rows(spec: Spec) -> ExactTotals:
    return ExactTotals(zero_sums(chunk_job(spec)))


class Drawn:
    """Counts draws of noise as they are made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.arrays: list[Any] = []
        original = Sampler.draw_into

        def counted(sampler: Sampler, out: Any) -> None:
            original(sampler, out)
            self.arrays.append(out)

        monkeypatch.setattr(Sampler, "draw_into", counted)

    @property
    def number(self) -> int:
        return sum(map(len, self.arrays))


def many_cells(n_cells: int) -> Spec:
    statistics = {"flag": bernoulli("f"), "kind": categorical("k", ["a", "b", "c"])}
    return make_spec(statistics, groups={"g": {"range": ["1", str(n_cells)]}})


def test_every_map_is_checked_before_anything_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    spec, drawn = many_cells(10), Drawn(monkeypatch)
    plan = compile_plan(spec)
    last = dataclasses.replace(plan.statistics[-1], epsilon=plan.statistics[-1].epsilon / 2)
    dearer = dataclasses.replace(plan, statistics=(*plan.statistics[:-1], last))
    with pytest.raises(ValueError, match="privacy map"):
        privatize(no_rows(spec), spec, dearer)
    assert drawn.number == 0
    assert len(list(privatize(no_rows(spec), spec, plan))) == 2
    assert drawn.number == 50, "the count must see draws where there are some"


def test_noise_is_drawn_ahead_of_the_blocks_taken_by_a_bounded_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mechanism, "BLOCK_DRAWS", 600)
    monkeypatch.setattr(mechanism, "CHUNK", 100)
    monkeypatch.setattr(noise, "CHUNK", 100)
    spec, drawn = many_cells(20_000), Drawn(monkeypatch)
    most_ahead = 2 * 100 * (os.cpu_count() or 1)
    blocks = privatize(no_rows(spec), spec, compile_plan(spec))
    taken, names, cells = 0, [], {"flag": 0, "kind": 0}
    for name, block in blocks:
        taken += block.size
        assert taken <= drawn.number <= taken + most_ahead + 600
        names.append(name)
        cells[name] += len(block)
    assert names == sorted(names, key=["flag", "kind"].index), "in the plan's order"
    assert cells == {"flag": 20_000, "kind": 20_000}
    assert taken == drawn.number == 100_000


def test_a_stream_that_is_closed_draws_no_more_and_leaves_no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mechanism, "BLOCK_DRAWS", 600)
    spec, drawn = many_cells(20_000), Drawn(monkeypatch)
    blocks = privatize(no_rows(spec), spec, compile_plan(spec))
    _, block = next(blocks)
    blocks.close()
    number = drawn.number
    assert number < 100_000
    assert not any(array.any() for array in drawn.arrays if not np.shares_memory(array, block))
    assert len(drawn.arrays) > 1
    assert drawn.number == number


@pytest.mark.parametrize("end", ["taken", "closed", "a draw fails"])
def test_totals_and_noise_are_overwritten_however_it_ends(monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    """Of wide values the noise stands in an array of its own: they are Python integers."""
    monkeypatch.setattr(mechanism, "BLOCK_DRAWS", 6)
    spec = make_spec({"amount": normal("a", "0", "1", lattice_bits="24")}, epsilon="1")
    sums, _ = random_sums(spec)
    drawn = Drawn(monkeypatch)
    totals = ExactTotals(sums)
    blocks = privatize(totals, spec, compile_plan(spec))
    if end == "a draw fails":
        original = Sampler.draw_into

        def fail(sampler: Sampler, out: Any) -> None:
            original(sampler, out)
            if len(drawn.arrays) > 2:
                raise MemoryError

        monkeypatch.setattr(Sampler, "draw_into", fail)
        with pytest.raises(MemoryError):
            list(blocks)
    elif end == "closed":
        next(blocks)
        blocks.close()
    else:
        kept = [block.copy() for _, block in blocks]
        assert any(block.any() for block in kept)
    for table in sums.values():
        assert not table.low.any()
        assert table.high is None or not table.high.any()
    assert drawn.arrays
    assert not any(array.any() for array in drawn.arrays)
    with pytest.raises(ValueError, match="opened before"):
        totals.open_totals()
