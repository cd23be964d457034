"""What commands write to standard error: progress, warnings and errors, as text or as lines of JSON."""

from __future__ import annotations

import json
import sys
import warnings
from typing import TYPE_CHECKING, TextIO

from suffice.cli.output import Progress
from suffice.errors import SufficeError, SufficeWarning, bounded_message
from suffice.profile.settings import log_format

if TYPE_CHECKING:
    from collections.abc import Callable


def progress(doing: str = "reading", unit: str = "tasks") -> Callable[[int, int], None] | None:
    """Return what shows progress to whoever sits at a terminal; logs of JSON lines have none.

    How many parts there are follows from how many rows there are, which no log may tell.
    """
    return Progress(doing, unit) if log_format() == "text" else None


def notice(text: str) -> None:
    """Say what a command waits for: on a terminal, or as a line of JSON."""
    if _is_json():
        _write("notice", message=bounded_message(text))
    elif sys.stderr.isatty():
        print(f"\n{bounded_message(text)}", file=sys.stderr, flush=True)


def show_warnings() -> None:
    """Let warnings be one line on standard error each, without a place in the code."""
    warnings.simplefilter("always", SufficeWarning)
    warnings.showwarning = _show_warning


def show_error(name: str, message: str, status: int) -> None:
    """Write why a command failed."""
    if _is_json():
        _write("error", type=name, message=message, exit_status=status)
    else:
        print(f"suffice: {message}", file=sys.stderr)


def _show_warning(
    message: Warning | str,
    category: type[Warning],  # noqa: ARG001 - as above
    filename: str,  # noqa: ARG001
    lineno: int,  # noqa: ARG001
    file: TextIO | None = None,  # noqa: ARG001
    line: str | None = None,  # noqa: ARG001
) -> None:
    text = bounded_message(str(message))
    if _is_json():
        _write("warning", message=text)
    else:
        print(f"suffice: warning: {text}", file=sys.stderr)


def _is_json() -> bool:
    """Whether lines are JSON; text where the profile itself is what failed."""
    try:
        return log_format() == "json"
    except SufficeError:
        return False


def _write(event: str, **fields: object) -> None:
    print(json.dumps({"event": event, **fields}), file=sys.stderr, flush=True)
