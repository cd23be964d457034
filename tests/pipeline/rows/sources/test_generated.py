"""Generated rows fit every family and every column type, and follow from public domains alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.contract import ColumnType
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.reduce.tree import exact_sums, open_cluster_for_sums
from suffice.pipeline.rows.sources.contract import PartSchema, pack, unpack
from suffice.pipeline.rows.sources.generated import N_ROWS, generated_splits
from suffice.pipeline.rows.sources.schema_check import check_schema
from suffice.pipeline.spec.spec import Spec, load_spec
from support.entries import privacy_of
from support.hostile import hostile_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.rows.sources.contract import Split

TYPES = {
    ColumnType.BOOLEAN: pa.bool_(),
    ColumnType.NUMBER: pa.float64(),
    ColumnType.TEXT: pa.string(),
    ColumnType.TIME: pa.timestamp("us"),
}


def spec_of(statistics: Mapping[str, Any], **changes: Any) -> Spec:
    keys: dict[str, Any] = {
        "name": "rehearsed",
        "dataset": "people",
        "source": {"parquet": "nowhere.parquet"},
        "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": "row"},
        "statistics": statistics,
        **changes,
    }
    return load_spec(keys)


def rows(splits: Sequence[Split], columns: Sequence[str]) -> pa.Table:
    return pa.Table.from_batches([batch for split in splits for batch in sources.read(split, columns, 100)])


def totals(spec: Spec, splits: Sequence[Split], window: str = "all") -> dict[str, Any]:
    with open_cluster_for_sums("threads") as cluster:
        return to_python(exact_sums(chunk_job(spec, window), splits, cluster).open_totals())


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_every_family_sums_generated_rows(name: str) -> None:
    family = FAMILIES[name]
    spec = spec_of(
        {"it": {"family": name, **family.example.entry}},
        privacy=privacy_of(name, epsilon="1", public_n=False),
    )
    columns = {column: TYPES[kind] for column, kind in family.example.columns.items()}
    schema = PartSchema(part="a", columns=pa.schema({**columns, "who": pa.int64()}))
    check_schema(spec, [schema])
    found = totals(spec, generated_splits(spec, [schema]))
    assert any(value for cell in found["it"] for value in cell), "no row entered the statistic"


@pytest.mark.parametrize("column", hostile_table(1, seed=1).column_names)
def test_every_type_of_column_serves_as_a_key(column: str) -> None:
    """What the column's type can hold of the domain is found in it."""
    kind = hostile_table(1, seed=1).schema.field(column).type
    spec = spec_of(
        {"it": {"family": "categorical", "column": column, "categories": ["0", "1", "true", "1970-01-01"]}}
    )
    schema = PartSchema(part="a", columns=pa.schema({column: kind}))
    splits = generated_splits(spec, [schema])
    made = rows(splits, [column])
    assert made.num_rows == N_ROWS
    assert made.schema.field(column).type == (pa.string() if pa.types.is_string_view(kind) else kind)
    assert 0 < made[column].null_count < N_ROWS
    (cell,) = totals(spec, splits)["it"]
    assert sum(cell) > 0


def test_rows_reach_every_cell_of_a_window() -> None:
    spec = spec_of(
        {"late": {"family": "normal", "column": "delay", "lower": "-60", "upper": "180"}},
        groups={"origin": ["EWR", "JFK"], "hour": {"range": ["0", "23"]}},
        window={"column": "day", "every": "week"},
    )
    kinds = {"day": pa.date32(), "origin": pa.string(), "hour": pa.int8(), "delay": pa.decimal128(7, 2)}
    splits = generated_splits(spec, [PartSchema(part="a", columns=pa.schema(kinds))], "2013-W05")
    found = totals(spec, splits, "2013-W05")["late"]
    assert len(found) == 48
    assert all(n > 0 for n, *_ in found)
    assert sum(n for n, *_ in found) < N_ROWS, "rows outside of the window and of the domains are there, too"


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        ({"parse": "timestamp", "format": "%d-%b-%y %I:%M:%S %p", "pivot": "1950"}, pa.string()),
        ({"parse": "date", "format": "%B %d, %Y"}, pa.large_string()),
        ({"parse": "date", "format": "%Y%m%d"}, pa.int32()),
        ({"parse": "date", "format": "%Y%m%d"}, pa.decimal128(10, 0)),
        ({"parse": "timestamp", "epoch": "milliseconds"}, pa.int64()),
        ({"parse": "date", "epoch": "days"}, pa.dictionary(pa.int8(), pa.string())),
    ],
)
def test_stored_values_read_as_days_of_the_window(entry: dict[str, str], kind: pa.DataType) -> None:
    spec = spec_of(
        {"late": {"family": "bernoulli", "column": "late"}},
        window={"column": "day", "every": "month"},
        derived={"day": {"column": "raw", **entry}},
    )
    schema = PartSchema(part="a", columns=pa.schema({"raw": kind, "late": pa.bool_()}))
    check_schema(spec, [schema])
    (found,) = totals(spec, generated_splits(spec, [schema], "2012-02"), "2012-02")["late"]
    assert N_ROWS / 3 < sum(found) < N_ROWS


def test_splits_travel_and_are_read_alike() -> None:
    spec = spec_of({"it": {"family": "bernoulli", "column": "x"}})
    splits = generated_splits(spec, [PartSchema(part="a", columns=pa.schema({"x": pa.bool_()}))])
    assert rows(unpack(pack(splits)), ["x"]).equals(rows(splits, ["x"]))


def test_no_spec_names_generated_rows() -> None:
    with pytest.raises(ValueError, match="source"):
        spec_of({"it": {"family": "bernoulli", "column": "x"}}, source={"generated": "all"})
    assert "generated" not in sources.SOURCES
