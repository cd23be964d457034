"""Contracts and witnesses of accounts, on every implementation of the ledger."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from suffice.errors import GuaranteeError, UsageError
from suffice.pipeline.terms.declaration.data_contract import parse_contract
from suffice.storage.ledger.account import NamedAudit
from suffice.storage.ledger.chain import public_entry
from suffice.storage.ledger.replay import export_lines, read_export
from support.ledger_sql import REFUSALS, execute

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.pipeline.terms.declaration.data_contract import DataContract
    from suffice.storage.ledger.charge import ChargeRequest
    from suffice.storage.ledger.ledger import Ledger

DOCUMENT: dict[str, Any] = {
    "columns": {"day": "date", "delay": "floating"},
    "unit": "row",
    "window": {"column": "day", "time_zone": "UTC"},
    "source": {"kind": "parquet"},
}


def contract(**changes: Any) -> DataContract:
    return parse_contract(json.dumps({**DOCUMENT, **changes}), "contract")


def grant(ledger: Ledger, stated: DataContract | None, dataset: str = "stated", **terms: Any) -> Any:
    terms = {"unwitnessed": True, "epsilon": Fraction(3), "reason": "x", **terms}
    return ledger.grant(dataset, contract=stated, **terms)


def test_a_contract_is_kept_exported_and_verified(ledger: Ledger) -> None:
    assert ledger.contract("stated") is None
    assert grant(ledger, contract()).contract == contract()
    assert grant(ledger, None, epsilon=Fraction(4)).contract == contract(), "left out it stays"
    assert ledger.contract("stated") == contract()
    last = list(ledger.entries())[-1]
    public = public_entry(last).payload
    assert public["contract_sha256"] == contract().sha256
    assert "contract" not in public
    assert "delay" not in json.dumps(public), "names of columns are behind the commitment"
    export = read_export("\n".join(export_lines(ledger.entries())))
    assert export.verify() == ()
    assert ledger.add_checkpoint().problems == ()
    assert ledger.verify() == ()


def test_a_contract_gains_columns_and_takes_nothing_back(ledger: Ledger) -> None:
    grant(ledger, contract())
    more = {**DOCUMENT["columns"], "gate": "text"}
    assert grant(ledger, contract(columns=more)).contract == contract(columns=more)
    for changes in (
        {},
        {"columns": {**more, "delay": "text"}},
        {"columns": more, "window": None},
        {"columns": more, "window": {"column": "day", "time_zone": "Europe/Berlin"}},
        {"columns": more, "source": {"kind": "csv"}},
    ):
        with pytest.raises(GuaranteeError, match="fixed"):
            grant(ledger, contract(**changes))
    assert ledger.contract("stated") == contract(columns=more)


def test_a_contract_is_of_the_accounts_unit_and_windows(ledger: Ledger) -> None:
    with pytest.raises(UsageError, match="has the unit row, the account"):
        grant(ledger, contract(), unit="column:delay")
    with pytest.raises(UsageError, match="states that column and time zone"):
        grant(ledger, contract(), per_window="day:month:Europe/Berlin", sources=["/a"])
    assert grant(ledger, contract(), per_window="day:month:UTC", sources=["/a"]).contract == contract()
    units = contract(unit="column:delay")
    assert grant(ledger, units, "people").unit == "column:delay", "the first grant takes its unit from it"


def test_something_guards_an_account_with_a_contract(ledger: Ledger) -> None:
    without: tuple[dict[str, Any], ...] = ({}, {"stores": []}, {"witness": ""})
    for pins in without:
        with pytest.raises(UsageError, match="nothing guards the account stated"):
            grant(ledger, contract(), unwitnessed=False, **pins)
    account = grant(ledger, contract(), unwitnessed=False, witness="s3://audit/witness")
    assert (account.witness, account.is_guarded) == ("s3://audit/witness", True)
    assert grant(ledger, None, witness="").is_guarded is False
    assert grant(ledger, None, stores=["/releases"], unwitnessed=False).is_guarded is True
    assert grant(ledger, None, "plain", stores=["/releases"]).is_guarded is False, "a fresh store below it"
    assert ledger.verify() == ()


def test_a_charge_is_of_the_contract_that_is_granted(
    ledger: Ledger, make_request: Callable[..., ChargeRequest]
) -> None:
    ledger.grant("flights", epsilon=Fraction(3), contract=contract(), unwitnessed=True, reason="x")
    for stale in (None, contract(columns={**DOCUMENT["columns"], "gate": "text"}).sha256):
        request = make_request(contract=stale)
        for refused in (ledger.check, ledger.reserve):
            with pytest.raises(GuaranteeError, match="changed since this run began"):
                refused(request)
    assert ledger.reserve(make_request(contract=contract().sha256)).loss.epsilon
    assert ledger.verify() == ()


def test_a_database_keeps_a_contract_and_an_altered_one_is_named(ledger: Ledger, ledger_url: str) -> None:
    grant(ledger, contract())
    where = "WHERE dataset = 'stated'"
    with pytest.raises(REFUSALS, match="keeps one"):
        execute(ledger_url, f"UPDATE accounts SET contract = NULL, contract_sha256 = NULL {where}")  # noqa: S608
    altered = contract(columns={**DOCUMENT["columns"], "name": "text"}).canonical
    execute(ledger_url, f"UPDATE accounts SET contract = '{altered}' {where}")  # noqa: S608
    assert any("contract differ from the entries" in problem for problem in ledger.verify())


def test_an_audit_is_named_kept_exported_and_verified(ledger: Ledger, ledger_url: str) -> None:
    first, second = (NamedAudit(sha256=digit * 64, plan_hash="c" * 64) for digit in "ab")
    assert grant(ledger, None).audit is None
    assert grant(ledger, None, audit=first).audit == first
    assert grant(ledger, None, epsilon=Fraction(4)).audit == first, "left out it stays"
    assert grant(ledger, None, audit=second).audit == second, "epsilon is as it was: a grant repeats all"
    public = public_entry(list(ledger.entries())[-1]).payload
    assert (public["audit_sha256"], public["audit_plan_hash"]) == (second.sha256, second.plan_hash)
    assert read_export("\n".join(export_lines(ledger.entries()))).verify() == ()
    assert ledger.add_checkpoint().problems == ()
    assert ledger.verify() == ()
    execute(ledger_url, f"UPDATE accounts SET audit_sha256 = '{first.sha256}' WHERE dataset = 'stated'")  # noqa: S608
    assert any("audit_sha256 differ from the entries" in problem for problem in ledger.verify())
