"""Audits of specs as files: signed where there is a key, and what a grant demands of one."""

from __future__ import annotations

import hashlib
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from suffice.errors import UsageError
from suffice.pipeline.terms.declaration import canonical_json
from suffice.storage.ledger.account import NamedAudit
from suffice.storage.releases.manifest import software_versions
from suffice.storage.signatures.signing import AUDIT, check_signature

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from suffice.pipeline.terms.declaration.data_contract import DataContract
    from suffice.storage.signatures.signing import PublicKey, Signer

LARGEST_AUDIT = 1 << 20

Text = Annotated[str, Field(max_length=2000)]
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Trials = Annotated[int, Field(ge=0, le=10**12)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class AuditLevel(_Strict):
    """One level of an audit."""

    name: Text
    trials: Trials
    of: Text
    largest_loss_over_declared: Text | None
    power: Text | None
    said: Text


class AuditFinding(_Strict):
    """One thing that was found wrong."""

    level: Text
    check: Text
    what: Text


class AuditMutant(_Strict):
    """One mutant, and what caught it."""

    name: Text
    caught_by: Text | None


class AuditContract(_Strict):
    """The contract that the audited account was taken to have, stated or implied by the spec."""

    of: Literal["account", "spec"]
    sha256: Hash


class AuditSignature(_Strict):
    """Who signed it, and how."""

    algorithm: Literal["ed25519"]
    key_id: Text
    value: Text


class AuditDocument(_Strict):
    """What an audit's file holds."""

    audit: Literal[True]
    format_version: Literal[1]
    ok: bool
    verdict: Text
    name: Text
    dataset: Text
    plan_hash: Hash
    window: Text
    source: Text
    cluster: Text
    contract: AuditContract | None
    levels: list[AuditLevel]
    findings: list[AuditFinding]
    mutants: list[AuditMutant]
    false_alarm: Text
    not_tried: list[Text]
    not_seen: list[Text]
    versions: dict[str, Text]
    created: Text
    seconds: Text
    signature: AuditSignature | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FittingAudit:
    """An audit that a grant may name.

    Attributes
    ----------
    named : NamedAudit
        As the ledger keeps it.
    place : Path
        Of its file, for messages.
    contract : AuditContract or None
        Which the audited account was taken to have.
    """

    named: NamedAudit
    place: Path
    contract: AuditContract | None

    def check_contract(self, granted: DataContract | None) -> None:
        """Refuse an audit that took for granted what the account does not have.

        Parameters
        ----------
        granted : DataContract or None
            What the account has from this grant on; none takes it back.

        Raises
        ------
        UsageError
        """
        if self.contract is None:
            return
        rule = None
        if granted is None:
            rule = "it is of an account with a contract: grant one, or audit with --no-contract"
        elif self.contract.of == "account" and self.contract.sha256 != granted.sha256:
            rule = "it is of another contract: audit with --contract, by the account's"
        if rule is not None:
            message = f"--audited: {self.place} serves no grant: {rule}"
            raise UsageError(message)


def encode_audit(content: Mapping[str, Any], signer: Signer | None) -> bytes:
    """Return an audit's file: canonical JSON, signed where there is a key."""
    document: dict[str, Any] = {**content, "signature": None}
    if signer is not None:
        document["signature"] = signer.sign(document, AUDIT)
    return canonical_json.encode(document) + b"\n"


def read_audit(path: Path, keys: Sequence[PublicKey] | None = None) -> tuple[AuditDocument, bytes]:
    """Read an audit's file, and check its signature where keys are demanded.

    Raises
    ------
    UsageError
        Where it cannot be read, or is no audit's.
    SignatureError
        Where none of the keys signed it.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode) or path.stat().st_size > LARGEST_AUDIT:
            message = f"--audited {path}: it is no file, or has more than {LARGEST_AUDIT} bytes"
            raise UsageError(message)
        data = path.read_bytes()
    except OSError:
        message = f"--audited {path}: it cannot be read"
        raise UsageError(message) from None
    try:
        content = canonical_json.decode(data.removesuffix(b"\n"))
        document = AuditDocument.model_validate(content)
    except (ValueError, ValidationError):
        message = f"--audited {path}: it is no audit; `suffice audit SPEC --out FILE` writes one"
        raise UsageError(message) from None
    if keys is not None:
        check_signature(document.model_dump(), keys, AUDIT)
    return document, data


def fitting_audit(path: Path, dataset: str, keys: Sequence[PublicKey] | None = None) -> FittingAudit:
    """Return an audit that found nothing, of a spec of this data set, by this very software.

    Raises
    ------
    UsageError
        Where it is of another data set, found something, or is void; naming what differs.
    SignatureError
    """
    document, data = read_audit(path, keys)
    missed = [mutant.name for mutant in document.mutants if mutant.caught_by is None]
    versions = software_versions([name for name in document.versions if name != "python"])
    rule = None
    if document.dataset != dataset:
        rule = f"it is of the data set {document.dataset}"
    elif not document.ok or document.findings or missed or not document.mutants:
        rule = f"its verdict is: {document.verdict}"
    elif document.versions != versions:
        changed = sorted(
            name
            for name in {*document.versions, *versions}
            if document.versions.get(name) != versions.get(name)
        )
        rule = f"it is void here: another version of {', '.join(changed)} is installed"
    if rule is not None:
        message = f"--audited: {path} serves no grant: {rule}; audit the spec again, with `suffice audit`"
        raise UsageError(message)
    named = NamedAudit(sha256=hashlib.sha256(data).hexdigest(), plan_hash=document.plan_hash)
    return FittingAudit(named=named, place=path, contract=document.contract)
