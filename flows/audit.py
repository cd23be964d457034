"""The flow ``audit_ledger``: whether the ledger is whole, and the stores hold what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.errors import SufficeError
from suffice.flows import endings
from suffice.flows.endings import Subject
from suffice.flows.parameters import AuditParameters
from suffice.flows.running import RunResult, flow, run_work
from suffice.monitoring.records import note_audit
from suffice.pipeline.terms.declaration.wording import counted
from suffice.profile.settings import pinned_profile, setting, settings
from suffice.storage.ledger.opening import open_ledger
from suffice.storage.operations.verify_ledger import compare_with_store
from suffice.storage.operations.verify_store import verify_store
from suffice.storage.releases.release_store import open_store

if TYPE_CHECKING:
    from suffice.flows.endings import Reporter
    from suffice.storage.ledger.ledger import Ledger

_LEDGER = Subject(kind="ledger")


@flow(name="audit-ledger")
def audit_ledger(audit: AuditParameters | None = None) -> str:
    """Examine the ledger's chain and accounts, and compare each of its stores with it, both ways.

    It changes nothing: an auditor's login is enough.

    Parameters
    ----------
    audit : AuditParameters, optional

    Returns
    -------
    str
        What was examined, in one line.
    """
    asked = audit or AuditParameters()
    state: str = run_work(lambda _: _audited(asked), unread=_LEDGER, failed=endings.NOT_DONE)
    return state


def _audited(asked: AuditParameters) -> RunResult:
    try:
        asked.require_no_password()
        ledger = settings(ledger=asked.ledger).ledger
        place = None if asked.store is None else setting("store", asked.store, profile=pinned_profile()).value
        with open_ledger(ledger, reading_only=True) as opened:
            examination = opened.examine(full=asked.full)
            places = [place] if place else [known.uri for known in opened.stores() if not known.retired]
            problems = [{"where": "ledger", "problem": text} for text in examination.problems]
            for uri in places:
                problems += [{"where": uri, "problem": text} for text in _store_problems(opened, uri)]
    except SufficeError as error:
        return RunResult(ending=endings.NOT_DONE, message=endings.error_text(error), subject=_LEDGER)
    note_audit(ok=not problems)
    message = (
        f"entries up to {examination.head.sequence} and {counted(len(places), 'store')} examined: "
        f"{counted(len(problems), 'problem') if problems else 'all is well'}"
    )

    def show(reporter: Reporter) -> None:
        if problems:
            reporter.show_table("audit", problems, description=message)

    return RunResult(
        ending=endings.NOT_VERIFIED if problems else endings.VERIFIED,
        message=message,
        subject=_LEDGER,
        facts={"problems": str(len(problems)), "sequence": str(examination.head.sequence)},
        show=show,
        result=message,
    )


def _store_problems(ledger: Ledger, uri: str) -> list[str]:
    """Return what is wrong with a store, or that it cannot be examined."""
    try:
        store = open_store(uri)
        compared = compare_with_store(ledger, store).problems
        return [
            *compared,
            *(text for text in verify_store(store, ledger=ledger).problems if text not in compared),
        ]
    except SufficeError as error:
        return [endings.error_text(error)]
