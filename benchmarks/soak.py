"""A schedule on one machine for many minutes: how many processes there are, and how much memory they take.

PYTHONPATH=tests python benchmarks/soak.py [--specs 8] [--every 60] [--minutes 30] [--processes 4] [--logs F]

A real server of Prefect, and ``python -m suffice.flows.serve`` with several specs. Their windows of three
days were all missed: the first run of each catches up on them. The next window, and an amendment of the last
that was missed, fall due while all this runs. The other runs find nothing to do.
Printed are processes and memory of `serve` and all its children by minute, and what is verified at the end.
What runs logged that did not complete is kept in the file of `--logs`, and after it what `serve` wrote.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast
from zoneinfo import ZoneInfo

from measuring import versions

from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.spec.windows_and_amendments import (
    LATEST_COMPLETE,
    Window,
    edition,
    first_window,
    window_times,
    windows_between,
)
from suffice.storage.ledger.opening import create_ledger, open_ledger
from support.making import flights, mapping, write_parts
from support.prefect_server import PrefectServer, running_server

MISSED = 3
"""Windows that were complete before."""
SOONEST = timedelta(minutes=6)
"""How long after the begin the next window and the next amendment fall due, at least."""
MIDNIGHTS = {0: "UTC", 15: "Asia/Kathmandu", 30: "Asia/Kolkata"}
"""Zones without summer time, by the minute of an hour of UTC at which their days begin."""
EPSILON = Fraction(1, 100)
_PAGE = os.sysconf("SC_PAGE_SIZE")
_LOOK_EVERY = 2.0
AUDIT = "from suffice.flows.audit import audit_ledger; print(audit_ledger())"


def main() -> None:
    """Soak, and exit 1 where something is broken."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--specs", type=int, default=8)
    parser.add_argument("--every", type=int, default=60, help="seconds from one run of a spec to its next")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--logs", type=Path, default=Path("soak.log"))
    arguments = parser.parse_args()
    print(versions())
    with TemporaryDirectory(prefix="soak-") as name:
        directory, began = Path(name), datetime.now(UTC)
        specs = write_specs(directory, arguments.specs)
        (directory / "prefect").mkdir()
        with running_server(directory / "prefect") as server:
            environment = server.environment(
                SUFFICE_LEDGER=f"sqlite:///{directory}/ledger.db", SUFFICE_STORE=str(directory / "releases")
            )
            words = ["--cron", str(arguments.every), "--time-zone", "UTC"]
            words += ["--processes", str(arguments.processes)]
            with (directory / "serve.log").open("wb") as log:
                serve = subprocess.Popen(
                    [sys.executable, "-m", "suffice.flows.serve", *map(str, specs), *words],
                    env=environment,
                    stdout=log,
                    stderr=log,
                )
            try:
                most = watch(serve, arguments.minutes)
            finally:
                serve.terminate()  # where a shell started this beside itself, interrupts are ignored
                serve.wait(timeout=300)
            states = ended(server, arguments.logs)
            with arguments.logs.open("a", encoding="utf-8") as kept:
                kept.write((directory / "serve.log").read_text(encoding="utf-8", errors="replace"))
            audited = subprocess.run(
                [sys.executable, "-c", AUDIT], env=environment, capture_output=True, text=True, check=False
            )
        said = audited.stdout.splitlines()[-1:] or audited.stderr.splitlines()[-1:]
        print(f"the audit flow: exit {audited.returncode}: {said}")
        broken = audited.returncode != 0 or "all is well" not in "".join(said)
        url = f"sqlite:///{directory}/ledger.db"
        for words in (["ledger", "verify", "--full"], ["store", "verify", f"{directory}/releases"]):
            verified = subprocess.run(
                [sys.executable, "-m", "suffice", *words, "--ledger", url], check=False, capture_output=True
            )
            print(f"suffice {' '.join(words[:2])}: exit {verified.returncode}")
            broken = broken or verified.returncode != 0
        due = editions(specs[0], began, datetime.now(UTC))
        with open_ledger(url) as ledger:
            charges = [list(ledger.charges(f"account-{number}")) for number in range(arguments.specs)]
        seen = [Counter(edition(each.window, each.amendment) for each in of_spec) for of_spec in charges]
        states_of_charges = Counter(each.state.value for of_spec in charges for each in of_spec)
        print(f"runs: {dict(states)}; editions due of each: {due}; charges: {dict(states_of_charges)}")
        broken = (
            broken or states_of_charges.keys() != {"published"} or seen != [Counter(due)] * arguments.specs
        )
        broken = broken or most > arguments.processes
        print(f"broken: {broken}")
    sys.exit(broken)


