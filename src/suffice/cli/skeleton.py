"""``suffice init``: a spec's skeleton, from the schema of a source."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suffice.cli import output
from suffice.cli.files import check_file
from suffice.cli.options import JsonOption  # noqa: TC001 - Typer reads the annotations
from suffice.cli.terminal import say
from suffice.errors import UsageError


def init(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A Parquet file, directory or glob; or a source as specs have it: '{delta: flights}'.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="SPEC", help="Write the skeleton here.")
    ] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Write a spec skeleton from the schema alone; bounds and categories are left for a person to state."""
    from suffice.pipeline.rows.sources.template import skeleton

    check_file("--out", out, overwrite=None)
    text = skeleton(data, relative_to=out.parent if out else Path())
    if out is not None:
        try:
            with out.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            message = f"--out {out}: the file exists, and is not overwritten"
            raise UsageError(message) from None
        except OSError:
            message = f"--out {out}: the file cannot be written"
            raise UsageError(message) from None
    if as_json:
        output.print_json({"spec": text, "out": str(out) if out else None})
    elif out is None:
        say(text, end="")
    else:
        say(f"wrote {out}: state the epsilon, the bounds and the categories, then run: suffice plan {out}")
