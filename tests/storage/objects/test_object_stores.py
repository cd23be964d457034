"""What every implementation of an object store must do, and what a put does when its answer is lost."""

from __future__ import annotations

import io
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from obstore.store import MemoryStore

from suffice.errors import ObjectExistsError, StoreError
from suffice.storage.objects.address import read_address
from suffice.storage.objects.bucket import Bucket
from suffice.storage.objects.local_files import LocalFiles
from suffice.storage.objects.object_store import check_create_only
from support.bucket_server import BucketServer, bucket_server
from support.buckets import SECRET, s3_server, variables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.storage.objects.object_store import ObjectStore

KINDS = ("local", "memory", "moto", "s3", "gs", "az")


@pytest.fixture(scope="module")
def moto_url() -> Iterator[str]:
    with s3_server() as (url, _):
        yield url


@pytest.fixture(scope="module")
def fake() -> Iterator[BucketServer]:
    with bucket_server() as server:
        yield server


@pytest.fixture
def server(fake: BucketServer, monkeypatch: pytest.MonkeyPatch) -> BucketServer:
    """Return the server that can fail, empty, with the environment leading to it."""
    fake.objects.clear()
    fake.conditions.clear()
    fake.faults.clear()
    fake.honest = fake.readable = True
    for name, value in variables(fake.url).items():
        monkeypatch.setenv(name, value)
    return fake


