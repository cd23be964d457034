"""Release stores in buckets: the same behaviour as in a directory, and one whole release into S3."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import suffice
from suffice.cli import app
from suffice.errors import (
    ObjectExistsError,
    ReleaseCorruptError,
    ReleaseMissingError,
    StageFailedError,
    StoreError,
    WrongStoreError,
)
from suffice.releasing.release import carry_out
from suffice.storage.ledger.opening import open_ledger
from suffice.storage.operations.verify_release import verify_release
from suffice.storage.releases.descriptions import DESCRIPTIONS
from suffice.storage.releases.release_store import open_release, open_store
from support.bucket_server import BucketServer, bucket_server
from support.buckets import SECRET, s3_server, variables
from support.making import make_workspace, mapping
from support.releases import (
    LEDGER_ID,
    RELEASE_ID,
    compose,
    data_files,
    flip_bit,
    make_plan,
    some_values,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from suffice.pipeline.spec.plan import Plan
    from suffice.storage.releases.release_store import ReleaseStore

STORES = {
    "s3://bucket/pre": "/bucket/pre",
    "s3://bucket": "/bucket",
    "gs://bucket/pre": "/bucket/pre",
    "az://container/pre": "/account/container/pre",
}


@pytest.fixture(scope="module")
def fake() -> Iterator[BucketServer]:
    with bucket_server() as server:
        yield server


@pytest.fixture
def server(fake: BucketServer, monkeypatch: pytest.MonkeyPatch) -> BucketServer:
    """Return the server, empty, with the environment leading to it."""
    fake.objects.clear()
    fake.conditions.clear()
    fake.faults.clear()
    fake.honest = fake.readable = True
    for name, value in variables(fake.url).items():
        monkeypatch.setenv(name, value)
    return fake


@pytest.fixture
def moto(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with s3_server() as (url, _):
        for name, value in variables(url).items():
            monkeypatch.setenv(name, value)
        yield "s3://bucket/releases"


def monthly_plan() -> Plan:
    return make_plan(window={"column": "day", "every": "month"})


def publish(store: ReleaseStore, plan: Plan, window: str = "all") -> str:
    files = data_files(plan, some_values(plan), store, window)
    store.put_manifest(plan.name, window, RELEASE_ID, compose(plan, files, window=window))
    return store.release_uri(plan.name, window, RELEASE_ID)


@pytest.mark.parametrize("uri", STORES)
class TestStores:
    """Whatever keeps the bytes, a store behaves alike."""

    def test_a_store_is_made_once_and_belongs_to_its_ledger(self, uri: str, server: BucketServer) -> None:
        with pytest.raises(StoreError, match="no release store"):
            open_store(uri)
        with pytest.raises(StoreError, match="no release store"):
            open_store(uri, ledger_id=LEDGER_ID)
        assert server.conditions == []
        store = open_store(uri, ledger_id=LEDGER_ID, create=True)
        assert store.uri == uri
        assert list(server.objects) == [f"{STORES[uri]}/suffice.json"]
        for again in (open_store(uri), open_store(f"{uri}/", ledger_id=LEDGER_ID, create=True)):
            assert (again.store_id, again.ledger_id) == (store.store_id, LEDGER_ID)
        server.conditions.clear()
        with pytest.raises(WrongStoreError, match=f"{LEDGER_ID}.*{'ef' * 16}"):
            open_store(uri, ledger_id="ef" * 16, create=True)
        assert server.conditions == []

    def test_a_server_that_replaces_objects_gets_no_store(self, uri: str, server: BucketServer) -> None:
        server.honest = False
        with pytest.raises(StoreError, match="replaces objects"):
            open_store(uri, ledger_id=LEDGER_ID, create=True)
        assert server.objects == {}
        server.honest = True
        open_store(uri, ledger_id=LEDGER_ID, create=True)
        server.honest = False
        with pytest.raises(StoreError, match="replaces objects"):
            open_store(uri, ledger_id=LEDGER_ID)
        assert list(server.objects) == [f"{STORES[uri]}/suffice.json"]
        open_store(uri)

    def test_of_ledgers_that_make_one_store_at_once_one_gets_it(self, uri: str, server: BucketServer) -> None:
        def attempt(number: int) -> str | None:
            try:
                return open_store(uri, ledger_id=f"{number:032x}", create=True).ledger_id
            except WrongStoreError:
                return None

        with ThreadPoolExecutor(6) as threads:
            owners = [owner for owner in threads.map(attempt, range(6)) if owner]
        assert owners == [open_store(uri).ledger_id]
        assert list(server.objects) == [f"{STORES[uri]}/suffice.json"]

    def test_releases_are_found_by_uri_manifest_name_and_window(
        self, uri: str, server: BucketServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = open_store(uri, ledger_id=LEDGER_ID, create=True)
        plan = monthly_plan()
        january, february = (publish(store, plan, window) for window in ("2013-01", "2013-02"))
        server.conditions.clear()
        for reference in (january, f"{january}/", f"{january}/manifest.json", "flights@2013-01"):
            release = open_release(reference, store=uri)
            assert (release.uri, release.window) == (january, "2013-01")
        assert open_release("flights", store=uri).uri == february
        monkeypatch.setenv("SUFFICE_STORE", uri)
        assert open_release("flights").statistic("stops").values.shape == (3, 2)
        assert store.windows("flights") == ("2013-01", "2013-02")
        assert verify_release("flights").ok
        with pytest.raises(ReleaseMissingError, match=r"spelt alike: 2013-0[12], 2013-0[12]$"):
            open_release("flights@2014-01")
        with pytest.raises(ReleaseMissingError, match=r"no release named fligths; spelt alike: flights$"):
            open_release("fligths")
        with pytest.raises(ReleaseMissingError, match="no release at"):
            open_release(f"{uri}/flights")
        assert server.conditions == []  # who reads writes nothing

    def test_a_release_in_the_place_of_another_is_refused(self, uri: str, server: BucketServer) -> None:
        january = publish(open_store(uri, ledger_id=LEDGER_ID, create=True), monthly_plan(), "2013-01")
        for path, data in list(server.objects.items()):
            server.objects[path.replace("2013-01", "2013-02")] = data
        assert open_release("flights@2013-01", store=uri).uri == january
        with pytest.raises(ReleaseCorruptError, match="another release"):
            open_release("flights", store=uri)

    def test_a_tombstone_is_no_release_and_lets_its_files_be_removed(
        self, uri: str, server: BucketServer
    ) -> None:
        store = open_store(uri, ledger_id=LEDGER_ID, create=True)
        plan = monthly_plan()
        manifest = compose(plan, data_files(plan, some_values(plan), store, "2013-02"), window="2013-02")
        key = ("flights", "2013-02", RELEASE_ID)
        with pytest.raises(StoreError, match="files are kept"):
            store.remove_data(*key)
        store.put_tombstone(*key)
        with pytest.raises(ObjectExistsError):
            store.put_manifest(*key, manifest)
        assert store.releases() == ()
        with pytest.raises(ReleaseMissingError, match="abandoned"):
            open_release(store.release_uri(*key))
        prefix = "/".join(key)
        assert store.remove_data(*key) == tuple(
            f"{prefix}/{name}.parquet" for name in ("arr_delay", "cancelled", "carrier", "stops")
        )
        assert store.remove_data(*key) == ()
        publish(store, plan, "2013-01")
        assert open_release("flights", store=uri).window == "2013-01"
        with pytest.raises(StoreError, match="files are kept"):
            store.remove_data("flights", "2013-01", RELEASE_ID)
        assert sorted(server.objects) == sorted(
            f"{STORES[uri]}/{key}"
            for key in (
                "suffice.json",
                f"{prefix}/manifest.json",
                *(
                    f"flights/2013-01/{RELEASE_ID}/{name}"
                    for name in (
                        "manifest.json",
                        "arr_delay.parquet",
                        "cancelled.parquet",
                        "carrier.parquet",
                        "stops.parquet",
                    )
                ),
            )
        )

    @pytest.mark.parametrize(
        ("damage", "rule"),
        [
            ("missing", "is missing"),
            ("empty", "bytes that the manifest states"),
            ("shorter", "bytes that the manifest states"),
            ("longer", "bytes that the manifest states"),
            ("flipped", "SHA-256 that the manifest states"),
        ],
    )
    def test_a_damaged_object_is_refused_by_name(
        self, uri: str, server: BucketServer, damage: str, rule: str
    ) -> None:
        release = publish(open_store(uri, ledger_id=LEDGER_ID, create=True), make_plan())
        path = f"{STORES[uri]}/flights/all/{RELEASE_ID}/stops.parquet"
        data = server.objects.pop(path)
        damaged = {
            "empty": b"",
            "shorter": data[:-1],
            "longer": data + bytes(10**6),
            "flipped": flip_bit(data, 999),
        }
        if damage != "missing":
            server.objects[path] = damaged[damage]
        with pytest.raises(ReleaseCorruptError, match=rf"stops\.parquet .*{rule}"):
            open_release(release)
        (problem,) = verify_release(release).problems
        assert rule in problem

    def test_a_store_that_does_not_say_whose_it_is_is_refused(self, uri: str, server: BucketServer) -> None:
        path = f"{STORES[uri]}/suffice.json"
        for content in (b"", b"{}", b"x" * 10_000):
            server.objects[path] = content
            with pytest.raises(StoreError, match="does not say which ledger"):
                open_store(uri, ledger_id=LEDGER_ID, create=True)
            assert server.objects == {path: content}


def test_a_listing_asks_for_no_more_manifests_than_it_needs(
    server: BucketServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store("s3://bucket/pre", ledger_id=LEDGER_ID, create=True)
    plan = monthly_plan()
    for month in range(1, 13):
        publish(store, plan, f"2013-{month:02}")
    store.put_tombstone("flights", "2014-01", RELEASE_ID)
    asked: list[str] = []
    get = type(store.objects).get

    def count(self: Any, key: str, *, at_most: int) -> bytes | None:
        asked.append(key)
        return get(self, key, at_most=at_most)

    monkeypatch.setattr(type(store.objects), "get", count)
    assert store.find("flights").window == "2013-12"
    assert len(asked) == 2
    assert len(server.objects) == 12 * 5 + 2
    asked.clear()
    server.listings.clear()
    for wanted, near in [
        (("flight", None), "no release named flight; spelt alike: flights$"),
        (("flights", "2013-13"), "in window 2013-13; spelt alike: (2013-1.|2013-.3)(, 20..-..){4}$"),
        (("trains", None), "no release named trains$"),
    ]:
        with pytest.raises(ReleaseMissingError, match=near):
            store.find(*wanted)
    assert asked == []
    assert len(server.listings) == 5


def run_command(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> Any:
    with pytest.raises(SystemExit) as caught:
        app.main([*words, "--json"])
    captured = capsys.readouterr()
    assert caught.value.code == status, captured
    assert SECRET not in captured.out + captured.err
    return json.loads(captured.out)


@pytest.mark.slow
def test_a_whole_release_into_s3(moto: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    workspace = make_workspace(tmp_path)
    spec = tmp_path / "release.json"
    spec.write_text(json.dumps(mapping(workspace.data)), encoding="utf-8")
    words = ("release", str(spec), "--store", moto, "--ledger", workspace.ledger)
    released = run_command(capsys, *words)
    assert released["status"] == "published"
    assert released["uri"] == f"{moto}/flights/all/{released['release_id']}"
    assert all(file["path"].startswith(f"{released['uri']}/") for file in released["files"])
    for path in workspace.data.iterdir():
        path.unlink()
    again = run_command(capsys, *words)
    assert (again["status"], again["remaining_epsilon"]) == ("already_published", "9")
    assert again["release_id"] == released["release_id"]
    for reference in ("flights", "flights@all", released["uri"], f"{released['uri']}/manifest.json"):
        assert run_command(capsys, "show", reference, "--store", moto)["uri"] == released["uri"]
        assert run_command(capsys, "verify", reference, "--store", moto, "--ledger", workspace.ledger)["ok"]
    assert len(run_command(capsys, "table", "flights", "stops", "--store", moto)["rows"]) == 6
    assert run_command(capsys, "posterior", released["uri"], "cancelled", "--draws", "10")["rows"]
    assert open_store(moto).objects.keys("") == sorted(
        [
            "suffice.json",
            "charges/000/000/000/003",
            *(f"flights/all/{released['release_id']}/{file}" for file in ("manifest.json", *DESCRIPTIONS)),
            *(f"flights/all/{released['release_id']}/{file}.parquet" for file in mapping("x")["statistics"]),
        ]
    )
    with open_ledger(workspace.ledger) as ledger:
        charge = ledger.find("passengers", "flights", "all")
        assert ledger.verify() == ()
    assert charge is not None
    assert (charge.state, charge.store_uri) == ("published", moto)


def test_a_server_that_replaces_objects_is_refused_before_the_charge(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    workspace = make_workspace(tmp_path)
    with s3_server() as (url, application):
        for name, value in variables(url).items():
            monkeypatch.setenv(name, value)
        application.honest = False
        with pytest.raises(StoreError, match="replaces objects"):
            suffice.release(workspace.spec(), store="s3://bucket/x", ledger=workspace.ledger)
    with open_ledger(workspace.ledger) as ledger:
        assert ledger.find("passengers", "flights", "all") is None


def test_a_manifest_of_unknown_fate_leaves_its_charge_staged(
    server: BucketServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to the manifest's put is lost, and so is every look at it; the next run finds it there."""
    workspace = make_workspace(tmp_path)
    uri = "s3://bucket/pre"
    put_manifest = suffice.storage.releases.release_store.ReleaseStore.put_manifest

    def cut_off(self: ReleaseStore, *arguments: Any) -> None:
        server.faults += ["lost answer"]
        server.readable = False
        put_manifest(self, *arguments)

    monkeypatch.setattr("suffice.storage.releases.release_store.ReleaseStore.put_manifest", cut_off)
    with pytest.raises(StageFailedError, match="staged, not published"):
        carry_out(workspace.spec(), store=uri, ledger=workspace.ledger, publish_timeout=0)
    monkeypatch.undo()
    for name, value in variables(server.url).items():
        monkeypatch.setenv(name, value)
    server.readable = True
    with open_ledger(workspace.ledger) as ledger:
        staged = ledger.find("passengers", "flights", "all")
    assert staged is not None
    assert staged.state == "staged"
    manifest = f"/bucket/pre/flights/all/{staged.release_id}/manifest.json"
    assert server.objects[manifest] == staged.manifest
    outcome = carry_out(workspace.spec(), store=uri, ledger=workspace.ledger)
    assert outcome.status == "published"
    assert server.objects[manifest] == staged.manifest


@pytest.mark.slow
def test_a_data_file_whose_answer_is_lost_costs_nothing(server: BucketServer, tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    uri = "gs://bucket/pre"
    open_store(uri, ledger_id=ledger_id(workspace.ledger), create=True)
    server.faults += ["lost answer", "lost answer", "lost answer", "error after", "lost request"]
    assert carry_out(workspace.spec(), store=uri, ledger=workspace.ledger).status == "published"
    assert server.faults == []
    assert verify_release("flights", store=uri).ok


def ledger_id(url: str) -> str:
    with open_ledger(url) as ledger:
        return ledger.ledger_id
