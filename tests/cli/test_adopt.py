"""``suffice adopt`` and what other commands do with a release that was adopted."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import jsonschema
import pytest
import yaml

import suffice
from scripts.schemas.__main__ import SCHEMAS
from suffice.cli import app
from suffice.errors import AdoptedReleaseError, ReleaseCorruptError, ReleaseMissingError, UsageError
from suffice.storage.releases.adopted_files import open_adopted, write_adopted
from support.printed import validator_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LAW = """\
name: views
publisher: A publisher
source: https://example.org/table
licence: CC0 1.0
privacy: "rho = 0.1, one visit"
keys:
  page: as_published
  day: {from: 2024-01-01, to: 2024-01-03, every: day}
columns:
  views:
    noise: {law: gaussian, sd: 10}
    suppressed: {below: 90, shown_as: absent}
    rounded: {to: 1}
statistics:
  views: {family: poisson, column: views, upper: 1000000}
"""
TABLE = "page,day,views\nA,2024-01-01,120\nB,2024-01-02,1180\nB,2024-01-03,1150\n"


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended."""

    exit_code: int
    stdout: str
    stderr: str


Run: TypeAlias = "Callable[..., Done]"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run_command(*words: object) -> Done:
        with pytest.raises(SystemExit) as caught:
            app.main([str(word) for word in words])
        return Done(int(caught.value.code or 0), *capsys.readouterr())

    return run_command


@pytest.fixture
def folder(tmp_path: Path, run: Run) -> Path:
    (tmp_path / "law.yaml").write_text(LAW)
    (tmp_path / "table.csv").write_text(TABLE)
    done = run("adopt", tmp_path / "table.csv", tmp_path / "law.yaml", "--out", tmp_path / "out" / "views")
    assert done.exit_code == 0, done.stderr
    return tmp_path / "out" / "views"


def validated(command: str, text: str) -> Any:
    """Return a document that fits the schema of its command."""
    document = json.loads(text)
    schema = json.loads((SCHEMAS / "cli" / f"{command}-1.json").read_text())
    validator_of(schema).validate(document)
    return document


def test_adopt_needs_no_ledger_and_leaves_nothing_but_its_folder(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", "table.csv"]
    assert sorted(path.name for path in folder.parent.parent.iterdir()) == ["law.yaml", "out", "table.csv"]


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("show", []),
        ("list", []),
        ("verify", []),
        ("table", ["views"]),
        ("posterior", ["views", "--pooled", "day"]),
    ],
)
def test_every_command_says_that_it_was_adopted(
    folder: Path, command: str, arguments: list[str], run: Run
) -> None:
    shown = run(command, folder, *arguments)
    document = run(command, folder, *arguments, "--json")

    assert shown.exit_code == 0, shown.stderr
    assert "adopted" in shown.stdout
    content = validated(command, document.stdout)
    status = content["adopted"][0]["status"] if command == "list" else content["status"]
    assert status == "adopted"


def test_posteriors_take_suppressed_days_as_censored(folder: Path, run: Run) -> None:
    arguments = ("views", "--pooled", "day", "--cells", "alike", "--json")
    answer = validated("posterior", run("posterior", folder, *arguments).stdout)
    rows = answer["rows"]
    of_page = {row["page"]: row for row in rows}

    assert answer["cells"] == "alike"
    assert of_page["A"]["upper"] < 120.0
    assert 60.0 < of_page["A"]["mean"] < 110.0
    said = run("posterior", folder, "views", "--where", "page=A", "--where", "day=2024-01-02").stdout
    assert "1 of 1 published number suppressed, and taken as censored" in said
    assert "the default prior decides" in said
    assert "from draws" not in said


@pytest.mark.slow
def test_a_pooled_total_says_that_its_ends_are_from_draws(tmp_path: Path, run: Run) -> None:
    (tmp_path / "law.yaml").write_text(LAW.replace("family: poisson", "family: count"))
    (tmp_path / "table.csv").write_text(TABLE)
    run("adopt", tmp_path / "table.csv", tmp_path / "law.yaml", "--out", tmp_path / "views")
    said = run("posterior", tmp_path / "views", "views", "--pooled", "day", "--draws", "500").stdout

    assert "the ends of intervals are from draws" in said
    assert "these are of 500 draws" in said


