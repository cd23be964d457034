"""A disk that fails while drawn values are in memory: what was to be written is written again."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from suffice.errors import SpoolError
from suffice.storage.objects.object_store import Patience
from suffice.storage.releases.spool_entry import SpoolEntry, SpoolFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class FailingDisk:
    """Makes the next calls of a function fail, as a disk does that is away for a while."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.calls = 0

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            self.calls += 1
            if self.left:
                self.left -= 1
                raise OSError(errno.EIO, "the text of the system, which nobody repeats")
            return function(*args)

        return call


@pytest.fixture
def entry(tmp_path: Path) -> SpoolEntry:
    made = SpoolEntry(path=tmp_path / "c.1")
    made.allocate({"n.parquet": 100}, run="0" * 16)
    return made


def patience(notices: list[str], seconds: float = 60.0) -> Patience:
    return Patience(seconds=seconds, sleep=lambda _: True, notice=notices.append)


def write(entry: SpoolEntry, patience: Patience, data: bytes = b"noisy") -> bytes:
    with replace(entry, patience=patience).writing("n.parquet") as file:
        file.write(data)
    return (entry.path / "n.parquet").read_bytes()


def test_a_write_that_fails_is_done_again(entry: SpoolEntry, monkeypatch: pytest.MonkeyPatch) -> None:
    disk, notices = FailingDisk(3), list[str]()
    monkeypatch.setattr(SpoolFile, "_write_some", disk.around(vars(SpoolFile)["_write_some"]))
    assert write(entry, patience(notices)) == b"noisy"
    assert disk.calls == 4
    assert len(notices) == 3
    assert all("drawn, not in the spool yet: " in notice for notice in notices)
    assert not any("nobody repeats" in notice for notice in notices)


def test_what_a_failed_synchronisation_lost_is_written_anew(
    entry: SpoolEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pages count as clean then: a second call alone would report a success that there was not."""
    disk, writes, notices = FailingDisk(2), FailingDisk(0), list[str]()
    monkeypatch.setattr(os, "fsync", disk.around(os.fsync))
    monkeypatch.setattr(SpoolFile, "_write_some", writes.around(vars(SpoolFile)["_write_some"]))
    assert write(entry, patience(notices), b"n" * 3000) == b"n" * 3000
    assert (disk.calls, writes.calls) == (3, 3)
    assert len(notices) == 1


def test_a_disk_that_lost_what_was_written_is_told(
    entry: SpoolEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail = FailingDisk(1).around(os.fsync)

    def lose(descriptor: int) -> None:
        os.pwrite(descriptor, b"\0", 0)
        fail(descriptor)

    monkeypatch.setattr(os, "fsync", lose)
    with pytest.raises(SpoolError, match=r"cannot be written: "):
        write(entry, Patience())


def test_patience_ends_and_an_interrupt_ends_it(entry: SpoolEntry, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = FailingDisk(1000)
    monkeypatch.setattr(SpoolFile, "_write_some", disk.around(vars(SpoolFile)["_write_some"]))
    for ended in (Patience(), Patience(seconds=60, sleep=lambda _: False)):
        with pytest.raises(SpoolError, match=r"n\.parquet cannot be written: .*\(EIO\)") as caught:
            write(entry, ended)
        assert "nobody repeats" not in str(caught.value)
    assert disk.calls == 2
