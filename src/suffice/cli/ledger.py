"""``suffice ledger``: what the data owner and the privacy officer do."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suffice.cli import output, trust
from suffice.cli.options import DEFAULT_LEDGER, JsonOption, LedgerOption
from suffice.errors import LedgerError, UsageError

if TYPE_CHECKING:
    from fractions import Fraction

    from suffice.storage.ledger.account import Account

SHOWN = 20
"""How many charges of an account ``ledger show`` prints as text, unless it is told."""

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
        print_account(document)


@app.command()
def show(
    dataset: Annotated[str | None, typer.Argument(help="One account; all where left out.")] = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    last: Annotated[
        int | None,
        typer.Option("--last", min=0, metavar="N", help=f"The last N charges; {SHOWN} as text, all as JSON."),
    ] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Show what was granted, what is spent, what remains, and the charges of it."""
    from suffice.cli.ledger_show import show_json, show_text  # noqa: PLC0415
    from suffice.storage.ledger.opening import open_ledger  # noqa: PLC0415

    with open_ledger(ledger, reading_only=True) as opened, opened.at_one_moment():
        if as_json:
            show_json(opened, dataset, last)
        else:
            show_text(opened, dataset, SHOWN if last is None else last)


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
        print(report)
    if not report.ok:
        raise typer.Exit(LedgerError.exit_status)


def source_prefix(text: str) -> str:
    """Return a source prefix as charges state their sources: an absolute path, links resolved."""
    return os.path.realpath(text)


def account_document(account: Account) -> dict[str, Any]:
    """Return what ``ledger grant --json`` prints, and the head of what ``ledger show`` does."""
    from suffice.pipeline.declaration.exact_numbers import format_epsilon  # noqa: PLC0415

    return {
        "dataset": account.dataset,
        "neighboring": account.neighboring,
        "unit": account.unit,
        "granted": format_epsilon(account.granted),
        "spent": format_epsilon(account.spent),
        "reserved": format_epsilon(account.reserved),
        "remaining": format_epsilon(account.remaining),
        "sources": list(account.sources),
        "per_window": account.per_window,
    }


def print_account(document: dict[str, Any]) -> None:
    """Print the head of an account as people read it."""
    print(
        f"{document['dataset']}  ({document['neighboring']}, unit {document['unit']}"
        + (f", per window of {document['per_window']})" if document["per_window"] else ")")
    )
    print(
        f"  granted {document['granted']}, spent {document['spent']}, reserved {document['reserved']}, "
        f"remaining {document['remaining']}"
        + (f" (returned {document['returned']})" if "returned" in document else "")
    )


def _epsilon(text: str) -> Fraction:
    from suffice.pipeline.declaration.exact_numbers import parse_epsilon  # noqa: PLC0415

    try:
        return parse_epsilon(text)
    except ValueError as error:
        message = f"--epsilon: {error}"
        raise UsageError(message) from None
