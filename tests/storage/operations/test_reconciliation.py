"""A ledger from a backup beside newer stores: refused, then charged for all that they show, once."""

from __future__ import annotations

import dataclasses
import shutil
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from suffice.errors import (
    AccountMissingError,
    BudgetExceededError,
    ChargeInProgressError,
    LedgerCorruptError,
    StoreError,
    SufficeError,
    UsageError,
)
from suffice.storage.ledger.charge import ChargeState
from suffice.storage.ledger.opening import create_ledger, open_ledger
from suffice.storage.ledger.replay import export_lines, read_export
from suffice.storage.operations.markers import put_marker
from suffice.storage.operations.reconciliation import adopt_store, reconcile
from suffice.storage.operations.verify_ledger import compare_with_store
from suffice.storage.operations.verify_release import verify_release
from suffice.storage.operations.verify_store import verify_store
from suffice.storage.operations.witness import check_witness, make_witness, open_for_release
from suffice.storage.releases.release_store import open_store
from suffice.storage.releases.store_identity import LARGEST_SEQUENCE, marker_key
from support.backups import Backup, back_up, restored
from support.paid import Books, pay, steps

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from suffice.storage.ledger.ledger import Ledger

WHY = "restored from the backup of 03:00"


@pytest.fixture
def books(ledger_url: str, tmp_path: Path) -> Iterator[Books]:
    with create_ledger(ledger_url) as ledger:
        ledger.grant("passengers", epsilon=Fraction(10), reason="first")
        store = open_store(str(tmp_path / "releases"), ledger_id=ledger.ledger_id, create=True)
        yield Books(directory=tmp_path, ledger=ledger, store=store)


@contextmanager
def lost(books: Books, backup: Backup) -> Iterator[Ledger]:
    """Lose the ledger, and give the one that the backup makes."""
    books.ledger.close()
    with open_ledger(restored(backup)) as ledger:
        yield ledger


def assert_whole(ledger: Ledger, books: Books, *, spent: int) -> None:
    assert ledger.verify() == ()
    assert compare_with_store(ledger, books.store).problems == ()
    account = ledger.account("passengers")
    assert account.spent == spent
    assert account.reserved == 0
    export = read_export("\n".join(export_lines(ledger.entries())))
    assert export.verify() == ()
    assert compare_with_store(export, books.store).problems == ()


def assert_refused(ledger: Ledger, books: Books) -> None:
    with pytest.raises(LedgerCorruptError, match="reconcile"):
        open_for_release(ledger, books.store.uri, "passengers")


@pytest.mark.slow
def test_the_drill(books: Books, ledger_url: str) -> None:
    """Refused, reconciled, verified; then releases go on, and no epsilon was won by the restore."""
    pay(books, "a")
    backup = back_up(ledger_url, books.directory)
    published = [pay(books, name) for name in ("b", "c")]
    drawn = pay(books, "d", until="drawing")
    pay(books, "e", until="reserved")  # never drew, left nothing: nobody can tell, and nothing was spent
    with lost(books, backup) as ledger:
        assert ledger.account("passengers").spent == 1
        assert_refused(ledger, books)
        done = reconcile(ledger, reason=WHY)
        assert [(charge.charge_id, charge.state) for charge in done.charges] == [
            *((charge.charge_id, ChargeState.PUBLISHED) for charge in published),
            (drawn.charge_id, ChargeState.ABANDONED),
        ]
        assert [charge.release_id for charge in done.charges[:2]] == [
            release.release_id for release in published
        ]
        # No charge has the number of a lost one: markers of both may stand in the store.
        assert min(charge.reserved_sequence for charge in done.charges) > drawn.reserved_sequence
        assert_whole(ledger, books, spent=4)
        for charge in published:
            where = books.store.release_uri(charge.name, charge.edition, charge.release_id)
            verification = verify_release(where, ledger=ledger)
            assert verification.problems == ()
        assert verify_store(books.store, ledger=ledger).problems == ()
        again = reconcile(ledger, reason=WHY)
        assert (again.charges, again.skipped) == ((), 0)
        assert ledger.add_checkpoint().problems == ()

        store = open_for_release(ledger, books.store.uri, "passengers")
        after = Books(directory=books.directory, ledger=ledger, store=store)
        again_b = pay(after, "b", until="reserved")
        assert (again_b.state, again_b.release_id) == (ChargeState.PUBLISHED, published[0].release_id)
        fresh = [pay(after, name) for name in ("e", "f", "g", "h", "i", "j")]
        assert {release.state for release in fresh} == {ChargeState.PUBLISHED}
        with pytest.raises(BudgetExceededError):
            pay(after, "k")
        assert_whole(ledger, after, spent=10)
        assert ledger.examine().problems == ()


