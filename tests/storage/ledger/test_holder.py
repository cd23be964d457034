"""Which process holds a lease, and when it is certainly gone: asked of real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from suffice.storage.ledger import charge as holder
from suffice.storage.ledger.charge import is_gone, this_process

if TYPE_CHECKING:
    from collections.abc import Iterator

SCRIPT = "from suffice.storage.ledger.charge import this_process; print(this_process(), flush=True); input()"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says which process is which")


@pytest.fixture
def other() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Another process that lives until its input ends, and what it says of itself."""
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline()
        process.kill()


def test_a_process_that_lives_is_not_gone(other: tuple[subprocess.Popen[str], str]) -> None:
    assert not is_gone(this_process())
    assert not is_gone(other[1])


@pytest.mark.parametrize("reaped", [True, False])
def test_a_process_that_was_killed_is_gone(other: tuple[subprocess.Popen[str], str], reaped: bool) -> None:
    """At once, though its parent may not have asked how it ended."""
    process, stated = other
    process.kill()
    if reaped:
        process.wait()
    else:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert is_gone(stated)


def test_a_process_of_the_same_number_that_began_later_is_another() -> None:
    stated = {**json.loads(this_process()), "start": "1"}
    assert is_gone(json.dumps(stated))


@pytest.mark.parametrize("field", ["machine", "boot", "namespace"])
def test_nothing_is_known_of_processes_elsewhere(
    other: tuple[subprocess.Popen[str], str], field: str
) -> None:
    """Containers share a boot id, and count their processes alike."""
    process, stated = other
    process.kill()
    process.wait()
    assert is_gone(stated)
    assert not is_gone(json.dumps({**json.loads(stated), field: "pid:[1]"}))


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"pid": 1}', '{"machine": "", "boot": "", "namespace": "", "pid": "x"}']
)
def test_nothing_is_known_where_the_holder_did_not_say(text: str) -> None:
    assert not is_gone(text)


def test_where_the_system_does_not_say_nothing_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    stated = this_process()
    monkeypatch.setattr(holder, "_PROC", holder._PROC / "absent")
    assert this_process() == "{}"
    assert not is_gone(stated.replace(str(os.getpid()), "999999999"))
