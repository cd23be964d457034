"""``suffice backfill`` and ``suffice status``: many windows at once."""

from __future__ import annotations

import datetime as dt
import sys
from collections import Counter
from pathlib import Path  # noqa: TC003 - Typer reads it
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import typer

from suffice.cli import messages, options, output
from suffice.cli.monitor import OVERDUE, AllSpecsOption, show_standing
from suffice.cli.output import say
from suffice.errors import BudgetExceededError, ExpectationNotMetError, UsageError
from suffice.monitoring.records import count_end, counting_refusals
from suffice.pipeline.terms.declaration.documents import document
from suffice.pipeline.terms.declaration.wording import counted
from suffice.profile.settings import settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.terms.declaration.documents import Count, Hour, ShortId
    from suffice.releasing.backfill import Backfill
    from suffice.releasing.gap_report import GapReport

LAST = 20
"""Windows that ``suffice status`` shows as text, where none is asked for."""


def backfill(
    spec: options.SpecArgument,
    first: Annotated[str, typer.Option("--from", metavar="W", help="The first window, as 2013-01.")],
    last: Annotated[
        str, typer.Option("--to", metavar="W", help="The last one, or latest-complete.")
    ] = "latest-complete",
    store: options.StoreOption = options.DEFAULT_STORE,
    ledger: options.LedgerOption = options.DEFAULT_LEDGER,
    cluster: options.ClusterOption = "threads",
    witness: options.WitnessOption = None,
    as_of: options.AsOfOption = None,
    *,
    by_calendar: Annotated[
        bool,
        typer.Option(
            "--by-calendar", help="Amend windows that were charged after an amendment fell due, too."
        ),
    ] = False,
    allow_open: options.AllowOpenOption = False,
    publish_timeout: options.PublishTimeoutOption = options.PUBLISH_TIMEOUT,
    wait: options.WaitOption = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Charge and read nothing: say what is left, and its price.")
    ] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Release every window from one to another, and amendments that are due, as far as the budget goes."""
    with counting_refusals():
        settings(store=store, ledger=ledger, cluster=cluster, spec_path=spec)  # before the spec is opened
        from suffice.pipeline.spec.spec import load_spec
        from suffice.releasing.backfill import carry_out_backfill, plan_backfill

        loaded = load_spec(spec)
        if dry_run:
            _show_dry_run(
                plan_backfill(
                    loaded,
                    first,
                    last,
                    ledger=ledger,
                    as_of=as_of,
                    by_calendar=by_calendar,
                    allow_open=allow_open,
                ),
                as_json=as_json,
            )
            return
        messages.about_backfill(loaded)
        done = carry_out_backfill(
            loaded,
            first,
            last,
            store=store,
            ledger=ledger,
            cluster=cluster,
            as_of=as_of,
            by_calendar=by_calendar,
            allow_open=allow_open,
            publish_timeout=publish_timeout,
            wait=wait,
            witness=witness,
            progress=messages.progress(),
            notice=messages.notice,
        )
    count_end(done.failure, stopped_at_budget=done.refusal is not None)
    messages.note_backfill(loaded, done, ledger=ledger)
    if as_json:
        output.print_json(document(done))
    else:
        _print_backfill(done)
    if done.failure is not None:
        failure = done.failure
        messages.show_error(type(failure).__name__, str(failure), failure.exit_status, as_text=not as_json)
        sys.exit(done.failure.exit_status)  # Typer's own exit with 130 would count as another interrupt
    if done.refusal is not None:
        raise typer.Exit(BudgetExceededError.exit_status)
    if done.stopped is not None:
        raise typer.Exit(ExpectationNotMetError.exit_status)


def status(
    spec: Annotated[Path | None, typer.Argument(metavar="SPEC", help="A YAML or JSON spec.")] = None,
    first: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="W", help="The first window; default: the spec's, or the first charged."
        ),
    ] = None,
    store: options.StoreOption = options.DEFAULT_STORE,
    ledger: options.LedgerOption = options.DEFAULT_LEDGER,
    as_of: options.AsOfOption = None,
    *,
    last: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help=f"The last N windows and amendments as text; default: {LAST}."),
    ] = None,
    every: AllSpecsOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Show what is published, missing, due or overdue, and what the budget covers; 6 where one is overdue."""
    if every:
        if spec is not None or first is not None or last is not None:
            message = "--all takes every spec of the profile: leave SPEC, --from and --last out"
            raise UsageError(message)
        show_standing(store=store, ledger=ledger, as_of=as_of, as_json=as_json)
        return
    if spec is None:
        message = "SPEC is missing: name a spec, or --all for those of the deployment profile"
        raise UsageError(message)
    settings(store=store, ledger=ledger, spec_path=spec)  # before the spec is opened
    from suffice.pipeline.spec.spec import load_spec
    from suffice.releasing.gap_report import status as report_on

    report = report_on(load_spec(spec), first, store=store, ledger=ledger, as_of=as_of)
    if as_json:
        output.print_json(document(report))
    else:
        _print_status(report, LAST if last is None else last)
    if not report.ok:
        raise typer.Exit(OVERDUE)


class WindowOfRelease(TypedDict):
    """When a release's window ended, whether it was released after that, what it amends, and what it."""

    window_ended: str
    released: Hour
    closed: bool
    amendment: Count
    amends: ShortId | None
    amended_by: ShortId | None


