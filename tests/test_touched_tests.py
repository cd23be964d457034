"""Which tests ``make check`` runs after which change."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from scripts import touched_tests
from scripts.touched_tests import ALWAYS, changed_since, is_revision, select, start_of_changes

if TYPE_CHECKING:
    from pathlib import Path

TEST_FILES = {
    "tests/cli/test_app.py": "from support.running import Runner",
    "tests/conftest.py": "",
    "tests/flows/test_release_flow.py": "",
    "tests/pipeline/math/engines/normal/test_boxes.py": "import support.making",
    "tests/pipeline/math/engines/test_mixture.py": "",
    "tests/pipeline/spec/conftest.py": "",
    "tests/pipeline/spec/test_plan.py": "from support import catalogue, making",
    "tests/pipeline/spec/test_spec.py": "",
    "tests/pipeline/specimen/test_specimen.py": "from support.making_more import thing",
    "tests/storage/ledger/test_chain.py": "",
    "tests/support/making.py": "",
    "tests/support/running.py": "from support.making import Place",
    "tests/test_meta.py": "",
    "tests/releasing/test_release.py": "",
    "tests/releasing/test_failures.py": "",
    "tests/test_structure.py": "from scripts.distributions import problems",
}


def selected(*changed: str) -> list[str]:
    """Return what is selected beside what always runs."""
    return [test for test in select(changed, TEST_FILES).tests if test not in ALWAYS]


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("pipeline/spec/plan.py", ["pipeline/spec/test_plan.py", "pipeline/spec/test_spec.py"]),
        ("pipeline/math/engines/normal/moment_weights.py", ["pipeline/math/engines/normal/test_boxes.py"]),
        (
            "pipeline/math/engines/clipped_counts.py",
            ["pipeline/math/engines/normal/test_boxes.py", "pipeline/math/engines/test_mixture.py"],
        ),
        ("pipeline/math/engines/mixture.py", ["pipeline/math/engines/test_mixture.py"]),
        ("pipeline/__init__.py", []),
        ("storage/ledger/sql/rows.py", ["storage/ledger/test_chain.py"]),
        ("src/suffice/cli/app.py", ["cli/test_app.py"]),
        ("src/suffice/releasing/release.py", ["releasing/test_failures.py", "releasing/test_release.py"]),
        ("flows/release.py", ["flows/test_release_flow.py"]),
        ("tests/storage/ledger/test_chain.py", ["storage/ledger/test_chain.py"]),
        ("tests/storage/ledger/test_deleted.py", []),
        ("tests/pipeline/spec/conftest.py", ["pipeline/spec/test_plan.py", "pipeline/spec/test_spec.py"]),
        (
            "tests/support/making.py",
            ["cli/test_app.py", "pipeline/math/engines/normal/test_boxes.py", "pipeline/spec/test_plan.py"],
        ),
        ("tests/support/running.py", ["cli/test_app.py"]),
        ("docs/values.md", []),
        ("pyproject.toml", []),
    ],
)
def test_a_changed_file_is_tested_by_its_room(changed: str, tests: list[str]) -> None:
    assert selected(changed) == [f"tests/{test}" for test in tests]


def test_quick_tests_of_the_repository_always_run() -> None:
    assert select([], TEST_FILES).tests == ALWAYS
    assert set(ALWAYS) <= set(select(["pipeline/spec/plan.py"], TEST_FILES).tests)


def test_a_file_that_is_selected_as_a_whole_is_not_selected_in_part() -> None:
    files = {**TEST_FILES, "tests/test_layout.py": ""}
    selection = select(["tests/test_layout.py"], files).tests
    assert [test for test in selection if "layout" in test] == ["tests/test_layout.py"]


def test_code_without_tests_of_its_own_is_named() -> None:
    changed = ["flows/release.py", "pipeline/loose.py", "pipeline/new/room.py", "docs/values.md", "README.md"]
    assert select(changed, TEST_FILES).untested == ("pipeline/loose.py", "pipeline/new/room.py")
    assert select(["tests/support/making.py", "tests/conftest.py"], TEST_FILES).untested == ()


def test_what_always_runs_exists(repository: Path) -> None:
    for test in ALWAYS:
        file, _, function = test.partition("::")
        text = (repository / file).read_text()
        assert f"\ndef {function}(" in text or not function


def test_the_first_revision_that_exists_is_taken() -> None:
    assert start_of_changes(None, lambda _: True) == "origin/main"
    assert start_of_changes(None, lambda name: name != "origin/main") == "HEAD~1"
    assert start_of_changes("v1", lambda name: name == "v1") == "v1"
    with pytest.raises(SystemExit, match="v2 is not a revision"):
        start_of_changes("v2", lambda name: name == "v1")


def test_changes_are_what_is_committed_uncommitted_and_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def git(*words: str) -> None:
        identity = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *identity, *words], check=True, capture_output=True)

    git("init", "--quiet", "--initial-branch=main")
    for name in ("kept", "deleted", "moved", "edited"):
        (tmp_path / name).write_text(f"{name}\n")
    git("add", ".")
    git("commit", "--message=first")
    git("branch", "other")
    (tmp_path / "committed").touch()
    git("mv", "moved", "there")
    git("add", ".")
    git("commit", "--message=second")
    (tmp_path / "edited").write_text("differently\n")
    (tmp_path / "deleted").unlink()
    (tmp_path / "new file").touch()
    assert changed_since("other") == [
        "committed", "deleted", "edited", "moved", "new file", "there",
    ]  # fmt: skip
    assert changed_since("HEAD") == ["deleted", "edited", "new file"]
    assert is_revision("other")
    assert not is_revision("origin/main")


def test_a_revision_that_stands_in_for_another_is_said(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(repository)
    monkeypatch.setattr(touched_tests, "is_revision", lambda name: name == "HEAD")
    monkeypatch.setattr(touched_tests, "ALWAYS", ("--version",))
    monkeypatch.setattr(touched_tests, "changed_since", lambda _: ["pipeline/nowhere/file.py"])
    assert touched_tests.main(None) == 0
    printed = capsys.readouterr().out
    assert "origin/main does not exist here: changes are counted from HEAD." in printed
    assert "pipeline/nowhere/file.py: no tests of its own; `make test` runs all." in printed
