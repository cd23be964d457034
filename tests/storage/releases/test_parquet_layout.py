"""The layout of data files: what claims to hold more than its bytes is refused before it is decoded."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.errors import ReleaseCorruptError
from suffice.storage.releases import release_parquet
from suffice.storage.releases.parquet_layout import Sizes, row_groups
from suffice.storage.releases.release_parquet import encode_statistic
from suffice.storage.releases.statistic_reading import decode_statistic
from support.releases import make_plan, some_values

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.spec.plan import Plan

MANY = make_plan(
    groups={"origin": ["EWR", "Zürich"], "hour": {"range": ["1", "30000"]}},
    statistics={"c": {"family": "bernoulli", "column": "c"}},
)


def encoded(plan: Plan) -> bytes:
    (statistic,) = plan.statistics
    return encode_statistic(statistic, some_values(plan)[statistic.name])


def checked(data: bytes, plan: Plan = MANY) -> None:
    row_groups(data, plan.statistics[0])


def rewritten(data: bytes, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(data)), sink, **{**release_parquet._WRITER, **options})
    return sink.getvalue()


@pytest.mark.parametrize("groups", [None, {"a": ["x"]}, {"a": ["é", "€uro"], "b": {"range": ["-3", "9"]}}])
def test_the_size_of_what_we_write_lies_within_the_bounds(groups: dict[str, Any] | None) -> None:
    for plan in (make_plan(groups=groups), make_plan(groups=groups, max_total_rows="1000000000000000")):
        sizes = Sizes.of(plan.groups)
        for statistic in plan.statistics:
            data = encode_statistic(statistic, some_values(plan)[statistic.name])
            least, greatest = sizes.of_file(statistic)
            assert least < len(data) <= greatest < least + 3000 + 64 * sizes.columns(statistic)["value"]
            row_groups(data, statistic)


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "zstd"},
        {"compression": "snappy"},
        {"use_dictionary": True},
        {"use_dictionary": ["origin"]},
        {"column_encoding": {"value": "DELTA_BINARY_PACKED"}},
        {"column_encoding": {"estimate": "BYTE_STREAM_SPLIT"}},
        {"data_page_version": "2.0"},
        {"write_page_checksum": True},
        {"row_group_size": 1000},
        {"row_group_size": 119_999},
        {"data_page_size": 1000, "write_batch_size": 10},
        {"store_schema": True},
        {"write_statistics": True, "write_page_index": True},
    ],
)
def test_a_file_of_another_layout_is_refused(options: dict[str, Any]) -> None:
    data = encoded(MANY)
    checked(rewritten(data))
    with pytest.raises(ReleaseCorruptError, match="the file of c is corrupt"):
        checked(rewritten(data, **options))


def test_bytes_that_belong_to_no_column_are_refused() -> None:
    data = encoded(MANY)
    footer = int.from_bytes(data[-8:-4], "little")
    for changed in (
        data[: -footer - 8] + b"x" + data[-footer - 8 :],
        data[:4] + b"x" + data[4:],
        data[:-8] + (2**31 - 1).to_bytes(4, "little") + data[-4:],
        data[:-8] + (0).to_bytes(4, "little") + data[-4:],
        data[:-8] + (footer + 1000).to_bytes(4, "little") + data[-4:],
        b"PARE" + data[4:],
        data[:-4] + b"PARE",
    ):
        with pytest.raises(ReleaseCorruptError):
            checked(changed)


@pytest.mark.parametrize(
    "nested", [b"\x19", b"\x1c", b"\x29\x19"], ids=["lists", "structures", "several lists"]
)
def test_a_footer_that_is_nested_without_end_is_refused(nested: bytes) -> None:
    """Each byte opens another list or structure: more of them than Python has frames."""
    data = encoded(MANY)
    footer = int.from_bytes(data[-8:-4], "little")
    hostile = (b"\x19" + nested * 2000)[:1900]
    with pytest.raises(ReleaseCorruptError):
        checked(data[: -footer - 8] + hostile + len(hostile).to_bytes(4, "little") + b"PAR1")


def test_no_changed_bit_of_a_page_header_changes_what_is_read() -> None:
    """Most are refused; the width of an integer, say, makes no difference."""
    data = encoded(MANY)
    column = pq.read_metadata(io.BytesIO(data)).row_group(0).column(1)
    start, missed = column.data_page_offset, []
    values = decode_statistic(data, MANY.statistics[0])
    for position in range(start, start + 20):
        for bit in range(8):
            changed = bytearray(data)
            changed[position] ^= 1 << bit
            try:
                decoded = decode_statistic(bytes(changed), MANY.statistics[0])
            except ReleaseCorruptError:
                continue
            assert np.array_equal(decoded, values)
            missed.append(position - start)
    assert len(missed) < 30


HOSTILE = """
import io, resource, sys, time
import pyarrow as pa, pyarrow.parquet as pq
from suffice.errors import ReleaseCorruptError
from suffice.storage.releases.statistic_reading import decode_statistic
from support.releases import make_plan
plan = make_plan(
    groups={"origin": ["x" * 60_000, "y"], "hour": {"range": ["1", "5"]}},
    statistics={"c": {"family": "bernoulli", "column": "c"}},
)
data = open(sys.argv[1], "rb").read()
before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
try:
    decode_statistic(data, plan.statistics[0])
except ReleaseCorruptError as error:
    print(error)
peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
print(f"{peak} {time.process_time() - started:.3f}")
"""


@pytest.mark.slow
def test_a_small_file_that_would_expand_takes_no_memory(tmp_path: Path) -> None:
    """A dictionary of one long text and a run of indexes, 20,000 rows of it: 1.2 GB from a small file."""
    rows = 20_000
    table = pa.table(
        {
            "origin": pa.array(["x" * 60_000]).take(pa.array(np.zeros(rows, dtype=np.int64))),
            "hour": pa.array(np.ones(rows, dtype=np.int64)),
            "component": pa.array(["true"] * rows),
            "value": pa.array(np.ones(rows, dtype=np.int64)),
            "estimate": pa.array(np.ones(rows)),
        }
    )
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", use_dictionary=True)
    # Padded, so that its size alone does not give it away.
    path = tmp_path / "hostile.parquet"
    padded = make_plan(
        groups={"origin": ["x" * 60_000, "y"], "hour": {"range": ["1", "5"]}},
        statistics={"c": {"family": "bernoulli", "column": "c"}},
    )
    least, _ = Sizes.of(padded.groups).of_file(padded.statistics[0])
    hostile = sink.getvalue()
    path.write_bytes(hostile[:4] + bytes(max(0, least + 50 - len(hostile))) + hostile[4:])
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(HOSTILE), str(path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    message, figures = run.stdout.splitlines()
    assert "is corrupt" in message
    peak, seconds = map(float, figures.split())
    assert peak < 50
    assert seconds < 2
