"""``suffice keys``: pairs of keys, for signing releases and for checking signatures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suffice.cli import output
from suffice.cli.files import check_file
from suffice.cli.options import JsonOption  # noqa: TC001 - Typer reads it
from suffice.cli.terminal import say

app = typer.Typer(
    help="Keys that sign releases, and keys that readers pin.", rich_markup_mode=None, no_args_is_help=True
)

DEFAULT_KEY = Path("suffice-signing-key.pem")


@app.command()
def new(
    out: Annotated[
        Path, typer.Option("--out", metavar="KEYFILE", help="The private key's file; the public one: .pub")
    ] = DEFAULT_KEY,
    *,
    as_json: JsonOption = False,
) -> None:
    """Draw a pair of keys and write it; neither file is ever overwritten."""
    from suffice.storage.signatures.keys import new_keys

    check_file("--out", out, overwrite=None)
    files = new_keys(out)
    if as_json:
        output.print_json(
            {
                "key_id": files.key_id,
                "private_key": str(files.private_key),
                "public_key": str(files.public_key),
            }
        )
        return
    say(f"key id       {files.key_id}")
    say(f"private key  {files.private_key}  (only for the publisher: SUFFICE_SIGNING_KEY={out})")
    say(f"public key   {files.public_key}  (for readers: --public-key {files.public_key})")


@app.command()
def show(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Public keys.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Show the ids of the public keys in files, as releases name them."""
    from suffice.storage.signatures.keys import load_public_keys

    keys = load_public_keys(files)
    if as_json:
        output.print_json({"keys": [{"key_id": key.key_id, "public_key": key.raw.hex()} for key in keys]})
        return
    for key in keys:
        say(f"{key.key_id}  {key.raw.hex()}")
