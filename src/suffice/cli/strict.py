"""What holds for the words of every command, in one place.

No option is given twice that is not declared to repeat, and no value is empty: the last of two windows, or
the default in place of an empty ledger, would decide in silence. What an operator pins is asked here too,
before a command does anything.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from suffice.cli.terminal import say
from suffice.errors import UsageError
from suffice.monitoring import log_lines
from suffice.profile.settings import (
    VARIABLES,
    check_text,
    log_format,
    pinned_profile,
    public_keys,
    setting,
)

if TYPE_CHECKING:
    from typer.exceptions import TyperException

_WIDTH = 110


class StrictCommand(TyperCommand):
    """A command whose words are checked, and whose ledger, store and the like are what the profile allows."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of the command."""
        _check_words(self, ctx, args)
        rest = super().parse_args(ctx, args)
        _ask_profile(ctx)
        log_format()  # before anything is done: one that is misspelt would be found by its absence
        log_lines.begin(ctx.command_path.partition(" ")[2])
        return rest


class StrictGroup(TyperGroup):
    """A group of commands whose own words are checked."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words before the command's name; where there are none, show what there is, and succeed."""
        if not args and self.no_args_is_help:
            say(ctx.get_help())
            raise typer.Exit
        _check_words(self, ctx, args)
        return super().parse_args(ctx, args)


def make_strict(app: typer.Typer) -> None:
    """Let every command and group below `app` check its words, and show the whole of its first line."""
    app.info.cls = StrictGroup
    for command in app.registered_commands:
        command.cls = StrictCommand
        if command.callback is not None:
            command.short_help = (inspect.getdoc(command.callback) or "").partition("\n")[0]
        command.context_settings = {"max_content_width": _WIDTH}
    for group in app.registered_groups:
        group.cls = StrictGroup
        if group.typer_instance is not None:
            make_strict(group.typer_instance)


def own_words(error: TyperException) -> str:
    """Return what is wrong with a command's words, without the words of the library that found it."""
    text = str(getattr(error, "format_message", error.__str__)()) or "see --help"
    place, is_of_input, rest = text.partition(": Input should be ")
    if not is_of_input:
        return text
    kind, is_kind, _ = rest.removeprefix("a valid ").partition(",")
    if rest.startswith("a valid "):
        return f"{place}: this is no valid {kind if is_kind else rest.removeprefix('a valid ')}"
    return f"{place}: this should be {rest}"


def _check_words(command: TyperCommand | TyperGroup, ctx: Any, args: list[str]) -> None:
    values, _, order = command.make_parser(ctx).parse_args(args=list(args))
    for param in {id(param): param for param in order}.values():
        is_option = param.opts[0].startswith("-")
        place = param.opts[0] if is_option else str(getattr(param, "metavar", None) or param.name)
        repeats = getattr(param, "multiple", False) or param.nargs != 1
        if not repeats and sum(other is param for other in order) > 1:
            message = f"{place} is given more than once: give it once"
            raise UsageError(message)
        value = values.get(str(param.name))
        for text in _each(value):
            if isinstance(text, str):
                check_text(place, text)


def _each(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _ask_profile(ctx: Any) -> None:
    """Replace what the command was given by what the profile allows; refuse what lies outside."""
    profile = pinned_profile()
    for name in VARIABLES.keys() & ctx.params.keys():
        source = ctx.get_parameter_source(name)
        is_given = source is not None and source.name == "COMMANDLINE"
        if ctx.params[name] is None and not is_given:
            continue  # this command does without one
        given = str(ctx.params[name]) if is_given else None
        ctx.params[name] = setting(name, given, profile=profile, option=f"--{name}").value
    if "public_keys" in ctx.params:
        ctx.params["public_keys"] = public_keys(ctx.params["public_keys"] or None, profile=profile)
