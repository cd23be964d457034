"""``suffice store``: what stands in release stores, and which stores a ledger knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from suffice.cli import options, output
from suffice.cli.output import say
from suffice.errors import StorageError, UsageError
from suffice.pipeline.terms.declaration.documents import document
from suffice.pipeline.terms.declaration.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.storage.ledger.account import KnownStore

app = typer.Typer(
    help="Stores: what stands there, and who knows them.", rich_markup_mode=None, no_args_is_help=True
)

StoreArgument = Annotated[str, typer.Argument(metavar="STORE", help="A path or URI of a store.")]


@app.command()
def verify(
    place: StoreArgument,
    ledger: Annotated[
        str | None, typer.Option("--ledger", metavar="URL", help="Compare with this ledger too, both ways.")
    ] = None,
    public_keys: options.PublicKeyOption = None,
    publication_keys: options.PublicationKeyOption = None,
    *,
    as_json: options.JsonOption = False,
) -> None:
    """Check every file of every release and publication, and all else; name what belongs to nothing."""
    from suffice.storage.operations.verify_store import verify_store
    from suffice.storage.releases.release_store import open_store

    opened_store = open_store(place)
    if ledger is None:
        checked = verify_store(opened_store, public_keys=public_keys, publication_keys=publication_keys)
    else:
        from suffice.storage.ledger.opening import open_ledger

        with open_ledger(ledger) as opened:
            checked = verify_store(
                opened_store, ledger=opened, public_keys=public_keys, publication_keys=publication_keys
            )
    if as_json:
        output.print_json(document(checked))
    else:
        for problem in checked.problems:
            say(problem)
        for key in checked.leftovers:
            say(f"left over, and harms nothing: {key}")
        say(
            f"{'ok' if checked.ok else 'not ok'} - {counted(checked.releases, 'release')} with "
            f"{counted(checked.files, 'file')}, {counted(checked.tombstones, 'tombstone')}, "
            f"{counted(checked.markers, 'marker')}, {counted(checked.publications, 'publication')}; "
            f"{checked.withdrawn} withdrawn, {counted(checked.left_files, 'file')} left over; "
            f"ledger {checked.ledger.replace('_', ' ')}"
        )
    if not checked.ok:
        raise typer.Exit(StorageError.exit_status)


@app.command()
def adopt(
    place: StoreArgument,
    ledger: options.LedgerOption = options.DEFAULT_LEDGER,
    *,
    as_json: options.JsonOption = False,
) -> None:
    """Take up a store that was moved, or lost its suffice.json, once it shows whose it is."""
    from suffice.storage.ledger.opening import open_ledger
    from suffice.storage.operations.reconciliation import adopt_store

    with open_ledger(ledger) as opened:
        adoption = adopt_store(opened, place)
    if as_json:
        output.print_json(document(adoption))
        return
    say(f"the store {adoption.store_id} is at {adoption.uri}")
    if adoption.moved_from:
        say(f"  it was at {adoption.moved_from}")
    if adoption.restored:
        say("  its suffice.json was put back")
    say(
        f"  what is there agrees with the ledger: {counted(adoption.markers, 'marker')}, "
        f"{counted(adoption.releases, 'release')}"
    )


@app.command()
def retire(
    named: Annotated[
        str, typer.Argument(metavar="STORE", help="Its id, the first digits of it, or its URI.")
    ],
    reason: Annotated[str, typer.Option("--reason", help="Why; kept in the ledger.")],
    ledger: options.LedgerOption = options.DEFAULT_LEDGER,
    *,
    as_json: options.JsonOption = False,
) -> None:
    """Give a store up: it is no longer asked whether the ledger is whole, and charged for no more."""
    from suffice.storage.ledger.opening import open_ledger

    with open_ledger(ledger) as opened:
        chosen = _choose(opened.stores(), named)
        opened.retire_store(chosen.store_id, reason=reason)
        retired = next(known for known in opened.stores() if known.store_id == chosen.store_id)
    if as_json:
        output.print_json(document(retired))
    else:
        say(f"the store {chosen.store_id} at {chosen.uri} is retired")


@app.command("list")
def list_stores(
    ledger: options.LedgerOption = options.DEFAULT_LEDGER, *, as_json: options.JsonOption = False
) -> None:
    """List the stores that a ledger has charged for; each is asked before a release, unless it is retired."""
    from suffice.storage.ledger.opening import open_ledger

    with open_ledger(ledger) as opened:
        stores = document(opened.stores())
    if as_json:
        output.print_json({"stores": stores})
    elif stores:
        output.print_rows([{**known, "retired": "yes" if known["retired"] else "no"} for known in stores])
    else:
        say("no stores: nothing was ever charged")


def _choose(stores: Sequence[KnownStore], named: str) -> KnownStore:
    from suffice.storage.objects.address import read_address

    matches = [known for known in stores if known.store_id.startswith(named.lower())]
    if not matches:
        place = read_address(named).uri
        matches = [known for known in stores if known.uri == place]
    if len(matches) != 1:
        problem = "several stores of this ledger go" if matches else "no store of this ledger goes"
        message = f"{problem} by that name: `suffice store list` gives their ids"
        raise UsageError(message)
    return matches[0]
