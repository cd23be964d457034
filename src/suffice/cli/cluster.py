"""``suffice cluster``: what a cluster of processes needs before it may hold exact sums."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - Typer reads it
from typing import Annotated

import typer

from suffice.cli import output
from suffice.cli.options import JsonOption  # noqa: TC001 - Typer reads it
from suffice.cli.terminal import say

app = typer.Typer(
    help="What a Dask cluster needs before it may hold exact sums.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

_DAYS = 3650


@app.callback()
def cluster() -> None:
    """What a Dask cluster needs before it may hold exact sums."""


@app.command()
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
        {
            "role": files.role,
            "certificate": str(files.certificate),
            "key": str(files.key),
            "ends": f"{files.ends:%Y-%m-%dT%H:%M:%SZ}",
            "has_ended": files.has_ended,
        }
        for files in outcome.certificates
    ]
    if as_json:
        output.print_json({"directory": str(directory), "status": outcome.status, "certificates": rows})
        return
    said = {
        "made": "made an authority for this cluster alone, and what it vouches for",
        "renewed": "renewed what the authority vouches for: restart the scheduler and its workers",
        "unchanged": "these are here already, and were not changed; --renew replaces all but the authority",
    }
    say(said[outcome.status], end="\n\n")
    shown = ("role", "certificate", "key", "ends")
    output.print_rows(
        [
            {**{name: row[name] for name in shown}, "accepted": "no" if row["has_ended"] else "yes"}
            for row in rows
        ]
    )
    if outcome.status != "unchanged":
        say("\nkeep ca.key apart from the cluster: whoever has it can join")
