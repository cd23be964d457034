"""How an authority is made, and how it issues certificates: elliptic-curve keys (P-256), X.509."""

from __future__ import annotations

from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING

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
    import datetime as dt


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
    name = _name(f"suffice cluster {token_hex(4)}")
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
