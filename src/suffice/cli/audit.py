"""``suffice audit``: what a spec, as it is configured, might lose beyond what it declares."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - Typer reads it
from typing import Annotated

import typer

from suffice.cli import output
from suffice.cli.files import check_file, new_file
from suffice.cli.options import JsonOption, SpecArgument  # noqa: TC001 - Typer reads them
from suffice.cli.output import say
from suffice.pipeline.terms.declaration.documents import document


def audit(
    spec: SpecArgument,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write the result, signed if SUFFICE_SIGNING_KEY is set."),
    ] = None,
    level: Annotated[
        str, typer.Option("--level", metavar="exact|noise|black-box", help="The last level that is tried.")
    ] = "black-box",
    seconds: Annotated[
        float, typer.Option("--seconds", metavar="N", help="Begin no further mutant after so long.")
    ] = 180.0,
    pairs: Annotated[
        int, typer.Option("--pairs", min=1, metavar="N", help="Pairs of neighbours of the exact level.")
    ] = 160,
    cluster: Annotated[
        str, typer.Option("--cluster", metavar="threads|local", help="What reads and adds.")
    ] = "threads",
    contract: Annotated[
        Path | None,
        typer.Option(
            "--contract",
            metavar="FILE",
            help="The account's contract; default: the one that the spec implies, and the result says so.",
        ),
    ] = None,
    *,
    no_contract: Annotated[
        bool, typer.Option("--no-contract", help="Audit an account that has no contract.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Release hostile neighbours on a scratch ledger; reads no row, charges nothing."""
    from suffice.auditing.audit import audit as run
    from suffice.pipeline.spec.spec import load_spec
    from suffice.storage.operations.audits import encode_audit
    from suffice.storage.signatures.signing import signer_from_environment

    check_file("--out", out, overwrite=None)
    signer = signer_from_environment() if out is not None else None
    done = run(
        load_spec(spec),
        level=level,
        seconds=seconds,
        pairs=pairs,
        cluster=cluster,
        contract=contract,
        no_contract=no_contract,
    )
    if out is not None:
        with new_file("--out", out, overwrite=False) as path:
            path.write_bytes(encode_audit(document(done), signer))
    if as_json:
        output.print_json(document(done))
    else:
        say(done)
    if not done.ok:
        raise typer.Exit(1)
