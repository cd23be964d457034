"""Ed25519 by the ``cryptography`` package: the only module that imports it, and is imported late."""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)


def new_private_key() -> Ed25519PrivateKey:
    """Draw a private key."""
    return Ed25519PrivateKey.generate()


def private_pem(key: Ed25519PrivateKey) -> bytes:
    """Write a private key: PKCS #8 in PEM, unencrypted."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def public_pem(key: Ed25519PrivateKey) -> bytes:
    """Write a private key's public key: SubjectPublicKeyInfo in PEM."""
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def public_raw(key: Ed25519PrivateKey) -> bytes:
    """Return a private key's public key, 32 bytes."""
    return key.public_key().public_bytes_raw()


def read_private_key(pem: bytes) -> Ed25519PrivateKey | None:
    """Read what :func:`private_pem` writes; None where it is anything else, or encrypted."""
    try:
        key = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, Ed25519PrivateKey) else None


def read_public_key(pem: bytes) -> bytes | None:
    """Return the 32 bytes of what :func:`public_pem` writes; None where it is anything else."""
    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        return None
    return key.public_bytes_raw() if isinstance(key, Ed25519PublicKey) else None


def fits(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """Tell whether the holder of a public key's private key signed a message."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True
