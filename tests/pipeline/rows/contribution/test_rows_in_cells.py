"""Rows of a unit in a cell: neighbours over small domains, all of them, through the real tasks.

A unit holds any multiset of records of a small universe, each in a partition of its own, beside another unit
with too many rows. The declared sensitivity is attained and never exceeded; what would break it is caught.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.beside_sums import totals_of
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.contribution import bounding, siphash
from suffice.pipeline.rows.contribution.records import UnitKey
from suffice.pipeline.rows.reduce import shuffle
from suffice.pipeline.rows.reduce.shuffle import bounded_sums
from suffice.pipeline.rows.reduce.tree import open_cluster_for_sums
from suffice.pipeline.spec.compiled_statistics import score_tables
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.terms.declaration.fields import SampleEntry, sample_entry
from support.hostile import bernoulli, categorical, make_spec, normal, poisson
from support.unit_engine import MAX_ROWS_OF_CELLS, ROWS_IN_CELL, UnitEngine, farthest
from support.units import KEY, OTHER_KEY, by_customer, partitions_of, sum_tasks, write_row_groups

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from suffice.pipeline.cluster.connection import Cluster
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.contribution import Contribution

RELATIONS = ["add_or_remove_one", "replace_one"]
SHAPES = list(ROWS_IN_CELL)
DAY = dt.date(2013, 1, 31)
FLAG = bernoulli("flag")


def of_cells(tmp_path: Path, name: str, neighboring: str, shape: str) -> UnitEngine:
    """Return what sums records at both ends of a domain, in every cell."""
    engine = UnitEngine(tmp_path, name, neighboring, shape)
    present = [value for value in engine.values if value is not None]
    cells = ["a", "b"] if shape == "rows in cells" else ["a"]
    engine.universe = list(itertools.product([present[0], present[-1]], cells, [DAY]))
    return engine


def contribution_to(engine: UnitEngine) -> Contribution:
    contribution = engine.plan.statistics[0].contribution
    assert contribution is not None
    return contribution


@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["bernoulli", "normal"])
def test_no_unit_moves_the_totals_further_than_declared(
    tmp_path: Path, name: str, shape: str, neighboring: str
) -> None:
    engine = of_cells(tmp_path, name, neighboring, shape)
    contribution, statistic = contribution_to(engine), engine.plan.statistics[0]
    assert (contribution.rows, contribution.rows_in_cell) == (2, ROWS_IN_CELL[shape])
    assert contribution.rows < MAX_ROWS_OF_CELLS
    vectors = engine.of_every_unit(most=MAX_ROWS_OF_CELLS)
    assert farthest(vectors, neighboring) == engine.declared
    # What a unit adds to a cell is its rows there, times what one adds.
    added = (vectors - vectors[0]).reshape(len(vectors), statistic.n_cells, -1).sum(axis=2)
    rows = added // (statistic.partition_total or 1)
    assert rows.max() == contribution.rows_in_cell
    assert (rows**2).sum(axis=1).max() == contribution.sum_of_squares


@pytest.mark.parametrize("neighboring", RELATIONS)
def test_products_of_units_are_of_the_rows_in_a_cell(tmp_path: Path, neighboring: str) -> None:
    engine = of_cells(tmp_path, "bernoulli within units", neighboring, "rows in one cell")
    assert engine.declared == (8 * 2 + 2**2) * (1 if neighboring == "add_or_remove_one" else 2)
    assert farthest(engine.of_every_unit(most=MAX_ROWS_OF_CELLS), neighboring) == engine.declared


@pytest.mark.parametrize(("max_rows", "in_cell"), [(3, 2), (5, 2)])
def test_products_add_up_over_cells(tmp_path: Path, max_rows: int, in_cell: int) -> None:
    """Two cells: three rows fill one and a half, five would fill more than there are."""
    spec = small_spec(tmp_path, max_rows, in_cell, {"s": {**FLAG, "within_unit": "true"}})
    (statistic,) = compile_plan(spec).statistics
    job, largest = chunk_job(spec), 0
    for counts in itertools.product(range(4), repeat=2):
        write(tmp_path, [("B", 1, cell) for cell, n in zip("ab", counts, strict=True) for _ in range(n)])
        sums = to_python(sum_tasks(job, partitions_of(spec)))["s"]
        totals = totals_of(FAMILIES["bernoulli"], spec.statistics["s"], statistic, sums)
        largest = max(largest, int(totals.sum()))
    kept = min(max_rows, 2 * in_cell)
    assert largest == statistic.l1_sensitivity == 8 * kept + in_cell**2 + (kept - in_cell) ** 2


@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_scores_of_a_sample_move_no_further_than_declared(
    tmp_path: Path, shape: str, neighboring: str
) -> None:
    engine = of_cells(tmp_path, "bernoulli", neighboring, shape)
    drawn = {"draws": 1, "within": ["0.1", "0.9"], "grid": "5"}
    in_cell, groups = ROWS_IN_CELL[shape], {"g": ["a", "b"]} if shape == "rows in cells" else {}
    privacy = {
        "epsilon": "1",
        "neighboring": neighboring,
        "unit": by_customer(MAX_ROWS_OF_CELLS, max_rows_per_cell=str(in_cell)),
    }
    spec = make_spec(tmp_path, {"s": bernoulli("v", sample=drawn)}, groups=groups, privacy=privacy)
    sample = compile_plan(spec).statistics[0].sample
    entry = sample_entry(spec.statistics["s"])
    assert sample is not None
    assert isinstance(entry, SampleEntry)
    tables = score_tables(spec.statistics["s"], entry)
    n_cells = engine.job.n_cells["s"]
    false_true = engine.of_every_unit().reshape(-1, n_cells, 2)
    scores = np.array([[tables.scores(int(f + t), int(t)) for f, t in cells] for cells in false_true], object)
    others = scores[:1] if neighboring == "add_or_remove_one" else scores
    moved = scores[:, None] - others[None]
    farthest_range = int((moved.max(axis=3) - moved.min(axis=3)).sum(axis=2).max())
    assert farthest_range <= sample.range_sensitivity
    records = 2 * (1 if neighboring == "add_or_remove_one" else 2)
    assert sample.range_sensitivity == tables.range_sensitivity(
        engine.spec.privacy.neighboring, records=2, n_cells=n_cells, n_is_public=False
    )
    assert farthest_range > sample.range_sensitivity - 2 * records - 2, "attained but for the floors"


# Mutants


@pytest.mark.parametrize("shape", SHAPES)
def test_a_bound_that_is_forgotten_is_caught(tmp_path: Path, shape: str) -> None:
    engine = of_cells(tmp_path, "normal", "add_or_remove_one", shape)
    unit = engine.job.unit
    assert unit is not None
    forgetful = unit.model_copy(update={"max_rows_per_cell": None})
    engine.job = dataclasses.replace(engine.job, unit=forgetful)
    assert farthest(engine.of_every_unit(most=MAX_ROWS_OF_CELLS), "add_or_remove_one") > engine.declared


@pytest.mark.parametrize("shape", SHAPES)
def test_a_bound_in_each_partition_is_caught(tmp_path: Path, shape: str) -> None:
    engine = of_cells(tmp_path, "normal", "add_or_remove_one", shape)
    assert farthest(engine.of_every_unit(each=True), "add_or_remove_one") > engine.declared


KEYS = [UnitKey.of(bytes((number * 7 + position) % 256 for position in range(48))) for number in range(40)]


def kept_of_two(engine: UnitEngine) -> set[tuple[int, ...]]:
    """Return what a unit with one 0 and one 1 in a cell adds there, over runs' keys."""
    kept = set()
    for key in KEYS:
        engine.key = key
        kept.add(tuple(map(int, engine.totals([("B", (value, "a", DAY)) for value in (0, 1)])[:2])))
    return kept


