"""The page on sources, for CSV, Delta and Iceberg: it runs as it stands, and gives the sums of Parquet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
import yaml
from deltalake import write_deltalake

from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.reduce.tree import exact_sums, open_cluster_for_sums
from suffice.pipeline.spec.spec import load_spec
from support.making import flights
from support.source_makers import MAKERS
from support.source_page import PAGE, spec_and_commands
from support.splits import splits_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

    from support.running import Runner


def write_csv(directory: Path, _: pytest.MonkeyPatch) -> None:
    (directory / "flights").mkdir()
    MAKERS["csv"].write(directory / "flights", flights())


def write_delta(directory: Path, _: pytest.MonkeyPatch) -> None:
    write_deltalake(directory / "flights", flights(), partition_by=["day"])


def write_iceberg(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyiceberg.catalog import load_catalog

    monkeypatch.setenv("PYICEBERG_CATALOG__WAREHOUSE__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__WAREHOUSE__URI", "sqlite:///catalog.db")
    catalog = load_catalog(
        "warehouse", type="sql", uri="sqlite:///catalog.db", warehouse=f"file://{directory}/warehouse"
    )
    catalog.create_namespace("travel")
    catalog.create_table("travel.flights", schema=flights().schema).append(flights())


WRITERS = {"csv": write_csv, "delta": write_delta, "iceberg": write_iceberg}


@pytest.mark.parametrize("kind", WRITERS)
def test_a_page_runs_as_it_stands(
    kind: str, tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch, suffice: Runner
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("STORE", "LEDGER", "CLUSTER"):
        monkeypatch.delenv(f"SUFFICE_{name}", raising=False)
    page = (repository / PAGE).read_text()
    WRITERS[kind](tmp_path, monkeypatch)
    text, listed = spec_and_commands(page, kind)
    (tmp_path / "spec.yaml").write_text(text)
    suffice.text(*listed[0])
    assert suffice.json(*listed[1])["status"] == "published"
    assert suffice.json(*listed[1])["status"] == "already_published"
    spec = yaml.load((tmp_path / "spec.yaml").read_text(), yaml.BaseLoader)  # noqa: S506 - no types
    pq.write_table(flights(), tmp_path / "flights.parquet")
    assert totals(spec) == totals({**spec, "source": {"parquet": "flights.parquet"}})


def totals(spec: Mapping[str, Any]) -> dict[str, list[Any]]:
    loaded = load_spec(dict(spec))
    job = chunk_job(loaded, "2013-01")
    with open_cluster_for_sums("threads") as cluster:
        sums = to_python(exact_sums(job, splits_of(loaded), cluster).open_totals())
    return {name: values.tolist() for name, values in sums.items()}
