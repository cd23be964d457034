"""What becomes of a charge whose run failed: of its epsilon, of its place in the store, and in words."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from suffice.errors import (
    ChargeLostError,
    ClusterError,
    LedgerCorruptError,
    LedgerError,
    ReleaseInterruptedError,
    StageFailedError,
    StoreError,
)
from suffice.storage.ledger.charge import ChargeState
from suffice.storage.operations.publishing import publish
from suffice.storage.operations.settling import give_back, published_by_another, spend
from suffice.storage.releases.release_store import open_store
from suffice.storage.releases.spool import open_spool
from support.releases import compose, make_plan, smallest_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from suffice.storage.ledger.charge import Charge
    from suffice.storage.ledger.ledger import Ledger

PLAN = make_plan(statistics={"a": {"family": "bernoulli", "column": "a"}})
QUOTED = "a value of row 7"


class Run:
    """A ledger with epsilon 3, a store, a spool, and one charge of epsilon 1."""

    def __init__(self, ledger: Ledger, make_request: Callable[..., Any], root: Path) -> None:
        self.ledger = ledger
        ledger.grant("flights", epsilon=Fraction(3), reason="first")
        self.store = open_store(str(root / "releases"), ledger_id=ledger.ledger_id, create=True)
        self.spool = open_spool(root / "spool")
        self.request = make_request(store_id=self.store.store_id, store_uri=self.store.uri)

    def charge(self, *, drew: bool) -> Charge:
        charge = self.ledger.reserve(self.request)
        return self.ledger.enter_drawing(charge) if drew else charge

    @property
    def state(self) -> ChargeState | None:
        known = self.ledger.find("flights", "delays", "all")
        return None if known is None else known.state

    @property
    def spent_and_reserved(self) -> tuple[Any, Any]:
        account = self.ledger.account("flights")
        return account.spent, account.reserved

    def gives_back(self, error: BaseException, stage: str = "reading") -> str:
        failure = give_back(self.ledger, self.store, self.spool, self.charge(drew=False), stage, error)
        interrupted = isinstance(error, KeyboardInterrupt)
        assert type(failure) is (ReleaseInterruptedError if interrupted else StageFailedError)
        return str(failure)

    def spends(self, error: Exception, stage: str = "drawing") -> str:
        failure = spend(self.ledger, self.store, self.spool, self.charge(drew=True), stage, error)
        assert type(failure) is StageFailedError
        return str(failure)


@pytest.fixture
def ledger_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/ledger.db"


@pytest.fixture
def run(ledger_factory: Callable[[], Ledger], make_request: Callable[..., Any], tmp_path: Path) -> Run:
    return Run(ledger_factory(), make_request, tmp_path)


@pytest.mark.parametrize(
    ("error", "stage", "says"),
    [
        (ValueError(QUOTED), "reading", "the data could not be read"),
        (ValueError(QUOTED), "preflight", "the release could not be prepared"),
        (ClusterError("the cluster is gone"), "reading", "the cluster is gone"),
        (KeyboardInterrupt(QUOTED), "reading", "interrupted"),
    ],
)
def test_epsilon_returns_before_the_draw(run: Run, error: BaseException, stage: str, says: str) -> None:
    text = run.gives_back(error, stage)
    assert says in text
    assert "its epsilon was returned" in text
    assert QUOTED not in text, "an error that is none of ours may quote data"
    assert run.state is ChargeState.ABANDONED
    assert run.spent_and_reserved == (0, 0)


def test_a_ledger_that_contradicts_itself_keeps_the_reservation(run: Run) -> None:
    """Another copy of the ledger may have drawn for this very charge."""
    assert "its epsilon stays reserved" in run.gives_back(LedgerCorruptError("an older copy"), "preflight")
    assert run.state is ChargeState.RESERVED
    assert run.spent_and_reserved == (0, 1)


def test_epsilon_is_spent_where_noise_may_have_been_drawn(run: Run) -> None:
    text = run.spends(ValueError(QUOTED))
    assert "epsilon 1 is spent" in text
    assert QUOTED not in text
    assert run.state is ChargeState.ABANDONED
    assert run.spent_and_reserved == (1, 0)


@pytest.mark.parametrize(
    ("error", "stage", "says"),
    [
        (LedgerError("the ledger cannot be reached"), "staging", "until a rerun on this host settles it"),
        (ChargeLostError("lost"), "staging", "another run has taken over this charge"),
        (StoreError("the store cannot be reached"), "publishing", "run the same command again"),
    ],
)
def test_what_is_unknown_is_left_to_whoever_can_settle_it(
    run: Run, error: Exception, stage: str, says: str
) -> None:
    text = run.spends(error, stage)
    assert says in text
    assert str(error) in text or not isinstance(error, LedgerError | StoreError)
    assert run.state is ChargeState.DRAWING
    assert run.spent_and_reserved[0] + run.spent_and_reserved[1] == 1


def test_what_another_run_published_is_no_failure(run: Run) -> None:
    (smallest,) = smallest_files(PLAN)
    noisy = b"n" * smallest.size
    file = replace(smallest, sha256=hashlib.sha256(noisy).hexdigest())
    charge = run.charge(drew=True)
    lost = ChargeLostError("lost")
    assert published_by_another(run.ledger, charge, lost) is None, "not yet"
    run.store.write_data("delays", "all", charge.release_id, "a", noisy, rows=1)
    staged = run.ledger.stage(charge, compose(PLAN, [file]))
    published = publish(run.ledger, run.store, None, staged)
    assert published.state is ChargeState.PUBLISHED
    assert published_by_another(run.ledger, charge, ValueError()) is None, "another failure"
    by_another = published_by_another(run.ledger, charge, lost)
    assert by_another is not None
    assert by_another.charge_id == charge.charge_id
