"""How a run may end, and what Prefect is told of it: a named state, one event, artifacts of public values.

What became of a charge is asked of the ledger, never guessed from an error. Prefect's runner may write a
plain ``Cancelled`` over the state that a cancelled run ended in. That state is set again: else nobody would
see that a release was published all the same, or that epsilon is spent.

Telling is worth a try each and no more: a server that is gone must not cost what a run is for. After the
first failure nothing else is sent. What is shown stands in the manifest, the ledger or the spec; none of it
follows a data value.
"""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from prefect import get_client, get_run_logger, runtime
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.client.schemas.objects import State, StateType
from prefect.events import emit_event
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from suffice import errors
from suffice.monitoring import records
from suffice.monitoring.records import refusal_kind
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.declaration.row_rules import in_words
from suffice.storage.ledger.charge import ChargeState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from uuid import UUID

    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import FlowRun
    from prefect.flows import Flow

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
    from suffice.storage.ledger.charge import Charge
    from suffice.storage.ledger.ledger import Ledger
    from suffice.storage.publications.publication import Publication

PATIENCE_S = 60.0
"""Seconds in which the runner ends the run after it called the hook."""


def say_again(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:  # noqa: ARG001 - Prefect's hook
    """Wait in the background until the runner has ended the run, and end it in its own state again.

    Called by the runner, in its own process, after the run's process is gone. Only a state that says that
    epsilon is spent is said again.
    """
    threading.Thread(target=_restore, args=(flow_run.id,), name="suffice-cancelled").start()


def _restore(run_id: UUID) -> None:
    end = time.monotonic() + PATIENCE_S
    with get_client(sync_client=True) as client:
        ended = _own_state(client, run_id)
        while ended is not None and time.monotonic() < end:
            current = client.read_flow_run(run_id).state
            if current is not None and current.name == "Cancelled":
                again: State[Any] = State(type=StateType.CANCELLED, name=ended.name, message=ended.message)
                client.set_flow_run_state(run_id, again, force=True)
                return
            time.sleep(0.5)


def _own_state(client: SyncPrefectClient, run_id: UUID) -> State[Any] | None:
    """Return the state that the run itself ended in, if it is one that must not be hidden."""
    states = client.read_flow_run_states(run_id)
    return next((state for state in reversed(states) if state.name in AFTER_THE_DRAW), None)


COMPLETED, FAILED, CANCELLED = "COMPLETED", "FAILED", "CANCELLED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a run ended.

    Attributes
    ----------
    name : str
        Of the state.
    kind : str
        Its type in Prefect: ``COMPLETED``, ``FAILED`` or ``CANCELLED``.
    event : str
        The event that is emitted.
    """

    name: str
    kind: str
    event: str


PUBLISHED = Ending(name="Published", kind=COMPLETED, event="suffice.release.published")
ALREADY_PUBLISHED = Ending(
    name="Already published", kind=COMPLETED, event="suffice.release.already-published"
)
SKIPPED = Ending(name="Skipped", kind=COMPLETED, event="suffice.release.skipped")
REFUSED_BUDGET = Ending(name="Refused: budget", kind=FAILED, event="suffice.release.refused-budget")
REFUSED_ACCOUNT = Ending(name="Refused: account", kind=FAILED, event="suffice.release.refused-account")
REFUSED_SPEC = Ending(name="Refused: spec", kind=FAILED, event="suffice.release.refused-spec")
STOPPED = Ending(name="Stopped: fewer than expected", kind=FAILED, event="suffice.release.stopped")
INTERRUPTED_PUBLISHED = Ending(
    name="Interrupted, published", kind=CANCELLED, event="suffice.release.interrupted-published"
)
INTERRUPTED = Ending(
    name="Interrupted, nothing spent", kind=CANCELLED, event="suffice.release.interrupted-nothing-spent"
)
SPENT = Ending(name="Spent, not published", kind=FAILED, event="suffice.release.spent-not-published")
INTERRUPTED_SPENT = Ending(name=SPENT.name, kind=CANCELLED, event=SPENT.event)
NOT_RELEASED = Ending(name="Failed", kind=FAILED, event="suffice.release.failed")
BACKFILLED = Ending(name="Backfilled", kind=COMPLETED, event="suffice.backfill.completed")
BACKFILL_SKIPPED = Ending(name=SKIPPED.name, kind=COMPLETED, event="suffice.backfill.skipped")
BACKFILL_REFUSED_BUDGET = Ending(
    name=REFUSED_BUDGET.name, kind=FAILED, event="suffice.backfill.refused-budget"
)
BACKFILL_REFUSED_ACCOUNT = Ending(
    name=REFUSED_ACCOUNT.name, kind=FAILED, event="suffice.backfill.refused-account"
)
BACKFILL_REFUSED_SPEC = Ending(name=REFUSED_SPEC.name, kind=FAILED, event="suffice.backfill.refused-spec")
BACKFILL_STOPPED = Ending(name=STOPPED.name, kind=FAILED, event="suffice.backfill.stopped")
BACKFILL_INTERRUPTED = Ending(
    name="Backfill interrupted", kind=CANCELLED, event="suffice.backfill.interrupted"
)
BACKFILL_SPENT = Ending(name=SPENT.name, kind=FAILED, event="suffice.backfill.spent-not-published")
NOT_BACKFILLED = Ending(name="Failed", kind=FAILED, event="suffice.backfill.failed")
RECOVERED = Ending(name="Recovered", kind=COMPLETED, event="suffice.ledger.recovered")
LEFT_UNSETTLED = Ending(name="Not recovered", kind=FAILED, event="suffice.ledger.not-recovered")
REHEARSED = Ending(name="Rehearsed", kind=COMPLETED, event="suffice.rehearsal.completed")
NOT_REHEARSED = Ending(name="Rehearsal failed", kind=FAILED, event="suffice.rehearsal.failed")
VERIFIED = Ending(name="Verified", kind=COMPLETED, event="suffice.ledger.verified")
NOT_VERIFIED = Ending(name="Not verified", kind=FAILED, event="suffice.ledger.not-verified")
FITTED = Ending(name="Fitted", kind=COMPLETED, event="suffice.model.fitted")
NOT_FITTED = Ending(name="Not fitted", kind=FAILED, event="suffice.model.failed")
POSTERIOR_PUBLISHED = Ending(name="Published", kind=COMPLETED, event="suffice.publication.published")
POSTERIOR_FOUND = Ending(
    name="Already published", kind=COMPLETED, event="suffice.publication.already-published"
)
POSTERIOR_NOT_PUBLISHED = Ending(name="Not published", kind=FAILED, event="suffice.publication.failed")
NOT_DONE = Ending(name="Failed", kind=FAILED, event="suffice.ledger.failed")

_REFUSED = {"budget": REFUSED_BUDGET, "account": REFUSED_ACCOUNT, "spec": REFUSED_SPEC}
_OF_NAMES = {ending.name: kind for kind, ending in _REFUSED.items()}
_OF_A_BACKFILL = (
    ((KeyboardInterrupt, errors.ReleaseInterruptedError), BACKFILL_INTERRUPTED),
    ((errors.AccountMissingError,), BACKFILL_REFUSED_BUDGET),
    ((errors.AccountError,), BACKFILL_REFUSED_ACCOUNT),
    ((errors.UsageError, errors.SchemaError), BACKFILL_REFUSED_SPEC),
    ((errors.ChargeSpentError,), BACKFILL_SPENT),
    ((errors.ExpectationNotMetError,), BACKFILL_STOPPED),
)

AFTER_THE_DRAW = (INTERRUPTED_PUBLISHED.name, SPENT.name, BACKFILL_INTERRUPTED.name)
"""Names of states that a cancellation must not hide: epsilon is spent, or may be."""


def release_ending(error: errors.SufficeError, charge: Charge | None) -> Ending:
    """Return how a release ended that raised `error`, and whose key the ledger now has `charge` for."""
    drew = charge is not None and _may_be_spent(charge)
    if isinstance(error, errors.ReleaseInterruptedError):
        published = charge is not None and charge.state is ChargeState.PUBLISHED
        drawn = INTERRUPTED_PUBLISHED if published else INTERRUPTED_SPENT
        return drawn if drew else INTERRUPTED
    if isinstance(error, errors.ChargeSpentError) or (isinstance(error, errors.StageFailedError) and drew):
        return SPENT
    if isinstance(error, errors.ExpectationNotMetError):
        return STOPPED
    kind = refusal_kind(error)
    return NOT_RELEASED if kind is None else _REFUSED[kind]


def _may_be_spent(charge: Charge) -> bool:
    """Tell whether a charge came to its draw and was not returned: until it is settled it counts as spent."""
    return charge.drew and charge.counts_as != "returned"


def refused_kind(ending: Ending) -> str | None:
    """Return the kind of refusal that an ending is, of a release or a backfill; None where it is none."""
    return _OF_NAMES.get(ending.name)


def backfill_ending(error: BaseException, charge: Charge | None) -> Ending:
    """Return how a backfill ended in `error`, at a window whose key the ledger now has `charge` for.

    What it published before stays so.
    """
    if isinstance(error, errors.StageFailedError) and charge is not None and _may_be_spent(charge):
        return BACKFILL_SPENT
    for kinds, ending in _OF_A_BACKFILL:
        if isinstance(error, kinds):
            return ending
    return NOT_BACKFILLED


def error_text(error: BaseException) -> str:
    """Return what may be told of an error: its class, and its text where that never holds a data value."""
    kind = type(error).__name__
    return f"{kind}: {error}" if isinstance(error, errors.SufficeError) else kind


def charge_text(ending: Ending, charge: Charge | None, *, unless_in: str) -> str:
    """Return what the ledger says of the charge of a run that ended so, and what is told already does not.

    Empty where the run took nothing.
    """
    if charge is None or not _may_be_spent(charge) or ending in _REFUSED.values():
        return ""
    facts = (f"the charge is {charge.state}", f"{charge.loss} is spent")
    return ", and ".join(fact for fact in facts if fact not in unless_in)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a run is about; every text is public.

    Attributes
    ----------
    kind : str
        ``release``, ``backfill``, ``ledger``, ``model`` or ``publication``.
    names : mapping of str to str
        As dataset, name and window; empty where nothing was read yet.
    title : str
        As the run is called: ``flights-by-origin@2013-01``; empty where nothing was read yet.
    """

    kind: str
    names: Mapping[str, str] = field(default_factory=dict)
    title: str = ""

    @property
    def resource(self) -> dict[str, str]:
        """The resource of the run's event."""
        identity = ".".join(["suffice", self.kind, *self.names.values()])
        resource = {"prefect.resource.id": identity}
        if self.title:
            resource["prefect.resource.name"] = self.title
        return resource | dict(self.names)


class Reporter:
    """Tells Prefect about one run, until its server fails to answer."""

    def __init__(self) -> None:
        self._reachable = True
        self._logger = get_run_logger()

    def notice(self, text: str) -> None:
        """Put a sentence into the run's log."""
        self._logger.info(text)
        if (log := records.CURRENT.get()) is not None:
            log.write("notice", message=text)

    def name_run(self, title: str, tags: Sequence[str]) -> None:
        """Give the run its name, and tags beside those that it has."""

        def tell() -> None:
            with get_client(sync_client=True) as client:
                every = sorted({*runtime.flow_run.tags, *tags})
                client.update_flow_run(runtime.flow_run.id, name=title, tags=every)

        self._try_once(tell)

    def emit(self, subject: Subject, ending: Ending, payload: Mapping[str, str]) -> None:
        """Emit the event of an ending."""
        resource = {**subject.resource, "ending": ending.name}
        self._try_once(lambda: emit_event(ending.event, resource=resource, payload=dict(payload)))

    def show_text(self, key: str, markdown: str, description: str) -> None:
        """Make a Markdown artifact."""
        self._try_once(
            lambda: create_markdown_artifact(markdown, key=artifact_key(key), description=description)
        )

    def show_table(self, key: str, rows: Sequence[Mapping[str, str]], description: str) -> None:
        """Make a table artifact."""
        table = [dict(row) for row in rows]
        self._try_once(lambda: create_table_artifact(table, key=artifact_key(key), description=description))

    def _try_once(self, tell: Callable[[], object]) -> None:
        if not self._reachable:
            return
        try:
            with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0}):
                tell()
        except Exception as error:  # noqa: BLE001 - whatever it is, the run goes on
            self._reachable = False
            self._logger.warning("Prefect's server was not told: %s", type(error).__name__)


