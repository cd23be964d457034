"""A ledger can be looked at wherever it stands: on a full disk, on one that cannot be written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from suffice.errors import LedgerError
from suffice.storage.ledger.opening import create_ledger, open_ledger
from support.charging import published

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from suffice.storage.ledger.charge import ChargeRequest

    MakeRequest = Callable[..., ChargeRequest]


def mount(place: Path, *options: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", *options, "tmpfs", str(place)], check=True, capture_output=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MB of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    try:
        mount(place, "-o", "size=2m")
    except (subprocess.CalledProcessError, FileNotFoundError):
        pytest.skip("this process may not mount")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture
def url(disk: Path, make_request: MakeRequest) -> str:
    url = f"sqlite:///{disk}/ledger.db"
    with create_ledger(url) as ledger:
        ledger.grant("flights", epsilon=Fraction(3), reason="x")
        published(ledger, make_request())
    return url


def fill(disk: Path) -> None:
    with (disk / "fill").open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)


def make_read_only(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)


def shown(url: str) -> tuple[Fraction, list[str], tuple[str, ...]]:
    with open_ledger(url, reading_only=True) as ledger:
        return (
            ledger.account("flights").spent,
            [charge.name for charge in ledger.charges("flights")],
            ledger.verify(),
        )


@pytest.mark.slow
@pytest.mark.parametrize("obstacle", [fill, make_read_only])
def test_a_ledger_is_shown_where_nothing_can_be_written(
    disk: Path, url: str, obstacle: Callable[[Path], None], make_request: MakeRequest
) -> None:
    obstacle(disk)
    assert shown(url) == (Fraction(1), ["delays"], ())
    command = [sys.executable, "-m", "suffice", "ledger"]
    for words in (["show"], ["verify"]) if obstacle is fill else (["export"],):
        done = subprocess.run([*command, *words, "--ledger", url], capture_output=True, text=True, check=True)
        assert "delays" in done.stdout or "ok - entries up to 6" in done.stdout
    # The control: a ledger opened for writing says why it cannot.
    with (
        pytest.raises(LedgerError, match=r"no space|cannot be (written|opened)|failed, or is full"),
        open_ledger(url) as ledger,
    ):
        ledger.reserve(make_request(name="more"))


@pytest.mark.parametrize("obstacle", [fill, make_read_only])
def test_what_only_the_log_has_is_never_left_out(
    disk: Path, url: str, obstacle: Callable[[Path], None], make_request: MakeRequest
) -> None:
    """As after a crash: what was committed last stands in the log beside the file."""
    with open_ledger(url) as ledger:
        published(ledger, make_request(name="more"))
        kept = {name: (disk / name).read_bytes() for name in ("ledger.db", "ledger.db-wal")}
    for path in disk.iterdir():
        path.unlink()
    for name, content in kept.items():
        (disk / name).write_bytes(content)
    obstacle(disk)
    assert shown(url) == (Fraction(2), ["delays", "more"], ())
    # The control: the file alone is older.
    shutil.copyfile(disk / "ledger.db", disk.parent / "alone.db")
    assert shown(f"sqlite:///{disk.parent}/alone.db")[0] < 2


def test_what_is_written_meanwhile_is_noticed(disk: Path, url: str) -> None:
    fill(disk)
    with open_ledger(url, reading_only=True) as ledger:
        assert ledger.account("flights").spent == 1
        os.utime(disk / "ledger.db", (1, 1))
        with pytest.raises(LedgerError, match="was written while it was read"):
            ledger.account("flights")


def test_a_ledger_that_was_opened_for_reading_is_never_changed(
    tmp_path: Path, make_request: MakeRequest
) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    with create_ledger(url) as ledger:
        ledger.grant("flights", epsilon=Fraction(3), reason="x")
    before = (tmp_path / "ledger.db").read_bytes()
    with open_ledger(url, reading_only=True) as ledger:
        for change in (
            lambda: ledger.grant("flights", epsilon=Fraction(4), reason="x"),
            lambda: ledger.reserve(make_request()),
            ledger.add_checkpoint,
        ):
            with pytest.raises(LedgerError, match="opened for reading"):
                change()
    assert (tmp_path / "ledger.db").read_bytes() == before


def test_a_reader_beside_a_writer_sees_what_is_committed(tmp_path: Path, make_request: MakeRequest) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    with create_ledger(url) as writer, open_ledger(url, reading_only=True) as reader:
        writer.grant("flights", epsilon=Fraction(3), reason="x")
        with reader.at_one_moment():
            assert reader.account("flights").spent == 0
            published(writer, make_request())
            assert reader.account("flights").spent == 0
        assert reader.account("flights").spent == 1
