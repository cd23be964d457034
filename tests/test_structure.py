"""What import-linter does not see: long files, modules named in strings, the map in CONTRIBUTING."""

from __future__ import annotations

import ast
import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
CODE = ("flows", "pipeline", "src", "storage")
MOST_LINES = 550
MODULE_STRING = re.compile(r"(suffice(?:\.[a-z]\w*)+)(?::\w+)?")
FILES = sorted(path for top in CODE for path in (REPOSITORY / top).rglob("*.py"))


def test_files_are_short() -> None:
    long_files = [path.name for path in FILES if len(path.read_text().splitlines()) > MOST_LINES]
    assert not long_files


@pytest.mark.slow
@pytest.mark.parametrize("top", CODE)
def test_a_module_in_a_string_exists(top: str) -> None:
    """Names in strings are imported late: a room that moved would fail only when somebody asks for it."""
    trees = (ast.parse(path.read_text()) for path in FILES if path.is_relative_to(REPOSITORY / top))
    constants = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant))
    names = {match[1] for node in constants if (match := MODULE_STRING.fullmatch(str(node.value)))}
    inside = {name for name in names if _is_module(".".join(name.split(".")[:2]))}  # events have names too
    assert {name for name in inside if not any(map(_is_module, (name, name.rpartition(".")[0])))} == set()


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def test_the_map_in_contributing_lists_every_room() -> None:
    tools = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]
    orders = [contract for contract in tools["importlinter"]["contracts"] if "containers" in contract]
    layers = [
        layer
        for order in orders
        for layer in order["layers"]
        if re.fullmatch(r"suffice\.(pipeline(\.(terms|math|rows|ask))?|storage)", order["containers"][0])
    ]
    rooms = re.findall(r"\w+", " ".join(layers))
    page = (REPOSITORY / "CONTRIBUTING.md").read_text()
    assert [room for room in rooms if f"`{room}/`" not in page] == []
