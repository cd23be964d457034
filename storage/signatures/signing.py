"""Ed25519 signatures of manifests: who made a release, without asking a ledger.

What is signed is the manifest's canonical bytes with ``signature`` null: exactly the bytes that would
have been published without a signature, so that any Ed25519 tool can check it. The signing key is a
file, named by ``SUFFICE_SIGNING_KEY``; the key itself is never a parameter or an environment value.

Publications, their parts, withdrawals and audits are signed the same way, each behind a line that says what
it is: a signature of one kind is none of another. Publications have a key of their own,
``SUFFICE_PUBLICATION_KEY``.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from suffice.errors import SignatureError, UsageError
from suffice.pipeline.terms.declaration import canonical_json
from suffice.storage.signatures.keys import (
    PUBLIC_KEYS,
    PUBLICATION_KEYS,
    PublicKey,
    pinned_keys,
    pinned_publication_keys,
    read_key_file,
    require_signing,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    SignatureStatus = Literal["checked", "not_checked", "unsigned"]

ALGORITHM = "ed25519"
SIGNING_KEY = "SUFFICE_SIGNING_KEY"
PUBLICATION_KEY = "SUFFICE_PUBLICATION_KEY"

_SIGNATURE_BYTES = 64
_OPEN_TO_OTHERS = 0o037
"""Bits that a private key's file may not have: all of others', and the group's except reading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What is signed: its name for messages, and the bytes that stand before its canonical bytes."""

    name: str
    prefix: bytes


RELEASE = Kind(name="release", prefix=b"")
PUBLICATION = Kind(name="publication", prefix=b"suffice publication 1\n")
PART = Kind(name="part", prefix=b"suffice part 1\n")
AUDIT = Kind(name="audit", prefix=b"suffice audit 1\n")
WITHDRAWAL = Kind(name="withdrawal", prefix=b"suffice withdrawal 1\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    """What signs documents; its text never shows the private key."""

    public_key: PublicKey
    _private_key: Ed25519PrivateKey = field(repr=False)

    def sign(self, content: Mapping[str, Any], kind: Kind = RELEASE) -> dict[str, str]:
        """Return the ``signature`` that a document's content gets."""
        value = self._private_key.sign(signed_message(content, kind))
        return {
            "algorithm": ALGORITHM,
            "key_id": self.public_key.key_id,
            "value": base64.b64encode(value).decode(),
        }


def signed_message(content: Mapping[str, Any], kind: Kind = RELEASE) -> bytes:
    """Return what a signature covers: the kind's prefix, and the canonical bytes with ``signature`` null."""
    return kind.prefix + canonical_json.encode({**content, "signature": None})


def load_signer(path: Path) -> Signer:
    """Read a private key's file.

    Raises
    ------
    UsageError
        Where it cannot be read, is open to other users, or is no unencrypted Ed25519 key in PEM. The
        text never repeats what the file holds.
    MissingExtraError
    """
    require_signing()
    from suffice.storage.signatures import ed25519  # needs the extra

    data = read_key_file(path, f"the signing key {path}")
    if stat.S_IMODE(path.stat().st_mode) & _OPEN_TO_OTHERS:
        message = f"the signing key {path} is open to other users: chmod 600 it; if in doubt, make another"
        raise UsageError(message)
    private_key = ed25519.read_private_key(data)
    if private_key is None:
        message = f"the signing key {path} is no unencrypted Ed25519 key in PEM: `suffice keys new` makes one"
        raise UsageError(message)
    return Signer(public_key=PublicKey(ed25519.public_raw(private_key)), _private_key=private_key)


def signer_from_environment() -> Signer | None:
    """Return what ``SUFFICE_SIGNING_KEY`` names, or None where it is not set.

    Raises
    ------
    UsageError
        As :func:`load_signer`; and where ``SUFFICE_PUBLIC_KEYS`` is set, but without the key that signs:
        this machine would refuse what it has just released.
    MissingExtraError
    """
    path = os.environ.get(SIGNING_KEY)
    if not path:
        return None
    signer = load_signer(Path(path))
    pinned = pinned_keys()
    if pinned is not None and signer.public_key not in pinned:
        message = (
            f"{PUBLIC_KEYS} does not hold the key {signer.public_key.key_id} that {SIGNING_KEY} signs with: "
            "add its public key, or unset one of the two"
        )
        raise UsageError(message)
    return signer


def publication_signer_from_environment() -> Signer | None:
    """Return what ``SUFFICE_PUBLICATION_KEY`` names, or None where it is not set.

    Raises
    ------
    UsageError
        As :func:`load_signer`; where it is also the key that releases are signed with, or one that
        ``SUFFICE_PUBLIC_KEYS`` holds; and where ``SUFFICE_PUBLICATION_PUBLIC_KEYS`` is set without it.
    MissingExtraError
    """
    path = os.environ.get(PUBLICATION_KEY)
    if not path:
        return None
    signer = load_signer(Path(path))
    releases = set(pinned_keys() or ())
    if os.environ.get(SIGNING_KEY):
        with contextlib.suppress(UsageError):  # a key of somebody else: this user may not read it
            releases.add(load_signer(Path(os.environ[SIGNING_KEY])).public_key)
    if signer.public_key in releases:
        message = (
            f"{PUBLICATION_KEY} names the key {signer.public_key.key_id}, which signs releases: publications "
            "need a key of their own, `suffice keys new` makes one"
        )
        raise UsageError(message)
    pinned = pinned_publication_keys()
    if pinned is not None and signer.public_key not in pinned:
        message = (
            f"{PUBLICATION_KEYS} does not hold the key {signer.public_key.key_id} that {PUBLICATION_KEY} "
            "signs with: add its public key, or unset one of the two"
        )
        raise UsageError(message)
    return signer


def check_signature(content: Mapping[str, Any], keys: Sequence[PublicKey], kind: Kind = RELEASE) -> None:
    """Refuse a document that none of the pinned keys signed.

    Parameters
    ----------
    content : mapping
        A document that its reader accepts, as :func:`suffice.storage.releases.manifest.parse_manifest`.
    keys : sequence of PublicKey
        Not empty.
    kind : Kind

    Raises
    ------
    SignatureError
    """
    signature, pinned = content["signature"], ", ".join(key.key_id for key in keys)
    if signature is None:
        message = f"the {kind.name} is not signed, and a signature by {pinned} is demanded"
        raise SignatureError(message)
    candidates = [key for key in keys if key.key_id == signature["key_id"]]
    if not candidates:
        message = f"the {kind.name} is signed with the key {signature['key_id']}, and {pinned} is demanded"
        raise SignatureError(message)
    from suffice.storage.signatures import ed25519  # whoever loaded keys has the extra

    value, signed = base64.b64decode(signature["value"]), signed_message(content, kind)
    if not any(ed25519.fits(key.raw, value, signed) for key in candidates):
        message = f"the {kind.name}'s signature is wrong: {signature['key_id']} did not sign it"
        raise SignatureError(message)


def signature_status(content: Mapping[str, Any], *, checked: bool) -> SignatureStatus:
    """Say how far a manifest's signature was looked at."""
    if content["signature"] is None:
        return "unsigned"
    return "checked" if checked else "not_checked"


def is_signature_value(text: str) -> bool:
    """Tell whether a text is 64 bytes in the one form of base64 that encoding them gives."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return len(raw) == _SIGNATURE_BYTES and base64.b64encode(raw).decode() == text
