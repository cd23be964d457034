"""The reference of the command line, made from the parser that runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suffice.cli.app import command

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = "docs/reference/commands"
Command = Any  # typer keeps its commands' types to itself


def command_pages() -> dict[str, str]:
    """Return a page for each command or group of commands and the list of them, by their paths."""
    root = command()
    commands: dict[str, Command] = dict(root.commands)  # type: ignore[attr-defined]
    pages = {f"{FOLDER}/{name}.md": "\n".join(page(name, command)) for name, command in commands.items()}
    rows = [f"| [`suffice {name}`]({name}.md) | {words(command)} |" for name, command in commands.items()]
    tree = "\n".join(commands)
    pages[f"{FOLDER}/index.md"] = "\n".join(
        [
            "# Commands",
            "",
            "Made from the parser itself: what `suffice COMMAND --help` prints.",
            "[The command line](../command-line.md) says for whom each is, and what several share.",
            "",
            "| command | what it does |",
            "|---|---|",
            *rows,
            "",
            "## Options before the command",
            "",
            *table(root),
            f"```{{toctree}}\n:hidden:\n\n{tree}\n```",
            "",
        ]
    )
    return pages


def page(name: str, command: Command) -> Iterator[str]:
    """Yield the lines of a command's page."""
    yield from (f"# suffice {name}", "")
    inner = getattr(command, "commands", None)
    if inner is None:
        yield from (words(command), "", *synopsis(f"suffice {name}", command), *table(command))
        return
    yield from (words(command), "")
    for second, inside in inner.items():
        full = f"suffice {name} {second}"
        yield from (f"## {full}", "", words(inside), "", *synopsis(full, inside), *table(inside))


def words(command: Command) -> str:
    """Return what a command says of itself, as Markdown."""
    return escaped(" ".join((command.help or "").split()))


def escaped(text: str) -> str:
    """Return a text in which Markdown finds no table, no HTML and no link, but keeps code."""
    parts = text.split("`")
    parts[::2] = [part.replace("<", "&lt;").replace("[", r"\[").replace("*", r"\*") for part in parts[::2]]
    return "`".join(parts).replace("|", r"\|")


def synopsis(full: str, command: Command) -> list[str]:
    """Return how a command is called."""
    arguments = [stated(each) for each in command.params if each.param_type_name == "argument"]
    options = ["[OPTIONS]"] if any(each.param_type_name == "option" for each in command.params) else []
    return ["```text", " ".join([full, *options, *arguments]), "```", ""]


def stated(parameter: Command) -> str:
    """Return an argument as a line of usage shows it."""
    name = str(parameter.metavar or parameter.name.upper())
    name = name if parameter.nargs == 1 or name.endswith("...") else f"{name}..."
    return name if parameter.required else f"[{name}]"


def table(command: Command) -> Iterator[str]:
    """Yield the table of a command's arguments and options."""
    yield from ("| | what it states | default | variable |", "|---|---|---|---|")
    for parameter in command.params:
        if getattr(parameter, "hidden", False):
            continue
        yield (
            f"| {spelled(parameter)} | {escaped(parameter.help or '')} | {default(parameter)} | "
            f"{f'`{parameter.envvar}`' if getattr(parameter, 'envvar', None) else ''} |"
        )
    yield ""


def spelled(parameter: Command) -> str:
    """Return the names of an argument or option, with what it takes."""
    if parameter.param_type_name == "argument":
        return code(stated(parameter))
    names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    if getattr(parameter, "is_flag", False):
        return code(names)
    takes = str(parameter.metavar or parameter.name.upper())
    repeats = " (may repeat)" if getattr(parameter, "multiple", False) else ""
    return code(f"{names} {takes}") + repeats


def code(text: str) -> str:
    """Return text as code in the cell of a table."""
    return "`" + text.replace("|", r"\|") + "`"


def default(parameter: Command) -> str:
    """Return what holds where a parameter is not stated."""
    if parameter.required:
        return "required"
    value = parameter.default
    if value is None or value is False or value in ((), []) or not getattr(parameter, "show_default", True):
        return ""
    return code(str(getattr(value, "value", value)))
