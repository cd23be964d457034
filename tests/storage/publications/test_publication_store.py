"""Publications: found by their request, written create-only, read back with nothing believed."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from suffice.errors import (
    PublicationCorruptError,
    PublicationMissingError,
    SignatureError,
    StoreError,
    UsageError,
)
from suffice.pipeline.terms.declaration import canonical_json
from suffice.storage.objects.object_store import Patience
from suffice.storage.publications.publication import parse_publication
from suffice.storage.publications.publication_store import PublicationStore, check_is_there, open_publication
from suffice.storage.releases.release_store import open_store
from suffice.storage.signatures.signing import load_signer, new_keys, publication_signer_from_environment
from support.bucket_server import bucket_server
from support.buckets import s3_server, variables
from support.publications import FILES, id_of, manifest_of, publish, replace_bytes, request_of

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS = ("local", "moto", "s3", "gs", "az")


@pytest.fixture(scope="module")
def urls() -> Iterator[dict[str, str]]:
    with s3_server() as (moto, _), bucket_server() as fake:
        yield {"moto": moto, **dict.fromkeys(("s3", "gs", "az"), fake.url)}


@pytest.fixture(params=KINDS)
def uri(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    urls: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    kind = request.param
    if kind == "local":
        return str(tmp_path / "store")
    for name, value in variables(urls[kind]).items():
        monkeypatch.setenv(name, value)
    scheme = "s3" if kind == "moto" else kind
    return f"{scheme}://bucket/{tmp_path.name}/deeper"


def test_a_publication_is_found_by_its_request(uri: str) -> None:
    store = PublicationStore.open(uri)
    publication_id = id_of(request_of())
    assert store.find(publication_id) is None
    assert store.ids() == () == tuple(store.all())
    store.check_create_only()
    made = publish(store)
    publication = PublicationStore.open(uri).find(publication_id)
    assert publication is not None
    assert publication.data == made.data
    assert publication.request == request_of()
    assert {file.name: publication.read(file.name) for file in publication.files} == FILES
    assert publication.manifest["cost"] == "0"
    assert publication.manifest["epsilon"] == {"ab" * 8: "1"}
    assert store.ids() == (publication_id,)
    assert [each.publication_id for each in store.all()] == [publication_id]
    assert open_publication(publication_id, store=uri).data == made.data
    assert open_publication(made.uri).uri == open_publication(f"{made.uri}/manifest.json").uri == made.uri


def test_files_are_named_by_their_content_and_nothing_else_is_written(uri: str) -> None:
    made = publish(PublicationStore.open(uri))
    keys = PublicationStore.open(uri).objects.keys("")
    digests = [f"{hashlib.sha256(data).hexdigest()[:32]}-{name}" for name, data in FILES.items()]
    assert sorted(keys) == sorted(f"{made.publication_id}/{name}" for name in ["manifest.json", *digests])


def test_what_an_earlier_run_left_is_used_again(uri: str) -> None:
    store, publication_id = PublicationStore.open(uri), id_of(request_of())
    first = store.put_file(publication_id, "draws.parquet", iter([b"PAR1 ", b"draws"]))
    assert list(store.files(publication_id)) == [first]
    assert store.read_file(publication_id, first.path) == b"PAR1 draws"
    assert store.read_file(publication_id, "manifest.json") is None
    assert store.find(publication_id) is None, "files alone are no publication"
    assert publish(store).read("draws.parquet") == b"PAR1 draws"


def test_the_first_manifest_wins(uri: str) -> None:
    store = PublicationStore.open(uri)
    first = publish(store, files={"summaries.parquet": b"first"})
    second = publish(store, files={"summaries.parquet": b"second"})
    assert second.data == first.data
    assert second.read("summaries.parquet") == b"first"


def test_a_manifest_is_put_only_after_its_files(tmp_path: Path) -> None:
    store, elsewhere = (PublicationStore.open(tmp_path / name) for name in ("a", "b"))
    publication_id = id_of(request_of())
    put = [elsewhere.put_file(publication_id, name, data) for name, data in FILES.items()]
    with pytest.raises(PublicationCorruptError, match="nothing was published"):
        store.publish(publication_id, manifest_of(request_of(), put))
    assert store.find(publication_id) is None
    with pytest.raises(PublicationCorruptError, match="not of"):
        elsewhere.publish("0" * 32, manifest_of(request_of(), put))


def test_a_listing_that_lags_stops_nothing(tmp_path: Path) -> None:
    class Lagging:
        """Objects whose listings show nothing yet; what is asked for by name is there."""

        def __init__(self, objects: Any) -> None:
            self._objects = objects

        def __getattr__(self, name: str) -> Any:
            return getattr(self._objects, name)

        def names(self, _: str) -> list[str]:
            return []

    store = PublicationStore.open(tmp_path / "store")
    lagging = replace(store, objects=Lagging(store.objects))
    made = publish(lagging)
    assert made.read("draws.parquet") == FILES["draws.parquet"]
    other, elsewhere = request_of(draws=7), PublicationStore.open(tmp_path / "elsewhere")
    put = [elsewhere.put_file(id_of(other), name, data) for name, data in FILES.items()]
    with pytest.raises(PublicationCorruptError, match="nothing was published"):
        lagging.publish(id_of(other), manifest_of(other, put))


def test_only_its_own_folder_need_be_writable(tmp_path: Path) -> None:
    store = tmp_path / "store"
    (store / "publications").mkdir(parents=True)
    touched: list[str] = []
    publications = PublicationStore.open(store)
    watched = replace(publications, objects=_Watched(publications.objects, touched))
    store.chmod(0o555)
    try:
        publish(watched)
    finally:
        store.chmod(0o755)
    assert sorted(path.name for path in store.iterdir()) == ["publications"]
    assert publications.objects.root == store / "publications"  # type: ignore[attr-defined]
    assert touched
    assert all(key.startswith(id_of(request_of())) for key in touched)


def test_a_policy_of_its_own_folder_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    with bucket_server() as server:
        for name, value in variables(server.url).items():
            monkeypatch.setenv(name, value)
        server.only_below = "/bucket/pre/publications/"
        store = PublicationStore.open("s3://bucket/pre")
        check_is_there(store)  # nothing yet, and what stands beside it may not be read
        store.check_create_only()
        made = publish(store)
        assert [each.data for each in store.all()] == [made.data]
        assert [file.name for file in store.files(made.publication_id)]
        assert open_publication(made.uri).read("draws.parquet") == FILES["draws.parquet"]
        assert all(path.startswith(server.only_below) for path in server.objects)
        with pytest.raises(StoreError, match=r"denied|403"):
            open_store("s3://bucket/pre")  # the control: the policy is in force


class _Watched:
    """Objects that note every key which is written, read or listed."""

    def __init__(self, objects: Any, touched: list[str]) -> None:
        self._objects, self._touched = objects, touched

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._objects, name)

        def call(key: str, *args: Any, **kwargs: Any) -> Any:
            self._touched.append(key)
            return method(key, *args, **kwargs)

        return call


class _Failing(_Watched):
    """Objects that cannot be written before a moment."""

    def __init__(self, objects: Any, moment: float, clock: list[float]) -> None:
        super().__init__(objects, [])
        self._moment, self._clock = moment, clock

    def put_new(self, key: str, data: bytes) -> None:
        if self._clock[0] < self._moment:
            message = f"{key} cannot be written: the server is busy"
            raise StoreError(message, reason="the server is busy", may_pass=True)
        self._objects.put_new(key, data)


@pytest.mark.parametrize(("seconds", "ends_well"), [(3600.0, True), (300.0, False)])
def test_a_store_that_fails_for_ten_minutes(tmp_path: Path, seconds: float, ends_well: bool) -> None:
    clock, notices = [0.0], list[str]()
    store = PublicationStore.open(tmp_path)

    def sleep(pause: float) -> bool:
        clock[0] += pause
        assert store.find(id_of(request_of())) is None
        return True

    patience = Patience(seconds=seconds, sleep=sleep, clock=lambda: clock[0], notice=notices.append)
    failing = replace(store, objects=_Failing(store.objects, 600.0, clock), patience=patience)
    if ends_well:
        assert publish(failing).read("draws.parquet") == FILES["draws.parquet"]
        assert 600 <= clock[0] < 700
    else:
        with pytest.raises(StoreError, match="busy"):
            publish(failing)
        assert list(store.objects.keys("")) == []
    assert notices
    assert all(notice.startswith("not published yet: the server is busy") for notice in notices)


@pytest.mark.parametrize("name", ["", ".x", "a/b", "../x", "a..b", "x" * 101, "a b", "\u202ex", "a\n"])
def test_a_name_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    store = PublicationStore.open(tmp_path)
    with pytest.raises(UsageError, match="is no name"):
        store.put_file("0" * 32, name, b"x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("publication_id", ["", "0" * 31, "A" * 32, "../" + "0" * 32, "0" * 32 + "\n"])
def test_an_id_that_is_none_is_refused(tmp_path: Path, publication_id: str) -> None:
    store = PublicationStore.open(tmp_path)
    for use in (
        store.find,
        lambda entry: list(store.files(entry)),
        lambda entry: store.put_file(entry, "a", b"x"),
        lambda entry: store.read_file(entry, "a"),
    ):
        with pytest.raises(UsageError, match="32 hex digits"):
            use(publication_id)


def test_an_empty_file_and_a_missing_publication_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="0 bytes"):
        PublicationStore.open(tmp_path).put_file("0" * 32, "a", b"")
    with pytest.raises(PublicationMissingError, match="it has no manifest"):
        open_publication("0" * 32, store=tmp_path)
    with pytest.raises(UsageError, match="is no publication"):
        open_publication(str(tmp_path / "x"))


def _mutants() -> dict[str, Any]:
    """Return what somebody may change in a manifest, with its checksum made to fit again."""
    long = "x" * 10_000
    entry = {"name": "a", "path": "0" * 32 + "-a", "role": "draws", "format": "csv", "size": 1, "rows": None}
    return {
        "request": lambda content: content["request"].update(draws=5),
        "another id": lambda content: content.update(publication_id="0" * 32),
        "no epsilon": lambda content: content.update(epsilon={}),
        "a price": lambda content: content.update(cost="1"),
        "a negative epsilon": lambda content: content.update(epsilon={"ab" * 8: "-1"}),
        "a path out": lambda content: content["files"][0].update(path="../../manifest.json"),
        "an absolute path": lambda content: content["files"][0].update(path="/etc/passwd"),
        "a path of another hash": lambda content: content["files"][0].update(sha256="0" * 64),
        "a size too large": lambda content: content["files"][0].update(size=2**40),
        "no size": lambda content: content["files"][0].update(size=-1),
        "an unknown role": lambda content: content["files"][0].update(role="code"),
        "two files of a name": lambda content: content["files"].append(content["files"][0]),
        "no files": lambda content: content.update(files=[]),
        "too many files": lambda content: content.update(files=[entry | {"sha256": "0" * 64}] * 10_001),
        "a title of lines": lambda content: content.update(title="a\nb"),
        "a long title": lambda content: content.update(title=long),
        "an unknown field": lambda content: content.update(script="x"),
        "a signature of no form": lambda content: content.update(
            signature={"algorithm": "ed25519", "key_id": "0" * 16, "value": "x"}
        ),
        "diagnostics of numbers": lambda content: content.update(diagnostics={"a": {"r_hat": 1}}),
        "releases that are none": lambda content: content["request"].update(releases="all"),
        "a later format": lambda content: content.update(format_version=2),
    }


@pytest.mark.parametrize("mutant", sorted(_mutants()))
def test_a_hostile_manifest_is_refused(tmp_path: Path, mutant: str) -> None:
    made = publish(PublicationStore.open(tmp_path))
    content = made.manifest
    _mutants()[mutant](content)
    blank = {**content, "checksum": None, "signature": None}
    content["checksum"] = hashlib.sha256(canonical_json.encode(blank)).hexdigest()
    Path(made.uri, "manifest.json").write_bytes(canonical_json.encode(content))
    with pytest.raises(PublicationCorruptError) as raised:
        PublicationStore.open(tmp_path).find(made.publication_id)
    assert len(str(raised.value)) <= 500
    assert "pydantic" not in str(raised.value)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b'{"format_version":1}',
        b"[" * 100_000,
        b"\xff\xfe",
        b'{"format_version":1.0}',
        b" " * (4 * 2**20 + 1),
    ],
)
def test_bytes_that_are_no_manifest_are_refused(data: bytes) -> None:
    with pytest.raises(PublicationCorruptError):
        parse_publication(data)


def test_every_changed_byte_of_a_manifest_is_found(tmp_path: Path) -> None:
    data = publish(PublicationStore.open(tmp_path)).data
    parse_publication(data)
    for place in range(0, len(data), 7):
        changed = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        with pytest.raises(PublicationCorruptError):
            parse_publication(changed)


@pytest.mark.parametrize("data", [b"", b"PAR1 drawX", b"PAR1 draws and more"])
def test_a_changed_file_is_refused(tmp_path: Path, data: bytes) -> None:
    store = PublicationStore.open(tmp_path)
    made = publish(store)
    replace_bytes(Path(made.uri), "draws.parquet", data)
    with pytest.raises(PublicationCorruptError, match=r"draws\.parquet"):
        made.read("draws.parquet")
    assert [file.name for file in store.files(made.publication_id)] == ["summaries.parquet"]
    with pytest.raises(PublicationCorruptError, match="remove them"):
        store.put_file(made.publication_id, "draws.parquet", FILES["draws.parquet"])
    with pytest.raises(UsageError, match="no file"):
        made.read("../manifest.json")


def test_a_publication_in_the_place_of_another_is_refused(tmp_path: Path) -> None:
    store = PublicationStore.open(tmp_path)
    made = publish(store)
    another = id_of(request_of(draws=7))
    store.objects.put_new(f"{another}/manifest.json", made.data)
    with pytest.raises(PublicationCorruptError, match="belongs to another publication"):
        store.find(another)


def test_a_publication_has_a_key_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, releases = new_keys(tmp_path / "ours"), new_keys(tmp_path / "releases")
    monkeypatch.setenv("SUFFICE_PUBLICATION_KEY", str(ours.private_key))
    made = publish(PublicationStore.open(tmp_path / "store"), signer=publication_signer_from_environment())
    demanded = [os.fspath(ours.public_key)]
    publication = PublicationStore.open(tmp_path / "store", publication_keys=demanded).find(
        made.publication_id
    )
    assert publication is not None
    with pytest.raises(SignatureError, match="is demanded"):
        open_publication(made.uri, publication_keys=[os.fspath(releases.public_key)])
    monkeypatch.setenv("SUFFICE_PUBLIC_KEYS", str(releases.public_key))
    assert open_publication(made.uri, publication_keys=demanded).data == made.data
    monkeypatch.setenv("SUFFICE_PUBLIC_KEYS", str(ours.public_key))
    with pytest.raises(UsageError, match="a key of its own"):
        open_publication(made.uri, publication_keys=demanded)
    with pytest.raises(UsageError, match="a key of their own"):
        publication_signer_from_environment()
    monkeypatch.delenv("SUFFICE_PUBLIC_KEYS")
    monkeypatch.setenv("SUFFICE_SIGNING_KEY", str(ours.private_key))
    with pytest.raises(UsageError, match="a key of their own"):
        publication_signer_from_environment()


def test_a_signature_of_a_release_is_none_of_a_publication(tmp_path: Path) -> None:
    keys = new_keys(tmp_path / "key")
    made = publish(PublicationStore.open(tmp_path / "store"), signer=load_signer(keys.private_key))
    content = made.manifest
    demanded = [os.fspath(keys.public_key)]
    assert open_publication(made.uri, publication_keys=demanded).data == made.data
    content["signature"] = load_signer(keys.private_key).sign(content)  # as a release's manifest is signed
    Path(made.uri, "manifest.json").write_bytes(canonical_json.encode(content))
    with pytest.raises(SignatureError, match="did not sign it"):
        open_publication(made.uri, publication_keys=demanded)


def test_an_unsigned_publication_is_refused_where_a_key_is_demanded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = new_keys(tmp_path / "key")
    made = publish(PublicationStore.open(tmp_path / "store"))
    monkeypatch.setenv("SUFFICE_PUBLICATION_PUBLIC_KEYS", str(keys.public_key))
    with pytest.raises(SignatureError, match="the publication is not signed"):
        open_publication(made.uri)


def test_a_store_that_replaces_objects_is_refused(tmp_path: Path) -> None:
    class Replacing(_Watched):
        def put_new(self, key: str, data: bytes) -> None:
            self._objects.delete(key)
            self._objects.put_new(key, data)

    store = PublicationStore.open(tmp_path)
    with pytest.raises(StoreError, match="replaces objects"):
        replace(store, objects=Replacing(store.objects, [])).check_create_only()
    store.check_create_only()
