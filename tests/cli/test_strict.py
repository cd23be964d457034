"""What holds for the words of every command: nothing empty, nothing twice; help that says it all."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from suffice.cli.app import StrictCommand, StrictGroup, command
from support.bad_inputs import walk
from support.running import spec_file

if TYPE_CHECKING:
    from pathlib import Path

    from support.making import Workspace
    from support.running import Runner


def test_every_command_is_strict() -> None:
    for names, parsed in walk(command()):
        assert isinstance(parsed, StrictCommand), names
    assert isinstance(command(), StrictGroup)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--ledger", ""), "--ledger: the value is empty"),
        (("--store", " "), "--store: the value is empty"),
        (("--cluster", ""), "--cluster: the value is empty"),
        (("--window", ""), "--window: the value is empty"),
        (("--window", "2013-01", "--window", "2013-02"), "--window is given more than once"),
        (("--ledger", "a", "--ledger=a"), "--ledger is given more than once"),
        (("--new-attempt", "--new-attempt"), "--new-attempt is given more than once"),
    ],
)
def test_empty_and_repeated_options_are_usage_errors(
    workspace: Workspace, suffice: Runner, words: tuple[str, ...], said: str
) -> None:
    error = suffice.json("release", spec_file(workspace), *words, status=2)["error"]
    assert error["type"] == "UsageError"
    assert said in error["message"]
    assert workspace.charge() is None


def test_options_that_repeat_still_do(workspace: Workspace, suffice: Runner) -> None:
    suffice.json("release", spec_file(workspace))
    words = ("table", "flights", "arr_delay", "--where", "origin=JFK", "--where", "origin=JFK")
    assert len(suffice.json(*words)["rows"]) == 3
    assert "given more than once" in suffice.text(
        "--config", "a", "--config", "b", "config", "show", status=2
    )


@pytest.mark.parametrize("words", [(), ("ledger",), ("keys",), ("config",), ("model",)])
def test_bare_groups_show_their_help(suffice: Runner, words: tuple[str, ...]) -> None:
    printed = suffice.text(*words)
    assert printed.startswith("Usage: suffice")
    assert "..." not in printed.replace("[ARGS]...", "")  # no line is cut off


def test_help_states_defaults(suffice: Runner) -> None:
    printed = " ".join(suffice.text("ledger", "grant", "--help").split())
    for said in ("default: add_or_remove_one", "default: row", "default: any, or as before", "for all time"):
        assert said in printed


def test_every_option_of_models_is_on_the_page_of_the_command_line(repository: Path) -> None:
    page = (repository / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
    shared, listed = (
        re.findall(r"^\|.*\|$", page.partition(f"## {title}\n")[2].partition("\n## ")[0], re.MULTILINE)
        for title in ("Options that several commands share", "Options of `suffice model`")
    )
    models = {names[1]: subcommand for names, subcommand in walk(command()) if names[0] == "model"}
    stated: dict[str, set[str]] = {name: set() for name in models}
    for row in listed[2:]:
        options, commands = row.split("|")[1:3]
        named = set(re.findall(r"`([a-z-]+)`", commands))
        for name in models.keys() - named if "all but" in commands else named or models.keys():
            stated[name].update(re.findall(r"--[a-z-]+", options))
    common = {option for row in shared for option in re.findall(r"--[a-z-]+", row.split("|")[1])}
    for name, model in models.items():
        options = {option for param in model.params for option in param.opts if option.startswith("--")}
        assert options - common - {"--json", "--help"} == stated[name], name


def test_words_of_libraries_are_not_repeated(workspace: Workspace, suffice: Runner) -> None:
    message = suffice.json("plan", spec_file(workspace), "--seed", "x", status=2)["error"]["message"]
    assert message == "Invalid value for '--seed': this is no valid integer"
