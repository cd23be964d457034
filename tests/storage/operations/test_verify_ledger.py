"""The ledger held against the store: every way in which they can disagree has its sentence."""

from __future__ import annotations

import shutil
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from suffice.errors import LedgerCorruptError
from suffice.storage.ledger.ledger import utc_now
from suffice.storage.ledger.opening import create_ledger, open_ledger
from suffice.storage.ledger.replay import export_lines, read_export
from suffice.storage.operations.markers import put_marker, refuse_older_ledger, standing_marker
from suffice.storage.operations.recovery import recover
from suffice.storage.operations.settling import settle
from suffice.storage.operations.verify_ledger import compare_with_store
from suffice.storage.releases.manifest import is_tombstone
from suffice.storage.releases.release_store import open_store
from support.paid import Books, copy_database, open_books, pay, restore_database, steps
from support.releases import flip_bit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def books(tmp_path: Path) -> Iterator[Books]:
    opened = open_books(tmp_path)
    with opened.ledger:
        yield opened


def problems(books: Books) -> tuple[str, ...]:
    """Compare, and see that an export of the same ledger says the same."""
    assert books.ledger.verify() == ()
    comparison = compare_with_store(books.ledger, books.store)
    export = read_export("\n".join(export_lines(books.ledger.entries())))
    assert export.verify() == ()
    assert compare_with_store(export, books.store) == comparison
    return comparison.problems


def abandon(books: Books, name: str, *, until: str, tombstone: bool = True) -> None:
    charge = pay(books, name, until=until)
    if charge.drew and tombstone:
        books.store.put_tombstone(charge.name, charge.window, charge.release_id)
    books.ledger.abandon(charge, reason="tests")


def test_whatever_a_run_leaves_behind_agrees(books: Books) -> None:
    for step in ("reserved", "drawing", "written", "staged", "put", "published"):
        pay(books, f"until-{step}", until=step)
    abandon(books, "returned", until="reserved")
    abandon(books, "spent", until="drawing")
    abandon(books, "spent-with-data", until="written")
    fenced = pay(books, "staged-and-fenced", until="staged")
    books.store.put_tombstone("staged-and-fenced", "all", fenced.release_id)
    (books.directory / "releases" / "notes.txt").write_text("not a release")
    assert problems(books) == ()
    comparison = compare_with_store(books.ledger, books.store)
    assert (comparison.compared, comparison.elsewhere) == (10, 0)
    refuse_older_ledger(books.ledger, books.store)


def test_a_published_charge_without_its_release_is_named(books: Books) -> None:
    shutil.rmtree(books.directory_of(pay(books, "a")))
    charge = pay(books, "b")
    books.directory_of(charge).joinpath("manifest.json").unlink()
    books.store.put_tombstone(charge.name, charge.window, charge.release_id)
    first, second = problems(books)
    assert first.startswith("a/all/")
    assert "no manifest stands there" in first
    assert "its charge is published, and a tombstone stands there" in second
    refuse_older_ledger(books.ledger, books.store)


@pytest.mark.parametrize("step", ["put", "published"])
def test_a_manifest_that_is_not_the_staged_one_is_named(books: Books, step: str) -> None:
    path = books.directory_of(pay(books, "a", until=step)) / "manifest.json"
    path.write_bytes(flip_bit(path.read_bytes(), 4242))
    (sentence,) = problems(books)
    assert "the manifest there is not the one that was staged" in sentence


def test_a_release_of_an_abandoned_charge_and_a_draw_without_tombstone_are_named(books: Books) -> None:
    abandon(books, "a", until="written", tombstone=False)
    charge = pay(books, "b", until="staged")
    books.ledger.abandon(charge, reason="tests")
    assert charge.manifest is not None
    books.store.put_manifest("b", "all", charge.release_id, charge.manifest)
    first, second = problems(books)
    assert "but there is no tombstone" in first
    assert "although its charge was abandoned" in second


def test_releases_of_others_and_copies_within_the_store_are_named(books: Books, tmp_path: Path) -> None:
    other = open_books(_new(tmp_path / "other"))
    with other.ledger:
        foreign = pay(other, "foreign")
        shutil.copytree(other.directory_of(foreign), books.directory_of(foreign))
    charge = pay(books, "a")
    shutil.copytree(
        books.directory_of(charge), books.directory / "releases" / "b" / "all" / charge.release_id
    )
    told = problems(books)
    assert len(told) == 2
    assert f"belongs to ledger {foreign.ledger_id}" in told[1]
    assert told[0] == f"b/all/{charge.release_id}: its charge is for a"
    refuse_older_ledger(books.ledger, books.store)


