"""Words of messages and terminals: counts, pydantic's complaints, tables, and text that is shown as it is.

A character that cannot be seen, or that turns text around, is written as its code.
"""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic_core import ErrorDetails


_FORMS = {
    "bool_type": "must be true or false",
    "dict_type": "must be a mapping of keys",
    "list_type": "must be a list",
    "literal_error": "has a value that is not allowed here",
    "mapping_type": "must be a mapping of keys",
    "model_type": "must be a mapping of keys",
    "string_type": "must be one text",
    "too_long": "has too many entries",
    "too_short": "has too few entries",
    "tuple_type": "must be a list",
}
"""Forms that a value must have, by pydantic's name of the complaint."""
UNKNOWN_KEY = "extra_forbidden"
MISSING_KEY = "missing"


def first_complaint(complaints: list[ErrorDetails]) -> ErrorDetails:
    """Return the complaint to show: an unknown key, often a misspelt one, explains the others."""
    return next((complaint for complaint in complaints if complaint["type"] == UNKNOWN_KEY), complaints[0])


def rule_of(complaint: ErrorDetails) -> str:
    """Return the rule that a value breaks: our validators' text, or the form that it must have."""
    error = complaint.get("ctx", {}).get("error")
    return (
        str(error)
        if error is not None
        else _FORMS.get(complaint["type"], "has a form that is not allowed here")
    )


_UNSAFE = re.compile(
    "["
    "\\x00-\\x1f\\x7f-\\x9f"  # control characters: they move the cursor, colour, erase
    "\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069"  # marks of direction: they reorder what is read
    "\\u00ad\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180e\\u200b\\u2060-\\u2065\\u206a-\\u206f\\u3164\\uffa0"
    "\\u2028\\u2029"  # separators of lines and paragraphs
    "\\ufeff\\ufff9-\\ufffb"  # byte order mark, annotations
    "\\ud800-\\udfff"  # lone surrogates: no text
    "\\U000e0000-\\U000e007f\\U000e0100-\\U000e01ef"  # tags: invisible letters; rare forms of glyphs
    "]"
    # Joiners and forms of glyphs, which scripts and emoji need: after a Latin letter they are invisible.
    "|(?<![^\\x00-\\u02ff])[\\u200c\\u200d\\ufe00-\\ufe0f]"
)
_NOT_NEWLINE = re.compile(rf"(?!\n)(?:{_UNSAFE.pattern})")
_LONGEST_SHOWN = 60


def is_safe(text: str) -> bool:
    """Tell whether a text shows as it is."""
    return _UNSAFE.search(text) is None


def escaped(text: str, *, keep_newlines: bool = False) -> str:
    r"""Write what cannot be seen, or turns text around, as Python and JSON write it.

    Examples
    --------
    >>> print(escaped("a\x1b[31m\u202eb"))
    a\u001b[31m\u202eb
    """
    seen = text.replace("\n", "") if keep_newlines else text
    if seen.isascii() and seen.isprintable():  # nearly every line: patterns take some 50 times as long
        return text
    pattern = _NOT_NEWLINE if keep_newlines else _UNSAFE
    return pattern.sub(lambda match: _code(match[0]), text)


def shown(text: str) -> str:
    """Return a text for a message: escaped, and cut where it is long."""
    cut = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
    return escaped(cut)


def _code(character: str) -> str:
    """Return a character as JSON escapes it, in two halves beyond the basic plane."""
    halves = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{halves[i : i + 2].hex()}" for i in range(0, len(halves), 2))


_LONGEST_NAME = 70
"""Characters of a name that messages show whole."""


def counted(count: int, singular: str, many: str = "") -> str:
    """Return how many there are of something, in words that fit the number.

    Parameters
    ----------
    count : int
    singular : str
        What is counted.
    many : str
        In the plural, where that is more than an `s`.

    Examples
    --------
    >>> counted(1, "release"), counted(0, "release"), counted(2, "entry", "entries")
    ('1 release', '0 releases', '2 entries')
    """
    return f"{count} {singular if count == 1 else many or singular + 's'}"


def shortened_name(name: str) -> str:
    """Return a name, or the end of a long one."""
    return name if len(name) <= _LONGEST_NAME else f"...{name[-_LONGEST_NAME:]}"


def text_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return aligned columns under a ruled heading.

    Examples
    --------
    >>> print(text_table(["origin", "n"], [["EWR", "12"]]))
    origin  n
    ------  --
    EWR     12
    """
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    lines = [columns, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


WIDTH = 80
"""Columns of a terminal that sentences are wrapped to."""


def wrapped(text: str) -> str:
    """Return a sentence on lines of at most 80 characters, where its words are no longer than that.

    Examples
    --------
    >>> print(wrapped("a tree whose levels share 1 : 2 : 4; 95 % of the noise of one count lies in a width"))
    a tree whose levels share 1 : 2 : 4; 95 % of the noise of one count lies in a
    width
    """
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def not_a_name(kind: type, name: str, called: Mapping[str, str]) -> AttributeError:
    """Return the error of an attribute that is not there; it says what the thing is called here.

    A dollar in what it is called stands for the name.
    """
    message = f"{kind.__name__!r} object has no attribute {name!r}"
    here = called.get(name, "").replace("$", name)
    return AttributeError(f"{message}: here it is {here}" if here else message)