def test_neither_value_is_preferred_in_a_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of two is kept under some key: none would be under 40 with a chance of 2^-39."""
    engine = of_cells(tmp_path, "bernoulli", "add_or_remove_one", "rows in cells")
    assert kept_of_two(engine) == {(0, 1), (1, 0)}

    def by_value(*arguments: Any) -> None:
        arguments[-1][:] = 7  # ties go by content

    monkeypatch.setattr(siphash, "rank_rows", by_value)
    assert len(kept_of_two(engine)) == 1


def test_a_choice_by_position_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def moved(engine: UnitEngine) -> int:
        """How far the order of the rows of a unit moves the totals."""
        rows = [("B", record) for record in engine.universe for _ in range(3)]
        return int(abs(engine.totals(rows) - engine.totals(rows[::-1])).sum())

    engine = of_cells(tmp_path, "normal", "add_or_remove_one", "rows in cells")
    assert moved(engine) == 0
    monkeypatch.setattr(bounding, "_by_rank", lambda records, _key: np.arange(len(records)))
    assert moved(engine) > 0


# What is kept, and on which paths

Row = tuple[str | None, int | None, str]


def write(directory: Path, rows: Sequence[Row], sizes: list[int] | None = None) -> None:
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    units, flags, cells = map(list, columns)
    table = pa.table(
        {
            "u": pa.array(units, pa.string()),
            "flag": pa.array(flags, pa.int64()),
            "g": pa.array(cells, pa.string()),
        }
    )
    write_row_groups(directory, table, [1] * len(rows) if sizes is None else sizes)


def small_spec(
    directory: Path, max_rows: int, in_cell: int | None, statistics: dict[str, Any], **unit: str
) -> Spec:
    bound = {} if in_cell is None else {"max_rows_per_cell": str(in_cell)}
    privacy = {
        "epsilon": "1",
        "neighboring": "add_or_remove_one",
        "unit": by_customer(max_rows, **bound, **unit),
    }
    return make_spec(directory, statistics, groups={"g": ["a", "b"]}, privacy=privacy)


def test_cells_are_cut_first_so_that_others_lose_nothing(tmp_path: Path) -> None:
    """Of 50 rows in one cell one enters, and the two of another cell's do: it has places for all."""
    spec = small_spec(tmp_path, 3, 2, {"s": FLAG, "all": {**FLAG, "groups": {}}})
    for rest in ([("B", 1, "b")] * 1, [("B", 1, "b")] * 2):
        write(tmp_path, [("B", 0, "a")] * 50 + rest)
        cells = to_python(sum_tasks(chunk_job(spec), partitions_of(spec)))
        assert cells["s"].sum() == 3
        assert cells["s"].sum(axis=1).max() == 2
        assert cells["all"].sum() == 2


