"""Releases of very many cells: read by slices, with every check that reading them whole makes."""

from __future__ import annotations

import gc
import hashlib
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import ReleaseCorruptError, StoreError, UsageError
from suffice.pipeline.terms.released.noisy_statistic import HeldCells
from suffice.storage.releases import location, parquet_layout, release_parquet
from suffice.storage.releases.location import StatisticFiles
from suffice.storage.releases.release_store import open_release
from support.releases import make_plan, public_n_plan, publish, some_values

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.spec.plan import Plan

GROUPS = {"origin": ["EWR", "Zürich", ""], "hour": {"range": ["-2", "3"]}, "flag": ["no", "yes"]}


@pytest.fixture(autouse=True)
def in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep every release in files, and write row groups that cells straddle."""
    monkeypatch.setattr(location, "MOST_HELD", 0)
    for module in (parquet_layout, release_parquet):
        monkeypatch.setattr(module, "ROW_GROUP", 7)


def both(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Release, Release]:
    """A release in files, and the same in memory."""
    in_files = open_release(path)
    with monkeypatch.context() as patch:
        patch.setattr(location, "MOST_HELD", 10**9)
        in_memory = open_release(path)
    assert isinstance(in_files.noisy, StatisticFiles)
    assert isinstance(in_memory.noisy, dict)
    return in_files, in_memory


def same(ours: Any, theirs: Any) -> None:
    assert ours.values.tolist() == theirs.values.tolist()
    assert all(type(value) is int for value in ours.values.ravel())
    assert {name: list(keys) for name, keys in ours.groups.items()} == dict(theirs.groups)
    assert (ours.plan, ours.public_n, ours.max_total_rows) == (
        theirs.plan,
        theirs.public_n,
        theirs.max_total_rows,
    )


WHERE: list[dict[str, object]] = [{}, {"hour": 0}, {"origin": "Zürich"}, {"flag": "yes", "origin": ""}]


@pytest.mark.slow
@pytest.mark.parametrize("plan", [make_plan(groups=GROUPS), make_plan(groups=None), public_n_plan()])
def test_slices_are_what_the_whole_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: Plan) -> None:
    in_files, in_memory = both(publish(tmp_path, plan), monkeypatch)
    assert list(in_files.statistics) == list(in_memory.statistics)
    for name in in_memory.statistics:
        for where in WHERE if plan.groups else [{}]:
            ours, theirs = in_files.cells(name, where), in_memory.cells(name, where)
            assert isinstance(theirs, HeldCells)
            assert (len(ours), ours.n_first_keys) == (len(theirs), theirs.n_first_keys)
            for start in range(len(ours)):
                for stop in {start + 1, min(start + 5, len(ours)), len(ours)}:
                    same(ours.slice(start, stop), theirs.slice(start, stop))
        same(in_files.statistic(name), in_memory.statistic(name))
        assert in_files.table(name) == in_memory.table(name)
        assert in_files.statistic(name) is in_files.statistic(name), "read once"


@pytest.mark.slow
def test_what_is_refused_is_refused_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = both(publish(tmp_path, make_plan(groups=GROUPS)), monkeypatch)

    def outcome(release: Release, where: dict[str, object]) -> str:
        try:
            return str(len(release.cells("stops", where)))
        except UsageError as error:
            return str(error)

    columns = st.sampled_from(["origin", "hour", "nowhere"])

    @given(where=st.dictionaries(columns, st.integers(-3, 4), max_size=2))
    def alike(where: dict[str, object]) -> None:
        in_files, in_memory = (outcome(release, where) for release in opened)
        assert in_files == in_memory

    alike()


@pytest.mark.parametrize("where", [{"origin": ["EWR"]}, {"origin": "JFK"}, {"hour": 99}, 5, {"x": 1}])
def test_wrong_keys_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: Any) -> None:
    in_files, in_memory = both(publish(tmp_path, make_plan(groups=GROUPS)), monkeypatch)
    with pytest.raises(UsageError) as ours:
        in_files.cells("stops", where)
    with pytest.raises(UsageError) as theirs:
        in_memory.cells("stops", where)
    assert str(ours.value) == str(theirs.value)
    with pytest.raises(UsageError, match="has no statistic 'nothing'"):
        in_files.cells("nothing")


def test_a_changed_byte_is_refused_when_the_release_is_opened(tmp_path: Path) -> None:
    path = publish(tmp_path, make_plan(groups=GROUPS)) / "stops.parquet"
    data = path.read_bytes()
    path.chmod(0o600)
    for changed, rule in (
        (data[:-1], "bytes that the manifest states"),
        (data + b"x", "bytes that the manifest states"),
        (data[:99] + bytes([data[99] ^ 1]) + data[100:], "SHA-256 that the manifest states"),
    ):
        path.write_bytes(changed)
        with pytest.raises(ReleaseCorruptError, match=rule):
            open_release(path.parent)
    path.unlink()
    with pytest.raises(ReleaseCorruptError, match="is missing"):
        open_release(path.parent)


def test_a_file_whose_hash_is_stated_but_not_what_it_holds(tmp_path: Path) -> None:
    """Every value of every row group is checked at once, as when a release is read whole."""
    plan = make_plan(groups=GROUPS)
    values = some_values(plan)
    good = release_parquet.encode_statistic(plan.statistics[0], values[plan.statistics[0].name])
    last = int(values[plan.statistics[0].name].ravel()[-1])
    position = good.rindex(last.to_bytes(8, "little", signed=True))
    bad = good[:position] + (last + 1).to_bytes(8, "little", signed=True) + good[position + 8 :]
    path = publish(tmp_path, plan, values)
    name = plan.statistics[0].name
    file = path / f"{name}.parquet"
    assert file.read_bytes() == good
    manifest = path / "manifest.json"
    content = manifest.read_bytes()
    changed = content.replace(
        hashlib.sha256(good).hexdigest().encode(), hashlib.sha256(bad).hexdigest().encode()
    )
    assert changed != content
    from suffice.pipeline.terms.declaration import canonical_json
    from suffice.storage.releases.manifest import checksum

    document: Any = canonical_json.decode(changed)
    document["checksum"] = checksum(document)
    for target, data in ((file, bad), (manifest, canonical_json.encode(document))):
        target.chmod(0o600)
        target.write_bytes(data)
    with pytest.raises(ReleaseCorruptError, match="its estimates do not follow from its values"):
        open_release(path)


def test_what_was_checked_is_what_is_read(tmp_path: Path) -> None:
    path = publish(tmp_path, make_plan(groups=GROUPS))
    release = open_release(path)
    expected = release.cells("stops").slice(0, 5).values.tolist()
    file = path / "stops.parquet"
    file.chmod(0o600)
    file.write_bytes(b"x" * file.stat().st_size)
    assert release.cells("stops").slice(0, 5).values.tolist() == expected


def open_files() -> int:
    return psutil.Process().num_fds()


@pytest.mark.slow
def test_copies_have_no_name_and_go_with_the_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = publish(tmp_path / "store", make_plan(groups=GROUPS))
    copies = tmp_path / "temporary"
    copies.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(copies))
    gc.collect()
    before = open_files()
    release = open_release(path)
    assert not any(copies.iterdir())
    assert open_files() > before
    del release
    gc.collect()
    assert open_files() == before


def test_a_temporary_directory_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = publish(tmp_path / "store", make_plan(groups=GROUPS))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(StoreError, match="set TMPDIR"):
        open_release(path)
