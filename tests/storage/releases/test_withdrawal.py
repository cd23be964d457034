"""``withdrawn.json``: what it may say, and what else may stand in its place."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import ReleaseCorruptError, UsageError
from suffice.pipeline.terms.declaration import canonical_json
from suffice.storage.releases.withdrawal import LARGEST_WITHDRAWAL, compose_withdrawal, parse_withdrawal

MANIFEST, RELEASE_ID = b'{"a":1}', "ab" * 8
CREATED = datetime(2026, 1, 31, 8, 59, tzinfo=UTC)


def _composed(reason: str = "faulty") -> bytes:
    return compose_withdrawal(MANIFEST, RELEASE_ID, reason=reason, created=CREATED)


@given(st.text(max_size=1200))
def test_every_reason_is_read_as_it_was_written_or_refused(reason: str) -> None:
    try:
        data = _composed(reason)
    except UsageError:
        stripped = reason.strip()
        size = len(stripped.encode(errors="replace"))
        assert not stripped or not stripped.isprintable() or len(stripped) > 1000 or size > 4096
        return
    assert len(data) <= LARGEST_WITHDRAWAL
    withdrawal = parse_withdrawal(data, MANIFEST, RELEASE_ID, None)
    assert withdrawal.reason == reason.strip()
    assert (withdrawal.created, withdrawal.signature, withdrawal.signed_by) == (
        "2026-01-31T08Z",
        "unsigned",
        None,
    )


@pytest.mark.parametrize(
    "change",
    [
        {"release_id": "cd" * 8},
        {"manifest_sha256": "0" * 64},
        {"reason": ""},
        {"reason": "x" * 1001},
        {"reason": "a\nb"},
        {"reason": 3},
        {"created": "yesterday"},
        {"format_version": 2},
        {"signature": "x"},
        {"more": 1},
    ],
)
def test_a_hostile_withdrawal_is_refused(change: dict[str, Any]) -> None:
    data = canonical_json.encode({**json.loads(_composed()), **change})
    with pytest.raises(ReleaseCorruptError, match=r"withdrawn\.json"):
        parse_withdrawal(data, MANIFEST, RELEASE_ID, None)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"[" * 5000, b"\xff", b" " * 9000, b'{"reason": "x"}'])
def test_bytes_that_are_no_withdrawal_are_refused(data: bytes) -> None:
    with pytest.raises(ReleaseCorruptError):
        parse_withdrawal(data, MANIFEST, RELEASE_ID, None)
