"""A checkpoint saves an examination the past, and nobody what is found by looking at all of it."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from suffice.storage.ledger.replay import Books, export_lines, read_export
from support.charging import MANIFEST, drawn, published
from support.ledger_sql import execute, rows, tamper, tampered

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.storage.ledger.charge import ChargeRequest
    from suffice.storage.ledger.ledger import Ledger

    MakeRequest = Callable[..., ChargeRequest]

CHECKPOINT = 18
"""Its entry in the ledger that the tests begin with."""


@pytest.fixture
def marked(ledger: Ledger, make_request: MakeRequest) -> Ledger:
    """A ledger with a checkpoint among charges in every state, on either side of it."""
    ledger.grant("taxis", epsilon=Fraction(5), per_window="day:month:UTC", sources=["/taxis"], reason="x")

    def taxis(name: str, month: str) -> ChargeRequest:
        return make_request(dataset="taxis", name=name, window=month, source="/taxis")

    published(ledger, make_request(name="a"))
    published(ledger, taxis("b", "2013-01"))
    open_then = [ledger.reserve(make_request(name="c")), drawn(ledger, taxis("d", "2013-02"))]
    staged = ledger.stage(drawn(ledger, taxis("e", "2013-02")), MANIFEST)
    assert ledger.add_checkpoint().problems == ()
    ledger.abandon(open_then[0], reason="x")
    ledger.stage(open_then[1], MANIFEST)
    ledger.publish(staged)
    published(ledger, taxis("b", "2013-03"))
    ledger.reserve(taxis("f", "2013-02"))
    return ledger


def test_an_examination_goes_on_from_the_checkpoint(marked: Ledger) -> None:
    full, brief = marked.examine(full=True), marked.examine()
    assert (full.problems, brief.problems) == ((), ())
    assert full.head == brief.head == marked.head()
    assert (full.since, brief.since) == (0, CHECKPOINT)
    later = marked.add_checkpoint()
    assert (later.problems, later.since, later.head) == ((), CHECKPOINT, marked.head())
    assert marked.examine().since == later.head.sequence
    assert marked.verify() == ()


def test_a_checkpoint_is_an_entry_that_says_nothing_to_the_public(marked: Ledger) -> None:
    (line,) = [json.loads(line) for line in export_lines(marked.entries()) if '"checkpoint"' in line]
    assert line["payload"] == {}
    assert read_export("\n".join(export_lines(marked.entries()))).verify() == ()


SINCE = [
    ("UPDATE accounts SET spent = spent + 1", "accounts "),
    ("UPDATE accounts SET sources = '[]'", "accounts taxis: sources differ"),
    ("UPDATE windows SET spent = 0 WHERE \"window\" = '2013-01'", "windows taxis 2013-01"),
    ("UPDATE charges SET state = 'published' WHERE name = 'd'", "state differ"),
    ("UPDATE charges SET drew = true WHERE name = 'c'", "drew differ"),
    ("DELETE FROM charges WHERE name = 'a'", ""),
    ("UPDATE entries SET payload = '{}' WHERE sequence = 21", "entry 21 was altered"),
    ("DELETE FROM staged_manifests", "staged_manifests"),
    ("UPDATE accounts SET stores = '[\"/x\"]'", "stores differ"),
    ("UPDATE accounts SET checksums = '/x'", "checksums differ"),
    ("UPDATE stores SET retired = NOT retired", "stores store-1: retired differ"),
    ("UPDATE stores SET last_marker = 0, uri = '/x'", "stores store-1: last_marker, uri differ"),
    ("DELETE FROM stores", "stores store-1: the entries have it, the table does not"),
    ("UPDATE charges SET spool_id = 'x' WHERE name = 'd'", "spool_id differ"),
    ("UPDATE checkpoints SET state = 'x'", "the last checkpoint was altered"),
    (
        "UPDATE entries SET time = '2020-01-01T00:00:00Z' WHERE sequence = 18",
        "the last checkpoint was altered",
    ),
    ("UPDATE checkpoints SET sequence = 17", "the last checkpoint was altered"),
]
BEFORE = [
    ("UPDATE entries SET payload = '{}' WHERE sequence = 3", "entry 3 was altered"),
    ("UPDATE charges SET store_id = 'x' WHERE name = 'a'", "store_id differ"),
]


@pytest.mark.slow
def test_what_was_changed_since_is_named_and_what_was_before_in_full(marked: Ledger, ledger_url: str) -> None:
    for statement, problem in SINCE:
        with tampered(ledger_url, statement):
            brief, full = marked.examine().problems, marked.verify()
        assert any(problem in found for found in brief), (statement, brief)
        assert full != (), statement
    for statement, problem in BEFORE:  # the control: exactly this is what a checkpoint trusts
        with tampered(ledger_url, statement):
            brief, full = marked.examine().problems, marked.verify()
        assert brief == (), statement
        assert any(problem in found for found in full), (statement, full)
    assert marked.verify() == marked.examine().problems == ()


def test_a_false_checkpoint_is_named_whenever_everything_is_recomputed(
    marked: Ledger, ledger_url: str, make_request: MakeRequest
) -> None:
    tamper(ledger_url, "UPDATE charges SET charged = 1 WHERE name = 'f'")
    assert marked.add_checkpoint().problems != ()
    assert marked.head().sequence == marked.examine().head.sequence
    tamper(ledger_url, "UPDATE charges SET charged = 1000000 WHERE name = 'f'")
    genuine = Books.state
    with pytest.MonkeyPatch.context() as patch:  # a forger seals a state in which less is spent
        patch.setattr(
            Books, "state", lambda books: genuine(books).replace('"micro_spent":1000000', '"micro_spent":0')
        )
        forged = marked.add_checkpoint()
    assert forged.problems == ()
    published(marked, make_request(name="later"))
    assert (
        f"entry {forged.head.sequence} breaks a rule of the ledger: a checkpoint is what was"
        in marked.verify()
    )


@pytest.mark.usefixtures("marked")
def test_a_checkpoint_never_goes_back(ledger_url: str) -> None:
    for statement in (
        "UPDATE checkpoints SET sequence = 1",
        "UPDATE checkpoints SET state = 'x'",
        "DELETE FROM checkpoints",
    ):
        with pytest.raises(Exception, match=r"never back|append-only"):
            execute(ledger_url, statement)
    assert rows(ledger_url, "SELECT id, sequence FROM checkpoints") == [(1, CHECKPOINT)]


def test_rows_without_entries_are_named_among_many(marked: Ledger, ledger_url: str) -> None:
    columns = 'name, dataset, "window", amendment, attempt + 1, charged, state, marked, drew, epoch, holder, '
    names = columns.replace(" + 1", "")
    rest = "holder_process, lease_expires, plan_hash, store_id, store_uri, reserved_sequence, created_at"
    with tampered(
        ledger_url,
        f"INSERT INTO charges (charge_id, release_id, {names}{rest}) "  # noqa: S608
        f"SELECT 'extra', 'extra', {columns}{rest} FROM charges WHERE name = 'c'",
    ):
        for problems in (marked.examine().problems, marked.verify()):
            assert "charges extra: the table has it, the entries do not" in problems
