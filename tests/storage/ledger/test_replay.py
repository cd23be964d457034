"""A chain may be well formed and still tell what the ledger could never have done."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from suffice.storage.ledger.chain import Entry, EntryKind, Head, next_entry
from suffice.storage.ledger.charge import release_id
from suffice.storage.ledger.replay import replay

LEDGER = "f" * 32
Step = tuple[str, dict[str, Any]]

CREATED: Step = ("created", {"ledger_id": LEDGER, "format_version": 1})


def grant(**fields: Any) -> Step:
    values = {"dataset": "d", "neighboring": "add_or_remove_one", "unit": "row", "per_window": None}
    more = {"units_disjoint": False, "sources": [], "micro_granted": 3, "reason": "x", "failed_readings": 10}
    return "grant", {**values, **more, **fields}


def reserved(charge_id: str = "c1", **fields: Any) -> Step:
    values = {
        "charge_id": charge_id,
        "release_id": release_id(LEDGER, charge_id),
        "dataset": "d",
        "name": charge_id,
        "window": "all",
        "amendment": 0,
        "amends": None,
        "amended_sha256": None,
        "attempt": 1,
        "micro_epsilon": 2,
        "plan_hash": "p",
        "store_id": "s",
        "store_uri": "u",
    }
    return "reserved", {**values, **fields}


def step(kind: str, epoch: int = 1, **fields: Any) -> Step:
    return kind, {"charge_id": "c1", "epoch": epoch, **fields}


DRAWING, STAGED, PUBLISHED = step("drawing"), step("staged", manifest_sha256="m"), step("published")


def chain(*steps: Step) -> list[Entry]:
    entries, head = [], Head()
    for kind, payload in steps:
        entry = next_entry(head, EntryKind(kind), datetime(2026, 1, 31, tzinfo=UTC), payload)
        entries.append(entry)
        head = Head(sequence=entry.sequence, hash=entry.hash)
    return entries


def test_a_lawful_history_replays_to_its_state() -> None:
    taken_over = step("taken_over", epoch=2)
    later = [
        step("drawing", epoch=2),
        step("staged", epoch=2, manifest_sha256="m"),
        step("published", epoch=2),
    ]
    books, problems = replay(chain(CREATED, grant(), reserved(), taken_over, *later))
    assert problems == ()
    account, charge = books.accounts["d",], books.charges["c1",]
    assert (account["spent"], account["reserved"]) == (2, 0)
    assert (charge["state"], charge["epoch"], charge["drawing_sequence"]) == ("published", 2, 5)
    assert charge["manifest_sha256"] == "m"


@pytest.mark.parametrize(
    "steps",
    [
        [grant()],
        [CREATED, CREATED],
        [CREATED, reserved()],
        [CREATED, grant(micro_granted=1), reserved()],
        [CREATED, grant(), reserved(), reserved("c2")],
        [CREATED, grant(), reserved(), grant(micro_granted=1)],
        [CREATED, grant(per_window="day:month:UTC"), reserved(window="1"), reserved("c2")],
        [CREATED, grant(), grant(dataset="e"), reserved(name="n"), reserved("c2", dataset="e", name="n")],
        [CREATED, grant(), reserved(release_id="0" * 16)],
        [CREATED, grant(), reserved(), STAGED],
        [CREATED, grant(), reserved(), DRAWING, DRAWING],
        [CREATED, grant(), reserved(), DRAWING, PUBLISHED],
        [CREATED, grant(), reserved(), step("drawing", epoch=2)],
        [CREATED, grant(), reserved(), step("taken_over", epoch=3)],
        [CREATED, grant(), reserved(), step("abandoned", micro_returned=0)],
        [CREATED, grant(), reserved(), DRAWING, step("abandoned", micro_returned=2)],
        [CREATED, grant(), reserved(), DRAWING, STAGED, PUBLISHED, step("abandoned", micro_returned=0)],
        [CREATED, grant(), DRAWING],
    ],
)
def test_an_unlawful_history_is_stopped_at_its_last_entry(steps: list[Step]) -> None:
    _, problems = replay(chain(*steps))
    assert [problem.split()[1] for problem in problems] == [str(len(steps))]
