"""Transitions of units: against plain Python, every neighbour over tiny domains, DuckDB, any partitioning."""

from __future__ import annotations

import itertools
from collections import defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.errors import SchemaError, SpecError
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.exact_sums import combine, to_python
from suffice.pipeline.rows.chunk.partition import accumulator, chunk_job
from suffice.pipeline.rows.contribution import bounding
from suffice.pipeline.rows.contribution.bounding import first_rows
from suffice.pipeline.rows.reduce.tree import exact_sums, open_cluster_for_sums
from suffice.pipeline.rows.sources.schema_check import check_schema
from suffice.pipeline.spec.compiled_statistics import block_of
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import Spec, load_spec
from suffice.pipeline.terms.statistics.sensitivity import NeighboringRelation
from support.duckdb_sums import duckdb_sums
from support.hostile import hostile_table
from support.noisy import noisy_statistic, statistic_plan
from support.pandas_files import as_pandas_writes
from support.record_vectors import squared_change
from support.splits import splits_of
from support.units import (
    KEY,
    OTHER_KEY,
    by_customer,
    customers,
    partitions_of,
    sum_tasks,
    write_row_groups,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

Row = tuple[Any, ...]
"""Unit, state, order, group."""

MOST = 2
ENTRY = {
    "family": "markov_chain",
    "column": "state",
    "categories": ["x", "y"],
    "order": "when",
    "transitions": str(MOST),
}


def make_spec(directory: Path | str, neighboring: str = "add_or_remove_one", **others: Any) -> Spec:
    content = {
        "name": "n",
        "dataset": "d",
        "source": {"parquet": str(directory)},
        "privacy": {"epsilon": "1", "neighboring": neighboring, "unit": by_customer(1)},
        "statistics": {"s": ENTRY},
    }
    return load_spec({**content, **others})


def write(directory: Path, rows: Sequence[Row]) -> None:
    units, states, order, groups = zip(*rows, strict=True) if rows else ((), (), (), ())
    table = pa.table(
        {
            "u": pa.array(list(units), pa.string()),
            "state": pa.array(list(states), pa.string()),
            "when": pa.array(list(order), pa.int32()),
            "g": pa.array(list(groups), pa.string()),
        }
    )
    write_row_groups(directory, table, [1] * len(rows))


def totals(directory: Path, spec: Spec, rows: Sequence[Row], *, each: bool = False) -> NDArray[Any]:
    """Sum rows, each in a partition of its own; with `each`, the partitions one by one."""
    write(directory, rows)
    job, partitions = chunk_job(spec), partitions_of(spec)
    if each:
        return to_python(combine([sum_tasks(job, [partition], KEY) for partition in partitions]))["s"].ravel()
    return to_python(sum_tasks(job, partitions, KEY))["s"].ravel()


def plainly(rows: Sequence[Row], groups: Sequence[str] | None, most: int = MOST) -> list[int]:
    """Count the transitions in plain Python."""
    sequences: dict[str, list[tuple[int, str, int]]] = defaultdict(list)
    for unit, state, order, group in rows:
        if unit is not None and state in "xy" and order is not None and (groups is None or group in groups):
            sequences[unit].append((order, state, groups.index(group) if groups else 0))
    counts = np.zeros((len(groups) if groups else 1, 2, 2), int)
    for sequence in sequences.values():
        for (_, before, left), (_, after, entered) in itertools.pairwise(sorted(sequence)[: most + 1]):
            if left == entered:
                counts[left, "xy".index(before), "xy".index(after)] += 1
    result: list[int] = counts.ravel().tolist()
    return result


OTHERS: list[Row] = [("A", state, order, "a") for order, state in enumerate("xyyxy")]
"""Another unit's rows, more than it may add."""


def multisets(universe: Sequence[Row], most: int) -> list[list[Row]]:
    return [
        list(rows)
        for size in range(most + 1)
        for rows in itertools.combinations_with_replacement(universe, size)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("neighboring", ["add_or_remove_one", "replace_one"])
@pytest.mark.parametrize("shape", ["plain", "groups"])
def test_no_unit_moves_the_totals_further_than_declared(tmp_path: Path, neighboring: str, shape: str) -> None:
    groups = ["a", "b"] if shape == "groups" else None
    spec = make_spec(tmp_path, neighboring, **({"groups": {"g": groups}} if groups else {}))
    positions = [("x", 1), ("y", 1), ("x", 2), ("y", 2), ("x", None), ("z", 1)]
    keys = ["a", "b"] if groups else ["a"]
    universe = [("B", state, order, key) for key in keys for state, order in positions[: 4 if groups else 6]]
    vectors = []
    for rows in multisets(universe, 3 if groups else 4):
        vectors.append(totals(tmp_path, spec, [*rows, *OTHERS]))
        assert vectors[-1].tolist() == plainly([*rows, *OTHERS], groups)
    (declared,) = (statistic.l1_sensitivity for statistic in compile_plan(spec).statistics)
    assert declared == MOST * (1 if neighboring == "add_or_remove_one" else 2)
    others = vectors[:1] if neighboring == "add_or_remove_one" else vectors
    largest = max(np.abs(np.array(vectors) - other).sum(axis=1).max() for other in others)
    assert largest == declared, "claimed tight, and a halved one would be caught"
    block = block_of(spec.statistics["s"], n_may_be_public=False)
    declared = block.l2_squared(NeighboringRelation(neighboring))
    assert squared_change(np.array(vectors), neighboring) == declared


LONG: list[Row] = [("B", state, order, "a") for order, state in enumerate("xyxxyyxxxyxy")]


@pytest.mark.parametrize("key", [KEY, OTHER_KEY])
def test_rows_kept_by_rank_are_no_sequence(tmp_path: Path, key: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant: what is next to what among rows of lowest rank is mostly no transition of the sequence."""
    spec = make_spec(tmp_path)
    expected = plainly(LONG, None)
    assert totals(tmp_path, spec, LONG).tolist() == expected

    def of_kept(self: Any, records: Any, *of: Any) -> None:
        kept = first_rows(records, np.zeros(len(records), np.int32), customers(MOST + 1), key)
        original(self, kept, *of)

    original = bounding.UnitSums._add_sequences
    monkeypatch.setattr(bounding.UnitSums, "_add_sequences", of_kept)
    wrong = sum(
        totals(tmp_path, spec, [(f"B{number}", *row[1:]) for row in LONG]).tolist() != expected
        for number in range(24)
    )
    assert wrong > 10


def test_sequences_cut_in_every_partition_would_lose_transitions(tmp_path: Path) -> None:
    spec = make_spec(tmp_path)
    assert totals(tmp_path, spec, LONG, each=True).sum() == 0
    assert totals(tmp_path, spec, LONG).sum() == MOST


def test_where_rows_stand_is_of_no_matter(tmp_path: Path) -> None:
    spec = make_spec(tmp_path)
    rng = np.random.default_rng(7)
    tied = [*LONG, *[("B", state, order, "a") for _, state, order, _ in LONG[:4]], *OTHERS]
    expected = plainly(tied, None)
    for _ in range(5):
        shuffled = [tied[index] for index in rng.permutation(len(tied))]
        assert totals(tmp_path, spec, shuffled).tolist() == expected


def test_max_rows_and_null_units_do_not_enter(tmp_path: Path) -> None:
    rows = [*LONG, *[(None, *row[1:]) for row in LONG]]
    for unit in (by_customer(1), by_customer(50), by_customer(3, nulls="own_unit")):
        privacy = {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": unit}
        spec = make_spec(tmp_path, privacy=privacy)
        assert compile_plan(spec).statistics[0].l1_sensitivity == MOST
        assert totals(tmp_path, spec, rows).tolist() == plainly(LONG, None)


def test_a_unit_with_very_many_rows_moves_no_more(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    n_rows = 300_000
    units = np.where(rng.random(n_rows) < 0.9, 0, rng.integers(1, 20_000, n_rows))
    table = pa.table(
        {
            "u": units,
            "state": pa.array(rng.choice(["x", "y"], n_rows)),
            "when": pa.array(rng.permutation(n_rows)),
        }
    )
    for part in range(3):
        pq.write_table(
            table.slice(part * 100_000, 100_000), tmp_path / f"{part}.parquet", row_group_size=30_000
        )
    spec = make_spec(tmp_path)
    with open_cluster_for_sums("threads") as cluster:
        everything = to_python(exact_sums(chunk_job(spec), splits_of(spec), cluster).open_totals())["s"]
        assert everything.tolist() == duckdb_sums(spec, sorted(tmp_path.glob("*.parquet")))["s"].tolist()
        for part in range(3):
            rest = table.slice(part * 100_000, 100_000).filter(
                pa.array(units[part * 100_000 :][:100_000] != 0)
            )
            pq.write_table(rest, tmp_path / f"{part}.parquet")
        without = to_python(exact_sums(chunk_job(spec), splits_of(spec), cluster).open_totals())["s"]
    assert np.abs(everything - without).sum() == MOST


@pytest.mark.parametrize("order", ["integer", "unsigned", "float", "price", "day", "instant", "zoned"])
def test_hostile_rows_give_what_duckdb_gives(tmp_path: Path, order: str) -> None:
    table = hostile_table(3000, seed=3).append_column(
        "u", pa.array(np.random.default_rng(4).integers(0, 40, 3000))
    )
    pq.write_table(table.slice(0, 1000), tmp_path / "a.parquet", row_group_size=300)
    pq.write_table(table.slice(1000), tmp_path / "b.parquet", use_dictionary=False)
    statistics = {
        "s": {
            **ENTRY,
            "column": "dictionary",
            "categories": ["a", "b", ""],
            "order": order,
            "transitions": "30",
        },
        "other": {
            **ENTRY,
            "column": "tiny",
            "categories": {"range": ["0", "3"]},
            "other": "true",
            "order": "measure",
            "transitions": "7",
        },
        "rows": {"family": "contingency", "columns": {"flag": ["true"]}},
    }
    privacy = {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": by_customer(1000)}
    spec = make_spec(tmp_path, privacy=privacy, statistics=statistics, groups={"wide_text": ["a", "b", "1"]})
    check_schema(spec, sources.schema(sources.pin(spec)))
    theirs = duckdb_sums(spec, sorted(tmp_path.glob("*.parquet")))
    job, partitions = chunk_job(spec), partitions_of(spec)
    for rounds in (1, 3):
        ours = to_python(sum_tasks(job, partitions, KEY, n_rounds=rounds))
        for name in ("s", "other"):
            assert ours[name].tolist() == theirs[name].tolist()
        assert ours["s"].sum() > 5


def test_rows_each_for_itself_make_no_step() -> None:
    measure = chunk_job(make_spec("nowhere")).measures["s"]
    adding = accumulator(measure, 1)
    adding.add(np.zeros(5, np.int32), [np.zeros(5, np.int32)])
    assert adding.table().low.sum() == 0


def test_components_are_pairs_of_states() -> None:
    (plan,) = compile_plan(make_spec("nowhere")).statistics
    assert plan.components == tuple(f"from_state={a},to_state={b}" for a in "xy" for b in "xy")
    assert plan.columns == ("state", "when")
    statistic = noisy_statistic(statistic_plan(ENTRY, epsilon="1", public_n=False), np.array([[6, 2, -3, 4]]))
    posterior = posterior_of(statistic, method="plug-in")
    assert posterior.mean("probability")[0] == pytest.approx([7 / 10, 3 / 10, 1 / 6, 5 / 6])
    assert posterior.label_columns["from_state"] == ("x", "x", "y", "y")


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"privacy": {"epsilon": "1", "neighboring": "replace_one"}}, "unit: row .*state whose rows belong"),
        ({"statistics": {"s": {**ENTRY, "transitions": "0"}}}, r"1\.\."),
        (
            {"statistics": {"s": {name: ENTRY[name] for name in ENTRY if name != "order"}}},
            "'order' is missing",
        ),
        ({"statistics": {"s": {**ENTRY, "order": "u"}}}, "'u' is the unit"),
        ({"groups": {"from_state": ["1"]}}, "variable 'from_state' is a group too"),
        ({"statistics": {"s": {**ENTRY, "categories": {"range": ["1", "4000"]}}}}, "16000000 cells"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, Any], rule: str) -> None:
    with pytest.raises(SpecError, match=rule):
        make_spec("nowhere", **change)


def test_integers_here_and_doubles_there_have_one_order(tmp_path: Path) -> None:
    """pandas writes integers as doubles once one is null: whether one is must change no exit status."""
    rng = np.random.default_rng(8)
    n_rows = 400
    when = [None if number % 9 == 0 else int(number) for number in rng.integers(0, 60, n_rows)]
    table = pa.table(
        {
            "u": pa.array(rng.integers(0, 12, n_rows)),
            "state": pa.array(rng.choice(["x", "y"], n_rows)),
            "when": pa.array(when, pa.int64()),
        }
    )
    counted = []
    for layout in ("whole", "mixed"):
        directory = tmp_path / layout
        directory.mkdir()
        for number in range(2):
            part = table.slice(200 * number, 200)
            if layout == "mixed" and number:
                part = as_pandas_writes(part)
                assert part.schema.field("when").type == pa.float64()
            pq.write_table(part, directory / f"{number}.parquet")
        spec = make_spec(directory, statistics={"s": {**ENTRY, "transitions": "30"}})
        check_schema(spec, sources.schema(sources.pin(spec)))
        counted.append(to_python(sum_tasks(chunk_job(spec), partitions_of(spec), KEY))["s"].tolist())
    assert counted[0] == counted[1]
    assert sum(counted[0][0]) > 100


def test_places_beyond_what_doubles_hold_are_kept_apart(tmp_path: Path) -> None:
    spec = make_spec(tmp_path, statistics={"s": {**ENTRY, "transitions": "9"}})
    first = 2**53
    table = pa.table(
        {"u": ["A"] * 4, "state": list("xyxy"), "when": [first, first + 1, first + 2, first + 3]}
    )
    for part, rows in enumerate((table.slice(0, 2), table.slice(2))):
        pq.write_table(rows, tmp_path / f"{part}.parquet")
    job, partitions = chunk_job(spec), partitions_of(spec)
    assert to_python(sum_tasks(job, partitions, KEY))["s"].ravel().tolist() == [0, 2, 1, 0]


def test_orders_that_cannot_be_compared_are_refused(tmp_path: Path) -> None:
    columns = {"u": ["a"], "state": ["x"]}
    pq.write_table(pa.table({**columns, "when": pa.array([1], pa.int64())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({**columns, "when": pa.array([2**63], pa.uint64())}), tmp_path / "b.parquet")
    pq.write_table(pa.table({**columns, "when": pa.array([1.5])}), tmp_path / "c.parquet")
    spec = make_spec(tmp_path)
    check_schema(spec, sources.schema(sources.pin(spec)))
    pq.write_table(pa.table({**columns, "when": pa.array([Decimal(1)])}), tmp_path / "b.parquet")
    with pytest.raises(SchemaError, match=r"statistics\.s\.order.*integers in .* decimals in"):
        check_schema(spec, sources.schema(sources.pin(spec)))
    pq.write_table(pa.table({**columns, "when": ["monday"]}), tmp_path / "b.parquet")
    with pytest.raises(SchemaError, match=r"statistics\.s\.order"):
        check_schema(spec, sources.schema(sources.pin(spec)))
