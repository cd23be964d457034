"""The command that charges a ledger from a backup for what its stores show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.paid import copy_database, open_books, pay, restore_database

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from support.running import Runner


def test_it_prints_what_it_charged_and_finds_nothing_twice(
    tmp_path: Path, suffice: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    books = open_books(tmp_path)
    monkeypatch.setenv("SUFFICE_LEDGER", f"sqlite:///{books.database}")
    with books.ledger:
        pay(books, "a")
        copy_database(books.database, tmp_path / "copy.db")
        lost = pay(books, "b")
    restore_database(tmp_path / "copy.db", books.database)
    words = ("ledger", "reconcile", "--reason", "restored")
    printed = suffice.json(*words)
    (charge,) = printed["charges"]
    assert (charge["charge_id"], charge["state"], charge["spent"]) == (lost.charge_id, "published", "1")
    assert printed["skipped"] > 0
    assert printed["witness"] is None
    assert suffice.json(*words) == {"charges": [], "skipped": 0, "witness": None}
    assert "nothing to reconcile" in suffice.text(*words)
    assert suffice.json("ledger", "verify", "--store", str(tmp_path / "releases"))["ok"]
    assert "needs a reason" in suffice.text("ledger", "reconcile", "--reason", " ", status=2)
