"""Read and write a spec as YAML: scalars are text, and places keep their lines.

Plain YAML turns NO into false, 01 into 1 and silently takes the last of two equal keys; here scalars
are text, and duplicate keys, anchors, aliases and tags are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import yaml

from suffice.errors import SpecError
from suffice.pipeline.terms.declaration.spec_text import DEEPEST, Document, named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.terms.declaration.spec_text import Path


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
        raise SpecError(f"{location}: {named(path)}" if path else location, rule, hint)

    def _node(self, event: yaml.Event, events: Iterator[yaml.Event], path: Path) -> Any:
        self.lines[path] = _line(event)
        if len(path) > DEEPEST:
            self._refuse(event, (), f"nested deeper than {DEEPEST} levels")
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
