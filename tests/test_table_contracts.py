"""Contracts over tables: a catalogue that does not fit is refused before a row is read, uncharged."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from suffice.errors import SchemaError
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.sources.inspecting import inspect
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.declaration.data_contract import parse_contract
from suffice.releasing.release import carry_out
from suffice.storage.ledger.opening import create_ledger, open_ledger
from support.postgres_tables import write_postgresql
from support.table_makers import URI, write_iceberg
from support.typed_files import ROWS

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.spec.spec import Spec

STATISTICS = {
    "carrier": {"family": "categorical", "column": "carrier", "categories": ["UA", "DL"], "other": True},
    "stops": {"family": "poisson", "column": "stops", "upper": 5},
}
KINDS = ("duckdb", "delta", "iceberg", "postgresql")


def source(kind: str, directory: Path, table: pa.Table) -> dict[str, Any]:
    """Write a table of a kind, and return the entry of a spec for it."""
    directory.mkdir(parents=True, exist_ok=True)
    if kind == "postgresql":
        return write_postgresql(table)
    if kind == "iceberg":
        return write_iceberg(directory, table)
    if kind == "delta":
        write_deltalake(str(directory / "flights"), table, mode="overwrite", schema_mode="overwrite")
        return {"delta": str(directory / "flights")}
    path = directory / "flights.duckdb"
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        connection.register("rows", table)
        connection.execute("CREATE TABLE flights AS SELECT * FROM rows")
    return {"duckdb": str(path), "table": "main.flights"}


def spec_over(entry: dict[str, Any], unit: Any = "row") -> Spec:
    privacy = {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": unit}
    terms = {"name": "flights", "dataset": "passengers", "privacy": privacy, "statistics": STATISTICS}
    return load_spec({**terms, "source": entry})


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_table_that_does_not_fit_is_refused_uncharged(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    environment = {}
    if kind == "iceberg":
        environment = {URI: ""}
    elif kind == "postgresql":
        environment = {"SUFFICE_POSTGRESQL": request.getfixturevalue("source_database")}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    table = pa.table(ROWS)
    spec = spec_over(source(kind, tmp_path / "data", table))
    stated = inspect(spec).contract
    assert stated.source.kind == kind
    assert str(stated.columns["customer"]) == "integer"
    ledger, store = f"sqlite:///{tmp_path}/ledger.db", str(tmp_path / "releases")
    with create_ledger(ledger) as opened:
        opened.grant("passengers", epsilon=Fraction(3), contract=stated, stores=[store], reason="x")
    assert carry_out(spec, ledger=ledger, store=store, publish_timeout=0).status == "published"

    def unread(*_: object) -> Any:
        message = "a row was read"
        raise AssertionError(message)

    monkeypatch.setattr(sources, "read", unread)
    for changed in (
        table.set_column(4, "stops", pa.array(["0"] * 6)),
        table.drop_columns(["carrier"]),
        table.set_column(0, "carrier", pa.array([1] * 6)),
    ):
        other = spec_over(source(kind, tmp_path / "data", changed)).model_copy(update={"name": "again"})
        with pytest.raises(SchemaError, match="the account's contract"):
            carry_out(other, ledger=ledger, store=store, publish_timeout=0)
    narrower = table.set_column(4, "stops", table["stops"].cast(pa.int32()))
    other = spec_over(source(kind, tmp_path / "data", narrower)).model_copy(update={"name": "narrow"})
    monkeypatch.undo()
    for name, value in environment.items():
        monkeypatch.setenv(name, value or f"sqlite:///{tmp_path}/data/catalog.db")
    assert carry_out(other, ledger=ledger, store=store, publish_timeout=0).status == "published"
    with open_ledger(ledger) as opened:
        assert opened.count_charges("passengers") == 2


@pytest.mark.parametrize("stated", [True, False])
def test_a_tables_floating_ids_are_no_units_beside_nulls_that_are(tmp_path: Path, *, stated: bool) -> None:
    """Whatever stands in a column of doubles may be rounded; under own_unit its table is refused."""
    table = pa.table(ROWS)
    table = table.set_column(3, "customer", table["customer"].cast(pa.float64()))
    entry = source("duckdb", tmp_path / "data", table)
    ledger, store = f"sqlite:///{tmp_path}/ledger.db", str(tmp_path / "releases")
    unit = {"column": "customer", "max_rows": "2"}
    contract = inspect(spec_over(entry, unit)).contract
    assert parse_contract(json.dumps(contract.document()), "written") == contract
    with create_ledger(ledger) as opened:
        terms: dict[str, Any] = {"contract": contract} if stated else {"unit": "column:customer"}
        opened.grant("passengers", epsilon=Fraction(3), unwitnessed=True, reason="x", **terms)
    with pytest.raises(SchemaError, match="may be rounded"):
        carry_out(spec_over(entry, {**unit, "nulls": "own_unit"}), ledger=ledger, store=store)
    dropping = spec_over(entry, unit)
    if stated:
        with pytest.warns(match="is floating point: rows of ids from"):
            assert carry_out(dropping, ledger=ledger, store=store, publish_timeout=0).status == "published"
    else:
        assert carry_out(dropping, ledger=ledger, store=store, publish_timeout=0).status == "published"