def test_charges_of_another_store_are_counted_and_not_compared(books: Books, tmp_path: Path) -> None:
    moved = pay(books, "a")
    second = open_store(str(tmp_path / "second"), ledger_id=books.ledger.ledger_id, create=True)
    elsewhere = Books(directory=tmp_path, ledger=books.ledger, store=second)
    pay(elsewhere, "b")
    comparison = compare_with_store(books.ledger, second)
    assert (comparison.problems, comparison.compared, comparison.elsewhere) == ((), 1, 1)
    shutil.copytree(books.directory_of(moved), elsewhere.directory_of(moved))
    (sentence,) = compare_with_store(books.ledger, second).problems
    assert sentence.startswith(
        f"a/all/{moved.release_id}: it was charged for the store {books.store.store_id} "
        f"at {books.store.uri}, and this is {second.store_id} at {second.uri}: "
    )
    assert f"`suffice store adopt {second.uri}`" in sentence


def test_another_ledgers_store_is_named(books: Books, tmp_path: Path) -> None:
    other = open_books(_new(tmp_path / "other"))
    with other.ledger:
        (sentence,) = compare_with_store(books.ledger, other.store).problems
    assert sentence.startswith(f"the store belongs to ledger {other.ledger.ledger_id}")


@pytest.mark.parametrize(
    ("lost_after", "left_at", "sentence"),
    [
        (None, "written", "data files stand there, and the ledger has no charge for them"),
        (None, "put", "it names entry 4, the ledger ends at 2"),
        (None, "published", "it names entry 4, the ledger ends at 2"),
        ("reserved", "written", "its charge never drew"),
        ("reserved", "published", "its charge never drew"),
        ("drawing", "published", "a release stands there, though its charge is drawing"),
    ],
)
def test_an_older_copy_is_named_and_refused_at_the_start(
    tmp_path: Path, lost_after: str | None, left_at: str, sentence: str
) -> None:
    """The copy is of the moment after `lost_after`; the release went on until `left_at`."""
    books = open_books(tmp_path)
    copy = tmp_path / "copy.db"
    copy_database(books.database, copy)
    for step, _charge in steps(books, "a"):
        if step == lost_after:
            copy_database(books.database, copy)
        if step == left_at:
            break
    refuse_older_ledger(books.ledger, books.store)
    books.ledger.close()
    restore_database(copy, books.database)
    with create_ledger(f"sqlite:///{books.database}") as older:
        again = Books(directory=tmp_path, ledger=older, store=books.store)
        told = problems(again)
        assert any(sentence in problem for problem in told), told
        with pytest.raises(LedgerCorruptError, match="older copy") as caught:
            refuse_older_ledger(older, books.store)
        assert caught.value.exit_status == 5
        assert "restore the newest copy" in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("lost_after", ["staged", "put"])
def test_a_copy_that_lacks_no_draw_is_no_older_copy(tmp_path: Path, lost_after: str) -> None:
    books = open_books(tmp_path)
    for step, _charge in steps(books, "a"):
        if step == lost_after:
            copy_database(books.database, tmp_path / "copy.db")
    books.ledger.close()
    restore_database(tmp_path / "copy.db", books.database)
    with create_ledger(f"sqlite:///{books.database}") as older:
        refuse_older_ledger(older, books.store)
        assert problems(Books(directory=tmp_path, ledger=older, store=books.store)) == ()


def test_a_ledger_that_went_on_from_an_older_copy_is_named(tmp_path: Path) -> None:
    """Its chain is as long as the releases say, but it is another one."""
    books = open_books(tmp_path)
    copy_database(books.database, tmp_path / "copy.db")
    pay(books, "a")
    books.ledger.close()
    restore_database(tmp_path / "copy.db", books.database)
    with create_ledger(f"sqlite:///{books.database}") as forked:
        again = Books(directory=tmp_path, ledger=forked, store=books.store)
        with pytest.raises(LedgerCorruptError, match="two copies of it go on"):
            pay(again, "b")
        assert forked.account("passengers").spent == 0
        forked.grant("passengers", epsilon=Fraction(200), reason="more")
        release, marker = problems(again)
        assert "its entry 4 is not the one that the ledger has" in release
        assert "charges/000/000/000/003: its entry is not the one that the ledger has" in marker
        with pytest.raises(LedgerCorruptError):
            refuse_older_ledger(forked, books.store)


def test_a_tombstone_that_the_ledger_does_not_know_is_named_and_refused(tmp_path: Path) -> None:
    books = open_books(tmp_path)
    copy_database(books.database, tmp_path / "copy.db")
    abandon(books, "a", until="drawing")
    books.ledger.close()
    restore_database(tmp_path / "copy.db", books.database)
    with create_ledger(f"sqlite:///{books.database}") as older:
        tombstone, marker = problems(Books(directory=tmp_path, ledger=older, store=books.store))
        assert "a tombstone stands there" in tombstone
        assert "it names entry 3, the ledger ends at 2" in marker
        with pytest.raises(LedgerCorruptError):
            refuse_older_ledger(older, books.store)


def test_a_chain_that_breaks_its_rules_is_not_compared(books: Books) -> None:
    pay(books, "a")
    export = read_export("\n".join(list(export_lines(books.ledger.entries()))[1:]))
    comparison = compare_with_store(export, books.store)
    assert comparison.compared == 0
    assert "breaks a rule" in comparison.problems[0]


