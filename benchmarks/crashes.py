"""Kills at random moments, and what is left to do by hand: no draw twice, no epsilon lost, no step by hand.

PYTHONPATH=tests python benchmarks/crashes.py kills [--kills 150] [--ledger sqlite] [--plan FILE]
PYTHONPATH=tests python benchmarks/crashes.py elsewhere [--kills 50] [--plan FILE]

``kills``: each release is killed some time after a step, at random; half of the fuses burn from the begin of
noise or of `drawing` on, and no longer than up to `staged`. Then comes what a schedule does, at random: the
same command again, or a recovery, which may be killed as well. ``elsewhere``: a ledger in PostgreSQL with a
witness, killed runs of one host, and recoveries of another that has neither its spool nor its machine; leases
are what they are.

The plan is drawn from the operating system's entropy, and written before anything of it is done: a run with
`--plan` repeats it, as far as times repeat.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from measuring import versions

from suffice.storage.ledger.charge import ChargeState
from suffice.storage.ledger.opening import create_ledger, open_ledger
from suffice.storage.operations.verify_ledger import compare_with_store
from suffice.storage.operations.verify_store import verify_store
from suffice.storage.operations.witness import make_witness
from suffice.storage.releases.release_store import open_store
from support.faults import STARTS, STATISTICS
from support.forking import Forks
from support.judging import EPSILON, Scene, problems
from support.making import flights, mapping, write_parts
from support.postgres import running_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

AIMED = ("noise", "drawing", "sums")
ENDINGS = ("rerun", "recover", "a recovery that is killed")
SIZES: dict[str, dict[str, Any]] = {
    "sums and samples of 3 cells": {"statistics": STATISTICS},
    "noise of 40,000 values": {
        "groups": {"first": {"range": [1, 100]}, "second": {"range": [1, 100]}},
        "statistics": {
            "arr_delay": {"family": "normal", "column": "arr_delay", "lower": -60, "upper": 180},
            "stops": {"family": "poisson", "column": "stops", "upper": 5},
            "cancelled": {"family": "bernoulli", "column": "cancelled"},
        },
    },
    "samples of 100,160 cells": {
        "groups": {"first": {"range": [1, 320]}, "second": {"range": [1, 313]}},
        "statistics": {"stops": STATISTICS["stops"]},
    },
}
WEIGHTS = (60, 14, 1)
"""How often each size is killed."""
MOST_RUNS = 4
"""Of one release, all by the same command: more of them would be a step that somebody has to take."""
HEALED_WITHIN = 180.0


@dataclass(frozen=True, kw_only=True)
class Kill:
    """One kill of a plan."""

    number: int
    size: str
    start: str
    aimed: bool
    """Whether it comes before `staged` at the latest; else up to the end of the run."""
    share: float
    """Of what a run takes from the start up to there, when the kill comes."""
    ending: str

    def seconds(self, lasts: Mapping[str, float]) -> float:
        """Return how long its fuse burns, by what runs take from each start to their end."""
        return self.share * (lasts[self.start] - (lasts["staged"] if self.aimed else 0))


def make_plan(kills: int) -> list[Kill]:
    """Draw a plan from the operating system's entropy."""
    entropy = random.SystemRandom()
    return [
        Kill(
            number=number,
            size=entropy.choices(tuple(SIZES), WEIGHTS)[0],
            start=entropy.choice(AIMED if number % 2 else STARTS),
            aimed=number % 2 == 1,
            share=entropy.random(),
            ending=entropy.choice(ENDINGS),
        )
        for number in range(kills)
    ]


