"""Signatures: over exactly the unsigned bytes, by a key that the reader pinned, or the release is refused."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from suffice.errors import ReleaseCorruptError, SignatureError, UsageError
from suffice.pipeline.terms.declaration import canonical_json
from suffice.storage.operations.verify_release import verify_release
from suffice.storage.releases.manifest import checksum
from suffice.storage.releases.manifest_reader import parse_manifest
from suffice.storage.releases.release_store import open_release
from suffice.storage.signatures import ed25519
from suffice.storage.signatures.signing import (
    PublicKey,
    Signer,
    check_signature,
    load_signer,
    new_keys,
    signed_message,
    signer_from_environment,
)
from support.releases import compose, data_files, make_plan, make_store, publish, some_values

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    return load_signer(new_keys(tmp_path / "key.pem").private_key)


def hexed(signer: Signer) -> str:
    return signer.public_key.raw.hex()


def test_the_library_does_what_the_standard_says() -> None:
    """RFC 8032, 7.1, test 2."""
    public = bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
    signature = bytes.fromhex(
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )
    assert ed25519.fits(public, signature, b"\x72")
    assert not ed25519.fits(public, signature, b"\x73")
    # The same point with a scalar beyond the group's order would be a second signature.
    order = 2**252 + 27742317777372353535851937790883648493
    scalar = int.from_bytes(signature[32:], "little") + order
    assert not ed25519.fits(public, signature[:32] + scalar.to_bytes(32, "little"), b"\x72")


def test_what_is_signed_are_the_bytes_that_would_stand_there_unsigned(tmp_path: Path, signer: Signer) -> None:
    plan = make_plan()
    files = data_files(plan, some_values(plan), make_store(tmp_path / "store"))
    unsigned, signed = compose(plan, files), compose(plan, files, signer=signer)
    content = json.loads(signed)
    assert signed_message(content) == unsigned
    assert content["checksum"] == json.loads(unsigned)["checksum"] == checksum(content)
    assert content["signature"]["algorithm"] == "ed25519"
    assert content["signature"]["key_id"] == signer.public_key.key_id
    assert ed25519.fits(signer.public_key.raw, base64.b64decode(content["signature"]["value"]), unsigned)
    assert compose(plan, files, signer=signer) == signed
    parsed = parse_manifest(signed).signature
    assert parsed is not None
    assert parsed.key_id == signer.public_key.key_id


@pytest.mark.parametrize(
    "change",
    [
        {"algorithm": "rsa"},
        {"key_id": "0"},
        {"key_id": None},
        {"value": ""},
        {"value": "A" * 86},
        {"value": "A" * 85 + "B=="},
        {"value": "A" * 86 + "==\n"},
        {"value": "-" + "A" * 85 + "=="},
        {"more": "x"},
    ],
)
def test_a_malformed_signature_is_a_corrupt_manifest(
    tmp_path: Path, signer: Signer, change: dict[str, Any]
) -> None:
    plan = make_plan()
    files = data_files(plan, some_values(plan), make_store(tmp_path / "store"))
    content = json.loads(compose(plan, files, signer=signer))
    well_formed = {**content, "signature": {**content["signature"], "value": "A" * 86 + "=="}}
    parse_manifest(canonical_json.encode(well_formed))
    with pytest.raises(ReleaseCorruptError):
        parse_manifest(
            canonical_json.encode({**content, "signature": {**well_formed["signature"], **change}})
        )


def test_a_demanded_signature_must_be_there_known_and_right(tmp_path: Path, signer: Signer) -> None:
    other = load_signer(new_keys(tmp_path / "other.pem").private_key)
    plan = make_plan()
    signed = str(publish(tmp_path / "signed", plan, signer=signer))
    unsigned = str(publish(tmp_path / "unsigned", plan))
    for keys in ([hexed(signer)], [hexed(other), hexed(signer)], [tmp_path / "key.pem.pub"]):
        assert open_release(signed, public_keys=keys).name == "flights"
        verification = verify_release(signed, public_keys=keys)
        assert (verification.ok, verification.signature) == (True, "checked")
    for location, keys, rule, status in (
        (signed, [hexed(other)], "which is not pinned|is demanded", "checked"),
        (unsigned, [hexed(signer)], "is not signed", "unsigned"),
    ):
        with pytest.raises(SignatureError, match=rule) as caught:
            open_release(location, public_keys=keys)
        assert caught.value.exit_status == 5
        verification = verify_release(location, public_keys=keys)
        assert (verification.ok, verification.signature, len(verification.problems)) == (False, status, 1)
    assert verify_release(signed).signature == "not_checked"
    assert verify_release(unsigned).signature == "unsigned"
    assert open_release(unsigned).manifest["signature"] is None


def test_the_environment_pins_for_every_reader(
    tmp_path: Path, signer: Signer, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = str(publish(tmp_path / "unsigned", make_plan()))
    assert open_release(location).name == "flights"
    monkeypatch.setenv("SUFFICE_PUBLIC_KEYS", str(tmp_path / "key.pem.pub"))
    with pytest.raises(SignatureError):
        open_release(location)
    assert not verify_release(location).ok
    assert open_release(str(publish(tmp_path / "signed", make_plan(), signer=signer))).name == "flights"


def test_a_signature_under_another_keys_name_does_not_fit(tmp_path: Path, signer: Signer) -> None:
    """Whoever has a key of their own can state any key's id."""
    forger = load_signer(new_keys(tmp_path / "forger.pem").private_key)
    content = json.loads(publish(tmp_path / "store", make_plan()).joinpath("manifest.json").read_bytes())
    forged = {**content, "signature": {**forger.sign(content), "key_id": signer.public_key.key_id}}
    check_signature({**content, "signature": forger.sign(content)}, [forger.public_key])
    with pytest.raises(SignatureError, match="did not sign it"):
        check_signature(forged, [signer.public_key])
    with pytest.raises(SignatureError, match="did not sign it"):
        check_signature(forged, [signer.public_key, forger.public_key])


