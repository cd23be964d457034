"""The flow ``release_statistics``: one release, inside one Prefect flow run.

Prefect stores every flow parameter, every returned value that is persisted, and the text and attributes
of every exception. So parameters are public, everything exact stays inside one plain function, nothing is
persisted, cached or retried, and the run ends in a state of its own, never in an exception.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from suffice.errors import ReleaseInterruptedError, SufficeError, UsageError
from suffice.flows import endings
from suffice.flows.endings import Reporter, Subject, account_rows, release_text, say_again
from suffice.flows.parameters import ReleaseParameters  # noqa: TC001 - Prefect reads the annotation
from suffice.flows.running import Run, RunResult, flow, read_again, run_work, scheduled_time
from suffice.monitoring.records import newest_charge
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.spec.windows_and_amendments import moment, resolve_window
from suffice.profile.settings import settings
from suffice.releasing.release import carry_out
from suffice.releasing.run import ALREADY_PUBLISHED
from suffice.storage.ledger.charge import ChargeState, label
from suffice.storage.ledger.opening import open_ledger

if TYPE_CHECKING:
    from suffice.pipeline.spec.spec import Spec
    from suffice.profile.settings import Settings
    from suffice.releasing.release import Outcome


@flow(name="release-statistics", on_cancellation=[say_again])
def release_statistics(release: ReleaseParameters) -> str:
    """Publish one release, or find it published; return its URI.

    Whatever happens, the run ends in one of the states of :mod:`suffice.flows.endings`.

    Parameters
    ----------
    release : ReleaseParameters

    Returns
    -------
    str
        The release's URI.
    """
    state: str = run_work(
        lambda run: _release(release, run), unread=Subject(kind="release"), failed=endings.NOT_RELEASED
    )
    return state


def _release(asked: ReleaseParameters, run: Run) -> RunResult:
    """Find out what is asked for, and do it."""
    try:
        asked.require_no_password()
        places = settings(store=asked.store, ledger=asked.ledger, cluster=asked.cluster, spec_path=asked.spec)
        spec = load_spec(asked.spec)
        as_of = moment(scheduled_time(), datetime.now(UTC))
        window = resolve_window(spec, asked.window, as_of=as_of, allow_open=asked.allow_open)
    except UsageError as error:
        return RunResult(
            ending=endings.REFUSED_SPEC, message=endings.error_text(error), subject=Subject(kind="release")
        )
    subject = Subject(
        kind="release",
        names={"dataset": spec.dataset, "name": spec.name, "window": window},
        title=label(spec.name, window),
    )
    run.reporter.name_run(subject.title, [spec.dataset, spec.name])
    run.about(**subject.names, amendment=0)
    charge = newest_charge(places.ledger, spec.dataset, spec.name, window)
    if charge is None or charge.state is not ChargeState.PUBLISHED:
        why = run.skips(spec.dataset, lambda time: _window(asked, spec, time) == window)
        if why is not None:
            return RunResult(ending=endings.SKIPPED, message=why, subject=subject)
        run.hold(spec.dataset)  # to find a release published, nobody needs to wait for others
    verdict = _released(asked, spec, places, subject, as_of, run.reporter)
    run.settled(lambda: newest_charge(places.ledger, spec.dataset, spec.name, window))
    return verdict


def _window(asked: ReleaseParameters, spec: Spec, as_of: datetime) -> str | None:
    """Return which window a run that was scheduled then is about; None where there was none."""
    try:
        return resolve_window(spec, asked.window, as_of=as_of, allow_open=asked.allow_open)
    except UsageError:
        return None


def _released(
    asked: ReleaseParameters,
    spec: Spec,
    places: Settings,
    subject: Subject,
    as_of: datetime,
    reporter: Reporter,
) -> RunResult:
    """Release, and ask the ledger what became of the charge where that went wrong."""
    try:
        outcome = read_again(
            lambda: carry_out(
                spec,
                store=places.store,
                ledger=places.ledger,
                cluster=places.cluster,
                window=subject.names["window"],
                as_of=as_of,
                allow_open=asked.allow_open,
                publish_timeout=asked.publish_timeout,
                notice=reporter.notice,
            ),
            attempts=asked.reading_attempts,
            pause=asked.reading_pause,
            notice=reporter.notice,
        )
    except (SufficeError, KeyboardInterrupt) as error:
        failure = error if isinstance(error, SufficeError) else ReleaseInterruptedError("interrupted")
    else:
        return _success(outcome, places, subject)
    charge = newest_charge(places.ledger, spec.dataset, spec.name, subject.names["window"])
    ending = endings.release_ending(failure, charge)
    said = endings.error_text(failure)
    lines = [said, endings.charge_text(ending, charge, unless_in=said)]
    return RunResult(
        ending=ending,
        message="; ".join(filter(None, lines)),
        subject=subject,
        facts=compile_plan(spec).loss.stated,
        show=lambda reporter: show_account(reporter, places.ledger, spec.dataset),
    )


def _success(outcome: Outcome, places: Settings, subject: Subject) -> RunResult:
    release, charged, remaining = outcome.release, outcome.charged, outcome.remaining
    again = outcome.status == ALREADY_PUBLISHED
    ending = endings.ALREADY_PUBLISHED if again else endings.PUBLISHED

    def show(reporter: Reporter) -> None:
        text = release_text(release, ending=ending.name, remaining=remaining)
        reporter.show_text(f"release-{release.name}", text, description=subject.title)
        show_account(reporter, places.ledger, release.dataset)

    return RunResult(
        ending=ending,
        message=f"{release.uri}; {charged * 0 if again else charged} was charged, {remaining.text} remains",
        subject=subject,
        facts={
            **release.loss.stated,
            **charged.stated,
            "remaining": remaining.text,
            "uri": release.uri,
        },
        show=show,
        result=release.uri,
    )


def show_account(reporter: Reporter, ledger: str, dataset: str) -> None:
    """Make the table of an account, where the ledger can be asked and has one."""
    try:
        with open_ledger(ledger, reading_only=True) as opened:
            rows = account_rows(opened, dataset)
    except SufficeError:
        return
    reporter.show_table(f"account-{dataset}", rows, description=f"the account {dataset}")
