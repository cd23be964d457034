"""``suffice rehearse``: every stage of a release on generated rows."""

from __future__ import annotations

from typing import Annotated

import typer

from suffice.cli import messages, output
from suffice.cli.options import (
    DEFAULT_LEDGER,
    DEFAULT_STORE,
    AllowOpenOption,
    AsOfOption,
    ClusterOption,
    JsonOption,
    LedgerOption,
    SpecArgument,
    StoreOption,
    WitnessOption,
)
from suffice.cli.terminal import say
from suffice.profile.settings import settings


def rehearse(
    spec: SpecArgument,
    window: Annotated[
        str, typer.Option("--window", metavar="W", help="A window label, as 2013-01, or latest-complete.")
    ] = "all",
    store: StoreOption = DEFAULT_STORE,
    ledger: LedgerOption = DEFAULT_LEDGER,
    cluster: ClusterOption = "threads",
    witness: WitnessOption = None,
    as_of: AsOfOption = None,
    *,
    allow_open: AllowOpenOption = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave in the store what it drew; it is no release.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Try every stage of a release on generated rows; reads no row, charges nothing."""
    settings(store=store, ledger=ledger, cluster=cluster, spec_path=spec)  # before the spec is opened
    from suffice.pipeline.spec.spec import load_spec
    from suffice.releasing.rehearsal import rehearse as run

    done = run(
        load_spec(spec),
        store=store,
        ledger=ledger,
        cluster=cluster,
        window=window,
        as_of=as_of,
        allow_open=allow_open,
        witness=witness,
        keep=keep,
    )
    if as_json:
        output.print_json(done.to_dict())
    else:
        output.print_rows(
            [
                {"stage": stage.name, "seconds": f"{stage.seconds:.1f}", "tried": stage.tried or "failed"}
                for stage in done.stages
            ]
        )
    if done.failure is None:
        if not as_json:
            say("\nrehearsed: every stage works; no row was read, nothing was charged")
        return
    status = done.failure.exit_status
    messages.show_error(type(done.failure).__name__, str(done.failure), status, as_text=not as_json)
    raise typer.Exit(status)
