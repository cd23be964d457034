"""Read a spec's text strictly: every scalar stays text, and every place keeps its line.

Plain YAML turns NO into false, 01 into 1 and silently takes the last of two equal keys; here scalars
are text, and duplicate keys, anchors, aliases and tags are refused. Files that a declaration names are read
whole: regular files alone, of a bounded size.
"""

from __future__ import annotations

import json
import os
import stat
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

import yaml

from suffice.errors import SpecError
from suffice.pipeline.terms.declaration.wording import escaped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


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

_DEEPEST = 16
_LARGEST_BYTES = 64 * 2**20


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
        return f"{where}: {_named(path)}" if path else where


def _named(path: Path) -> str:
    """Write a path of keys as it stays in its line, whatever the keys hold."""
    return escaped(".".join(map(str, path)))


def read_yaml(text: str, origin: str) -> Document:
    """Read YAML text.

    Raises
    ------
    SpecError
        Where it is no YAML, or uses what a spec may not: duplicate keys, anchors, aliases, tags,
        several documents, a key or a value left out.
    """
    reader = _YamlReader(origin)
    try:
        events = iter(yaml.parse(text, Loader=yaml.SafeLoader))
        content = reader.read(events)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        location = f"{origin}:{mark.line + 1}" if mark else origin
        raise SpecError(location, f"this is not valid YAML: {error.problem}") from None
    except yaml.YAMLError:
        raise SpecError(origin, "this is not valid YAML: it holds a character YAML does not allow") from None
    return Document(content, origin, reader.lines)


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


class _YamlReader:
    """Build nested text from YAML events, keeping lines."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.lines: dict[Path, int] = {}

    def read(self, events: Iterator[yaml.Event]) -> Any:
        content: Any = None
        documents = 0
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self._refuse(event, (), "a spec is one YAML document")
                content = self._node(next(events), events, ())
        if not documents:
            raise SpecError(self.origin, "the spec is empty")
        return content

    def _refuse(self, event: yaml.Event, path: Path, rule: str, hint: str = "") -> NoReturn:
        location = f"{self.origin}:{_line(event)}"
        raise SpecError(f"{location}: {_named(path)}" if path else location, rule, hint)

    def _node(self, event: yaml.Event, events: Iterator[yaml.Event], path: Path) -> Any:
        self.lines[path] = _line(event)
        if len(path) > _DEEPEST:
            self._refuse(event, (), f"nested deeper than {_DEEPEST} levels")
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            self._refuse(event, path, "anchors and aliases are not allowed", "write the value out")
        if getattr(event, "tag", None) is not None:
            self._refuse(event, path, "tags are not allowed", "every value is read as text")
        if isinstance(event, yaml.ScalarEvent):
            if not event.value and event.style is None:
                self._refuse(event, path, "the value is missing", "delete the key, or quote an empty text")
            return event.value
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(events, path)
        return self._mapping(events, path)

    def _sequence(self, events: Iterator[yaml.Event], path: Path) -> list[Any]:
        entries: list[Any] = []
        for event in events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            entries.append(self._node(event, events, (*path, len(entries))))
        return entries

    def _mapping(self, events: Iterator[yaml.Event], path: Path) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            if not isinstance(event, yaml.ScalarEvent):
                self._refuse(event, path, "a key must be a text")
            key = self._node(event, events, path)
            if key in mapping:
                self._refuse(event, (*path, key), "the key stands twice", "delete one")
            mapping[key] = self._node(next(events), events, (*path, key))
            self.lines[(*path, key)] = _line(event)
        return mapping


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
    if len(path) > _DEEPEST:
        raise SpecError(origin, f"nested deeper than {_DEEPEST} levels")
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


class _PlainDumper(yaml.SafeDumper):
    """Writes scalars without quotes: all are read as text."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - as the base class has it

    def ignore_aliases(self, _data: Any) -> bool:
        """Write everything out: a spec has no anchors."""
        return True


def yaml_text(content: Any) -> str:
    """Return what was read as YAML text that reads the same."""
    return yaml.dump(
        content, Dumper=_PlainDumper, sort_keys=False, default_flow_style=None, allow_unicode=True, width=110
    )


def read_file(path: str) -> Document:
    """Read a spec file: JSON where its name ends in ``.json``, else YAML.

    Raises
    ------
    SpecError
        Where it is no regular file or cannot be read, or its bytes are not UTF-8, too many, or not in the
        format.
    """
    try:
        data = read_small_file(path, _LARGEST_BYTES)
    except FileNotFoundError:
        rule = "the spec cannot be read: there is no such file"
        raise SpecError(path, rule, "name a YAML or JSON file") from None
    except (OSError, ValueError):  # a path may also hold what no file system takes
        raise SpecError(path, "the spec cannot be read", "name a YAML or JSON file") from None
    if data is None:
        raise SpecError(path, "the spec is larger than 64 MiB", "put long domains into files")
    try:
        decoded = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SpecError(path, "the spec is not UTF-8 text") from None
    return read_json(decoded, path) if path.endswith(".json") else read_yaml(decoded, path)
