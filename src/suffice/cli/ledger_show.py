"""What ``suffice ledger show`` prints: read and written a few charges at a time, however many there are."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from suffice.cli import output
from suffice.cli.output import say
from suffice.pipeline.terms.declaration.documents import document
from suffice.pipeline.terms.declaration.exact_numbers import format_epsilon
from suffice.pipeline.terms.declaration.wording import counted
from suffice.storage.ledger.account import counts_by_window
from suffice.storage.ledger.charge import MOST_RETURNED_DRAWS
from suffice.storage.ledger.person import person_view

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.storage.ledger.account import Account
    from suffice.storage.ledger.ledger import Ledger

CHARGE = "charge_id name window amendment attempt epsilon state held counts_as"
"""What is shown of a charge, before what it counts on."""
_JSON_ONLY = frozenset({"held", "counts_on"})
"""What a table leaves out, to fit a terminal: it follows from the other columns and the grant."""


def print_account(document: dict[str, Any]) -> None:
    """Print the head of an account as people read it."""
    say(
        f"{document['dataset']}  ({document['neighboring']}, unit {document['unit']}"
        + (f", per window of {document['per_window']})" if document["per_window"] else ")")
    )
    # Of a grant per window these are the numbers of releases that have none; windows have lines of their own.
    scope = " in each window; without a window:" if document["per_window"] else ","
    say(
        f"  granted {document['granted']}{scope} spent {document['spent']}, reserved {document['reserved']}, "
        f"remaining {document['remaining']}"
        + (f" (returned {document['returned']})" if "returned" in document else "")
    )
    if document["per_window"] and document["units_disjoint"]:
        say(
            "  units disjoint: the owner states that no unit has rows in two windows; one that has loses in "
            "each of them"
        )
    if document["sources"]:
        say(f"  sources below {', '.join(document['sources'])}")
    if document["checksums"] is not None:
        say(f"  input checked against {document['checksums']}")
    if document["stores"]:
        say(f"  releases go to {', '.join(document['stores'])}")
    contract = document["contract"]
    if contract is None:
        say("  no contract: how files are typed, and which there are, may decide a status")
    else:
        say(f"  contract {contract['sha256'][:16]}: {counted(len(contract['columns']), 'column')}")
    if document["audit"] is not None:
        audit = document["audit"]
        say(f"  audit {audit['sha256'][:16]} of the plan {audit['plan_hash'][:16]}")
    if document["witness"] is not None:
        say(f"  witness {document['witness']}")
    elif not document["guarded"]:
        say("  unwitnessed: an older copy of this ledger beside a fresh store could spend this again")


def show_person(
    ledger: Ledger, dataset: str, rows: int | None, windows: int | None, *, as_json: bool
) -> None:
    """Print what one unit of an account loses, and what was asked of it."""
    account = ledger.account(dataset)
    view = person_view(ledger, account)
    loss = format_epsilon(view.lost_by(rows, windows))
    if as_json:
        output.print_json(
            {
                "dataset": dataset,
                "unit": account.unit,
                "neighboring": account.neighboring,
                "per_window": account.per_window,
                **document(view),
                "asked": {"rows": rows, "windows": windows, "loss": loss},
            }
        )
        return
    say(f"{dataset}  ({account.neighboring}, unit {account.unit})")
    for line in view.lines:
        say(f"  {line}")
    if rows is not None or windows is not None:
        who = "a unit" if rows is None else f"a person with {counted(rows, 'row')}"
        say(f"  {who} in {counted(windows or 1, 'window')}: so far at most {loss}")
    for assumption in view.assumptions:
        say(f"  {assumption}")


def show_json(ledger: Ledger, dataset: str | None, last: int | None) -> None:
    """Print one JSON document of all accounts, or one.

    Every number follows from the charges: what is spent, reserved or returned is the sum of the epsilon of
    those whose `counts_as` says so, over the charges whose `counts_on` is ``account`` for the account's own
    numbers, or the window for a window's; `held` is what a charge takes now.
    """
    say('{"accounts": [', end="")
    for number, account in enumerate(ledger.accounts(dataset)):
        head = _one_line(_document(ledger, account))
        say(f'{"," * (number > 0)}\n{head[:-1]}, "charges": [', end="")
        for position, charge in enumerate(_charges(ledger, account, last)):
            say(f"{',' * (position > 0)}\n  {_one_line(charge)}", end="")
        say("]}", end="")
    say("]}")


def show_text(ledger: Ledger, dataset: str | None, last: int) -> None:
    """Print all accounts, or one, with their last charges and the last windows."""
    accounts = ledger.accounts(dataset)
    if not accounts:
        say("no accounts: suffice ledger grant DATASET --epsilon E --reason TEXT")
    for account in accounts:
        shown = _document(ledger, account)
        print_account(shown)
        view = person_view(ledger, account)
        for line in view.lines:
            say(f"  {line}")
        for assumption in view.assumptions:
            say(f"    {assumption}")
        windows = shown["windows"]
        if len(windows) > last:
            earlier = counted(len(windows) - last, "earlier window")
            say(f"  and {earlier}: --last {len(windows)} shows all, and --json")
        for window in windows[max(0, len(windows) - last) :]:
            say(
                f"  window {window['window']}: spent {window['spent']}, reserved {window['reserved']}, "
                f"remaining {window['remaining']} (returned {window['returned']})"
            )
        _show_keys(ledger, account)
        count = ledger.count_charges(account.dataset)
        if count > last:
            earlier = counted(count - last, "earlier charge")
            say(f"  and {earlier}: --last {count} shows all, and --json")
        charges = _charges(ledger, account, last)
        rows = [{key: value for key, value in row.items() if key not in _JSON_ONLY} for row in charges]
        if rows:
            output.print_rows(rows, limit=len(rows))


def _show_keys(ledger: Ledger, account: Account) -> None:
    """Print how many attempts of each key gave their epsilon back, before their draw and in it."""
    for failed in ledger.failed_readings(account.dataset):
        say(
            f"  {failed.label}: {counted(failed.count, 'attempt')} ended before the draw, "
            f"{account.failed_readings} may give their epsilon back"
        )
    for returned in ledger.returned_draws(account.dataset):
        say(f"  {returned.label}: {counted(returned.count, 'draw')} returned, {MOST_RETURNED_DRAWS} may be")


def _one_line(document: dict[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False)


def _document(ledger: Ledger, account: Account) -> dict[str, Any]:
    windows = list(ledger.windows(account.dataset))
    returned = ledger.returned(account.dataset)
    returned_to_grant = sum(
        (epsilon for window, epsilon in returned.items() if not counts_by_window(account.per_window, window)),
        Fraction(0),
    )
    return {
        **document(account),
        "returned": format_epsilon(returned_to_grant),
        "person": document(person_view(ledger, account)),
        "failed_readings": document(ledger.failed_readings(account.dataset)),
        "returned_draws": document(ledger.returned_draws(account.dataset)),
        "windows": [
            {
                **document(window, "window spent reserved"),
                "returned": format_epsilon(returned.get(window.window, Fraction(0))),
                "remaining": format_epsilon(window.remaining),
            }
            for window in windows
        ],
    }


def _charges(ledger: Ledger, account: Account, last: int | None) -> Iterator[dict[str, Any]]:
    for charge in ledger.charges(account.dataset, last=last):
        yield {
            **document(charge, CHARGE),
            "counts_on": charge.window if counts_by_window(account.per_window, charge.window) else "account",
            "release_id": charge.release_id,
        }
