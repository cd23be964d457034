"""``suffice ledger reconcile``: a ledger from a backup is charged for what its stores show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from suffice.cli import output
from suffice.cli.options import DEFAULT_LEDGER, JsonOption, LedgerOption, WitnessOption
from suffice.cli.terminal import say
from suffice.pipeline.terms.declaration.wording import counted

if TYPE_CHECKING:
    from suffice.storage.ledger.charge import Charge


def reconcile_ledger(
    reason: Annotated[str, typer.Option("--reason", help="Why; kept in the ledger.")],
    stores: Annotated[
        list[str] | None,
        typer.Option(
            "--store",
            metavar="URI",
            help="A store that the copy may not know yet; may repeat.",
        ),
    ] = None,
    witness: WitnessOption = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    *,
    as_json: JsonOption = False,
) -> None:
    """Charge a ledger from a backup for what its stores show and it lacks; nothing may run meanwhile."""
    from suffice.storage.ledger.opening import open_ledger
    from suffice.storage.operations.reconciliation import reconcile

    with open_ledger(ledger) as opened:
        done = reconcile(opened, stores=stores or (), witness=witness, reason=reason)
    if as_json:
        output.print_json(
            {
                "charges": [_document(charge) for charge in done.charges],
                "skipped": done.skipped,
                "witness": None if done.witness is None else done.witness.head.sequence,
            }
        )
        return
    for charge in done.charges:
        spent = _document(charge)["spent"]
        say(f"{charge.dataset}: {charge.label}: {charge.state}; epsilon {spent} is spent")
    lost = counted(done.skipped, "lost entry", "lost entries")
    say(
        f"{counted(len(done.charges), 'charge')} taken up, numbers of {lost} skipped"
        if done.charges or done.skipped
        else "nothing to reconcile: no store shows what this ledger lacks"
    )


def _document(charge: Charge) -> dict[str, object]:
    from suffice.pipeline.terms.declaration.exact_numbers import format_epsilon

    return {
        "charge_id": charge.charge_id,
        "dataset": charge.dataset,
        "name": charge.name,
        "window": charge.window,
        "amendment": charge.amendment,
        "release_id": charge.release_id,
        "store": charge.store_uri,
        "state": str(charge.state),
        "spent": format_epsilon(charge.epsilon),
    }
