"""The ledger for the public: nothing private in it, and every change of it is found without the ledger."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from suffice.errors import LedgerCorruptError
from suffice.storage.ledger.chain import PublicEntry, canonical_json
from suffice.storage.ledger.replay import export_lines, read_export
from support.paid import Books, open_books, pay

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def books(tmp_path: Path) -> Iterator[Books]:
    opened = open_books(tmp_path)
    with opened.ledger:
        pay(opened, "a")
        charge = pay(opened, "b", until="reserved")
        opened.ledger.abandon(charge, reason="secret-failure")
        pay(opened, "c", until="staged")
        yield opened


@pytest.fixture
def lines(books: Books) -> list[str]:
    return list(export_lines(books.ledger.entries()))


def problems(lines: list[str]) -> tuple[str, ...]:
    try:
        return read_export("\n".join(lines)).verify()
    except LedgerCorruptError as error:
        return (str(error),)


def test_an_export_is_whole_and_ends_where_the_ledger_does(books: Books, lines: list[str]) -> None:
    export = read_export("\n".join(lines) + "\n")
    assert export.verify() == ()
    assert export.head == books.ledger.head()
    assert [entry.hash for entry in export.entries()] == [entry.hash for entry in books.ledger.entries()]
    assert [json.loads(line)["kind"] for line in lines[:3]] == ["created", "grant", "reserved"]


def test_nothing_private_is_exported(books: Books, lines: list[str]) -> None:
    text = "\n".join(lines)
    stored = "\n".join(entry.payload + entry.time for entry in books.ledger.entries())
    salts = [json.loads(entry.payload)["salt"] for entry in books.ledger.entries()]
    for private in (
        "secret-path",
        "secret-reason",
        "secret-failure",
        str(books.directory),
        "store_uri",
        "salt",
    ):
        assert private in stored, "the control: the ledger has it"
        assert private not in text
    assert not [salt for salt in salts if salt in text]
    for line, entry in zip(lines, books.ledger.entries(), strict=True):
        assert json.loads(line)["hour"] == entry.time[:13] + "Z"
        assert entry.time not in line
    for public in ('"micro_granted":100000000', '"micro_epsilon":1000000', '"dataset":"passengers"'):
        assert public in text


def changed_lines(lines: list[str], rng: random.Random) -> list[str]:
    """Return an export with one character, line or field another way."""
    changed, index = list(lines), rng.randrange(len(lines))
    kind = rng.choice(["character", "remove", "swap", "repeat", "field"])
    if kind == "character":
        position = rng.randrange(len(lines[index]))
        other = chr(ord(lines[index][position]) ^ 1 << rng.randrange(6))
        changed[index] = lines[index][:position] + other + lines[index][position + 1 :]
    elif kind == "remove" and index < len(lines) - 1:
        del changed[index]
    elif kind == "swap":
        other_index = (index + 1 + rng.randrange(len(lines) - 1)) % len(lines)
        changed[index], changed[other_index] = changed[other_index], changed[index]
    elif kind == "repeat":
        changed.insert(index, lines[index])
    else:
        content = json.loads(lines[index])
        content["payload"]["micro_epsilon"] = 1
        changed[index] = canonical_json(content)
    return changed


def test_every_change_of_an_export_is_found(lines: list[str]) -> None:
    rng = random.Random(2013)  # noqa: S311 - chooses what to damage
    tried = 0
    while tried < 500:
        changed = changed_lines(lines, rng)
        if changed != lines:
            tried += 1
            assert problems(changed), changed


def resealed(lines: list[str], index: int, **payload: Any) -> list[str]:
    """Return an export whose entry says something else, with all hashes from there on right again."""
    contents, previous = [json.loads(line) for line in lines], "0" * 64
    contents[index]["payload"].update(payload)
    for content in contents:
        del content["hash"]
        content["previous_hash"] = previous
        previous = PublicEntry(**content).hash
        content["hash"] = previous
    return [canonical_json(content) for content in contents]


def test_a_resealed_chain_must_still_keep_the_ledgers_rules(lines: list[str]) -> None:
    assert resealed(lines, 0) == lines
    assert problems(resealed(lines, 1, micro_granted=1))
    assert problems(resealed(lines, 2, micro_epsilon=10**9))
    assert problems(resealed(lines, 3, epoch=2))
    # What keeps the rules is found by the head, or by the releases: see operations/test_verify_ledger.py.
    assert problems(resealed(lines, 1, micro_granted=10**9)) == ()


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[]",
        "{}",
        "null",
        '{"commitment":"x"}',
        "[" * 100_000,
    ],
)
def test_what_is_no_entry_is_refused(lines: list[str], line: str) -> None:
    with pytest.raises(LedgerCorruptError, match="line 2 of the export"):
        read_export("\n".join([lines[0], line, *lines[2:]]))


@pytest.mark.parametrize(
    "change",
    [
        {"sequence": True},
        {"sequence": "2"},
        {"hour": "2026-01-31T08:15Z"},
        {"hash": "x"},
        {"payload": []},
        {"commitment": None},
        {"more": 1},
    ],
)
def test_a_field_of_another_type_is_refused(lines: list[str], change: dict[str, Any]) -> None:
    line = canonical_json({**json.loads(lines[1]), **change})
    with pytest.raises(LedgerCorruptError, match="line 2 of the export"):
        read_export("\n".join([lines[0], line, *lines[2:]]))


def test_an_empty_export_is_none(lines: list[str]) -> None:
    with pytest.raises(LedgerCorruptError):
        read_export("")
    assert read_export(lines[0]).verify() == ()
