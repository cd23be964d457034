"""Exhaustive neighbours on tiny domains, through the real compile, chunk and combine path.

Every data set of up to three rows over a small universe of records is summed by the engine; every pair of
neighbours is compared. The declared sensitivity is never exceeded, is attained where the proof says so, and
a halved one is caught.
"""

from __future__ import annotations

import datetime as dt
import itertools
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.beside_sums import totals_of
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk, chunk_job
from suffice.pipeline.spec.compiled_statistics import block_of
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.statistics.count_table import released_tables
from suffice.pipeline.terms.statistics.moment_columns import minimal_map, rotated_map
from suffice.pipeline.terms.statistics.sensitivity import (
    Design,
    NeighboringRelation,
    minimal_moments,
    minimal_products,
    rotated_moments,
)
from support.record_vectors import squared_change
from support.splits import splits_of
from support.universes import CASES, JOINT, SCALAR, STRUCTURED, Case, Cases, Row, of_example

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from suffice.pipeline.rows.chunk.exact_sums import Sums
    from suffice.pipeline.terms.statistics.moment_columns import Map
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan

DAYS = [dt.date(2013, 1, 31), dt.date(2013, 2, 1), None]


NEARLY_ATTAINED = {
    (name, "replace_one", shape)
    for name in SCALAR
    if name.startswith(tuple(JOINT))
    for shape in ("plain", "window")
} - {("linear_regression-origin-nulls", "replace_one", "plain")}
"""Bounded components need two cells for twice; a box's best neighbour is no point of a coarse lattice."""
NOT_ATTAINED = {("categorical-one", "replace_one", shape) for shape in ("plain", "window")}
"""One category in one cell: a replaced record can only enter or leave, which moves 1 of the declared 2."""


class Engine:
    """Sums data sets of rows over a spec, exactly as a release does."""

    def __init__(self, directory: Path, case: Case | Cases, neighboring: str, shape: str) -> None:
        spec = {
            "name": "n",
            "dataset": "d",
            "source": {"parquet": str(directory)},
            "privacy": {"epsilon": "1", "neighboring": neighboring},
            "statistics": {"s": case.statistic},
        }
        if shape == "groups":
            spec["groups"] = {"g": ["a", "b"]}
        if shape == "window":
            spec["window"] = {"column": "t", "every": "month"}
        self.directory = directory
        self.case = case
        self.spec = load_spec(spec)
        self.plan = compile_plan(self.spec)
        self.job = chunk_job(self.spec, "2013-01" if shape == "window" else "all")
        keys = ["a", "b", "unknown", None] if shape == "groups" else ["a"]
        days = DAYS if shape == "window" else [DAYS[0]]
        self.universe: list[Row] = [
            (*values, *others) for values, *others in itertools.product(case.records, keys, days)
        ]

    @property
    def statistic(self) -> StatisticPlan:
        return self.plan.statistics[0]

    @property
    def l2_squared(self) -> int:
        """The squared L2 sensitivity of the block."""
        n_is_public = self.statistic.design is Design.MINIMAL
        return block_of(self.spec.statistics["s"], n_may_be_public=n_is_public).l2_squared(
            self.plan.neighboring
        )

    def vectors(self) -> NDArray[Any]:
        """Return the totals of every single record, shape (n_records, n_cells * n_components).

        One file with a row group per record: each is one partition, summed by the real kernel.
        """
        return np.array([self.summed(sums) for sums in self.chunks(self.universe, 1)])

    def totals(self, rows: Sequence[Row]) -> NDArray[Any]:
        """Return the totals of rows, of which one chunk is made."""
        chunks = self.chunks(rows, max(1, len(rows)))
        if not chunks:
            return np.zeros(self.plan.n_cells * len(self.statistic.components), dtype=object)
        (sums,) = chunks
        return self.summed(sums)

    def chunks(self, rows: Sequence[Row], at_once: int) -> list[Sums]:
        """Write a file in row groups of so many rows, and return the sums of each."""
        types = {**self.case.columns, "g": pa.string(), "t": pa.date32()}
        columns = zip(*rows, strict=True) if rows else ((),) * len(types)
        table = pa.table(
            {
                name: pa.array(list(values), type=kind, from_pandas=False)
                for (name, kind), values in zip(types.items(), columns, strict=True)
            }
        )
        pq.write_table(table, self.directory / "data.parquet", row_group_size=at_once)
        splits = splits_of(self.spec, at_once)
        assert [split.n_rows for split in splits] == [at_once] * (len(rows) // at_once)
        return [chunk(partition, self.job) for partition in splits]

    def summed(self, sums: Sums) -> NDArray[Any]:
        """Return the totals that are released, without their noise."""
        exact = to_python(sums)["s"]
        entry = self.spec.statistics["s"]
        return totals_of(FAMILIES[entry.family], entry, self.statistic, exact).ravel()


BY_ROW = [name for name, family in FAMILIES.items() if not family.needs_unit]
"""Families whose records are rows; `test_transitions.py` and `test_unit_sensitivity.py` have the others."""


@pytest.mark.slow
@pytest.mark.parametrize("every_row_counts", [False, True])
@pytest.mark.parametrize("neighboring", [str(relation) for relation in NeighboringRelation])
@pytest.mark.parametrize("family", BY_ROW)
def test_no_neighbour_moves_an_example_further_than_declared(
    tmp_path: Path, family: str, neighboring: str, every_row_counts: bool
) -> None:
    """Of every family in the registry; that a bound is tight shows in the cases below."""
    engine = Engine(tmp_path, of_example(family, every_row_counts=every_row_counts), neighboring, "plain")
    vectors = engine.vectors()
    largest = largest_change(vectors, engine.plan.neighboring)
    assert engine.statistic.l1_sensitivity // 2 < largest <= engine.statistic.l1_sensitivity
    assert engine.l2_squared // 4 < largest_square(vectors, engine.plan.neighboring) <= engine.l2_squared


ONE_OF_A_FAMILY = {str(case.statistic["family"]): name for name, case in reversed(CASES.items())}
"""The first case of each family: which rows lie in a window, no other key of an entry changes."""


@pytest.mark.slow
@pytest.mark.parametrize("neighboring", [str(relation) for relation in NeighboringRelation])
@pytest.mark.parametrize(
    ("case", "shape"),
    [
        pytest.param(
            name,
            shape,
            marks=[pytest.mark.audit] if shape == "window" and name not in ONE_OF_A_FAMILY.values() else [],
        )
        for name in CASES
        for shape in ("plain", "groups", "window")
    ],
)
def test_no_neighbour_moves_the_totals_further_than_declared(
    tmp_path: Path, case: str, neighboring: str, shape: str
) -> None:
    engine = Engine(tmp_path, CASES[case], neighboring, shape)
    vectors = engine.vectors()
    largest = largest_change(vectors, engine.plan.neighboring)
    squared = largest_square(vectors, engine.plan.neighboring)
    declared = engine.statistic.l1_sensitivity
    assert squared <= engine.l2_squared <= declared**2
    assert largest <= declared
    assert largest > declared // 2 or (case, neighboring, shape) in NOT_ATTAINED, (
        "a halved one must be caught"
    )
    if (case, neighboring, shape) not in NOT_ATTAINED | NEARLY_ATTAINED:
        assert largest == declared, "claimed tight"
        assert squared == engine.l2_squared, "claimed tight"


