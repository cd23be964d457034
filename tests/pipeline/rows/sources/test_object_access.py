"""Objects as files: pinned by their entity tag, read by ranges, in stores that speak differently."""

from __future__ import annotations

import io
import random
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from obstore import put

from suffice.buckets import connect
from suffice.errors import UsageError
from suffice.pipeline.rows.sources import file_access as object_access
from suffice.pipeline.rows.sources.file_access import list_objects, opened, status
from support.bucket_server import bucket_server
from support.buckets import BUCKET, SECRET, variables

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = random.Random(7).randbytes(100_000)  # noqa: S311 - no noise


@pytest.fixture(params=["s3", "gs", "az"])
def bucket(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with bucket_server() as server:
        for name, value in variables(server.url).items():
            monkeypatch.setenv(name, value)
        yield f"{request.param}://{BUCKET}"


def write(bucket: str, key: str, data: bytes) -> None:
    put(connect(bucket, retries=0), key, data, use_multipart=False)


def test_objects_are_listed_as_they_are_looked_at(bucket: str) -> None:
    for key in ("a/b.parquet", "a/a.parquet", "a/_x.parquet", "a/n.txt", "a/c/d.parquet", "ab/e.parquet"):
        write(bucket, key, DATA[: len(key)])
    expected = {
        "a": ["a/a.parquet", "a/b.parquet"],
        "a/b.parquet": ["a/b.parquet"],
        "a/**/*.parquet": ["a/_x.parquet", "a/a.parquet", "a/b.parquet", "a/c/d.parquet"],
        "a/[b]*": ["a/b.parquet"],
    }
    for address, keys in expected.items():
        found = list_objects(f"{bucket}/{address}")
        assert found == [status(f"{bucket}/{key}") for key in keys], address
    with pytest.raises(UsageError) as caught:
        list_objects(f"{bucket}/absent")
    assert SECRET not in str(caught.value)
    assert caught.value.__suppress_context__


def test_an_object_is_read_like_a_file_and_only_as_it_was_pinned(bucket: str) -> None:
    write(bucket, "a.parquet", DATA)
    pinned = status(f"{bucket}/a.parquet")
    plain = io.BytesIO(DATA)
    with opened(pinned) as file:
        assert isinstance(file, object_access.ObjectFile)
        for offset, whence, size in ((0, 0, 10), (-8, 2, 8), (-8, 1, 100), (50_000, 0, 999), (10**6, 0, 5)):
            for each in (file, plain):
                each.seek(offset, whence)
            assert file.read(size) == plain.read(size)
            assert file.tell() == plain.tell()
        file.fetch([(100, 200), (90_000, 90_010)])
        write(bucket, "a.parquet", DATA[::-1])
        file.seek(150)
        assert file.read(50) == DATA[150:200], "it was there before"
        for action in (lambda: file.fetch([(0, 10)]), lambda: file.read(10)):
            with pytest.raises(OSError, match=r"^the bucket or object cannot be read$") as caught:
                action()
            assert caught.value.__cause__ is None
    assert status(f"{bucket}/a.parquet") != pinned


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 1 << 25), st.integers(1, 1 << 24)), max_size=8))
def test_requests_cover_the_ranges_and_are_few(starts: list[tuple[int, int]]) -> None:
    ranges = [(start, start + length) for start, length in starts]
    requests = object_access._requests(ranges)
    for start, end in ranges:
        left = start
        for first, last in requests:
            if first <= left < last:
                left = last
        assert left >= end
    assert all(0 < end - start <= object_access._LARGEST_REQUEST for start, end in requests)
    for (_, end), (start, _) in pairwise(requests):
        assert start == end or start - end > object_access._NEAR_BYTES
