"""Local objects: created once, whole and durable, or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from suffice.errors import ObjectExistsError, StoreError
from suffice.storage.objects.local_files import LocalFiles


def test_what_is_put_is_got_and_listed(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path / "deep" / "root")
    assert files.keys("") == []
    assert files.keys("name/") == []
    assert files.get("name/one", at_most=10) is None
    files.put_new("name/one", b"first")
    files.put_new("name/sub/two", b"second")
    files.put_new("name-2/three", b"")
    assert files.get("name/one", at_most=10) == b"first"
    assert files.get("name/one", at_most=3) == b"fir"
    assert files.get("name/sub", at_most=10) is None
    assert files.get("name/one/below", at_most=10) is None
    assert files.keys("") == ["name-2/three", "name/one", "name/sub/two"]
    assert files.keys("name/") == ["name/one", "name/sub/two"]


def test_an_object_is_never_replaced(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    files.put_new("key", b"first")
    with pytest.raises(ObjectExistsError, match="never overwritten"):
        files.put_new("key", b"second")
    assert files.get("key", at_most=10) == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


@pytest.mark.parametrize("moment", ["os.fsync", "os.link"])
def test_a_writer_killed_on_the_way_leaves_nothing_that_a_reader_sees(tmp_path: Path, moment: str) -> None:
    script = (
        "import os, pathlib\n"
        "from suffice.storage.objects.local_files import LocalFiles\n"
        f"files = LocalFiles(pathlib.Path({str(tmp_path)!r}))\n"
        "files.put_new('name/before', b'x')\n"
        f"{moment} = lambda *_: os._exit(9)\n"
        "files.put_new('name/key', b'half')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False)
    assert done.returncode == 9
    files = LocalFiles(tmp_path)
    assert files.keys("") == ["name/before"]
    assert files.get("name/key", at_most=10) is None
    files.put_new("name/key", b"whole")
    assert files.get("name/key", at_most=10) == b"whole"


def test_bytes_are_durable_before_their_name_and_names_before_the_call_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    synchronise, link = os.fsync, os.link

    def record_fsync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        events.append("bytes" if path.is_file() else str(path.relative_to(tmp_path)))
        synchronise(descriptor)

    def record_link(source: Path, target: Path) -> None:
        events.append("link")
        link(source, target)

    monkeypatch.setattr(os, "fsync", record_fsync)
    monkeypatch.setattr(os, "link", record_link)
    files = LocalFiles(tmp_path / "store")
    files.put_new("name/key", b"x")
    assert sorted(events[:2]) == [".", "store"]
    assert events[2:] == ["bytes", "link", "store/name"]
    events.clear()
    with pytest.raises(ObjectExistsError):
        files.put_new("name/key", b"y")
    assert events[-2:] == ["link", "store/name"]


def test_files_are_as_readable_as_the_umask_says(tmp_path: Path) -> None:
    earlier = os.umask(0o022)
    try:
        LocalFiles(tmp_path / "store").put_new("name/key", b"x")
    finally:
        os.umask(earlier)
    assert (tmp_path / "store/name/key").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "store/name").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    "key", ["", "/etc/passwd", "a//b", "../up", "a/../../b", "a/.hidden", "a/b\0", "a\\b", "ä"]
)
def test_keys_stay_below_the_root(tmp_path: Path, key: str) -> None:
    files = LocalFiles(tmp_path / "store")
    with pytest.raises(StoreError, match="no key of a store"):
        files.put_new(key, b"x")
    with pytest.raises(StoreError, match="no key of a store"):
        files.get(key, at_most=1)
    assert list(tmp_path.iterdir()) == []


def test_what_the_system_refuses_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    files = LocalFiles(tmp_path)
    with pytest.raises(StoreError, match=r"cannot be written: (not a directory \(ENOTDIR\)|.*\(EEXIST\))"):
        files.put_new("file/below", b"x")
    with pytest.raises(StoreError, match="the name is too long"):
        files.put_new("x" * 300, b"x")


def test_a_link_whose_answer_was_lost_is_known_as_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network file system asks again when an answer is lost, and meets its own link."""
    link = os.link

    def lose_the_answer(source: Path, target: Path) -> None:
        link(source, target)
        raise FileExistsError(17, "File exists")

    monkeypatch.setattr(os, "link", lose_the_answer)
    files = LocalFiles(tmp_path)
    files.put_new("key", b"mine")
    assert files.get("key", at_most=10) == b"mine"
    monkeypatch.undo()
    (tmp_path / "alias").symlink_to(tmp_path / "key")
    for taken in ("key", "alias"):
        with pytest.raises(ObjectExistsError):
            files.put_new(taken, b"mine")


def test_sweeping_takes_what_dead_writers_left_and_spares_who_puts_the_same(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    for key in ("a/x/manifest.json", "a/x/one.parquet", "a/y/two.parquet"):
        files.put_new(key, b"data")
    for name in (".one.parquet.0123", ".never.parquet.4567", ".manifest.json.89ab"):
        (tmp_path / "a/x" / name).write_bytes(b"half")
    assert files.sweep("a/x/", keep="a/x/manifest.json") == [
        "a/x/.never.parquet.4567",
        "a/x/.one.parquet.0123",
        "a/x/one.parquet",
    ]
    assert sorted(path.name for path in (tmp_path / "a/x").iterdir()) == [
        ".manifest.json.89ab",
        "manifest.json",
    ]
    assert files.keys("") == ["a/x/manifest.json", "a/y/two.parquet"]
