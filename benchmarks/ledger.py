"""Time the ledger on both engines: charges that live from reservation to publication, and refusals.

python benchmarks/ledger.py [--seconds 5] [--busy 2]          (tests/ on PYTHONPATH, for a PostgreSQL server)

A life is four durable transactions (reserved, drawing, staged, published) on one account that all share.
With `--busy`, that many processes keep the machine's cores busy meanwhile: what a wait is under load.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import multiprocessing
import tempfile
import time
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from suffice.errors import BudgetExceededError, LedgerError
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
from suffice.storage.ledger.charge import ChargeRequest
from suffice.storage.ledger.opening import create_ledger, open_ledger
from support.postgres import running_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.synchronize import Barrier

    from suffice.storage.ledger.ledger import Ledger

PROCESSES = (1, 4, 16)
MANIFEST = b"{}" * 2000
PLAN = "{}"


def main() -> None:
    """Run the engines with every number of processes, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--busy", type=int, default=0, help="processes that compute beside")
    parser.add_argument("--engine", choices=["sqlite", "postgresql"], help="only this one")
    parser.add_argument("--processes", type=int, nargs="*", default=PROCESSES)
    arguments = parser.parse_args()
    print(
        f"{'engine':<12}{'processes':>10}{'lives/s':>10}{'refusals/s':>12}"
        f"{'life: median':>14}{'p99':>8}{'longest':>9} s{'errors':>8}"
    )
    engines = [arguments.engine] if arguments.engine else ["sqlite", "postgresql"]
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        server = stack.enter_context(running_server()) if "postgresql" in engines else None
        stack.enter_context(busy(arguments.busy))
        for engine in engines:
            for processes in arguments.processes:
                local = f"sqlite:///{directory}/{processes}.db"
                url = server.new_database() if server and engine == "postgresql" else local
                rates = measure(url, processes, arguments.seconds)
                print(
                    f"{engine:<12}{processes:>10}{rates.lives:>10.1f}{rates.refusals:>12.1f}"
                    f"{rates.median:>14.3f}{rates.p99:>8.2f}{rates.longest:>9.2f}  {rates.errors:>8}",
                    flush=True,
                )
                if server and engine == "postgresql":
                    server.drop(url)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Lives and refusals a second over all processes; seconds that a life took; lives that failed."""

    lives: float
    refusals: float
    median: float
    p99: float
    longest: float
    errors: int


@contextlib.contextmanager
def busy(number: int) -> Iterator[None]:
    """Keep that many cores busy."""
    workers = [multiprocessing.get_context("fork").Process(target=spin, daemon=True) for _ in range(number)]
    for worker in workers:
        worker.start()
    yield
    for worker in workers:
        worker.kill()


def spin() -> None:
    """Compute for ever."""
    while True:
        pass


def measure(url: str, processes: int, seconds: float) -> Measured:
    """Let processes live charges, then ask an empty account, for some seconds each."""
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
    with open_ledger(url) as ledger:
        if problems := ledger.verify():
            raise SystemExit("\n".join(problems))
    waits = sorted(wait for waited, _, _ in counts for wait in waited)
    return Measured(
        lives=len(waits) / seconds,
        refusals=sum(refused for _, refused, _ in counts) / seconds,
        median=waits[len(waits) // 2],
        p99=waits[min(len(waits) - 1, 99 * len(waits) // 100)],
        longest=waits[-1],
        errors=sum(failed for _, _, failed in counts),
    )


def work(url: str, number: int, seconds: float, barrier: Barrier, counted: Any) -> None:
    """Time the lives of one process, and count its refusals."""
    waits, refused, failed = [], 0, 0
    with open_ledger(url) as ledger:
        barrier.wait()
        end = time.monotonic() + seconds
        while (begun := time.monotonic()) < end:
            try:
                live(ledger, f"{number}-{len(waits)}-{failed}")
            except LedgerError:
                failed += 1
            waits.append(time.monotonic() - begun)
        barrier.wait()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            be_refused(ledger, f"{number}-{refused}")
            refused += 1
    counted.put((waits, refused, failed))


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
        loss=PrivacyLoss.of_epsilon(Fraction(1, 1000)),
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
