"""What commands write to standard error: progress, warnings and errors, as text or as lines of JSON."""

from __future__ import annotations

import sys
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

from suffice.cli.output import Progress, say
from suffice.errors import SufficeWarning, bounded_message
from suffice.monitoring import records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from suffice.pipeline.spec.spec import Spec
    from suffice.releasing.backfill import Backfill


def progress(doing: str = "reading", unit: str = "tasks") -> Callable[[int, int], None] | None:
    """Return what shows progress to whoever sits at a terminal; elsewhere, and in JSON lines, there is none.

    How many parts there are follows from how many rows there are, which no log may tell.
    """
    return Progress(doing, unit) if _is_watched() else None


def cell_progress(doing: str) -> Callable[[int, int], None] | None:
    """Return what shows how many cells are done, where they take several blocks."""
    return Progress(doing, "cells", only_parts=True) if _is_watched() else None


def notice(text: str) -> None:
    """Say what a command waits for: on a terminal, or as a line of JSON."""
    if not records.write("notice", message=text) and _is_terminal():
        say(f"\n{bounded_message(text)}", error=True, flush=True)


def show_warnings() -> None:
    """Let warnings be one line on standard error each, without a place in the code."""
    warnings.simplefilter("always", SufficeWarning)
    warnings.showwarning = _show_warning


def show_error(name: str, message: str, status: int, *, as_text: bool = True) -> None:
    """Write why a command failed; as text, unless its document on standard output says it."""
    is_told = records.write("error", type=name, message=message, exit_status=status)
    if as_text and not is_told:
        say(f"suffice: {message}", error=True)


@contextmanager
def about_release(
    spec: Spec, *, window: str, amendment: int, as_of: str | None, allow_open: bool, ledger: str
) -> Iterator[None]:
    """Let the lines of a log name a release; after the block, which ends its run, its charge too."""
    log = records.CURRENT.get()
    if log is None:
        yield
        return
    from suffice.monitoring.records import charge_fields, newest_charge, window_of

    log.hold()
    log.about(dataset=spec.dataset, name=spec.name)
    label = window_of(spec, window, as_of=as_of, allow_open=allow_open)
    if label is not None:
        log.about(window=label, amendment=amendment)
    try:
        yield
    finally:
        if label is not None:
            log.about(**charge_fields(newest_charge(ledger, spec.dataset, spec.name, label, amendment)))


def about_backfill(spec: Spec) -> None:
    """Let the lines of a log name the series that is backfilled."""
    log = records.CURRENT.get()
    if log is not None:
        log.hold()
        log.about(dataset=spec.dataset, name=spec.name)


def note_backfill(spec: Spec, done: Backfill, *, ledger: str) -> None:
    """Write a line for each window of a backfill, when all of it has ended."""
    log = records.CURRENT.get()
    if log is None:
        return
    from suffice.monitoring.records import charge_fields, newest_charge

    for window in done.windows:
        charge = newest_charge(ledger, spec.dataset, spec.name, window.window, window.amendment)
        fields: dict[str, str | int] = {
            "window": window.window,
            "amendment": window.amendment,
            **charge_fields(charge),
        }
        log.write("notice", message=window.status.replace("_", " "), **fields)


def show_warning(text: str) -> None:
    """Write what a person should know, though nothing is refused for it."""
    if not records.write("warning", message=text):
        say(f"suffice: warning: {bounded_message(text)}", error=True)


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Show our own warnings; those of libraries are not for whoever runs a command."""
    if issubclass(category, SufficeWarning):
        show_warning(str(message))


def _is_watched() -> bool:
    return _is_terminal() and not records.wants_lines()


def _is_terminal() -> bool:
    return sys.stderr.isatty()
