"""What ``suffice ledger show`` prints: read and written a few charges at a time, however many there are."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypedDict

from suffice.cli import output
from suffice.cli.output import say
from suffice.pipeline.spec.windows_and_amendments import edition
from suffice.pipeline.terms.declaration.documents import CountOrNone, Exact, document, printed
from suffice.pipeline.terms.declaration.loss_in_words import with_epsilons
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
from suffice.pipeline.terms.declaration.row_rules import in_words
from suffice.pipeline.terms.declaration.wording import counted
from suffice.storage.ledger.account import account_lines, counts_by_window
from suffice.storage.ledger.amounts import GRANT_FIRST
from suffice.storage.ledger.charge import MOST_RETURNED_DRAWS
from suffice.storage.ledger.person import loss_together, person_view

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from suffice.storage.ledger.account import Account, WindowBalance
    from suffice.storage.ledger.charge import ChargeSummary, KeyCount
    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.ledger.person import LossTogether, PersonView

_TABLE = ("name", "window", "attempt", "epsilon", "rho", "state", "counts_as", "release_id")
"""What a table of charges has, to fit a terminal; a window stands with the number of its amendment."""


def print_account(shown: dict[str, Any]) -> None:
    """Print the head of an account as people read it."""
    say("\n".join(account_lines(shown)))


class Asked(TypedDict):
    """What somebody loses by so many rows in so many windows."""

    rows: CountOrNone
    windows: CountOrNone
    loss: Exact


@printed(
    "dataset=view.account.dataset measure=view.account.measure unit=view.account.unit "
    "neighboring=view.account.neighboring "
    "per_window=view.account.per_window *view asked together?"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class PersonDocument:
    """What one unit of an account loses, alone and with rows in others, and what was asked of it."""

    view: PersonView
    asked: Asked
    together: LossTogether | None


def show_person(
    ledger: Ledger,
    dataset: str,
    rows: int | None,
    windows: int | None,
    others: Sequence[str] = (),
    *,
    as_json: bool,
) -> None:
    """Print what one unit of an account loses, alone and with rows in others, and what was asked of it."""
    account = ledger.account(dataset)
    together = loss_together(ledger, [account, *map(ledger.account, others)]) if others else None
    view = person_view(ledger, account)
    loss = PrivacyLoss(account.measure, view.lost_by(rows, windows))
    if as_json:
        asked = Asked(rows=rows, windows=windows, loss=loss.text)
        output.print_json(document(PersonDocument(view=view, asked=asked, together=together)))
        return
    say(f"{dataset}  ({account.neighboring}, unit {in_words(account.unit)})")
    for line in (*view.lines, *(together.lines if together else ())):
        say(f"  {line}")
    if rows is not None or windows is not None:
        who = "a unit" if rows is None else f"a person with {counted(rows, 'row')}"
        asked_for = f"{who} in {counted(windows or 1, 'window')}"
        lost = loss.text if loss.rho is None or not loss.rho else with_epsilons(loss)
        say(f"  {asked_for}: so far at most {lost}")
    for assumption in view.assumptions:
        say(f"  {assumption}")


def show_json(ledger: Ledger, dataset: str | None, last: int | None) -> None:
    """Print one JSON document of all accounts, or one.

    Every number follows from the charges: what is spent, reserved or returned is the sum of what those cost
    whose `counts_as` says so, over the charges whose `counts_on` is ``account`` for the account's own
    numbers, or the window for a window's; `held` is what a charge takes now.
    """
    say('{"accounts": [', end="")
    for number, account in enumerate(ledger.accounts(dataset)):
        head = _one_line(document(_shown_account(ledger, account)))
        say(f'{"," * (number > 0)}\n{head[:-1]}, "charges": [', end="")
        for position, charge in enumerate(_charges(ledger, account, last)):
            say(f"{',' * (position > 0)}\n  {_one_line(document(charge))}", end="")
        say("]}", end="")
    say("]}")


def show_text(ledger: Ledger, dataset: str | None, last: int) -> None:
    """Print all accounts, or one, with their last charges and the last windows."""
    accounts = ledger.accounts(dataset)
    if not accounts:
        say(f"no accounts: {GRANT_FIRST}")
    for account in accounts:
        shown = document(_shown_account(ledger, account))
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
        charges = [document(charge) for charge in _charges(ledger, account, last)]
        are_first = all(charge["attempt"] == 1 for charge in charges)
        rows = [
            {
                name: edition(charge["window"], charge["amendment"]) if name == "window" else charge[name]
                for name in _TABLE
                if name in charge and not (name == "attempt" and are_first)
            }
            for charge in charges
        ]
        if rows:
            output.print_rows(rows, limit=len(rows))


def _show_keys(ledger: Ledger, account: Account) -> None:
    """Print how many attempts of each key gave their epsilon back, before their draw and in it."""
    for failed in ledger.failed_readings(account.dataset):
        say(
            f"  {failed.label}: {counted(failed.count, 'attempt')} ended before the draw, "
            f"{account.failed_readings} may give their {account.measure} back"
        )
    for returned in ledger.returned_draws(account.dataset):
        say(f"  {returned.label}: {counted(returned.count, 'draw')} returned, {MOST_RETURNED_DRAWS} may be")


def _one_line(written: dict[str, Any]) -> str:
    return json.dumps(written, ensure_ascii=False)


@printed(
    "window=balance.window spent=balance.spent reserved=balance.reserved returned remaining=balance.remaining"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class ShownWindow:
    """A window of a grant per window, and what came back to it."""

    balance: WindowBalance
    returned: Fraction


@printed("*account returned person failed_readings returned_draws windows")
@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAccount:
    """An account, and all that follows from its charges."""

    account: Account
    returned: Fraction
    person: PersonView
    failed_readings: Sequence[KeyCount]
    returned_draws: Sequence[KeyCount]
    windows: Sequence[ShownWindow]


@printed(
    "charge_id=charge.charge_id name=charge.name window=charge.window amendment=charge.amendment "
    "attempt=charge.attempt "
    "epsilon?=charge.loss.epsilon rho?=charge.loss.rho state=charge.state held=charge.held "
    "counts_as=charge.counts_as counts_on release_id=charge.release_id"
)
@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCharge:
    """A charge, and the window that it counts on, or ``account``."""

    charge: ChargeSummary
    counts_on: str


def _shown_account(ledger: Ledger, account: Account) -> ShownAccount:
    returned = ledger.returned(account.dataset)
    returned_to_grant = sum(
        (epsilon for window, epsilon in returned.items() if not counts_by_window(account.per_window, window)),
        Fraction(0),
    )
    return ShownAccount(
        account=account,
        returned=returned_to_grant,
        person=person_view(ledger, account),
        failed_readings=ledger.failed_readings(account.dataset),
        returned_draws=ledger.returned_draws(account.dataset),
        windows=[
            ShownWindow(balance=window, returned=returned.get(window.window, Fraction(0)))
            for window in ledger.windows(account.dataset)
        ],
    )


def _charges(ledger: Ledger, account: Account, last: int | None) -> Iterator[ShownCharge]:
    for charge in ledger.charges(account.dataset, last=last):
        on_window = counts_by_window(account.per_window, charge.window)
        yield ShownCharge(charge=charge, counts_on=charge.window if on_window else "account")
