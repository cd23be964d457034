"""The page on sources, for databases: its commands run as they stand, and what it says of views is so."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.reduce.tree import exact_sums, open_cluster_for_sums
from suffice.pipeline.spec.spec import load_spec
from support.postgres import as_user, execute
from support.postgres_tables import end_all_others, write_postgresql
from support.source_page import PAGE, spec_and_commands
from support.splits import splits_of
from support.timed_tables import NAMES, PASSWORD_URI, start_service, write_timed

if TYPE_CHECKING:
    from pathlib import Path

    from support.running import Runner


def fenced(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def flights() -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "origin": rng.choice(["EWR", "JFK", "LGA"], 300),
            "cancelled": rng.random(300) < 0.2,
            "day": pa.array(rng.integers(15_706, 15_706 + 40, 300).astype(np.int32), pa.date32()),
        }
    )


def run_page(page: str, kind: str, directory: Path, suffice: Runner) -> None:
    """Write the page's spec of a source, and run its commands: the last publishes."""
    spec, listed = spec_and_commands(page, kind)
    (directory / "spec.yaml").write_text(spec)
    for words in listed[:-1]:
        suffice.text(*words)
    assert suffice.json(*listed[-1])["status"] == "published"
    assert suffice.json(*listed[-1])["status"] == "already_published"


@pytest.fixture
def page_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("STORE", "LEDGER", "CLUSTER"):
        monkeypatch.delenv(f"SUFFICE_{name}", raising=False)
    return tmp_path


def test_the_page_on_postgresql(
    page_directory: Path,
    repository: Path,
    source_database: str,
    monkeypatch: pytest.MonkeyPatch,
    suffice: Runner,
) -> None:
    page = (repository / PAGE).read_text()
    monkeypatch.setenv("SUFFICE_POSTGRESQL", source_database)
    write_postgresql(flights())
    role, view, _ = fenced(page, "sql")
    execute(source_database, *filter(None, map(str.strip, role.split(";"))))
    try:
        monkeypatch.setenv("SUFFICE_POSTGRESQL", as_user(source_database, "statistics"))
        run_page(page, "postgresql", page_directory, suffice)
    finally:
        end_all_others()
        execute(source_database, "DROP OWNED BY statistics", "DROP ROLE statistics")
    assert view.startswith("CREATE VIEW public.delays")


def test_the_page_on_duckdb(page_directory: Path, repository: Path, suffice: Runner) -> None:
    with duckdb.connect(page_directory / "flights.duckdb") as connection:
        connection.register("rows", flights())
        connection.execute("CREATE TABLE flights AS SELECT * FROM rows")
    run_page((repository / PAGE).read_text(), "duckdb", page_directory, suffice)


def test_the_page_on_warehouses(
    page_directory: Path,
    repository: Path,
    monkeypatch: pytest.MonkeyPatch,
    suffice: Runner,
    request: pytest.FixtureRequest,
) -> None:
    start_service(request)
    monkeypatch.setenv("SUFFICE_SNOWFLAKE", PASSWORD_URI)
    write_timed("snowflake", flights())
    page = (repository / PAGE).read_text().replace("LAKE.PUBLIC.FLIGHTS", NAMES["snowflake"])
    run_page(page, "snowflake", page_directory, suffice)


def counts(privacy: dict[str, Any]) -> int:
    spec = load_spec(
        {
            "name": "delays",
            "dataset": "passengers",
            "source": {"postgresql": "public.delays"},
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one", **privacy},
            "statistics": {
                "origin": {"family": "categorical", "column": "origin", "categories": ["EWR", "JFK"]}
            },
        }
    )
    with open_cluster_for_sums("threads") as cluster:
        sums = to_python(exact_sums(chunk_job(spec), splits_of(spec), cluster).open_totals())
    return int(np.sum(sums["origin"]))


@pytest.mark.slow
def test_a_join_that_fans_out_breaks_the_unit_that_was_meant(
    repository: Path, source_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (repository / PAGE).read_text()
    monkeypatch.setenv("SUFFICE_POSTGRESQL", source_database)
    write_postgresql(pa.table({"flight_id": [1, 2, 3], "origin": ["EWR", "JFK", "EWR"]}))
    reports = pa.table({"flight_id": [1] * 5 + [2], "minutes": [10, 20, 30, 40, 50, 7]})
    write_postgresql(reports, "public.delay_reports")
    execute(source_database, fenced(page, "sql")[1])
    unit = {"unit": {"column": "flight_id", "max_rows": "3"}}
    with_flight = counts({}), counts(unit)
    end_all_others()
    execute(source_database, "DELETE FROM public.flights WHERE flight_id = 1")
    without = counts({}), counts(unit)
    end_all_others()
    execute(source_database, "DROP VIEW public.delays")
    # One flight is five rows: `unit: row` hides one of them, and the column unit all that count.
    assert with_flight[0] - without[0] == 5
    assert with_flight[1] - without[1] == 3


def test_a_copy_of_another_databases_table_is_released(
    repository: Path, page_directory: Path, suffice: Runner
) -> None:
    """The page's statement, with a DuckDB file in the place of MySQL."""
    table = flights()
    with duckdb.connect("shop.duckdb") as shop:
        shop.register("rows", table)
        shop.execute("CREATE TABLE flights AS SELECT * FROM rows")
    statement = fenced((repository / PAGE).read_text(), "sql")[2]
    install, attach, copy = statement.strip().splitlines()
    assert "mysql" in install
    attach = re.sub(r"'.*?'", "'shop.duckdb'", attach).replace("TYPE mysql, ", "")
    (page_directory / "exports").mkdir()
    with duckdb.connect() as connection:
        connection.execute(attach)
        connection.execute(copy)
    spec = {
        "name": "copied",
        "dataset": "passengers",
        "source": {"parquet": "exports/flights.parquet"},
        "privacy": {"epsilon": "100", "neighboring": "add_or_remove_one"},
        "statistics": {"cancelled": {"family": "bernoulli", "column": "cancelled"}},
    }
    (page_directory / "spec.yaml").write_text(json.dumps(spec))
    granted = ("--epsilon", "100", "--source", "exports/flights.parquet", "--reason", "copy", "--create")
    suffice.text("ledger", "grant", "passengers", *granted)
    suffice.json("release", "spec.yaml")
    estimates = {row["quantity"]: row["estimate"] for row in suffice.json("table", "copied")["rows"]}
    assert abs(estimates["n"] - table.num_rows) < 2
    assert abs(estimates["total"] - np.sum(table["cancelled"].to_numpy())) < 2
