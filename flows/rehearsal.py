"""The flow ``rehearse``: every stage of a release on generated rows, where the release will run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from suffice.errors import UsageError
from suffice.flows import endings
from suffice.flows.endings import Subject
from suffice.flows.parameters import ReleaseParameters  # noqa: TC001 - Prefect reads the annotation
from suffice.flows.running import RunResult, flow, run_work, scheduled_time
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.spec.windows_and_amendments import moment
from suffice.pipeline.terms.declaration.wording import counted
from suffice.profile.settings import settings
from suffice.releasing.rehearsal import rehearse
from suffice.storage.ledger.charge import label

if TYPE_CHECKING:
    from suffice.flows.endings import Reporter
    from suffice.flows.running import Run
    from suffice.releasing.rehearsal import Rehearsal

_UNREAD = Subject(kind="rehearsal")


@flow(name="rehearse")
def rehearse_release(release: ReleaseParameters) -> str:
    """Try every stage of a release on generated rows; read no row, charge nothing.

    Parameters
    ----------
    release : ReleaseParameters
        Of the release that is rehearsed; attempts and timeouts play no part.

    Returns
    -------
    str
        What was tried, in one line.
    """
    state: str = run_work(lambda run: _rehearsed(release, run), unread=_UNREAD, failed=endings.NOT_REHEARSED)
    return state


def _rehearsed(asked: ReleaseParameters, run: Run) -> RunResult:
    try:
        asked.require_no_password()
        places = settings(store=asked.store, ledger=asked.ledger, cluster=asked.cluster, spec_path=asked.spec)
        done = rehearse(
            load_spec(asked.spec),
            store=places.store,
            ledger=places.ledger,
            cluster=places.cluster,
            window=asked.window,
            as_of=moment(scheduled_time(), datetime.now(UTC)),
            allow_open=asked.allow_open,
        )
    except UsageError as error:
        return RunResult(ending=endings.NOT_REHEARSED, message=endings.error_text(error), subject=_UNREAD)
    title = f"rehearsal of {label(done.name, done.window)}"
    run.reporter.name_run(title, [done.dataset, done.name])
    names = {"dataset": done.dataset, "name": done.name, "window": done.window}
    return _verdict(done, Subject(kind="rehearsal", names=names, title=title))


def _verdict(done: Rehearsal, subject: Subject) -> RunResult:
    """Say what was tried; how long it took is left out, for it may follow from how much data there are."""
    rows = [{"stage": stage.name, "tried": stage.tried or "failed"} for stage in done.stages]

    def show(reporter: Reporter) -> None:
        reporter.show_table(f"rehearsal-{done.name}", rows, description=subject.title)

    if done.failure is not None:
        message = f"{done.stages[-1].name}: {endings.error_text(done.failure)}; nothing was charged"
        return RunResult(ending=endings.NOT_REHEARSED, message=message, subject=subject, show=show)
    message = f"{counted(len(done.stages), 'stage')} worked; no row was read, nothing was charged"
    return RunResult(ending=endings.REHEARSED, message=message, subject=subject, show=show, result=message)
