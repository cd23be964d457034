"""A witness elsewhere holds the head: an older copy of the ledger, or a fork of it, is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from suffice.errors import LedgerCorruptError, ObjectExistsError, StoreError, UsageError
from suffice.storage.ledger.opening import create_ledger
from suffice.storage.objects.local_files import LocalFiles
from suffice.storage.operations.witness import check_witness, make_witness, move_witness
from support.bucket_server import bucket_server
from support.buckets import variables
from support.paid import Books, copy_database, open_books, pay, restore_database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(params=["file", "s3", "gs", "az"])
def witness(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return where a witness is to stand, on each kind of place."""
    if request.param == "file":
        yield str(tmp_path / "elsewhere" / "ledger.witness")
        return
    with bucket_server() as server:
        for name, value in variables(server.url).items():
            monkeypatch.setenv(name, value)
        yield f"{request.param}://bucket/{tmp_path.name}/ledger.witness"


@pytest.fixture
def books(tmp_path: Path) -> Iterator[Books]:
    opened = open_books(tmp_path)
    with opened.ledger:
        yield opened


def test_a_witness_is_made_checked_and_moved(books: Books, witness: str) -> None:
    with pytest.raises(UsageError, match="suffice ledger witness"):
        check_witness(books.ledger, witness)
    with pytest.raises(UsageError, match="there is no witness"):
        move_witness(books.ledger, witness)
    made = make_witness(books.ledger, witness)
    assert made.head == books.ledger.head()
    assert made.head.sequence == 2
    pay(books, "a")
    assert check_witness(books.ledger, witness) == made
    assert move_witness(books.ledger, witness).head.sequence == 6
    assert move_witness(books.ledger, witness).head.sequence == 6
    pay(books, "b")
    assert make_witness(books.ledger, witness).head == books.ledger.head()


def test_an_older_copy_and_one_that_went_on_are_refused(books: Books, witness: str) -> None:
    copy_database(books.database, books.directory / "copy.db")
    make_witness(books.ledger, witness)
    pay(books, "a", until="reserved")
    move_witness(books.ledger, witness)
    books.ledger.close()
    restore_database(books.directory / "copy.db", books.database)
    with create_ledger(f"sqlite:///{books.database}") as older:
        for number in range(3):  # first too short a chain, then another entry of that sequence
            for act in (check_witness, move_witness, make_witness):
                with pytest.raises(LedgerCorruptError, match="older copy") as caught:
                    act(older, witness)
                assert caught.value.exit_status == 5
            older.grant("passengers", epsilon=older.account("passengers").granted + 1, reason=str(number))


def test_another_ledgers_witness_and_a_damaged_one_are_refused(books: Books, tmp_path: Path) -> None:
    place = tmp_path / "ledger.witness"
    make_witness(books.ledger, str(place))
    with (
        create_ledger(f"sqlite:///{tmp_path}/other.db") as other,
        pytest.raises(UsageError, match="is of ledger"),
    ):
        check_witness(other, str(place))
    whole = place.read_bytes()
    damaged = [
        b"",
        b"{}",
        whole[:-1],
        whole.replace(b'"sequence":2', b'"sequence":0'),
        whole.replace(b":2", b':"2"'),
    ]
    for content in damaged:
        place.write_bytes(content)
        with pytest.raises(StoreError, match="is no witness"):
            check_witness(books.ledger, str(place))


def test_of_runs_that_move_it_at_once_the_furthest_stays(books: Books, tmp_path: Path) -> None:
    place = str(tmp_path / "ledger.witness")
    make_witness(books.ledger, place)

    def move(number: int) -> int:
        with create_ledger(f"sqlite:///{books.database}") as ledger:
            ledger.grant(
                "passengers", epsilon=ledger.account("passengers").granted, sources=[str(number)], reason="x"
            )
            return move_witness(ledger, place).head.sequence

    with ThreadPoolExecutor(4) as pool:
        furthest = max(pool.map(move, range(8)))
    assert check_witness(books.ledger, place).head == books.ledger.head()
    assert furthest == books.ledger.head().sequence


def test_a_witness_that_always_changes_ends_in_an_error(
    books: Books, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = str(tmp_path / "ledger.witness")
    make_witness(books.ledger, place)
    pay(books, "a")

    def lost(_: LocalFiles, key: str, _data: bytes, *, expected: bytes) -> None:
        raise ObjectExistsError(f"{key} is no longer what it was", reason=str(len(expected)))

    monkeypatch.setattr(LocalFiles, "replace", lost)
    with pytest.raises(StoreError, match="changes all the time"):
        move_witness(books.ledger, place)
