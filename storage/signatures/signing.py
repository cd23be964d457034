"""Ed25519 signatures of manifests, and the keys for them: who made a release, without asking a ledger.

What is signed is the manifest's canonical bytes with ``signature`` null: exactly the bytes that would
have been published without a signature, so that any Ed25519 tool can check it. The signing key is a
file, named by ``SUFFICE_SIGNING_KEY``; the key itself is never a parameter or an environment value.

Publications, their parts, withdrawals and audits are signed the same way, each behind a line that says what
it is: a signature of one kind is none of another. Publications have a key of their own,
``SUFFICE_PUBLICATION_KEY``. Whoever reads pins public keys.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import importlib.util
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from suffice.errors import MissingExtraError, SignatureError, UsageError
from suffice.pipeline.terms.declaration import canonical_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from suffice.pipeline.terms.declaration.documents import ShortId

    SignatureStatus = Literal["checked", "not_checked", "unsigned"]

KeyReference = str | os.PathLike[str]

PUBLIC_KEYS = "SUFFICE_PUBLIC_KEYS"
PUBLICATION_KEYS = "SUFFICE_PUBLICATION_PUBLIC_KEYS"

_LARGEST_KEY_FILE = 2**20
_HEX = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)
_PEM = re.compile(r"-----BEGIN PUBLIC KEY-----\s.*?-----END PUBLIC KEY-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PublicKey:
    """An Ed25519 public key: 32 bytes."""

    raw: bytes

    @property
    def key_id(self) -> str:
        """The first 16 hex digits of the SHA-256 of the raw key."""
        return hashlib.sha256(self.raw).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFiles:
    """A new pair of keys, as it was written."""

    key_id: ShortId
    private_key: Path
    public_key: Path


def new_keys(path: Path) -> KeyFiles:
    """Draw a pair of keys, and write it create-only: `path`, and beside it `path` with ``.pub``.

    Parameters
    ----------
    path : Path
        The private key's file: PKCS #8 in PEM, unencrypted, mode 0600.

    Raises
    ------
    UsageError
        Where a file exists or cannot be written; then nothing is left behind.
    MissingExtraError
    """
    require_signing()
    from suffice.storage.signatures import ed25519  # needs the extra

    key = ed25519.new_private_key()
    public = path.with_name(f"{path.name}.pub")
    _write_new(path, ed25519.private_pem(key), mode=0o600)
    try:
        _write_new(public, ed25519.public_pem(key), mode=0o644)
    except UsageError:
        path.unlink()
        raise
    return KeyFiles(key_id=PublicKey(ed25519.public_raw(key)).key_id, private_key=path, public_key=public)


def pinned_keys(
    references: Sequence[KeyReference] | None = None, *, variable: str = PUBLIC_KEYS
) -> tuple[PublicKey, ...] | None:
    """Return the public keys that a reader demands, or None where none are demanded.

    Parameters
    ----------
    references : sequence of str or path, optional
        See :func:`load_public_keys`. Where left out, the files that `variable` names, separated as in
        ``PATH``; none where that is empty or not set.
    variable : str
        ``SUFFICE_PUBLIC_KEYS``, of releases, or another of the environment.

    Raises
    ------
    UsageError
        Where `references` is one text instead of a list, or is empty: a list that was meant to hold
        keys must not let every release pass.
    """
    if references is None:
        listed = os.environ.get(variable)
        return load_public_keys([part for part in listed.split(os.pathsep) if part]) if listed else None
    if isinstance(references, str | os.PathLike):
        message = "public keys are given as a list, also where there is only one"
        raise UsageError(message)
    return load_public_keys(references)


def pinned_publication_keys(
    references: Sequence[KeyReference] | None = None,
) -> tuple[PublicKey, ...] | None:
    """Return the public keys that a reader demands of publications, or None where none are demanded.

    Parameters
    ----------
    references : sequence of str or path, optional
        As for :func:`pinned_keys`; where left out, the files of ``SUFFICE_PUBLICATION_PUBLIC_KEYS``.

    Raises
    ------
    UsageError
        As :func:`pinned_keys`; and where one of them is among ``SUFFICE_PUBLIC_KEYS``: whoever may publish
        posteriors may not sign releases.
    MissingExtraError
    """
    keys = pinned_keys(references, variable=PUBLICATION_KEYS)
    of_releases = pinned_keys() if keys else None
    shared = set(keys or ()) & set(of_releases or ())
    if shared:
        message = (
            f"the key {min(key.key_id for key in shared)} is demanded of publications, and {PUBLIC_KEYS} "
            "holds it for releases: give each a key of its own"
        )
        raise UsageError(message)
    return keys


def load_public_keys(references: Sequence[KeyReference]) -> tuple[PublicKey, ...]:
    """Read public keys; any of them may have signed.

    Parameters
    ----------
    references : sequence of str or path
        Each a file, a PEM text, or a raw key of 64 hex digits. Files and texts may hold several keys:
        PEM blocks, lines of 64 hex digits, and lines that are empty or begin with ``#``.

    Raises
    ------
    UsageError
        Where one of them holds anything else, or there is none.
    MissingExtraError
    """
    require_signing()
    keys: dict[PublicKey, None] = {}
    for reference in references:
        text = os.fspath(reference)
        if "-----BEGIN " in text:
            parsed = _parse(text, "the public key given as text")
        elif _HEX.fullmatch(text):
            parsed = [PublicKey(bytes.fromhex(text))]
        else:
            location = f"the public key file {text}"
            parsed = _parse(read_key_file(Path(text), location).decode("utf-8", "replace"), location)
        keys.update(dict.fromkeys(parsed))
    if not keys:
        message = "no public key is given: name a file that `suffice keys new` wrote, or leave the list out"
        raise UsageError(message)
    return tuple(keys)


def require_signing() -> None:
    """Refuse to go on where the optional part is not installed.

    Raises
    ------
    MissingExtraError
    """
    if importlib.util.find_spec("cryptography") is None:
        feature = "signing releases, and checking their signatures,"
        raise MissingExtraError(feature, "signing")


def read_key_file(path: Path, location: str) -> bytes:
    """Return a key file's bytes.

    Raises
    ------
    UsageError
        Where it cannot be read; the text begins with `location`.
    """
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST_KEY_FILE)
    except (OSError, ValueError) as error:
        message = f"{location} cannot be read: {getattr(error, 'strerror', None) or 'its name is no path'}"
        raise UsageError(message) from None


def _parse(text: str, location: str) -> list[PublicKey]:
    from suffice.storage.signatures import ed25519  # needs the extra

    if "PRIVATE KEY-----" in text:
        message = f"{location} holds a private key: give readers the .pub file, and never give away this one"
        raise UsageError(message)
    raw = [ed25519.read_public_key(block.encode()) for block in _PEM.findall(text)]
    for line in _PEM.sub("", text).splitlines():
        words = line.strip()
        if words and not words.startswith("#"):
            raw.append(bytes.fromhex(words) if _HEX.fullmatch(words) else None)
    keys = [PublicKey(key) for key in raw if key is not None]
    if not keys or len(keys) < len(raw):
        message = f"{location} is no list of Ed25519 public keys, in PEM or of 64 hex digits each"
        raise UsageError(message)
    return keys


def _write_new(path: Path, data: bytes, *, mode: int) -> None:
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        message = f"{path} exists, and keys are never overwritten: choose another --out"
        raise UsageError(message) from None
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror}"
        raise UsageError(message) from None


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
ABOUT = Kind(name="release's description", prefix=b"suffice about 1\n")


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
