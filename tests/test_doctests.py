"""The examples in docstrings are run, and a wrong one fails."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import pkgutil
import types
from pathlib import Path

import pytest

import suffice

# Alembic's environment runs migrations when it is imported; it has no examples.
NOT_IMPORTED = "suffice.storage.ledger.sql.migrations."


def modules_with_examples() -> list[str]:
    names = []
    for found in pkgutil.walk_packages(suffice.__path__, "suffice."):
        if found.name.startswith(NOT_IMPORTED) or found.name == "suffice.__main__":
            continue
        spec = importlib.util.find_spec(found.name)
        assert spec is not None
        assert spec.origin is not None
        if ">>> " in Path(spec.origin).read_text():
            names.append(found.name)
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
