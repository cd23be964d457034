"""Files of audits: what a grant takes, and what it refuses."""

from __future__ import annotations

import hashlib
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from suffice.auditing.audit import FALSE_ALARM, PACKAGES, AssumedContract, Audit, Flaw, Level, MutantResult
from suffice.errors import SignatureError, UsageError
from suffice.pipeline.terms.declaration import canonical_json
from suffice.pipeline.terms.declaration.data_contract import parse_contract
from suffice.pipeline.terms.declaration.documents import document
from suffice.storage.operations.audits import encode_audit, fitting_audit, read_audit
from suffice.storage.releases.manifest import software_versions
from suffice.storage.signatures.signing import load_public_keys, load_signer, new_keys

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.terms.declaration.data_contract import DataContract


CONTRACT = parse_contract('{"columns": {"day": "date"}, "unit": "row", "source": {"kind": "parquet"}}', "it")


def an_audit(**changes: Any) -> dict[str, Any]:
    """Return the document of an audit that found nothing."""
    fields: dict[str, Any] = {
        "name": "flights",
        "dataset": "passengers",
        "plan_hash": "a" * 64,
        "window": "all",
        "source": "parquet",
        "cluster": "threads",
        "contract": None,
        "levels": (Level(name="exact", trials=10, of="pairs of neighbours", largest="1"),),
        "findings": (),
        "mutants": (MutantResult(name="one draw for all cells", caught_by="noise: draws of one release"),),
        "false_alarm": FALSE_ALARM,
        "not_tried": (),
        "versions": software_versions(PACKAGES),
        "created": "2026-01-01T00:00:00Z",
        "seconds": 1.0,
        **changes,
    }
    written: dict[str, Any] = document(Audit(**fields))
    return written


def test_a_grant_names_the_audit_by_its_hash(tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    path.write_bytes(encode_audit(an_audit(), None))
    audit = fitting_audit(path, "passengers")
    assert audit.named.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert audit.named.plan_hash == "a" * 64


@pytest.mark.parametrize(
    ("of", "sha256", "granted", "rule"),
    [
        ("spec", "b" * 64, None, "grant one, or audit with --no-contract"),
        ("account", "b" * 64, None, "grant one, or audit with --no-contract"),
        ("account", "b" * 64, CONTRACT, "of another contract"),
        ("account", CONTRACT.sha256, CONTRACT, None),
        ("spec", "b" * 64, CONTRACT, None),
    ],
)
def test_an_audit_holds_for_accounts_with_the_contract_it_took_for_granted(
    tmp_path: Path, of: str, sha256: str, granted: DataContract | None, rule: str | None
) -> None:
    path = tmp_path / "audit.json"
    path.write_bytes(encode_audit(an_audit(contract=AssumedContract(of=of, sha256=sha256)), None))
    audit = fitting_audit(path, "passengers")
    with nullcontext() if rule is None else pytest.raises(UsageError, match=rule):
        audit.check_contract(granted)


FOUND = Flaw(level="exact", check="joint loss of neighbours", what="twice")


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"dataset": "others"}, "it is of the data set others"),
        ({"findings": (FOUND,)}, "its verdict is: 1 found"),
        ({"mutants": (MutantResult(name="m", caught_by=None),)}, "the tests miss 1 of 1 mutants"),
        ({"mutants": ()}, "by tests that no mutant was tried on"),
        ({"versions": {**software_versions(PACKAGES), "suffice": "0.0.1"}}, "another version of suffice"),
        ({"versions": {**software_versions(PACKAGES), "opendp": "0.1"}}, "another version of opendp"),
    ],
)
def test_an_audit_that_does_not_fit_serves_no_grant(
    tmp_path: Path, changes: dict[str, Any], rule: str
) -> None:
    path = tmp_path / "audit.json"
    path.write_bytes(encode_audit(an_audit(**changes), None))
    with pytest.raises(UsageError, match=rule):
        fitting_audit(path, "passengers")


def test_a_verdict_that_was_edited_serves_no_grant(tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    path.write_bytes(canonical_json.encode({**an_audit(findings=(FOUND,)), "ok": True}))
    with pytest.raises(UsageError, match="its verdict is"):
        fitting_audit(path, "passengers")
    path.write_bytes(b"{}")
    with pytest.raises(UsageError, match="is no audit"):
        read_audit(path)
    with pytest.raises(UsageError, match="cannot be read"):
        read_audit(tmp_path / "nothing")


def test_a_signature_is_demanded_where_keys_are(tmp_path: Path) -> None:
    pairs = [new_keys(tmp_path / f"{name}.pem") for name in "ab"]
    keys = [load_public_keys([pair.public_key]) for pair in pairs]
    path = tmp_path / "audit.json"
    path.write_bytes(encode_audit(an_audit(), load_signer(pairs[0].private_key)))
    assert fitting_audit(path, "passengers", keys[0]).named.plan_hash == "a" * 64
    with pytest.raises(SignatureError, match="is demanded"):
        fitting_audit(path, "passengers", keys[1])
    path.write_bytes(encode_audit(an_audit(), None))
    with pytest.raises(SignatureError, match="not signed"):
        fitting_audit(path, "passengers", keys[0])


def test_it_never_says_private() -> None:
    assert an_audit()["verdict"] == "nothing found by tests that catch these 1 mutants"
    assert "private" not in str(an_audit(findings=(FOUND,)))
