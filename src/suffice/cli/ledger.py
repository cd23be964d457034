"""``suffice ledger``: what the data owner and the privacy officer do."""

from __future__ import annotations

import os
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice.cli import output, trust
from suffice.cli.options import DEFAULT_LEDGER, JsonOption, LedgerOption
from suffice.cli.terminal import say
from suffice.errors import LedgerError, UsageError

if TYPE_CHECKING:
    from suffice.storage.ledger.account import Account
    from suffice.storage.ledger.charge import ChargeSummary

app = typer.Typer(help="Grants, charges, and what remains.", rich_markup_mode=None, no_args_is_help=True)


@app.command()
def grant(
    dataset: Annotated[str, typer.Argument(help="The protected population: the account.")],
    epsilon: Annotated[str, typer.Option("--epsilon", help="The account's new total, decimal text.")],
    reason: Annotated[str, typer.Option("--reason", help="Why; kept in the ledger.")],
    neighboring: Annotated[
        str | None, typer.Option("--neighboring", metavar="RELATION", help="Fixed by the first grant.")
    ] = None,
    unit: Annotated[
        str | None, typer.Option("--unit", help="row, or column:NAME. Fixed by the first grant.")
    ] = None,
    source: Annotated[
        list[str] | None, typer.Option("--source", metavar="PREFIX", help="Allowed sources; may repeat.")
    ] = None,
    per_window: Annotated[
        str | None,
        typer.Option("--per-window", metavar="COLUMN:EVERY", help="The grant holds for each window."),
    ] = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    *,
    units_disjoint: Annotated[
        bool, typer.Option("--units-disjoint", help="No unit has rows in two windows.")
    ] = False,
    create: Annotated[bool, typer.Option("--create", help="Make the ledger where there is none.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Set an account's total budget; repeating a grant changes nothing."""
    from suffice.storage.ledger.opening import create_ledger, open_ledger  # noqa: PLC0415

    total = _epsilon(epsilon)
    with create_ledger(ledger) if create else open_ledger(ledger) as opened:
        account = opened.grant(
            dataset,
            epsilon=total,
            neighboring=neighboring,
            unit=unit,
            sources=[source_prefix(prefix) for prefix in source] if source else None,
            per_window=per_window,
            units_disjoint=units_disjoint,
            reason=reason,
        )
    document = account_document(account)
    if as_json:
        output.print_json(document)
    else:
        _print_account(document)


@app.command()
def show(
    dataset: Annotated[str | None, typer.Argument(help="One account; all where left out.")] = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show what was granted, what is spent, what remains, charge by charge."""
    from suffice.storage.ledger.opening import open_ledger  # noqa: PLC0415

    with open_ledger(ledger) as opened:
        documents = [account_document(account) for account in opened.accounts(dataset)]
    if as_json:
        output.print_json({"accounts": documents})
        return
    if not documents:
        say("no accounts: suffice ledger grant DATASET --epsilon E --reason TEXT")
    for document in documents:
        _print_account(document)


app.command("verify")(trust.verify_ledger)
app.command("export")(trust.export_ledger)


@app.command("recover")
def recover_command(
    store: Annotated[
        str | None,
        typer.Option("--store", metavar="URI", help="Where the store is now, if not where charges say."),
    ] = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    *,
    as_json: JsonOption = False,
) -> None:
    """Carry every charge whose run is gone to its end; live runs are left alone."""
    from suffice.storage.ledger.opening import open_ledger  # noqa: PLC0415
    from suffice.storage.operations.recovery import recover  # noqa: PLC0415
    from suffice.storage.releases.release_store import open_store  # noqa: PLC0415

    with open_ledger(ledger) as opened:
        report = recover(opened, lambda uri: open_store(store or uri, ledger_id=opened.ledger_id))
    if as_json:
        output.print_json(report.to_dict())
    else:
        say(report)
    if not report.ok:
        raise typer.Exit(LedgerError.exit_status)


def source_prefix(text: str) -> str:
    """Return a source prefix as charges state their sources: an absolute path, links resolved."""
    return os.path.realpath(text)


def account_document(account: Account) -> dict[str, Any]:
    """Return an account as ``ledger show --json`` prints it.

    Every number follows from its charges: what is spent, reserved or returned is the sum of the epsilon of
    those whose `counts_as` says so, over the charges whose `counts_on` is ``account`` for the account's own
    numbers, or the window for a window's; `held` is what a charge takes now.
    """
    from suffice.pipeline.declaration.exact_numbers import format_epsilon  # noqa: PLC0415

    charges = [(charge, _counts_on(account, charge)) for charge in account.charges]

    def returned(location: str) -> str:
        sums = (charge.epsilon - charge.held for charge, counts_on in charges if counts_on == location)
        return format_epsilon(sum(sums, Fraction(0)))

    return {
        "dataset": account.dataset,
        "neighboring": account.neighboring,
        "unit": account.unit,
        "granted": format_epsilon(account.granted),
        "spent": format_epsilon(account.spent),
        "reserved": format_epsilon(account.reserved),
        "returned": returned("account"),
        "remaining": format_epsilon(account.remaining),
        "sources": list(account.sources),
        "per_window": account.per_window,
        "windows": [
            {
                "window": window.window,
                "spent": format_epsilon(window.spent),
                "reserved": format_epsilon(window.reserved),
                "returned": returned(window.window),
                "remaining": format_epsilon(window.remaining),
            }
            for window in account.windows
        ],
        "charges": [
            {
                "charge_id": charge.charge_id,
                "name": charge.name,
                "window": charge.window,
                "attempt": charge.attempt,
                "epsilon": format_epsilon(charge.epsilon),
                "state": str(charge.state),
                "held": format_epsilon(charge.held),
                "counts_as": charge.counts_as,
                "counts_on": counts_on,
                "release_id": charge.release_id,
            }
            for charge, counts_on in charges
        ],
    }


def _counts_on(account: Account, charge: ChargeSummary) -> str:
    from suffice.storage.ledger.account import counts_by_window  # noqa: PLC0415

    return charge.window if counts_by_window(account.per_window, charge.window) else "account"


def _epsilon(text: str) -> Fraction:
    from suffice.pipeline.declaration.exact_numbers import parse_epsilon  # noqa: PLC0415

    try:
        return parse_epsilon(text)
    except ValueError as error:
        message = f"--epsilon: {error}"
        raise UsageError(message) from None


def _print_account(document: dict[str, Any]) -> None:
    say(
        f"{document['dataset']}  ({document['neighboring']}, unit {document['unit']}"
        + (f", per window of {document['per_window']})" if document["per_window"] else ")")
    )
    say(
        f"  granted {document['granted']}, spent {document['spent']}, reserved {document['reserved']}, "
        f"remaining {document['remaining']} (returned {document['returned']})"
    )
    for window in document["windows"]:
        say(
            f"  window {window['window']}: spent {window['spent']}, reserved {window['reserved']}, "
            f"remaining {window['remaining']} (returned {window['returned']})"
        )
    if document["charges"]:
        output.print_rows(document["charges"])
