"""Read a spec's text strictly: every scalar stays text, and every place keeps its line.

Files that a declaration names are read whole: regular files alone, of a bounded size.
"""

from __future__ import annotations

import json
import os
import stat
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

from suffice.errors import SpecError
from suffice.pipeline.terms.declaration.wording import escaped

if TYPE_CHECKING:
    from collections.abc import Mapping


def read_small_file(path: str, most_bytes: int) -> bytes | None:
    """Return a file's bytes; None where there are more than `most_bytes`, of which none is read then.

    Raises
    ------
    OSError
        Where it cannot be read, or is no regular file: reading a pipe or a device might never end.
    """
    _require_regular(os.stat(path))  # noqa: PTH116 - before it is opened: opening may block, or do something
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:  # noqa: PTH123
        status = os.fstat(file.fileno())
        _require_regular(status)
        if status.st_size > most_bytes:
            return None
        content = file.read(most_bytes + 1)
    return content if len(content) <= most_bytes else None


def _require_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        message = "no regular file"
        raise OSError(message)


Path = tuple[str | int, ...]

DEEPEST = 16


class Document:
    """A spec as text: nested dicts and lists of str, with the line of every place.

    Attributes
    ----------
    content : dict, list or str
        The nested text.
    origin : str
        The file's name, for messages.
    """

    def __init__(self, content: Any, origin: str, lines: Mapping[Path, int]) -> None:
        self.content = content
        self.origin = origin
        self._lines = lines

    def location(self, path: Path) -> str:
        """Name a place: file, line where known, and the path of keys."""
        line = next(
            (self._lines[path[:n]] for n in range(len(path), -1, -1) if path[:n] in self._lines), None
        )
        where = self.origin + (f":{line}" if line else "")
        return f"{where}: {named(path)}" if path else where


def named(path: Path) -> str:
    """Write a path of keys as it stays in its line, whatever the keys hold."""
    return escaped(".".join(map(str, path)))


def read_json(text: str, origin: str) -> Document:
    """Read JSON text; numbers keep their decimal text.

    Raises
    ------
    SpecError
        Where it is no JSON, repeats a key, or holds null, NaN or an infinity.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for key, value in pairs:
            if key in mapping:
                raise SpecError(origin, f"the key {key!r} stands twice", "delete one")
            mapping[key] = value
        return mapping

    def refuse(constant: str) -> NoReturn:
        raise SpecError(origin, f"{constant} is not a finite number")

    try:
        content = json.loads(
            text, object_pairs_hook=unique, parse_int=str, parse_float=str, parse_constant=refuse
        )
    except (json.JSONDecodeError, RecursionError):
        raise SpecError(origin, "this is not valid JSON") from None
    return Document(_as_text(content, origin, ()), origin, {})


def read_mapping(mapping: Mapping[str, Any], origin: str = "spec") -> Document:
    """Read a nested mapping built in Python; numbers become their decimal text."""
    return Document(_as_text(mapping, origin, ()), origin, {})


def _as_text(value: Any, origin: str, path: Path) -> Any:  # noqa: PLR0911
    if len(path) > DEEPEST:
        raise SpecError(origin, f"nested deeper than {DEEPEST} levels")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise SpecError(Document(None, origin, {}).location(path), "a lone surrogate is no text")
        return str(value)
    if isinstance(value, int | Decimal):
        return str(value)
    if isinstance(value, Fraction):
        return str(Decimal(value.numerator) / Decimal(value.denominator))
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, dict):
        return {str(key): _as_text(entry, origin, (*path, str(key))) for key, entry in value.items()}
    if isinstance(value, list | tuple | range):
        return [_as_text(entry, origin, (*path, index)) for index, entry in enumerate(value)]
    location = Document(None, origin, {}).location(path)
    raise SpecError(
        location, "the value is missing" if value is None else f"a {type(value).__name__} is no value here"
    )
