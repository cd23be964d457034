"""The release store: whose it is, what it lists, and that it hands out nothing but what was published."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from suffice.errors import (
    ObjectExistsError,
    ReleaseCorruptError,
    ReleaseMissingError,
    StoreError,
    UsageError,
    WrongStoreError,
)
from suffice.storage.releases.release_store import open_release, open_store
from suffice.storage.releases.statistic_reading import decode_statistic
from support.releases import (
    HASH,
    LEDGER_ID,
    RELEASE_ID,
    compose,
    data_files,
    flip_bit,
    make_plan,
    make_store,
    public_n_plan,
    publish,
    some_values,
)

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.spec.plan import Plan

OTHER_LEDGER = "ef" * 16


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "releases"


def monthly_plan() -> Plan:
    return make_plan(window={"column": "day", "every": "month"})


def test_a_store_is_made_once_and_belongs_to_its_ledger(root: Path) -> None:
    store = open_store(str(root), ledger_id=LEDGER_ID, create=True)
    assert store.uri == str(root.resolve())
    assert store.ledger_id == LEDGER_ID
    assert json.loads((root / "suffice.json").read_bytes()) == {
        "format_version": 1,
        "ledger_id": LEDGER_ID,
        "store_id": store.store_id,
    }
    for again in (
        open_store(root.as_uri()),
        open_store(str(root), ledger_id=LEDGER_ID),
        open_store(str(root), ledger_id=LEDGER_ID, create=True),
    ):
        assert again.store_id == store.store_id
    assert make_store(root.with_name("other")).store_id != store.store_id


def test_another_ledgers_store_is_refused_naming_both(root: Path) -> None:
    make_store(root)
    for create in (False, True):
        with pytest.raises(WrongStoreError, match=f"{LEDGER_ID}.*{OTHER_LEDGER}"):
            open_store(str(root), ledger_id=OTHER_LEDGER, create=create)


def test_a_store_is_made_only_when_asked(root: Path) -> None:
    for ledger_id in (None, LEDGER_ID):
        with pytest.raises(StoreError, match="no release store"):
            open_store(str(root), ledger_id=ledger_id)
    with pytest.raises(ValueError, match="ledger_id"):
        open_store(str(root), create=True)
    assert not root.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b'{"format_version":1,"ledger_id":"x","store_id":"y"}',
        b'{"format_version":2}',
        b'{"format_version":1,"ledger_id": "'
        + LEDGER_ID.encode()
        + b'","store_id":"'
        + LEDGER_ID.encode()
        + b'"}',
        b"x" * 10_000,
    ],
)
def test_a_store_that_does_not_say_whose_it_is_is_refused(root: Path, content: bytes) -> None:
    root.mkdir()
    (root / "suffice.json").write_bytes(content)
    with pytest.raises(StoreError, match=r"corrupt|upgrade"):
        open_store(str(root), ledger_id=LEDGER_ID, create=True)
    assert (root / "suffice.json").read_bytes() == content


@pytest.mark.parametrize("plan", [make_plan(), public_n_plan()])
def test_a_release_is_read_as_it_was_published(root: Path, plan: Plan) -> None:
    values = some_values(plan)
    directory = publish(root, plan, values)
    release = open_release(str(directory))
    assert (release.name, release.dataset, release.window) == ("flights", "passengers", "all")
    assert (release.release_id, release.uri) == (RELEASE_ID, str(directory))
    assert release.loss.epsilon == plan.loss.epsilon
    assert release.neighboring is plan.neighboring
    assert release.manifest == json.loads((directory / "manifest.json").read_bytes())
    assert release.public_n == (1000 if plan.n_is_public else None)
    assert list(release.statistics) == [statistic.name for statistic in plan.statistics]
    for statistic in plan.statistics:
        noisy = release.statistic(statistic.name)
        assert noisy.plan == statistic
        assert noisy.values.tolist() == values[statistic.name].tolist()
        assert noisy.groups == ({"origin": ["EWR", "JFK", "LGA"]} if plan.groups else {})
        assert noisy.public_n == release.public_n
        assert noisy.max_total_rows == plan.max_total_rows
    assert [(file["statistic"], file["path"]) for file in release.manifest["files"]] == [
        (statistic.name, f"{statistic.name}.parquet") for statistic in plan.statistics
    ]


def test_a_public_n_is_not_the_n_of_a_statistic_that_drops_nulls(root: Path) -> None:
    plan = make_plan(
        groups=None,
        privacy={"epsilon": "1", "neighboring": "replace_one"},
        statistics={
            "every_row": {"family": "bernoulli", "column": "c", "nulls": {"value": "0"}},
            "some_rows": {"family": "bernoulli", "column": "c"},
        },
    )
    release = open_release(str(publish(root, plan)))
    assert release.statistic("every_row").public_n == 1000
    assert release.statistic("some_rows").public_n is None


def test_releases_are_found_by_path_uri_manifest_and_name(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    directory = publish(root, monthly_plan(), window="2013-01")
    publish(root, monthly_plan(), window="2013-02")
    monkeypatch.chdir(tmp_path)
    for reference in (
        str(directory),
        f"{directory}/",
        directory.as_uri(),
        str(directory / "manifest.json"),
        f"./releases/flights/2013-01/{RELEASE_ID}",
        f"releases/flights/2013-01/{RELEASE_ID}/manifest.json",
        "flights@2013-01",
    ):
        release = open_release(reference)
        assert (release.uri, release.window) == (str(directory), "2013-01")
    assert open_release("flights").window == "2013-02"
    monkeypatch.chdir(directory)
    assert open_release(".").uri == open_release("manifest.json").uri == str(directory)
    with pytest.raises(StoreError, match="no release store"):
        open_release("flights")
    assert open_release("flights", store=str(root)).window == "2013-02"
    monkeypatch.setenv("SUFFICE_STORE", root.as_uri())
    assert open_release("flights@2013-01").window == "2013-01"


def test_a_copy_outside_a_store_is_a_release_too(root: Path, tmp_path: Path) -> None:
    directory = publish(root, make_plan())
    copy = tmp_path / "sent by mail"
    shutil.copytree(directory, copy)
    assert open_release(str(copy)).uri == str(copy)


def test_a_release_put_in_the_place_of_another_is_refused(root: Path) -> None:
    january = publish(root, monthly_plan(), window="2013-01")
    february = january.parents[1] / "2013-02" / RELEASE_ID
    shutil.copytree(january, february)
    assert open_release("flights@2013-01", store=str(root)).window == "2013-01"
    for reference in ("flights@2013-02", str(february)):
        with pytest.raises(ReleaseCorruptError, match="another release"):
            open_release(reference, store=str(root))


@pytest.mark.parametrize(
    "reference",
    ["", "Flights", "flights@", "flights@@x", "flights 1", "-x", "s3://key:secret@bucket/x", "a\0b/"],
)
def test_what_can_be_no_release_is_a_usage_error(root: Path, reference: str) -> None:
    publish(root, make_plan())
    with pytest.raises(UsageError):
        open_release(reference, store=str(root))


def test_missing_releases_are_named_with_what_there_is(root: Path) -> None:
    directory = publish(root, monthly_plan(), window="2013-01")
    for reference, text in [
        ("delays", "no release named delays$"),
        ("fligths", "no release named fligths; spelt alike: flights$"),
        ("flights@2013-02", "no release in window 2013-02; spelt alike: 2013-01$"),
        (str(root / "nowhere"), "no release at"),
        (str(root), "no release at"),
        (str(directory / "carrier.parquet"), "no release at"),
    ]:
        with pytest.raises(ReleaseMissingError, match=text):
            open_release(reference, store=str(root))


def test_a_release_without_a_manifest_is_none(root: Path) -> None:
    store = make_store(root)
    data_files(make_plan(), some_values(make_plan()), store)
    assert store.releases() == ()
    assert store.windows("flights") == ()
    assert store.read_manifest("flights", "all", RELEASE_ID) is None
    for reference in ("flights", store.release_uri("flights", "all", RELEASE_ID)):
        with pytest.raises(ReleaseMissingError):
            open_release(reference, store=str(root))


def test_a_tombstone_is_no_release_and_keeps_the_manifest_out(root: Path) -> None:
    plan = monthly_plan()
    store = make_store(root)
    manifest = compose(plan, data_files(plan, some_values(plan), store, "2013-02"), window="2013-02")
    store.put_tombstone("flights", "2013-02", RELEASE_ID)
    with pytest.raises(ObjectExistsError):
        store.put_manifest("flights", "2013-02", RELEASE_ID, manifest)
    with pytest.raises(ObjectExistsError):
        store.put_tombstone("flights", "2013-02", RELEASE_ID)
    assert store.read_manifest("flights", "2013-02", RELEASE_ID) != manifest
    with pytest.raises(ReleaseMissingError, match="abandoned"):
        open_release(store.release_uri("flights", "2013-02", RELEASE_ID))
    assert store.releases() == ()
    publish(root, plan, window="2013-01")
    assert store.windows("flights") == ("2013-01",)
    assert open_release("flights", store=str(root)).window == "2013-01"


def test_a_published_manifest_keeps_the_tombstone_out(root: Path) -> None:
    directory = publish(root, make_plan())
    before = (directory / "manifest.json").read_bytes()
    store = open_store(str(root))
    with pytest.raises(ObjectExistsError):
        store.put_tombstone("flights", "all", RELEASE_ID)
    assert store.read_manifest("flights", "all", RELEASE_ID) == before


def test_the_listing_knows_names_and_windows(root: Path) -> None:
    for window in ("2013-10", "2013-02", "2012-12"):
        publish(root, monthly_plan(), window=window)
    publish(root, make_plan(name="flights-2"))
    (root / "notes.txt").write_text("x")
    (root / "flights" / "manifest.json").write_text("x")
    store = open_store(str(root))
    assert store.windows("flights") == ("2012-12", "2013-02", "2013-10")
    assert [(release.name, release.window) for release in store.releases()] == [
        ("flights", "2012-12"),
        ("flights", "2013-02"),
        ("flights", "2013-10"),
        ("flights-2", "all"),
    ]
    assert all(open_release(release.uri).window == release.window for release in store.releases())


def test_two_releases_of_one_window_are_not_chosen_between(root: Path) -> None:
    directory = publish(root, make_plan())
    other = directory.with_name("f" * 16)
    shutil.copytree(directory, other)
    with pytest.raises(StoreError, match="name one by its path"):
        open_release("flights", store=str(root))


def test_data_files_are_create_only(root: Path) -> None:
    store = make_store(root)
    plan = make_plan()
    data_files(plan, some_values(plan), store)
    with pytest.raises(ObjectExistsError):
        data_files(plan, some_values(plan, 2), store)


@pytest.mark.slow
def test_every_flipped_bit_of_every_file_is_refused(root: Path) -> None:
    plan = make_plan()
    directory = publish(root, plan)
    accepted_unhashed = 0
    for path in sorted(directory.iterdir()):
        data = path.read_bytes()
        statistic = next((entry for entry in plan.statistics if path.stem == entry.name), None)
        for position in np.linspace(0, 8 * len(data) - 1, 80, dtype=int):
            flipped = flip_bit(data, int(position))
            path.write_bytes(flipped)
            with pytest.raises(StoreError):
                open_release(str(directory))
            if statistic is not None:
                try:
                    decode_statistic(flipped, statistic)
                except ReleaseCorruptError:
                    continue
                accepted_unhashed += 1
        path.write_bytes(data)
    assert accepted_unhashed > 10
    open_release(str(directory))


@pytest.mark.parametrize(
    ("damage", "rule"),
    [
        ("missing", "is missing"),
        ("directory", "is missing"),
        ("empty", "bytes that the manifest states"),
        ("shorter", "bytes that the manifest states"),
        ("longer", "bytes that the manifest states"),
        ("exchanged", "SHA-256 that the manifest states"),
    ],
)
def test_a_damaged_data_file_is_refused_by_name(root: Path, damage: str, rule: str) -> None:
    directory = publish(root, make_plan())
    path = directory / "stops.parquet"
    data = path.read_bytes()
    damaged = {"empty": b"", "shorter": data[:-1], "longer": data + b"\0", "exchanged": data[::-1]}
    path.unlink()
    if damage == "directory":
        path.mkdir()
    elif damage != "missing":
        path.write_bytes(damaged[damage])
    with pytest.raises(ReleaseCorruptError, match=rf"stops\.parquet .*{rule}"):
        open_release(str(directory))


def test_a_parquet_file_is_parsed_only_after_its_hash(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = publish(root, make_plan())
    path = directory / "carrier.parquet"
    path.write_bytes(flip_bit(path.read_bytes(), 999))

    def refuse(*_: object) -> None:
        pytest.fail("parsed")

    monkeypatch.setattr("suffice.storage.releases.location.decode_statistic", refuse)
    with pytest.raises(ReleaseCorruptError, match="SHA-256"):
        open_release(str(directory))


@pytest.mark.slow
def test_consumers_load_no_engine_no_ledger_and_no_flows(root: Path) -> None:
    directory = publish(root, make_plan())
    script = (
        "import sys\n"
        "from suffice.storage.releases.release_store import open_release\n"
        f"open_release({str(directory)!r}).table('carrier')\n"
        "heavy = 'sqlalchemy alembic dask distributed numba opendp prefect scipy.stats'.split()\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, env={**os.environ}
    )
    assert done.stdout == "[]\n"


def test_the_drawing_entry_is_what_the_manifest_names(root: Path) -> None:
    release = open_release(str(publish(root, make_plan())))
    assert (release.manifest["drawing_sequence"], release.manifest["drawing_hash"]) == (4, HASH)
