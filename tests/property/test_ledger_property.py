"""Two runs at one ledger, in any order: it never pays more than was granted, and agrees with a model.

The model is a list of attempts a key; what an account has spent is summed anew from it at every step.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import count
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from suffice.errors import (
    BudgetExceededError,
    ChargeInProgressError,
    ChargeLostError,
    ChargeSpentError,
    DrawsExhaustedError,
    LedgerError,
    ReadingsExhaustedError,
    SufficeError,
)
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyMeasure
from suffice.storage.ledger.charge import DEFAULT_ALLOWED, MOST_RETURNED_DRAWS, Charge, ChargeRequest
from suffice.storage.ledger.ledger import LEASE
from suffice.storage.ledger.opening import create_ledger, open_ledger
from support.losses import costing, pure, stated

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.postgres import Server

COSTS = {
    PrivacyMeasure.EPSILON: {"a": pure(Fraction(1)), "b": pure(Fraction(750_001, 10**6))},
    PrivacyMeasure.RHO: {
        "a": costing(PrivacyMeasure.RHO, Fraction(1)),
        "b": pure(Fraction(1_225_001, 10**6)),  # in rho .7503..., rounded up to 1e-12
    },
}
"""What requests of each name cost, by the measure of their account."""
MEASURES = {"whole": PrivacyMeasure.EPSILON, "monthly": PrivacyMeasure.RHO}
TOTALS = (Fraction(1), Fraction(3, 2), Fraction(2))
GRIDS = {"whole": None, "monthly": "day:month:UTC"}
WINDOWS = ("all", "2013-01", "2013-02")
KEYS = st.tuples(st.sampled_from(sorted(GRIDS)), st.sampled_from("ab"), st.sampled_from(WINDOWS))
NEXT = {"reserved": "enter_drawing", "drawing": "stage", "staged": "publish"}
MOVES = ("next", "next", "next", "abandon", "enter_drawing", "stage", "publish", "renew")
AGES = st.integers(0, 3)
SECONDS = (1, 119, 120, 240)
RUNS = st.sampled_from([0, 1])


@dataclass(kw_only=True)
class Attempt:
    """What the model knows of one charge."""

    dataset: str
    window: str
    amount: Fraction
    state: str = "reserved"
    drawing_epoch: int = 0
    """In which it entered ``drawing``; 0 where it did not."""
    returned: bool = False
    """Whether its draw was."""
    epoch: int = 1
    holder: int
    expires: datetime

    @property
    def drew(self) -> bool:
        """Whether it ever entered ``drawing``."""
        return self.drawing_epoch > 0

    @property
    def is_spent(self) -> bool:
        """Whether what it took stays away for good, where it was abandoned."""
        return self.drew and not self.returned

    @property
    def takes(self) -> Fraction:
        """What the attempt keeps from others."""
        return Fraction(0) if self.state == "abandoned" and not self.is_spent else self.amount

    @property
    def failures(self) -> int:
        """How many runs of it did not come to a draw that was paid for."""
        if self.drew:
            return self.drawing_epoch - 1 if self.returned else 0
        return self.epoch if self.state == "abandoned" else self.epoch - 1


class LedgerMachine(RuleBasedStateMachine):
    """The ledger beside its model."""

    new_url: Callable[[], str]
    """Gives the URL of a ledger still to be made; set by the tests."""

    def __init__(self) -> None:
        super().__init__()
        url = type(self).new_url()
        self.time = datetime(2026, 1, 31, tzinfo=UTC)
        self.runs = [create_ledger(url, clock=self.now), open_ledger(url, clock=self.now)]
        self.granted = dict.fromkeys(GRIDS, TOTALS[1])
        self.attempts: dict[tuple[str, str, str], list[Attempt]] = {}
        self.charges: list[Charge] = []
        """Every charge that a call returned, the outdated ones too."""
        for dataset, grid in GRIDS.items():
            total = stated(MEASURES[dataset], TOTALS[1])
            self.runs[0].grant(dataset, **total, per_window=grid, sources=["/data"], reason="x")

    @initialize(keys=st.lists(KEYS, min_size=3, max_size=3, unique=True))
    def begin(self, keys: list[tuple[str, str, str]]) -> None:
        for key in keys:
            self.reserve(key, run=0, new_attempt=False)

    def now(self) -> datetime:
        return self.time

    def taken(self, dataset: str, window: str) -> Fraction:
        """What counts against one window of an account."""
        counted = (window, "all") if GRIDS[dataset] else WINDOWS
        return sum(
            (
                attempt.takes
                for attempts in self.attempts.values()
                for attempt in attempts
                if attempt.dataset == dataset and attempt.window in counted
            ),
            Fraction(0),
        )

    def most_taken(self, dataset: str) -> Fraction:
        return max(self.taken(dataset, window) for window in WINDOWS)

    def attempts_of(self, charge: Charge) -> list[Attempt]:
        return self.attempts[charge.dataset, charge.name.rpartition("-")[2], charge.window]

    def attempt_of(self, charge: Charge) -> Attempt:
        return self.attempts_of(charge)[charge.attempt - 1]

    @rule(dataset=st.sampled_from(sorted(GRIDS)), total=st.sampled_from(TOTALS))
    def grant(self, dataset: str, total: Fraction) -> None:
        if total < self.most_taken(dataset):
            with pytest.raises(BudgetExceededError):
                self.runs[0].grant(dataset, **stated(MEASURES[dataset], total), reason="x")
        else:
            self.runs[0].grant(dataset, **stated(MEASURES[dataset], total), reason="x")
            self.granted[dataset] = total

    @rule(key=KEYS, run=RUNS, new_attempt=st.booleans())
    def reserve(self, key: tuple[str, str, str], run: int, new_attempt: bool) -> None:
        dataset, name, window = key
        request = request_for(*key)
        amount = price(dataset, name)
        attempts = self.attempts.setdefault(key, [])
        last = attempts[-1] if attempts else None
        expired = last is not None and last.expires <= self.time
        error: type[SufficeError] | None = None
        if last is None or last.state == "abandoned":
            left = self.granted[dataset] - (
                self.most_taken(dataset) if window == "all" else self.taken(dataset, window)
            )
            if last is not None and last.is_spent and not new_attempt:
                error = ChargeSpentError
            elif left < amount:
                error = BudgetExceededError
        elif (last.state == "reserved" and not expired) or last.state == "drawing":
            error = ChargeInProgressError
        if error is not None:
            with pytest.raises(error):
                self.runs[run].reserve(request, new_attempt=new_attempt)
            return
        charge = self.runs[run].reserve(request, new_attempt=new_attempt)
        if last is None or last.state == "abandoned":
            attempts.append(
                Attempt(
                    dataset=dataset,
                    window=window,
                    amount=amount,
                    holder=run,
                    expires=self.time + LEASE,
                )
            )
        elif last.state == "reserved":
            last.epoch, last.holder, last.expires = last.epoch + 1, run, self.time + LEASE
        assert (charge.attempt, charge.state, charge.epoch) == (
            len(attempts),
            attempts[-1].state,
            attempts[-1].epoch,
        )
        self.charges.append(charge)

    @precondition(lambda self: self.charges)
    @rule(age=AGES, by_another=st.sampled_from([False, False, False, True]), move=st.sampled_from(MOVES))
    def move(self, age: int, by_another: bool, move: str) -> None:
        charge = self.charges[-1 - age % len(self.charges)]
        attempt = self.attempt_of(charge)
        move = NEXT.get(attempt.state, "renew") if move == "next" else move
        run = attempt.holder ^ by_another
        ledger = self.runs[run]
        calls: dict[str, Callable[[], object]] = {
            "enter_drawing": lambda: ledger.enter_drawing(charge),
            "stage": lambda: ledger.stage(charge, b"manifest"),
            "publish": lambda: ledger.publish(charge),
            "abandon": lambda: ledger.abandon(charge, reason="x"),
            "renew": lambda: ledger.renew(charge),
        }
        live = ("reserved", "drawing", "staged")
        before, after = {
            "enter_drawing": (("reserved",), "drawing"),
            "stage": (("drawing",), "staged"),
            "publish": (("staged",), "published"),
            "abandon": (live, "abandoned"),
            "renew": (live, attempt.state),
        }[move]
        held = (attempt.epoch, attempt.holder) == (charge.epoch, run)
        if move == "publish" and attempt.state == "published":
            calls[move]()
        elif held and attempt.state in before:
            moved = calls[move]()
            attempt.state = after
            if after == "drawing" and not attempt.drew:
                attempt.drawing_epoch = attempt.epoch
            if isinstance(moved, Charge):
                assert (moved.state, moved.drew, moved.epoch) == (after, attempt.drew, attempt.epoch)
            else:
                attempt.expires = self.time + LEASE
        else:
            with pytest.raises(ChargeLostError):
                calls[move]()

    @precondition(lambda self: self.charges)
    @rule(age=AGES, run=RUNS)
    def take_over(self, age: int, run: int) -> None:
        charge = self.charges[-1 - age % len(self.charges)]
        attempt = self.attempt_of(charge)
        error: type[SufficeError] | None = None
        if attempt.epoch != charge.epoch or attempt.state in {"published", "abandoned"}:
            error = ChargeLostError
        elif attempt.state != "staged" and attempt.expires > self.time:
            error = ChargeInProgressError
        if error is not None:
            with pytest.raises(error):
                self.runs[run].take_over(charge)
            return
        attempt.epoch, attempt.holder, attempt.expires = attempt.epoch + 1, run, self.time + LEASE
        taken = self.runs[run].take_over(charge)
        assert (taken.state, taken.epoch) == (attempt.state, attempt.epoch)
        self.charges.append(taken)

    @precondition(lambda self: self.charges)
    @rule(age=AGES, by_another=st.sampled_from([False, False, False, True]))
    def return_draw(self, age: int, by_another: bool) -> None:
        charge = self.charges[-1 - age % len(self.charges)]
        attempt, attempts = self.attempt_of(charge), self.attempts_of(charge)
        run = attempt.holder ^ by_another
        failures = sum(each.failures for each in attempts) + attempt.drawing_epoch - 1
        held = (attempt.epoch, attempt.holder, attempt.state) == (charge.epoch, run, "drawing")
        error: type[SufficeError] | None = None
        if not attempt.drew or attempt.epoch == attempt.drawing_epoch:
            error = LedgerError
        elif sum(each.returned for each in attempts) >= MOST_RETURNED_DRAWS:
            error = DrawsExhaustedError
        elif failures >= DEFAULT_ALLOWED:
            error = ReadingsExhaustedError
        elif not held:
            error = ChargeLostError
        if error is not None:
            with pytest.raises(error):
                self.runs[run].return_draw(charge, reason="x")
            return
        returned = self.runs[run].return_draw(charge, reason="x")
        attempt.state, attempt.returned = "abandoned", True
        assert (returned.state, returned.draw_returned, returned.counts_as) == ("abandoned", True, "returned")

    @rule(key=KEYS, run=RUNS, times=st.integers(1, 4))
    def draw_and_leave(self, key: tuple[str, str, str], run: int, times: int) -> None:
        """Have runs die in their draws, and another give them back: chance hardly comes there."""
        attempts = self.attempts.setdefault(key, [])
        for _ in range(times):
            if not attempts or attempts[-1].state == "abandoned":
                self.reserve(key, run=run, new_attempt=True)
            newest = attempts[-1] if attempts else None
            if newest and newest.state == "reserved" and self.attempt_of(self.charges[-1]) is newest:
                self.move(0, by_another=False, move="enter_drawing")
                self.wait(SECONDS[-1])
                self.take_over(0, run=run ^ 1)
                self.return_draw(0, by_another=False)

    @rule(seconds=st.sampled_from(SECONDS))
    def wait(self, seconds: int) -> None:
        self.time += timedelta(seconds=seconds)

    @rule(seed=st.integers(0, 2**64 - 1))
    def wander(self, seed: int) -> None:
        """Take ten steps of even odds: rules alone repeat themselves more than runs do."""
        choice = Random(seed).choice  # noqa: S311
        for _ in range(10):
            step = choice(["reserve", "reserve", "move", "move", "move", "take_over", "return", "wait"])
            if step == "reserve":
                key = (choice(list(GRIDS)), choice(["a", "b"]), choice(WINDOWS))
                self.reserve(key, run=choice([0, 1]), new_attempt=choice([True, False]))
            elif step == "wait":
                self.wait(choice(SECONDS))
            elif self.charges and step == "move":
                self.move(
                    choice(range(4)), by_another=choice([False, False, False, True]), move=choice(MOVES)
                )
            elif self.charges and step == "return":
                self.return_draw(choice(range(4)), by_another=choice([False, False, False, True]))
            elif self.charges:
                self.take_over(choice(range(4)), run=choice([0, 1]))

    @invariant()
    def the_accounts_are_the_models(self) -> None:
        for account in self.runs[1].accounts():
            dataset = account.dataset
            assert account.granted == self.granted[dataset]
            assert account.remaining == account.granted - self.most_taken(dataset)
            assert account.remaining >= 0
            for window in WINDOWS[1:]:
                assert self.runs[1].remaining(dataset, window) == account.granted - self.taken(
                    dataset, window
                )

    def teardown(self) -> None:
        problems = self.runs[0].verify() + self.runs[0].add_checkpoint().problems
        problems += self.runs[1].examine().problems
        for run in self.runs:
            run.close()
        assert problems == ()


def request_for(dataset: str, name: str, window: str) -> ChargeRequest:
    return ChargeRequest(
        dataset=dataset,
        name=f"{dataset}-{name}",
        window=window,
        **COSTS[MEASURES[dataset]][name],
        neighboring="add_or_remove_one",
        unit="row",
        grid=None if window == "all" else "day:month:UTC",
        source="/data",
        plan_json="{}",
        plan_hash=hashlib.sha256(b"{}").hexdigest(),
        store_id="s",
        store_uri="releases",
    )


def price(dataset: str, name: str) -> Fraction:
    """Return what a request of a name costs its account."""
    costs = COSTS[MEASURES[dataset]][name]
    amount: Fraction = costs["rho"] if MEASURES[dataset] is PrivacyMeasure.RHO else costs["loss"].amount
    return amount


def check(new_url: Callable[[], str], max_examples: int) -> None:
    machine = type("Machine", (LedgerMachine,), {"new_url": staticmethod(new_url)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=max_examples,
            stateful_step_count=20,
            phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking would take minutes of database
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )


def check_on_sqlite(directory: Path, max_examples: int) -> None:
    numbers = count()
    check(lambda: f"sqlite:///{directory}/ledger-{next(numbers)}.db", max_examples)


def check_on_postgresql(server: Server, max_examples: int) -> None:
    urls = []

    def new_url() -> str:
        urls.append(server.new_database())
        return urls[-1]

    try:
        check(new_url, max_examples)
    finally:
        for url in urls:
            server.drop(url)


@pytest.mark.slow
def test_the_ledger_agrees_with_its_model_on_sqlite(tmp_path: Path) -> None:
    check_on_sqlite(tmp_path, 12)


@pytest.mark.slow
def test_the_ledger_agrees_with_its_model_on_postgresql(postgres_server: Server) -> None:
    check_on_postgresql(postgres_server, 5)


@pytest.mark.audit
@pytest.mark.timeout(3600)
def test_the_ledger_agrees_with_its_model_for_long(tmp_path: Path, postgres_server: Server) -> None:
    check_on_sqlite(tmp_path, 300)
    check_on_postgresql(postgres_server, 60)
