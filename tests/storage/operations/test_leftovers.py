"""What killed runs leave: old probes and half-written files are removed, and nothing that is like them."""

from __future__ import annotations

import datetime as dt
import os
from typing import TYPE_CHECKING

import pytest

from suffice.errors import StoreError
from suffice.pipeline.terms.declaration.documents import document
from suffice.storage.objects.address import read_address
from suffice.storage.objects.local_files import LocalFiles
from suffice.storage.objects.object_store import LEFT_FOR
from suffice.storage.operations.recovery import recover, remove_leftovers
from suffice.storage.operations.verify_store import verify_store
from suffice.storage.releases.release_store import open_store
from support.buckets import s3_server, variables
from support.paid import Books, open_books, pay

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from suffice.storage.objects.object_store import ObjectStore

PROBES = (f"probe-{'0' * 32}", f"publications/probe-{'1' * 32}")
ALIKE = (f"probe-{'0' * 31}", f"other/probe-{'0' * 32}", f"rehearsals/probe-{'0' * 32}")
LATER = LEFT_FOR + dt.timedelta(minutes=1)


@pytest.fixture(params=["local", "moto"])
def objects(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ObjectStore]:
    if request.param == "local":
        yield read_address(str(tmp_path / "store")).objects()
        return
    with s3_server() as (url, _):
        for name, value in variables(url).items():
            monkeypatch.setenv(name, value)
        yield read_address("s3://bucket/pre").objects()


@pytest.fixture
def books(tmp_path: Path) -> Iterator[Books]:
    opened = open_books(tmp_path)
    with opened.ledger:
        yield opened


def test_probes_go_when_they_are_a_day_old_and_what_is_like_them_stays(objects: ObjectStore) -> None:
    for key in (*PROBES, *ALIKE):
        objects.put_new(key, bytes(16))
    objects.put_new(f"probe-{'a' * 32}", bytes(17))
    written = objects.modified(PROBES[0])
    assert written is not None
    assert objects.modified("nothing") is None
    assert remove_leftovers(objects, now=written + LEFT_FOR) == ()
    assert remove_leftovers(objects, now=written + LATER) == PROBES
    assert set(objects.keys("")) == {*ALIKE, f"probe-{'a' * 32}"}
    assert remove_leftovers(objects, now=written + LATER) == ()


def test_half_written_files_go_when_they_are_a_day_old(tmp_path: Path) -> None:
    objects = LocalFiles(tmp_path)
    objects.put_new("a/all/x/manifest.json", b"{}")
    old = (".suffice.json.0123456789abcdef", "a/all/x/.manifest.json.0123456789abcdef")
    kept = (
        "a/.c.parquet.fedcba9876543210",  # young
        ".witness.json.lock",
        ".c.parquet.0123",
        ".c.parquet.0123456789ABCDEF",
        ".git/.c.parquet.0123456789abcdef",
    )
    for path in map(tmp_path.joinpath, (*old, *kept)):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"half")
    before = dt.datetime.now(dt.UTC) - LATER
    for path in map(tmp_path.joinpath, (*old, *kept[1:])):
        os.utime(path, (before.timestamp(), before.timestamp()))
    assert remove_leftovers(objects) == old
    assert objects.keys("") == ["a/all/x/manifest.json"]
    assert all(tmp_path.joinpath(path).exists() for path in kept)


def test_what_a_role_may_not_remove_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = LocalFiles(tmp_path)
    objects.put_new(PROBES[0], bytes(16))

    def refuse(*_: object) -> None:
        raise StoreError("not allowed")

    monkeypatch.setattr(LocalFiles, "delete", refuse)
    assert remove_leftovers(objects, now=dt.datetime.now(dt.UTC) + LATER) == ()


def test_recovery_removes_what_killed_runs_left_and_says_so(books: Books) -> None:
    pay(books, "a")
    root = books.directory / "releases"
    before = (dt.datetime.now(dt.UTC) - LATER).timestamp()
    for key in (*PROBES, f"probe-{'2' * 32}"):
        books.store.objects.put_new(key, bytes(16))
    for key in PROBES:
        os.utime(root / key, (before, before))
    assert verify_store(books.store).leftovers == (f"probe-{'0' * 32}", f"probe-{'2' * 32}", PROBES[1])

    def opened(uri: str) -> object:
        raise AssertionError(uri)  # nothing is unsettled

    report = recover(books.ledger, opened)  # type: ignore[arg-type]
    assert report.leftovers == tuple(f"{books.store.uri}/{key}" for key in PROBES)
    assert str(report).endswith("removed 2 files that killed runs left")
    assert document(report)["leftovers"] == list(report.leftovers)
    assert verify_store(books.store).leftovers == (f"probe-{'2' * 32}",)


@pytest.mark.parametrize("deletes", [True, False])
def test_a_store_that_stands_is_asked_without_anything_left(
    books: Books, monkeypatch: pytest.MonkeyPatch, *, deletes: bool
) -> None:
    """A killed run leaves nothing then, and neither does a role that may not delete."""
    before = books.store.objects.keys("")

    def refuse(*_: object) -> None:
        raise StoreError("not allowed")

    if not deletes:
        monkeypatch.setattr(LocalFiles, "delete", refuse)
    put: list[str] = []
    put_new = LocalFiles.put_new

    def noted(self: LocalFiles, key: str, data: bytes) -> None:
        put.append(key)
        put_new(self, key, data)

    monkeypatch.setattr(LocalFiles, "put_new", noted)
    books.store.check_create_only()
    open_store(books.store.uri, ledger_id=books.ledger.ledger_id)
    assert put == ["suffice.json"] * 2
    assert books.store.objects.keys("") == before


def test_a_store_that_replaces_what_stands_there_is_refused(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = books.store.objects.get("suffice.json", at_most=4096)
    monkeypatch.setattr("os.link", os.replace)
    with pytest.raises(StoreError, match="replaces objects"):
        books.store.check_create_only()
    assert books.store.objects.get("suffice.json", at_most=4096) == identity
