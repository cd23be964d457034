"""Columns read from their pages are what Arrow reads, bit by bit; of damaged files Arrow alone decides."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.errors import StageFailedError
from suffice.pipeline.rows.sources import parquet_pages
from suffice.pipeline.rows.sources.native_module import MODULE
from suffice.pipeline.rows.sources.parquet import pin, read, splits
from support import parquet_pages as files
from support.hostile import categorical, make_spec, normal
from support.sanitised import sanitised

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(MODULE is None, reason="the module in C was not built here")


def page_reader(data: bytes, name: str) -> parquet_pages.PageReader:
    stored: Any = io.BytesIO(data)
    return parquet_pages.PageReader(stored, files.chunks_of(data, [name])[0][name])


def refused(data: bytes, block_rows: int) -> set[str]:
    """Read each column for itself; return those that are refused."""
    file, stored = files.opened(data), io.BytesIO(data)
    names = set()
    for number, chunks in enumerate(files.chunks_of(data, file.schema_arrow.names)):
        left = file.metadata.row_group(number).num_rows
        for name, chunk in chunks.items():
            reader: Any = parquet_pages.PageReader(stored, chunk)
            try:
                for start in range(0, left, block_rows):
                    reader.read(min(block_rows, left - start))
            except ValueError:
                names.add(name)
    return names


OPTIONS = st.fixed_dictionaries(
    {
        "compression": st.sampled_from(["none", "snappy", "zstd"]),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "use_dictionary": st.sampled_from([True, False, ["text", "few", "real"]]),
        "null_rate": st.sampled_from([0.0, 0.01, 0.1, 0.5, 0.98, 1.0]),
        "n_values": st.sampled_from([1, 2, 5, 200, 700]),
        "data_page_size": st.sampled_from([1, 200, 10**6]),
        "write_batch_size": st.sampled_from([3, 64, 1024]),
        "dictionary_pagesize_limit": st.sampled_from([60, 10**6]),
        "row_group_size": st.sampled_from([7, 64, 1000, 5000]),
        "write_page_checksum": st.booleans(),
        "write_statistics": st.booleans(),
        "store_schema": st.booleans(),
    }
)


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.sampled_from([0, 1, 8, 63, 64, 65, 130, 1100, 2600]),
    block_rows=st.sampled_from([1000, 1024, 1600]),
    options=OPTIONS,
)
def test_what_is_read_is_what_arrow_reads(
    seed: int, n_rows: int, block_rows: int, options: dict[str, Any]
) -> None:
    data = files.parquet_bytes(np.random.default_rng(seed), n_rows, **options)
    names = list(files.TYPES)
    assert files.content(files.by_pages(data, names, block_rows)) == files.content(
        files.by_arrow(data, names, block_rows)
    )
    # Only texts of which a page holds no indices are left to Arrow; what is begun elsewhere is finished.
    chunks = files.chunks_of(data, names)
    assert all(set(files.READ_HERE) - set(files.TEXTS) <= set(of) for of in chunks)
    is_dictionary = options["use_dictionary"] and options["dictionary_pagesize_limit"] > 60
    assert refused(data, block_rows) <= (set() if is_dictionary else set(files.TEXTS))
    if is_dictionary and n_rows:
        assert all(set(files.READ_HERE) == set(of) for of in chunks)


@pytest.mark.parametrize(("seed", "n_files"), [(3, 100), pytest.param(5, 300, marks=pytest.mark.slow)])
def test_damaged_files_are_read_as_arrow_reads_them(seed: int, n_files: int) -> None:
    n_refused, n_read, differing = files.differences(seed, n_files)
    assert min(n_refused, n_read) > n_files / 6
    assert not differing


@pytest.mark.slow
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_each_byte_of_a_file_changed_is_read_as_arrow_reads_it(version: str) -> None:
    table = pa.table({"text": ["a", None, "b", "b"], "short": pa.array([1, 2, None, 7], pa.int32())})
    stream = io.BytesIO()
    pq.write_table(
        table,
        stream,
        compression="none",
        data_page_version=version,
        store_schema=False,
        write_statistics=False,
    )
    data, names = stream.getvalue(), table.column_names
    for place in range(4, len(data) - 8):
        for value in (0, data[place] ^ 1, 255 - data[place]):
            changed = data[:place] + bytes([value]) + data[place + 1 :]
            by_pages = files.outcome(files.by_pages, changed, names)
            assert by_pages == files.outcome(files.by_arrow, changed, names), place


@pytest.mark.audit
@pytest.mark.timeout(3600)
def test_ten_thousand_damaged_files_under_sanitisers(repository: Path, tmp_path: Path) -> None:
    code = "from support.parquet_pages import differences; print(differences(4, 10_000)[2])"
    assert sanitised(repository, tmp_path, code).split() == ["[]"]


@pytest.mark.parametrize("number", range(0, len(files.OPTIONS), 3))
def test_files_of_each_kind_are_read_as_arrow_reads_them(number: int) -> None:
    options = files.OPTIONS[number]
    data = files.parquet_bytes(np.random.default_rng(number), 300, data_page_size=200, **options)
    names = list(files.TYPES)
    assert files.content(files.by_pages(data, names)) == files.content(files.by_arrow(data, names))
    assert not refused(data, 100)


def test_where_a_page_is_refused_arrow_goes_on_from_the_next_row() -> None:
    texts = [*["a", "b"] * 400, *(f"text {row} of its own" for row in range(400))]
    table = pa.table({"text": texts, "integer": np.arange(1200)})
    stream = io.BytesIO()
    pq.write_table(table, stream, data_page_size=50, write_batch_size=50, dictionary_pagesize_limit=200)
    names = ["text", "integer"]
    batches = files.by_pages(stream.getvalue(), names, 64)
    assert pa.Table.from_batches(batches).column("integer").to_pylist() == list(range(1200))
    assert [text for batch in batches for text in batch.column("text").to_pylist()] == texts
    assert refused(stream.getvalue(), 64) == {"text"}


def test_a_page_that_a_checksum_tells_is_damaged_is_refused() -> None:
    stream = io.BytesIO()
    table = pa.table({"integer": np.arange(100)})
    pq.write_table(table, stream, compression="none", use_dictionary=False, write_page_checksum=True)
    data = bytearray(stream.getvalue())
    data[data.index(np.int64(77).tobytes())] = 78
    assert files.outcome(files.by_pages, bytes(data)) is None
    reader = page_reader(bytes(data), "integer")
    with pytest.raises(parquet_pages.RefusedError):
        reader.read(100)


def test_snappy_bytes_of_another_size_are_refused() -> None:
    codec, stream = pa.Codec("snappy"), io.BytesIO()
    schema = pa.schema([pa.field("integer", pa.int64(), nullable=False)])
    table = pa.table({"integer": np.zeros(1000, np.int64)}, schema)
    pq.write_table(table, stream, compression="snappy", use_dictionary=False)
    data = stream.getvalue()
    whole, shorter = (bytes(codec.compress(bytes(size))) for size in (8000, 7992))
    assert whole in data
    assert len(shorter) == len(whole)
    assert page_reader(data, "integer").read(1000).null_count == 0
    reader = page_reader(data.replace(whole, shorter), "integer")
    with pytest.raises(parquet_pages.RefusedError):
        reader.read(1000)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("column_chunks", (b"\x00", np.zeros((1, 8), np.int64))),
        ("column_chunks", (b"\x49\x0c", np.zeros((1, 7), np.int64))),
        ("page_header", (b"\x15\x00", np.zeros(14, np.int64))),
        ("page_header", (b"\x15\x00", np.zeros(13, np.int64))),
        ("dictionary_texts", (b"\x05\x00\x00\x00abc", np.zeros(2, np.int32), np.zeros(3, np.uint8))),
        ("dictionary_texts", (b"\xff\xff\xff\xffabc", np.zeros(2, np.int32), np.zeros(3, np.uint8))),
    ],
)
def test_bytes_that_end_too_early_are_refused(name: str, arguments: tuple[Any, ...]) -> None:
    assert MODULE is not None
    with pytest.raises(ValueError, match="do not fit together"):
        getattr(MODULE, name)(*arguments)


PLAIN_STATE = [10, 0, 1, *[0] * 12]
INDEX_STATE = [8, 0, 0, 3, *[0] * 11]


@pytest.mark.parametrize(
    ("state", "changed"),
    [
        (PLAIN_STATE, {}),
        (PLAIN_STATE, {0: 4}),  # fewer rows than are asked for
        (PLAIN_STATE, {10: 41}),
        (PLAIN_STATE, {10: -1}),
        (PLAIN_STATE, {1: 1}),  # levels, of which there are none
        (INDEX_STATE, {3: 33}),
        (INDEX_STATE, {3: -1}),
        (INDEX_STATE, {13: 1, 12: 2**40}),
        (INDEX_STATE, {13: 1, 12: 80}),
        (INDEX_STATE, {12: -1}),
        (INDEX_STATE, {13: 1, 11: 2**31 - 1, 12: 8}),
    ],
)
def test_a_page_that_does_not_hold_its_rows_is_refused(state: list[int], changed: dict[int, int]) -> None:
    assert MODULE is not None
    given_state = np.array(state, np.int64)
    for place, value in changed.items():
        given_state[place] = value
    n = min(int(state[0]), 8)
    values = np.zeros(39, np.uint8) if state is PLAIN_STATE else np.array([3, 1, 2, 3], np.uint8)
    out, validity = np.zeros(n, np.int32), np.zeros(2, np.uint8)
    levels, dictionary = np.zeros(0, np.uint8), np.zeros(8, np.int32)
    arguments = (levels, values, dictionary, given_state, 0, n, out, validity)
    if state is PLAIN_STATE and not changed:
        MODULE.page_words(*arguments)  # its first eight rows are there, its last one is not
        arguments = (*arguments[:4], 0, 2, *arguments[6:])
    with pytest.raises(ValueError, match="do not fit together"):
        MODULE.page_words(*arguments)


@pytest.mark.parametrize("rows", [parquet_pages.FEWEST_ROWS - 1, parquet_pages.FEWEST_ROWS])
def test_sources_read_large_row_groups_so_and_small_ones_by_arrow(
    tmp_path: Path, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []

    class Counting(parquet_pages.PageReader):
        def __init__(self, *arguments: Any) -> None:
            begun.append(1)
            super().__init__(*arguments)

    monkeypatch.setattr(parquet_pages, "PageReader", Counting)
    table = pa.table({"x": np.arange(2.0 * rows), "k": ["a", "b"] * rows})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=rows)
    spec = make_spec(tmp_path, {"x": normal("x", "0", "1"), "k": categorical("k", ["a"])})
    pinned = pin(spec)
    batches = [batch for split in splits(pinned) for batch in read(split, ("x", "k"), 5000)]
    assert pa.Table.from_batches(batches).column("x").to_pylist() == table.column("x").to_pylist()
    assert [k for batch in batches for k in batch.column("k").to_pylist()] == table.column("k").to_pylist()
    assert bool(begun) == (rows == parquet_pages.FEWEST_ROWS)


def test_a_damaged_file_is_the_same_typed_error(tmp_path: Path) -> None:
    rows = parquet_pages.FEWEST_ROWS
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": np.arange(1.0 * rows), "k": ["a", "b"] * (rows // 2)}), path)
    data = bytearray(path.read_bytes())
    data[4 : len(data) // 3] = bytes(len(data) // 3 - 4)
    path.write_bytes(data)
    pinned = pin(make_spec(tmp_path, {"x": normal("x", "0", "1"), "k": categorical("k", ["a"])}))
    (split,) = splits(pinned)
    with pytest.raises(StageFailedError, match="it is damaged, or access to it was lost"):
        list(read(split, ("x", "k"), 5000))