def window_of(release: Release) -> WindowOfRelease | None:
    """Return what there is to say of a release's window; None without windows."""
    from suffice.pipeline.spec.windows_and_amendments import Window, window_times
    from suffice.storage.releases.release_store import newer_edition

    grid = release.manifest["plan"]["window"]
    if grid is None:
        return None
    ends = window_times(Window.model_validate(grid), release.window).ends
    created = dt.datetime.strptime(release.manifest["created"], "%Y-%m-%dT%HZ").replace(tzinfo=dt.UTC)
    return {
        "window_ended": f"{ends:%Y-%m-%dT%H:%MZ}",
        "released": release.manifest["created"],
        "closed": created + dt.timedelta(hours=1) > ends,
        "amendment": release.amendment,
        "amends": release.manifest["amends"]["release_id"] if release.amendment else None,
        "amended_by": newer.release_id if (newer := newer_edition(release)) else None,
    }


def _show_dry_run(planned: Backfill, *, as_json: bool) -> None:
    if as_json:
        output.print_json(document(planned))
        return
    _print_backfill(planned)
    needed = document(planned)["needed_grant"]
    if planned.needed is None:
        say("nothing is left")
    elif planned.needed == planned.granted:
        say(f"the grant of {planned.loss.measure} {needed} covers what is left")
    else:
        say(f"a grant of {planned.loss.measure} {needed} in all covers what is left")
    say("nothing was charged or read")


def _print_backfill(done: Backfill) -> None:
    written = document(done)
    output.print_rows(
        [{"window": window.edition, "status": window.status} for window in done.windows], others="--json"
    )
    numbers = {status: len(done.named(status)) for status in _STATUSES}
    counts = [
        f"{status.replace('_', ' ')} {count}"
        for status, count in numbers.items()
        if count or status != "stopped"  # only a spec that expects something has such windows
    ]
    say(f"\n{', '.join(counts)}; {done.loss} each")
    if done.stopped is not None:
        say(done.stopped)
    if done.refusal is not None:
        say(done.refusal)
        grant = f"{done.loss.measure} {written['needed_grant']}"
        say(f"to go on: a grant of {grant} in all, then the same command again")


def _print_status(report: GapReport, last: int) -> None:
    """Print the last windows and amendments; what there is to do, of all."""
    from suffice.releasing.gap_report import GAPS
    from suffice.releasing.row_counts import FALSE_ALARM, Rows

    shown = document(report)
    if not shown["windows"]:
        say("no window has ended yet that is expected")
        return
    is_compared = any(window["rows"] for window in shown["windows"])
    _print_last(
        [
            {
                **_row_of_status(window, ("ends", "complete")),
                "charge": window["charge"],
                **({"rows": window["rows"]} if is_compared else {}),
            }
            for window in shown["windows"]
        ],
        last,
        "window",
    )
    counts = {state: sum(window["state"] == state for window in shown["windows"]) for state in _STATES}
    said = {state: count for state, count in counts.items() if count or state != "stopped"}
    say("\n" + ", ".join(f"{count} {state.replace('_', ' ')}" for state, count in said.items()))
    for kind, than in ((Rows.FEW, "less than half"), (Rows.MANY, "more than twice")):
        if named := [window.window for window in report.windows if window.rows is kind]:
            say(
                f"look at {', '.join(named)}: {than} of their neighbours' rows (the median), by what is "
                f"released; noise alone names a window with a chance of at most {FALSE_ALARM:g}"
            )
    if report.amendments:
        say("")
        _print_last(
            [{**_row_of_status(each, ("due",)), "charge": each["charge"]} for each in shown["amendments"]],
            last,
            "amendment",
        )
    gaps = sum(counts[state] for state in GAPS) + len(report.amendments)
    further = "every further one" if report.further is None else f"{report.further} further ones"
    where = " in a window without charges" if report.per_window else ""
    counting = f" and {report.expected.text} for the count before" if report.expected else ""
    say(
        f"{report.loss} each{counting}, {report.remaining.text} left{where}: "
        f"covers {report.covered} of {gaps} to come, and {further}"
    )


def _row_of_status(shown: dict[str, Any], times: Sequence[str]) -> dict[str, Any]:
    """Return a row that fits a terminal: a window with the number of its amendment, times to the minute."""
    from suffice.pipeline.spec.windows_and_amendments import edition  # it imports numpy

    named = {"window": edition(shown["window"], shown["amendment"]), "state": shown["state"]}
    return named | {name: f"{shown[name].removesuffix(':00Z')}Z" for name in times}


def _print_last(rows: Sequence[dict[str, Any]], last: int, what: str) -> None:
    """Print the last rows, after how many are left out, by their states."""
    earlier = rows[: max(0, len(rows) - last)]
    if earlier:
        states = ", ".join(
            f"{number} {state.replace('_', ' ')}"
            for state, number in Counter(row["state"] for row in earlier).items()
        )
        say(
            f"{counted(len(earlier), f'earlier {what}')} ({states}): --last {len(rows)} shows all, and --json"
        )
    if len(rows) > len(earlier):
        output.print_rows(rows[len(earlier) :], limit=len(rows))


_STATUSES = ("published", "already_published", "stopped", "failed", "left")
_STATES = ("published", "missing", "overdue", "stopped", "withdrawn", "not_in_store")
