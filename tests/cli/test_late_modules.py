"""What a command does not need loads late, and the command that words begin with is put together alone."""

from __future__ import annotations

import subprocess
import sys
from contextvars import copy_context
from typing import Annotated

import pytest
import typer
from typer.main import get_command

from suffice.cli import app


def test_a_postponed_module_loads_when_it_is_asked_for() -> None:
    code = (
        "from suffice.cli.late_modules import postpone_unused_modules; postpone_unused_modules()\n"
        "import sys, scipy.special\n"
        "assert 'numpy.f2py' in sys.modules and 'numpy.f2py.crackfortran' not in sys.modules\n"
        "import numpy.f2py\n"
        "assert callable(numpy.f2py.run_main) and 'numpy.f2py.crackfortran' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("words", "names"),
    [(["plan", "--help"], {"plan"}), (["ledger", "show"], {"ledger"}), (["--version"], set())],
)
def test_one_command_is_put_together_alone(words: list[str], names: set[str]) -> None:
    assert set(app.command_for(words).commands) == names  # type: ignore[attr-defined]


@pytest.mark.parametrize("words", [[], ["--help"], ["plam"], ["--config", "f", "plan"], ["--version", "x"]])
def test_otherwise_the_command_line_is_whole(words: list[str]) -> None:
    assert app.command_for(words) is app.command()


def test_an_option_that_is_left_out_is_none_though_it_was_given_before() -> None:
    seen = []
    small = typer.Typer()

    @small.command()
    def ask(
        name: Annotated[str | None, typer.Option("--name")] = None,
        count: Annotated[int, typer.Option("--count")] = 3,
    ) -> None:
        seen.append((name, count))

    app.make_strict(small)
    command = get_command(small)
    for words in (["--name", "a", "--count", "4"], [], ["--count", "5"]):
        copy_context().run(command, words, standalone_mode=False)  # as it notes which command runs
    assert seen == [("a", 4), (None, 3), (None, 5)]


@pytest.mark.parametrize("option", ["--name", "--tags", "--level", "--size"])
def test_only_an_option_that_is_none_by_itself_may_be_left_out(option: str) -> None:
    small = typer.Typer()

    @small.command()
    def ask(
        size: Annotated[int, typer.Option("--size")],
        name: Annotated[str | None, typer.Option("--name")] = None,
        tags: Annotated[list[str] | None, typer.Option("--tags")] = None,
        level: Annotated[int | None, typer.Option("--level", envvar="LEVEL")] = None,
    ) -> None: ...

    (param,) = (param for param in get_command(small).params if option in param.opts)
    assert app.may_be_left_out(param) == (option == "--name")
