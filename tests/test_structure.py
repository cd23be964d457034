"""The script that prints the rooms finds each thing that must not be, and nothing in this repository."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest

from scripts import structure
from scripts.imports import read_modules

if TYPE_CHECKING:
    from pathlib import Path

ORDERS = structure.read_orders(
    tomllib.loads(
        """
        [[tool.importlinter.contracts]]
        name = "Rooms, in the order of the flow"
        type = "layers"
        containers = ["suffice.pipeline"]
        layers = ["top", "left | right", "(middle)", "here : there", "ground"]

        [[tool.importlinter.contracts]]
        name = "Storage"
        type = "layers"
        layers = ["suffice.storage.ledger", "suffice.storage.objects"]

        [[tool.importlinter.contracts]]
        name = "Packages"
        type = "layers"
        layers = ["suffice.cli", "suffice.storage", "suffice.pipeline"]

        [[tool.importlinter.contracts]]
        name = "Something else"
        type = "forbidden"
        source_modules = ["suffice"]
        forbidden_modules = ["random"]
        """
    )
)

CLEAN = {
    "__init__": '_HOMES = {"Ledger": ("suffice.storage.ledger.sql", "Ledger")}',
    "cli/__init__": "",
    "cli/app": "import suffice",
    "pipeline/__init__": "",
    "pipeline/top/__init__": "from suffice.pipeline.ground import numbers",
    "pipeline/left/__init__": "",
    "pipeline/right/__init__": "",
    "pipeline/middle/__init__": "",
    "pipeline/here/__init__": "import suffice.pipeline.there",
    "pipeline/there/__init__": "",
    "pipeline/ground/__init__": "",
    "pipeline/ground/numbers": "from suffice.pipeline.ground import words",
    "pipeline/ground/words": "from suffice.pipeline.ground import numbers",
    "storage/__init__": "",
    "storage/ledger/__init__": "from suffice.pipeline.top import Spec",
    "storage/ledger/sql": 'import json\nLOGGER = "suffice"\nKEY = "suffice.json"',
    "storage/objects/__init__": "",
}


def examine(directory: Path, **changed: str) -> structure.Findings:
    """Examine the clean tree with some files `changed` or added."""
    for name, text in {**CLEAN, **changed}.items():
        path = directory / "suffice" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return structure.examine(read_modules({"suffice": directory / "suffice"}), ORDERS)


def test_a_clean_tree_has_no_defect(tmp_path: Path) -> None:
    findings = examine(tmp_path)
    assert findings.defects == ()
    assert findings.not_followed == ()
    assert findings.long_files == ()
    assert findings.n_files == len(CLEAN)


def test_rooms_are_listed_from_the_ground_up_with_files_and_lines(tmp_path: Path) -> None:
    rooms = examine(tmp_path).rooms
    names = [name.removeprefix("suffice.pipeline.") for name, _, _ in rooms if ".pipeline." in name]
    assert names == ["ground", "here", "there", "middle", "left", "right", "top"]
    assert ("suffice.pipeline.ground", 3, 3) in rooms
    assert ("suffice.storage", 4, 6) in rooms
    assert [name for name, _, _ in rooms][-3:] == ["suffice.pipeline", "suffice.storage", "suffice.cli"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("from suffice.pipeline.top import Spec", 1),
        ("from suffice.pipeline import top", 1),
        ("from ..top import Spec", 1),
        ("import suffice.pipeline.top as spec", 1),
        ("def late():\n    from suffice.pipeline.top import Spec", 2),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import suffice.pipeline.top", 3),
        ('import importlib\nTOP = importlib.import_module("suffice.pipeline.top")', 2),
        ('HOMES = {"Spec": ("suffice.pipeline.top", "Spec")}', 1),
        ('\nCALLED = "suffice.pipeline.top:compile_plan"', 2),
        ('CALLED = "suffice.pipeline.top:Plan.of"', 1),
        ('def plan() -> "suffice.pipeline.top.Plan": ...', 1),
    ],
    ids=[
        "from",
        "from package",
        "relative",
        "import",
        "lazy",
        "typing",
        "import_module",
        "table",
        "function",
        "method",
        "annotation",
    ],
)
def test_an_import_against_the_order(tmp_path: Path, text: str, line: int) -> None:
    (defect,) = examine(tmp_path, **{"pipeline/middle/__init__": text}).defects
    assert defect.startswith("against the order: ")
    assert defect.endswith(f"suffice/pipeline/middle/__init__.py:{line} imports suffice.pipeline.top")


@pytest.mark.parametrize("text", ["import suffice.pipeline", "from suffice import pipeline"])
def test_an_import_of_a_whole_house(tmp_path: Path, text: str) -> None:
    """Attributes of a package reach everything in it, past every order."""
    (defect,) = examine(tmp_path, **{"cli/late": text}).defects
    assert defect.startswith("imports a whole house: ")


def test_the_exit_status_tells_defects(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.setuptools.package-dir]\n"suffice.pipeline" = "pipeline"\n'
        '[[tool.importlinter.contracts]]\ntype = "layers"\nlayers = ["suffice.pipeline"]\n'
        '[[tool.importlinter.contracts]]\ntype = "layers"\n'
        'containers = ["suffice.pipeline"]\nlayers = ["room"]\n'
    )
    room = tmp_path / "pipeline" / "room" / "__init__.py"
    room.parent.mkdir(parents=True)
    for path in (room, tmp_path / "pipeline" / "__init__.py"):
        path.write_text("")
    assert structure.main(tmp_path) == 0
    (tmp_path / "pipeline" / "loose.py").write_text("")
    assert structure.main(tmp_path) == 1


def test_an_import_between_independent_rooms(tmp_path: Path) -> None:
    (defect,) = examine(tmp_path, **{"pipeline/left/file": "import suffice.pipeline.right"}).defects
    assert defect.endswith("suffice/pipeline/left/file.py:1 imports suffice.pipeline.right")


def test_an_import_against_the_order_of_packages(tmp_path: Path) -> None:
    changed = {"pipeline/ground/file": "from suffice.storage.objects import address"}
    defects = examine(tmp_path, **changed).defects
    assert any(defect.endswith("ground/file.py:1 imports suffice.storage.objects") for defect in defects)
    assert "circle of rooms: suffice.pipeline, suffice.storage" in defects


def test_a_circle_between_rooms_of_one_layer(tmp_path: Path) -> None:
    findings = examine(tmp_path, **{"pipeline/there/__init__": "def f():\n    import suffice.pipeline.here"})
    assert findings.defects == ("circle of rooms: suffice.pipeline.here, suffice.pipeline.there",)


def test_a_circle_of_three_files(tmp_path: Path) -> None:
    changed = {
        "pipeline/top/one": "from suffice.pipeline.top.inner.two import f",
        "pipeline/top/inner/__init__": "",
        "pipeline/top/inner/two": 'THREE = "suffice.pipeline.top.three"',
        "pipeline/top/three": "def f():\n    from suffice.pipeline.top import one",
    }
    names = "suffice.pipeline.top.inner.two, suffice.pipeline.top.one, suffice.pipeline.top.three"
    assert examine(tmp_path, **changed).defects == (f"circle of 3 files in suffice.pipeline.top: {names}",)


def test_a_loose_module(tmp_path: Path) -> None:
    changed = {"pipeline/loose": "", "storage/lost": "", "cli/fine": "", "storage/objects/fine": ""}
    assert examine(tmp_path, **changed).defects == (
        "loose module: suffice.pipeline.loose",
        "loose module: suffice.storage.lost",
    )


def test_a_room_without_a_place_in_the_order(tmp_path: Path) -> None:
    changed = {"pipeline/cellar/__init__": "", "demo": ""}
    assert examine(tmp_path, **changed).defects == (
        "no place in the order: suffice.pipeline.cellar",
        "no place in the order: suffice.demo",
    )


def test_one_long_file_is_listed_and_too_many_are_a_defect(tmp_path: Path) -> None:
    long = "\n" * 300
    findings = examine(tmp_path, **{"pipeline/top/long": long, "pipeline/top/short": long[1:]})
    assert findings.long_files == (("suffice.pipeline.top.long", 301),)
    assert findings.defects == ()
    (defect,) = examine(tmp_path, **{"pipeline/top/long": long, "pipeline/top/short": long}).defects
    assert defect == "long files: 2 of 19 files (10.5 %) have more than 300 lines"


def test_names_made_at_run_time_are_refused(tmp_path: Path) -> None:
    made = ('f"suffice.pipeline.{n}"', '"suffice.storage." + n', 'f"{n}.pipeline"', 'f"suffice {n}"')
    text = f"def f(n):\n    return {', '.join(made)}"
    findings = examine(tmp_path, **{"cli/late": text})
    assert len(findings.defects) == 2
    assert all(defect.startswith("cannot be followed: ") for defect in findings.defects)
    assert [line.rpartition("/")[2] for line in findings.not_followed] == [
        "late.py:2 f'suffice.pipeline.{n}'",
        "late.py:2 'suffice.storage.' + n",
    ]


def test_circles_are_found_once_with_all_their_nodes() -> None:
    edges = ["ab", "bc", "ca", "cd", "de", "ed", "ff", "fg"]
    assert structure.circles((edge[0], edge[1]) for edge in edges) == [["a", "b", "c"], ["d", "e"]]


def test_the_report_says_what_was_found(tmp_path: Path) -> None:
    text = structure.report(examine(tmp_path, **{"pipeline/loose": ""}))
    assert "suffice.pipeline.ground                           3       3\n" in text
    assert "\ndefects: 1\n  loose module: suffice.pipeline.loose" in text


def test_this_repository_keeps_its_order(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = structure.main(repository)
    assert status == 0, capsys.readouterr().out
