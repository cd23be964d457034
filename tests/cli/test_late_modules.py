"""What a command does not need loads late, and the command that words begin with is put together alone."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
