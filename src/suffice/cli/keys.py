"""``suffice keys`` and ``suffice cluster``: keys for signatures, certificates for links of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypedDict

import typer

from suffice.cli import output
from suffice.cli.files import check_file
from suffice.cli.options import JsonOption  # noqa: TC001 - Typer reads it
from suffice.cli.output import say
from suffice.pipeline.terms.declaration.documents import Sha256, ShortId, document

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
    from suffice.storage.signatures.signing import new_keys

    check_file("--out", out, overwrite=None)
    files = new_keys(out)
    if as_json:
        output.print_json(document(files))
        return
    say(f"key id       {files.key_id}")
    say(f"private key  {files.private_key}  (only for the publisher: SUFFICE_SIGNING_KEY={out})")
    say(f"public key   {files.public_key}  (for readers: --public-key {files.public_key})")


class ShownKey(TypedDict):
    """A public key, and how releases name it."""

    key_id: ShortId
    public_key: Sha256


@app.command()
def show(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Public keys.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Show the ids of the public keys in files, as releases name them."""
    from suffice.storage.signatures.signing import load_public_keys

    keys = load_public_keys(files)
    if as_json:
        output.print_json({"keys": [ShownKey(key_id=key.key_id, public_key=key.raw.hex()) for key in keys]})
        return
    for key in keys:
        say(f"{key.key_id}  {key.raw.hex()}")


cluster_app = typer.Typer(
    help="What a Dask cluster needs before it may hold exact sums.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

_DAYS = 3650


@cluster_app.callback()
def cluster() -> None:
    """What a Dask cluster needs before it may hold exact sums."""


class ShownCertificate(TypedDict):
    """A certificate, and when it ends."""

    role: str
    certificate: str
    key: str
    ends: str
    has_ended: bool


class ShownCertificates(TypedDict):
    """The certificates of a cluster's links, and what was done to them."""

    directory: str
    status: Literal["made", "renewed", "unchanged"]
    certificates: list[ShownCertificate]


@cluster_app.command()
def certificates(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where they lie, or will.")],
    days: Annotated[
        int | None,
        typer.Option("--days", min=1, max=_DAYS, metavar="N", help="How long new ones last.  [default: 365]"),
    ] = None,
    *,
    renew: Annotated[
        bool, typer.Option("--renew", help="Replace all but the authority, which vouches for the new ones.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Make a private authority and the certificates of a cluster's links; later, show when they end."""
    from suffice.pipeline.cluster.certificates import certificates_in  # each imports what it needs

    outcome = certificates_in(directory, days=days, renew=renew)
    rows = [
        ShownCertificate(
            role=files.role,
            certificate=str(files.certificate),
            key=str(files.key),
            ends=f"{files.ends:%Y-%m-%dT%H:%M:%SZ}",
            has_ended=files.has_ended,
        )
        for files in outcome.certificates
    ]
    if as_json:
        output.print_json(
            ShownCertificates(directory=str(directory), status=outcome.status, certificates=rows)
        )
        return
    said = {
        "made": "made an authority for this cluster alone, and what it vouches for",
        "renewed": "renewed what the authority vouches for: restart the scheduler and its workers",
        "unchanged": "these are here already, and were not changed; --renew replaces all but the authority",
    }
    say(said[outcome.status], end="\n\n")
    output.print_rows(
        [
            {
                **{name: value for name, value in row.items() if name != "has_ended"},
                "accepted": "no" if row["has_ended"] else "yes",
            }
            for row in rows
        ]
    )
    if outcome.status != "unchanged":
        say("\nkeep ca.key apart from the cluster: whoever has it can join")
