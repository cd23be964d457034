"""Files of Ed25519 keys: how pairs are made, and which public keys a reader pins."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from suffice.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

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

    key_id: str
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
