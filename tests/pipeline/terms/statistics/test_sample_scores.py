"""Scores on a grid: their tables, how far a unit moves them, and the loss of what is drawn by them."""

from __future__ import annotations

import decimal
import functools
import itertools
import math
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.one_sum import OneSum
from suffice.pipeline.families.shared.parameter_space import Support
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
from suffice.pipeline.terms.statistics.exponential_draws import LOWEST_SCORE, smallest_scale
from suffice.pipeline.terms.statistics.sample_plan import ScoreTables, grid_points, grid_values, logarithm
from suffice.pipeline.terms.statistics.sensitivity import Constants, NeighboringRelation
from support.samples import bernoulli_sample, log_law

if TYPE_CHECKING:
    from suffice.typing import Floats

ADD, REPLACE = NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_ONE
UNIT = 2**20
MOST_ROWS = 60
SAMPLED = {name: family for name, family in FAMILIES.items() if family.sampled is not None}


def within(name: str) -> tuple[Fraction, Fraction]:
    family = SAMPLED[name]
    (space,) = family.parameter_spaces(
        family.parameters(family.spec.model_validate({"family": name, **family.example.entry}))
    )
    ends = {Support.PROBABILITY: ("0.05", "0.7"), Support.POSITIVE: ("0.3", "4"), Support.REAL: ("-2", "9")}
    lower, upper = ends[space.support]
    return Fraction(lower), Fraction(upper)


def tables(name: str, grid: int) -> tuple[ScoreTables, Any]:
    family = SAMPLED[name]
    entry = family.spec.model_validate({"family": name, **family.example.entry})
    assert family.sampled is not None
    parameters = family.parameters(entry)
    width = family.block(entry, False).record_l1 or 0  # noqa: FBT003
    return family.sampled.tables(grid_points(within(name), grid), parameters, width), parameters


def test_the_twelve_families_of_one_parameter_can_be_sampled() -> None:
    counts = {"bernoulli", "binomial", "poisson", "geometric", "negative_binomial"}
    sizes = {"exponential", "gamma", "weibull", "pareto", "laplace"}
    assert set(SAMPLED) == counts | sizes | {"normal_known_mean", "normal_known_variance"}


@settings(max_examples=50)
@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9))
def test_logarithms_are_right_to_58_digits(number: Fraction) -> None:
    digits = decimal.Context(prec=90)
    quotient = digits.divide(*map(decimal.Decimal, number.as_integer_ratio()))
    assert abs(logarithm(number) - Fraction(digits.ln(quotient))) <= Fraction(1, 10**58) * 30


@pytest.mark.parametrize("name", [name for name in SAMPLED if name != "bernoulli"])
def test_scores_are_the_familys_log_likelihood(name: str) -> None:
    """Of totals within T's bounds: differences between grid points, to the floor of 2^-20 nats."""
    family = SAMPLED[name]
    made, parameters = tables(name, 17)
    n, share = 37, 0.3
    total = round(n * made.width * share)
    lower, upper = float(parameters.lower), float(parameters.upper)
    value = lower * n + (upper - lower) * total / made.width
    scores = np.array(made.scores(n, total)) / UNIT
    sums = OneSum(n=np.array(float(n)), total=np.array(value))
    expected = family.log_likelihood(grid_values(within(name), 17), sums, parameters)
    expected = expected - expected.max()
    assert scores == pytest.approx(expected, abs=3 / UNIT + 1e-9 * abs(expected).max())
    assert scores.max() == 0