def artifact_key(text: str) -> str:
    """Return a key as Prefect allows it: small letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


_SHOWN_FILES = 50
SHOWN_WINDOWS = 50
"""The last windows of an account that its table shows."""


def release_text(release: Release, *, ending: str, remaining: PrivacyLoss) -> str:
    """Return a release's page in Markdown: what it is, its price, what remains, its files.

    Parameters
    ----------
    release : Release
    ending : str
        The name of the run's state.
    remaining : PrivacyLoss
        What the account has left.
    """
    title = release.name if release.window == "all" else f"{release.name}@{release.window}"
    facts = {
        "release": f"[{release.uri}]({_link(release.uri)})",
        "manifest": f"[manifest.json]({_link(release.uri)}/manifest.json)",
        "dataset": release.dataset,
        "window": release.window,
        **release.loss.stated,
        f"remaining {remaining.measure}": remaining.text,
        "neighbouring relation": str(release.neighboring),
        "unit": release.unit,
        "release id": f"`{release.release_id}`",
    }
    files = [
        f"| {file['statistic']} | [{file['path']}]({_link(release.uri)}/{file['path']}) | {file['rows']} "
        f"| `{file['sha256'][:16]}` |"
        for file in release.files
    ]
    head = ["| statistic | file | rows | SHA-256 begins |", "|---|---|---|---|"]
    reading = f"Read it with `suffice show {release.uri}`."
    return "\n".join([*_facts_text(f"{title}: {ending}", facts), *head, *files, "", reading, ""])


def publication_text(publication: Publication, *, ending: str) -> str:
    """Return a publication's page in Markdown: what was asked, of which releases, its files."""
    stated = publication.manifest
    request = stated["request"]
    paid = ", ".join(map(str, publication.stated.paid.values()))
    facts = {
        "publication": f"[{publication.uri}]({_link(publication.uri)})",
        "publication id": f"`{publication.publication_id}`",
        "kind": request["kind"].replace("_", " "),
        "releases": ", ".join(release["label"] for release in request["releases"]),
        "paid": f"{paid} was spent on these; the publication costs 0",
        "method": request["method"],
        "draws": f"{request['draws']} a cell, seed {request['seed']}",
    }
    priors = [
        f"| {_cell(entry['statistic'])} | {_cell('; '.join(prior['prior'] for prior in entry['priors']))} |"
        for entry in request["statistics"]
    ]
    files = [
        f"| {_cell(file['role'])} | [{_cell(file['name'])}]({_link(publication.uri)}/{file['path']}) | "
        f"{'' if file['rows'] is None else file['rows']} |"
        for file in stated["files"][:_SHOWN_FILES]
    ]
    lines = _facts_text(f"{_cell(stated['title'])}: {ending}", facts)
    lines += ["| statistic | prior |", "|---|---|", *priors, ""]
    return "\n".join([*lines, "| role | file | rows |", "|---|---|---|", *files, ""])


def _facts_text(title: str, facts: Mapping[str, str]) -> list[str]:
    """Return a title and a table of facts, as lines of Markdown."""
    rows = (f"| {name} | {_cell(text)} |" for name, text in facts.items())
    return [f"# {title}", "", "| | |", "|---|---|", *rows, ""]


def account_rows(ledger: Ledger, dataset: str) -> list[dict[str, str]]:
    """Return an account as rows: the account's own, and one for each of its last windows."""
    account = ledger.account(dataset)
    everything = f"each of {in_words(account.per_window)}" if account.per_window else "all time"
    windows = list(ledger.windows(dataset))[-SHOWN_WINDOWS:]
    balances: list[tuple[str, Any]] = [
        (everything, account),
        *((balance.window, balance) for balance in windows),
    ]
    return [
        {
            "account": dataset,
            "measure": str(account.measure),
            "window": window,
            "granted": format_number(account.granted),
            "spent": format_number(balance.spent),
            "reserved": format_number(balance.reserved),
            "remaining": format_number(balance.remaining),
        }
        for window, balance in balances
    ]


def _link(uri: str) -> str:
    return uri if "://" in uri else f"file://{uri}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
