"""What commands write to standard error: progress, warnings and errors, as text or as lines of JSON."""

from __future__ import annotations

import json
import sys
import warnings
from typing import TYPE_CHECKING

from suffice.cli.output import Progress
from suffice.cli.terminal import say
from suffice.errors import SufficeError, SufficeWarning, bounded_message
from suffice.profile.settings import log_format

if TYPE_CHECKING:
    from collections.abc import Callable


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
    if _is_json():
        _write("notice", message=bounded_message(text))
    elif _is_terminal():
        say(f"\n{bounded_message(text)}", error=True, flush=True)


def show_warnings() -> None:
    """Let warnings be one line on standard error each, without a place in the code."""
    warnings.simplefilter("always", SufficeWarning)
    warnings.showwarning = _show_warning


def show_error(name: str, message: str, status: int) -> None:
    """Write why a command failed."""
    if _is_json():
        _write("error", type=name, message=message, exit_status=status)
    else:
        say(f"suffice: {message}", error=True)


def show_warning(text: str) -> None:
    """Write what a person should know, though nothing is refused for it."""
    if _is_json():
        _write("warning", message=bounded_message(text))
    else:
        say(f"suffice: warning: {bounded_message(text)}", error=True)


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Show our own warnings; those of libraries are not for whoever runs a command."""
    if issubclass(category, SufficeWarning):
        show_warning(str(message))


def _is_watched() -> bool:
    return log_format() == "text" and _is_terminal()


def _is_terminal() -> bool:
    return sys.stderr.isatty()


def _is_json() -> bool:
    """Whether lines are JSON; text where the profile itself is what failed."""
    try:
        return log_format() == "json"
    except SufficeError:
        return False


def _write(event: str, **fields: object) -> None:
    say(json.dumps({"event": event, **fields}), error=True, flush=True)
