"""Files of keys: written once, read strictly, and never shown."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from suffice.errors import MissingExtraError, UsageError
from suffice.storage.signatures.signing import PublicKey, load_public_keys, load_signer, new_keys, pinned_keys

if TYPE_CHECKING:
    from pathlib import Path


def pem(key: ed25519.Ed25519PublicKey | ec.EllipticCurvePublicKey) -> str:
    return key.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    ).decode()


def raw_hex() -> str:
    return ed25519.Ed25519PrivateKey.generate().public_key().public_bytes_raw().hex()


def test_a_new_pair_is_standard_pem_and_only_its_owner_may_read_the_private_key(tmp_path: Path) -> None:
    files = new_keys(tmp_path / "key.pem")
    assert stat.S_IMODE(files.private_key.stat().st_mode) == 0o600
    private = serialization.load_pem_private_key(files.private_key.read_bytes(), password=None)
    public = serialization.load_pem_public_key(files.public_key.read_bytes())
    assert isinstance(private, ed25519.Ed25519PrivateKey)
    assert isinstance(public, ed25519.Ed25519PublicKey)
    raw = public.public_bytes_raw()
    assert private.public_key().public_bytes_raw() == raw
    assert files.key_id == hashlib.sha256(raw).hexdigest()[:16] == PublicKey(raw).key_id
    assert files.public_key == tmp_path / "key.pem.pub"
    assert new_keys(tmp_path / "other.pem").key_id != files.key_id


@pytest.mark.parametrize("taken", ["key.pem", "key.pem.pub"])
def test_keys_are_never_overwritten_and_half_a_pair_is_never_left(tmp_path: Path, taken: str) -> None:
    (tmp_path / taken).write_text("mine")
    with pytest.raises(UsageError, match="never overwritten"):
        new_keys(tmp_path / "key.pem")
    assert [path.name for path in tmp_path.iterdir()] == [taken]
    assert (tmp_path / taken).read_text() == "mine"
    with pytest.raises(UsageError, match="cannot be written"):
        new_keys(tmp_path / "absent" / "key.pem")


def test_public_keys_come_as_files_texts_and_hex_and_each_counts_once(tmp_path: Path) -> None:
    first, second = (new_keys(tmp_path / name) for name in ("a.pem", "b.pem"))
    third = raw_hex()
    bundle = tmp_path / "keys.txt"
    bundle.write_text(
        f"# until 2026\n{first.public_key.read_text()}\n{second.public_key.read_text()}\n  {third}  \n"
    )
    keys = load_public_keys([str(bundle)])
    assert [key.key_id for key in keys] == [
        first.key_id,
        second.key_id,
        PublicKey(bytes.fromhex(third)).key_id,
    ]
    again = load_public_keys([first.public_key, second.public_key.read_text(), third.upper(), str(bundle)])
    assert again == keys


def test_what_is_no_public_key_is_refused_and_never_repeated(tmp_path: Path) -> None:
    files = new_keys(tmp_path / "key.pem")
    curve = ec.generate_private_key(ec.SECP256R1())
    public = files.public_key.read_text()
    damaged = public[:40] + ("A" if public[40] != "A" else "B") + public[41:-30] + public[-29:]
    secret = files.private_key.read_text().splitlines()[1]
    cases = {
        "private": (files.private_key.read_text(), "holds a private key"),
        "both": (public + files.private_key.read_text(), "holds a private key"),
        "empty": ("", "is no list"),
        "comment": ("# nothing\n", "is no list"),
        "short": ("ab" * 31, "is no list"),
        "curve": (pem(curve.public_key()), "is no list"),
        "damaged": (damaged, "is no list"),
        "trailing": (f"{public}\nand more", "is no list"),
        "certificate": ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "is no list"),
    }
    for name, (text, rule) in cases.items():
        path = tmp_path / name
        path.write_text(text)
        with pytest.raises(UsageError, match=rule) as caught:
            load_public_keys([path])
        assert secret not in str(caught.value)
    for reference in (tmp_path / "absent", tmp_path, "nul\0"):
        with pytest.raises(UsageError, match="cannot be read"):
            load_public_keys([reference])
    with pytest.raises(UsageError, match="private key"):
        load_public_keys([files.private_key.read_text()])


def test_a_list_without_keys_demands_something_and_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = new_keys(tmp_path / "key.pem")
    monkeypatch.delenv("SUFFICE_PUBLIC_KEYS", raising=False)
    assert pinned_keys() is None
    with pytest.raises(UsageError, match="no public key is given"):
        pinned_keys([])
    with pytest.raises(UsageError, match="as a list"):
        pinned_keys(str(files.public_key))
    monkeypatch.setenv("SUFFICE_PUBLIC_KEYS", "")
    assert pinned_keys() is None
    monkeypatch.setenv("SUFFICE_PUBLIC_KEYS", os.pathsep)
    with pytest.raises(UsageError, match="no public key is given"):
        pinned_keys()
    other = raw_hex()
    monkeypatch.setenv("SUFFICE_PUBLIC_KEYS", f"{files.public_key}{os.pathsep}{other}")
    pinned = pinned_keys()
    assert pinned is not None
    assert [key.key_id for key in pinned] == [files.key_id, PublicKey(bytes.fromhex(other)).key_id]
    explicit = pinned_keys([other])
    assert explicit is not None
    assert len(explicit) == 1


def test_without_the_extra_the_pip_line_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = new_keys(tmp_path / "key.pem")
    monkeypatch.setitem(sys.modules, "cryptography", None)
    for call in (
        lambda: new_keys(tmp_path / "more.pem"),
        lambda: load_public_keys([files.public_key]),
        lambda: load_signer(files.private_key),
    ):
        with pytest.raises(MissingExtraError, match=r"pip install 'suffice\[signing\]'"):
            call()
    assert not (tmp_path / "more.pem").exists()
