"""The mechanism: exact totals plus noise, whatever the block of cells, cut off at the ends of the type."""

from __future__ import annotations

import copy
import dataclasses
import os
import pickle
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.rows.chunk.exact_sums import ExactTotals, Table
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.mechanism import held_noise, noise
from suffice.pipeline.rows.mechanism.held_noise import HeldNoise
from suffice.pipeline.rows.mechanism.mechanism import privatize
from suffice.pipeline.rows.mechanism.noise import Sampler
from suffice.pipeline.rows.reduce.tree import zero_sums
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import Spec, load_spec
from suffice.pipeline.terms.statistics.statistic_plan import DECIMAL, INT64
from support.exact import collected
from support.hostile import bernoulli, categorical, normal, poisson

if TYPE_CHECKING:
    from suffice.pipeline.rows.mechanism.mechanism import Blocks

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


@pytest.mark.parametrize("is_held", [True, False])
@pytest.mark.parametrize("block", [1, 3, N_CELLS, 1000])
def test_every_cell_gets_its_own_total(monkeypatch: pytest.MonkeyPatch, block: int, is_held: bool) -> None:
    monkeypatch.setattr(held_noise, "BLOCK_DRAWS", block)
    spec = make_spec(
        {
            "kind": categorical("k", ["a", "b"], other="true"),
            "count": poisson("c", "3"),
            "flag": bernoulli("f"),
        }
    )
    sums, exact = random_sums(spec)
    plan = compile_plan(spec)
    noise = HeldNoise(spec, plan) if is_held else None
    noisy = collected(privatize(ExactTotals(sums), spec, plan, noise))
    count = np.array(exact["count"], dtype=object)
    assert noisy["kind"].tolist() == exact["kind"]
    assert noisy["flag"].tolist() == exact["flag"]
    assert noisy["count"].tolist() == np.stack([count[:, 1], 3 * count[:, 0] - count[:, 1]], axis=1).tolist()
    assert {values.dtype for values in noisy.values()} == {np.dtype(np.int64)}


@pytest.mark.parametrize("is_held", [True, False])
def test_wide_values_are_python_integers(monkeypatch: pytest.MonkeyPatch, is_held: bool) -> None:
    """Every block's noise is its own: overwriting that of one leaves that of the next."""
    monkeypatch.setattr(held_noise, "BLOCK_DRAWS", 6)
    spec = make_spec({"amount": normal("a", "0", "1", lattice_bits="24")}, epsilon="1")
    plan = compile_plan(spec)
    assert plan.statistics[0].value_type == DECIMAL
    sums, exact = random_sums(spec)
    noise = HeldNoise(spec, plan) if is_held else None
    values = collected(privatize(ExactTotals(sums), spec, plan, noise))["amount"]
    assert {type(value) for value in values.ravel().tolist()} == {int}
    entry = spec.statistics["amount"]
    totals = FAMILIES["normal"].totals(
        entry, plan.statistics[0].design, np.array(exact["amount"], dtype=object)
    )
    assert max(map(abs, totals.flat)) > 2**100
    drawn = values - totals
    assert (abs(drawn) < 100 * plan.statistics[0].scale).all()  # missed with chance 33 exp(-100)
    assert len(set(drawn.flat)) == drawn.size
    assert all(drawn.flat)


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
    last = dataclasses.replace(plan.statistics[-1], loss=plan.statistics[-1].loss * Fraction(1, 2))
    dearer = dataclasses.replace(plan, statistics=(*plan.statistics[:-1], last))
    with pytest.raises(ValueError, match="privacy map"):
        privatize(no_rows(spec), spec, dearer)
    with pytest.raises(ValueError, match="privacy map"):
        HeldNoise(spec, dearer)
    assert drawn.number == 0
    assert len(list(privatize(no_rows(spec), spec, plan))) == 2
    assert drawn.number == 50, "the count must see draws where there are some"


@pytest.mark.slow
def test_noise_is_drawn_ahead_of_the_blocks_taken_by_a_bounded_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(held_noise, "BLOCK_DRAWS", 600)
    monkeypatch.setattr(held_noise, "CHUNK", 100)
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


def test_held_noise_is_drawn_before_totals_are_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    spec, drawn = many_cells(1000), Drawn(monkeypatch)
    plan = compile_plan(spec)
    noise = HeldNoise(spec, plan)
    noise.wait()
    assert drawn.number == 5000
    values = collected(privatize(no_rows(spec), spec, plan, noise))
    assert drawn.number == 5000, "each is added, and none drawn beside"
    assert sum(block.size for block in values.values()) == 5000
    assert not any(array.any() for array in drawn.arrays), "what was written is overwritten"


