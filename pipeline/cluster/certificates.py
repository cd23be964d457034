"""Certificates for the links of a cluster: a private authority, and what it vouches for, in one folder.

::

    DIR/ca.pem  ca.key                 the authority; its key stays with whoever renews
    DIR/scheduler.pem  scheduler.key
    DIR/worker.pem  worker.key
    DIR/client.pem  client.key         for whoever hands out work

Dask checks that the other end of a link has a certificate of the authority, and not which host it names. So
the authority vouches for one cluster and for nothing else. A client's certificate cannot stand for a
scheduler or a worker: it is not valid for a server. Keys are of the elliptic curve P-256, certificates X.509.
"""

from __future__ import annotations

import datetime as dt
import importlib.util
import os
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from suffice.errors import ClusterError, MissingExtraError, UsageError

with suppress(ModuleNotFoundError):  # an extra: `certificates_in` says so where it is missing
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric.ec import (
        SECP256R1,
        EllipticCurvePrivateKey,
        generate_private_key,
    )
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from pathlib import Path


AUTHORITY = "ca"
CLIENT = "client"
ROLES = ("scheduler", "worker", CLIENT)
DAYS = 365
MOST_DAYS = 3650
"""How long an authority vouches; what it vouches for never lasts longer."""

_LARGEST_FILE = 2**16
_HOSTS_DISAGREE = dt.timedelta(hours=1)
"""Certificates are valid from a little earlier on, as clocks of hosts differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """One certificate as it lies in the folder.

    Attributes
    ----------
    role : str
        ``ca``, ``scheduler``, ``worker`` or ``client``.
    certificate, key : Path
    ends : datetime
        In UTC.
    """

    role: str
    certificate: Path
    key: Path
    ends: dt.datetime

    @property
    def has_ended(self) -> bool:
        """Whether nobody accepts it any more."""
        return self.ends <= dt.datetime.now(dt.UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """A folder's certificates, and what was done: ``made``, ``renewed`` or ``unchanged``."""

    status: Literal["made", "renewed", "unchanged"]
    certificates: tuple[Certificate, ...]


def certificates_in(directory: Path, *, days: int | None = None, renew: bool = False) -> Certificates:
    """Make a cluster's certificates, make them anew, or look at those that are there.

    Where the folder holds none, an authority is made for 3650 days, and a certificate and a key for each
    role. Where it holds all, nothing is changed. Renewing replaces those of the roles, by the same authority:
    processes that still run with the old ones and those with the new ones accept each other. Keys have the
    mode 0600.

    Parameters
    ----------
    directory : Path
        Made, for its owner alone, where it does not exist. Nobody else may be able to write in it.
    days : int, optional
        How long what is made lasts, 1 to 3650; 365 where left out; never longer than its authority.
    renew : bool
        Needs the authority's key, which may be kept elsewhere meanwhile.

    Raises
    ------
    UsageError
        Where the folder cannot be used: it names the file, and nothing that was there is lost.
    MissingExtraError
    """
    if importlib.util.find_spec("cryptography") is None:
        feature = "making certificates"
        raise MissingExtraError(feature, "pipeline")
    standing = [role for role in (AUTHORITY, *ROLES) if any(map(_exists, _files(directory, role)))]
    if renew:
        _renew(directory, days or DAYS)
    elif not standing:
        _make(directory, days or DAYS)
    elif days is not None:
        message = f"--days: {directory} holds certificates already, and they stay as they are: add --renew"
        raise UsageError(message)
    return Certificates(
        status="renewed" if renew else "unchanged" if standing else "made",
        certificates=_checked(directory),
    )


