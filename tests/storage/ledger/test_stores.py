"""What a ledger remembers of stores: each it charged for, how far it knows its markers, who gave it up."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from suffice.errors import GuaranteeError, UsageError, WrongStoreError
from suffice.storage.ledger.replay import export_lines, read_export
from support.ledger_sql import tampered

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.storage.ledger.charge import ChargeRequest
    from suffice.storage.ledger.ledger import Ledger

    MakeRequest = Callable[..., ChargeRequest]


def known(ledger: Ledger) -> list[tuple[str, str, int, int, bool]]:
    return [
        (store.store_id, store.uri, store.first_sequence, store.last_marker, store.retired)
        for store in ledger.stores()
    ]


def test_each_store_is_remembered_from_its_first_charge(ledger: Ledger, make_request: MakeRequest) -> None:
    assert ledger.stores() == ()
    first = ledger.reserve(make_request(name="a"))
    second = ledger.reserve(make_request(name="b"))
    other = ledger.reserve(make_request(name="c", store_id="store-2", store_uri="s3://bucket/b"))
    assert known(ledger) == [("store-1", "releases", 3, 0, False), ("store-2", "s3://bucket/b", 5, 0, False)]
    ledger.enter_drawing(second)
    ledger.enter_drawing(first)  # of a lower sequence: what is known of the markers never goes back
    ledger.abandon(other, reason="x")
    assert [store.last_marker for store in ledger.stores()] == [second.reserved_sequence, 0] == [4, 0]
    assert ledger.verify() == ()


def test_owners_adopt_and_retire(ledger: Ledger, make_request: MakeRequest) -> None:
    charge = ledger.reserve(make_request(name="a"))
    ledger.adopt_store("store-1", uri="/moved")
    ledger.adopt_store("store-1", uri="/moved")  # again: no entry
    ledger.retire_store("store-1", reason="secret-reason")
    ledger.retire_store("store-1", reason="again")
    assert known(ledger) == [("store-1", "/moved", 3, 0, True)]
    with pytest.raises(WrongStoreError, match="was retired by its owner"):
        ledger.reserve(make_request(name="b"))
    assert ledger.account("flights").reserved == 1
    assert ledger.enter_drawing(charge).drew  # what was begun is carried to its end
    ledger.adopt_store("store-1", uri="/moved")
    ledger.reserve(make_request(name="b"))
    kinds = [entry.kind for entry in ledger.entries()][3:]
    assert kinds == ["store_adopted", "store_retired", "drawing", "store_adopted", "reserved"]
    assert ledger.verify() == ()
    export = list(export_lines(ledger.entries()))
    assert read_export("\n".join(export)).verify() == ()
    assert not any("/moved" in line or "secret-reason" in line for line in export)


def test_what_was_never_charged_for_is_neither_adopted_nor_retired(ledger: Ledger) -> None:
    with pytest.raises(UsageError, match="charged for no store"):
        ledger.adopt_store("x", uri="/moved")
    with pytest.raises(UsageError, match="charged for no store"):
        ledger.retire_store("x", reason="gone")
    with pytest.raises(UsageError, match="needs a reason"):
        ledger.retire_store("x", reason=" ")
    assert len(list(ledger.entries())) == 2


def test_stores_that_the_entries_do_not_imply_are_named(
    ledger: Ledger, make_request: MakeRequest, ledger_url: str
) -> None:
    ledger.enter_drawing(ledger.reserve(make_request()))
    changes = (
        "UPDATE stores SET uri = '/other'",
        "UPDATE stores SET last_marker = 0",
        "UPDATE stores SET last_marker = 4",
        "UPDATE stores SET retired = NOT retired",
        "DELETE FROM stores",
        "UPDATE accounts SET stores = '[\"/x\"]'",
    )
    for change in changes:
        with tampered(ledger_url, change):
            assert len(ledger.verify()) == 1, change
    assert ledger.verify() == ()


def test_pinned_stores_are_compared_by_path_components(ledger: Ledger, make_request: MakeRequest) -> None:
    assert ledger.allowed_stores("flights") == ledger.allowed_stores("nobody") == ()
    pins = ["/srv/releases", "s3://bucket/a/"]
    account = ledger.grant("flights", epsilon=Fraction(3), stores=pins, reason="pin")
    assert account.stores == ledger.allowed_stores("flights") == tuple(pins)
    for uri in ("/srv/releases", "/srv/releases/2026", "s3://bucket/a", "s3://bucket/a/b"):
        ledger.check(make_request(store_uri=uri))
    for uri in ("/srv/releases2", "/srv", "s3://bucket/ab", "/srv/releases/../x", "releases"):
        for ask in (ledger.check, ledger.reserve):
            with pytest.raises(GuaranteeError, match="does not allow the store") as caught:
                ask(make_request(store_uri=uri))
            assert caught.value.exit_status == 3
    assert ledger.stores() == ()
    ledger.grant("flights", epsilon=Fraction(3), stores=pins, reason="again")
    assert ledger.grant("flights", epsilon=Fraction(4), reason="more").stores == tuple(pins)
    assert ledger.grant("flights", epsilon=Fraction(4), stores=[], reason="any").stores == ()
    assert [entry.kind for entry in ledger.entries()].count("grant") == 4
    with pytest.raises(UsageError, match="cannot be empty"):
        ledger.grant("flights", epsilon=Fraction(4), stores=[""], reason="x")
    assert ledger.verify() == ()


def test_unfinished_charges_are_those_of_one_store(ledger: Ledger, make_request: MakeRequest) -> None:
    for name in ("a", "b"):
        ledger.reserve(make_request(name=name))
    drawing = ledger.enter_drawing(ledger.reserve(make_request(name="c", store_id="store-2")))
    assert [charge.name for charge in ledger.unfinished("store-1")] == ["a", "b"]
    assert [charge.charge_id for charge in ledger.unfinished("store-2")] == [drawing.charge_id]
    ledger.stage(drawing, b"{}")
    assert ledger.unfinished("store-2") == []
