"""A release by its URL: what a disk's is refused for, and all that only a server can do."""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from suffice import open_release
from suffice.errors import (
    ReleaseCorruptError,
    ReleaseMissingError,
    ReleaseWithdrawnError,
    SignatureError,
    StoreError,
    UsageError,
)
from suffice.storage.objects import website
from suffice.storage.objects.address import read_address
from suffice.storage.releases import location
from suffice.storage.releases.release_store import newer_edition, open_store
from support import web_server
from support.releases import make_plan, publish
from support.web_server import FAULTS, PAGE, WebServer, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

VECTORS = Path(__file__).parents[2] / "vectors"
KEY = VECTORS / "test-key.pem.pub"
HOSTILE: list[dict[str, Any]] = json.loads((VECTORS / "hostile.json").read_text())["hostile"]
VALID: list[dict[str, Any]] = json.loads((VECTORS / "index.json").read_text())["valid"]
REFUSALS: dict[str, Any] = {
    "existence": ReleaseMissingError,
    "signature": SignatureError,
    "withdrawal": (ReleaseWithdrawnError, ReleaseCorruptError),
}
FILES = ("manifest.json", "withdrawn.json", "suffice.json", "cancelled.parquet", "arr_delay.parquet")
TIMED = {"slow", "silent"}


@pytest.fixture(scope="module")
def server() -> Iterator[WebServer]:
    with serving() as running:
        running.serve_folder(VECTORS / "valid", "/valid")
        running.serve_folder(VECTORS / "hostile", "/hostile")
        yield running


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(website, "_RETRIES", 0)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return a store, and a release's path in it."""
    root = tmp_path_factory.mktemp("website") / "store"
    published = publish(root, make_plan())
    return root, published.relative_to(root).as_posix()


@pytest.fixture
def site(server: WebServer, stored: tuple[Path, str]) -> Iterator[tuple[WebServer, str]]:
    """Serve the store; return the server, and the release's path on it."""
    server.serve_folder(stored[0], "/store")
    server.faults.clear()
    server.asked.clear()
    yield server, f"/store/{stored[1]}"
    server.faults.clear()


@pytest.mark.parametrize("entry", VALID, ids=lambda entry: entry["name"])
def test_a_valid_release_is_read_as_from_a_disk(server: WebServer, entry: dict[str, Any]) -> None:
    keys = [KEY] if entry["signed"] else None
    by_url = open_release(f"{server.url}/valid/{entry['name']}/release", public_keys=keys)
    by_path = open_release(VECTORS / "valid" / entry["name"] / "release", public_keys=keys)
    assert by_url.manifest == by_path.manifest
    assert [by_url.table(name) for name in by_url] == [by_path.table(name) for name in by_path]


@pytest.mark.parametrize("entry", HOSTILE, ids=lambda entry: entry["name"])
def test_a_hostile_release_is_refused_as_from_a_disk(server: WebServer, entry: dict[str, Any]) -> None:
    keys = [KEY] if entry["refused_by"] == "signature" else None
    expected = (
        REFUSALS.get(entry["check"], ReleaseCorruptError)
        if keys or entry["check"] != "signature"
        else ReleaseCorruptError
    )
    with pytest.raises(expected) as caught:
        open_release(f"{server.url}/hostile/{entry['name']}", public_keys=keys)
    assert len(str(caught.value)) <= 500


def path_of(file: str, release: str) -> str:
    return f"/store/{file}" if file == "suffice.json" else f"{release}/{file}"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("file", FILES)
def test_a_server_that_does_not_give_the_file_is_refused(
    site: tuple[WebServer, str], monkeypatch: pytest.MonkeyPatch, file: str, fault: Any
) -> None:
    server, release = site
    timeout = "400ms" if fault.__name__ in TIMED else "20s"
    monkeypatch.setattr(website, "OPTIONS", {**website.OPTIONS, "timeout": timeout})
    server.faults[path_of(file, release)] = fault
    with pytest.raises(StoreError) as caught:
        open_release(server.url + release)
    assert "CANARY" not in str(caught.value)
    assert len(str(caught.value)) <= 500


@pytest.mark.parametrize("fault", [web_server.larger, web_server.changed, web_server.huge, web_server.half])
def test_files_of_very_many_cells_are_checked_likewise(
    site: tuple[WebServer, str], monkeypatch: pytest.MonkeyPatch, fault: Any
) -> None:
    monkeypatch.setattr(location, "MOST_HELD", 0)
    server, release = site
    assert open_release(server.url + release).statistic("cancelled").table()
    server.faults[f"{release}/cancelled.parquet"] = fault
    with pytest.raises(StoreError):
        open_release(server.url + release)


def test_what_changes_between_two_reads_is_refused(site: tuple[WebServer, str], tmp_path: Path) -> None:
    """The manifest of one release, and then the files of another, each of them whole."""
    server, release = site
    other = publish(tmp_path / "other", make_plan(name="another"))
    data = (other / "cancelled.parquet").read_bytes()

    def swapped(request: Any, content: bytes) -> None:
        request.answer(200, content)
        server.files[f"{release}/cancelled.parquet"] = bytes(reversed(data))

    kept = server.files[f"{release}/cancelled.parquet"]
    server.faults[f"{release}/manifest.json"] = swapped
    with pytest.raises(ReleaseCorruptError, match=r"does not have the (SHA-256|.* bytes)"):
        open_release(server.url + release)
    server.files[f"{release}/cancelled.parquet"] = kept