def write_specs(directory: Path, number: int) -> list[Path]:
    """Write specs of as many accounts over the same data, and grant them."""
    data = write_parts(flights(600), directory / "data", 1)
    window = due_soon(datetime.now(UTC))
    paths = []
    with create_ledger(f"sqlite:///{directory}/ledger.db") as ledger:
        for index in range(number):
            account, source = f"account-{index}", [str(data)]
            grid = f"day:day:{window['time_zone']}"
            terms: dict[str, Any] = {"per_window": grid, "sources": source, "reason": "a soak"}
            ledger.grant(account, epsilon=Fraction(1), **terms)
            spec = mapping(
                data,
                name=f"flights-{index}",
                dataset=account,
                privacy={"epsilon": str(float(EPSILON)), "neighboring": "add_or_remove_one", "unit": "row"},
                window=window,
            )
            paths.append(directory / f"flights-{index}.json")
            paths[-1].write_text(json.dumps(spec), encoding="utf-8")
    return paths


def due_soon(now: datetime) -> dict[str, Any]:
    """Return windows by day, of which three are complete, and the next is soon: zone and lag see to that.

    Amendments fall due a day after their windows. Two would have been due before their windows were released,
    which need none; the third is when the next window is.
    """
    soon = now.replace(minute=now.minute // 15 * 15, second=0, microsecond=0)
    while soon < now + SOONEST or soon.minute not in MIDNIGHTS:
        soon += timedelta(minutes=15)
    zone = MIDNIGHTS[soon.minute]
    here = soon.astimezone(ZoneInfo(zone))  # as many hours after a midnight there
    window = {"column": "day", "every": "day", "time_zone": zone, "amend": ["1 day"]}
    window["first"] = str(here.date() - timedelta(days=MISSED + 1))
    if here.hour:
        window["lag"] = f"{here.hour} hours"
    print(f"the next window and amendment fall due at {soon:%H:%M} UTC; now it is {now:%H:%M}")
    return window


def editions(path: Path, began: datetime, now: datetime) -> list[str]:
    """Return the windows of a spec that are due, and amendments that have become due."""
    spec = load_spec(path)
    window = cast("Window", spec.window)
    due = []
    for label in windows_between(spec, first_window(spec), LATEST_COMPLETE, as_of=now):
        due.append(label)
        times = enumerate(window_times(window, label).amendments, 1)
        due += [edition(label, number) for number, moment in times if began < moment <= now]
    return due


def watch(serve: subprocess.Popen[bytes], minutes: float) -> int:
    """Print by minute what `serve` and its children take; return the most runs there were at once."""
    began, last, most, runs_now, memory_now = time.monotonic(), 0, 0, 0, 0
    serve_memory = 0
    while time.monotonic() - began < 60 * minutes and serve.poll() is None:
        runs, serving, all_of_them = family(serve.pid)
        most, runs_now, memory_now = max(most, runs), max(runs_now, runs), max(memory_now, all_of_them)
        serve_memory = max(serve_memory, serving)
        minute = int((time.monotonic() - began) / 60)
        if minute > last:
            mib = f"serve {serve_memory >> 20} MiB, all {memory_now >> 20} MiB"
            print(f"minute {minute}: at most {runs_now} runs, {mib}", flush=True)
            last, runs_now, memory_now, serve_memory = minute, 0, 0, 0
        time.sleep(_LOOK_EVERY)
    print(f"most runs at once: {most}")
    return most


def family(pid: int) -> tuple[int, int, int]:
    """Return how many children a process has, its resident memory, and that of all together."""
    parents: dict[int, int] = {}
    memory: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(path.parent.name)] = int(fields[1])
        memory[int(path.parent.name)] = int(fields[21]) * _PAGE
    members = {pid}
    while more := {child for child, parent in parents.items() if parent in members} - members:
        members |= more
    children = sum(parent == pid for parent in parents.values())
    return children, memory.get(pid, 0), sum(memory.get(each, 0) for each in members)


def ended(server: PrefectServer, logs: Path) -> Counter[str]:
    """Count the flow runs of the server by their states; keep what those logged that did not complete."""
    seen: list[dict[str, Any]] = []
    while page := server.post("/flow_runs/filter", {"limit": 200, "offset": len(seen)}):
        seen += page
    with logs.open("w", encoding="utf-8") as kept:
        for run in seen:
            if run["state_type"] in {"COMPLETED", "SCHEDULED"}:
                continue
            times = f"expected {run['expected_start_time']}, started {run['start_time']}"
            kept.write(
                f"{run['id']} {run['name']}: {run['state_name']}, {run['state']['message']}; {times}\n"
            )
            asked = {"logs": {"flow_run_id": {"any_": [run["id"]]}}, "sort": "TIMESTAMP_ASC"}
            for line in server.post("/logs/filter", asked):
                kept.write(f"    {line['timestamp']} {line['name']}: {line['message']}\n")
    return Counter(str(run["state_name"]) for run in seen)


if __name__ == "__main__":
    main()
