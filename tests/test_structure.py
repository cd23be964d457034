"""What import-linter does not see: long files, modules named in strings, private names, the map of rooms."""

from __future__ import annotations

import ast
import importlib.util
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).resolve().parents[1]
CODE = ("flows", "pipeline", "src", "storage")
MOST_LINES = 550
MODULE_STRING = re.compile(r"(suffice(?:\.[a-z]\w*)+)(?::\w+)?")
FILES = sorted(path for top in CODE for path in (REPOSITORY / top).rglob("*.py"))


def defects(text: str) -> Iterator[str]:
    """Yield what a module names that is not there, that is private, or that cannot be followed."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.ImportFrom(module=str(module), names=names) if module.startswith("suffice."):
                yield from (f"private: {module}.{name.name}" for name in names if name.name.startswith("_"))
            case ast.JoinedStr(values=[ast.Constant(value=str(start)), *_]) if _is_inside(start):
                yield f"made at run time: {start}"
            case ast.Constant(value=str(value)) if match := MODULE_STRING.fullmatch(value):
                if _is_inside(value) and not _exists(match[1]):
                    yield f"not there: {value}"


def _is_inside(name: str) -> bool:
    """Tell whether a name begins with one of our packages; events have names that begin like them."""
    package = re.match(r"suffice\.\w+(?=[.:]|$)", name)
    return package is not None and _spec(package[0]) is not None


def _exists(name: str) -> bool:
    """Tell whether a name is a module's, or that of something at the top of one."""
    if _spec(name) is not None:
        return True
    module, _, attribute = name.rpartition(".")
    spec = _spec(module)
    if spec is None or spec.origin is None:
        return False
    for node in ast.parse(Path(spec.origin).read_text()).body:
        match node:
            case ast.ClassDef(name=known) | ast.FunctionDef(name=known) | ast.AsyncFunctionDef(name=known):
                names = [known]
            case ast.Assign(targets=targets):
                names = [ast.unparse(target) for target in targets]
            case ast.AnnAssign(target=target):
                names = [ast.unparse(target)]
            case _:
                names = []
        if attribute in names:
            return True
    return False


def _spec(name: str) -> importlib.machinery.ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return None


def test_files_are_short() -> None:
    lengths = {path.name: len(path.read_text().splitlines()) for path in FILES}
    assert max(lengths.values()) > MOST_LINES / 2, "the files are read"
    assert [name for name, lines in lengths.items() if lines > MOST_LINES] == []


@pytest.mark.slow
def test_a_module_in_a_string_exists_and_no_import_is_of_a_private_name() -> None:
    """Names in strings are imported late: a room that moved would fail only when somebody asks for it."""
    found = {str(path.relative_to(REPOSITORY)): list(defects(path.read_text())) for path in FILES}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("text", "defect"),
    [
        ("FLOW = 'suffice.flows.relaese:release_statistics'", "not there"),
        ("HOME = 'suffice.pipeline.spec.plan.compiled'", "not there"),
        ("from suffice.pipeline.spec.plan import _exact", "private"),
        ("NAME = f'suffice.pipeline.{room}'", "made at run time"),
        ("FLOW = 'suffice.flows.release:release_statistics'", None),
        ("HOME = 'suffice.pipeline.spec.plan.compile_plan'", None),
        ("HOME = 'suffice.pipeline.spec.plan.Plan'", None),
        ("EVENT = 'suffice.backfill.completed'", None),
    ],
)
def test_what_is_wrong_is_told(text: str, defect: str | None) -> None:
    assert [line.partition(":")[0] for line in defects(text)] == ([defect] if defect else [])


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
    assert len(rooms) > len(CODE)
    page = (REPOSITORY / "CONTRIBUTING.md").read_text()
    assert [room for room in rooms if f"`{room}/`" not in page] == []