def test_no_more_is_read_than_the_manifest_says(site: tuple[WebServer, str]) -> None:
    server, release = site
    sent: list[int] = []

    def counted(request: Any, content: bytes) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(1 << 40))
        request.end_headers()
        try:
            while True:
                sent.append(request.wfile.write(content or b"x"))
        except OSError:
            pass

    server.faults[f"{release}/cancelled.parquet"] = counted
    with pytest.raises(ReleaseCorruptError, match="bytes that the manifest states"):
        open_release(server.url + release)
    assert sum(sent) < 64 << 20  # what the system's buffers took


def test_a_redirect_is_followed_and_a_place_in_a_store_is_checked(site: tuple[WebServer, str]) -> None:
    server, release = site

    def moved(request: Any, _: bytes) -> None:
        request.answer(301, b"", headers={"Location": f"/moved{request.path}"})

    for path in [path for path in server.files if path.startswith(release)]:
        server.files[f"/moved{path}"] = server.files[path]
        server.faults[path] = moved
    assert open_release(server.url + release).uri == server.url + release
    server.files[f"/store/wrong/all/{'0' * 16}/manifest.json"] = server.files[f"{release}/manifest.json"]
    with pytest.raises(ReleaseCorruptError, match="belongs to another release"):
        open_release(f"{server.url}/store/wrong/all/{'0' * 16}")


def test_a_manifests_url_is_that_of_its_release(site: tuple[WebServer, str]) -> None:
    server, release = site
    opened = open_release(f"{server.url}{release}/manifest.json")
    assert opened.uri == server.url + release
    assert newer_edition(opened) is None


def test_a_passing_failure_is_tried_again(
    site: tuple[WebServer, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(website, "_RETRIES", 2)
    server, release = site
    path = f"{release}/manifest.json"

    def once(request: Any, _: bytes) -> None:
        del server.faults[path]
        request.answer(503, PAGE)

    server.faults[path] = once
    assert open_release(server.url + release).name == "flights"
    assert server.asked.count(path) == 2


def test_a_website_is_never_listed_and_never_written(site: tuple[WebServer, str]) -> None:
    server, _ = site
    store = open_store(f"{server.url}/store")
    with pytest.raises(StoreError, match="a website lists nothing: give the URL of one release"):
        open_release("flights", store=f"{server.url}/store")
    with pytest.raises(StoreError, match="a website is only read"):
        store.check_create_only()
    with pytest.raises(StoreError, match="a website"):
        open_store(f"{server.url}/new", ledger_id="ab" * 16, create=True)
    objects = read_address(f"{server.url}/store").objects()
    for refused in (
        lambda: objects.put_new("a", b""),
        lambda: objects.replace("a", b"", expected=b""),
        lambda: objects.delete("a"),
        lambda: objects.sweep("a/", keep="b"),
        lambda: objects.sweep_hidden(dt.datetime.now(dt.UTC)),
        lambda: objects.keys(""),
        lambda: objects.names(""),
        lambda: objects.keys_after("", ""),
        lambda: objects.modified("a"),
    ):
        with pytest.raises(StoreError, match="a website"):
            refused()


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("http://example.org/release", "use https://"),
        ("http://127.0.0.1.example.org/release", "use https://"),
        ("http://localhost.example.org/release", "use https://"),
        ("http://10.0.0.1/release", "use https://"),
        ("https://user:hunter2@example.org/release", "user before its host"),
        ("https://hunter2@example.org/release", "user before its host"),
        ("https://example.org/release?signature=hunter2", "query or a fragment"),
        ("https://example.org/release#hunter2", "query or a fragment"),
        ("https:///release", "names no host"),
        ("https://exam ple.org/release", "names no host"),
        ("https://example.org/../hunter2", "no path of letters"),
        ("https://example.org/a%2fhunter2/b", "no path of letters"),
        ("https://example.org/a\\hunter2", "no path of letters"),
        ("ftp://example.org/hunter2", "is no store"),
    ],
)
def test_a_url_that_is_none_is_refused_and_not_repeated(url: str, rule: str) -> None:
    with pytest.raises(UsageError, match=re.escape(rule)) as caught:
        open_release(url)
    assert "hunter2" not in str(caught.value)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the files of a certificate that nobody trusts, and of its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("certificate")
    (folder / "certificate.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return folder / "certificate.pem", folder / "key.pem"


def test_over_https_a_stranger_is_refused_and_no_redirect_leaves_encryption(
    server: WebServer, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(certificate) as secure:
        secure.serve_folder(VECTORS / "valid/one-cell/release", "/release")
        with pytest.raises(StoreError, match="does not answer"):
            open_release(f"{secure.url}/release")
        monkeypatch.setattr(website, "OPTIONS", {**website.OPTIONS, "allow_invalid_certificates": True})
        assert len(open_release(f"{secure.url}/release")) == 1

        def lowered(request: Any, _: bytes) -> None:
            name = request.path.rpartition("/")[2]
            request.answer(302, b"", headers={"Location": f"{server.url}/valid/one-cell/release/{name}"})

        server.asked.clear()
        for path in ("/release/manifest.json", "/release/cancelled.parquet", "/release/withdrawn.json"):
            secure.faults = {path: lowered}
            with pytest.raises(StoreError, match="a place that is not https"):
                open_release(f"{secure.url}/release")
        assert server.asked == []


def test_a_name_on_a_website_is_answered_with_the_call_that_works(site: tuple[WebServer, str]) -> None:
    server, release = site
    with pytest.raises(StoreError, match=r"a website lists nothing") as caught:
        open_release("flights", store=f"{server.url}/absent")
    assert f'open_release("{server.url}/absent/flights/WINDOW/RELEASE_ID")' in str(caught.value)
    assert "adopt" not in str(caught.value)
    with pytest.raises(StoreError, match=r"is a release: pass it as the first argument"):
        open_release("flights", store=f"{server.url}{release}")
