"""What a command prints with ``--json`` is one JSON document, and as its schema says."""

from __future__ import annotations

import functools
import io
import json
import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import ModuleType

    import jsonschema

HELP = {"--help", "--version"}


class _Noting(io.StringIO):
    """Writes what is printed, and keeps it."""

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self.stream = stream

    def write(self, text: str) -> int:
        if self.stream is not None:
            self.stream.write(text)
        return super().write(text)

    def isatty(self) -> bool:
        """Return whether somebody watches."""
        return self.stream is not None and bool(self.stream.isatty())

    def let_go(self) -> str:
        """Return what was printed; who kept this in place of standard output writes to nothing any more."""
        self.stream = None
        return self.getvalue()


def checking(run: Callable[[list[str]], Any], command: Callable[[], Any]) -> Callable[[list[str]], Any]:
    """Return what runs a command and then holds what it printed against its schema."""

    def run_checked(words: list[str]) -> Any:
        if "--json" not in words or HELP & set(words):
            return run(words)
        noted = _Noting(sys.stdout)
        try:
            with redirect_stdout(noted):
                return run(words)
        finally:
            check(named(command(), words), noted.let_go())

    return run_checked


def named(command: Any, words: Sequence[str]) -> str:
    """Return the command that words call, as schemas are named; empty for a group."""
    names: list[str] = []
    for word in words:
        if word in getattr(command, "commands", {}):
            command = command.commands[word]
            names.append(word)
    return "" if hasattr(command, "commands") else " ".join(names)


def check(command: str, text: str) -> None:
    """Refuse what is not one document of JSON, or not as the schema says."""
    document = json.loads(text, parse_constant=_refuse)
    validator("error" if document.keys() == {"error"} else command).validate(document)


@functools.cache
def validator(command: str) -> jsonschema.Draft202012Validator:
    """Return what holds documents against the schema of a command."""
    from scripts.schemas.cli_documents import PRINTED
    from scripts.schemas.shapes import whole

    return validator_of(whole(PRINTED[command]))


def validator_of(schema: dict[str, Any]) -> jsonschema.Draft202012Validator:
    """Return what holds documents against a schema, which may refer to the files of other schemas."""
    import jsonschema
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012

    from scripts.schemas.__main__ import SCHEMAS

    contents = [json.loads(path.read_text(encoding="utf-8")) for path in SCHEMAS.glob("*.json")]
    resources = [(content["$id"], DRAFT202012.create_resource(content)) for content in contents]
    return jsonschema.Draft202012Validator(schema, registry=Registry().with_resources(resources))


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Give every command, by its words."""
    if hasattr(command, "commands"):
        for name, subcommand in command.commands.items():
            yield from leaves(subcommand, (*path, name))
    else:
        yield " ".join(path), command


def _refuse(constant: str) -> None:
    message = f"{constant} is no JSON"
    raise ValueError(message)


def watched(app: ModuleType) -> Callable[[list[str]], Any]:
    """Return what a command line is to run by, so that all it prints as JSON is checked."""
    return checking(app._run, app.command)
