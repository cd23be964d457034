"""Processes that cost a tenth of a second: forked from one that has imported everything and opened nothing.

Run as a program, this is that process: it reads orders from standard input, one JSON document a line,
carries each out in a child of its own, and writes how the child ended.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType

TESTS = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Ended:
    """How a child ended, or that it stopped.

    Attributes
    ----------
    process : int
    signal : int
        Which signal killed or stopped it; 0 where it left by itself.
    stopped : bool
        Whether it can go on.
    result : dict
        What it reported; empty where it was killed or stopped before.
    """

    process: int
    signal: int = 0
    stopped: bool = False
    result: dict[str, Any] = field(default_factory=dict)


class Forks:
    """The process that forks, from outside; one order at a time."""

    def __enter__(self) -> Self:
        self._server = subprocess.Popen(
            # Forking beside the threads of a linear algebra library, which are idle, draws a warning.
            [sys.executable, "-W", "ignore::DeprecationWarning", "-m", "support.forking"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.communicate(timeout=30)

    def run(self, **order: Any) -> Ended:
        """Carry an order out in a new process; return when it has ended or stopped."""
        self.begin(**order)
        return self.end()

    def go_on(self, process: int) -> Ended:
        """Let a stopped process go on; return when it has ended."""
        return self.run(go_on=process)

    def begin(self, **order: Any) -> None:
        """Have an order begun; :meth:`end` waits for it."""
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(order) + "\n")
        self._server.stdin.flush()

    def has_ended(self) -> bool:
        """Tell whether :meth:`end` would return at once."""
        assert self._server.stdout is not None
        return bool(select.select([self._server.stdout], [], [], 0)[0])

    def end(self) -> Ended:
        """Wait until the order's process has ended or stopped."""
        assert self._server.stdout is not None
        return Ended(**json.loads(self._server.stdout.readline()))


def _serve() -> None:
    """Carry out orders until standard input ends."""
    from support import faults

    faults.warm_up()
    results: dict[int, int] = {}
    for line in sys.stdin:
        order = json.loads(line)
        process = order.get("go_on") or _fork(order, results)
        if "go_on" in order:
            os.kill(process, signal.SIGCONT)
        _, status = os.waitpid(process, os.WUNTRACED)
        stopped = os.WIFSTOPPED(status)
        ended: dict[str, Any] = {"process": process, "stopped": stopped}
        if stopped:
            ended["signal"] = os.WSTOPSIG(status)
        else:
            ended["signal"] = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            with os.fdopen(results.pop(process)) as reported:
                ended["result"] = json.loads(reported.read() or "{}")
        sys.stdout.write(json.dumps(ended) + "\n")
        sys.stdout.flush()


def _fork(order: dict[str, Any], results: dict[int, int]) -> int:
    from support import faults

    reading, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        results[process] = reading
        return process
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        perform = faults.perform if "spec" in order else faults.perform_recovery
        os.write(writing, json.dumps(perform(**order)).encode())
    except BaseException:  # noqa: BLE001 - nothing may run on as a second server
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    _serve()
