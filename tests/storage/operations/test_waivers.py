"""A charge that is given back: nobody draws for it any more, in any copy of the ledger."""

from __future__ import annotations

import dataclasses
from contextlib import contextmanager
from datetime import timedelta
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from suffice.errors import LedgerCorruptError, StageFailedError, StoreError
from suffice.storage.ledger.charge import ChargeState
from suffice.storage.ledger.ledger import utc_now
from suffice.storage.ledger.opening import create_ledger, open_ledger
from suffice.storage.objects.local_files import LocalFiles
from suffice.storage.operations.markers import put_marker, read_marker, standing_marker, waive
from suffice.storage.operations.reconciliation import adopt_store, reconcile
from suffice.storage.operations.recovery import Action, Recovered, recover
from suffice.storage.operations.settling import give_back, settle
from suffice.storage.operations.verify_ledger import compare_with_store
from suffice.storage.operations.witness import open_for_release
from suffice.storage.releases.release_store import open_store
from suffice.storage.releases.spool import Spool, open_spool
from suffice.storage.releases.store_identity import marker_key
from support.backups import back_up
from support.paid import Books, pay, steps

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from suffice.storage.ledger.charge import Charge
    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.operations.markers import Marker


@pytest.fixture
def books(ledger_url: str, tmp_path: Path) -> Iterator[Books]:
    with create_ledger(ledger_url) as ledger:
        ledger.grant("passengers", epsilon=Fraction(10), reason="first")
        store = open_store(str(tmp_path / "releases"), ledger_id=ledger.ledger_id, create=True)
        yield Books(directory=tmp_path, ledger=ledger, store=store)


@contextmanager
def copied(books: Books, ledger_url: str) -> Iterator[Books]:
    """Copy the ledger as it is; on the copy every lease has passed."""
    backup = back_up(ledger_url, books.directory)
    url = f"sqlite:///{backup.copy}" if ledger_url.startswith("sqlite") else backup.restored_url
    with open_ledger(url, clock=lambda: utc_now() + timedelta(hours=1)) as ledger:
        yield dataclasses.replace(books, ledger=ledger)


def later(url: str) -> Ledger:
    """Open a ledger an hour later."""
    return open_ledger(url, clock=lambda: utc_now() + timedelta(hours=1))


def recovered(ledger: Ledger, spool: Spool | None = None) -> Recovered:
    (charge,) = recover(ledger, partial(open_store, ledger_id=ledger.ledger_id), spool=spool).charges
    return charge


def standing(books: Books, charge: Charge) -> Marker | None:
    return read_marker(books.store.objects, books.store.uri, marker_key(charge.reserved_sequence))


def balance(ledger: Ledger) -> Any:
    assert ledger.verify() == ()
    account = ledger.account("passengers")
    return account.spent, account.reserved


def test_a_copy_that_gives_a_charge_back_stops_the_original(books: Books, ledger_url: str) -> None:
    """Both have the charge as reserved. Without a waiver both drew, and each ledger paid for one release."""
    run = steps(books, "a")
    _, charge = next(run)
    with copied(books, ledger_url) as copy:
        assert recovered(copy.ledger).returned == charge.loss.epsilon
        with pytest.raises(LedgerCorruptError, match="two copies of it go on"):
            next(run)
        open_for_release(copy.ledger, copy.store.uri, "passengers")
        assert pay(copy, "a").state is ChargeState.PUBLISHED
        assert balance(copy.ledger) == (1, 0)
        assert compare_with_store(copy.ledger, copy.store).problems == ()
        with pytest.raises(LedgerCorruptError, match="older copy"):  # it lacks the copy's second attempt
            open_for_release(books.ledger, books.store.uri, "passengers")


def test_an_original_that_gives_its_charge_back_stops_the_copy(books: Books, ledger_url: str) -> None:
    charge = pay(books, "a", until="reserved")
    with copied(books, ledger_url) as copy:
        error = give_back(
            books.ledger, books.store, open_spool(books.directory / "s"), charge, "reading", OSError()
        )
        assert "its epsilon was returned" in str(error)
        taken = copy.ledger.take_over(charge)
        assert standing_marker(copy.ledger, copy.store, taken) == standing(books, charge)
        with pytest.raises(LedgerCorruptError, match="two copies of it go on"):
            put_marker(copy.ledger, copy.store, taken)
        copy.ledger.let_go(taken)
        assert recovered(copy.ledger).returned == charge.loss.epsilon  # by whomever it was waived


