"""``suffice catalogue``: a static site on all releases of a store."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - Typer reads it
from typing import Annotated

import typer

from suffice.cli import output
from suffice.cli.options import JsonOption, PublicationKeyOption, PublicKeyOption  # noqa: TC001 - Typer reads them
from suffice.cli.output import say
from suffice.errors import StorageError
from suffice.pipeline.terms.declaration.documents import document
from suffice.pipeline.terms.declaration.wording import counted


def catalogue(
    store: Annotated[str, typer.Argument(metavar="STORE", help="A path or URI of a store; it is only read.")],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="A new folder, or an earlier catalogue's.")
    ],
    ledger_export: Annotated[
        Path | None,
        typer.Option(
            "--ledger-export", metavar="FILE", help="From `suffice ledger export`: show all charges."
        ),
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help="Of the site.")] = None,
    base_url: Annotated[
        str | None,
        typer.Option("--base-url", metavar="URL", help="Where the site will stand: for feeds and citations."),
    ] = None,
    public_keys: PublicKeyOption = None,
    publication_keys: PublicationKeyOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Make a static site on all releases of a store, or bring one up to date; from public files alone."""
    from suffice.cataloguing.catalogue import catalogue as make

    made = make(
        store,
        out,
        ledger_export=ledger_export,
        title=title,
        base_url=base_url,
        public_keys=public_keys,
        publication_keys=publication_keys,
        progress=output.Progress("cataloguing", "releases", only_parts=True),
    )
    if as_json:
        output.print_json(document(made))
    else:
        for problem in made.problems:
            say(f"not shown: {problem}")
        say(
            f"{counted(made.releases, 'release')} and {counted(made.publications, 'publication')}: "
            f"{made.rendered} made, {made.kept} unchanged, {made.removed} removed"
        )
        say(f"open {made.index}")
    if not made.ok:
        raise typer.Exit(StorageError.exit_status)
