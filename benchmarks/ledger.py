"""Time the ledger on both engines: charges that live from reservation to publication, and refusals.

python benchmarks/ledger.py [--seconds 5]          (tests/ on PYTHONPATH, for a PostgreSQL server)

A life is four durable transactions (reserved, drawing, staged, published) on one account that all share.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import tempfile
import time
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from suffice.errors import BudgetExceededError
from suffice.storage.ledger.charge import ChargeRequest
from suffice.storage.ledger.opening import create_ledger, open_ledger
from support.postgres import running_server

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier

    from suffice.storage.ledger.ledger import Ledger

PROCESSES = (1, 4, 16)
MANIFEST = b"{}" * 2000
PLAN = "{}"


def main() -> None:
    """Run both engines with every number of processes, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5)
    seconds = parser.parse_args().seconds
    print(f"{'engine':<12}{'processes':>10}{'lives/s':>10}{'transactions/s':>16}{'refusals/s':>12}")
    with running_server() as server, tempfile.TemporaryDirectory() as directory:
        for engine in ("sqlite", "postgresql"):
            for processes in PROCESSES:
                local = f"sqlite:///{directory}/{processes}.db"
                url = local if engine == "sqlite" else server.new_database()
                lives, refusals = measure(url, processes, seconds)
                print(f"{engine:<12}{processes:>10}{lives:>10.0f}{4 * lives:>16.0f}{refusals:>12.0f}")
                if engine == "postgresql":
                    server.drop(url)


def measure(url: str, processes: int, seconds: float) -> tuple[float, float]:
    """Return lives and refusals a second, over all processes."""
    with create_ledger(url) as ledger:
        ledger.grant("plenty", epsilon=Fraction(10**6), reason="benchmark")
        ledger.grant("nothing", epsilon=Fraction(1, 10**6), reason="benchmark")
    context = multiprocessing.get_context("fork")
    barrier, counted = context.Barrier(processes), context.Queue()
    workers = [
        context.Process(target=work, args=(url, number, seconds, barrier, counted))
        for number in range(processes)
    ]
    for worker in workers:
        worker.start()
    counts = [counted.get() for _ in workers]
    for worker in workers:
        worker.join()
    lives, refusals = (sum(column) / seconds for column in zip(*counts, strict=True))
    with open_ledger(url) as ledger:
        if problems := ledger.verify():
            raise SystemExit("\n".join(problems))
    return lives, refusals


def work(url: str, number: int, seconds: float, barrier: Barrier, counted: Any) -> None:
    """Count what one process gets done in its time."""
    with open_ledger(url) as ledger:
        results = []
        for act in (live, be_refused):
            barrier.wait()
            end, done = time.monotonic() + seconds, 0
            while time.monotonic() < end:
                act(ledger, f"{number}-{done}")
                done += 1
            results.append(done)
    counted.put(results)


def live(ledger: Ledger, name: str) -> None:
    """Take one charge from reservation to publication."""
    charge = ledger.reserve(request("plenty", name))
    ledger.publish(ledger.stage(ledger.enter_drawing(charge), MANIFEST))


def be_refused(ledger: Ledger, name: str) -> None:
    """Ask an empty account."""
    try:
        ledger.reserve(request("nothing", f"refused-{name}"))
    except BudgetExceededError:
        return
    message = "an account gave more than it was granted"
    raise SystemExit(message)


def request(dataset: str, name: str) -> ChargeRequest:
    """Return a request for epsilon 0.001."""
    return ChargeRequest(
        dataset=dataset,
        name=name,
        window="all",
        epsilon=Fraction(1, 1000),
        neighboring="add_or_remove_one",
        unit="row",
        grid=None,
        source="/data",
        plan_json=PLAN,
        plan_hash=hashlib.sha256(PLAN.encode()).hexdigest(),
        store_id="benchmark",
        store_uri="releases",
    )


if __name__ == "__main__":
    main()