def client_files(directory: Path) -> tuple[Path, Path, Path]:
    """Return what a client needs of a folder: the authority's certificate, its own, and its key.

    Raises
    ------
    ClusterError
        Where one of them cannot be read, or the client's certificate has ended.
    """
    files = (_files(directory, AUTHORITY)[0], *_files(directory, CLIENT))
    for path in files:
        try:
            with path.open("rb") as file:
                file.read(1)
        except (OSError, ValueError):
            message = (
                f"the cluster's certificates: {path.name} cannot be read in the folder that "
                "SUFFICE_CLUSTER_CERTIFICATES or the deployment profile names: `suffice cluster certificates "
                "DIR` makes it"
            )
            raise ClusterError(message) from None
    try:
        ends = _read_certificate(files[1]).not_valid_after_utc
    except UsageError as error:
        raise ClusterError(str(error)) from None
    if ends <= dt.datetime.now(dt.UTC):
        message = (
            f"the cluster's certificates: that of the client ended on {ends:%Y-%m-%d}: renew it with "
            "`suffice cluster certificates DIR --renew`"
        )
        raise ClusterError(message)
    return files


def _files(directory: Path, role: str) -> tuple[Path, Path]:
    return directory / f"{role}.pem", directory / f"{role}.key"


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        message = f"{path.parent}: this is no folder that certificates can lie in"
        raise UsageError(message) from None


def _make(directory: Path, days: int) -> None:
    """Write an authority and every role's certificate; take all of it away where one cannot be written."""
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    except (OSError, ValueError):
        message = f"{directory}: DIR cannot be made here: name a folder that is there, or whose parents are"
        raise UsageError(message) from None
    _refuse_shared(directory)
    begin = dt.datetime.now(dt.UTC) - _HOSTS_DISAGREE
    authority = new_authority(begin, dt.timedelta(days=MOST_DAYS) + _HOSTS_DISAGREE)
    written: list[Path] = []
    try:
        for role in (AUTHORITY, *ROLES):
            issued = authority if role == AUTHORITY else _issued(authority, role, days)
            for path, data, mode in _contents(directory, role, issued):
                _write_new(path, data, mode)
                written.append(path)
    except UsageError:
        for path in written:
            path.unlink(missing_ok=True)
        raise


def _refuse_shared(directory: Path) -> None:
    """Refuse to write where others can: they could put an authority of their own in the place of this one."""
    try:
        mode = directory.stat().st_mode
    except (OSError, ValueError):
        return  # what is read or written there next says what is wrong
    if os.name == "posix" and mode & (stat.S_IWGRP | stat.S_IWOTH):
        message = f"{directory}: others can write in this folder: name another, or `chmod go-w` it first"
        raise UsageError(message)


def _renew(directory: Path, days: int) -> None:
    """Replace every role's certificate and key by new ones of the same authority."""
    _refuse_shared(directory)
    certificate_path, key_path = _files(directory, AUTHORITY)
    certificate = _read_certificate(certificate_path)
    key = read_key(_read(key_path))
    if key is None or key.public_key() != certificate.public_key():
        message = f"{key_path}: this is not the key of the authority in {certificate_path.name}"
        raise UsageError(message)
    if certificate.not_valid_after_utc <= dt.datetime.now(dt.UTC):
        message = f"{certificate_path}: the authority has ended; make another one in an empty folder"
        raise UsageError(message)
    authority = Issued(certificate=certificate, key=key)
    for role in ROLES:
        for path, data, mode in _contents(directory, role, _issued(authority, role, days)):
            new = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
            _write_new(new, data, mode)
            try:
                new.replace(path)
            except OSError:
                new.unlink(missing_ok=True)
                message = f"{path} cannot be replaced"
                raise UsageError(message) from None


def _issued(authority: Issued, role: str, days: int) -> Issued:
    now = dt.datetime.now(dt.UTC)
    ends = min(now + dt.timedelta(days=days), authority.certificate.not_valid_after_utc)
    begin = max(now - _HOSTS_DISAGREE, authority.certificate.not_valid_before_utc)
    return new_certificate(authority, role, begin=begin, ends=ends, is_server=role != CLIENT)


def _contents(directory: Path, role: str, issued: Issued) -> list[tuple[Path, bytes, int]]:
    """Say what is written where: the key first, so that a certificate is never there without it."""
    certificate, key = _files(directory, role)
    return [(key, issued.key_pem(), 0o600), (certificate, issued.pem(), 0o644)]


