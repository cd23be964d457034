"""Files as Spark writes them give the totals of the same rows in any other source, times and all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from suffice.pipeline.rows.reduce.tree import open_cluster_for_sums
from support.same_rows import same_rows
from support.same_totals import totals
from support.source_makers import csv_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.cluster.connection import Cluster

N_ROWS = 300
FILES = Path(__file__).parent / "by_spark"
ENTRIES: dict[str, dict[str, Any]] = {
    "default": {"parquet": str(FILES / "default")},
    "legacy": {"parquet": str(FILES / "legacy")},
    "version2": {"parquet": str(FILES / "version2")},
    "folders": {"parquet": str(FILES / "folders"), "hive": {"flag": "boolean"}},
    "csv": {
        "csv": str(FILES / "csv"),
        "columns": {field.name: csv_type(field.type) for field in same_rows(1).schema},
    },
}


@pytest.fixture(scope="module")
def threads() -> Iterator[Cluster]:
    with open_cluster_for_sums("threads") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the rows as Arrow does, whose instants have a zone."""
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pq.write_table(same_rows(N_ROWS), path)
    return path


def test_the_files_hold_times_of_96_bits() -> None:
    for kind in ("default", "legacy"):
        path = next((FILES / kind).rglob("part-*.parquet"))
        metadata = pq.read_metadata(path)
        types = {of.name: of.physical_type for of in map(metadata.schema.column, range(metadata.num_columns))}
        assert types["instant"] == "INT96", kind


@pytest.mark.parametrize("kind", ENTRIES)
def test_totals_are_those_of_the_same_rows(kind: str, rows: Path, threads: Cluster) -> None:
    assert totals(ENTRIES[kind], threads) == totals({"parquet": str(rows)}, threads)
