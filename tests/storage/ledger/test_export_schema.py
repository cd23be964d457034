"""Lines of real exports are as the schema says, on each engine, and a changed one is not."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from scripts.schemas.__main__ import SCHEMAS
from suffice.storage.ledger.chain import SALT, EntryKind
from suffice.storage.ledger.charge import LostCharge, Reconciled, release_id
from suffice.storage.ledger.replay import export_lines
from support.charging import MANIFEST, drawn, published
from support.manifest_mutants import DELETED, changed, paths

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.storage.ledger.charge import ChargeRequest
    from suffice.storage.ledger.ledger import Ledger

    MakeRequest = Callable[..., ChargeRequest]

MONTH = "2013-01"
STORE = "0123456789abcdef" * 2
OTHERS: tuple[Any, ...] = (DELETED, None, True, -1, "x", {})


def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads((SCHEMAS / "ledger-export-1.json").read_text()))


def of_every_kind(ledger: Ledger, other: Ledger, make_request: MakeRequest) -> list[dict[str, Any]]:
    """Return the export of a ledger to which all has happened that an entry can record."""
    terms = {"window": MONTH, "store_id": STORE}
    published(ledger, make_request(**terms))
    again = ledger.stage(drawn(ledger, make_request(**terms, amendment=1)), MANIFEST)
    other.publish(other.take_over(again))
    ledger.abandon(ledger.reserve(make_request(name="b", store_id=STORE)), reason="x")
    ledger.adopt_store(STORE, uri="/moved")
    ledger.reconcile([lost_after(ledger)], beyond=ledger.head().sequence + 2, reason="x")
    ledger.retire_store(STORE, reason="x")
    assert ledger.add_checkpoint().problems == ()
    return [json.loads(line) for line in export_lines(ledger.entries())]


def lost_after(ledger: Ledger) -> LostCharge:
    """Return a charge that a store shows and this ledger lacks: its first one, under another id and name."""
    reserved = [entry for entry in ledger.entries() if entry.kind == EntryKind.RESERVED][0]  # noqa: RUF015 - all are read
    plan = '{"lost":true}'
    stated = {
        **{name: value for name, value in json.loads(reserved.payload).items() if name != SALT},
        "charge_id": "c" * 32,
        "release_id": release_id(ledger.ledger_id, "c" * 32),
        "name": "lost",
        "plan_hash": hashlib.sha256(plan.encode()).hexdigest(),
        "store_uri": "/moved",
    }
    named = Reconciled(
        charge_id="c" * 32,
        marker_sequence=reserved.sequence,
        marker_hash=reserved.hash,
        drawing_sequence=None,
        drawing_hash=None,
    )
    return LostCharge(named=named, reserved=stated, plan_json=plan, manifest=None)


@pytest.mark.slow
def test_lines_of_an_export_are_as_the_schema_says_and_changed_ones_are_not(
    ledger: Ledger, ledger_factory: Callable[[], Ledger], make_request: MakeRequest
) -> None:
    schema = validator()
    lines = of_every_kind(ledger, ledger_factory(), make_request)
    assert {line["kind"] for line in lines} == set(EntryKind)
    for line in lines:
        schema.validate(line)
    first = {line["kind"]: line for line in lines}
    refused = 0
    for kind, line in first.items():
        for more in ({**line, "note": "x"}, {**line, "payload": {**line["payload"], "reason": "x"}}):
            assert not schema.is_valid(more), kind
        for path in paths(line):
            for value in OTHERS:
                if _may_be(path, value) or (path[0] != "payload" and kind != "grant"):
                    continue
                assert not schema.is_valid(changed(line, path, value)), (kind, path, value)
                refused += 1
    assert refused > 200


def _may_be(path: tuple[str | int, ...], value: object) -> bool:
    """Return whether a value has the form of what a line has at a place."""
    if path == ("payload",):
        return value == {}  # of a checkpoint, and of what was skipped
    if path[-1] in {"units_disjoint", "draw_returned"}:
        return value is True
    texts = {"dataset", "name", "window", "unit", "per_window", "zone_data"}
    nulls = {"per_window", "amends", "amended_sha256", "drawing_sequence", "drawing_hash"}
    nulls |= {"max_windows", "zone_data", "contract_sha256", "audit_sha256", "audit_plan_hash"}
    return (path[-1] in texts and isinstance(value, str)) or (path[-1] in nulls and value is None)
