"""What is refused before it reaches an index, on small files made for it."""

from __future__ import annotations

import io
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest

from scripts import distributions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REPOSITORY = "https://example.org/owner/suffice"
METADATA = f"""\
Metadata-Version: 2.4
Name: suffice
Version: 1.2.0
License-Expression: Apache-2.0
Project-URL: Changelog, {REPOSITORY}/changes
Project-URL: Documentation, https://docs.example.org
Project-URL: Issues, {REPOSITORY}/issues
Project-URL: Repository, {REPOSITORY}
Description-Content-Type: text/markdown

# suffice
"""
CHANGELOG = "# Changelog\n\n## [1.2.0] - 2027-01-31\n"
UNDATED = CHANGELOG.replace("2027-01-31", "unreleased")
WHEEL = "suffice-1.2.0-py3-none-any.whl"
IN_WHEEL = {
    "suffice/__init__.py": "",
    "suffice/py.typed": "",
    "suffice-1.2.0.dist-info/METADATA": METADATA,
    "suffice-1.2.0.dist-info/licenses/LICENSE": "Apache",
}
IN_SOURCE = {"PKG-INFO": METADATA, "CHANGELOG.md": CHANGELOG, "LICENSE": "Apache"}

Files = dict[str, str]


def complaints(
    directory: Path, wheel: Files, source: Files, *, name: str = WHEEL, tag: str = "v1.2.0"
) -> list[str]:
    """Write both files, and return what is wrong with them."""
    with zipfile.ZipFile(directory / name, "w") as archive:
        for path, text in wheel.items():
            archive.writestr(path, text)
    with tarfile.open(directory / "suffice-1.2.0.tar.gz", "w:gz") as packed:
        for path, text in source.items():
            entry = tarfile.TarInfo(f"suffice-1.2.0/{path}")
            entry.size = len(text.encode())
            packed.addfile(entry, io.BytesIO(text.encode()))
    return distributions.problems(directory, tag=tag, repository=REPOSITORY)


def test_files_that_are_right_pass(tmp_path: Path) -> None:
    assert complaints(tmp_path, IN_WHEEL, IN_SOURCE) == []


def without(*names: str) -> Callable[[Files], Files]:
    return lambda files: {name: text for name, text in files.items() if not name.endswith(names)}


def with_file(name: str, text: str = "") -> Callable[[Files], Files]:
    return lambda files: {**files, name: text}


def with_metadata(old: str, new: str) -> Callable[[Files], Files]:
    assert old in METADATA
    return lambda files: {name: text.replace(old, new) for name, text in files.items()}


def same(files: Files) -> Files:
    return files


@pytest.mark.parametrize(
    ("of_wheel", "of_source", "message"),
    [
        (without("py.typed"), same, "no py.typed"),
        (without("LICENSE"), same, "the wheel has no LICENSE"),
        (same, without("LICENSE"), "the source distribution has no LICENSE"),
        (with_file("tests/test_it.py"), same, "would install tests/test_it.py"),
        (with_file("suffice/.env", "TOKEN=1"), same, "holds suffice/.env"),
        (same, with_file("demo/ledger.db"), "holds demo/ledger.db"),
        (same, with_file("docs/large.svg", "x" * (10 * 2**20 + 1)), "docs/large.svg of 10485761 bytes"),
        (
            same,
            with_file("CHANGELOG.md", UNDATED),
            "heading with a date",
        ),
        (with_metadata("Apache-2.0", "MIT"), same, "different metadata"),
        (with_metadata("License-Expression: Apache-2.0\n", ""), same, "no licence expression"),
        (with_metadata("text/markdown", "text/plain"), same, "no description in Markdown"),
        (with_metadata("Project-URL: Issues", "Project-URL: Bugs"), same, "no link Issues"),
        (
            with_metadata(f"{REPOSITORY}/issues", f"{REPOSITORY}-2/issues"),
            same,
            "Issues does not lead",
        ),
        (with_metadata("Version: 1.2.0", "Version: newest"), same, "metadata are not valid"),
    ],
)
def test_what_is_wrong_is_said(
    tmp_path: Path, of_wheel: Callable[[Files], Files], of_source: Callable[[Files], Files], message: str
) -> None:
    said = complaints(tmp_path, of_wheel(IN_WHEEL), of_source(IN_SOURCE))
    assert [line for line in said if message in line], said


def test_a_tag_of_another_version_is_refused(tmp_path: Path) -> None:
    said = complaints(tmp_path, IN_WHEEL, IN_SOURCE, tag="v1.2.1")
    assert "the tag v1.2.1 is not v1.2.0, which the files are of" in said


def test_a_wheel_of_one_platform_is_refused(tmp_path: Path) -> None:
    (said,) = complaints(tmp_path, IN_WHEEL, IN_SOURCE, name="suffice-1.2.0-cp312-cp312-linux_x86_64.whl")
    assert "not for every platform" in said


def test_a_file_beside_them_is_refused(tmp_path: Path) -> None:
    (tmp_path / "suffice-1.1.0.tar.gz").touch()
    (said,) = complaints(tmp_path, IN_WHEEL, IN_SOURCE)
    assert "nothing else" in said
