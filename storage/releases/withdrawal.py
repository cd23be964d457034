"""A withdrawal, ``withdrawn.json``: put once beside a manifest, read by everybody who opens the release."""

from __future__ import annotations

import hashlib
from datetime import UTC
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, ValidationError

from suffice.errors import ReleaseCorruptError, SignatureError, UsageError
from suffice.pipeline.terms.declaration import canonical_json
from suffice.pipeline.terms.released.withdrawal import Withdrawal
from suffice.storage.releases.manifest_model import (
    Hex16,
    Hex64,
    Hour,
    SignatureEntry,
    StrictModel,
)
from suffice.storage.signatures.signing import WITHDRAWAL, check_signature

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from suffice.storage.signatures.signing import PublicKey, Signer


WITHDRAWN = "withdrawn.json"
LARGEST_WITHDRAWAL = 8192
"""In bytes."""
LONGEST_REASON = 1000

_FORMAT_VERSION = 1


class StatedWithdrawal(StrictModel):
    """What ``withdrawn.json`` states, of format 1."""

    format_version: Literal[1]
    release_id: Hex16
    manifest_sha256: Hex64
    reason: Annotated[str, Field(min_length=1, max_length=LONGEST_REASON)]
    created: Hour
    signature: SignatureEntry | None


def compose_withdrawal(
    manifest: bytes, release_id: str, *, reason: str, created: datetime, signer: Signer | None = None
) -> bytes:
    """Return the exact bytes of a withdrawal.

    Parameters
    ----------
    manifest : bytes
        Of the release.
    release_id : str
    reason : str
        One line of at most `LONGEST_REASON` characters.
    created : datetime
        Aware; only its hour, in UTC, is published.
    signer : Signer, optional
        The one that signs releases.

    Raises
    ------
    UsageError
        Where the reason is none.
    """
    text = reason.strip()
    size = len(text.encode(errors="replace"))
    if not text or not text.isprintable() or len(text) > LONGEST_REASON or size > LARGEST_WITHDRAWAL // 2:
        message = (
            f"the reason of a withdrawal is one line of 1 to {LONGEST_REASON} printable characters "
            f"and at most {LARGEST_WITHDRAWAL // 2} bytes"
        )
        raise UsageError(message)
    content: dict[str, Any] = {
        "format_version": _FORMAT_VERSION,
        "release_id": release_id,
        "manifest_sha256": hashlib.sha256(manifest).hexdigest(),
        "reason": text,
        "created": created.astimezone(UTC).strftime("%Y-%m-%dT%HZ"),
        "signature": None,
    }
    if signer is not None:
        content["signature"] = signer.sign(content, WITHDRAWAL)
    return canonical_json.encode(content)


def parse_withdrawal(
    data: bytes, manifest: bytes, release_id: str, keys: Sequence[PublicKey] | None
) -> Withdrawal:
    """Read a withdrawal that may be hostile.

    Who may write to a store can make any release unreadable; so one that no demanded key signed is told
    apart, and not left out.

    Parameters
    ----------
    data : bytes
    manifest, release_id
        Of the release that it stands beside.
    keys : sequence of PublicKey, optional
        What the reader demands of releases.

    Raises
    ------
    ReleaseCorruptError
        Where it is no withdrawal of format 1, or one of another release.
    """
    try:
        content: Any = canonical_json.decode(data) if len(data) <= LARGEST_WITHDRAWAL else None
        stated = StatedWithdrawal.model_validate(content)
    except (ValueError, ValidationError):
        raise _corrupt(f"is no withdrawal of format {_FORMAT_VERSION}") from None
    if not stated.reason.isprintable():
        raise _corrupt("states a reason that is not printable")
    if (stated.release_id, stated.manifest_sha256) != (release_id, hashlib.sha256(manifest).hexdigest()):
        raise _corrupt("is of another release")
    return Withdrawal(
        reason=stated.reason,
        created=stated.created,
        signed_by=stated.signature.key_id if stated.signature else None,
        signature=_signature(content, keys),
    )


def _signature(content: dict[str, Any], keys: Sequence[PublicKey] | None) -> str:
    if keys is None:
        return "unsigned" if content["signature"] is None else "not_checked"
    try:
        check_signature(content, keys, WITHDRAWAL)
    except SignatureError:
        return "wrong"
    return "checked"


def _corrupt(rule: str) -> ReleaseCorruptError:
    return ReleaseCorruptError(f"the file {WITHDRAWN} beside the release's manifest {rule}")