def test_a_signature_is_for_one_manifest(tmp_path: Path, signer: Signer) -> None:
    """Everything that a manifest states is covered, its checksum too."""
    content = json.loads(
        publish(tmp_path / "store", make_plan(), signer=signer).joinpath("manifest.json").read_bytes()
    )
    check_signature(content, [signer.public_key])
    for name in content.keys() - {"signature"}:
        with pytest.raises(SignatureError, match="signature is wrong"):
            check_signature({**content, name: "x"}, [signer.public_key])
        with pytest.raises(SignatureError, match="signature is wrong"):
            check_signature({key: content[key] for key in content if key != name}, [signer.public_key])


def test_a_signer_never_shows_its_key(tmp_path: Path) -> None:
    files = new_keys(tmp_path / "key.pem")
    text = repr(load_signer(files.private_key))
    private = serialization.load_pem_private_key(files.private_key.read_bytes(), password=None)
    secret = private.private_bytes_raw()  # type: ignore[union-attr]
    assert secret.hex() not in text
    assert repr(secret) not in text
    assert files.private_key.read_text().splitlines()[1] not in text


def test_a_signing_key_that_others_can_reach_or_that_is_none_is_refused(tmp_path: Path) -> None:
    path = new_keys(tmp_path / "key.pem").private_key
    for mode in (0o644, 0o604, 0o620, 0o660, 0o602):
        path.chmod(mode)
        with pytest.raises(UsageError, match="open to other users"):
            load_signer(path)
    for mode in (0o640, 0o440, 0o400):
        path.chmod(mode)
        assert load_signer(path).public_key.key_id
    key = ed25519.read_private_key(path.read_bytes())
    assert key is not None
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"x"),
    )
    curve = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    for name, data in (("encrypted", encrypted), ("curve", curve), ("public", b""), ("text", b"4242")):
        other = tmp_path / name
        other.write_bytes(data)
        other.chmod(0o600)
        with pytest.raises(UsageError, match="no unencrypted Ed25519") as caught:
            load_signer(other)
        assert "4242" not in str(caught.value)
    with pytest.raises(UsageError, match="cannot be read"):
        load_signer(tmp_path / "absent")


def test_the_environment_names_the_key_and_a_publisher_that_would_refuse_itself_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SUFFICE_SIGNING_KEY", raising=False)
    monkeypatch.delenv("SUFFICE_PUBLIC_KEYS", raising=False)
    assert signer_from_environment() is None
    files, other = new_keys(tmp_path / "key.pem"), new_keys(tmp_path / "other.pem")
    monkeypatch.setenv("SUFFICE_SIGNING_KEY", str(files.private_key))
    signer = signer_from_environment()
    assert signer is not None
    assert signer.public_key.key_id == files.key_id
    monkeypatch.setenv("SUFFICE_PUBLIC_KEYS", str(other.public_key))
    with pytest.raises(UsageError, match="does not hold the key"):
        signer_from_environment()
    monkeypatch.setenv("SUFFICE_PUBLIC_KEYS", f"{other.public_key}:{files.public_key}")
    assert signer_from_environment() is not None


def test_equal_keys_have_equal_ids_and_only_they(signer: Signer) -> None:
    assert PublicKey(signer.public_key.raw) == signer.public_key
    assert PublicKey(bytes(32)).key_id == "66687aadf862bd77"
