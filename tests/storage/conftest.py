"""Ledgers to test: every test of the contract runs on each implementation."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from suffice.pipeline.terms.declaration.privacy_loss import PrivacyMeasure
from suffice.storage.ledger.charge import ChargeRequest
from suffice.storage.ledger.opening import create_ledger
from support.losses import costing, stated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from suffice.storage.ledger.ledger import Ledger


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 1, 31, 8, 0, 30, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.moment

    def advance(self, **duration: float) -> None:
        self.moment += timedelta(**duration)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger_factory(ledger_url: str, clock: Clock) -> Iterator[Callable[[], Ledger]]:
    """Open the one ledger of a test as often as asked: each is another run."""
    opened = []

    def factory() -> Ledger:
        ledger = create_ledger(ledger_url, clock=clock)
        opened.append(ledger)
        return ledger

    yield factory
    for ledger in opened:
        ledger.close()


@pytest.fixture
def measure() -> PrivacyMeasure:
    """What `flights` counts; a module that is of every measure says so."""
    return PrivacyMeasure.EPSILON


@pytest.fixture
def ledger(ledger_factory: Callable[[], Ledger], measure: PrivacyMeasure) -> Ledger:
    """A ledger where `flights` has 3."""
    ledger = ledger_factory()
    ledger.grant("flights", **stated(measure, Fraction(3)), reason="first")
    return ledger


@pytest.fixture
def make_request(measure: PrivacyMeasure) -> Callable[..., ChargeRequest]:
    """Build a request that costs `flights` 1, with some fields replaced."""

    def make(*, plan: dict[str, Any] | None = None, **fields: Any) -> ChargeRequest:
        epsilon = fields.pop("epsilon", Fraction(1))
        text = json.dumps(plan if plan is not None else {"privacy": {"epsilon": str(epsilon)}})
        values: dict[str, Any] = {
            "dataset": "flights",
            "name": "delays",
            "window": "all",
            **costing(measure, epsilon),
            "neighboring": "add_or_remove_one",
            "unit": "row",
            "grid": None if fields.get("window", "all") == "all" else "day:month:UTC",
            "source": "/data/flights",
            "plan_json": text,
            "plan_hash": hashlib.sha256(text.encode()).hexdigest(),
            "store_id": "store-1",
            "store_uri": "releases",
        }
        return ChargeRequest(**{**values, **fields})

    return make