def test_a_data_file_or_a_marker_that_is_gone_is_named(books: Books) -> None:
    charge = pay(books, "a")
    statistic = next(books.directory_of(charge).glob("*.parquet"))
    statistic.unlink()
    marker = books.directory / "releases" / "charges/000/000/000/003"
    marker.unlink()
    file, drawn = problems(books)
    assert file == f"a/all/{charge.release_id}: its data file {statistic.name} is not there"
    assert drawn == "charges/000/000/000/003: a was drawn, and its marker is not there"
    marker.write_bytes(b"{}x")
    assert "what stands there is no marker" in problems(books)[1]


def test_markers_of_other_ledgers_and_of_no_charge_are_named(books: Books, tmp_path: Path) -> None:
    other = open_books(_new(tmp_path / "other"))
    with other.ledger:
        pay(other, "foreign")
        source = tmp_path / "other/releases/charges"
        shutil.copytree(source, books.directory / "releases/charges")
        (sentence,) = problems(books)
        assert sentence == f"charges/000/000/000/003: the marker belongs to ledger {other.ledger.ledger_id}"
        refuse_older_ledger(books.ledger, books.store)  # it says nothing about this ledger
        with pytest.raises(LedgerCorruptError):  # but nothing can be drawn in its place
            pay(books, "a")
    assert books.ledger.account("passengers").spent == 0


def test_the_grant_can_be_raised_without_a_trace_in_the_store(books: Books) -> None:
    books.ledger.grant("passengers", epsilon=Fraction(200), reason="more")
    assert problems(books) == ()


def _new(directory: Path) -> Path:
    directory.mkdir()
    return directory


@pytest.mark.parametrize("copied_after", ["reserved", "drawing"])
def test_a_copy_from_before_the_marker_returns_no_epsilon(tmp_path: Path, copied_after: str) -> None:
    """The original goes on and draws; nothing but its marker shows that yet."""
    books = open_books(tmp_path)
    copy = tmp_path / "copy.db"
    for step, _charge in steps(books, "a"):
        if step == copied_after:
            copy_database(books.database, copy)
        if step == "drawing":
            break
    with open_ledger(f"sqlite:///{copy}", clock=lambda: utc_now() + timedelta(hours=1)) as older:
        charge = older.find("passengers", "a", "all")
        assert charge is not None
        if copied_after == "drawing":  # it knows of the draw, and spends
            assert settle(older, books.store, charge).drew
            return
        for _ in range(2):
            with pytest.raises(LedgerCorruptError, match="older copy"):
                settle(older, books.store, older.find("passengers", "a", "all") or charge)
        report = recover(older, lambda _: books.store)
        assert "restore the newest copy" in report.charges[0].problem
        assert older.account("passengers").reserved == charge.loss.epsilon
        taken = older.take_over(older.find("passengers", "a", "all") or charge)
        with pytest.raises(LedgerCorruptError, match="older copy"):
            standing_marker(older, books.store, taken)
        with pytest.raises(LedgerCorruptError, match="older copy"):
            put_marker(older, books.store, taken)


@pytest.mark.parametrize("drew", [True, False])
def test_a_copy_from_between_the_marker_and_the_draw_spends(tmp_path: Path, drew: bool) -> None:
    """Whether the original drew, which has published nothing, or died first: nobody can tell."""
    books = open_books(tmp_path)
    charge = pay(books, "a", until="reserved")
    put_marker(books.ledger, books.store, charge)
    copy = tmp_path / "copy.db"
    copy_database(books.database, copy)
    if drew:
        charge = books.ledger.enter_drawing(charge)
    with open_ledger(f"sqlite:///{copy}", clock=lambda: utc_now() + timedelta(hours=1)) as older:
        (recovered,) = recover(older, lambda _: books.store).charges
        assert recovered.after == "abandoned"
        assert recovered.spent == charge.loss.epsilon
        assert recovered.returned == 0
        account = older.account("passengers")
        assert account.spent == charge.loss.epsilon
        assert account.reserved == 0
        assert problems(Books(directory=tmp_path, ledger=older, store=books.store)) == ()
    manifest = books.store.read_manifest("a", "all", charge.release_id)
    assert manifest is not None
    assert is_tombstone(manifest)  # what the original drew can no longer be published


def test_a_run_that_died_before_its_marker_stood_gets_its_epsilon_back(tmp_path: Path) -> None:
    books = open_books(tmp_path)
    charge = books.ledger.mark(pay(books, "a", until="reserved"))
    with open_ledger(f"sqlite:///{books.database}", clock=lambda: utc_now() + timedelta(hours=1)) as later:
        ended = settle(later, books.store, charge)
        assert (ended.state, ended.drew) == ("abandoned", False)
        account = later.account("passengers")
        assert account.spent == account.reserved == 0
        assert problems(Books(directory=tmp_path, ledger=later, store=books.store)) == ()
