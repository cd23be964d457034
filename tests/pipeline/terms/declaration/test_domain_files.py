"""Domain files: from the spec's own folder alone, bounded, and never quoted."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from suffice.errors import SpecError
from suffice.pipeline.spec.spec import Spec, load_spec
from suffice.pipeline.terms.declaration import domain_entries as domain_files

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "SECRET-5a1f"  # noqa: S105 - stands for one


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "outside.csv").write_text(f"{SECRET}\n{SECRET}-2\n")
    (tmp_path / "specs" / "lists").mkdir(parents=True)
    return tmp_path / "specs"


def load(folder: Path, name: str) -> Spec:
    path = folder / "release.json"
    path.write_text(
        '{"name": "n", "dataset": "d", "source": {"parquet": "x"}, '
        '"privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"}, '
        f'"groups": {{"g": {{"file": {name!r}}}}}, '.replace("'", '"')
        + '"statistics": {"s": {"family": "bernoulli", "column": "c"}}}'
    )
    return load_spec(path)


def refusal(folder: Path, name: str) -> str:
    with pytest.raises(SpecError) as caught:
        load(folder, name)
    message = str(caught.value)
    assert "groups" in message
    assert SECRET not in message
    assert str(folder.parent) not in message.replace(str(folder / "release.json"), "").replace(name[:80], "")
    assert len(message) <= 500
    assert caught.value.__suppress_context__
    return message


def test_files_beside_the_spec_and_below_are_read(folder: Path) -> None:
    (folder / "a.csv").write_text("g\nx\ny\n")
    (folder / "lists" / "b.csv").write_text('\ufeffx\n\n"y, z"\n', encoding="utf-8")
    (folder / "inside.csv").symlink_to(folder / "lists" / "b.csv")
    assert list(load(folder, "a.csv").groups["g"]) == ["x", "y"]
    assert list(load(folder, "./lists/b.csv").groups["g"]) == ["x", "y, z"]
    assert list(load(folder, "inside.csv").groups["g"]) == ["x", "y, z"]


@pytest.mark.parametrize("header", ["G", " g", "g "])
def test_a_header_in_other_letters_is_no_key(folder: Path, header: str) -> None:
    (folder / "a.csv").write_text(f"{header}\nx\ny\n")
    assert "begins with the column's name in other letters" in refusal(folder, "a.csv")
    (folder / "a.csv").write_text(f"g\n{header}\nx\n")
    assert list(load(folder, "a.csv").groups["g"]) == [header, "x"]


def test_nothing_outside_of_the_folder_is_read(folder: Path) -> None:
    (folder / "link.csv").symlink_to(folder.parent / "outside.csv")
    (folder / "up").symlink_to(folder.parent)
    for name in (
        "../outside.csv",
        "lists/../../outside.csv",
        str(folder.parent / "outside.csv"),
        "/etc/hostname",
    ):
        assert "is not beside the spec" in refusal(folder, name)
    for name in ("..", "a/..", "C:/a.csv"):
        assert "is not beside the spec" in refusal(folder, name)
    for name in ("link.csv", "up/outside.csv"):
        assert "is a link out of the spec's folder" in refusal(folder, name)


def test_what_is_no_regular_file_is_not_opened(folder: Path) -> None:
    os.mkfifo(folder / "pipe.csv")
    (folder / "loop.csv").symlink_to(folder / "loop.csv")
    for name in ("pipe.csv", "lists", "", ".", "nothing.csv", "loop.csv", "x" * 5000):
        assert "cannot be read" in refusal(folder, name)


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (f"{SECRET}\nx\n{SECRET}\n", "lines 1 and 3 are duplicates"),
        (f"{SECRET}\n1\n2\n1.0\n", "lines 2 and 4 are duplicates"),
        (f"a\n{SECRET},b\n", "line 2 has more"),
        (f'"{SECRET}', "UTF-8 CSV"),
        ("", "is empty"),
        ("g\n", "is empty"),
    ],
)
def test_a_refusal_says_lines_and_quotes_nothing(folder: Path, content: str, rule: str) -> None:
    (folder / "a.csv").write_text(content)
    assert rule in refusal(folder, "a.csv")


def test_large_files_are_refused_before_they_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (folder / "a.csv").open("wb") as file:
        file.truncate(domain_files._LARGEST_BYTES + 1)  # sparse: it takes no room
    assert "larger than 128 MiB" in refusal(folder, "a.csv")
    monkeypatch.setattr(domain_files, "MOST_CELLS", 2)
    (folder / "b.csv").write_text("a\nb\nc\n")
    assert "has 3 entries" in refusal(folder, "b.csv")


def test_a_list_in_the_spec_names_its_own_entries() -> None:
    spec: dict[str, Any] = {
        "name": "n",
        "dataset": "d",
        "source": {"parquet": "x"},
        "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
        "groups": {"g": ["1", "b", "1.0"]},
        "statistics": {"s": {"family": "bernoulli", "column": "c"}},
    }
    with pytest.raises(SpecError, match=r"the entries '1' and '1\.0' are duplicates"):
        load_spec(spec)
