"""Times of 96 bits are instants in UTC, unless a contract says that their column has no zone."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from suffice.pipeline.rows import sources
from suffice.pipeline.rows.sources.inspecting import inspect
from suffice.pipeline.rows.sources.times_of_96_bits import (
    is_of_96_bits,
    parquet_file,
    stored_columns,
    with_instants,
)
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.declaration.data_contract import parse_contract
from support.hostile import bernoulli

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.rows.sources.contract import Pin
    from suffice.pipeline.spec.spec import Spec

MOMENTS = [
    dt.datetime(2013, 1, 1, 4, 30, tzinfo=dt.UTC),
    None,
    # As nanoseconds these would be in 1816 and, within a window that may be asked for, in 2013.
    dt.datetime(9999, 12, 31, tzinfo=dt.UTC),
    dt.datetime(2597, 7, 23, tzinfo=dt.UTC),
]
ROWS = pa.table({"at": pa.array(MOMENTS, pa.timestamp("us", "UTC")), "flag": [True, False, True, True]})


def write(path: Path) -> None:
    pq.write_table(ROWS, path, use_deprecated_int96_timestamps=True)
    assert pq.read_metadata(path).schema.column(0).physical_type == "INT96"


def spec_of(source: dict[str, Any]) -> Spec:
    return load_spec(
        {
            "name": "test",
            "dataset": "test",
            "source": source,
            "window": {"column": "at", "every": "month", "time_zone": "America/New_York"},
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
            "statistics": {"flag": bernoulli("flag")},
        }
    )


def read(pin: Pin) -> list[Any]:
    batches = [batch for split in sources.splits(pin) for batch in sources.read(split, ("at", "flag"), 3)]
    return [value for batch in batches for value in batch.column("at").to_pylist()]


def contract_of(family: str) -> Any:
    stated = {
        "columns": {"at": family, "flag": "boolean"},
        "unit": "row",
        "window": {"column": "at", "time_zone": "America/New_York"},
        "source": {"kind": "parquet"},
    }
    return parse_contract(json.dumps(stated), "contract")


def test_they_are_instants_of_any_year(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet")
    pin = sources.pin(spec_of({"parquet": str(tmp_path)}))
    (part,) = sources.schema(pin)
    assert part.columns.field("at").type == pa.timestamp("us", "UTC")
    assert read(pin) == MOMENTS


@pytest.mark.parametrize(
    ("family", "values"),
    [
        ("timestamp_with_zone", MOMENTS),
        ("timestamp", [moment and moment.replace(tzinfo=None) for moment in MOMENTS]),
        ("date", [moment and moment.date() for moment in MOMENTS]),
    ],
)
def test_a_contract_says_what_they_are(tmp_path: Path, family: str, values: list[object]) -> None:
    write(tmp_path / "a.parquet")
    spec = spec_of({"parquet": str(tmp_path)})
    assert read(sources.pin(spec, contract=contract_of(family))) == values


def test_an_owner_is_told_that_they_are_instants(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet")
    spec = spec_of({"parquet": str(tmp_path)})
    assert inspect(spec).contract.document()["columns"]["at"] == "timestamp_with_zone"
    for family in ("timestamp_with_zone", "timestamp"):
        fit = inspect(spec, contract=contract_of(family)).columns["at"]
        assert (fit.values, fit.fit) == (3, 3), family


def test_a_column_keeps_its_id_and_what_lies_within_others_is_none(tmp_path: Path) -> None:
    fields = [
        pa.field("at", ROWS.schema.field("at").type, metadata={"PARQUET:field_id": "7"}),
        pa.field("a", pa.struct([("b", pa.timestamp("us"))])),
        pa.field("a.b", pa.int64()),
    ]
    inner = pa.array([{"b": moment and moment.replace(tzinfo=None)} for moment in MOMENTS], fields[1].type)
    table = pa.Table.from_arrays([ROWS.column("at"), inner, pa.array([7] * 4)], schema=pa.schema(fields))
    pq.write_table(table, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    with parquet_file(str(tmp_path / "a.parquet")) as file:
        schema = stored_columns(file)
        (batch,) = file.iter_batches(columns=["at", "a.b"])
        assert schema.field("at").metadata[b"PARQUET:field_id"] == b"7"
        assert is_of_96_bits(schema.field("at"))
        assert not is_of_96_bits(schema.field("a.b"))
        assert with_instants(batch, file).column("at").to_pylist() == MOMENTS


@pytest.mark.parametrize("zone", ["UTC", None])
def test_a_delta_table_of_them_says_whether_they_have_a_zone(tmp_path: Path, zone: str | None) -> None:
    at = pa.timestamp("us", zone)
    write_deltalake(tmp_path, ROWS.set_column(0, "at", ROWS.column("at").cast(at)))
    (path,) = tmp_path.glob("*.parquet")
    write(path)
    (log,) = (tmp_path / "_delta_log").glob("*.json")
    actions = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    for action in actions:
        if "add" in action:
            action["add"]["size"] = path.stat().st_size
    log.write_text("".join(f"{json.dumps(action)}\n" for action in actions), encoding="utf-8")
    values = MOMENTS if zone else [moment and moment.replace(tzinfo=None) for moment in MOMENTS]
    assert read(sources.pin(spec_of({"delta": str(tmp_path)}))) == values
