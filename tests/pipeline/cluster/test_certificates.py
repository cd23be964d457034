"""Certificates of a cluster: what is made, what stays, what is renewed; and who is let in with which."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import shutil
import ssl
import stat
from typing import TYPE_CHECKING, Any

import dask
import distributed
import pytest
from cryptography import x509
from distributed.comm import core as comm_core

from suffice.errors import ClusterError, UsageError
from suffice.pipeline.cluster import certificates, clients
from suffice.pipeline.cluster.certificates import ROLES, certificates_in
from suffice.pipeline.cluster.connection import open_cluster
from support.dask_clusters import NO_SPILLING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILES = {f"{role}.{kind}" for role in ("ca", *ROLES) for kind in ("pem", "key")}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of certificates that nobody changes."""
    directory = tmp_path_factory.mktemp("certificates") / "cluster"
    assert certificates_in(directory).status == "made"
    return directory


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Path:
    """Return a copy of them of the test's own."""
    return shutil.copytree(made, tmp_path / "cluster")


@pytest.fixture(scope="module")
def tls_address(made: Path) -> Iterator[str]:
    """Run a cluster whose links have these certificates."""
    files = {
        f"tls_{role}_{name}": str(made / f"{role}.{kind}")
        for role in ROLES
        for name, kind in (("cert", "pem"), ("key", "key"))
    }
    security = distributed.Security(tls_ca_file=str(made / "ca.pem"), require_encryption=True, **files)  # type: ignore[no-untyped-call]
    with (
        dask.config.set(NO_SPILLING),
        distributed.LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            host="tls://127.0.0.1",
            security=security,
            dashboard_address=None,
        ) as cluster,
    ):
        yield cluster.scheduler_address


def read(path: Path) -> x509.Certificate:
    """Read a certificate."""
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_keys_are_for_their_owner_alone(made: Path) -> None:
    assert {path.name for path in made.iterdir()} == FILES
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in made.iterdir()}
    assert {mode for name, mode in modes.items() if name.endswith(".key")} == {0o600}


def test_a_year_for_roles_and_ten_for_the_authority(made: Path) -> None:
    now = dt.datetime.now(dt.UTC)
    lasts = {
        certificate.role: round((certificate.ends - now) / dt.timedelta(days=1))
        for certificate in certificates_in(made).certificates
    }
    assert lasts == {"ca": 3650, "scheduler": 365, "worker": 365, "client": 365}
    authority = read(made / "ca.pem").extensions.get_extension_for_class(x509.BasicConstraints).value
    assert authority.ca
    assert authority.path_length == 0


def test_a_second_call_changes_nothing(copied: Path) -> None:
    before = {path.name: path.read_bytes() for path in copied.iterdir()}
    assert certificates_in(copied).status == "unchanged"
    with pytest.raises(UsageError, match="add --renew"):
        certificates_in(copied, days=3)
    (copied / "ca.key").unlink()  # kept elsewhere
    assert certificates_in(copied).status == "unchanged"
    assert {path.name: path.read_bytes() for path in copied.iterdir()} == {
        name: data for name, data in before.items() if name != "ca.key"
    }


def test_renewing_keeps_the_authority(copied: Path) -> None:
    before = {path.name: path.read_bytes() for path in copied.iterdir()}
    renewed = certificates_in(copied, days=3, renew=True)
    now = dt.datetime.now(dt.UTC)
    assert all(
        certificate.ends < now + dt.timedelta(days=4)
        for certificate in renewed.certificates
        if certificate.role != "ca"
    )
    after = {path.name: path.read_bytes() for path in copied.iterdir()}
    assert after.keys() == FILES
    assert {name for name in FILES if after[name] == before[name]} == {"ca.pem", "ca.key"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in copied.glob("*.key")} == {0o600}


def test_nothing_outlasts_its_authority(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = read(copied / "ca.pem").not_valid_after_utc
    certificates_in(copied, days=3650, renew=True)
    assert read(copied / "worker.pem").not_valid_after_utc <= ends

    class Later(dt.datetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> Later:
            return cls.fromtimestamp(ends.timestamp() + 86400, tz)

    monkeypatch.setattr(dt, "datetime", Later)
    with pytest.raises(UsageError, match="the authority has ended"):
        certificates_in(copied, renew=True)
    assert all(certificate.has_ended for certificate in certificates_in(copied).certificates)


@pytest.mark.parametrize("name", sorted(FILES - {"ca.key"}))
def test_what_is_missing_is_named_and_nothing_is_overwritten(copied: Path, name: str) -> None:
    (copied / name).unlink()
    with pytest.raises(UsageError, match=f"{name}: this file is missing"):
        certificates_in(copied)
    if not name.startswith("ca"):
        assert certificates_in(copied, renew=True).status == "renewed"


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("ca.pem", "no certificate"),
        ("worker.pem", "no certificate"),
        ("client.key", "not the key of client.pem"),
    ],
)
def test_broken_files_are_named(copied: Path, name: str, rule: str) -> None:
    (copied / name).write_text("-----BEGIN NOTHING-----")
    with pytest.raises(UsageError, match=f"{name}: this is {rule}"):
        certificates_in(copied)


