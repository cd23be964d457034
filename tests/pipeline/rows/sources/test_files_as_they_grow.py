"""Files of a source that others write on: columns added later, files of the window's days alone."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.errors import SchemaError
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.exact_sums import to_python
from suffice.pipeline.rows.chunk.partition import chunk_job
from suffice.pipeline.rows.reduce.tree import exact_sums, open_cluster_for_sums
from suffice.pipeline.rows.sources.schema_check import check_columns
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.spec.windows_and_amendments import ALL
from support.hostile import bernoulli, categorical, normal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from suffice.pipeline.cluster.connection import Cluster

STATISTICS = {
    "x": normal("x", "0", "100"),
    "y": normal("y", "0", "100"),
    "filled": normal("y", "0", "100", nulls={"value": "7"}),
    "city": categorical("city", ["a", "b"], other=True),
    "flag": bernoulli("flag"),
}
ROWS = pa.table(
    {
        "u": [1, 1, 2, 3, None, 4],
        "x": [1.0, 2.5, None, 8.0, 16.0, 200.0],
        "y": [None, None, None, 1.0, None, 5.0],
        "city": [None, None, None, "a", "c", None],
        "flag": [None, None, None, True, False, None],
    }
)
FIRST, LATER = ROWS.slice(0, 3), ROWS.slice(3)


@pytest.fixture(scope="module")
def threads() -> Iterator[Cluster]:
    with open_cluster_for_sums("threads") as cluster:
        yield cluster


def document(source: dict[str, Any], **parts: Any) -> dict[str, Any]:
    privacy = {"epsilon": "1", "neighboring": "add_or_remove_one"}
    return {
        "name": "test",
        "dataset": "test",
        "source": source,
        "privacy": privacy,
        "statistics": STATISTICS,
        **parts,
    }


def totals(
    source: dict[str, Any], cluster: Cluster, window: str = ALL, **parts: Any
) -> tuple[dict[str, list[Any]], tuple[str, ...]]:
    """Return the exact sums of a source, and what the schema check warns of."""
    spec = load_spec(document(source, **parts))
    with closing(sources.pin(spec, window)) as pin:
        texts = check_columns(spec, sources.schema(pin), None)
        sums = to_python(exact_sums(chunk_job(spec, window), sources.splits(pin), cluster).open_totals())
        sources.check(pin)
    return {name: values.tolist() for name, values in sums.items()}, texts


def written(root: Path, **files: pa.Table) -> dict[str, str]:
    root.mkdir()
    for name, table in files.items():
        pq.write_table(table, root / f"{name}.parquet", row_group_size=2)
    return {"parquet": str(root)}


UNITS = [
    {},
    {"unit": {"column": "u", "max_rows": "1"}},
    {"unit": {"column": "u", "max_rows": "2", "nulls": "own_unit"}},
]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("added", [["y"], ["y", "city", "flag"], ["city", "flag"]])
def test_a_column_that_was_added_later_is_null_in_older_files(
    tmp_path: Path, threads: Cluster, added: list[str], unit: dict[str, Any]
) -> None:
    privacy = {"epsilon": "1", "neighboring": "add_or_remove_one", **unit}
    older = written(tmp_path / "older", a=FIRST.drop_columns(added), b=LATER)
    whole = written(tmp_path / "whole", a=FIRST, b=LATER)
    expected, silent = totals(whole, threads, privacy=privacy)
    found, texts = totals(older, threads, privacy=privacy)
    assert found == expected
    assert any(map(any, expected["filled"])), "nulls count by the spec's rule"
    assert silent == ()
    assert [text.partition(", which")[0].partition("/older/")[2] for text in texts] == [
        f"a.parquet has no column {name!r}" for name in added
    ]


def test_a_file_may_lack_every_column_that_is_read(tmp_path: Path, threads: Cluster) -> None:
    statistics = {"y": normal("y", "0", "100", nulls={"value": "7"})}
    older = written(tmp_path / "older", a=FIRST.drop_columns("y"), b=LATER)
    whole = written(tmp_path / "whole", a=FIRST, b=LATER)
    assert (
        totals(older, threads, statistics=statistics)[0] == totals(whole, threads, statistics=statistics)[0]
    )


def test_what_no_file_has_is_refused_and_so_is_a_file_without_the_unit(tmp_path: Path) -> None:
    def check(source: dict[str, str], **parts: Any) -> None:
        spec = load_spec(document(source, **parts))
        check_columns(spec, sources.schema(sources.pin(spec)), None)

    lacking = written(tmp_path / "lacking", a=FIRST.drop_columns("y"), b=LATER.drop_columns("y"))
    with pytest.raises(SchemaError, match=r"^statistics\.y\.column: .*a\.parquet: no column 'y'"):
        check(lacking)
    strangers = written(tmp_path / "strangers", a=FIRST.drop_columns("u"), b=LATER)
    check(strangers)
    for nulls in ("drop", "own_unit"):
        privacy = {
            "epsilon": "1",
            "neighboring": "add_or_remove_one",
            "unit": {"column": "u", "max_rows": "1", "nulls": nulls},
        }
        with pytest.raises(SchemaError, match=r"^privacy\.unit\.column: .*a\.parquet: no column 'u'"):
            check(strangers, privacy=privacy)


def test_the_check_depends_on_names_of_columns_alone(tmp_path: Path) -> None:
    texts = set()
    for number, rows in enumerate((FIRST, FIRST.slice(0, 0), FIRST.slice(1, 1))):
        root = tmp_path / str(number) / "data"
        root.parent.mkdir()
        source = written(root, a=rows.drop_columns("y"), b=LATER.slice(number))
        spec = load_spec(document(source))
        found = check_columns(spec, sources.schema(sources.pin(spec)), None)
        texts.add(tuple(text.partition("/data/")[2] for text in found))
    assert len(texts) == 1
