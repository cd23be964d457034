"""The first rows of Parquet files that others wrote: what suffice writes is read, all else is refused."""

from __future__ import annotations

import io
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.data_files.first_rows import first_rows
from suffice.data_files.source import SUMMARIES, Provenance, ReleaseSource
from suffice.data_files.tables import parquet_bytes, table_of
from suffice.errors import PublicationCorruptError
from suffice.storage.releases.parquet_layout import ThriftReader

ROWS = 1000
SOURCE = Provenance(
    what=SUMMARIES,
    releases=(ReleaseSource(label="a@all", release_id="0" * 16, manifest_sha256="0" * 64),),
    statistic="flag",
)
COLUMNS: dict[str, Any] = {
    "place": [f"key {row}" for row in range(ROWS)],
    "month": list(range(ROWS)),
    "mean": [None, *(row / 3 for row in range(1, ROWS))],
    "is_known": [row % 2 == 0 for row in range(ROWS)],
    "category": [None] * ROWS,
}
WHOLE = parquet_bytes(table_of(COLUMNS), SOURCE)

PLACES = st.integers(0, len(WHOLE) - 1) | st.integers(len(WHOLE) - 900, len(WHOLE) - 1)


def written(columns: dict[str, Any], **settings: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, **{"compression": "none", "use_dictionary": False, **settings})
    return sink.getvalue()


def test_what_suffice_writes_is_read_up_to_a_number_of_rows() -> None:
    first, rows = first_rows(WHOLE, 7, rows=ROWS)
    assert rows == ROWS
    assert first == [{name: values[row] for name, values in COLUMNS.items()} for row in range(7)]
    assert len(first_rows(WHOLE, 10 * ROWS)[0]) == ROWS
    assert first_rows(parquet_bytes(table_of({"mean": pa.array([], pa.float64())}), SOURCE), 7) == ([], 0)


def test_a_dictionary_that_the_footer_does_not_name_is_refused() -> None:
    """The footer says that values stand there as they are; the page says that they are of a dictionary."""
    plain = written({"a": ["x" * 50] * 3})
    assert first_rows(plain, 7)[1] == 3
    start = pq.read_metadata(io.BytesIO(plain)).row_group(0).column(0).data_page_offset
    reader = ThriftReader(plain, start, len(plain))
    encoding = reader.struct()[5]
    assert isinstance(encoding, dict)
    assert encoding[2] == 0
    header = plain[start : reader.position]
    place = start + header.index(b"\x15\x00", header.index(b"\x2c"))
    changed = plain[: place + 1] + b"\x10" + plain[place + 2 :]  # of the data page: RLE_DICTIONARY
    with pytest.raises(PublicationCorruptError, match="use a dictionary"):
        first_rows(changed, 7)


def test_of_a_million_equal_values_that_take_few_bytes_few_are_decoded() -> None:
    data = written({"mean": pa.nulls(10**6, pa.float64())})
    assert len(data) < 10_000
    assert len(first_rows(data, 3)[0]) == 3


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (b"", "no readable Parquet"),
        (b"PAR1 summaries", "no readable Parquet"),
        (b"<script>alert(1)</script>", "no readable Parquet"),
        (WHOLE[:-9] + WHOLE[-8:], "no readable Parquet"),
        (WHOLE[:-8] + b"\xff\xff\xff\x7fPAR1", "no readable Parquet"),
        (written({"a": [1.5] * 10**6}, compression="zstd"), "compressed"),
        (written({"a": ["x"] * 10**6}, use_dictionary=True), "use a dictionary"),
        (written({"a": [[1, 2]]}), "neither numbers, texts nor"),
        (written({"a": [b"x"]}), "neither numbers, texts nor"),
        (written({f"c{number}": [1] for number in range(65)}), "1 to 64 columns"),
        (written({"a": [1, 2]}), "not the rows that the manifest states"),
        (written({"a": pa.DictionaryArray.from_arrays([0], ["x"])}), "neither numbers, texts nor"),
    ],
    ids=[
        *("empty", "a beginning", "markup", "a lost byte", "a footer of 2 GB", "compressed", "dictionary"),
        *("lists", "bytes", "many columns", "other rows", "an Arrow dictionary"),
    ],
)
def test_anything_else_is_refused_without_a_value_of_it(data: bytes, rule: str) -> None:
    with pytest.raises(PublicationCorruptError, match=rule) as refused:
        first_rows(data, 7, rows=1 if rule.startswith("not the rows") else None)
    assert len(str(refused.value)) < 200
    assert refused.value.__cause__ is None


@pytest.mark.slow
def test_no_byte_of_a_footer_ends_the_process() -> None:
    """pyarrow aborts on a codec that it does not know, which no ``except`` sees: hence another process."""
    footer = len(WHOLE) - 8 - int.from_bytes(WHOLE[-8:-4], "little")
    program = f"""
import sys
from suffice.data_files.first_rows import first_rows
from suffice.errors import PublicationCorruptError
whole = sys.stdin.buffer.read()
for place in range({footer}, len(whole)):
    for other in {{0, 0x58, 0x54, 0x7A, 0x1E, 0xFF, whole[place] ^ 1, whole[place] ^ 2}}:
        try:
            first_rows(whole[:place] + bytes([other]) + whole[place + 1 :], 7, rows={ROWS})
        except PublicationCorruptError:
            pass
print("done")
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], input=WHOLE, capture_output=True, check=False, timeout=120
    )
    assert (ended.returncode, ended.stdout) == (0, b"done\n"), ended.stderr[-500:]


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(PLACES, st.binary(min_size=1, max_size=4)),
        min_size=1,
        max_size=4,
    )
)
def test_changed_bytes_are_read_or_refused_and_nothing_else(changes: list[tuple[int, bytes]]) -> None:
    data = bytearray(WHOLE)
    for place, other in changes:
        data[place : place + len(other)] = other
    try:
        table, _ = first_rows(bytes(data), 7, rows=ROWS)
    except PublicationCorruptError:
        return
    assert len(table) <= 7
