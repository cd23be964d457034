"""Files that commands write: never in silence over another, never over a source or in a store."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from suffice.cli.files import check_file, new_file
from suffice.errors import UsageError
from support.running import spec_file

if TYPE_CHECKING:
    from support.making import Workspace
    from support.running import Runner

TABLE = ("table", "flights", "stops")
POSTERIOR = ("posterior", "flights", "cancelled", "--method", "plug-in", "--draws", "20")


@pytest.fixture
def released(workspace: Workspace, suffice: Runner) -> Workspace:
    """A place with a published release."""
    suffice.json("release", spec_file(workspace))
    return workspace


FILES = (
    ((*TABLE, "--out"), "t.csv"),
    ((*TABLE, "--out"), "t.parquet"),
    ((*TABLE, "--plot"), "t.svg"),
    ((*POSTERIOR, "--out"), "p.csv"),
    ((*POSTERIOR, "--draws-out"), "d.csv"),
    ((*POSTERIOR, "--draws-out"), "d.parquet"),
    ((*POSTERIOR, "--draws-out"), "d.nc"),
    ((*POSTERIOR, "--card"), "c.html"),
    ((*POSTERIOR, "--plot"), "p.png"),
    ((*POSTERIOR, "--plot"), "p.svg"),
)


@pytest.mark.slow
def test_only_our_own_files_are_replaced_and_only_on_demand(released: Workspace, suffice: Runner) -> None:
    directory = released.directory / "written"
    directory.mkdir()
    for words, name in FILES:
        file = directory / name
        suffice.text(*words, str(file))
        first = file.read_bytes()
        assert "the file exists" in suffice.text(*words, str(file), status=2)
        assert file.read_bytes() == first
        suffice.text(*words, str(file), "--overwrite")
        others = directory / f"others{file.suffix}"
        for content in (b"", b"a,b\n1,2\n", b"PAR1", b"\x89HDF\r\n\x1a\n", b"<html></html>"):
            others.write_bytes(content)
            assert "suffice did not write" in suffice.text(*words, str(others), "--overwrite", status=2)
            assert others.read_bytes() == content
    assert [path.name for path in directory.iterdir() if path.name.startswith(".")] == []


def test_sources_and_stores_are_never_written(released: Workspace, suffice: Runner) -> None:
    source = next(iter(sorted(released.data.glob("*.parquet"))))
    before = source.read_bytes()
    for words in (TABLE, POSTERIOR):
        for overwrite in ((), ("--overwrite",)):
            suffice.text(*words, "--out", str(source), *overwrite, status=2)
    assert source.read_bytes() == before
    assert pq.read_metadata(source).num_rows > 0
    link = released.directory / "link.parquet"
    link.symlink_to(source)
    suffice.text(*TABLE, "--out", str(link), "--overwrite", status=2)
    inside = Path(suffice.json("show", "flights")["uri"])
    for place in (inside / "new.csv", Path(released.store) / "new.parquet", inside / "stops.parquet"):
        said = suffice.text(*TABLE, "--out", str(place), "--overwrite", status=2)
        assert "inside a store" in said
    assert suffice.json("verify", "flights")["ok"]


@pytest.mark.parametrize("address", ["s3://bucket/x.csv", "gs://b/x.csv", "file:///tmp/x.csv"])
def test_an_address_is_no_file(released: Workspace, suffice: Runner, address: str) -> None:
    del released
    for words in ((*TABLE, "--out"), (*POSTERIOR, "--draws-out"), ("ledger", "export", "--out")):
        error = suffice.json(*words, address, status=2)["error"]
        assert error["type"] == "UsageError"
        assert error["message"].startswith(f"{words[-1]} ")


def test_a_file_that_came_meanwhile_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"

    def race() -> None:
        with new_file("--out", path, overwrite=False) as hidden:
            hidden.write_text("ours")
            path.write_text("theirs")

    with pytest.raises(UsageError, match="exists"):
        race()
    assert path.read_text() == "theirs"
    assert [file.name for file in tmp_path.iterdir()] == ["x.csv"]


def test_nothing_half_written_is_left(tmp_path: Path) -> None:
    def fail() -> None:
        with new_file("--out", tmp_path / "x.csv", overwrite=False) as hidden:
            hidden.write_text("half")
            message = "interrupted"
            raise KeyboardInterrupt(message)

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UsageError, match="cannot be written"):
        check_file("--out", Path("a" * 300 + "/x.csv"), overwrite=False)


def test_an_id_is_not_proposed_as_a_mean(tmp_path: Path, suffice: Runner) -> None:
    import pyarrow as pa

    names = ("customer_id", "id", "orderId", "uuid", "paid", "valid", "grid", "width")
    pq.write_table(pa.table({name: [1, 2] for name in names}), tmp_path / "a.parquet")
    text = suffice.json("init", str(tmp_path / "a.parquet"))["spec"]
    ids = [line.split(":")[0].strip(" #") for line in text.splitlines() if "named like an id" in line]
    assert ids == ["customer_id", "id", "orderId", "uuid"]
    assert json.dumps(text).count("family: normal") == 4


def test_a_release_that_was_handed_over_is_never_written_into(
    released: Workspace, suffice: Runner, tmp_path: Path
) -> None:
    manifest = next(Path(released.store).rglob("manifest.json"))
    handed = tmp_path / "handed"
    shutil.copytree(manifest.parent, handed)
    statistic = suffice.json("show", str(handed))["files"][0]["statistic"]
    said = suffice.text("table", str(handed), statistic, "--out", str(handed / "new.csv"), status=2)
    assert "or a release" in said
    assert suffice.json("verify", str(handed))["ok"]
