"""The examples in docstrings are run, and a wrong one fails."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import pkgutil
import types
from pathlib import Path

import pytest

import suffice.flows
import suffice.pipeline
import suffice.storage

# Alembic's environment runs migrations when it is imported; it has no examples.
NOT_IMPORTED = "suffice.storage.ledger.sql.migrations."


def modules() -> set[str]:
    """Return the name of every module; a source distribution has no links to the packages at the top."""
    packages = [suffice, suffice.flows, suffice.pipeline, suffice.storage]
    return {
        module.name
        for package in packages
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if not module.name.startswith(NOT_IMPORTED) and module.name != "suffice.__main__"
    }


def modules_with_examples() -> list[str]:
    names = []
    for name in sorted(modules()):
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        if spec.origin.endswith(".py") and ">>> " in Path(spec.origin).read_text():
            names.append(name)
    return names


@pytest.mark.parametrize("name", modules_with_examples())
def test_the_examples_of_a_module(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name), raise_on_error=False)
    assert results.attempted > 0
    assert results.failed == 0


def test_a_wrong_example_fails(capsys: pytest.CaptureFixture[str]) -> None:
    module = types.ModuleType("wrong", ">>> 1 + 1\n3\n")
    assert doctest.testmod(module).failed == 1
    assert "Expected:\n    3" in capsys.readouterr().out


def test_there_are_examples() -> None:
    assert len(modules_with_examples()) >= 3
