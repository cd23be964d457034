"""The flow ``backfill``: the releases of many windows, oldest first, until they are done or the budget is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from suffice.errors import SufficeError, UsageError
from suffice.flows import endings
from suffice.flows.endings import Subject, say_again
from suffice.flows.parameters import BackfillParameters  # noqa: TC001 - Prefect reads the annotation
from suffice.flows.release import show_account
from suffice.flows.running import RunResult, flow, read_again, run_work, scheduled_time
from suffice.monitoring.records import newest_charge
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.spec.windows_and_amendments import first_window, moment, windows_between
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
from suffice.pipeline.terms.declaration.wording import counted
from suffice.profile.settings import settings
from suffice.releasing.backfill import FAILED, LEFT, STOPPED, carry_out_backfill, is_anything_left
from suffice.releasing.run import ALREADY_PUBLISHED, PUBLISHED

if TYPE_CHECKING:
    from suffice.flows.endings import Reporter
    from suffice.flows.running import Run
    from suffice.releasing.backfill import Backfill

_UNREAD = Subject(kind="backfill")


@flow(name="backfill", on_cancellation=[say_again])
def backfill_windows(windows: BackfillParameters) -> str:
    """Release every window from the first to the last, each for a charge of its own.

    So are amendments that are due. What is published is skipped. The same run again goes on where this one
    ended, however that was.

    Parameters
    ----------
    windows : BackfillParameters

    Returns
    -------
    str
        What was done, in one line.
    """
    state: str = run_work(
        lambda run: _backfilled(windows, run), unread=_UNREAD, failed=endings.NOT_BACKFILLED
    )
    return state


def _backfilled(asked: BackfillParameters, run: Run) -> RunResult:
    """Find out which windows are asked for, and release them."""
    try:
        asked.require_no_password()
        places = settings(store=asked.store, ledger=asked.ledger, cluster=asked.cluster, spec_path=asked.spec)
        spec = load_spec(asked.spec)
        as_of = moment(scheduled_time(), datetime.now(UTC))
        first = asked.first or first_window(spec)
        labels = windows_between(spec, first, asked.last, as_of=as_of, allow_open=asked.allow_open)
    except UsageError as error:
        return RunResult(
            ending=endings.BACKFILL_REFUSED_SPEC, message=endings.error_text(error), subject=_UNREAD
        )
    span = f"{labels[0]}..{labels[-1]}"
    names = {"dataset": spec.dataset, "name": spec.name, "windows": span}
    subject = Subject(kind="backfill", names=names, title=f"{spec.name}@{span}")
    run.reporter.name_run(subject.title, [spec.dataset, spec.name])
    run.about(dataset=spec.dataset, name=spec.name)
    try:
        if is_anything_left(spec, labels, ledger=places.ledger, as_of=as_of):
            why = run.skips(spec.dataset, lambda _: True)
            if why is not None:
                return RunResult(ending=endings.BACKFILL_SKIPPED, message=why, subject=subject)
            run.hold(spec.dataset)  # to find all published, nobody needs to wait for others
        done = carry_out_backfill(
            spec,
            labels[0],
            labels[-1],
            store=places.store,
            ledger=places.ledger,
            cluster=places.cluster,
            as_of=as_of,
            allow_open=asked.allow_open,
            publish_timeout=asked.publish_timeout,
            notice=run.reporter.notice,
            attempt=lambda work: read_again(
                work, attempts=asked.reading_attempts, pause=asked.reading_pause, notice=run.reporter.notice
            ),
        )
    except (SufficeError, KeyboardInterrupt) as error:
        ending = endings.backfill_ending(error, None)
        text = endings.error_text(error)
        show = lambda reporter: show_account(reporter, places.ledger, spec.dataset)  # noqa: E731
        return RunResult(ending=ending, message=text, subject=subject, show=show)
    return _verdict(done, subject, places.ledger, spec.dataset)


def _verdict(done: Backfill, subject: Subject, ledger: str, dataset: str) -> RunResult:
    statuses = (PUBLISHED, ALREADY_PUBLISHED, *([STOPPED] if done.stopped else []), FAILED, LEFT)
    counts = {status: len(done.named(status)) for status in statuses}
    each = f"{done.loss} each"
    words = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in counts.items())
    lines = [f"{counted(len(done.windows), 'release')} for {each}: {words}"]
    ending = endings.BACKFILLED
    if done.failure is not None:
        charge = None
        for window in done.windows:
            if window.status == FAILED:
                name = subject.names["name"]
                charge = newest_charge(ledger, dataset, name, window.window, window.amendment)
        ending = endings.backfill_ending(done.failure, charge)
        lines += [*(f"{window} failed" for window in done.named(FAILED)), endings.error_text(done.failure)]
    elif done.needed is not None:
        ending = endings.BACKFILL_REFUSED_BUDGET
        grant = PrivacyLoss(done.loss.measure, done.needed)
        lines += [str(done.refusal), f"a grant of {grant} in all covers what is left"]
    elif done.stopped is not None:
        ending = endings.BACKFILL_STOPPED
        lines += [f"{window} stopped" for window in done.named(STOPPED)]
        lines.append(endings.error_text(done.stopped))
    message = "; ".join(lines)
    rows = [
        {"window": window.edition, "status": window.status.replace("_", " "), "release": window.uri or ""}
        for window in done.windows
    ]

    def show(reporter: Reporter) -> None:
        reporter.show_table(f"backfill-{subject.names['name']}", rows, description=subject.title)
        show_account(reporter, ledger, dataset)

    return RunResult(
        ending=ending,
        message=message,
        subject=subject,
        facts={status: str(count) for status, count in counts.items()},
        show=show,
        result=message,
    )
