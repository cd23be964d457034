"""Text that a terminal shows as it is: what cannot be seen, or turns text around, is written as its code."""

from __future__ import annotations

import re

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