def largest_change(records: NDArray[Any], neighboring: NeighboringRelation) -> int:
    """Return the largest L1 change over all neighbours; that totals are sums over records is tested below."""
    if neighboring is NeighboringRelation.ADD_OR_REMOVE_ONE:
        return int(np.abs(records).sum(axis=1).max())
    return int(max(np.abs(first - second).sum() for first, second in itertools.combinations(records, 2)))


def largest_square(records: NDArray[Any], neighboring: NeighboringRelation) -> int:
    """Return the largest squared L2 change: from no record to any, or from any to any."""
    empty = np.zeros_like(records[:1])
    if neighboring is NeighboringRelation.ADD_OR_REMOVE_ONE:
        records = np.concatenate([empty, records])
    return squared_change(records, neighboring)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["plain", "groups"])
@pytest.mark.parametrize(
    "name",
    [
        "bernoulli",
        "categorical-other",
        "poisson",
        "normal",
        "weibull",
        "lognormal",
        "normal-counted",
        "multivariate_normal",
        "bayesian_network",
    ],
)
def test_totals_are_sums_over_records(tmp_path: Path, name: str, shape: str) -> None:
    """What makes comparing single records exhaustive: a data set's totals are the sum of its records'."""
    engine = Engine(tmp_path, CASES[name], "add_or_remove_one", shape)
    records = dict(zip(engine.universe, engine.vectors(), strict=True))
    assert not engine.totals([]).any()
    pairs = list(itertools.combinations_with_replacement(engine.universe, 2))
    for rows in [*pairs[:: 3 + len(pairs) // 500], engine.universe, engine.universe * 3]:
        expected = sum((records[row] for row in rows), np.zeros(len(engine.totals([])), dtype=object))
        assert (engine.totals(rows) == expected).all()


def changes(released: Map, steps: int) -> tuple[int, int]:
    """Return the largest L1 norm of a record's components over a lattice, and of a replaced one's change."""
    matrix, size = released.matrix.astype(np.int64), released.size
    points = np.array(list(itertools.product(range(-steps, steps + 1), repeat=size)))
    ones = np.concatenate([np.ones((len(points), 1), int), points], axis=1)
    first, second = np.triu_indices(size + 1)
    vectors = (ones[:, first] * ones[:, second]) @ matrix.T
    largest = max(int(np.abs(vectors - vector).sum(axis=1).max()) for vector in vectors)
    return int(np.abs(vectors).sum(axis=1).max()), largest


@pytest.mark.parametrize("weight", ["1/2", "1", "2", "4"])
@pytest.mark.parametrize(("size", "steps"), [(1, 2), (1, 4), (1, 32), (2, 4), (2, 8), (3, 4)])
def test_the_box_bound_holds_on_every_pair_of_lattice_points(size: int, steps: int, weight: str) -> None:
    if Fraction(steps) < Fraction(weight):
        with pytest.raises(ValueError, match="lattice"):
            minimal_moments(steps, Fraction(weight), columns=size)
        return
    names = tuple("abcd"[:size])
    _, largest = changes(minimal_map(names, steps, Fraction(weight), linear=True), steps)
    declared = minimal_moments(steps, Fraction(weight), columns=size)
    assert declared / 2 < 0.9 * declared < largest <= declared
    if (size, weight, steps) in {(1, "2", 4), (1, "2", 32), (1, "1", 4), (1, "4", 32)}:
        assert largest == declared, "the best neighbour is a lattice point"
    products = minimal_map(names, steps, Fraction(1), linear=False)
    assert changes(products, steps)[1] == minimal_products(steps, columns=size)


@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize(("size", "steps"), [(1, 8), (2, 4), (2, 8), (3, 4), (4, 2)])
def test_the_rotated_bound_is_that_of_enumeration(size: int, steps: int, linear: bool) -> None:
    released = rotated_map(tuple("abcd"[:size]), steps, linear=linear)
    single, replaced = changes(released, steps)
    declared = rotated_moments(steps, columns=size, linear=linear)
    assert single == declared
    assert declared < replaced <= 2 * declared


@pytest.mark.slow
@pytest.mark.parametrize("weight", ["1/2", "1", "2", "16"])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_no_search_on_a_fine_lattice_finds_a_larger_change(size: int, weight: str) -> None:
    """Coordinate search from many starts: it comes close to the bound and never beyond."""
    steps, rng = 1 << 16, np.random.default_rng(7)
    bound = minimal_moments(steps, Fraction(weight), columns=size)
    first, second = np.triu_indices(size)
    grid = np.rint(np.linspace(-1, 1, 4 * (size + 1) * 16 + 1) * steps)

    def change(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        linear = np.abs(x - y).sum(axis=-1) * (steps / float(Fraction(weight)))
        products = x[..., first] * x[..., second] - y[..., first] * y[..., second]
        return np.asarray(linear + np.abs(products).sum(axis=-1))

    best = 0.0
    for _ in range(12):
        pair = rng.choice(grid, (2, size))
        reached = -1.0
        while change(*pair) > reached:
            reached = float(change(*pair))
            for side, column in itertools.product(range(2), range(size)):
                tried = np.repeat(pair[None], len(grid), axis=0)
                tried[:, side, column] = grid
                pair = tried[np.argmax(change(tried[:, 0], tried[:, 1]))]
        best = max(best, reached)
    assert 0.98 * bound < best <= bound


def test_the_naive_range_sum_would_be_larger_and_the_separate_sum_smaller() -> None:
    """Controls for the enumeration: neither adding up ranges nor taking one component gives the number."""
    steps = 8
    ranges = 2 * steps * steps // 2 + steps**2
    assert minimal_moments(steps, Fraction(2)) < ranges
    assert minimal_moments(steps, Fraction(2)) > steps**2


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(STRUCTURED))
def test_a_row_enters_all_tables_or_none(tmp_path: Path, name: str) -> None:
    """Entering some tables only would keep the bound, but then the tables would count different rows."""
    engine = Engine(tmp_path, CASES[name], "add_or_remove_one", "groups")
    sizes = [table.size for table in released_tables(engine.statistic.parameters.tables)]
    added = set()
    for vector in engine.vectors():
        cells = vector.reshape(engine.plan.n_cells, -1)
        parts = np.split(cells, np.cumsum(sizes)[:-1], axis=1)
        added.add(tuple(int(part.sum()) for part in parts))
    assert added == {(0,) * len(sizes), (1,) * len(sizes)}


def test_class_counts_beside_the_tables_would_cost_more(tmp_path: Path) -> None:
    """A margin is a function of its table, but releasing it anew adds to what a record moves."""
    engine = Engine(tmp_path, CASES["naive_bayes"], "add_or_remove_one", "plain")
    vectors = engine.vectors()
    table = engine.statistic.parameters.tables[0]
    margin = vectors[:, : table.size].reshape(-1, *table.shape).sum(axis=2)
    with_margin = np.abs(np.concatenate([vectors, margin], axis=1)).sum(axis=1).max()
    assert with_margin == engine.statistic.l1_sensitivity + 1


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_row_that_moves_between_windows_costs_half_in_each(tmp_path: Path, name: str) -> None:
    """Under replace_one a window gains or loses a row: at most half of what its noise is calibrated for."""
    engine = Engine(tmp_path, CASES[name], "replace_one", "window")
    vectors = engine.vectors()
    assert 2 * int(np.abs(vectors).sum(axis=1).max()) == engine.statistic.l1_sensitivity
    single = largest_square(vectors, NeighboringRelation.ADD_OR_REMOVE_ONE)
    assert 2 * single == engine.l2_squared, "by Euclidean distance too, which squares have"
    assert engine.statistic.design is not Design.MINIMAL