@pytest.mark.parametrize("name", SAMPLED)
def test_the_range_of_one_record_is_largest_at_an_end_of_t(name: str) -> None:
    made, _ = tables(name, 65)

    def span(x: int) -> int:
        moved = [a * x - c for a, c in zip(made.slopes, made.offsets, strict=True)]
        return max(moved) - min(moved)

    inside = {made.width * step // 50 for step in range(51)}
    largest = max(span(x) for x in inside | {0, made.width})
    assert largest == max(span(0), span(made.width))
    bound = made.range_sensitivity(ADD, records=1, n_cells=1, n_is_public=False)
    assert largest / 2**40 + 1 <= bound <= largest / 2**40 + 3
    assert made.range_sensitivity(REPLACE, records=1, n_cells=1, n_is_public=False) <= 2 * bound


@settings(max_examples=80)
@given(data=st.data())
def test_no_neighbours_move_scores_by_more_than_the_range(data: st.DataObject) -> None:
    """Real scores of several cells, floored and cut off, with tables that no family has."""
    points, width = data.draw(st.integers(2, 5)), data.draw(st.integers(1, 4))
    numbers = st.integers(-(2**61), 2**61) | st.integers(-(2**110), 2**110)
    lists = st.lists(numbers, min_size=points, max_size=points).map(tuple)
    made = ScoreTables(slopes=data.draw(lists), offsets=data.draw(lists), width=width)
    n_cells, records = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    row = st.tuples(st.integers(0, n_cells - 1), st.integers(0, width))
    unit = st.lists(row, min_size=records, max_size=records)
    base = data.draw(st.lists(row, max_size=4))
    relation = data.draw(st.sampled_from(list(NeighboringRelation)))
    first, second = base + data.draw(unit), base
    if relation is REPLACE:
        second = base + data.draw(unit)

    def scores(rows: list[tuple[int, int]]) -> list[list[int]]:
        cells = [[x for cell, x in rows if cell == number] for number in range(n_cells)]
        return [made.scores(len(values), sum(values)) for values in cells]

    moved = 0
    for before, after in zip(scores(first), scores(second), strict=True):
        assert max(before) == 0
        assert min(before) >= LOWEST_SCORE
        changes = [a - b for a, b in zip(after, before, strict=True)]
        moved += max(changes) - min(changes)
    assert moved <= made.range_sensitivity(relation, records=records, n_cells=n_cells, n_is_public=False)


def test_a_record_that_changes_its_cell_is_floored_twice() -> None:
    """A range that counted the floor once would be too small."""
    half = 1 << 39
    made = ScoreTables(slopes=(0, half), offsets=(0, half), width=1)
    moved = 0
    for before, after in (((1, 0), (0, 0)), ((0, 0), (1, 0))):
        changes = np.subtract(made.scores(*after), made.scores(*before))
        moved += int(changes.max() - changes.min())
    real = 2 * Fraction(1, 2)
    assert moved == 2 > real
    assert made.range_sensitivity(REPLACE, records=1, n_cells=2, n_is_public=False) == 4


def test_where_the_number_of_records_is_public_slopes_alone_count() -> None:
    made = ScoreTables(slopes=(0, 5 << 40), offsets=(0, 100 << 40), width=3)
    assert made.range_sensitivity(REPLACE, records=1, n_cells=1, n_is_public=True) == 16
    for change in ({"records": 2}, {"n_cells": 2}):
        with pytest.raises(ValueError, match="N is public"):
            made.range_sensitivity(REPLACE, n_is_public=True, **{"records": 1, "n_cells": 1, **change})
    with pytest.raises(ValueError, match="N is public"):
        made.range_sensitivity(ADD, records=1, n_cells=1, n_is_public=True)


@pytest.mark.parametrize(
    ("ends", "neighboring", "public", "nats"),
    [
        (("0.2", "0.8"), "add_or_remove_one", False, math.log(4)),
        (("0.2", "0.8"), "replace_one", False, 2 * math.log(4)),
        (("0.005", "0.5"), "add_or_remove_one", False, 4.60517019),
        (("0.005", "0.5"), "replace_one", True, 5.29330482),
        (("0.005", "0.5"), "replace_one", False, 2 * 4.60517019),
    ],
)
def test_what_a_bernoulli_sample_costs(
    ends: tuple[str, str], neighboring: str, nats: float, *, public: bool
) -> None:
    sample, _ = bernoulli_sample(ends, neighboring=neighboring, public=public)
    assert math.ceil(nats * UNIT) <= sample.range_sensitivity <= math.ceil(nats * UNIT) + 2
    assert float(sample.temperature) == pytest.approx(nats, abs=4 / UNIT)
    assert 0 < 1 - sample.privacy_loss < Fraction(2, sample.scale)


def test_the_range_of_the_issue_in_integers() -> None:
    sample, _ = bernoulli_sample(("0.2", "0.8"))
    assert 1_453_635 <= sample.range_sensitivity <= 1_453_637
    papers = 2 * (math.log(0.995 / 0.5) + math.log(0.5 / 0.005))  # 2 sup|change|, at theta = .005 and .5
    assert papers == pytest.approx(10.58661, abs=1e-5)


def test_the_scale_is_the_least_integer_that_loses_less_than_epsilon() -> None:
    for bound, draws, epsilon in itertools.product((4 << 20, 1_453_636), (1, 3), ("1", "0.1", "0.3")):
        scale = smallest_scale(bound, draws, PrivacyLoss.of_epsilon(Fraction(epsilon)))
        assert Fraction(draws * bound, scale) < Fraction(epsilon) <= Fraction(draws * bound, scale - 1)
    assert smallest_scale(1000, 1, PrivacyLoss.of_epsilon(Fraction(5))) == UNIT


@functools.cache
def scores_of_all(ends: tuple[str, str], most: int) -> list[Floats]:
    """The scores of every data set, (sums, points), by its number of rows; whatever the relation."""
    _, made = bernoulli_sample(ends)
    return [
        np.array([made.scores(n, total) for total in range(n + 1)], dtype=np.float64) for n in range(most + 2)
    ]


def worst_loss(ends: tuple[str, str], scale: float, neighboring: str, *, most: int = MOST_ROWS) -> float:
    """Return the largest log ratio over all data sets of up to so many rows and all of their neighbours."""
    laws = [log_law(scores, scale) for scores in scores_of_all(ends, most)]
    pairs = [(law[:-1], law[1:]) for law in laws[1:-1]]
    if neighboring == "add_or_remove_one":
        pairs = [pair for law, more in pairwise(laws) for pair in ((law, more[:-1]), (law, more[1:]))]
    return max(float(abs(first - second).max()) for first, second in pairs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("neighboring", "expected"), [("add_or_remove_one", 0.98410), ("replace_one", 0.92938)]
)
def test_the_enumerated_loss_stays_below_epsilon(neighboring: str, expected: float) -> None:
    """And a range that is understated by a tenth exceeds it."""
    ends = ("0.2", "0.8")
    sample, _ = bernoulli_sample(ends, neighboring=neighboring)
    loss = worst_loss(ends, sample.scale, neighboring)
    assert loss == pytest.approx(expected, abs=1e-5)
    assert loss <= 1 < worst_loss(ends, 0.9 * sample.scale, neighboring)


@pytest.mark.slow
def test_forgetting_an_end_of_t_loses_more_than_epsilon() -> None:
    ends = ("0.005", "0.5")
    sample, made = bernoulli_sample(ends)
    assert worst_loss(ends, sample.scale, "add_or_remove_one", most=20) <= 1
    forgotten = max(made.offsets) - min(made.offsets)  # of x = 0 alone
    scale = smallest_scale((forgotten >> 40) + 2, 1, PrivacyLoss.of_epsilon(Fraction(1)))
    assert scale < sample.scale / 4
    assert worst_loss(ends, scale, "add_or_remove_one", most=20) > 1


@pytest.mark.slow
def test_the_range_is_all_but_attained() -> None:
    """1,000 equal records and one more, at temperature 1: nearly log 9."""
    sampled = SAMPLED["bernoulli"].sampled
    assert sampled is not None
    made = sampled.tables(grid_points((Fraction(1, 10), Fraction(9, 10)), 4097), Constants(), 1)
    before, after = (log_law(np.array(made.scores(n, n), np.float64), UNIT) for n in (1000, 1001))
    assert abs(after - before).max() == pytest.approx(2.19623, abs=2e-4)
    assert abs(after - before).max() < math.log(9)
