"""Data files: exact both ways, and of one size whatever the values."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.errors import ReleaseCorruptError
from suffice.pipeline.terms.statistics.statistic_plan import DECIMAL, INT64, StatisticPlan
from suffice.storage.releases import parquet_layout, release_parquet
from suffice.storage.releases.release_parquet import encode_statistic
from suffice.storage.releases.statistic_reading import decode_statistic, expand_groups
from support.releases import make_plan, public_n_plan, some_values

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.spec.plan import Plan

GROUPS = {
    "origin": ["EWR", "Zürich", "03", ""],
    "hour": {"range": ["-2", "3"]},
    "day": {"from": "2024-02-28", "to": "2024-03-01", "every": "day"},
}
LARGEST_DECIMAL = 10**38 - 1


def statistics(plan: Plan) -> dict[str, StatisticPlan]:
    return {statistic.name: statistic for statistic in plan.statistics}


def wide(statistic: StatisticPlan) -> StatisticPlan:
    return replace(statistic, value_type=DECIMAL)


@pytest.mark.parametrize(
    "plan", [make_plan(), make_plan(groups=GROUPS), make_plan(groups=None), public_n_plan()]
)
@pytest.mark.parametrize("value_type", [INT64, DECIMAL])
def test_values_come_back_exactly(plan: Plan, value_type: str) -> None:
    values = some_values(plan)
    for statistic in plan.statistics:
        stored = replace(statistic, value_type=value_type)
        data = encode_statistic(stored, values[statistic.name])
        decoded = decode_statistic(data, stored)
        assert decoded.shape == values[statistic.name].shape
        assert decoded.tolist() == values[statistic.name].tolist()
        assert all(type(value) is int for value in decoded.ravel())


def test_rows_are_tidy_and_estimates_are_pseudo_counts() -> None:
    plan = make_plan(groups={"origin": ["EWR", "JFK"], "month": {"range": ["1", "2"]}})
    statistic = statistics(plan)["stops"]
    values = np.array([[5, 10], [15, -20], [0, 7], [2**62, 1]], dtype=object)
    table = pq.read_table(io.BytesIO(encode_statistic(statistic, values)))
    assert table.schema.equals(
        pa.schema(
            [
                pa.field("origin", pa.string(), nullable=False),
                pa.field("month", pa.int64(), nullable=False),
                pa.field("component", pa.string(), nullable=False),
                pa.field("value", pa.int64(), nullable=False),
                pa.field("estimate", pa.float64(), nullable=False),
            ]
        ),
        check_metadata=True,
    )
    assert table.slice(2, 2).to_pylist() == [
        {"origin": "EWR", "month": 2, "component": "sum(x)", "value": 15, "estimate": 3.0},
        {"origin": "EWR", "month": 2, "component": "sum(C - x)", "value": -20, "estimate": -4.0},
    ]
    assert table["origin"].to_pylist() == ["EWR"] * 4 + ["JFK"] * 4
    assert table["month"].to_pylist() == [1, 1, 2, 2] * 2


def test_minimal_statistics_are_estimated_in_lattice_steps() -> None:
    plan = public_n_plan()
    statistic = statistics(plan)["delay"]
    data = encode_statistic(statistic, np.array([[-12, 34]], dtype=object))
    assert pq.read_table(io.BytesIO(data))["estimate"].to_pylist() == [-12.0, 34.0]


@pytest.mark.parametrize("unit", [None, 1, 3, 10**6 + 3, 2**53 + 1, 2**62 + 1])
def test_estimates_are_correctly_rounded_quotients(unit: int | None) -> None:
    plan = make_plan(groups={"g": {"range": ["0", "5"]}})
    statistic = replace(statistics(plan)["cancelled"], partition_total=unit, value_type=INT64)
    numbers = [
        0,
        -1,
        2**53,
        -(2**53),
        2**53 + 1,
        -(2**53) - 1,
        2**53 + 3,
        3**39,
        2**63 - 1,
        -(2**63),
        7,
        10**18,
    ]
    expected = [value / (unit or 1) for value in numbers]
    for values in (np.array(numbers), np.array(numbers, dtype=object)):
        data = encode_statistic(statistic, values.reshape(6, 2))
        assert pq.read_table(io.BytesIO(data))["estimate"].to_pylist() == expected
        assert decode_statistic(data, statistic).ravel().tolist() == numbers


@pytest.mark.parametrize(
    ("value_type", "largest", "lowest"),
    [(INT64, 2**63 - 1, -(2**63)), (DECIMAL, LARGEST_DECIMAL, -LARGEST_DECIMAL)],
)
def test_values_saturate_at_the_ends_of_their_type(value_type: str, largest: int, lowest: int) -> None:
    plan = make_plan(groups=None)
    statistic = replace(statistics(plan)["cancelled"], value_type=value_type)
    for written, read in [
        ((largest, lowest), [largest, lowest]),
        ((largest + 1, lowest - 1), [largest, lowest]),
        ((10**60, -(10**60)), [largest, lowest]),
    ]:
        data = encode_statistic(statistic, np.array([written], dtype=object))
        assert decode_statistic(data, statistic).tolist() == [read]


def test_releases_of_many_row_groups_come_back_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (release_parquet, parquet_layout):
        monkeypatch.setattr(module, "ROW_GROUP", 7)
    monkeypatch.setattr(parquet_layout, "_SMALLEST_PAGE", 1)
    plan = make_plan(groups=GROUPS)
    statistic = statistics(plan)["arr_delay"]
    values = some_values(plan)["arr_delay"]
    data = encode_statistic(statistic, values)
    footer = pq.ParquetFile(io.BytesIO(data)).metadata
    assert [footer.row_group(index).num_rows for index in range(footer.num_row_groups)] == [7] * 30 + [6]
    assert decode_statistic(data, statistic).tolist() == values.tolist()


def test_values_of_another_shape_are_refused() -> None:
    plan = make_plan()
    statistic = statistics(plan)["cancelled"]
    with pytest.raises(ValueError, match="wrong shape"):
        encode_statistic(statistic, np.zeros((2, 3), dtype=object))


def test_cells_are_the_product_of_the_groups_the_last_running_fastest() -> None:
    plan = make_plan(groups=GROUPS)
    keys = expand_groups(plan.groups)
    assert list(keys) == ["origin", "hour", "day"]
    expected = [
        (origin, hour, day)
        for origin in GROUPS["origin"]
        for hour in range(-2, 4)
        for day in ("2024-02-28", "2024-02-29", "2024-03-01")
    ]
    assert list(zip(*keys.values(), strict=True)) == expected
    assert expand_groups({}) == {}


def rewritten(data: bytes, change: Callable[[pa.Table], pa.Table]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(change(pq.read_table(io.BytesIO(data))), sink, **release_parquet._WRITER)
    return sink.getvalue()


def with_column(name: str, change: Callable[[list[Any]], list[Any]]) -> Callable[[pa.Table], pa.Table]:
    def apply(table: pa.Table) -> pa.Table:
        field = table.schema.field(name)
        column = pa.array(change(table[name].to_pylist()), type=field.type)
        return table.set_column(table.column_names.index(name), field, column)

    return apply


def nullable(table: pa.Table) -> pa.Table:
    schema = pa.schema([field.with_nullable(True) for field in table.schema])  # noqa: FBT003
    values = pa.array([None, *table["value"].to_pylist()[1:]], type=pa.int64())
    return pa.Table.from_arrays(
        [table["origin"], table["component"], values, table["estimate"]], schema=schema
    )


TAMPERED: dict[str, tuple[Callable[[pa.Table], pa.Table], str]] = {
    "another key": (with_column("origin", lambda keys: ["XXX", *keys[1:]]), "'origin'"),
    "keys in another order": (with_column("origin", lambda keys: keys[::-1]), "'origin'"),
    "another component": (with_column("component", lambda names: names[::-1]), "'component'"),
    "another estimate": (
        with_column("estimate", lambda numbers: [numbers[0] + 1, *numbers[1:]]),
        "estimates",
    ),
    "no number": (with_column("estimate", lambda numbers: [float("nan"), *numbers[1:]]), "estimates"),
    "another value": (with_column("value", lambda numbers: [numbers[0] + 1, *numbers[1:]]), "estimates"),
    "rows in another order": (lambda table: table.take(list(range(table.num_rows))[::-1]), "'origin'"),
    "a row less": (lambda table: table.slice(1), "size|rows"),
    "a row more": (lambda table: pa.concat_tables([table, table.slice(0, 1)]), "size|rows"),
    "a column less": (lambda table: table.drop_columns(["estimate"]), "size|columns"),
    "a column more": (lambda table: table.append_column("more", table["value"]), "size|columns"),
    "a null": (nullable, "columns|each value"),
}


def test_what_the_same_writer_writes_again_is_read() -> None:
    """So the files below are refused for what was changed, not for how they were written."""
    plan = make_plan()
    statistic = statistics(plan)["cancelled"]
    values = some_values(plan)["cancelled"]
    data = rewritten(encode_statistic(statistic, values), lambda table: table)
    assert decode_statistic(data, statistic).tolist() == values.tolist()


@pytest.mark.parametrize(("change", "rule"), TAMPERED.values(), ids=TAMPERED.keys())
def test_a_file_that_is_not_the_plans_is_refused(change: Callable[[pa.Table], pa.Table], rule: str) -> None:
    plan = make_plan()
    statistic = statistics(plan)["cancelled"]
    data = encode_statistic(statistic, some_values(plan)["cancelled"])
    with pytest.raises(ReleaseCorruptError, match=rule):
        decode_statistic(rewritten(data, change), statistic)


@pytest.mark.parametrize("kept", [0, 3, 100, -1, -8])
def test_what_is_no_parquet_file_is_refused(kept: int) -> None:
    plan = make_plan()
    statistic = statistics(plan)["cancelled"]
    data = encode_statistic(statistic, some_values(plan)["cancelled"])
    with pytest.raises(ReleaseCorruptError):
        decode_statistic(data[:kept], statistic)
