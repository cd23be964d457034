"""An older copy of a ledger beside a fresh store: every store that it ever charged for is asked."""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
import warnings
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from suffice.errors import (
    GuaranteeError,
    LedgerCorruptError,
    StoreError,
    SufficeWarning,
    WrongStoreError,
)
from suffice.storage.ledger.opening import create_ledger
from suffice.storage.objects import local_files
from suffice.storage.objects.local_files import LocalFiles
from suffice.storage.operations import witness
from suffice.storage.operations.markers import refuse_older_ledger
from suffice.storage.operations.witness import open_for_release
from suffice.storage.releases.release_store import open_store
from suffice.storage.releases.store_identity import marker_key, marker_sequence
from support.bucket_server import BucketServer, bucket_server
from support.buckets import variables
from support.paid import Books, copy_database, open_books, pay, restore_database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from suffice.storage.ledger.ledger import Ledger


@pytest.fixture
def books(tmp_path: Path) -> Iterator[Books]:
    opened = open_books(tmp_path)
    with opened.ledger:
        yield opened


@contextlib.contextmanager
def older(books: Books, lacking: str = "b", *, more: int = 0) -> Iterator[Ledger]:
    """Give the ledger as it was before the release `lacking`, after which `more` were made."""
    copy_database(books.database, books.directory / "copy.db")
    pay(books, lacking)
    for number in range(more):
        pay(books, f"more-{number}")
    books.ledger.close()
    restore_database(books.directory / "copy.db", books.database)
    with create_ledger(f"sqlite:///{books.database}") as ledger:
        yield ledger


@contextlib.contextmanager
def no_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", SufficeWarning)
        yield


def test_a_fresh_store_beside_an_older_copy_is_refused_and_not_made(books: Books, tmp_path: Path) -> None:
    pay(books, "a")
    with older(books) as ledger:
        with pytest.raises(LedgerCorruptError, match="older copy") as caught:
            open_for_release(ledger, str(tmp_path / "fresh"), "passengers")
        assert caught.value.exit_status == 5
        assert books.store.uri in str(caught.value)
    assert not (tmp_path / "fresh").exists()


def test_the_whole_ledger_may_use_a_fresh_store_without_a_word(books: Books, tmp_path: Path) -> None:
    pay(books, "a")
    pay(books, "b", until="reserved")
    with no_warning():
        store = open_for_release(books.ledger, str(tmp_path / "fresh"), "passengers")
        pay(Books(directory=tmp_path, ledger=books.ledger, store=store), "c")
        assert open_for_release(books.ledger, books.store.uri, "passengers").store_id == books.store.store_id
    assert [known.uri for known in books.ledger.stores()] == [books.store.uri, store.uri]
    assert books.ledger.verify() == ()


def test_where_no_known_store_answers_a_warning_names_them(books: Books, tmp_path: Path) -> None:
    pay(books, "a")
    with older(books) as ledger:
        (tmp_path / "releases").rename(tmp_path / "elsewhere")
        with pytest.warns(SufficeWarning, match="none of those it charged for before can be asked") as caught:
            open_for_release(ledger, str(tmp_path / "fresh"), "passengers")
        assert books.store.uri in str(caught[0].message)
        assert len(str(caught[0].message)) <= 500
        ledger.retire_store(books.store.store_id, reason="gone for good")
        with no_warning():
            open_for_release(ledger, str(tmp_path / "fresh-2"), "passengers")


def test_a_first_store_needs_no_other(tmp_path: Path) -> None:
    with create_ledger(f"sqlite:///{tmp_path}/new.db") as ledger, no_warning():
        open_for_release(ledger, str(tmp_path / "first"), "passengers")


def test_a_copy_that_went_on_beside_a_store_that_was_away_is_refused_later(
    books: Books, tmp_path: Path
) -> None:
    """Its sequence of that marker is taken by another entry, also with later markers of its own."""
    pay(books, "a")
    with older(books, more=3) as ledger:
        (tmp_path / "releases").rename(tmp_path / "away")
        with pytest.warns(SufficeWarning):
            store = open_for_release(ledger, str(tmp_path / "fresh"), "passengers")
        pay(Books(directory=tmp_path, ledger=ledger, store=store), "forked")
        (tmp_path / "away").rename(tmp_path / "releases")
        for place in ("fresh", "releases", "third"):
            with pytest.raises(LedgerCorruptError, match="two copies of it go on"):
                open_for_release(ledger, str(tmp_path / place), "passengers")