def test_conditions_and_nulls_act_on_what_is_kept(tmp_path: Path) -> None:
    """A row that a statistic leaves out afterwards has taken its place: no other comes for it."""
    entry = {**FLAG, "where": {"column": "flag", "equals": "1"}}
    spec = small_spec(tmp_path, 4, 1, {"s": entry, "n": FLAG})
    write(tmp_path, [("B", 0, "a")] * 40 + [("B", 1, "a"), ("B", None, "b")])
    cells = to_python(sum_tasks(chunk_job(spec), partitions_of(spec)))
    assert cells["n"].tolist() in ([[1, 0], [0, 0]], [[0, 1], [0, 0]])
    assert cells["s"].tolist() == [[0, cells["n"][0][1]], [0, 0]]


@pytest.mark.parametrize("nulls", ["drop", "own_unit"])
def test_rows_without_a_unit(tmp_path: Path, nulls: str) -> None:
    spec = small_spec(tmp_path, 4, 1, {"s": FLAG}, nulls=nulls)
    write(tmp_path, [(None, 1, "a")] * 5)
    assert to_python(sum_tasks(chunk_job(spec), partitions_of(spec)))["s"].sum() == (
        0 if nulls == "drop" else 5
    )


ROWS = st.lists(
    st.tuples(st.sampled_from(["p", "q", "r", None]), st.sampled_from([0, 1]), st.sampled_from("abz")),
    max_size=30,
)