def test_another_authoritys_files_are_told_apart(copied: Path, tmp_path: Path) -> None:
    certificates_in(tmp_path / "other")
    for name in ("worker.pem", "worker.key"):
        shutil.copy(tmp_path / "other" / name, copied / name)
    with pytest.raises(UsageError, match=r"worker\.pem: the authority in ca\.pem does not vouch"):
        certificates_in(copied)
    shutil.copy(tmp_path / "other" / "ca.key", copied / "ca.key")
    with pytest.raises(UsageError, match="not the key of the authority"):
        certificates_in(copied, renew=True)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for directory in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UsageError):
            certificates_in(directory)


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
@pytest.mark.parametrize("mode", [0o720, 0o702, 0o1777])
def test_a_folder_that_others_can_write_is_refused(copied: Path, tmp_path: Path, mode: int) -> None:
    """Whoever can write there could put in an authority of their own."""
    shared = tmp_path / "shared"
    shared.mkdir()
    for folder, more in ((shared, {}), (copied, {"renew": True})):
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        folder.chmod(mode)
        with pytest.raises(UsageError, match="others can write in this folder"):
            certificates_in(folder, **more)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_what_was_begun_is_taken_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = certificates.new_certificate

    def failing(authority: certificates.Issued, role: str, **more: object) -> certificates.Issued:
        if role == "client":
            (tmp_path / "cluster" / "client.key").mkdir()
        return real(authority, role, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(certificates, "new_certificate", failing)
    with pytest.raises(UsageError, match=r"client\.key: this file cannot be written"):
        certificates_in(tmp_path / "cluster")
    assert [path.name for path in (tmp_path / "cluster").iterdir()] == ["client.key"]


@pytest.mark.parametrize(("role", "accepted"), [("scheduler", True), ("worker", True), ("client", False)])
def test_a_clients_certificate_is_no_servers(made: Path, role: str, *, accepted: bool) -> None:
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=made / "ca.pem")
    server.verify_mode = ssl.CERT_REQUIRED
    server.load_cert_chain(made / f"{role}.pem", made / f"{role}.key")
    client = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=made / "ca.pem")
    client.check_hostname = False
    client.load_cert_chain(made / "worker.pem", made / "worker.key")
    if accepted:
        shake_hands(client, server)
        return
    with pytest.raises(ssl.SSLCertVerificationError, match="purpose"):
        shake_hands(client, server)


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    """Carry bytes between two ends until both are content."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(to_client, to_server), server.wrap_bio(to_server, to_client, server_side=True)]
    for _ in range(10):
        for end in list(ends):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            ends.remove(end)
        if not ends:
            return
    message = "the ends did not come to terms"
    raise AssertionError(message)


def test_who_has_a_certificate_is_let_in(tls_address: str, made: Path) -> None:
    with open_cluster(tls_address, certificates=str(made)) as cluster:
        assert cluster.compute({"a": (sum, [1, 2])}, ["a"]) == [3]


def test_who_has_none_is_kept_out(tls_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "CONNECT_SECONDS", 1)
    certificates_in(tmp_path / "other")
    plain = tls_address.replace("tls://", "tcp://")
    for address, folder in ((tls_address, None), (tls_address, str(tmp_path / "other")), (plain, None)):
        with (
            pytest.raises(ClusterError, match="cannot be reached"),
            open_cluster(address, certificates=folder),
        ):
            pass


@pytest.mark.audit
@pytest.mark.parametrize("end", ["scheduler", "worker"])
@pytest.mark.parametrize("who", ["of the authority", "of another authority", "no certificate", "plain"])
def test_each_end_asks_for_a_certificate(
    tls_address: str, made: Path, tmp_path: Path, end: str, who: str
) -> None:
    """Asked by Dask's own means, without what this project looks at first."""
    tls = tls_context(made, made)
    if end == "scheduler":
        address = tls_address
    else:
        workers = asyncio.run(asked(tls_address, tls))["workers"]
        (address,) = workers
    if who == "of the authority":
        assert asyncio.run(asked(address, tls))["type"].lower() == end
        return
    certificates_in(tmp_path / "other")
    context = {
        "of another authority": tls_context(made, tmp_path / "other"),
        "no certificate": tls_context(made, None),
        "plain": None,
    }[who]
    with pytest.raises(OSError, match=r"while trying to connect|in <T(LS|CP)"):
        asyncio.run(asked(address if context else address.replace("tls://", "tcp://"), context))


def tls_context(authority: Path, shown: Path | None) -> ssl.SSLContext:
    """Return what trusts an authority, and shows a client's certificate of a folder."""
    context = ssl.create_default_context(cafile=authority / "ca.pem")
    context.check_hostname = False
    if shown is not None:
        context.load_cert_chain(shown / "client.pem", shown / "client.key")
    return context


async def asked(address: str, context: ssl.SSLContext | None) -> dict[str, Any]:
    """Ask an end of a cluster who it is."""
    more = {} if context is None else {"ssl_context": context, "require_encryption": True}
    comm = await comm_core.connect(address, timeout=2, **more)  # type: ignore[no-untyped-call]
    try:
        await comm.write({"op": "identity", "reply": True})
        return dict(await comm.read())
    finally:
        comm.abort()


def test_a_clients_files_are_looked_at_first(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(rule: str) -> None:
        with (
            pytest.raises(ClusterError, match=rule) as caught,
            open_cluster("tls://127.0.0.1:1", certificates=str(copied)),
        ):
            pass
        assert caught.value.__suppress_context__ or caught.value.__context__ is None

    monkeypatch.setattr(certificates, "_HOSTS_DISAGREE", dt.timedelta(days=3))
    key = certificates.read_key((copied / "ca.key").read_bytes())
    assert key is not None
    authority = certificates.Issued(certificate=read(copied / "ca.pem"), key=key)
    now = dt.datetime.now(dt.UTC)
    begin = authority.certificate.not_valid_before_utc
    ended = certificates.new_certificate(authority, "client", begin=begin, ends=now, is_server=False)
    (copied / "client.pem").write_bytes(ended.pem())
    refused("that of the client ended on")
    (copied / "client.pem").write_bytes(b"none")
    refused("this is no certificate")
    (copied / "client.key").unlink()
    refused("client.key cannot be read in the folder that SUFFICE_CLUSTER_CERTIFICATES")