def _checked(directory: Path) -> tuple[Certificate, ...]:
    """Return what lies in the folder, once it is whole and of one authority."""
    authority = _read_certificate(_files(directory, AUTHORITY)[0])
    problems = []
    for role in (AUTHORITY, *ROLES):
        path, key_path = _files(directory, role)
        certificate = _read_certificate(path)
        if not vouches(authority, certificate):
            message = f"{path}: the authority in {AUTHORITY}.pem does not vouch for it: add --renew"
            raise UsageError(message)
        if role != AUTHORITY:  # its key may be kept elsewhere
            key = read_key(_read(key_path))
            if key is None or key.public_key() != certificate.public_key():
                message = f"{key_path}: this is not the key of {path.name}: add --renew"
                raise UsageError(message)
        ends = certificate.not_valid_after_utc
        problems.append(Certificate(role=role, certificate=path, key=key_path, ends=ends))
    return tuple(problems)


def _read_certificate(path: Path) -> x509.Certificate:
    certificate = read_certificate(_read(path))
    if certificate is None:
        message = f"{path}: this is no certificate in PEM"
        raise UsageError(message)
    return certificate


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST_FILE)
    except FileNotFoundError:
        message = f"{path}: this file is missing: bring it back, or name an empty folder"
        if path.stem != AUTHORITY:
            message += ", or add --renew"
        raise UsageError(message) from None
    except (OSError, ValueError):
        message = f"{path}: this file cannot be read"
        raise UsageError(message) from None


def _write_new(path: Path, data: bytes, mode: int) -> None:
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except (OSError, ValueError):
        message = f"{path}: this file cannot be written"
        raise UsageError(message) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A certificate with its private key."""

    certificate: x509.Certificate
    key: EllipticCurvePrivateKey

    def __repr__(self) -> str:
        return type(self).__name__

    def pem(self) -> bytes:
        """Return the certificate as PEM."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def key_pem(self) -> bytes:
        """Return the private key as PEM, unencrypted: PKCS #8."""
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )


def new_authority(begin: dt.datetime, lasts: dt.timedelta) -> Issued:
    """Make an authority that vouches for certificates, and for no other authority."""
    key = generate_private_key(SECP256R1())
    name = _name(f"suffice cluster {secrets.token_hex(4)}")
    builder = (
        _builder(name, name, key, key, begin, begin + lasts)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
    )
    return Issued(certificate=builder.sign(key, hashes.SHA256()), key=key)


def new_certificate(
    authority: Issued, role: str, *, begin: dt.datetime, ends: dt.datetime, is_server: bool
) -> Issued:
    """Issue a certificate with which a role opens links, and accepts them if it is a server."""
    key = generate_private_key(SECP256R1())
    purposes = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if is_server:
        purposes.append(ExtendedKeyUsageOID.SERVER_AUTH)
    issuer = authority.certificate.subject
    builder = (
        _builder(_name(role), issuer, key, authority.key, begin, ends)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(role)]), critical=False)
    )
    return Issued(certificate=builder.sign(authority.key, hashes.SHA256()), key=key)


def read_certificate(data: bytes) -> x509.Certificate | None:
    """Read a certificate in PEM; None where it is none."""
    try:
        return x509.load_pem_x509_certificate(data)
    except ValueError:
        return None


def read_key(data: bytes) -> EllipticCurvePrivateKey | None:
    """Read a private key in PEM; None where it is none of ours."""
    try:
        key = serialization.load_pem_private_key(data, password=None)
    except (ValueError, TypeError):
        return None
    return key if isinstance(key, EllipticCurvePrivateKey) else None


def vouches(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    """Tell whether an authority signed a certificate, its own too."""
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: EllipticCurvePrivateKey,
    issuer_key: EllipticCurvePrivateKey,
    begin: dt.datetime,
    ends: dt.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False
        )
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
