"""Squared L2 sensitivities: all neighbours on tiny domains, and bounds that are a little wrong.

Every record of every family's universe is summed by the engine's kernels; units of up to three records over
three cells are enumerated from what records add. No change exceeds what the block declares, it is attained
where the proof says so, and a bound that lacks a factor is caught.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.spec.compiled_statistics import block_of
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.statistics import l2_sensitivity
from suffice.pipeline.terms.statistics.moment_columns import minimal_map, rotated_map, two_column_map
from suffice.pipeline.terms.statistics.sensitivity import (
    Block,
    Design,
    NeighboringRelation,
    minimal_moments,
    minimal_products,
)
from support.record_vectors import record_vectors, squared_change, unit_vectors
from support.units import by_customer
from support.universes import CASES, Case, Cases, of_example

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.statistics.moment_columns import Map

ADDED, REPLACED = NeighboringRelation
CELLS = 3
KEPT = [(rows, per_cell) for rows in range(1, 4) for per_cell in range(1, rows + 1)]
"""K and k: the rows that a unit keeps, and those of them in a cell."""
BY_ROW = [name for name, family in FAMILIES.items() if not family.needs_unit]
EXAMPLES: dict[str, Case | Cases] = {f"example of {name}": of_example(name) for name in BY_ROW}
UNIVERSES = {**CASES, **EXAMPLES}
EVERY_ROW: dict[str, Case | Cases] = {
    name: case for name, case in CASES.items() if name.endswith(("-nulls", "-other", "-boolean"))
} | {
    f"example of {name}": of_example(name, every_row_counts=True)
    for name in BY_ROW
    if name != "histogram" and of_example(name, every_row_counts=True) != of_example(name)
}
"""Cases in which every physical record may enter: where N is public all but histograms are minimal."""
INEXACT = {"example of normal"}
"""The universe lacks the best neighbour, a quarter of the way from an end."""
WHOLE_UNITS = {
    name: {"family": name, **FAMILIES[name].example.entry} for name in FAMILIES if FAMILIES[name].needs_unit
}
WHOLE_UNITS["histogram"] = {"family": "rows_per_unit", "upper": 9, "histogram": "true"}
WITHIN = {"within_unit": "true", "column": "v"}
WITHIN_UNITS: dict[str, tuple[dict[str, Any], list[tuple[int, int]]]] = {
    "bernoulli": ({"family": "bernoulli", **WITHIN}, [(1, 0), (0, 1)]),
    "normal": (
        {"family": "normal", "lower": -1, "upper": 1, "lattice_bits": "2", **WITHIN},
        [(8, 0), (5, 3), (0, 8)],
    ),
}
"""Entries of rows and units, and what records add to both parts of t."""


def spec_of(entry: dict[str, Any], privacy: dict[str, Any]) -> Spec:
    source = {"parquet": "/x"}
    return load_spec(
        {"name": "n", "dataset": "d", "source": source, "privacy": privacy, "statistics": {"s": entry}}
    )


def of_units(entry: dict[str, Any]) -> Block:
    """Return the block of a statistic under a unit of at most 3 rows."""
    privacy = {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": by_customer(3)}
    return block_of(spec_of(entry, privacy).statistics["s"], n_may_be_public=False)


def of_case(case: Case | Cases, *, n_is_public: bool = False) -> tuple[Block, NDArray[Any]]:
    """Return the block of a case and what its records add, each vector once, and zero."""
    neighboring = str(REPLACED if n_is_public else ADDED)
    spec = spec_of(case.statistic, {"epsilon": "1", "neighboring": neighboring})
    columns = zip(*case.records, strict=True)
    batch = pa.record_batch(
        {
            name: pa.array(list(values), kind, from_pandas=False)
            for (name, kind), values in zip(case.columns.items(), columns, strict=True)
        }
    )
    vectors = record_vectors(spec, batch).astype(np.int64)
    if not n_is_public:
        vectors = np.concatenate([vectors, np.zeros_like(vectors[:1])])
    return block_of(spec.statistics["s"], n_may_be_public=n_is_public), np.unique(vectors, axis=0)


def between(vectors: NDArray[Any]) -> NDArray[Any]:
    """Return the squared distances of all pairs."""
    squares = (vectors * vectors).sum(axis=1)
    distances: NDArray[Any] = squares[:, None] + squares - 2 * vectors @ vectors.T
    return distances


def farthest_few(vectors: NDArray[Any]) -> NDArray[Any]:
    """Return the longest vector, those with the largest distance, the lowest inner product, and zero."""
    inner = vectors @ vectors.T
    pairs = [np.argmax(between(vectors)), np.argmin(inner), np.argmax(np.diag(inner)) * (len(vectors) + 1)]
    return vectors[np.unique(np.unravel_index(pairs, inner.shape))]


def require_bounds(block: Block, vectors: NDArray[Any]) -> None:
    """Assert that no unit moves the totals further than declared, and some as far.

    A unit gives way to one in the same cells, or to one in others, which is twice what one adds.
    """
    few = farthest_few(vectors)
    for max_rows, per_cell in KEPT:
        units = unit_vectors(few, CELLS, max_rows, per_cell)
        added = squared_change(units, "add_or_remove_one")
        assert added == block.l2_squared(ADDED, max_rows, per_cell), "claimed tight"
        replaced = max(squared_change(units, "replace_one"), 2 * added)
        crossed = 4 * per_cell * (max_rows % per_cell) * block.opposed
        assert replaced <= block.l2_squared(REPLACED, max_rows, per_cell) <= replaced + crossed


@pytest.mark.parametrize("name", UNIVERSES)
def test_no_unit_moves_the_totals_further_than_declared(name: str) -> None:
    block, vectors = of_case(UNIVERSES[name])
    assert np.diag(vectors @ vectors.T).max() <= block.l2_squared(ADDED)
    assert between(vectors).max() <= block.l2_squared(REPLACED)
    require_bounds(block, vectors)


@pytest.mark.parametrize("name", EVERY_ROW)
def test_no_replaced_record_moves_minimal_statistics_further_than_declared(name: str) -> None:
    block, vectors = of_case(EVERY_ROW[name], n_is_public=True)
    assert block.design is Design.MINIMAL
    largest = between(vectors).max()
    assert largest <= block.l2_squared(REPLACED)
    assert largest == block.l2_squared(REPLACED) or name in INEXACT
    assert 2 * largest > block.l2_squared(REPLACED)
    for relation, max_rows in ((ADDED, 1), (REPLACED, 2)):
        with pytest.raises(ValueError, match="single records only"):
            block.l2_squared(relation, max_rows)


@pytest.mark.parametrize("name", [*UNIVERSES, *WHOLE_UNITS])
def test_replacing_costs_at_least_twice_what_adding_does(name: str) -> None:
    """Of every family: who leaves one window for another pays at most half in each. L2 is at most L1."""
    kept: list[tuple[int, int | None]] = [*KEPT, (12, 1), (12, 5), (20, None)]
    if name in UNIVERSES:
        block, _ = of_case(UNIVERSES[name])
        blocks = [block, replace(block, unit_l1=block.record_l1)]
    else:
        blocks = [of_units(WHOLE_UNITS[name])]
    for block, (max_rows, per_cell) in itertools.product(blocks, kept):
        added = block.l2_squared(ADDED, max_rows, per_cell)
        assert 2 * added <= block.l2_squared(REPLACED, max_rows, per_cell)
        for relation in (ADDED, REPLACED):
            squared = block.l2_squared(relation, max_rows, per_cell)
            assert 0 < squared <= block.l1_sensitivity(relation, max_rows) ** 2


@pytest.mark.parametrize("name", WITHIN_UNITS)
def test_rows_and_units_are_bounded_together_in_every_cell(name: str) -> None:
    """All units of up to three rows: weighted rows, and products of what they add to a cell."""
    entry, parts = WITHIN_UNITS[name]
    block, shared = of_units(entry), of_units(entry).within_unit
    assert shared is not None
    records = np.array(
        [
            [first, second] if len(parts) == 2 else [first**2, 2 * first * second, second**2]
            for first, second in parts
        ]
    )
    for per_cell in (1, 2, 3):
        of_rows = unit_vectors(shared.row_weight * records, CELLS, 3, per_cell).reshape(
            -1, CELLS, records.shape[1]
        )
        sums = unit_vectors(np.array(parts), CELLS, 3, per_cell).reshape(-1, CELLS, 2)
        first, second = sums[..., 0], sums[..., 1]
        products = np.stack([first**2, 2 * first * second, second**2], axis=-1)
        units = np.concatenate([of_rows, products], axis=-1).reshape(len(sums), -1)
        for relation in (ADDED, REPLACED):
            declared = block.l2_squared(relation, 3, per_cell)
            largest = squared_change(units, str(relation))
            assert largest == declared
            assert declared <= block.l1_sensitivity(relation) ** 2
        assert 2 * block.l2_squared(ADDED, 3, per_cell) == block.l2_squared(REPLACED, 3, per_cell)
        rows_alone = l2_sensitivity.kept_rows(block.record_l2_squared or 0, 3, per_cell)
        assert squared_change(units, str(ADDED)) > rows_alone, "products would be caught"


def test_less_than_a_row_is_refused() -> None:
    block, _ = of_case(CASES["bernoulli"])
    for rows, per_cell in ((0, None), (2, 0), (-1, 1)):
        with pytest.raises(ValueError, match="one row at least"):
            block.l2_squared(ADDED, rows, per_cell)
    assert block.l2_squared(ADDED, 3, 99) == block.l2_squared(ADDED, 3)


def added_by(released: Map, points: NDArray[Any]) -> NDArray[Any]:
    """Return what records at lattice points add, in Python integers."""
    ones = np.concatenate([np.ones_like(points[:, :1]), points], axis=1)
    first, second = np.triu_indices(released.size + 1)
    moments: NDArray[Any] = (ones[:, first] * ones[:, second]) @ released.matrix.T
    return moments


def lattice(steps: int, size: int) -> NDArray[Any]:
    """Return all points of a lattice."""
    return np.array(list(itertools.product(range(-steps, steps + 1), repeat=size)))


def names(size: int) -> tuple[str, ...]:
    return tuple("abcdef"[:size])


@pytest.mark.parametrize(
    ("size", "steps", "linear"),
    [(2, 1, True), (2, 24, True), (2, 12, False), (3, 1, True), (3, 4, True), (3, 4, False), (4, 2, True)],
)
def test_several_columns_on_every_lattice_point(size: int, steps: int, linear: bool) -> None:
    """All pairs of records: their lengths, their distances, and how far they point away from each other."""
    maps = [rotated_map(names(size), steps, linear=linear)]
    if size == 2 and linear:
        maps.append(two_column_map(names(size), steps))
    for released in maps:
        vectors = added_by(released, lattice(steps, size)).astype(np.int64)
        inner = vectors @ vectors.T
        squares = np.diag(inner)
        record = released.record_l2_squared or 0
        assert record == squares.max() <= (released.record_l1 or 0) ** 2
        assert between(vectors).max() <= 2 * record
        for most, few in ((3, 1), (8, 1), (9, 2)):
            bound = (most**2 + few**2) * record + 2 * most * few * released.opposed
            assert (most**2 * squares[:, None] + few**2 * squares - 2 * most * few * inner).max() <= bound


def test_many_rows_in_place_of_few_that_point_away_need_what_opposes() -> None:
    """A control: without the last term 12 rows at an end in place of one are farther than declared."""
    for released, steps in ((two_column_map(names(2), 16), 16), (rotated_map(names(3), 4, linear=True), 4)):
        vectors = added_by(released, lattice(steps, released.size)).astype(np.int64)
        longest = 12 * vectors[np.argmax((vectors * vectors).sum(axis=1))]
        change = ((longest - vectors) ** 2).sum(axis=1).max()
        assert change > (12**2 + 1) * (released.record_l2_squared or 0)


@pytest.mark.parametrize("weight", ["1/2", "1", "2", "4"])
@pytest.mark.parametrize(("size", "steps"), [(1, 4), (1, 64), (2, 4), (2, 8), (3, 4)])
def test_minimal_moments_are_exactly_those_of_the_farthest_lattice_points(
    size: int, steps: int, weight: str
) -> None:
    released = minimal_map(names(size), steps, Fraction(weight), linear=True)
    largest = between(added_by(released, lattice(steps, size)).astype(np.int64)).max()
    declared = l2_sensitivity.minimal_moments(steps, Fraction(weight), columns=size)
    assert largest == declared <= minimal_moments(steps, Fraction(weight), columns=size) ** 2


@pytest.mark.parametrize(("size", "steps"), [(2, 4), (2, 8), (3, 4), (4, 2)])
def test_minimal_products_are_exactly_those_of_the_farthest_lattice_points(size: int, steps: int) -> None:
    released = minimal_map(names(size), steps, Fraction(1), linear=False)
    largest = between(added_by(released, lattice(steps, size)).astype(np.int64)).max()
    declared = l2_sensitivity.minimal_moments(steps, None, columns=size)
    assert largest == declared == 4 * (size // 2) * (size - size // 2) * steps**4
    assert declared <= minimal_products(steps, columns=size) ** 2


STEPS = 1 << 12
COORDINATES = st.sampled_from([-STEPS, -STEPS // 2, 0, STEPS // 2, STEPS]) | st.integers(-STEPS, STEPS)


@given(st.data(), st.integers(2, 6), st.booleans())
def test_no_records_of_a_box_are_farther_apart(data: st.DataObject, size: int, linear: bool) -> None:
    points = st.lists(COORDINATES, min_size=size, max_size=size)
    pair = np.array([data.draw(points), data.draw(points)], dtype=object)
    maps = [rotated_map(names(size), STEPS, linear=linear)]
    if size == 2:
        maps.append(two_column_map(names(size), STEPS))
    for released in maps:
        first, second = added_by(released, pair)
        record = released.record_l2_squared or 0
        assert max(first @ first, second @ second) <= record
        assert (first - second) @ (first - second) <= 2 * record
        most, few = data.draw(st.tuples(st.integers(0, 40), st.integers(0, 40)))
        change = most * first - few * second
        assert change @ change <= (most**2 + few**2) * record + 2 * most * few * released.opposed
    weight = data.draw(st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(2), Fraction(16)]))
    minimal = minimal_map(names(size), STEPS, weight, linear=linear)
    first, second = added_by(minimal, pair)
    declared = l2_sensitivity.minimal_moments(STEPS, weight if linear else None, columns=size)
    assert (first - second) @ (first - second) <= declared


@pytest.mark.slow
@given(st.data(), st.integers(1, 9), st.integers(1, 9), st.integers(0, 40))
def test_no_units_of_any_sizes_are_farther_apart(
    data: st.DataObject, max_rows: int, per_cell: int, lowest: int
) -> None:
    """Random records, of either sign where `lowest` is above 0, spread in any way over four cells."""
    width, cells, per_cell = 3, 4, min(per_cell, max_rows)
    entries = st.lists(st.integers(-lowest, 40), min_size=width, max_size=width)
    universe = np.array(data.draw(st.lists(entries, min_size=1, max_size=4)))
    inner = universe @ universe.T
    opposed = max(0, -int(inner.min()))
    record = max(int(np.diag(inner).max()), int(between(universe).max() + 1) // 2)
    totals = np.zeros((2, cells, width), dtype=np.int64)
    for unit in totals:
        places = [(cell, at) for cell in range(cells) for at in range(per_cell)]
        for cell, _ in data.draw(st.permutations(places))[:max_rows]:
            unit[cell] += universe[data.draw(st.integers(0, len(universe) - 1))]
    assert (totals[0] ** 2).sum() <= l2_sensitivity.kept_rows(record, max_rows, per_cell)
    replaced = l2_sensitivity.replaced_rows(record, max_rows, per_cell, opposed=opposed)
    assert ((totals[0] - totals[1]) ** 2).sum() <= replaced


def test_rows_of_units_are_those_of_every_number_of_rows() -> None:
    for upper in range(1, 12):
        for kept in range(1, upper + 1):
            added = [
                (min(rows, kept), min(rows, upper) - min(rows, kept), upper - min(rows, upper))
                for rows in range(1, upper + 3)
            ]
            largest = max(sum(part**2 for part in parts) for parts in added)
            assert l2_sensitivity.rows_of_units(kept, upper) == largest <= upper**2


WRONG_BOUNDS: dict[str, tuple[str, Callable[..., int], str]] = {
    "rows as though each were in a cell of its own": ("kept_rows", lambda r, k, _c, _p=0: k * r, "poisson"),
    "one row in place of all": ("kept_rows", lambda r, _k, _c, _p=0: r, "normal"),
    "no rest of rows": ("kept_rows", lambda r, k, c, _p=0: k // c * c**2 * r, "categorical"),
    "a mean of rows per cell": ("kept_rows", lambda r, k, c, _p=0: k * c * r, "bernoulli"),
    "no row in place of another": ("replaced_rows", lambda r, k, _c, _p=0, _o=0: k**2 * r, "normal"),
    "replaced is twice, as by L1": ("replaced_rows", lambda r, k, _c, _p=0, _o=0: 4 * k**2 * r, "normal"),
    "one table": ("tables", lambda _n: 1, "naive_bayes"),
    "tables as by L1": ("tables", lambda n: n**2, "bayesian_network"),
    "counts for nothing": ("counts_beside", lambda sums, _a: sums, "normal-counted"),
    "counts as by L1": ("counts_beside", lambda sums, a: (math.isqrt(sums) + a) ** 2, "poisson-counted"),
    "parabolas as by L1": ("two_column_moments", lambda m: 289 * m**4, "multivariate_normal"),
    "parabolas at an edge": ("two_column_moments", lambda m: 77 * m**4, "linear_regression"),
    "products without squares": (
        "rotated_moments",
        lambda m, columns, **_: columns * m**4,
        "linear_regression-origin",
    ),
}


@pytest.mark.parametrize("wrong", WRONG_BOUNDS)
def test_a_wrong_bound_is_caught(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    function, bound, name = WRONG_BOUNDS[wrong]
    require_bounds(*of_case(UNIVERSES[name]))
    monkeypatch.setattr(l2_sensitivity, function, bound)
    with pytest.raises(AssertionError):
        require_bounds(*of_case(UNIVERSES[name]))


@pytest.mark.parametrize("wrong", ["the L1 sensitivity", "its square", "of one more record"])
def test_other_sensitivities_are_caught(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    right = Block.l2_squared

    def other(block: Block, neighboring: NeighboringRelation, *rows: int) -> int:
        if wrong == "of one more record":
            return right(block, ADDED, *rows)
        l1 = block.l1_sensitivity(neighboring, *rows[:1])
        return l1 if wrong == "the L1 sensitivity" else l1 * l1

    monkeypatch.setattr(Block, "l2_squared", other)
    with pytest.raises(AssertionError):
        require_bounds(*of_case(CASES["poisson"]))
    block, vectors = of_case(CASES["normal-nulls"], n_is_public=True)
    if wrong == "the L1 sensitivity":
        assert between(vectors).max() > block.l2_squared(REPLACED)


WRONG_MINIMAL: dict[str, tuple[str, Callable[..., int], str]] = {
    "one change of two counts": ("minimal_tables", lambda n: n, "contingency-other"),
    "only the ends": ("minimal_moments", lambda m, _w, columns=1: columns * m**4, "normal-nulls"),
    "one column alone": (
        "minimal_moments",
        lambda m, _w, **_: 5 * m**4 // 2,
        "multivariate_normal-nulls",
    ),
    "squares alone": ("minimal_moments", lambda m, _w, **_: m**4, "linear_regression-origin-nulls"),
    "counts for nothing": ("minimal_with_counts", lambda sums, _e, _a: sums, "normal-counted-nulls"),
    "one count": ("minimal_with_counts", lambda sums, _e, a: sums + a**2, "poisson-counted-nulls"),
}


@pytest.mark.parametrize("wrong", WRONG_MINIMAL)
def test_a_wrong_bound_beside_a_public_n_is_caught(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    function, bound, name = WRONG_MINIMAL[wrong]
    monkeypatch.setattr(l2_sensitivity, function, bound)
    block, vectors = of_case(CASES[name], n_is_public=True)
    assert between(vectors).max() > block.l2_squared(REPLACED)
