"""`suffice store verify`: whatever is wrong in a store is named, and nothing else."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pytest

from suffice.storage.ledger.chain import PublicEntry
from suffice.storage.operations import verify_store as module
from suffice.storage.operations.markers import Marker
from suffice.storage.operations.verify_store import verify_store
from suffice.storage.releases.store_identity import marker_key
from support.paid import Books, open_books, pay
from support.releases import flip_bit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def books(tmp_path: Path) -> Iterator[Books]:
    opened = open_books(tmp_path)
    with opened.ledger:
        yield opened


def problems(books: Books, *, with_ledger: bool = False) -> tuple[str, ...]:
    verification = verify_store(books.store, ledger=books.ledger if with_ledger else None)
    assert verification.ok is (not verification.problems)
    return verification.problems


def test_a_whole_store_is_ok_and_counted(books: Books) -> None:
    names = ("a", "b", "charges")  # a release may be called as the markers' directory is
    published = [pay(books, name) for name in names]
    charge = pay(books, "c", until="drawing")
    books.store.put_tombstone("c", "all", charge.release_id)
    books.ledger.abandon(charge, reason="tests")
    n_files = sum(len(list(books.directory_of(charge).iterdir())) for charge in published)
    for ledger in (None, books.ledger):
        verification = verify_store(books.store, ledger=ledger)
        assert verification.problems == ()
        assert (verification.releases, verification.files, verification.tombstones, verification.markers) == (
            3,
            n_files,
            1,
            4,
        )


def test_probes_of_runs_that_were_killed_are_left_over_and_no_problem(books: Books) -> None:
    pay(books, "a")
    for key in (f"probe-{'0' * 32}", f"publications/probe-{'1' * 32}"):
        books.store.objects.put_new(key, bytes(16))
    verification = verify_store(books.store, ledger=books.ledger)
    assert (verification.problems, verification.left_files) == ((), 2)


@pytest.mark.parametrize(
    ("key", "size"),
    [
        (f"probe-{'0' * 32}", 15),
        (f"probe-{'0' * 32}", 17),
        (f"probe-{'0' * 31}", 16),
        (f"probe-{'0' * 31}g", 16),
        (f"other/probe-{'0' * 32}", 16),
        (f"publications/publications/probe-{'0' * 32}", 16),
    ],
)
def test_what_is_like_a_probe_is_named(books: Books, key: str, size: int) -> None:
    books.store.objects.put_new(key, bytes(size))
    verification = verify_store(books.store)
    assert verification.left_files == 0
    assert len(verification.problems) == 1
    assert verification.problems[0].startswith(key)


def test_every_damage_is_named(books: Books) -> None:
    root = books.directory / "releases"
    first, second, third = (pay(books, name) for name in ("a", "b", "c"))
    data = sorted(books.directory_of(first).glob("*.parquet"))
    data[0].unlink()
    data[1].write_bytes(flip_bit(data[1].read_bytes(), 999))
    manifest = books.directory_of(second) / "manifest.json"
    manifest.write_bytes(flip_bit(manifest.read_bytes(), 4242))
    (books.directory_of(third) / "extra.parquet").write_bytes(b"x")
    (root / "notes.txt").write_text("stray")
    (root / "charges/000/000/000/001").write_bytes(b"no marker")
    foreign = Marker(
        ledger_id="f" * 32,
        entry=PublicEntry(
            sequence=2,
            previous_hash="0" * 64,
            kind="reserved",
            hour="2026-01-31T08Z",
            payload={},
            commitment="0" * 64,
        ),
        run="0" * 16,
    )
    (root / marker_key(2)).write_bytes(foreign.encode())
    books.store.put_tombstone("d", "all", "0" * 16)
    books.store.objects.put_new(f"d/all/{'0' * 16}/x.parquet", b"x")
    books.store.objects.put_new(f"e/all/{'1' * 16}/x.parquet", b"x")
    told = problems(books)
    expected = (
        f"a/all/{first.release_id}: '{data[0].name}'",
        f"a/all/{first.release_id}: '{data[1].name}'",
        f"b/all/{second.release_id}: ",
        f"c/all/{third.release_id}: 'extra.parquet' is beside the manifest",
        "charges/000/000/000/001: what stands there is no marker",
        f"charges/000/000/000/002: the marker belongs to ledger {'f' * 32}",
        f"d/all/{'0' * 16}: beside a tombstone: 1 file",
        f"e/all/{'1' * 16}: no manifest names what stands there: 1 file",
        "notes.txt: it belongs to no release",
    )
    assert len(told) == len(expected)
    for sentence, beginning in zip(told, expected, strict=True):
        assert sentence.startswith(beginning.partition("'")[0]), sentence
    with_ledger = problems(books, with_ledger=True)
    assert set(told) <= set(with_ledger)
    assert len(set(with_ledger)) == len(with_ledger) > len(told)


def test_a_missing_release_shows_beside_the_ledger(books: Books) -> None:
    charge = pay(books, "a")
    for path in books.directory_of(charge).iterdir():
        path.unlink()
    assert problems(books) == ()
    (sentence,) = problems(books, with_ledger=True)
    assert "its charge is published, and no manifest stands there" in sentence


def test_a_store_that_is_damaged_all_over_takes_bounded_memory(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_PROBLEMS", 50)
    for directory in range(4):
        base = books.directory / f"releases/stray-{directory}"
        base.mkdir()
        for number in range(500):
            (base / f"{number}.txt").write_bytes(b"")
    tracemalloc.start()
    told = problems(books)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(told) == 51
    assert told[-1] == "and 1950 more problems"
    assert peak < 2_000_000
