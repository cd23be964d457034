"""Refusals and audits are counted in a folder: exactly, by many at once, and never at a run's cost."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from suffice import errors
from suffice.errors import (
    AccountMissingError,
    GuaranteeError,
    PinnedError,
    SchemaError,
    StageFailedError,
    StorageError,
    SufficeError,
)
from suffice.monitoring.records import (
    COUNTS_FOLDER,
    KINDS,
    count_refusal,
    counting_refusals,
    note_audit,
    read_counts,
    refusal_kind,
)

if TYPE_CHECKING:
    from pathlib import Path

REFUSALS = {
    AccountMissingError: "budget",
    GuaranteeError: "account",
    PinnedError: "spec",
    SchemaError: "spec",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "counts"
    monkeypatch.setenv(COUNTS_FOLDER, str(place))
    return place


def test_errors_by_their_exit_status_are_refusals() -> None:
    kinds = {
        error: refusal_kind(error.__new__(error))
        for error in vars(errors).values()
        if isinstance(error, type) and issubclass(error, SufficeError)
    }
    assert {error.exit_status for error, kind in kinds.items() if kind} == {2, 3, 4}
    assert {error.exit_status for error, kind in kinds.items() if not kind} == {1, 5, 8, 130}


def test_many_at_once_are_all_counted(folder: Path) -> None:
    def refuse() -> None:
        for error in REFUSALS:
            count_refusal(error("no"))

    threads = [threading.Thread(target=refuse) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = read_counts()
    assert counts is not None
    assert counts.refusals == {"budget": 20, "account": 20, "spec": 40}
    assert {path.name for path in folder.iterdir()} == {f"refusals.{kind}" for kind in KINDS}


def test_other_ends_are_not_counted_and_pass(folder: Path) -> None:
    with pytest.raises(StageFailedError), counting_refusals():
        raise StageFailedError("reading", "it failed")
    assert not folder.exists()
    with pytest.raises(GuaranteeError), counting_refusals():
        raise GuaranteeError("no")
    assert read_counts().refusals["account"] == 1  # type: ignore[union-attr]


def test_without_a_folder_nothing_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(COUNTS_FOLDER, raising=False)
    count_refusal(GuaranteeError("no"))
    note_audit(ok=True)
    assert read_counts() is None


def test_a_folder_that_cannot_be_written_costs_nothing(folder: Path) -> None:
    folder.write_text("a file", encoding="utf-8")
    count_refusal(GuaranteeError("no"))
    note_audit(ok=True)
    with pytest.raises(StorageError, match=COUNTS_FOLDER):
        read_counts()


def test_the_last_audit_is_kept(folder: Path) -> None:
    assert read_counts().audit is None  # type: ignore[union-attr]
    for ok in (True, False):
        note_audit(ok=ok)
        audit = read_counts().audit  # type: ignore[union-attr]
        assert audit is not None
        assert (audit.ok, audit.hour.minute) == (ok, 0)
    assert [path.name for path in folder.iterdir()] == ["audit.json"]
    for damage in ("", "[]", '{"ok": true}', '{"ok": true, "hour": "x"}', '{"ok": 1, "hour": 1e99}'):
        (folder / "audit.json").write_text(damage, encoding="utf-8")
        with pytest.raises(StorageError, match="damaged"):
            read_counts()