def main() -> None:
    """Carry out a campaign; exit 1 where a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("campaign", choices=["kills", "elsewhere"])
    parser.add_argument("--kills", type=int, default=150)
    parser.add_argument("--ledger", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--plan", type=Path, help="written, or repeated where it is there")
    parser.add_argument("--minutes", type=float, default=600, help="begin no kill after so many")
    arguments = parser.parse_args()
    engine = "postgresql" if arguments.campaign == "elsewhere" else arguments.ledger
    print(versions())
    plan = read_or_write(arguments.plan, arguments.kills)
    with TemporaryDirectory(prefix="crashes-") as directory, a_ledger(engine, Path(directory)) as url:
        campaign = Campaign(Path(directory), url, 60 * arguments.minutes)
        with Forks() as forks:
            broken = getattr(campaign, arguments.campaign)(plan, forks)
    sys.exit(broken > 0)


def read_or_write(path: Path | None, kills: int) -> list[Kill]:
    """Read a plan that is there, or draw one and write it before anything is done."""
    if path is not None and path.exists():
        return [Kill(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    plan = make_plan(kills)
    if path is not None:
        path.write_text("".join(json.dumps(asdict(kill)) + "\n" for kill in plan), encoding="utf-8")
    return plan


@contextmanager
def a_ledger(engine: str, directory: Path) -> Iterator[str]:
    """Give the URL of a ledger still to be made."""
    if engine == "sqlite":
        yield f"sqlite:///{directory}/ledger.db"
        return
    with running_server() as server:
        yield server.new_database()


class Campaign:
    """A ledger, a store and data to kill releases of; what was seen is counted."""

    def __init__(self, directory: Path, url: str, seconds: float) -> None:
        self.directory = directory
        self.seconds = seconds
        self.url = url
        self.seen: Counter[str] = Counter()
        self.broken: list[str] = []
        rows = flights(60)
        rng = np.random.default_rng(1)
        for name in ("first", "second"):
            rows = rows.append_column(name, pa.array(rng.integers(1, 313, rows.num_rows)))
        write_parts(rows, directory / "data", 1)
        with create_ledger(url) as ledger:
            ledger.grant("passengers", epsilon=Fraction(1000), reason="a campaign")

    def spec(self, name: str, size: str) -> dict[str, Any]:
        """Return what a release of a size is of."""
        privacy = {"epsilon": str(float(EPSILON)), "neighboring": "add_or_remove_one", "unit": "row"}
        return mapping(self.directory / "data", name=name, privacy=privacy, **SIZES[size])

    def kills(self, plan: Sequence[Kill], forks: Forks) -> int:
        """Kill releases one after another, and have each end by itself."""
        scene = Scene(self.directory, self.url, forks)
        lasts = {size: self.time(scene, size) for size in dict.fromkeys(kill.size for kill in plan)}
        print("seconds from a start to the end of a run:")
        for size, seconds in lasts.items():
            print(f"  {size}: {', '.join(f'{start} {took:.2f}' for start, took in seconds.items())}")
        before = self.spent()
        began = time.monotonic()
        done = 0
        while done < len(plan) and time.monotonic() - began < self.seconds:
            kill = plan[done]
            self.kill(scene, kill, kill.seconds(lasts[kill.size]))
            done += 1
            print(f"{done} of {len(plan)}, {len(self.broken)} broken", file=sys.stderr, flush=True)
        if self.spent() - before != done * EPSILON:
            self.broken.append(f"epsilon {self.spent() - before} is spent for {done} releases")
        return self.report(done, time.monotonic() - began)

    def time(self, scene: Scene, size: str) -> dict[str, float]:
        """Return how long a run takes from each start on, by a release of its own."""
        name = f"timed.{tuple(SIZES).index(size)}"
        seconds: dict[str, float] = scene.run(name, spec=self.spec(name, size), timed=True).result["seconds"]
        return seconds

    def kill(self, scene: Scene, kill: Kill, seconds: float) -> None:
        """Kill one release, and have it end."""
        name = f"r{kill.number}"
        spec = self.spec(name, kill.size)
        before = self.spent()
        ended = scene.run(name, spec=spec, fuse=(kill.start, seconds))
        state = self.state(name) if ended.signal else "ended before"
        self.seen[f"killed: {state}"] += 1
        self.seen[f"size: {kill.size}"] += 1
        if kill.ending == "a recovery that is killed":
            entropy = random.SystemRandom()
            order = {"ledger": self.url, "spool": str(scene.spool), "fuse": ("run", entropy.uniform(0, 0.5))}
            self.seen["recoveries killed"] += bool(scene.forks.run(**order).signal)
        if kill.ending != "rerun":
            report = scene.recover()
            self.seen["recoveries"] += 1
            if not report.ok:
                self.broken.append(f"{name}: {report}")
        for runs in range(1, MOST_RUNS + 1):
            ended = scene.run(name, spec=spec)
            self.seen[f"run again {runs} times"] += 1
            if ended.result.get("status") in {"published", "already_published"}:
                break
        else:
            self.broken.append(f"{name}, killed in {state}: a step by hand: {ended.result}")
        if self.spent() - before != EPSILON:
            self.broken.append(f"{name}, killed in {state}: epsilon {self.spent() - before} is spent")
        self.broken += [f"{name}, killed in {state}: {problem}" for problem in problems(scene, name)]

    def elsewhere(self, plan: Sequence[Kill], forks: Forks) -> int:
        """Kill releases of one host, while another recovers all the time."""
        witness = str(self.directory / "elsewhere" / "ledger.witness")
        with open_ledger(self.url) as ledger:
            make_witness(ledger, witness)
            ledger.grant("passengers", epsilon=Fraction(1), witness=witness, reason="a witness")
        scene = Scene(self.directory, self.url, forks)
        second = str(self.directory / "the second spool")
        size = next(iter(SIZES))
        lasts = self.time(scene, size)
        before, began = self.spent(), time.monotonic()
        waiting: dict[str, tuple[float, str]] = {}
        healed: list[float] = []
        todo = list(plan)
        while todo or waiting:
            if todo:
                kill = todo.pop(0)
                name = f"r{kill.number}"
                run = {"spec": self.spec(name, size), "host": "first", "witness": witness}
                ended = scene.run(name, **run, fuse=(kill.start, kill.seconds(lasts)))
                state = self.state(name) if ended.signal else "ended before"
                self.seen[f"killed: {state}"] += 1
                waiting[name] = (time.monotonic(), state)
            forks.run(ledger=self.url, spool=second, host="second", lease=120)
            for name, (since, state) in list(waiting.items()):
                took = time.monotonic() - since
                if self.state(name) in {"nothing charged", "published", "abandoned"}:
                    healed.append(took)
                    del waiting[name]
                elif took > 2 * HEALED_WITHIN:
                    self.broken.append(f"{name}, killed in {state}, is {self.state(name)} after {took:.0f} s")
                    del waiting[name]
            if not todo:
                time.sleep(5)
        print(f"healed within {statistics.median(healed):.0f} s (median), {max(healed):.0f} s (most)")
        self.broken += [f"healed after {took:.0f} s" for took in healed if took > HEALED_WITHIN]
        for kill in plan:
            name = f"r{kill.number}"
            again = scene.run(name, spec=self.spec(name, size), host="second", witness=witness, spool=second)
            if again.result.get("status") not in {"published", "already_published"}:
                self.broken.append(f"{name}: a step by hand: {again.result}")
            self.broken += [f"{name}: {problem}" for problem in problems(scene, name)]
        if self.spent() - before != len(plan) * EPSILON:
            self.broken.append(f"epsilon {self.spent() - before} is spent for {len(plan)} releases")
        return self.report(len(plan), time.monotonic() - began)

    def spent(self) -> Fraction:
        """Return what the account has spent."""
        with open_ledger(self.url) as ledger:
            return ledger.account("passengers").spent

    def state(self, name: str) -> str:
        """Say how far the newest charge of a name has come."""
        with open_ledger(self.url) as ledger:
            charge = ledger.find("passengers", name, "all")
        if charge is None:
            return "nothing charged"
        marked = charge.state is ChargeState.RESERVED and charge.marked
        return f"{charge.state}, marked" if marked else str(charge.state)

    def report(self, kills: int, seconds: float) -> int:
        """Print what was seen, once all is verified; return how many promises were broken."""
        with open_ledger(self.url) as ledger:
            examined = ledger.examine(full=True)
            store = open_store(str(self.directory / "releases"))
            self.broken += examined.problems
            self.broken += compare_with_store(ledger, store).problems
            self.broken += verify_store(store, ledger=ledger).problems
        print(f"{kills} kills on {self.url.partition(':')[0]} in {seconds:.0f} s")
        for what, count in sorted(self.seen.items()):
            print(f"  {what}: {count}")
        print(f"broken: {len(self.broken)}")
        for problem in self.broken:
            print(f"  {problem}")
        return len(self.broken)


if __name__ == "__main__":
    main()
