"""``suffice doctor``: whether an installation can do its work."""

from __future__ import annotations

import typer

from suffice.cli import output
from suffice.cli.options import (
    DEFAULT_LEDGER,
    DEFAULT_STORE,
    ClusterOption,
    JsonOption,
    LedgerOption,
    StoreOption,
    WitnessOption,
)
from suffice.cli.terminal import say
from suffice.profile.settings import settings

UNWELL = 7
"""The exit status of ``suffice doctor`` where a check found a problem."""


def doctor(
    store: StoreOption = DEFAULT_STORE,
    ledger: LedgerOption = DEFAULT_LEDGER,
    cluster: ClusterOption = "threads",
    witness: WitnessOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Check versions, pins, configuration, ledger, stores, cluster, clock, permissions and entropy."""
    place = settings(store=store, ledger=ledger, cluster=cluster, witness=witness)
    from suffice.doctor.examination import examine

    examination = examine(place)
    document = examination.to_dict()
    if as_json:
        output.print_json(document)
    else:
        for finding in document["findings"]:
            say(f"{finding['state']:<8} {finding['check']:<14} {finding['found']}")
            if finding["remedy"]:
                say(f"{'':<8} {'':<14} -> {finding['remedy']}")
    if not examination.ok:
        raise typer.Exit(UNWELL)