@pytest.mark.audit
def test_a_copy_that_reserved_before_another_drew_counts_it_as_spent(books: Books, ledger_url: str) -> None:
    run = steps(books, "a")
    next(run)
    backup = back_up(ledger_url, books.directory)
    *_, (_, charge) = run
    with lost(books, backup) as ledger:
        with pytest.raises(SufficeError):
            open_for_release(ledger, books.store.uri, "passengers")
        with expired(ledger, backup) as later:
            (done,) = reconcile(later, reason=WHY).charges
            assert (done.charge_id, done.state) == (charge.charge_id, ChargeState.PUBLISHED)
            assert_whole(later, books, spent=1)


@pytest.mark.audit
def test_what_the_lost_ledger_granted_is_granted_again_first(books: Books, ledger_url: str) -> None:
    backup = back_up(ledger_url, books.directory)
    for number in range(10):
        pay(books, f"n{number}")
    books.ledger.grant("passengers", epsilon=Fraction(12), reason="more")
    pay(books, "n10")
    books.ledger.grant("crews", epsilon=Fraction(1), reason="first")
    *_, (_, last) = steps(books, "crew", dataset="crews")
    with lost(books, backup) as ledger:
        entries = ledger.head()
        with pytest.raises(UsageError, match="knows no store"):
            reconcile(ledger, reason=WHY)
        with pytest.raises(AccountMissingError):
            reconcile(ledger, stores=[books.store.uri], reason=WHY)
        ledger.grant("crews", epsilon=Fraction(1), reason="again")
        with pytest.raises(BudgetExceededError, match="grants what was granted before"):
            reconcile(ledger, stores=[books.store.uri], reason=WHY)
        assert ledger.head().sequence == entries.sequence + 1, "all of it, or nothing"
        assert ledger.account("passengers").spent == 0
        assert_refused(ledger, books)
        ledger.grant("passengers", epsilon=Fraction(12), reason="again")
        charges = reconcile(ledger, stores=[books.store.uri], reason=WHY).charges
        assert (len(charges), charges[-1].charge_id) == (12, last.charge_id)
        assert_whole(ledger, books, spent=11)


@pytest.mark.audit
def test_a_store_that_the_copy_never_knew_and_a_witness(
    books: Books, ledger_url: str, tmp_path: Path
) -> None:
    pay(books, "a")
    make_witness(books.ledger, str(tmp_path / "witness"))
    backup = back_up(ledger_url, books.directory)
    second = open_store(str(tmp_path / "second"), ledger_id=books.ledger.ledger_id, create=True)
    charge = pay(dataclasses.replace(books, store=second), "b")
    books.ledger.grant("passengers", epsilon=Fraction(9), reason="less")
    witness = make_witness(books.ledger, str(tmp_path / "witness"))
    with lost(books, backup) as ledger:
        with pytest.raises(LedgerCorruptError, match="reconcile"):
            check_witness(ledger, witness.uri)
        done = reconcile(ledger, stores=[second.uri], witness=witness.uri, reason=WHY)
        assert [each.charge_id for each in done.charges] == [charge.charge_id]
        head = ledger.head()
        assert done.witness is not None
        assert done.witness.head == check_witness(ledger, witness.uri).head == head
        assert head.sequence > witness.head.sequence
        assert_whole(ledger, dataclasses.replace(books, store=second), spent=2)
        (tmp_path / "second").rename(tmp_path / "moved")
        (tmp_path / "moved/suffice.json").unlink()
        adopted = adopt_store(ledger, str(tmp_path / "moved"))
        assert (adopted.markers, adopted.releases) == (1, 1)


@pytest.mark.audit
def test_a_store_that_is_away_stops_it(books: Books, ledger_url: str, tmp_path: Path) -> None:
    pay(books, "a")
    backup = back_up(ledger_url, books.directory)
    pay(books, "b")
    (tmp_path / "releases").rename(tmp_path / "away")
    with lost(books, backup) as ledger:
        head = ledger.head()
        with pytest.raises(StoreError):
            reconcile(ledger, reason=WHY)
        assert ledger.head() == head
        (tmp_path / "away").rename(tmp_path / "releases")
        assert len(reconcile(ledger, reason=WHY).charges) == 1
        assert_whole(ledger, books, spent=2)