@pytest.mark.parametrize(
    ("option", "value"),
    [("--out", "x.csv"), ("--method", "plug-in"), ("--card", "x.html"), ("--versus", "page=B")],
)
def test_options_that_are_not_of_adopted_releases_are_refused_by_name(
    folder: Path, option: str, value: str, run: Run
) -> None:
    done = run("posterior", folder, "views", option, value)

    assert done.exit_code == 2
    assert f"{option} is not of releases that were adopted" in done.stderr
    assert "suffice.open_adopted" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["publish", "{}", "views"],
        ["calibrate", "{}", "views"],
        ["compare", "{}", "{}", "views"],
        ["pool", "views", "--disjoint", "{}"],
    ],
)
def test_other_commands_refuse_it_and_say_what_to_do(folder: Path, words: list[str], run: Run) -> None:
    done = run(*(word.format(folder) for word in words))

    assert done.exit_code == 2
    assert "was adopted" in done.stderr
    assert "suffice.open_adopted" in done.stderr


def test_a_ledger_does_not_know_of_it(folder: Path, run: Run) -> None:
    done = run("verify", folder, "--ledger", "sqlite:///none.db")

    assert done.exit_code == 2
    assert "no ledger knows of it" in done.stderr


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("table.csv", b'"120"', b'"121"'),
        ("manifest.json", b'"sd":"10.0"', b'"sd":"20.0"'),
        ("manifest.json", b"A publisher", b"Another one"),
        ("manifest.json", b'"adopted-1"', b'"adopted-2"'),
        ("table.csv", b'"B","2024-01-02","1180"', b'"B","2024-01-02",""'),
    ],
)
def test_what_was_changed_is_found(folder: Path, name: str, old: bytes, new: bytes, run: Run) -> None:
    data = (folder / name).read_bytes()
    assert old in data
    (folder / name).write_bytes(data.replace(old, new))

    with pytest.raises(ReleaseCorruptError, match="was changed"):
        open_adopted(folder)
    verified = run("verify", folder, "--json")
    assert verified.exit_code == 5
    assert validated("verify", verified.stdout)["ok"] is False
    said = run("verify", folder).stdout
    assert "not ok - adopted: law, table and id do not fit" in said
    assert "the table fits" not in said


def test_one_changed_folder_does_not_hide_the_others(folder: Path, run: Run) -> None:
    other = folder.parent / "other"
    shutil.copytree(folder, other)
    (other / "table.csv").write_bytes((other / "table.csv").read_bytes().replace(b"120", b"121"))
    shown, document = (run("list", folder.parent, *how) for how in ((), ("--json",)))

    assert (shown.exit_code, document.exit_code) == (5, 5)
    assert str(folder) in shown.stdout
    assert "not listed: the adopted release at" in shown.stdout
    listed = validated("list", document.stdout)
    assert [len(listed[part]) for part in ("adopted", "problems")] == [1, 1]


def test_a_manifest_fits_its_schema_and_states_the_law(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    schema = json.loads((SCHEMAS / "adopted-manifest-1.json").read_text())

    validator_of(schema).validate(manifest)
    assert manifest["law"]["columns"]["views"]["suppressed"] == {"below": "90.0", "shown_as": "absent"}


def test_a_law_fits_its_schema() -> None:
    schema = json.loads((SCHEMAS / "declared-law-1.json").read_text())
    law = yaml.load(LAW, Loader=yaml.BaseLoader)  # noqa: S506 - texts alone
    law["columns"]["views"]["noise"]["sd"] = 10
    law["columns"]["views"]["suppressed"]["below"] = 90
    law["columns"]["views"]["rounded"]["to"] = 1
    law["statistics"]["views"]["upper"] = 1000000

    validator_of(schema).validate(law)
    law["columns"]["views"]["noise"]["law"] = "cauchy"
    with pytest.raises(jsonschema.ValidationError):
        validator_of(schema).validate(law)


def test_python_opens_what_the_command_wrote(folder: Path) -> None:
    opened = suffice.open_adopted(folder)
    adopted = suffice.adopt(folder.parent.parent / "table.csv", folder.parent.parent / "law.yaml")

    assert opened.release_id == adopted.release_id
    assert opened.law == adopted.law
    assert list(opened.law.keys) == ["page", "day"]
    with pytest.raises(AdoptedReleaseError, match="was adopted"):
        suffice.open_release(folder)
    with pytest.raises(ReleaseMissingError, match="no adopted release"):
        suffice.open_adopted(folder.parent)
    with pytest.raises(UsageError, match="something stands there already"):
        write_adopted(adopted, folder)


def test_a_table_that_does_not_fit_is_quoted(tmp_path: Path, run: Run) -> None:
    (tmp_path / "law.yaml").write_text(LAW)
    (tmp_path / "table.csv").write_text(TABLE.replace("120", "12"))

    done = run("adopt", tmp_path / "table.csv", tmp_path / "law.yaml", "--out", tmp_path / "out")

    assert done.exit_code == 2
    assert "page=A, day=2024-01-01: views: 12 was published, and noisy numbers below 90 were" in done.stderr
    assert not (tmp_path / "out").exists()
