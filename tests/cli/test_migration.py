"""The command that brings a ledger of the first schema to this version's."""

from __future__ import annotations

import lzma
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from support.running import Runner


def test_the_drill(
    tmp_path: Path, suffice: Runner, monkeypatch: pytest.MonkeyPatch, repository: Path
) -> None:
    """A backup; every command says what to do; migrated once, whole, and in use again."""
    file, backup = tmp_path / "ledger.db", tmp_path / "backup.db"
    packed = repository / "tests/storage/ledger/sql/revision_0001.db.xz"
    file.write_bytes(lzma.decompress(packed.read_bytes()))
    monkeypatch.setenv("SUFFICE_LEDGER", f"sqlite:///{file}")
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(backup)) as target:
        source.backup(target)
    for words in (
        ("show",),
        ("verify",),
        ("grant", "flights", "--epsilon", "9", "--reason", "x", "--create"),
    ):
        assert "run `suffice ledger migrate`" in suffice.text("ledger", *words, status=5)
    assert suffice.json("ledger", "migrate") == {"before": "0001", "after": "0002"}
    assert suffice.json("ledger", "migrate") == {"before": None, "after": "0002"}
    assert "nothing to migrate" in suffice.text("ledger", "migrate")
    assert suffice.json("ledger", "verify", "--full")["ok"]
    assert [account["granted"] for account in suffice.json("ledger", "show")["accounts"]] == ["6", "6"]
    suffice.text("ledger", "grant", "flights", "--epsilon", "9", "--reason", "x", "--unwitnessed")
    file.unlink()
    assert "there is no ledger" in suffice.text("ledger", "migrate", status=5)
    backup.rename(file)
    assert "migrated from the schema 0001 to 0002" in suffice.text("ledger", "migrate")