@pytest.mark.audit
def test_a_live_run_is_left_alone(books: Books) -> None:
    run = steps(books, "a")
    _, charge = next(run)
    put_marker(books.ledger, books.store, charge)
    with pytest.raises(ChargeInProgressError):
        reconcile(books.ledger, reason=WHY)
    assert books.ledger.account("passengers").reserved == 1


@pytest.mark.audit
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "../../etc"),
        ("micro_epsilon", 1),
        ("micro_epsilon", 0),
        ("store_id", "0" * 32),
        ("window", ""),
        ("window", "2013-13"),
        ("window", "2013-01-01..2013-02-01"),
        ("amendment", 1),
    ],
)
def test_a_marker_that_was_made_up_is_refused(
    books: Books, ledger_url: str, field: str, value: object
) -> None:
    """Whoever can write to the store can have it say anything; the ledger then takes nothing up."""
    from suffice.storage.operations.markers import marker_of

    backup = back_up(ledger_url, books.directory)
    charge = pay(books, "a")
    true = marker_of(books.ledger, charge)
    entry = dataclasses.replace(true.entry, payload={**true.entry.payload, field: value})
    path = books.directory / "releases" / marker_key(true.sequence)
    path.write_bytes(dataclasses.replace(true, entry=entry).encode())
    with lost(books, backup) as ledger:
        head = ledger.head()
        with pytest.raises(LedgerCorruptError, match="do not agree"):
            reconcile(ledger, stores=[books.store.uri], reason=WHY)
        assert ledger.head() == head


@pytest.mark.audit
def test_a_store_that_was_moved_after_the_copy_was_made(
    books: Books, ledger_url: str, tmp_path: Path
) -> None:
    """The copy can neither ask it where it was, nor adopt what has charges that it lacks."""
    pay(books, "a")
    backup = back_up(ledger_url, books.directory)
    pay(books, "b")
    moved = tmp_path / "moved"
    (tmp_path / "releases").rename(moved)
    adopt_store(books.ledger, str(moved))
    store = open_store(str(moved), ledger_id=books.ledger.ledger_id)
    here = dataclasses.replace(books, store=store)
    pay(here, "c")
    with lost(books, backup) as ledger:
        with pytest.raises(LedgerCorruptError, match="reconcile"):
            adopt_store(ledger, str(moved))
        with pytest.raises(StoreError, match="--store NEW_PLACE"):
            reconcile(ledger, reason=WHY)
        (tmp_path / "releases").mkdir()
        shutil.copy(moved / "suffice.json", tmp_path / "releases")
        with pytest.raises(StoreError, match="is a copy of it"):
            reconcile(ledger, stores=[str(moved)], reason=WHY)
        shutil.rmtree(tmp_path / "releases")
        done = reconcile(ledger, stores=[str(moved)], reason=WHY)
        assert [charge.name for charge in done.charges] == ["b", "c"]
        assert [known.uri for known in ledger.stores()] == [store.uri]
        assert reconcile(ledger, reason=WHY).charges == ()
        assert open_for_release(ledger, str(moved), "passengers").store_id == store.store_id
        assert_whole(ledger, here, spent=3)


def test_a_number_that_nobody_lost_is_refused(books: Books) -> None:
    """A marker that was put there may name any number, and each would be an entry."""
    from suffice.storage.operations.markers import marker_of

    true = marker_of(books.ledger, pay(books, "a"))
    entry = dataclasses.replace(true.entry, sequence=LARGEST_SEQUENCE)
    path = books.directory / "releases" / marker_key(entry.sequence)
    path.parent.mkdir(parents=True)
    path.write_bytes(dataclasses.replace(true, entry=entry).encode())
    head = books.ledger.head()
    with pytest.raises(LedgerCorruptError, match="so many are not lost"):
        reconcile(books.ledger, reason=WHY)
    assert books.ledger.head() == head


@contextmanager
def expired(ledger: Ledger, backup: Backup) -> Iterator[Ledger]:
    """Give the ledger as one for whom every lease has passed."""
    from datetime import timedelta

    now = ledger.now() + timedelta(hours=1)
    with open_ledger(backup.restored_url, clock=lambda: now) as later:
        yield later
