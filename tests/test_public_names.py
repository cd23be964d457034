"""Imports between rooms are of names that the rooms list, and the lists are exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scripts import public_names
from scripts.imports import read_modules

if TYPE_CHECKING:
    from pathlib import Path

CLEAN = {
    "ground/__init__": 'PUBLIC = {"numbers": ("parse",), "words": ()}',
    "ground/numbers": "def parse(): ...\ndef _helper(): ...",
    "ground/words": "from suffice.pipeline.ground.numbers import _helper",
    "top/__init__": "",
    "top/spec": "from suffice.pipeline.ground import words",
    "top/plan": "from suffice.pipeline.ground.numbers import parse",
}
DEFECTS = {
    "a name that is not listed": (
        "top/late",
        "def f():\n    from suffice.pipeline.ground.numbers import _helper",
    ),
    "a module that is not listed": ("top/late", "from suffice.pipeline.ground import figures"),
    "a module that is imported whole": ("top/late", "import suffice.pipeline.ground.figures as own"),
    "a name that is private": (
        "ground/__init__",
        'PUBLIC = {"numbers": ("_helper", "parse"), "words": ()}',
    ),
    "a name that nobody uses": ("ground/__init__", 'PUBLIC = {"numbers": ("old", "parse"), "words": ()}'),
    "a module that nobody uses": (
        "ground/__init__",
        'PUBLIC = {"figures": (), "numbers": ("parse",), "words": ()}',
    ),
}


def defects_of(directory: Path, files: dict[str, str]) -> list[str]:
    for name, text in {**files, "ground/figures": "", "__init__": ""}.items():
        path = directory / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return public_names.defects(read_modules({"suffice.pipeline": directory}))


def test_a_tree_that_keeps_to_its_lists_passes(tmp_path: Path) -> None:
    assert defects_of(tmp_path, CLEAN) == []


@pytest.mark.parametrize("name", DEFECTS)
def test_each_defect_is_found(name: str, tmp_path: Path) -> None:
    file, text = DEFECTS[name]
    files = {**CLEAN, file: text}
    if name == "a name that is private":
        files["top/late"] = "from suffice.pipeline.ground.numbers import _helper"
    (found,) = defects_of(tmp_path, files)
    assert found.startswith("public without use" if "nobody" in name else "not public")


def test_lists_that_were_written_are_exact(tmp_path: Path) -> None:
    defects_of(tmp_path, {**CLEAN, "top/late": "from suffice.pipeline.ground import figures"})
    modules = read_modules({"suffice.pipeline": tmp_path})
    public_names.write(modules)
    again = read_modules({"suffice.pipeline": tmp_path})
    assert public_names.defects(again) == []
    public_names.write(again)
    assert read_modules({"suffice.pipeline": tmp_path}) == again


def test_this_repository_keeps_to_its_lists(repository: Path) -> None:
    assert public_names.main(repository, []) == 0


def test_the_exit_status_tells_defects(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.setuptools.package-dir]\n"suffice.pipeline" = "pipeline"\n'
    )
    defects_of(tmp_path / "pipeline", CLEAN)
    assert public_names.main(tmp_path, []) == 0
    defects_of(tmp_path / "pipeline", {**CLEAN, "ground/__init__": "PUBLIC = {}"})
    assert public_names.main(tmp_path, []) == 1
