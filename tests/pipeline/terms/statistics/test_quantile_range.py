"""How far one unit can move the scores of a drawn quantile: every unit tried on many small data sets.

A unit's records lie in any of the cells. What it moves in a cell follows from what else is there, and from
which of its records come and go: all are enumerated. Ranges add up over cells, so the worst unit is the worst
way to share its records among them; the bound is met exactly.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.errors import SpecError
from suffice.pipeline.spec.plan import compile_plan, plan_document
from suffice.pipeline.terms.statistics.drawn_quantile import (
    QuantileScores,
    counted_rank_error,
    expected_rank_error,
)
from suffice.pipeline.terms.statistics.exponential_draws import LOWEST_SCORE
from suffice.pipeline.terms.statistics.sensitivity import NeighboringRelation
from support.samples import drawn_quantile, quantile_of, sampled_spec

if TYPE_CHECKING:
    from collections.abc import Iterator

ADD, REPLACE = NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_ONE
MANY = 400
"""Records that keep the quantile in an inner bin, whatever a unit does."""
UNIT = 2**20


def units(records: int, n_bins: int) -> list[tuple[int, ...]]:
    """Return the records in each bin of every unit of so many records at most."""
    counts = itertools.product(range(records + 1), repeat=n_bins)
    return [unit for unit in counts if sum(unit) <= records]


def cells(n_bins: int) -> Iterator[tuple[int, ...]]:
    """Give the counts of small cells, and of cells with many records in one bin."""
    for counts in itertools.product(range(3), repeat=n_bins):
        yield counts
        for position in range(n_bins):
            yield tuple(count + MANY * (each == position) for each, count in enumerate(counts))


def largest_change(scores: QuantileScores, relation: NeighboringRelation, records: int, n_cells: int) -> int:
    """Return the largest range of a change, added up over cells, that any unit makes."""
    n_bins = scores.n_bins
    by_size: dict[int, list[tuple[int, ...]]] = {}
    for unit in units(records, n_bins):
        by_size.setdefault(sum(unit), []).append(unit)
    moved: dict[tuple[int, int], int] = {}
    for cell in cells(n_bins):
        rows = {
            size: np.array([scores.scores(*np.add(cell, unit).tolist()) for unit in listed], np.int64)
            for size, listed in by_size.items()
        }
        for gone, come in itertools.product(rows, rows):
            if relation is REPLACE or gone == 0:
                change = rows[come][None, :, :] - rows[gone][:, None, :]
                widest = int((change.max(axis=2) - change.min(axis=2)).max())
                moved[gone, come] = max(moved.get((gone, come), 0), widest)
    shares = [
        list(share)
        for share in itertools.product(range(records + 1), repeat=n_cells)
        if sum(share) <= records
    ]
    leaving = shares if relation is REPLACE else [[0] * n_cells]
    return max(
        sum(moved[pair] for pair in zip(gone, come, strict=True))
        for gone, come in itertools.product(leaving, shares)
    )


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("quantile", ["0.5", "0.9", "0.25", "0.01"])
@pytest.mark.parametrize(
    ("n_bins", "records", "n_cells"), [(2, 1, 1), (2, 2, 2), (3, 1, 1), (3, 2, 2), (4, 1, 2), (3, 2, 1)]
)
def test_no_unit_moves_the_scores_by_more_than_the_range_and_one_does_by_as_much(
    quantile: str, relation: NeighboringRelation, n_bins: int, records: int, n_cells: int
) -> None:
    scores = QuantileScores(quantile=Fraction(quantile), n_bins=n_bins)
    bound = scores.range_sensitivity(relation, records=records, n_cells=n_cells)
    change = largest_change(scores, relation, records, n_cells)
    assert change == bound


@settings(max_examples=60)
@given(data=st.data())
def test_scores_are_minus_the_rank_error_whatever_the_counts(data: st.DataObject) -> None:
    """Against the definition by sorted records, one by one."""
    n_bins = data.draw(st.integers(2, 6))
    counts = data.draw(st.lists(st.integers(0, 5), min_size=n_bins, max_size=n_bins))
    quantile = Fraction(data.draw(st.integers(1, 99)), 100)
    records = [position for position, count in enumerate(counts) for _ in range(count)]
    target = quantile * len(records)
    made = QuantileScores(quantile=quantile, n_bins=n_bins).scores(*counts)
    for position, score in enumerate(made):
        below = sum(record < position for record in records)
        through = sum(record <= position for record in records)
        error = max(Fraction(0), below - target, target - through)
        assert Fraction(score, UNIT * quantile.denominator) == -error
    assert max(made) == 0
    if records and target.denominator > 1:
        (best,) = [position for position, score in enumerate(made) if score == 0]
        assert best == records[math.ceil(target) - 1], "the bin that the quantile is in"


def test_scores_beyond_64_bits_are_cut_off() -> None:
    scores = QuantileScores(quantile=Fraction(1, 10**4), n_bins=3).scores(0, 10**15, 10**15)
    assert scores == [max(-2 * 10**11 * 10**4 * UNIT, LOWEST_SCORE), 0, LOWEST_SCORE]


@pytest.mark.parametrize(
    ("quantile", "neighboring", "change", "records"),
    [
        ("0.5", "add_or_remove_one", {}, Fraction(1)),
        ("0.9", "add_or_remove_one", {}, Fraction(9, 5)),
        ("0.1", "add_or_remove_one", {}, Fraction(9, 5)),
        ("0.9", "replace_one", {}, Fraction(2)),
        ("0.9", "replace_one", {"groups": {"g": ["a", "b"]}}, Fraction(18, 5)),
    ],
)
def test_what_a_draw_costs(
    quantile: str, neighboring: str, change: dict[str, Any], records: Fraction
) -> None:
    entry = drawn_quantile(sample={"quantile": quantile, "draws": "1"})
    sample = quantile_of(compile_plan(sampled_spec({"x": entry}, neighboring=neighboring, **change)))
    unit = UNIT * sample.quantile.denominator
    assert Fraction(sample.range_sensitivity, unit) == records
    assert float(sample.rank_scale) == pytest.approx(float(records), rel=1e-6)
    assert 0 < 1 - sample.privacy_loss < Fraction(2, sample.scale)


@pytest.mark.parametrize(("rows_of", "records"), [("rows", 4), ("units", 1)])
@pytest.mark.parametrize(("neighboring", "times"), [("add_or_remove_one", 1), ("replace_one", 2)])
def test_units_multiply_the_range(rows_of: str, records: int, neighboring: str, times: int) -> None:
    privacy = {"epsilon": "1", "neighboring": neighboring, "unit": {"column": "who", "max_rows": "4"}}
    entry = {**drawn_quantile(), "rows_of": rows_of}
    plan = compile_plan(sampled_spec({"x": entry}, privacy=privacy, groups={"g": ["a", "b"]}))
    assert quantile_of(plan).range_sensitivity == times * records * 18 * UNIT


def test_rho_costs_an_eighth_of_the_square() -> None:
    privacy = {"rho": "0.5", "neighboring": "add_or_remove_one"}
    spec = sampled_spec({"x": drawn_quantile()}, privacy=privacy)
    sample = quantile_of(compile_plan(spec))
    assert 0 < Fraction(1, 2) - sample.rho < Fraction(1, 10**6)
    assert sample.rho == 2 * Fraction(sample.range_sensitivity, sample.scale) ** 2 / 8


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"quantile": "0"}, "above 0 and below 1"),
        ({"quantile": "1"}, "above 0 and below 1"),
        ({"quantile": "0.12345"}, "at most 4 decimals"),
        ({"draws": "0"}, "draws lies in 1..1000"),
        ({"grid": "9"}, "unknown key"),
    ],
)
def test_what_no_quantile_may_say(change: dict[str, str], rule: str) -> None:
    with pytest.raises(SpecError, match=rule) as refused:
        sampled_spec({"x": drawn_quantile(sample=change)})
    assert "statistics.x.sample" in refused.value.location


@pytest.mark.parametrize("missing", ["quantile", "draws"])
def test_what_decides_the_draw_has_no_default(missing: str) -> None:
    entry = drawn_quantile()
    del entry["sample"][missing]
    with pytest.raises(SpecError, match=f"the key '{missing}' is missing"):
        sampled_spec({"x": entry})


def test_a_scale_at_which_data_hardly_count_is_refused() -> None:
    with pytest.raises(SpecError, match="the data would hardly count"):
        compile_plan(
            sampled_spec(
                {"x": drawn_quantile(sample={"quantile": "0.0001", "draws": "1000"})}, epsilon="0.000001"
            )
        )


def test_the_rank_bound_holds_for_the_worst_data() -> None:
    """All other bins equally far off: then the chance of an error beyond the bound is that of the claim."""
    sample = quantile_of(
        compile_plan(sampled_spec({"x": drawn_quantile(sample={"draws": "1"})}, epsilon="0.1"))
    )
    tau = float(sample.rank_scale)
    for level in (0.5, 0.95, 0.999):
        bound = sample.rank_bound(level)
        weight = (sample.n_points - 1) * math.exp(-bound / tau)
        assert weight / (1.0 + weight) == pytest.approx(1.0 - level, rel=1e-9)


def test_a_plan_says_which_is_the_better_bargain_where_it_knows_the_rows() -> None:
    """As ``docs/how-to/release-one-quantile.md`` has it."""
    fine = drawn_quantile(bins="128", atoms=[], upper="1280", sample={"draws": "1"})
    spec = sampled_spec({"x": fine}, epsilon="0.1", assume={"rows": "3000"})
    plan = compile_plan(spec)
    drawn = expected_rank_error(quantile_of(plan), 3000)
    counted = counted_rank_error(quantile_of(plan), math.sqrt(2) * 10)
    (judged,) = plan.judged
    assert f"a draw misses the rank by {drawn:.3g} on average" in judged
    assert "this one alone, the draw is the better bargain" in judged
    said = str(plan)
    assert "rank by 10.8 on" in said
    assert max(map(len, said[said.index("x: histogram") : said.index("one unit:")].splitlines())) <= 80
    assert drawn < 20 < 0.8 * counted < 40
    assert "within 141 records of that rank with probability 0.95 at least" in " ".join(str(plan).split())
    silent = compile_plan(sampled_spec({"x": fine}, epsilon="0.1"))
    assert "bargain" not in str(silent)
    assert silent.plan_hash == plan.plan_hash
    often = drawn_quantile(sample={"draws": "20"})
    shared = compile_plan(sampled_spec({"x": often}, epsilon="0.1", assume={"rows": "3000"}))
    assert "this one alone, the histogram is the better bargain" in " ".join(str(shared).split())
    (entry,) = plan_document(plan)["statistics"]
    assert entry["sample"]["quantile"] == "0.9"
    assert entry["sample"]["candidates"] == 128
