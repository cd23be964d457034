"""The flow ``recover``: carry every charge that its run has left to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.errors import SufficeError
from suffice.flows import endings
from suffice.flows.endings import Subject
from suffice.flows.parameters import RecoverParameters
from suffice.flows.running import RunResult, flow, run_work
from suffice.pipeline.terms.declaration.documents import document
from suffice.pipeline.terms.declaration.wording import counted
from suffice.profile.settings import pinned_profile, setting, settings
from suffice.storage.ledger.opening import open_ledger
from suffice.storage.operations.recovery import Action, recover
from suffice.storage.releases.release_store import open_store
from suffice.storage.releases.spool import find_spool, spool_path

if TYPE_CHECKING:
    from suffice.flows.endings import Reporter
    from suffice.storage.operations.recovery import Report

_LEDGER = Subject(kind="ledger")


@flow(name="recover")
def recover_charges(recovery: RecoverParameters | None = None) -> str:
    """Publish what is staged or complete in this host's spool, and abandon what its run has left otherwise.

    It reads no data and draws nothing, so it may run at any time, beside releases too.

    Parameters
    ----------
    recovery : RecoverParameters, optional

    Returns
    -------
    str
        What was done, in one line.
    """
    asked = recovery or RecoverParameters()
    state: str = run_work(lambda _: _recovered(asked), unread=_LEDGER, failed=endings.NOT_DONE)
    return state


def _recovered(asked: RecoverParameters) -> RunResult:
    try:
        asked.require_no_password()
        ledger = settings(ledger=asked.ledger).ledger
        profile = pinned_profile()
        place = None if asked.store is None else setting("store", asked.store, profile=profile).value
        spool = find_spool(spool_path(ledger, setting("spool", None, profile=profile).value))
        with open_ledger(ledger) as opened:
            report = recover(
                opened, lambda uri: open_store(place or uri, ledger_id=opened.ledger_id), spool=spool
            )
    except SufficeError as error:
        return RunResult(ending=endings.NOT_DONE, message=endings.error_text(error), subject=_LEDGER)
    return _verdict(report)


def _verdict(report: Report) -> RunResult:
    published = sum(charge.action is Action.PUBLISHED for charge in report.charges)
    left = sum(bool(charge.problem) for charge in report.charges)
    message = (
        f"{counted(len(report.charges), 'charge')} looked at, {published} published, {left} left"
        if report.charges
        else "nothing to recover: every charge is final"
    )
    rows = [
        {key: str(value) for key, value in document(charge).items() if key != "removed"}
        for charge in report.charges
    ]

    def show(reporter: Reporter) -> None:
        if rows:
            reporter.show_table("recovery", rows, description="what recovery did about each charge")

    return RunResult(
        ending=endings.RECOVERED if report.ok else endings.LEFT_UNSETTLED,
        message=message,
        subject=_LEDGER,
        facts={"charges": str(len(rows)), "published": str(published), "left": str(left)},
        show=show,
        result=message,
    )