@pytest.fixture(params=KINDS)
def objects(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    kind = request.param
    if kind == "memory":
        memory = MemoryStore()
        return Bucket(memory, memory, uri="memory://store")
    if kind == "local":
        return read_address(str(tmp_path / "store")).objects()
    if kind == "moto":
        for name, value in variables(request.getfixturevalue("moto_url")).items():
            monkeypatch.setenv(name, value)
        return read_address(f"s3://bucket/{tmp_path.name}").objects()
    request.getfixturevalue("server")
    return read_address(f"{kind}://bucket/{tmp_path.name}/deeper").objects()


def test_what_is_put_is_got_and_listed(objects: ObjectStore) -> None:
    assert objects.keys("") == objects.keys("name/") == []
    assert objects.get("name/one", at_most=10) is None
    objects.put_new("name/one", b"first")
    objects.put_new("name/sub/two", bytes(range(256)) * 5000)
    objects.put_new("name-2/three", b"")
    assert objects.get("name/one", at_most=10) == objects.get("name/one", at_most=5) == b"first"
    assert objects.get("name/one", at_most=3) == b"fir"
    assert objects.get("name/sub/two", at_most=2**30) == bytes(range(256)) * 5000
    assert objects.get("name/sub/two", at_most=300) == bytes(range(256)) + bytes(range(44))
    assert objects.get("name-2/three", at_most=10) == b""
    assert objects.get("name/sub", at_most=10) is None
    assert objects.get("name", at_most=10) is None
    assert objects.keys("") == ["name-2/three", "name/one", "name/sub/two"]
    assert objects.keys("name/") == ["name/one", "name/sub/two"]
    assert objects.keys("other/") == []


def test_names_are_those_of_one_level(objects: ObjectStore) -> None:
    assert objects.names("") == objects.names("name/") == []
    for key in ("name/one", "name/sub/two", "name/sub/deeper/three", "name-2/four", "top"):
        objects.put_new(key, b"x")
    assert objects.names("") == ["name", "name-2", "top"]
    assert objects.names("name/") == ["one", "sub"]
    assert objects.names("name/sub/") == ["deeper", "two"]
    assert objects.names("name/one/") == objects.names("other/") == objects.names("nam/") == []


def test_what_is_put_is_copied_a_piece_at_a_time(objects: ObjectStore) -> None:
    data = bytes(range(256)) * 12_000
    objects.put_new("name/large", data)
    objects.put_new("name/empty", b"")
    for at_most in (0, 1, 2**20, len(data), len(data) + 1):
        sink = io.BytesIO()
        assert objects.copy("name/large", sink, at_most=at_most)
        assert sink.getvalue() == data[:at_most]
    sink = io.BytesIO()
    assert objects.copy("name/empty", sink, at_most=10)
    assert not objects.copy("name/nothing", sink, at_most=10)
    assert not objects.copy("name", sink, at_most=10)
    assert sink.getvalue() == b""
    with pytest.raises(StoreError, match="no key of a store"):
        objects.copy("../up", sink, at_most=1)


def test_an_object_is_never_replaced_nor_put_twice(objects: ObjectStore) -> None:
    objects.put_new("key", b"first")
    for data in (b"second", b"first", b""):
        with pytest.raises(ObjectExistsError, match="key exists, and is never overwritten"):
            objects.put_new("key", data)
    assert objects.get("key", at_most=10) == b"first"
    assert objects.keys("") == ["key"]


def test_a_listing_begins_after_a_key_and_is_in_order(objects: ObjectStore) -> None:
    keys = [
        "a",
        "b-c/1",
        "b/1",
        "b/10",
        "b/2/x",
        "b/2/y",
        "b/2-/z",
        "b0/1",
        "c/000/001",
        "c/000/002",
        "c/001/000",
    ]
    for key in keys:
        objects.put_new(key, b"x")
    for prefix in ("", "b/", "c/", "none/"):
        below = sorted(key for key in keys if key.startswith(prefix))
        assert objects.keys(prefix) == below
        for after in ("", *keys, "b/2", "b/2/", "c/000/999", "~"):
            expected = [key for key in below if key > after]
            assert list(objects.keys_after(prefix, after)) == expected, (prefix, after)


def test_an_object_is_replaced_only_where_it_is_what_was_expected(objects: ObjectStore) -> None:
    with pytest.raises(ObjectExistsError):
        objects.replace("head", b"second", expected=b"first")
    objects.put_new("head", b"first")
    objects.replace("head", b"second", expected=b"first")
    assert objects.get("head", at_most=10) == b"second"
    for expected in (b"first", b"second and more", b"sec", b""):
        with pytest.raises(ObjectExistsError, match="no longer what it was"):
            objects.replace("head", b"third", expected=expected)
    assert objects.get("head", at_most=10) == b"second"
    assert objects.keys("") == ["head"]


def test_of_six_threads_that_replace_one_wins(objects: ObjectStore) -> None:
    objects.put_new("head", b"first")

    def replace(number: int) -> bool:
        try:
            objects.replace("head", f"from {number}".encode(), expected=b"first")
        except ObjectExistsError:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        won = list(pool.map(replace, range(6)))
    assert won.count(True) == 1
    assert objects.get("head", at_most=10) == f"from {won.index(True)}".encode()


def test_objects_are_removed_one_by_one_and_all_but_one(objects: ObjectStore) -> None:
    for key in ("a/x/one", "a/x/two", "a/x/kept", "a/x/deep/three", "a/x-2/four"):
        objects.put_new(key, b"data")
    objects.delete("a/x/one")
    objects.delete("a/x/one")
    objects.delete("never")
    assert objects.sweep("a/x/", keep="a/x/kept") == ["a/x/deep/three", "a/x/two"]
    assert objects.sweep("a/x/", keep="a/x/kept") == []
    assert objects.keys("") == ["a/x-2/four", "a/x/kept"]
    assert objects.sweep("nothing/", keep="nothing/kept") == []


@pytest.mark.parametrize("key", ["", "/etc", "a//b", "../up", "a/../../b", "a/.hidden", "a/b\0", "a\\b", "ä"])
def test_keys_stay_below_the_root(objects: ObjectStore, key: str) -> None:
    with pytest.raises(StoreError, match="no key of a store"):
        objects.put_new(key, b"x")
    with pytest.raises(StoreError, match="no key of a store"):
        objects.get(key, at_most=1)
    with pytest.raises(StoreError, match="no key of a store"):
        objects.delete(key)
    assert objects.keys("") == []


def test_of_six_threads_one_wins(objects: ObjectStore) -> None:
    def put(writer: int) -> bool:
        try:
            objects.put_new("key", f"{writer}".encode() * 1000)
        except ObjectExistsError:
            return False
        return True

    with ThreadPoolExecutor(6) as threads:
        won = list(threads.map(put, range(6)))
    assert sum(won) == 1
    assert objects.get("key", at_most=10_000) == f"{won.index(True)}".encode() * 1000


def test_the_probe_passes_and_leaves_nothing(objects: ObjectStore) -> None:
    objects.put_new("key", b"x")
    check_create_only(objects, "the store")
    assert objects.keys("") == ["key"]


REMOTE = {"s3": "/bucket/pre", "gs": "/bucket/pre", "az": "/account/bucket/pre"}
CONDITION = {"s3": "If-None-Match: *", "gs": "x-goog-if-generation-match: 0", "az": "If-None-Match: *"}


@pytest.mark.parametrize("kind", REMOTE)
class TestFaults:
    """Each kind of bucket, behind a server that fails as it is told to."""

    def test_every_put_is_conditional(self, kind: str, server: BucketServer) -> None:
        objects = read_address(f"{kind}://bucket/pre").objects()
        objects.put_new("a/b", b"data")
        objects.put_new("large", bytes(2**24))
        assert server.conditions == [CONDITION[kind]] * 2
        assert sorted(server.objects) == [f"{REMOTE[kind]}/a/b", f"{REMOTE[kind]}/large"]

    def test_the_probe_refuses_a_server_that_ignores_conditions(
        self, kind: str, server: BucketServer
    ) -> None:
        objects = read_address(f"{kind}://bucket/pre").objects()
        server.honest = False
        with pytest.raises(StoreError, match="replaces objects"):
            check_create_only(objects, "the store")
        assert server.objects == {}

    @pytest.mark.parametrize("fault", ["lost answer", "error after"])
    def test_a_put_whose_answer_was_lost_is_found_done(
        self, kind: str, fault: str, server: BucketServer
    ) -> None:
        objects = read_address(f"{kind}://bucket/pre").objects()
        server.faults += [fault]  # type: ignore[list-item]
        objects.put_new("key", b"data")
        assert server.objects == {f"{REMOTE[kind]}/key": b"data"}
        assert len(server.conditions) == 1

    @pytest.mark.parametrize("fault", ["lost request", "error before", "late", "conflict"])
    def test_a_put_that_did_not_arrive_is_put_again(
        self, kind: str, fault: str, server: BucketServer
    ) -> None:
        objects = read_address(f"{kind}://bucket/pre").objects()
        server.faults += [fault]  # type: ignore[list-item]
        objects.put_new("key", b"data")
        assert server.objects == {f"{REMOTE[kind]}/key": b"data"}
        assert len(server.conditions) == 2

    @pytest.mark.parametrize("fault", ["lost answer", "lost request", "error after", "error before"])
    def test_another_writers_object_is_never_taken_for_ones_own(
        self, kind: str, fault: str, server: BucketServer
    ) -> None:
        objects = read_address(f"{kind}://bucket/pre").objects()
        objects.put_new("key", b"another's")
        server.faults += [fault]  # type: ignore[list-item]
        with pytest.raises(ObjectExistsError):
            objects.put_new("key", b"data")
        assert server.objects == {f"{REMOTE[kind]}/key": b"another's"}

    def test_what_cannot_be_known_is_said_to_be_unknown(self, kind: str, server: BucketServer) -> None:
        """A store that answers no more may have the object: that is neither a success nor a refusal."""
        objects = read_address(f"{kind}://bucket/pre").objects()
        server.faults += ["lost answer"]
        server.readable = False
        with pytest.raises(StoreError, match="may or may not have been written") as caught:
            objects.put_new("key", b"data")
        assert not isinstance(caught.value, ObjectExistsError)
        assert server.objects == {f"{REMOTE[kind]}/key": b"data"}

    def test_a_refusal_is_an_error_without_the_servers_words(self, kind: str, server: BucketServer) -> None:
        objects = read_address(f"{kind}://bucket/pre").objects()
        server.faults += ["denied"]
        with pytest.raises(
            StoreError, match=r"cannot be written: access denied \(status 403, AccessDenied\)$"
        ) as caught:
            objects.put_new("key", b"data")
        assert caught.value.__suppress_context__
        server.readable = False
        texts = [str(caught.value)]
        with pytest.raises(StoreError, match="403") as caught:
            objects.get("key", at_most=1)
        texts.append(str(caught.value))
        with pytest.raises(StoreError, match="403") as caught:
            objects.keys("")
        texts.append(str(caught.value))
        for text in texts:
            assert not re.search(f"secret|127.0.0.1|{SECRET}", text)
            assert f"{kind}://bucket/pre" in text


def test_a_put_that_never_arrives_ends_as_unknown(server: BucketServer) -> None:
    real = read_address("s3://bucket/pre").objects()
    assert isinstance(real, Bucket)
    objects = Bucket(real._reader, real._writer, uri="s3://bucket/pre", pauses=(0.01, 0.01))
    server.faults += ["lost request"] * 3
    with pytest.raises(StoreError, match="may or may not"):
        objects.put_new("key", b"data")
    server.faults += ["conflict"] * 3
    with pytest.raises(StoreError, match="requests conflict"):
        objects.put_new("key", b"data")
    server.faults += ["lost request", "denied"]
    with pytest.raises(StoreError, match="may or may not"):
        objects.put_new("key", b"data")
    assert server.objects == {}


def test_a_retrying_client_would_take_its_own_object_for_anothers(server: BucketServer) -> None:
    """The control of why the writer never retries by itself."""
    real = read_address("s3://bucket/pre").objects()
    assert isinstance(real, Bucket)
    retrying = Bucket(real._reader, real._reader, uri="s3://bucket/pre")
    server.faults += ["error after"]
    with pytest.raises(ObjectExistsError):
        retrying.put_new("key", b"data")
    assert server.objects == {"/bucket/pre/key": b"data"}


def test_a_bucket_that_does_not_exist_has_no_objects_and_takes_none(
    moto_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables(moto_url).items():
        monkeypatch.setenv(name, value)
    objects = read_address("s3://absent/store").objects()
    assert objects.get("key", at_most=1) is None
    with pytest.raises(StoreError, match="NoSuchBucket"):
        objects.put_new("key", b"x")
    with pytest.raises(StoreError, match="NoSuchBucket"):
        objects.keys("")


def test_the_environments_timeout_holds(server: BucketServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_TIMEOUT", "100ms")
    objects = read_address("s3://bucket/pre").objects()
    assert isinstance(objects, Bucket)
    quick = Bucket(objects._writer, objects._writer, uri="s3://bucket/pre", pauses=())
    with server.lock:  # the server accepts the bytes, and answers nothing
        started = time.monotonic()
        with pytest.raises(StoreError, match="may or may not"):
            quick.put_new("key", b"data")
        assert time.monotonic() - started < 5


def test_the_probe_refuses_files_that_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.link", lambda source, target: Path(source).rename(target))
    with pytest.raises(StoreError, match="replaces objects"):
        check_create_only(LocalFiles(tmp_path), "the store")


def test_the_probe_stays_where_nothing_may_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise StoreError("not allowed")

    monkeypatch.setattr(LocalFiles, "delete", refuse)
    check_create_only(LocalFiles(tmp_path), "the store")
    (key,) = LocalFiles(tmp_path).keys("")
    assert key.startswith("probe-")


def test_the_probe_refuses_a_store_that_does_not_show_what_was_put(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalFiles, "get", lambda *_, **__: None)
    with pytest.raises(StoreError, match="replaces objects"):
        check_create_only(LocalFiles(tmp_path), "the store")
