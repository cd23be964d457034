from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256

import pytest

from suffice.storage.ledger.chain import (
    START_HASH,
    Entry,
    EntryKind,
    Head,
    canonical_json,
    check_chain,
    next_entry,
    public_entry,
)

MOMENT = datetime(2026, 1, 31, 8, 4, 59, 999999, tzinfo=UTC)


def chain(length: int) -> tuple[list[Entry], Head]:
    entries, head = [], Head()
    for index in range(length):
        entry = next_entry(head, EntryKind.GRANT, MOMENT, {"dataset": "a", "micro_granted": index})
        head = Head(sequence=entry.sequence, hash=entry.hash)
        entries.append(entry)
    return entries, head


def test_the_hash_is_the_documented_one() -> None:
    entry = chain(1)[0][0]
    salt = json.loads(entry.payload)["salt"]
    private = f'{{"private":{{"salt":"{salt}"}},"time":"2026-01-31T08:04:00Z"}}'
    text = (
        f'{{"commitment":"{sha256(private.encode()).hexdigest()}","hour":"2026-01-31T08Z","kind":"grant",'
        f'"payload":{{"dataset":"a","micro_granted":0}},"previous_hash":"{START_HASH}","sequence":1}}'
    )
    assert entry.hash == sha256(text.encode()).hexdigest()


def test_what_is_private_is_committed_to_and_cannot_be_guessed() -> None:
    secret = {"reason": "because", "sources": ["/srv/flights"], "store_uri": "/srv/releases"}
    first, second = (
        next_entry(Head(), EntryKind.GRANT, MOMENT, {"dataset": "a", **secret}) for _ in range(2)
    )
    public = public_entry(first)
    assert public.payload == {"dataset": "a"}
    assert public.hour == "2026-01-31T08Z"
    assert "srv" not in str(public)
    assert "because" not in str(public)
    assert public.hash == first.hash
    assert public.commitment != public_entry(second).commitment
    for name, other in (("reason", "x"), ("sources", []), ("store_uri", "/srv"), ("salt", "0" * 32)):
        payload = canonical_json({**json.loads(first.payload), name: other})
        assert check_chain([replace(first, payload=payload)], Head(sequence=1, hash=first.hash))


def test_times_are_coarse() -> None:
    assert chain(1)[0][0].time == "2026-01-31T08:04:00Z"


def test_an_intact_chain_has_no_problems() -> None:
    assert check_chain(*chain(9)) == ()
    assert check_chain([], Head()) == ()


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "reserved"},
        {"time": "2026-01-31T08:05:00Z"},
        {"payload": '{"dataset":"a","micro_granted":7}'},
        {"payload": '{"dataset":"a", "micro_granted":4}'},
        {"payload": "{"},
        {"payload": "[]"},
        {"hash": "0" * 64},
        {"previous_hash": "1" * 64},
        {"sequence": 40},
    ],
)
@pytest.mark.parametrize("index", [0, 4, 8])
def test_every_edit_is_found(change: dict[str, str], index: int) -> None:
    entries, head = chain(9)
    entries[index] = replace(entries[index], **change)  # type: ignore[arg-type]
    assert check_chain(entries, head)


@pytest.mark.parametrize("index", range(9))
def test_every_removal_and_every_exchange_is_found(index: int) -> None:
    entries, head = chain(9)
    assert check_chain(entries[:index] + entries[index + 1 :], head)
    if index:
        entries[index - 1], entries[index] = entries[index], entries[index - 1]
        assert check_chain(entries, head)


def test_an_entry_rewritten_with_its_own_hash_breaks_the_next() -> None:
    entries, head = chain(3)
    forged = next_entry(
        Head(sequence=1, hash=entries[0].hash), EntryKind.GRANT, MOMENT, {"micro_granted": 10**9}
    )
    problems = check_chain([entries[0], forged, entries[2]], head)
    assert problems == ("entry 3 does not continue the entry before it",)