def test_of_two_runs_of_one_charge_one_draws(books: Books, ledger_url: str) -> None:
    """The copy goes on with the charge first; the spool has the original's entry, and knows nothing of it."""
    spool = open_spool(books.directory / "spool")
    charge = pay(books, "a", until="reserved")
    spool.reserve(charge, {"n.parquet": 10})
    books.ledger.mark(charge)
    with copied(books, ledger_url) as copy:
        taken = copy.ledger.take_over(charge)
        put_marker(copy.ledger, copy.store, taken)
        with pytest.raises(LedgerCorruptError):
            put_marker(books.ledger, books.store, charge)
        with pytest.raises(StoreError, match="another run"):
            waive(books.ledger, books.store, charge)
        copy.ledger.enter_drawing(taken)
    with later(ledger_url) as ledger:
        ended = recovered(ledger, spool)
        assert (ended.spent, ended.returned) == (charge.loss.epsilon, Fraction(0))


def test_a_run_gives_back_what_it_marked_and_did_not_draw(books: Books) -> None:
    charge = pay(books, "a", until="reserved")
    put_marker(books.ledger, books.store, charge)
    spool = open_spool(books.directory / "spool")
    give_back(books.ledger, books.store, spool, charge, "preflight", StoreError("the witness is away"))
    assert balance(books.ledger) == (0, 0)
    assert compare_with_store(books.ledger, books.store).problems == ()


def test_what_is_waived_and_not_given_back_yet_is_given_back_by_recovery(
    books: Books, ledger_url: str
) -> None:
    charge = pay(books, "a", until="reserved")
    waive(books.ledger, books.store, charge)
    waive(books.ledger, books.store, charge)
    with later(ledger_url) as ledger:
        assert recovered(ledger).returned == charge.loss.epsilon
        assert balance(ledger) == (0, 0)


def test_a_run_that_wakes_up_after_a_recovery_puts_no_marker(books: Books, ledger_url: str) -> None:
    """It had noted that it would: its late marker would else stand for good, and tell of a draw."""
    charge = pay(books, "a", until="reserved")
    books.ledger.mark(charge)
    with later(ledger_url) as ledger:
        assert recovered(ledger).action is Action.ABANDONED
    with pytest.raises(StoreError):
        books.store.objects.put_new(marker_key(charge.reserved_sequence), b"late")
    waiver = standing(books, charge)
    assert waiver is not None
    assert waiver.waives


def test_epsilon_stays_reserved_while_its_store_is_away(
    books: Books, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    charge = pay(books, "a", until="reserved")
    spool = open_spool(books.directory / "spool")

    def away(*_: object) -> None:
        message = "the store is away"
        raise StoreError(message)

    with monkeypatch.context() as patched:
        patched.setattr(LocalFiles, "put_new", away)
        error = give_back(books.ledger, books.store, spool, charge, "reading", OSError())
    assert isinstance(error, StageFailedError)
    assert "its epsilon stays reserved until the same command again" in str(error)
    assert balance(books.ledger) == (0, 1)
    with later(ledger_url) as ledger:
        assert settle(ledger, books.store, charge).counts_as == "returned"


def test_a_waiver_beside_a_release_is_named(books: Books) -> None:
    charge = pay(books, "a")
    marker = standing(books, charge)
    assert marker is not None
    path = books.directory / "releases" / marker_key(charge.reserved_sequence)
    path.write_bytes(dataclasses.replace(marker, run=None).encode())
    (problem,) = compare_with_store(books.ledger, books.store).problems
    assert "another copy of the ledger has the same charge, and returned its loss" in problem


@pytest.mark.parametrize("run", ["", "0" * 15, "0" * 17, "G" * 16, 7, True])
def test_a_marker_names_a_run_or_none(books: Books, run: object) -> None:
    charge = pay(books, "a")
    marker = standing(books, charge)
    assert marker is not None
    path = books.directory / "releases" / marker_key(charge.reserved_sequence)
    path.write_bytes(dataclasses.replace(marker, run=run).encode())  # type: ignore[arg-type]
    assert standing(books, charge) is None


def test_a_waiver_of_a_lost_charge_stops_nothing_for_long(books: Books, ledger_url: str) -> None:
    """The restored copy comes to the same number again: that charge is returned, and the next one draws."""
    pay(books, "a")
    with copied(books, ledger_url) as copy:
        lost = pay(books, "b", until="reserved")
        waive(books.ledger, books.store, lost)
        books.ledger.abandon(lost, reason="its data cannot be read")
        books.ledger.close()
        assert compare_with_store(copy.ledger, copy.store).problems == ()
        assert adopt_store(copy.ledger, copy.store.uri).markers == 1
        assert reconcile(copy.ledger, reason="restored").charges == ()
        open_for_release(copy.ledger, copy.store.uri, "passengers")
        again = pay(copy, "b", until="reserved")
        assert again.reserved_sequence == lost.reserved_sequence
        with pytest.raises(LedgerCorruptError):
            put_marker(copy.ledger, copy.store, again)
        waive(copy.ledger, copy.store, again)
        copy.ledger.abandon(again, reason="its number is taken")
        assert pay(copy, "b").state is ChargeState.PUBLISHED
        assert balance(copy.ledger) == (2, 0)
        assert compare_with_store(copy.ledger, copy.store).problems == ()
