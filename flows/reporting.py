"""What Prefect is told about a run: its name, its tags, one event, and artifacts of public values only.

Telling is worth a try each and no more: a server that is gone must not cost what a run is for. After the
first failure nothing else is sent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prefect import get_client, get_run_logger, runtime
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.events import emit_event
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from suffice.monitoring import log_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from suffice.flows.endings import Ending


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
        if (log := log_lines.CURRENT.get()) is not None:
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
