"""``suffice status --all``, ``metrics`` and ``doctor``: how an installation stands."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - Typer reads it
from typing import TYPE_CHECKING, Annotated

import typer

from suffice.cli import options, output
from suffice.cli.files import check_local
from suffice.cli.output import in_line, say
from suffice.errors import UsageError
from suffice.pipeline.terms.declaration.documents import document
from suffice.profile.settings import settings

if TYPE_CHECKING:
    from suffice.monitoring.standing import Standing

OVERDUE = 6
"""The exit status of ``suffice status`` where a window is overdue, or gone from the store."""

AllSpecsOption = Annotated[
    bool, typer.Option("--all", help="Every spec in the spec_folders of the deployment profile.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsDocument:
    """How an installation stands, and whether a file says so now."""

    out: Path | None
    written: bool
    standing: Standing


def metrics(
    specs: Annotated[
        list[Path] | None, typer.Argument(metavar="SPEC...", help="YAML or JSON specs; or --all.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="A .prom file, written once in an hour at most."),
    ] = None,
    store: options.StoreOption = options.DEFAULT_STORE,
    ledger: options.LedgerOption = options.DEFAULT_LEDGER,
    as_of: options.AsOfOption = None,
    *,
    every: AllSpecsOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Write how an installation stands as a Prometheus textfile; never opens a source."""
    if every == bool(specs):
        message = "SPEC: name specs, or --all for those of the deployment profile, and not both"
        raise UsageError(message)
    from suffice.monitoring.standing import pinned_specs, standing
    from suffice.monitoring.textfile import SUFFIX, hour, hour_of, rendered, write_textfile

    now = dt.datetime.now(dt.UTC)
    is_new = True
    if out is not None:
        check_local("--out", out)
        if out.suffix != SUFFIX:
            message = f"--out {out}: the file's name must end in {SUFFIX}"
            raise UsageError(message)
        is_new = hour_of(out) != hour(now)
    current = standing(pinned_specs() if every else specs or (), store=store, ledger=ledger, as_of=as_of)
    text = rendered(current, now=now)
    if out is not None and is_new:
        write_textfile(out, text)
    if as_json:
        written = out is not None and is_new
        output.print_json(document(MetricsDocument(out=out, written=written, standing=current)))
    elif out is None:
        say(text, end="")
    else:
        say(f"wrote {out}" if is_new else f"{out} was written in this hour already: it is left as it is")
    _end(current, overdue=0)


def show_standing(*, store: str, ledger: str, as_of: str | None, as_json: bool) -> None:
    """Print how the installation stands whose specs the profile names."""
    from suffice.monitoring.standing import pinned_specs, standing

    current = standing(pinned_specs(), store=store, ledger=ledger, as_of=as_of)
    if as_json:
        output.print_json(document(current))
    else:
        _print(current)
    _end(current, overdue=OVERDUE)


def _end(current: Standing, *, overdue: int) -> None:
    """Exit as monitors expect: first for what is overdue, then for the first spec that cannot be judged."""
    status = overdue if not all(series.ok for series in current.series) else 0
    if not status and current.unreadable:
        status = current.unreadable[0].exit_status
    if status:
        raise typer.Exit(status)


def _print(current: Standing) -> None:
    shown = document(current)
    rows = [
        {
            "dataset": series["dataset"],
            "name": series["name"],
            "releases": series["releases"],
            **series["windows"],
            "due amendments": sum(series["amendments"].values()),
            "covered": "all" if series["covered"] is None else series["covered"],
        }
        for series in shown["series"]
    ]
    if rows:
        output.print_rows(rows, limit=len(rows))
    else:
        say("no spec could be judged" if current.unreadable else "spec_folders hold no spec")
    for unreadable in current.unreadable:
        place = "" if unreadable.message.startswith(unreadable.spec) else f"{in_line(unreadable.spec)}: "
        say(f"\n{place}{unreadable.message}")
    if shown["accounts"]:
        say("")
        accounts = [
            {**account, "per_window": "yes" if account["per_window"] else "no"}
            for account in shown["accounts"]
        ]
        output.print_rows(accounts, limit=len(accounts))
        if any(account["per_window"] == "yes" for account in accounts):
            say("\nof a grant for each window: granted, spent and remaining in one that was never charged")
    say(f"\ncharges in a spool: {current.in_spool}")
    if shown["refusals"] is not None:
        said = ", ".join(f"{kind} {number}" for kind, number in shown["refusals"].items())
        audit = shown["audit"]
        last = "none yet" if audit is None else f"{'ok' if audit['ok'] else 'problems'}, {audit['hour']}"
        say(f"refusals: {said}; last audit: {last}")


UNWELL = 7
"""The exit status of ``suffice doctor`` where a check found a problem."""


def doctor(
    store: options.StoreOption = options.DEFAULT_STORE,
    ledger: options.LedgerOption = options.DEFAULT_LEDGER,
    cluster: options.ClusterOption = "threads",
    witness: options.WitnessOption = None,
    *,
    as_json: options.JsonOption = False,
) -> None:
    """Check versions, pins, configuration, ledger, stores, cluster, clock, permissions and entropy."""
    place = settings(store=store, ledger=ledger, cluster=cluster, witness=witness)
    from suffice.doctor.examination import examine

    examination = examine(place)
    if as_json:
        output.print_json(document(examination))
    else:
        for finding in examination.findings:
            say(f"{finding.state:<8} {finding.check:<14} {finding.observed}")
            if finding.remedy:
                say(f"{'':<8} {'':<14} -> {finding.remedy}")
    if not examination.ok:
        raise typer.Exit(UNWELL)
