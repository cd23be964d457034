"""The public names: sorted, lazy, and what a type checker sees is what a program gets."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import inspect
import json
import re
import tomllib
from typing import TYPE_CHECKING

import pytest
import yaml

import suffice
from suffice import errors, models

if TYPE_CHECKING:
    from pathlib import Path

NAMES = [name for name in suffice.__all__ if name != "__version__"]


def test_all_is_sorted_and_listed() -> None:
    assert list(suffice.__all__) == sorted(set(suffice.__all__))
    assert set(suffice.__all__) <= set(dir(suffice))


@pytest.mark.parametrize("name", NAMES)
def test_each_name_is_there_and_says_what_it_is(name: str) -> None:
    value = getattr(suffice, name)
    assert inspect.isclass(value) or inspect.isfunction(value)
    assert inspect.getdoc(value)


def test_the_names_of_models_are_sorted_and_say_what_they_are() -> None:
    assert list(models.__all__) == sorted(set(models.__all__))
    for name in models.__all__:
        value = getattr(models, name)
        assert inspect.isclass(value) or inspect.isfunction(value)
        assert inspect.getdoc(value)


@pytest.mark.parametrize("name", ["chain", "classifier", "hidden_markov", "network", "regression"])
def test_a_consumers_model_takes_a_generator(name: str) -> None:
    assert "rng" in inspect.signature(getattr(models, name)).parameters


def test_a_type_checker_sees_the_names_that_a_program_gets() -> None:
    tree = ast.parse(inspect.getsource(suffice))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    seen = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        assert node.module is not None
        for alias in node.names:
            seen[alias.asname or alias.name] = getattr(importlib.import_module(node.module), alias.name)
    assert seen == {name: getattr(suffice, name) for name in NAMES}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = suffice.no_such_name


def test_the_version_is_stated_once_and_has_a_changelog_entry(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    assert suffice.__version__ == project["version"] == importlib.metadata.version("suffice")
    assert f"\n## [{suffice.__version__}]" in (repository / "CHANGELOG.md").read_text()


def test_what_else_states_the_version_states_this_one(repository: Path) -> None:
    """The citation, with the licence; and the readers in other languages."""
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((repository / "CITATION.cff").read_text())
    asked = ("title", "version", "license", "keywords")
    assert [citation[key] for key in asked] == [project[key] for key in ("name", *asked[1:])]
    assert citation["authors"] == project["authors"]
    readers = repository / "readers"
    package = json.loads((readers / "javascript/package.json").read_text())
    lock = json.loads((readers / "javascript/package-lock.json").read_text())
    described = (readers / "r/DESCRIPTION").read_text()
    stated = (package["version"], lock["version"], lock["packages"][""]["version"])
    assert {*stated, *re.findall("^Version: (.*)$", described, re.MULTILINE)} == {suffice.__version__}
    assert package["license"] == project["license"]


@pytest.mark.parametrize("name", ["plan", "release", "load_spec", "open_release"])
def test_no_trusted_function_takes_a_seed(name: str) -> None:
    parameters = inspect.signature(getattr(suffice, name)).parameters
    assert not [parameter for parameter in parameters if re.search("seed|rng|random", parameter)]


def drawn_hierarchy() -> dict[str, tuple[str | None, int]]:
    """Read the tree in the docstring of ``suffice.errors``: class -> (parent, exit status)."""
    drawn: dict[str, tuple[str | None, int]] = {}
    path: list[str] = []
    for line in inspect.getdoc(errors).split("\n"):  # type: ignore[union-attr]
        match = re.fullmatch(r"\s*((?:[│ ]   |[├└]── )*)(\w+)(?: \(\w+\))?\s+(\d+)(?:\s.*)?", line)
        if match is None:
            continue
        depth = len(match[1]) // 4
        path[depth:] = [match[2]]
        drawn[match[2]] = (path[depth - 1] if depth else None, int(match[3]))
    return drawn


def test_the_drawn_hierarchy_of_errors_is_the_real_one() -> None:
    real = {
        name: (None if value is errors.SufficeError else value.__bases__[0].__name__, value.exit_status)
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, errors.SufficeError)
    }
    assert drawn_hierarchy() == real
