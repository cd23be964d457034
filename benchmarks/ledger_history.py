"""What a ledger with a long history costs: its file, a charge, an examination, a look at it.

PYTHONPATH=tests python benchmarks/ledger_history.py [--charges 20 100000] [--per-window]

Every number is of a process of its own: for a charge the median of 30 in wall seconds, which wait for the
disk; for the others CPU seconds. It runs on older versions of the package too, for comparison.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.cli import app
from suffice.storage.ledger.opening import open_ledger
from support.history import MANIFEST, make_history, request_for

if TYPE_CHECKING:
    from collections.abc import Callable

TASKS = ("charge", "checkpoint", "verify", "go on", "show")
"""In this order: a checkpoint is made before an examination goes on from it."""
N_LIVES = 30


def main() -> None:
    """Print a table: a line for each length of history."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--charges", type=int, nargs="*", default=[20, 100_000])
    parser.add_argument(
        "--per-window", action="store_true", help="a grant per window: a window for each charge"
    )
    parser.add_argument("--task", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.task:
        print(json.dumps(measure(*arguments.task, per_window=arguments.per_window)))
        return
    print(f"{'charges':>8}{'file':>10}" + "".join(f"{task + ', s':>15}{'MB':>7}" for task in TASKS))
    for n_charges in arguments.charges:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "ledger.db"
            url = make_history(path, n_charges, per_window=arguments.per_window)
            cells = [run(task, url, per_window=arguments.per_window) for task in TASKS]
            size = path.stat().st_size / 1e6
        print(f"{n_charges:>8}{size:>7.1f} MB" + "".join(cells), flush=True)


def run(task: str, url: str, *, per_window: bool) -> str:
    """Measure in a process of its own; return the cells of the table."""
    command = [sys.executable, __file__, "--task", task, url, *(["--per-window"] if per_window else [])]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    seconds, peak = json.loads(done.stdout)
    return f"{'-':>15}{'-':>7}" if seconds is None else f"{seconds:>15.4f}{peak:>7.0f}"


def measure(task: str, url: str, *, per_window: bool) -> tuple[float | None, float]:
    """Return seconds, and the peak of the process in MB."""
    with open_ledger(url) as ledger:
        found: dict[str, Callable[[], Any]] = {
            "charge": lambda: statistics.median(
                timed(lambda k=k: live(ledger, k, per_window=per_window), time.perf_counter)
                for k in range(N_LIVES)
            ),
            "checkpoint": lambda: timed(ledger.add_checkpoint) if hasattr(ledger, "examine") else None,
            "verify": lambda: timed(ledger.verify),
            "go on": lambda: timed(ledger.examine) if hasattr(ledger, "examine") else None,
            "show": lambda: timed(lambda: show(url)),
        }
        seconds = found[task]()
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def timed(work: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    """Return the seconds that some work takes."""
    begun = clock()
    work()
    return clock() - begun


def live(ledger: Any, number: int, *, per_window: bool) -> None:
    """Do what a run does with its ledger, from the first look to what remains."""
    window = f"w-new-{number}" if per_window else "all"
    request = request_for(f"new-{number}", window, per_window=per_window)
    ledger.find("flights", request.name, window)
    ledger.check(request)
    charge = ledger.reserve(request)
    ledger.publish(ledger.stage(ledger.enter_drawing(charge), MANIFEST))
    if hasattr(ledger, "remaining"):
        ledger.remaining("flights", window)
    else:
        ledger.account("flights").remaining_in(window)


def show(url: str) -> None:
    """Print all accounts and charges as JSON."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        app.main(["ledger", "show", "--json", "--ledger", url])


if __name__ == "__main__":
    main()
