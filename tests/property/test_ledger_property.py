"""Two runs at one ledger, in any order: it never pays more than was granted, and agrees with a model.

The model is a list of attempts a key; what an account has spent is summed anew from it at every step.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule

from suffice.errors import (
    BudgetExceededError,
    ChargeInProgressError,
    ChargeLostError,
    ChargeSpentError,
    SufficeError,
)
from suffice.storage.ledger import LEASE, Charge, ChargeRequest, create_ledger, open_ledger

if TYPE_CHECKING:
    from collections.abc import Callable

EPSILON = {"a": Fraction(1), "b": Fraction(3, 4), "c": Fraction(1, 10**6)}
GRIDS = {"whole": None, "monthly": "day:month"}
WINDOWS = ("all", "2013-01", "2013-02")
KEYS = st.tuples(st.sampled_from(sorted(GRIDS)), st.sampled_from(sorted(EPSILON)), st.sampled_from(WINDOWS))
RUNS = st.sampled_from([0, 1])


@dataclass(kw_only=True)
class Attempt:
    """What the model knows of one charge."""

    dataset: str
    window: str
    epsilon: Fraction
    state: str = "reserved"
    drew: bool = False
    epoch: int = 1
    holder: int
    expires: datetime

    @property
    def takes(self) -> Fraction:
        """Epsilon that the attempt keeps from others."""
        return Fraction(0) if self.state == "abandoned" and not self.drew else self.epsilon


class LedgerMachine(RuleBasedStateMachine):
    """The ledger beside its model."""

    charges = Bundle("charges")

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.mkdtemp()
        url = f"sqlite:///{self.directory}/ledger.db"
        self.time = datetime(2026, 1, 31, tzinfo=UTC)
        self.runs = [create_ledger(url, clock=self.now), open_ledger(url, clock=self.now)]
        self.granted = dict.fromkeys(GRIDS, Fraction(2))
        self.attempts: dict[tuple[str, str, str], list[Attempt]] = {}
        for dataset, grid in GRIDS.items():
            self.runs[0].grant(dataset, epsilon=Fraction(2), per_window=grid, reason="x")

    def now(self) -> datetime:
        return self.time

    def taken(self, dataset: str, window: str) -> Fraction:
        """Epsilon that counts against one window of an account."""
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

    def attempt_of(self, charge: Charge) -> Attempt:
        return self.attempts[charge.dataset, charge.name.rpartition("-")[2], charge.window][
            charge.attempt - 1
        ]

    @rule(
        dataset=st.sampled_from(sorted(GRIDS)), total=st.sampled_from([Fraction(1), Fraction(2), Fraction(3)])
    )
    def grant(self, dataset: str, total: Fraction) -> None:
        if total < self.most_taken(dataset):
            with pytest.raises(BudgetExceededError):
                self.runs[0].grant(dataset, epsilon=total, reason="x")
        else:
            self.runs[0].grant(dataset, epsilon=total, reason="x")
            self.granted[dataset] = total

    @rule(target=charges, key=KEYS, run=RUNS, new_attempt=st.booleans())
    def reserve(self, key: tuple[str, str, str], run: int, new_attempt: bool) -> object:
        dataset, name, window = key
        request = request_for(*key)
        attempts = self.attempts.setdefault(key, [])
        last = attempts[-1] if attempts else None
        expired = last is not None and last.expires <= self.time
        error: type[SufficeError] | None = None
        if last is None or last.state == "abandoned":
            left = self.granted[dataset] - (
                self.most_taken(dataset) if window == "all" else self.taken(dataset, window)
            )
            if last is not None and last.drew and not new_attempt:
                error = ChargeSpentError
            elif left < EPSILON[name]:
                error = BudgetExceededError
        elif (last.state == "reserved" and not expired) or last.state == "drawing":
            error = ChargeInProgressError
        if error is not None:
            with pytest.raises(error):
                self.runs[run].reserve(request, new_attempt=new_attempt)
            return multiple()
        charge = self.runs[run].reserve(request, new_attempt=new_attempt)
        if last is None or last.state == "abandoned":
            attempts.append(
                Attempt(
                    dataset=dataset,
                    window=window,
                    epsilon=EPSILON[name],
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
        return charge

    @rule(
        charge=charges,
        run=RUNS,
        move=st.sampled_from(["enter_drawing", "stage", "publish", "abandon", "renew"]),
    )
    def move(self, charge: Charge, run: int, move: str) -> None:
        ledger, attempt = self.runs[run], self.attempt_of(charge)
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
            calls[move]()
            attempt.state = after
            attempt.drew = attempt.drew or after == "drawing"
            if move == "renew":
                attempt.expires = self.time + LEASE
        else:
            with pytest.raises(ChargeLostError):
                calls[move]()

    @rule(target=charges, charge=charges, run=RUNS)
    def take_over(self, charge: Charge, run: int) -> object:
        attempt = self.attempt_of(charge)
        if attempt.epoch != charge.epoch or attempt.state in {"published", "abandoned"}:
            error: type[SufficeError] = ChargeLostError
        elif attempt.state != "staged" and attempt.expires > self.time:
            error = ChargeInProgressError
        else:
            attempt.epoch, attempt.holder, attempt.expires = attempt.epoch + 1, run, self.time + LEASE
            taken = self.runs[run].take_over(charge)
            assert (taken.state, taken.epoch) == (attempt.state, attempt.epoch)
            return taken
        with pytest.raises(error):
            self.runs[run].take_over(charge)
        return multiple()

    @rule(seconds=st.sampled_from([1, 119, 120]))
    def wait(self, seconds: int) -> None:
        self.time += timedelta(seconds=seconds)

    @invariant()
    def the_accounts_are_the_models(self) -> None:
        for account in self.runs[1].accounts():
            dataset = account.dataset
            assert account.granted == self.granted[dataset]
            assert account.remaining == account.granted - self.most_taken(dataset)
            assert account.remaining >= 0
            for window in WINDOWS[1:]:
                assert account.remaining_in(window) == account.granted - self.taken(dataset, window)

    def teardown(self) -> None:
        problems = self.runs[0].verify()
        for run in self.runs:
            run.close()
        shutil.rmtree(self.directory)
        assert problems == ()


def request_for(dataset: str, name: str, window: str) -> ChargeRequest:
    return ChargeRequest(
        dataset=dataset,
        name=f"{dataset}-{name}",
        window=window,
        epsilon=EPSILON[name],
        neighboring="add_or_remove_one",
        unit="row",
        grid=None if window == "all" else "day:month",
        source="/data",
        plan_json="{}",
        plan_hash=hashlib.sha256(b"{}").hexdigest(),
        store_id="s",
        store_uri="releases",
    )


TestLedger = LedgerMachine.TestCase
TestLedger.settings = settings(
    max_examples=30,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
