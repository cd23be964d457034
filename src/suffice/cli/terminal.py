"""The one way to a terminal: all text that commands print goes through here, and shows as it is.

Keys and names can come from releases and specs of others. A control character would move the cursor, colour
or erase; a mark of direction would reorder what is read.
"""

from __future__ import annotations

import json
import sys

from suffice.pipeline.terms.declaration.wording import escaped


def say(*parts: object, sep: str = " ", end: str = "\n", error: bool = False, flush: bool = False) -> None:
    """Print text, on standard output or standard error; what cannot be seen is written as its code.

    Newlines are kept: whoever puts foreign text into a line escapes those first, with :func:`in_line`.
    """
    stream = sys.stderr if error else sys.stdout
    text = escaped(sep.join(map(str, parts)) + end, keep_newlines=True)
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    if flush:
        stream.flush()


def say_json(document: object, *, indent: int | None = 2) -> None:
    """Print one JSON document: what is escaped in it is escaped as JSON does, and reads back the same."""
    say(json.dumps(document, indent=indent, ensure_ascii=False))


def shows_output() -> bool:
    """Tell whether a terminal shows what is printed, and no file or pipe takes it."""
    return sys.stdout.isatty()


def say_line(line: str) -> None:
    """Print a line that programs compare byte by byte: into a file or a pipe it goes unchanged."""
    if shows_output():
        say(line)
    else:
        sys.stdout.write(f"{line}\n")


def say_progress(text: str, *, done: bool) -> None:
    """Write a line of progress over the one before, on standard error."""
    sys.stderr.write("\r" + escaped(text) + ("\n" if done else ""))
    sys.stderr.flush()


def in_line(value: object) -> str:
    """Return a value as text that cannot leave its line."""
    return escaped(str(value))