@pytest.mark.parametrize("is_more", [False, True])
def test_more_noise_than_may_be_held_is_drawn_with_its_blocks(
    monkeypatch: pytest.MonkeyPatch, is_more: bool
) -> None:
    spec, drawn = many_cells(1000), Drawn(monkeypatch)
    plan = compile_plan(spec)
    noise = HeldNoise(spec, plan, most_held=8 * 5000 - is_more)
    noise.wait()
    assert drawn.number == (0 if is_more else 5000)
    assert sum(block.size for _, block in privatize(no_rows(spec), spec, plan, noise)) == 5000
    assert drawn.number == 5000


def test_noise_is_used_once_and_for_its_plan_alone() -> None:
    spec = many_cells(10)
    plan = compile_plan(spec)
    noise = HeldNoise(spec, plan)
    with pytest.raises(ValueError, match="another plan"):
        privatize(no_rows(spec), spec, compile_plan(spec), noise)
    with pytest.raises(ValueError, match="another plan"):
        privatize(no_rows(spec), many_cells(10), plan, noise)
    assert len(list(privatize(no_rows(spec), spec, plan, noise))) == 2
    totals = no_rows(spec)
    with pytest.raises(ValueError, match="used before"):
        list(privatize(totals, spec, plan, noise))
    with pytest.raises(ValueError, match="opened before"):
        totals.open_totals()


def test_noise_is_not_used_after_it_was_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worst that could happen: totals plus zeros."""
    spec, drawn = many_cells(20_000), Drawn(monkeypatch)
    plan = compile_plan(spec)
    noise = HeldNoise(spec, plan)
    noise.wipe()
    assert drawn.number < 100_000, "it was stopped half way"
    assert not any(array.any() for array in drawn.arrays)
    with pytest.raises(ValueError, match="used before"):
        list(privatize(no_rows(spec), spec, plan, noise))
    assert drawn.number < 100_000


def test_a_draw_that_failed_adds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise that stayed zero is not mistaken for drawn noise."""
    spec = many_cells(10)
    plan = compile_plan(spec)

    def fail(_: Sampler, out: Any) -> None:
        raise MemoryError(len(out))

    monkeypatch.setattr(Sampler, "draw_into", fail)
    held = HeldNoise(spec, plan)
    with pytest.raises(MemoryError):
        held.wait()
    with pytest.raises(MemoryError):
        list(privatize(no_rows(spec), spec, plan, held))


def test_held_noise_shows_and_copies_nothing() -> None:
    spec = many_cells(10)
    noise = HeldNoise(spec, compile_plan(spec))
    assert repr(noise) == "HeldNoise(...)"
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            way(noise)


def test_a_stream_that_is_closed_draws_no_more_and_leaves_no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_noise, "BLOCK_DRAWS", 600)
    spec, drawn = many_cells(20_000), Drawn(monkeypatch)
    blocks = privatize(no_rows(spec), spec, compile_plan(spec))
    _, block = next(blocks)
    blocks.close()
    number = drawn.number
    assert number < 100_000
    assert not any(array.any() for array in drawn.arrays if not np.shares_memory(array, block))
    assert len(drawn.arrays) > 1
    assert drawn.number == number


@pytest.mark.parametrize("is_held", [True, False])
@pytest.mark.parametrize("end", ["taken", "closed", "a draw fails"])
def test_totals_and_noise_are_overwritten_however_it_ends(
    monkeypatch: pytest.MonkeyPatch, end: str, is_held: bool
) -> None:
    """Of wide values the noise stands in an array of its own: they are Python integers."""
    monkeypatch.setattr(held_noise, "BLOCK_DRAWS", 6)
    spec = make_spec({"amount": normal("a", "0", "1", lattice_bits="24")}, epsilon="1")
    sums, _ = random_sums(spec)
    drawn = Drawn(monkeypatch)
    totals, plan = ExactTotals(sums), compile_plan(spec)

    def blocks_of_it() -> Blocks:
        return privatize(totals, spec, plan, HeldNoise(spec, plan) if is_held else None)

    if end == "a draw fails":
        original = Sampler.draw_into

        def fail(sampler: Sampler, out: Any) -> None:
            original(sampler, out)
            if len(drawn.arrays) > 2:
                raise MemoryError

        monkeypatch.setattr(Sampler, "draw_into", fail)
        with pytest.raises(MemoryError):
            list(blocks_of_it())
    elif end == "closed":
        blocks = blocks_of_it()
        next(blocks)
        blocks.close()
    else:
        kept = [block.copy() for _, block in blocks_of_it()]
        assert any(block.any() for block in kept)
    for table in sums.values():
        assert not table.low.any()
        assert table.high is None or not table.high.any()
    assert drawn.arrays
    assert not any(array.any() for array in drawn.arrays)
    with pytest.raises(ValueError, match="opened before"):
        totals.open_totals()
