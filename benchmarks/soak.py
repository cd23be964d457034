"""A schedule on one machine for many minutes: how many processes there are, and how much memory they take.

PYTHONPATH=tests python benchmarks/soak.py [--specs 8] [--every 60] [--minutes 30] [--processes 4]

A real server of Prefect, and ``python -m suffice.flows.serve`` with several specs. Their windows of some
years were all missed: the first run of each catches up on them, and the later ones find nothing to do.
Printed are processes and memory of `serve` and all its children by minute, and what is verified at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from measuring import versions

from suffice.storage.ledger.opening import create_ledger, open_ledger
from support.making import flights, mapping, write_parts
from support.prefect_server import PrefectServer, running_server

FIRST = 2022
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
    arguments = parser.parse_args()
    print(versions())
    with TemporaryDirectory(prefix="soak-") as name:
        directory = Path(name)
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
            states = ended(server)
            audited = subprocess.run(
                [sys.executable, "-c", AUDIT], env=environment, capture_output=True, text=True, check=False
            )
        said = audited.stdout.splitlines()[-1:] or audited.stderr.splitlines()[-1:]
        print(f"the audit flow: exit {audited.returncode}: {said}")
        broken = audited.returncode != 0 or "all is well" not in "".join(said)
        windows = datetime.now(UTC).year - FIRST
        with open_ledger(f"sqlite:///{directory}/ledger.db") as ledger:
            charges = [list(ledger.charges(f"account-{number}")) for number in range(arguments.specs)]
        published = [sum(charge.state == "published" for charge in of_spec) for of_spec in charges]
        print(f"runs: {dict(states)}; windows published: {published}, charges: {[*map(len, charges)]}")
        broken = broken or published != [windows] * arguments.specs
        broken = broken or any(len(of_spec) != windows for of_spec in charges)
        broken = broken or most > arguments.processes
        print(f"broken: {broken}")
    sys.exit(broken)


def write_specs(directory: Path, number: int) -> list[Path]:
    """Write specs of as many accounts over the same data, and grant them."""
    data = write_parts(flights(600), directory / "data", 1)
    paths = []
    with create_ledger(f"sqlite:///{directory}/ledger.db") as ledger:
        for index in range(number):
            account, source = f"account-{index}", [str(data)]
            terms: dict[str, Any] = {"per_window": "day:year:UTC", "sources": source, "reason": "a soak"}
            ledger.grant(account, epsilon=Fraction(1), **terms)
            spec = mapping(
                data,
                name=f"flights-{index}",
                dataset=account,
                privacy={"epsilon": str(float(EPSILON)), "neighboring": "add_or_remove_one", "unit": "row"},
                window={"column": "day", "every": "year", "first": str(FIRST)},
            )
            paths.append(directory / f"flights-{index}.json")
            paths[-1].write_text(json.dumps(spec), encoding="utf-8")
    return paths


def watch(serve: subprocess.Popen[bytes], minutes: float) -> int:
    """Print by minute what `serve` and its children take; return the most runs there were at once."""
    began, last, most, runs_now, memory_now = time.monotonic(), 0, 0, 0, 0
    serve_memory = 0
    while time.monotonic() - began < 60 * minutes and serve.poll() is None:
        runs, own, all_of_them = family(serve.pid)
        most, runs_now, memory_now = max(most, runs), max(runs_now, runs), max(memory_now, all_of_them)
        serve_memory = max(serve_memory, own)
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


def ended(server: PrefectServer) -> Counter[str]:
    """Count the flow runs of the server by their states."""
    found: list[dict[str, Any]] = []
    while page := server.post("/flow_runs/filter", {"limit": 200, "offset": len(found)}):
        found += page
    return Counter(str(run["state_name"]) for run in found)


if __name__ == "__main__":
    main()
