"""Writers of a file are served in the order in which they came, whoever dies or stops among them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from fractions import Fraction
from functools import partial
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

from suffice.storage.ledger.opening import create_ledger, open_ledger
from suffice.storage.ledger.sql.sqlite import TurnPatience, turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PATIENT = TurnPatience(door=20, standstill=20, turn=20)
HOLDER = """
import sys, time
from pathlib import Path
from suffice.storage.ledger.sql.sqlite import turn
with turn(Path(sys.argv[1]), is_free=lambda: False):
    print("in", flush=True)
    time.sleep(600)
"""
WAITER = """
import sys
from pathlib import Path
from suffice.storage.ledger.sql import sqlite as turns
take = turns._take_ticket
def noted(*args):
    ticket = take(*args)
    print("queued", flush=True)
    return ticket
turns._take_ticket = noted
with turns.turn(Path(sys.argv[1]), is_free=lambda: False):
    print("in", flush=True)
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Start a process at the queue; return when it has said its first word."""
    with ExitStack() as stack:

        def begin(code: str) -> subprocess.Popen[str]:
            command = [sys.executable, "-c", code, str(tmp_path / "queue")]
            process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            stack.callback(process.kill)
            assert process.stdout is not None
            assert process.stdout.readline().strip() in {"in", "queued"}
            return process

        yield begin


def never() -> bool:
    return False


def test_all_are_served_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    path, served = tmp_path / "queue", []
    waiting = partial(turn, path, is_free=never, patience=PATIENT)
    threads = []
    with waiting():
        for number in range(12):

            def work(number: int = number) -> None:
                with waiting():
                    served.append(number)

            before = tickets(path)
            threads.append(Thread(target=work))
            threads[-1].start()
            while tickets(path) == before:
                time.sleep(0.001)
        assert served == []
    for thread in threads:
        thread.join()
    assert served == list(range(12))


def tickets(path: Path) -> int:
    """Return how many tickets were given out."""
    return int.from_bytes(path.read_bytes()[:8], sys.byteorder)


@pytest.mark.slow
def test_whoever_dies_gives_the_turn_back(
    tmp_path: Path, start: Callable[[str], subprocess.Popen[str]]
) -> None:
    holder = start(HOLDER)
    waiter = start(WAITER)
    waiter.kill()
    entered = Event()

    def work() -> None:
        with turn(tmp_path / "queue", is_free=never, patience=PATIENT):
            entered.set()

    thread = Thread(target=work)
    thread.start()
    assert not entered.wait(0.2)
    holder.kill()
    thread.join(timeout=60)
    assert entered.is_set()


@pytest.mark.slow
def test_whoever_is_stopped_is_passed_once_for_all(
    tmp_path: Path, start: Callable[[str], subprocess.Popen[str]]
) -> None:
    stopped = start(HOLDER)
    os.kill(stopped.pid, signal.SIGSTOP)
    patience = TurnPatience(door=20, standstill=1.5, turn=20)
    waits = []
    for _ in range(3):
        begun = time.monotonic()
        with turn(tmp_path / "queue", is_free=lambda: True, patience=patience):
            waits.append(time.monotonic() - begun)
    assert waits[0] > patience.standstill
    assert max(waits[1:]) < patience.standstill
    # The control: while SQLite's lock is not free, nobody is passed.
    begun = time.monotonic()
    with ExitStack() as stack:
        stack.enter_context(turn(tmp_path / "queue", is_free=never, patience=patience))
        stack.enter_context(
            turn(tmp_path / "queue", is_free=never, patience=TurnPatience(door=1, standstill=0.1, turn=0.8))
        )
        assert time.monotonic() - begun > 0.7


@pytest.mark.parametrize("content", [b"", b"x", b"\xff" * 16, b"\0" * 4096])
def test_a_damaged_queue_is_no_obstacle(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "queue"
    path.write_bytes(content)
    begun = time.monotonic()
    for _ in range(3):
        with turn(path, is_free=never, patience=PATIENT):
            pass
    assert time.monotonic() - begun < PATIENT.door


def test_without_a_queue_there_are_no_turns(tmp_path: Path) -> None:
    with turn(tmp_path / "missing" / "queue", is_free=never, patience=PATIENT):
        assert list(tmp_path.iterdir()) == []


def test_readers_take_no_turn(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    with create_ledger(url) as ledger:
        ledger.grant("flights", epsilon=Fraction(3), reason="x")
    (tmp_path / "ledger.db-queue").unlink()
    with open_ledger(url) as ledger:
        ledger.account("flights")
        assert ledger.verify() == ()
    assert [entry.name for entry in tmp_path.iterdir()] == ["ledger.db"]