@pytest.mark.slow
def test_stores_that_do_not_answer_are_not_waited_for(
    books: Books, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five stores that hang are asked all at once, and one that answers still counts."""
    pay(books, "a")
    for number in range(5):
        uri = str(tmp_path / f"hanging-{number}")
        store = open_store(uri, ledger_id=books.ledger.ledger_id, create=True)
        pay(Books(directory=tmp_path, ledger=books.ledger, store=store), f"h{number}")
    released, get = threading.Event(), LocalFiles.get

    def slow(files: LocalFiles, key: str, *, at_most: int) -> bytes | None:
        if "hanging" in str(files.root):
            released.wait(30)
        return get(files, key, at_most=at_most)

    with older(books) as ledger:
        monkeypatch.setattr(LocalFiles, "get", slow)
        started = time.monotonic()
        with pytest.raises(LedgerCorruptError):
            open_for_release(ledger, str(tmp_path / "fresh"), "passengers", patience=0.5)
        assert time.monotonic() - started < witness.PATIENCE, "the patience that was given counts"
        released.set()
    assert witness.PATIENCE <= 10


def test_pins_are_held_before_anything_is_made(books: Books, tmp_path: Path) -> None:
    pins = [str(tmp_path / "releases")]
    books.ledger.grant("passengers", epsilon=Fraction(100), stores=pins, reason="pin")
    with pytest.raises(GuaranteeError, match="does not allow the store"):
        open_for_release(books.ledger, str(tmp_path / "other"), "passengers")
    assert not (tmp_path / "other").exists()
    assert open_for_release(books.ledger, pins[0], "passengers").store_id == books.store.store_id


def test_a_store_that_was_stripped_moved_or_copied_is_refused_with_the_command(
    books: Books, tmp_path: Path
) -> None:
    pay(books, "a")
    root = tmp_path / "releases"
    identity = (root / "suffice.json").read_bytes()
    (root / "suffice.json").unlink()
    with pytest.raises(WrongStoreError, match=f"suffice store adopt {root}`"):
        open_for_release(books.ledger, str(root), "passengers")
    with pytest.raises(WrongStoreError, match=f"holds releases.*suffice store adopt {root} "):
        open_store(str(root), ledger_id=books.ledger.ledger_id, create=True)
    assert not (root / "suffice.json").exists()
    (root / "suffice.json").write_bytes(identity)
    shutil.copytree(root, tmp_path / "copy")
    with pytest.raises(WrongStoreError, match=f"suffice store adopt {tmp_path}/copy`"):
        open_for_release(books.ledger, str(tmp_path / "copy"), "passengers")
    root.rename(tmp_path / "moved")
    with pytest.raises(WrongStoreError, match=f"suffice store adopt {tmp_path}/moved"):
        open_for_release(books.ledger, str(tmp_path / "moved"), "passengers")
    with pytest.raises(WrongStoreError, match=f"{books.store.store_id} here, and no store stands there"):
        open_for_release(books.ledger, str(root), "passengers")
    assert not root.exists()
    books.ledger.retire_store(books.store.store_id, reason="moved, and given up")
    with pytest.raises(WrongStoreError, match="retired"):
        open_for_release(books.ledger, str(tmp_path / "moved"), "passengers")
    assert open_for_release(books.ledger, str(root), "passengers").store_id != books.store.store_id


def test_another_identity_at_a_known_place_is_refused(books: Books, tmp_path: Path) -> None:
    pay(books, "a")
    shutil.rmtree(tmp_path / "releases")
    minted = open_store(str(tmp_path / "releases"), ledger_id=books.ledger.ledger_id, create=True)
    with pytest.raises(
        WrongStoreError, match=f"{books.store.store_id} here, and the store {minted.store_id} stands there"
    ):
        open_for_release(books.ledger, minted.uri, "passengers")


def test_keys_of_markers_sort_as_their_sequences() -> None:
    numbers = [0, 1, 999, 1000, 1001, 999_999, 1_000_000, 123_456_789_012, 10**12 - 1]
    keys = [marker_key(number) for number in numbers]
    assert keys == sorted(keys)
    assert [marker_sequence(key) for key in keys] == numbers
    for other in (
        "charges/all/0123456789abcdef/x.parquet",
        "charges/000/000/000",
        "charges/000/000/000/0001",
    ):
        assert marker_sequence(other) is None


def test_something_else_at_a_markers_key_is_told(books: Books) -> None:
    books.store.objects.put_new(marker_key(7), b"{}\n")
    with pytest.raises(StoreError, match=r"charges/000/000/000/007 is no marker"):
        refuse_older_ledger(books.ledger, books.store)
    books.store.objects.put_new(marker_key(6), b'{"format_version":2}')
    with pytest.raises(StoreError, match="upgrade it"):
        refuse_older_ledger(books.ledger, books.store)


class Listed:
    """What a look at a store reads of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directories = self.objects = 0
        walk, get = vars(local_files)["_walk"], LocalFiles.get

        def counted(*arguments: Any) -> Any:
            self.directories += 1
            paths: Iterator[str] = walk(*arguments)
            return paths

        def got(files: LocalFiles, key: str, *, at_most: int) -> bytes | None:
            self.objects += 1
            return get(files, key, at_most=at_most)

        monkeypatch.setattr(local_files, "_walk", counted)
        monkeypatch.setattr(LocalFiles, "get", got)


@pytest.mark.slow
def test_a_look_at_a_store_does_not_grow_with_its_history(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Releases by the dozen change neither what is listed nor what is read."""
    for number in range(3):
        pay(books, f"r{number}")
    listed = Listed(monkeypatch)
    refuse_older_ledger(books.ledger, books.store)
    few = (listed.directories, listed.objects)
    for number in range(20):
        pay(books, f"s{number}")
    listed.directories = listed.objects = 0
    refuse_older_ledger(books.ledger, books.store)
    assert few == (4, 0)  # charges/, and the one directory of each group that the last marker is in
    assert listed.directories <= 5
    assert listed.objects == 0


@pytest.mark.slow
def test_a_bucket_is_listed_from_the_last_known_marker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bucket_server() as server:
        for name, value in variables(server.url).items():
            monkeypatch.setenv(name, value)
        _compare_listings(server, tmp_path)


def _compare_listings(server: BucketServer, tmp_path: Path) -> None:
    plain = open_books(tmp_path)
    with plain.ledger as ledger:
        store = open_store("s3://bucket/releases", ledger_id=ledger.ledger_id, create=True)
        books = Books(directory=tmp_path, ledger=ledger, store=store)
        charge = pay(books, "a")
        server.starts.clear()
        refuse_older_ledger(ledger, store)
        assert server.starts == [f"releases/{marker_key(charge.reserved_sequence)}"]
        copy_database(books.database, tmp_path / "copy.db")
        pay(books, "b")
    restore_database(tmp_path / "copy.db", books.database)
    with create_ledger(f"sqlite:///{books.database}") as ledger, pytest.raises(LedgerCorruptError):
        open_for_release(ledger, str(tmp_path / "fresh"), "passengers")
