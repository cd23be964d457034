"""A store that lost its identity, or was moved, is taken up again by the ledger that paid for it alone."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from suffice.errors import LedgerCorruptError, WrongStoreError
from suffice.storage.ledger.opening import create_ledger
from suffice.storage.operations.reconciliation import adopt_store
from suffice.storage.operations.recovery import recover
from suffice.storage.operations.verify_ledger import compare_with_store
from suffice.storage.operations.witness import open_for_release
from suffice.storage.releases.release_store import open_store
from support.paid import Books, copy_database, open_books, pay, restore_database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def books(tmp_path: Path) -> Iterator[Books]:
    opened = open_books(tmp_path)
    with opened.ledger:
        yield opened


def root(books: Books) -> Path:
    return books.directory / "releases"


def kinds(books: Books) -> list[str]:
    return [entry.kind for entry in books.ledger.entries()]


def test_a_stripped_store_gets_its_identity_back(books: Books) -> None:
    pay(books, "a")
    before = (root(books) / "suffice.json").read_bytes()
    (root(books) / "suffice.json").unlink()
    adoption = adopt_store(books.ledger, str(root(books)))
    assert (adoption.store_id, adoption.uri) == (books.store.store_id, books.store.uri)
    assert (adoption.restored, adoption.moved_from, adoption.markers, adoption.releases) == (True, "", 1, 1)
    assert (root(books) / "suffice.json").read_bytes() == before
    assert "store_adopted" not in kinds(books)  # it is where the ledger has it
    store = open_for_release(books.ledger, str(root(books)), "passengers")
    assert compare_with_store(books.ledger, store).problems == ()
    assert not adopt_store(books.ledger, str(root(books))).restored


def test_a_store_without_releases_is_known_by_its_marker(books: Books) -> None:
    charge = pay(books, "a", until="drawing")
    (root(books) / "suffice.json").unlink()
    assert adopt_store(books.ledger, str(root(books))).markers == 1
    assert recover(books.ledger, open_store).charges[0].charge_id == charge.charge_id


@pytest.mark.parametrize("stripped", [False, True])
def test_a_moved_store_is_recorded_in_the_chain_and_recovered_there(
    books: Books, tmp_path: Path, stripped: bool
) -> None:
    pay(books, "a")
    pay(books, "b", until="staged")
    root(books).rename(tmp_path / "moved")
    if stripped:
        (tmp_path / "moved/suffice.json").unlink()
    adoption = adopt_store(books.ledger, str(tmp_path / "moved"))
    assert (adoption.moved_from, adoption.restored) == (books.store.uri, stripped)
    assert kinds(books)[-1] == "store_adopted"
    assert books.ledger.verify() == ()
    (known,) = books.ledger.stores()
    assert (known.store_id, known.uri) == (books.store.store_id, str(tmp_path / "moved"))
    store = open_for_release(books.ledger, str(tmp_path / "moved"), "passengers")
    pay(Books(directory=tmp_path, ledger=books.ledger, store=store), "c")
    assert recover(books.ledger, open_store).ok
    assert compare_with_store(books.ledger, store).problems == ()


def test_a_retired_store_is_taken_back(books: Books) -> None:
    pay(books, "a")
    books.ledger.retire_store(books.store.store_id, reason="x")
    adopt_store(books.ledger, str(root(books)))
    assert not books.ledger.stores()[0].retired
    open_for_release(books.ledger, str(root(books)), "passengers")


def test_a_copy_is_not_adopted_while_the_store_stands(books: Books, tmp_path: Path) -> None:
    pay(books, "a")
    for name in ("copy", "stripped-copy"):
        shutil.copytree(root(books), tmp_path / name)
    (tmp_path / "stripped-copy/suffice.json").unlink()
    for name in ("copy", "stripped-copy"):
        with pytest.raises(WrongStoreError, match="still stands at"):
            adopt_store(books.ledger, str(tmp_path / name))
    assert "store_adopted" not in kinds(books)
    assert not (tmp_path / "stripped-copy/suffice.json").exists()


def test_nothing_is_adopted_that_does_not_show_whose_it_is(books: Books, tmp_path: Path) -> None:
    pay(books, "a")
    (tmp_path / "empty").mkdir()
    with pytest.raises(WrongStoreError, match=r"nothing at .*empty shows"):
        adopt_store(books.ledger, str(tmp_path / "empty"))
    fresh = open_store(str(tmp_path / "fresh"), ledger_id=books.ledger.ledger_id, create=True)
    with pytest.raises(WrongStoreError, match="never charged for the store"):
        adopt_store(books.ledger, fresh.uri)
    second = Books(directory=tmp_path, ledger=books.ledger, store=fresh)
    charge = pay(second, "b")
    shutil.copytree(second.directory_of(charge), books.directory_of(charge))
    (root(books) / "suffice.json").unlink()
    with pytest.raises(WrongStoreError, match="charges of more than one store"):
        adopt_store(books.ledger, str(root(books)))


def test_another_ledgers_store_is_not_adopted(books: Books, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = open_books(tmp_path / "other")
    with other.ledger:
        pay(other, "a")
        with pytest.raises(WrongStoreError, match=f"belongs to ledger {other.ledger.ledger_id}"):
            adopt_store(books.ledger, other.store.uri)
        (root(other) / "suffice.json").unlink()
        with pytest.raises(WrongStoreError, match="no marker of this ledger"):
            adopt_store(books.ledger, other.store.uri)
        shutil.rmtree(root(other) / "charges")
        with pytest.raises(WrongStoreError, match="nothing at"):
            adopt_store(books.ledger, other.store.uri)
    assert not (root(other) / "suffice.json").exists()


@pytest.mark.parametrize("left", ["marker", "release"])
def test_an_older_copy_of_the_ledger_adopts_nothing(books: Books, left: str) -> None:
    pay(books, "a")
    copy_database(books.database, books.directory / "copy.db")
    pay(books, "b")
    books.ledger.close()
    restore_database(books.directory / "copy.db", books.database)
    (root(books) / "suffice.json").unlink()
    if left == "release":
        shutil.rmtree(root(books) / "charges")
    with (
        create_ledger(f"sqlite:///{books.database}") as ledger,
        pytest.raises(LedgerCorruptError, match="older copy"),
    ):
        adopt_store(ledger, str(root(books)))
    assert not (root(books) / "suffice.json").exists()
