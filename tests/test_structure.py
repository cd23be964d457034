"""What import-linter does not see: long files, modules named in strings, names without a meaning, the map."""

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
MEANINGLESS = {"found", "one", "own", "some"}
"""Names that say nothing of what they name."""
NAMED_BEFORE = (
    "benchmarks/ledger_history.py",
    "benchmarks/publishing.py",
    "benchmarks/spread_priors.py",
    "pipeline/math/engines/multivariate/",
    "tests/pipeline/math/engines/multivariate/",
    "tests/pipeline/math/engines/normal/",
    "tests/pipeline/math/engines/one_sum/",
    "tests/pipeline/rows/chunk/",
    "tests/pipeline/rows/sources/",
    "tests/storage/ledger/",
)
"""Files and folders that still have such names: what is cleared leaves this list, and nothing joins it."""


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


def names_given(text: str) -> set[str]:
    """Return every name that a module gives: to values, parameters, attributes, functions and imports."""
    given: set[str | None] = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case (
                ast.Name(id=name, ctx=ast.Store())
                | ast.Attribute(attr=name, ctx=ast.Store())
                | ast.arg(arg=name)
                | ast.alias(asname=name)
                | ast.ExceptHandler(name=name)
                | ast.MatchAs(name=name)
                | ast.MatchStar(name=name)
                | ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                given.add(name)
    return {name for name in given if name is not None}


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
    by_file = {str(path.relative_to(REPOSITORY)): list(defects(path.read_text())) for path in FILES}
    assert {path: lines for path, lines in by_file.items() if lines} == {}


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


@pytest.mark.slow
def test_a_name_says_what_it_names(repository_files: list[str]) -> None:
    modules = [
        name for name in repository_files if name.endswith(".py") and not name.startswith(NAMED_BEFORE)
    ]
    assert len(modules) > len(FILES)
    given = {name: names_given((REPOSITORY / name).read_text()) & MEANINGLESS for name in modules}
    assert {name: names for name, names in given.items() if names} == {}


@pytest.mark.parametrize(
    "text",
    [
        "found = 1",
        "found: int = 1",
        "(found,) = [1]",
        "for found in (): pass",
        "values = [found for found in ()]",
        "if (found := 1): pass",
        "def found(): pass",
        "def look(found): pass",
        "look = lambda *found: 1",
        "class Search:\n    found: int",
        "search.found = 1",
        "import re as found",
        "try: pass\nexcept OSError as found: pass",
        "match 1:\n    case found: pass",
    ],
)
def test_a_name_is_seen_wherever_it_is_given(text: str) -> None:
    assert "found" in names_given(text)
    assert "found" not in names_given('"found"; search.found(found=1)')


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
