"""An owner's list of SHA-256: how it is read, what it must name, and that refusals tell nothing."""

from __future__ import annotations

import glob
import hashlib
import itertools
import os
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suffice.errors import InputNotVerifiedError, UsageError
from suffice.pipeline.rows import sources
from suffice.pipeline.rows.sources.checksums import read_checksums
from suffice.pipeline.rows.sources.file_access import list_files, reaches
from support.hostile import bernoulli, make_spec

ZEROS = "0" * 64


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def owned(tmp_path: Path) -> Path:
    """Make a folder with data, and the owner's list beside it."""
    (tmp_path / "data").mkdir()
    for name in ("a", "b"):
        pq.write_table(pa.table({"flag": [name == "a"] * 9}), tmp_path / "data" / f"{name}.parquet")
    (tmp_path / "data" / "notes.txt").write_text("not read")
    names = ["data/a.parquet", "data/b.parquet", "data/notes.txt"]
    text = subprocess.run(
        ["sha256sum", *names], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    (tmp_path / "SHA256SUMS").write_text(text)
    return tmp_path


def verify(owned: Path, source: str = "data", name: str = "SHA256SUMS") -> None:
    spec = make_spec(owned / source, {"s": bernoulli("flag")})
    sources.verify(sources.pin(spec), str(owned / name))


def refusal(owned: Path, source: str = "data", name: str = "SHA256SUMS") -> str:
    with pytest.raises(InputNotVerifiedError) as caught:
        verify(owned, source, name)
    assert caught.value.exit_status == 3
    message = str(caught.value)
    assert len(message) <= 500
    assert "SHA256SUMS" not in message
    assert not any(digest(path) in message for path in owned.glob("data/*"))
    return message


def test_what_sha256sum_writes_is_read(owned: Path) -> None:
    data = owned / "data"
    strange = data / "new\nline\\.parquet"
    (data / "a.parquet").rename(strange)
    options = [["--binary"], ["--text"]]
    for option in options:
        text = subprocess.run(
            ["sha256sum", *option, "data/b.parquet", str(strange)],
            cwd=owned,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        (owned / "SHA256SUMS").write_text(text)
        listed = read_checksums(str(owned / "SHA256SUMS"))
        assert listed == {str(path.resolve()): digest(path) for path in (strange, data / "b.parquet")}
        verify(owned)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "is empty"),
        (f"{ZEROS}  a\nx\n", "line 2 is not a SHA-256"),
        (f"{ZEROS[:-1]}  a\n", "line 1 is not"),
        (f"{ZEROS} a\n", "line 1 is not"),
        (f"{ZEROS}  a\r\n", "line 1 is not"),
        (f"{ZEROS}  a\n{'1' * 64}  ./a\n", "line 2 names a file that another line"),
        ("\udcff", "cannot be read"),
    ],
)
def test_what_is_no_list_is_refused_with_its_line(tmp_path: Path, text: str, rule: str) -> None:
    path = tmp_path / "list"
    path.write_text(text, encoding="utf-8", errors="surrogateescape", newline="")
    with pytest.raises(UsageError, match=rule):
        read_checksums(str(path))


def test_a_pipe_is_no_list(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "nothing", "a\0b", "."):
        with pytest.raises(UsageError, match="cannot be read"):
            read_checksums(str(tmp_path / name))


def test_every_file_of_the_source_is_in_the_list_and_is_what_it_was(owned: Path) -> None:
    verify(owned)
    verify(owned, "data/*.parquet")
    verify(owned, "data/a.parquet")
    verify(owned, "**/*.parquet")
    first = owned / "data" / "a.parquet"
    content = first.read_bytes()
    first.write_bytes(content[:-20] + bytes([content[-20] ^ 1]) + content[-19:])
    said = {refusal(owned), refusal(owned, "data/*.parquet").replace("/*.parquet", "")}
    verify(owned, "data/b.parquet")
    first.write_bytes(content)
    verify(owned)
    (owned / "data" / "c.parquet").write_bytes(content)
    said.add(refusal(owned))
    verify(owned, "data/a.parquet")
    (owned / "data" / "c.parquet").unlink()
    first.unlink()
    said.add(refusal(owned))
    assert len(said) == 1, "one text, whatever the difference is"
    (text,) = said
    assert text.startswith(
        f"source.parquet: {owned / 'data'}: the input is not what the account's owner listed"
    )


def test_a_list_that_is_gone_is_refused_without_its_place(owned: Path) -> None:
    assert "their list cannot be read" in refusal(owned, name="SHA256SUMS.old")
    (owned / "SHA256SUMS").write_text("x\n")
    assert "line" not in refusal(owned)


def test_links_are_the_files_that_they_name(owned: Path) -> None:
    (owned / "data" / "a.parquet").rename(owned / "elsewhere.parquet")
    (owned / "data" / "a.parquet").symlink_to(owned / "elsewhere.parquet")
    verify(owned)
    (owned / "linked").symlink_to(owned / "data")
    verify(owned, "linked")


PARTS = ["a", "b.parquet", ".hidden", "_x.parquet", "c.PARQUET", "[1].parquet"]
PATTERNS = [
    "*",
    "*.parquet",
    "**",
    "**/*.parquet",
    "a/*",
    "a/**",
    "**/a/*",
    "?.parquet",
    "[ab]*",
    ".hidden/*",
    "",
]
PATTERNS += ["a", "b.parquet", "*/*", "**/**", "a/b.parquet", "[[]1].parquet", "[1].parquet", "**/*"]


def test_a_source_reaches_what_it_would_list(tmp_path: Path) -> None:
    """Against the listing itself, over every pattern and every path of a small tree."""
    for parts in itertools.product(["", "a", ".hidden", "a/a"], PARTS):
        path = tmp_path.joinpath(*parts)
        if path.name not in {"a", ".hidden"}:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")
    every = [str(path) for path in tmp_path.rglob("*") if path.is_file()]
    compared = 0
    for pattern in PATTERNS:
        address = str(tmp_path / pattern)
        if Path(address).exists():
            found = set(list_files(address))
        else:
            found = {path for path in glob.glob(address, recursive=True) if Path(path).is_file()}  # noqa: PTH207
        assert {path for path in every if reaches(address, path)} == found, pattern
        compared += len(found)
    assert compared > 50
