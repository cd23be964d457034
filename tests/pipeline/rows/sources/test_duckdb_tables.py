"""What is particular to DuckDB: writers, changes that wait, other files, views, row ids with gaps."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from suffice.errors import SchemaError, StageFailedError, UsageError
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.sources.duckdb_tables import opened
from suffice.pipeline.rows.sources.schema_check import check_schema
from suffice.pipeline.spec.spec import load_spec
from support.hostile import normal
from support.splits import splits_of

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.spec.spec import Spec


def spec_of(path: Path, table: str = "main.t") -> Spec:
    return load_spec(
        {
            "name": "test",
            "dataset": "test",
            "source": {"duckdb": str(path), "table": table},
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
            "statistics": {"x": normal("n", "0", "10")},
        }
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "rows.duckdb"
    (tmp_path / "other.csv").write_text("n\n1\n")
    with duckdb.connect(made) as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS n FROM range(400000)")
        connection.execute("DELETE FROM t WHERE n BETWEEN 1000 AND 130000 OR n % 7 = 0")
        connection.execute("CREATE VIEW v AS SELECT n FROM t WHERE n < 500")
        connection.execute(f"CREATE VIEW outside AS SELECT * FROM read_csv('{tmp_path}/other.csv')")  # noqa: S608
        connection.execute("CREATE SCHEMA s; CREATE TABLE s.empty (n int)")
    return made


def numbers(splits: Any) -> Counter[Any]:
    counted: Counter[Any] = Counter()
    for split in splits:
        for batch in sources.read(split, ("n",), 10_000):
            counted.update(batch.column(0).to_pylist())
    return counted


KEPT = Counter(n for n in range(400_000) if not 1000 <= n <= 130_000 and n % 7)


def test_ids_with_gaps_are_divided(path: Path) -> None:
    splits = splits_of(spec_of(path), 1)
    assert len(splits) > 1
    assert numbers(splits) == KEPT
    assert sum(split.n_rows for split in splits) == KEPT.total()


def test_a_view_is_one_task(path: Path) -> None:
    (split,) = splits_of(spec_of(path, "main.v"), 1)
    assert numbers([split]) == Counter({n: 1 for n in KEPT if n < 500})
    assert splits_of(spec_of(path, "s.empty")) == ()


@pytest.mark.parametrize("name", ["rowid", "ROWID"])
def test_a_column_of_the_name_of_row_ids_decides_nothing(path: Path, name: str) -> None:
    """Its values are no ids: they would leave out rows, or stop the release."""
    with duckdb.connect(path) as connection:
        connection.execute(f"CREATE TABLE named (n int, {name} double)")
        connection.execute("INSERT INTO named VALUES (1, NULL), (2, -7), (3, 'nan'), (4, 5), (5, 5)")
    splits = splits_of(spec_of(path, "main.named"))
    assert numbers(splits) == Counter([1, 2, 3, 4, 5])


def test_what_arrow_has_no_number_for_is_refused_by_its_type(path: Path) -> None:
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE wide (n uhugeint); INSERT INTO wide VALUES (1)")
    spec = spec_of(path, "main.wide")
    with pytest.raises(SchemaError, match="of a type that is not read"):
        check_schema(spec, sources.schema(sources.pin(spec)))


@pytest.mark.parametrize("table", ["main.outside", "main.nothing", "t.t"])
def test_what_is_not_in_the_file_is_not_read(path: Path, table: str) -> None:
    with pytest.raises(UsageError, match=r"source\.duckdb: .* cannot be read"):
        sources.pin(spec_of(path, table))


def test_a_writer_is_said(path: Path) -> None:
    writer = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import duckdb; c = duckdb.connect({str(path)!r}); print(flush=True); input()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert writer.stdout is not None
    writer.stdout.readline()
    with pytest.raises(UsageError, match="a writer has it open"):
        sources.pin(spec_of(path))
    writer.communicate(b"\n")
    sources.pin(spec_of(path))


def test_changes_that_wait_beside_the_file_are_said(path: Path) -> None:
    pin = sources.pin(spec_of(path))
    path.with_name("rows.duckdb.wal").write_bytes(b"waits")
    with pytest.raises(UsageError, match=r"rows\.duckdb\.wal: let its writer close it"):
        sources.pin(spec_of(path))
    with pytest.raises(StageFailedError, match="has changed since it was pinned"):
        sources.check(pin)


def test_nothing_is_installed_written_or_opened_beside_it(path: Path) -> None:
    with opened(str(path)) as (connection, _):
        found = dict(connection.execute("SELECT name, value FROM duckdb_settings()").fetchall())
        with pytest.raises(duckdb.Error):
            connection.execute("SELECT * FROM read_csv('other.csv')").fetchall()
        with pytest.raises(duckdb.Error):
            connection.execute("INSERT INTO t VALUES (1)").fetchall()
    assert found["temp_directory"] == ""
    assert found["enable_external_access"] == "false"
    assert found["autoinstall_known_extensions"] == "false"
    assert found["autoload_known_extensions"] == "false"


@pytest.mark.parametrize("macro", ["count(a)", '"//"(a, b)', '">="(a, b)', '"<"(a, b)'])
def test_a_macro_of_the_file_replaces_no_function_or_operator(path: Path, macro: str) -> None:
    with duckdb.connect(path) as connection:
        connection.execute(f"CREATE MACRO {macro} AS 99")
    assert numbers(splits_of(spec_of(path), 1)) == KEPT


def test_a_schema_may_be_called_as_the_file_is(tmp_path: Path) -> None:
    path = tmp_path / "sales.duckdb"
    with duckdb.connect(tmp_path / "made.duckdb") as connection:
        connection.execute("CREATE SCHEMA sales; CREATE TABLE sales.t AS SELECT range AS n FROM range(9)")
    (tmp_path / "made.duckdb").rename(path)
    assert numbers(splits_of(spec_of(path, "sales.t"))) == Counter(range(9))
