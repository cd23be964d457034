"""Pages read here: the same codes as through Arrow, whoever wrote the file, and Arrow's errors."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from suffice.errors import UsageError
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk import jit, paged_columns
from suffice.pipeline.rows.chunk.partition import chunk, chunk_job
from suffice.pipeline.rows.sources import parquet_files
from suffice.pipeline.rows.sources.contracted_columns import AS_STORED
from suffice.pipeline.rows.sources.file_access import status
from suffice.pipeline.spec.spec import load_spec
from support import sanitisers
from support.paged_files import (
    COLUMNS,
    REFUSED,
    base_files,
    compare,
    damaged,
    every_row_group_is_served,
    read,
    table,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    jit.MODULE is None, reason="the module in C was not built here, or is not wanted"
)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    every_row_group_is_served(monkeypatch.setattr)


@pytest.mark.usefixtures("small")
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_pages_give_what_arrow_gives(tmp_path: Path, data: st.DataObject) -> None:
    n_rows = data.draw(st.integers(0, 700))
    nulls = data.draw(st.sampled_from([0.0, 0.02, 0.5, 0.97, 1.0]))
    rows = table(n_rows, data.draw(st.integers(0, 99)), nulls)
    path = tmp_path / "file.parquet"
    pq.write_table(
        rows,
        path,
        compression=data.draw(st.sampled_from(["zstd", "snappy", "none"])),
        data_page_version=data.draw(st.sampled_from(["1.0", "2.0"])),
        use_dictionary=data.draw(st.sampled_from([True, False, ["word", "small", "single"]])),
        dictionary_pagesize_limit=data.draw(st.sampled_from([100, 1000, 2**20])),
        data_page_size=data.draw(st.sampled_from([1, 200, 3000, 2**20])),
        write_batch_size=data.draw(st.sampled_from([1, 7, 64, 1000])),
        row_group_size=data.draw(st.sampled_from([1, 33, 250, 1000])),
        write_page_checksum=data.draw(st.booleans()),
        write_statistics=data.draw(st.booleans()),
        store_schema=data.draw(st.booleans()),
    )
    paged = compare(path.read_bytes(), path)
    assert paged == n_rows


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("writer", ["duckdb", "polars", "pandas"])
def test_other_writers(tmp_path: Path, writer: str) -> None:
    rows, path = table(5000, 1), tmp_path / "file.parquet"
    texts = ["text", "word", "amount", "single", "whole"]
    if writer == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        for codec in ("zstd", "snappy", "uncompressed"):
            connection = duckdb.connect()
            connection.register("rows", rows)
            connection.execute(
                f"COPY rows TO '{path}' (FORMAT parquet, CODEC '{codec}', ROW_GROUP_SIZE 2048)"
            )
            assert compare(path.read_bytes(), path, ["amount", "whole"]) > 0
            compare(path.read_bytes(), path)  # columns with nulls are left to Arrow
    elif writer == "polars":
        polars = pytest.importorskip("polars")
        for codec in ("zstd", "snappy", "uncompressed"):
            polars.from_arrow(rows).write_parquet(path, compression=codec, data_page_size=3000)
            assert compare(path.read_bytes(), path, texts) > 0
    else:
        pytest.importorskip("pandas")
        rows.to_pandas().to_parquet(path)
        assert compare(path.read_bytes(), path, texts) > 0


@pytest.mark.usefixtures("small")
def test_what_is_not_served_is_left_to_arrow(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    rows = table(300, 3)
    packed = {"column_encoding": {"number": "DELTA_BINARY_PACKED"}, "use_dictionary": False}
    for options in ({"compression": "gzip"}, packed):
        pq.write_table(rows, path, **options)
        assert compare(path.read_bytes(), path) == 0
    pq.write_table(rows.set_column(0, "text", [pa.array([[1]] * 300)]), path)
    assert read(path, ["word"], by_pages=True)[1] == 300


@pytest.mark.usefixtures("small")
def test_damaged_files(tmp_path: Path) -> None:
    contents = [path.read_bytes() for path in base_files(tmp_path)]
    served = refused = 0
    for seed in range(150):
        choose = random.Random(seed)  # noqa: S311 - damage, no noise
        path = tmp_path / "file.parquet"
        served += compare(damaged(choose.choice(contents), choose), path) > 0
        refused += read(path, COLUMNS, by_pages=False)[0] == REFUSED
    assert served > 20
    assert refused > 20


@pytest.mark.parametrize(("codec", "number"), [("none", 0), ("snappy", 1), ("zstd", 2)])
def test_a_page_holds_as_many_bytes_as_its_header_says(tmp_path: Path, codec: str, number: int) -> None:
    path = tmp_path / "file.parquet"
    pq.write_table(table(300, 1).select(["whole"]), path, compression=codec)
    chunk_of = pq.read_metadata(path).row_group(0).column(0)
    begin = chunk_of.dictionary_page_offset
    window = np.frombuffer(path.read_bytes(), np.uint8)[begin : begin + chunk_of.total_compressed_size].copy()
    pages = np.zeros((9, 10), np.int64)
    paged_columns.native().page_headers(window, number, pages)
    assert pages[0].tolist()[:2] == [2, len(window)]
    assert window[:3].tolist() == [0x15, 4, 0x15]
    window[3] ^= 2  # the size, one byte more or less
    with pytest.raises(ValueError, match="do not fit"):
        paged_columns.native().page_headers(window, number, pages)


@pytest.mark.parametrize(("kind", "n_values", "is_refused"), [(0, 1, False), (0, 0, True), (2, 0, False)])
def test_a_page_of_data_has_rows(kind: int, n_values: int, is_refused: bool) -> None:
    # Arrow takes one without rows for the end of its column, where a read begins with it.
    of_data = [0x2C, 0x15, 2 * n_values, 0x15, 0, 0x15, 6, 0x15, 6, 0]
    of_entries = [0x4C, 0x15, 0, 0x15, 0, 0]
    header = [0x15, 2 * kind, 0x15, 0, 0x15, 0, *(of_entries if kind else of_data), 0]
    pages = np.zeros((9, 10), np.int64)
    if is_refused:
        with pytest.raises(ValueError, match="do not fit"):
            paged_columns.native().page_headers(np.array(header, np.uint8), 0, pages)
    else:
        paged_columns.native().page_headers(np.array(header, np.uint8), 0, pages)
        assert pages[0].tolist()[:2] == [1, len(header)]


@pytest.mark.parametrize(
    ("codec", "size", "n_levels", "is_refused"),
    [
        (0, 3, 0, False),
        (0, 3, 3, False),
        (0, 3, 4, True),
        (0, 3, -1, True),
        (2, 3, 0, True),
        (2, -1, None, True),
    ],
)
def test_sizes_and_levels_are_not_negative_and_not_more(
    codec: int, size: int, n_levels: int | None, is_refused: bool
) -> None:
    def varint(number: int) -> int:
        return 2 * number if number >= 0 else -2 * number - 1

    kind, of_data = 0, [0x2C, 0x15, 2, 0x15, 0, 0x15, 6, 0x15, 6, 0]
    if n_levels is not None:
        kind, of_data = 6, [0x5C, 0x15, 2, 0x15, 0, 0x15, 2, 0x15, 0, 0x15, varint(n_levels), 0x15, 0, 0]
    header = [0x15, kind, 0x15, varint(size), 0x15, 6, *of_data, 0, 0, 0, 0]  # three bytes, no frame
    pages = np.zeros((9, 10), np.int64)
    if is_refused:
        with pytest.raises(ValueError, match="do not fit"):
            paged_columns.native().page_headers(np.array(header, np.uint8), codec, pages)
    else:
        paged_columns.native().page_headers(np.array(header, np.uint8), codec, pages)
        assert pages[0].tolist()[:2] == [1, len(header)]


@pytest.mark.usefixtures("small")
def test_rows_are_counted_where_no_column_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    pq.write_table(table(100, 1), path)
    files = parquet_files.pin_files([(status(str(path)), AS_STORED)], ("whole",), place="here")
    (split,) = parquet_files.file_splits("parquet", files)
    blocks = parquet_files.read_files(split, (), 1 << 17, paged_columns.PageReader([]))
    assert sum(block.num_rows for block in blocks) == 100


def rows_of_groups(content: bytes) -> list[int]:
    metadata = pq.read_metadata(pa.BufferReader(content))
    return [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]


@pytest.mark.usefixtures("small")
def test_row_groups_of_other_sizes_than_the_footer_says(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    pq.write_table(table(100, 1), path, row_group_size=50, compression="zstd")
    content = path.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    fifty = b"\x16\x64"  # of 64 bits
    places = [at for at in range(footer, len(content)) if content[at : at + 2] == fifty]
    damaged_files = [content[:at] + b"\x16\x62" + content[at + 2 :] for at in places]
    (shorter, _) = (of for of in damaged_files if sum(rows_of_groups(of)) == 99)
    # Arrow goes on with the fiftieth row of the first row group, which no row group says to have.
    compare(shorter, path)
    assert len(read(path, COLUMNS, by_pages=True)[0]["whole"]) == 99


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("group", [0, 1, 2])
def test_row_groups_of_another_type_than_the_footer_says(tmp_path: Path, group: int) -> None:
    path = tmp_path / "file.parquet"
    pq.write_table(table(150, 1).select(["number", "small"]), path, row_group_size=50, compression="zstd")
    content = path.read_bytes()
    of_64_bits, of_32_bits = b"\x15\x04\x19", b"\x15\x02\x19"  # and then encodings
    places = [at for at in range(len(content)) if content[at : at + 3] == of_64_bits]
    at = places[-3:][group]  # another one stands in the schema
    compare(content[:at] + of_32_bits + content[at + 3 :], path, ["number", "small"])
    assert read(path, ["number"], by_pages=True)[0] == REFUSED
    with pytest.raises(UsageError, match="cannot be read as a Parquet file"):
        parquet_files.pin_files([(status(str(path)), AS_STORED)], ("number",), place="here")
    assert compare(path.read_bytes(), path, ["small"]) == 150, "the other column is as the footer says"


@pytest.mark.parametrize(
    ("rows", "options", "is_paged"),
    [
        (64, {"compression": "snappy"}, False),
        (64, {"compression": "none", "use_dictionary": False}, False),
        (64, {"compression": "zstd"}, True),  # many are decompressed at once
        (5000, {"compression": "snappy"}, True),
    ],
)
def test_small_pages_that_are_read_one_by_one_are_left_to_arrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, options: dict[str, Any], is_paged: bool
) -> None:
    monkeypatch.setattr(paged_columns, "_FEWEST_ROWS", 0)
    path = tmp_path / "file.parquet"
    columns = ["word", "whole"]
    pq.write_table(table(20_100, 1).select(columns), path, write_batch_size=rows, data_page_size=1, **options)
    assert compare(path.read_bytes(), path, columns) == (20_100 if is_paged else 0)


def line(size: int, n_values: int, levels: int = -1, n_nulls: int = -1) -> Any:
    return np.array([[0, 8, n_values, 0, size, size, levels, 1, n_nulls, -1]], np.int64)


ALL_THERE, FIRST_NULL = [2, 0, 0, 0, 16, 1], [2, 0, 0, 0, 3, 0xFE]


@pytest.mark.parametrize(
    ("content", "is_optional", "n_values", "changes", "codes"),
    [
        ([1, 16, 0], False, 8, {}, [5] * 8),
        ([1, 16, 1], False, 8, {}, [6] * 8),
        ([1, 3, 0xAA], False, 5, {}, [5, 6, 5, 6, 5]),
        ([*ALL_THERE, 1, 16, 1], True, 8, {}, [6] * 8),
        ([*FIRST_NULL, 1, 14, 1], True, 8, {}, [-1, *[6] * 7]),
        ([*FIRST_NULL[4:], 1, 14, 1], True, 8, {"levels": 2, "n_nulls": 1}, [-1, *[6] * 7]),
        ([*FIRST_NULL[4:], 1, 14, 1], True, 8, {"levels": 2, "n_nulls": 2}, None),
        ([*ALL_THERE[4:], 1, 16, 1], False, 8, {"levels": 2}, None),  # levels where no row may be null
        ([1, 16, 0, 0], False, 8, {}, None),  # a byte more
        ([1, 16], False, 8, {}, None),
        ([1, 16, 0], False, 9, {}, None),
        ([1, 16, 0], False, 7, {}, None),
        ([1, 5, 0xAA, 0xAA], False, 8, {}, None),  # a group more
        ([2, 16, 2], False, 8, {}, None),  # no such entry
        ([2, 3, 0xAA, 0xAA], False, 8, {}, None),
        ([1, 16, 2], False, 8, {}, None),  # more bits than the width
        ([25, 16, 0, 0, 0, 0], False, 8, {}, None),
        ([1, 0, 0], False, 8, {}, None),  # a run of nothing
        ([1, 0x80, 0x80, 0x80, 0x80, 0x80, 1], False, 8, {}, None),
        ([9, 0, 0, 0, *ALL_THERE[4:], 1, 16, 1], True, 8, {}, None),
        ([2, 0, 0, 0, 16, 2, 1, 16, 1], True, 8, {}, None),
        ([3, 0, 0, 0, 16, 1, 0, 1, 16, 1], True, 8, {}, None),
    ],
)
def test_codes_of_a_page(
    content: list[int], is_optional: bool, n_values: int, changes: dict[str, int], codes: list[int] | None
) -> None:
    data, out = np.array(content, np.uint8), np.zeros(n_values, np.int32)
    arguments = (data, line(len(data), n_values, **changes), is_optional, np.array([5, 6, -1], np.int32), out)
    if codes is None:
        with pytest.raises(ValueError, match="do not fit"):
            paged_columns.native().page_codes(*arguments)
    else:
        paged_columns.native().page_codes(*arguments)
        assert out.tolist() == codes


@pytest.mark.parametrize(("size", "n_values"), [(17, 2), (15, 2), (8, 2)])
def test_plain_values_fill_their_page(size: int, n_values: int) -> None:
    data, counts = np.zeros(size, np.uint8), np.zeros(2, np.int64)
    with pytest.raises(ValueError, match="do not fit"):
        paged_columns.native().join_values(data, line(size, n_values), 0, 8, data.copy(), counts)
    paged_columns.native().join_values(
        np.zeros(16, np.uint8), line(16, 2), 0, 8, np.zeros(16, np.uint8), counts
    )
    assert counts.tolist() == [2, 16]
    with pytest.raises(ValueError, match="do not fit"):  # eight times as many are two, modulo 2^64
        paged_columns.native().join_values(
            np.zeros(16, np.uint8), line(16, 2**61 + 2), 0, 8, np.zeros(16, np.uint8), counts
        )


def spec_of(path: Path) -> Any:
    return load_spec(
        {
            "name": "pages",
            "dataset": "pages",
            "source": {"parquet": str(path)},
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": "row"},
            "groups": {"word": ["a", "word", "x" * 40], "whole": {"range": ["0", "3"]}},
            "statistics": {
                "small": {
                    "family": "categorical",
                    "column": "small",
                    "categories": ["1", "2", "7"],
                    "other": "true",
                },
                "amount": {"family": "normal", "column": "amount", "lower": "-2", "upper": "2"},
                "single": {"family": "normal", "column": "single", "lower": "-1", "upper": "1"},
            },
        }
    )


def test_sums_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file.parquet"
    pq.write_table(table(80_000, 5), path, compression="zstd", data_page_size=20_000)
    spec = spec_of(path)
    split, job = sources.splits(sources.pin(spec))[0], chunk_job(spec)
    read_by: list[int] = []
    whole = paged_columns.PageReader.read

    def counted(*arguments: Any) -> Iterator[Any]:
        for block in whole(*arguments):
            read_by.append(block.num_rows)
            yield block

    monkeypatch.setattr(paged_columns.PageReader, "read", counted)
    by_pages = chunk(split, job)
    assert sum(read_by) == 80_000
    monkeypatch.setenv(paged_columns.VARIABLE, "arrow")
    by_arrow = chunk(split, job)
    assert sum(read_by) == 80_000
    for name, sums in by_arrow.items():
        assert np.array_equal(by_pages[name].low, sums.low)
        assert (sums.high is None) == (by_pages[name].high is None)
        if sums.high is not None:
            assert np.array_equal(by_pages[name].high, sums.high)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "n_files", [pytest.param(600, marks=pytest.mark.slow), pytest.param(12_000, marks=pytest.mark.audit)]
)
def test_sanitisers_find_nothing_in_damaged_files(repository: Path, tmp_path: Path, n_files: int) -> None:
    library, variables = sanitisers.library(tmp_path)
    ran = subprocess.run(
        [sys.executable, "-m", "support.damaged_pages", "0", str(n_files), str(tmp_path), str(library)],
        env=variables,
        cwd=repository / "tests",
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert ran.stdout.endswith("files ended Arrow's own process\n")


def test_codes_and_pages_show_nothing_and_do_not_travel() -> None:
    """They are exact data, as batches of rows are."""
    numbers = np.array([7411, 7412], np.int32)
    rows = paged_columns.CodedRows(num_rows=2, codes={("x", np.asarray): numbers})
    window, table = np.array([74, 11], np.uint8), np.array([[7411]])
    pages = paged_columns._Pages(
        window=window, table=table, kind=0, is_plain=True, begin=0, n_values=1, compressed=2, size=2
    )
    for exact in (rows, pages):
        assert repr(exact) == f"{type(exact).__name__}(...)"
        with pytest.raises(TypeError):
            pickle.dumps(exact)
        with pytest.raises(TypeError):
            vars(exact)
