"""Transactions of the ledger on a server: what is tried again, what is unknown, what runs together."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from threading import Barrier, Thread
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from suffice.errors import (
    LedgerError,
    SufficeError,
)
from suffice.storage.ledger.opening import create_ledger, open_ledger
from suffice.storage.ledger.sql.sql_ledger import SqlLedger
from suffice.storage.ledger.sql.transactions import TransactionPatience

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Connection

    from suffice.storage.ledger.charge import ChargeRequest
    from suffice.storage.ledger.ledger import Ledger

    MakeRequest = Callable[..., ChargeRequest]

PASSWORD = "c0rrect-horse"  # noqa: S105


@pytest.fixture
def ledger(postgres_url: str) -> Iterator[SqlLedger]:
    with create_ledger(postgres_url) as ledger:
        assert isinstance(ledger, SqlLedger)
        ledger.grant("flights", epsilon=Fraction(3), reason="x")
        yield ledger


class Injected:
    """Raises an error of the server in place of the next statements of one kind."""

    def __init__(self, ledger: SqlLedger, state: str, times: int) -> None:
        self.left = times
        self.state = state
        event.listen(ledger._engine, "before_cursor_execute", self.fail, retval=True)

    def fail(self, _c: object, _k: object, statement: str, parameters: Any, *_: Any) -> tuple[str, Any]:
        if statement.startswith("INSERT INTO entries") and self.left:
            self.left -= 1
            raised = f"DO $$ BEGIN RAISE EXCEPTION 'injected' USING ERRCODE = '{self.state}'; END $$"
            return raised, ()
        return statement, parameters


@pytest.mark.slow
@pytest.mark.parametrize("state", ["40001", "40P01"])
def test_a_serialization_failure_is_tried_again(
    ledger: SqlLedger, make_request: MakeRequest, state: str
) -> None:
    injected = Injected(ledger, state, times=10)
    ledger._patience = TransactionPatience(repeating=60)
    charge = ledger.enter_drawing(ledger.reserve(make_request()))
    assert injected.left == 0
    ledger.publish(ledger.stage(charge, b"{}"))
    account = ledger.account("flights")
    assert (ledger.count_charges("flights"), account.spent, account.reserved) == (1, Fraction(1), Fraction(0))
    assert ledger.verify() == ()


def test_serialization_failures_without_end_are_an_error(
    ledger: SqlLedger, make_request: MakeRequest
) -> None:
    Injected(ledger, "40001", times=1000)
    ledger._patience = TransactionPatience(repeating=0.2)
    with pytest.raises(LedgerError, match="its code is 40001"):
        ledger.reserve(make_request())
    assert list(ledger.charges("flights")) == []


def test_other_failures_are_not_tried_again(ledger: SqlLedger, make_request: MakeRequest) -> None:
    injected = Injected(ledger, "53100", times=2)
    with pytest.raises(LedgerError, match="no space is left on the disk of the ledger's server"):
        ledger.reserve(make_request())
    assert injected.left == 1


def test_a_refusal_at_the_commit_is_no_unknown_outcome(ledger: SqlLedger, make_request: MakeRequest) -> None:
    def spoil(connection: Connection) -> None:
        connection.exec_driver_sql("UPDATE accounts SET reserved = reserved + 1")

    event.listen(ledger._engine, "commit", spoil)
    with pytest.raises(LedgerError, match="balances are the sums of charges") as caught:
        ledger.reserve(make_request())
    assert type(caught.value) is LedgerError
    event.remove(ledger._engine, "commit", spoil)
    assert list(ledger.charges("flights")) == []
    assert ledger.reserve(make_request()).state == "reserved"


def test_a_commit_that_fails_without_an_answer_from_the_server_is_unknown(
    ledger: SqlLedger, make_request: MakeRequest
) -> None:
    def fail(_: Connection) -> None:
        raise OperationalError("COMMIT", None, psycopg.OperationalError("no answer"))

    event.listen(ledger._engine, "commit", fail)
    with pytest.raises(SufficeError, match="counts as spent"):
        ledger.reserve(make_request())


def together(*calls: Callable[[], object]) -> list[object]:
    """Make all calls at once; return their results and errors."""
    barrier = Barrier(len(calls))
    results: list[object] = [None] * len(calls)

    def run(index: int, call: Callable[[], object]) -> None:
        barrier.wait()
        try:
            results[index] = call()
        except SufficeError as error:
            results[index] = error

    threads = [Thread(target=run, args=numbered) for numbered in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_two_first_grants_make_one_account(ledger: Ledger, postgres_url: str) -> None:
    with open_ledger(postgres_url) as other:
        for number in range(8):
            dataset = f"d{number}"
            first, second = together(
                partial(ledger.grant, dataset, epsilon=Fraction(1), reason="x"),
                partial(other.grant, dataset, epsilon=Fraction(1), reason="x"),
            )
            assert first == second == ledger.account(dataset)
    assert ledger.verify() == ()


def test_two_datasets_that_want_one_name(
    ledger: Ledger, postgres_url: str, make_request: MakeRequest
) -> None:
    ledger.grant("flights", epsilon=Fraction(100), reason="x")
    ledger.grant("taxis", epsilon=Fraction(100), reason="x")
    with open_ledger(postgres_url) as other:
        for number in range(8):
            results = together(
                partial(ledger.reserve, make_request(name=f"n{number}")),
                partial(other.reserve, make_request(dataset="taxis", name=f"n{number}")),
            )
            assert sorted(type(result).__name__ for result in results) == ["Charge", "NameTakenError"]
    assert ledger.verify() == ()


@pytest.mark.slow
def test_concurrent_transactions_do_not_end_one_another(
    ledger: Ledger, postgres_url: str, make_request: MakeRequest
) -> None:
    """All moves at once, in both kinds of account: no deadlock, so that nothing had to be tried again."""
    ledger.grant("flights", epsilon=Fraction(1000), reason="x")
    ledger.grant("taxis", epsilon=Fraction(1000), per_window="day:month:UTC", sources=["/data"], reason="x")

    def life(opened: Ledger, dataset: str, prefix: str) -> int:
        window = "all" if dataset == "flights" else "2013-01"
        for number in range(10):
            charge = opened.reserve(make_request(dataset=dataset, name=f"{prefix}{number}", window=window))
            opened.renew(charge)
            if number % 3 == 0:
                opened.abandon(charge, reason="x")
                continue
            charge = opened.stage(opened.enter_drawing(charge), b"{}")
            opened.publish(opened.take_over(charge))
        return 10

    with open_ledger(postgres_url) as other:
        for opened in (ledger, other):
            assert isinstance(opened, SqlLedger)
            opened._patience = TransactionPatience(repeating=-1)
        results = together(
            lambda: life(ledger, "flights", "a"),
            lambda: life(other, "flights", "b"),
            lambda: life(ledger, "taxis", "c"),
            lambda: life(other, "taxis", "d"),
        )
    assert results == [10, 10, 10, 10]
    assert ledger.verify() == ()