@pytest.mark.slow
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=ROWS,
    unit=st.lists(st.tuples(st.just("new"), st.sampled_from([0, 1]), st.sampled_from("abz")), max_size=9),
    bounds=st.sampled_from([(2, 1), (3, 1), (3, 2), (6, 2), (9, 4)]),
    random=st.randoms(use_true_random=False),
    n_rounds=st.integers(1, 2),
)
def test_random_neighbours_by_any_partitions(
    tmp_path: Path, rows: list[Row], unit: list[Row], bounds: tuple[int, int], random: Any, n_rounds: int
) -> None:
    statistics = {"s": FLAG, "w": {**FLAG, "rows_of": "units"}, "all": {**FLAG, "groups": {}}}
    spec = small_spec(tmp_path, *bounds, statistics)
    job, plans = chunk_job(spec), {plan.name: plan for plan in compile_plan(spec).statistics}
    differences = []
    for data in (rows, [*rows, *unit], [*rows, *unit]):
        shuffled = random.sample(data, len(data))
        sizes = [1 + random.randrange(4) for _ in shuffled]
        write(tmp_path, shuffled, sizes)
        parts = partitions_of(spec)
        differences.append(to_python(sum_tasks(job, parts, OTHER_KEY, n_buckets=2, n_rounds=n_rounds)))
    for name, plan in plans.items():
        without, beside, again = (of[name] for of in differences)
        assert beside.tolist() == again.tolist()
        assert abs(beside - without).sum() <= plan.l1_sensitivity
    max_rows, in_cell = bounds
    for name, cells in (("s", ["a", "b"]), ("all", [None])):
        counts = [
            [min(in_cell, sum(row[0] == who and cell in (None, row[2]) for row in rows)) for cell in cells]
            for who in "pqr"
        ]
        assert differences[0][name].sum() == sum(min(max_rows, sum(of)) for of in counts)


@pytest.fixture(scope="module", params=["threads", "local"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with open_cluster_for_sums(request.param) as opened:
        yield opened


@pytest.mark.slow
def test_every_path_has_the_same_bits(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads and processes, one partition and many, clustered or not, in one round and in several."""
    rng = np.random.default_rng(7)
    n = 3000
    who = rng.integers(0, 150, n)
    table = pa.table(
        {
            "u": pa.array(who, pa.int64()),
            "g": pa.array(rng.choice(["a", "b", "c"], n)),
            "x": pa.array(rng.normal(size=n)),
            "k": pa.array(rng.integers(0, 9, n)),
        }
    )
    statistics: dict[str, Any] = {
        "x": normal("x", "-1", "1"),
        "within": normal("x", "-1", "1", within_unit="true", lattice_bits="8"),
        "k": {**poisson("k", "8"), "groups": {}},
        "kind": {**categorical("g", ["a", "b"], other="true"), "groups": {"k": {"range": ["0", "8"]}}},
        "first": {**bernoulli("flag"), "rows_of": "units"},
    }
    derived = {"flag": {"column": "k", "above": "4"}}
    privacy = {
        "epsilon": "1",
        "neighboring": "replace_one",
        "unit": by_customer(9, max_rows_per_cell="2"),
    }
    spec = make_spec(tmp_path, statistics, groups={"g": ["a", "b"]}, privacy=privacy, derived=derived)
    outcomes = []
    for order, sizes, clustered, budget in (
        (np.arange(n), [n], False, 10**9),
        (rng.permutation(n), [100] * 30, False, 10**9),
        (np.argsort(who), [500] * 6, True, 10**9),
        (rng.permutation(n), [1000, 0, 2000], True, 20_000),
    ):
        write_row_groups(tmp_path, table.take(pa.array(order)), sizes)
        monkeypatch.setattr(shuffle, "RECORD_BYTES_PER_THREAD", budget)
        job = dataclasses.replace(chunk_job(spec), is_clustered=clustered)
        sums = to_python(bounded_sums(job, partitions_of(spec), cluster, KEY).open_totals())
        outcomes.append({name: of.tolist() for name, of in sums.items()})
    assert all(of == outcomes[0] for of in outcomes)
    alone = to_python(sum_tasks(chunk_job(spec), partitions_of(spec)))
    assert {name: of.tolist() for name, of in alone.items()} == outcomes[0]
    in_cells = np.zeros((150, 9), int)
    np.add.at(in_cells, (who, table["k"].to_numpy()), 1)
    assert alone["kind"].sum() == np.minimum(9, np.minimum(2, in_cells).sum(axis=1)).sum()
