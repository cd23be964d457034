"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from suffice.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_STORE = "releases"
DEFAULT_LEDGER = "sqlite:///ledger.db"

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
StoreOption = Annotated[
    str, typer.Option("--store", envvar="SUFFICE_STORE", metavar="URI", help="Where releases are published.")
]
LedgerOption = Annotated[
    str, typer.Option("--ledger", envvar="SUFFICE_LEDGER", metavar="URL", help="The privacy ledger.")
]
PublicKeyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--public-key",
        metavar="FILE",
        help="Demand a signature by a key of this file; may repeat. Default: SUFFICE_PUBLIC_KEYS.",
    ),
]
OutOption = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Write a .csv or .parquet file.")
]
WhereOption = Annotated[
    list[str] | None, typer.Option("--where", metavar="COLUMN=KEY", help="Keep these cells; may repeat.")
]
ReleaseArgument = Annotated[
    str, typer.Argument(metavar="RELEASE", help="A path or URI, or NAME[@WINDOW] in the store.")
]
SpecArgument = Annotated[Path, typer.Argument(metavar="SPEC", help="A YAML or JSON spec.")]


def parse_where(pairs: Sequence[str] | None) -> dict[str, str]:
    """Read what `WhereOption` collects."""
    where: dict[str, str] = {}
    for pair in pairs or ():
        column, equals, key = pair.partition("=")
        if not equals or not column:
            message = f"--where {pair}: write it as COLUMN=KEY"
            raise UsageError(message)
        if where.get(column, key) != key:
            message = f"--where {pair}: {column} is given twice; --where filters and never sums"
            raise UsageError(message)
        where[column] = key
    return where
