"""Reasons are short texts of a closed table, whatever the system, a client or a server says."""

from __future__ import annotations

import errno

import pytest

from suffice.storage.objects.object_store import of_answer, of_system_error

SIGNED = "https://signed.example/?sig=4242"


@pytest.mark.parametrize(
    ("number", "text", "may_pass"),
    [
        (errno.ENOSPC, "no space left (ENOSPC)", True),
        (errno.EDQUOT, "quota exceeded (EDQUOT)", True),
        (errno.EACCES, "access denied (EACCES)", True),
        (errno.EROFS, "read-only file system (EROFS)", True),
        (errno.ENAMETOOLONG, "the name is too long (ENAMETOOLONG)", False),
        (errno.EXDEV, "error EXDEV", True),
        (99999, "error unknown", True),
    ],
)
def test_the_system(number: int, text: str, may_pass: bool) -> None:
    reason = of_system_error(OSError(number, SIGNED))
    assert (reason.text, reason.may_pass) == (text, may_pass)


def test_what_is_no_error_of_the_system() -> None:
    assert of_system_error(ValueError(SIGNED)).text == "not a path that the system knows"


@pytest.mark.parametrize(
    ("status", "code", "text", "may_pass"),
    [
        (503, None, "unavailable (status 503)", True),
        (503, "SlowDown", "too many requests (status 503, SlowDown)", True),
        (400, "ExpiredToken", "credentials have expired (status 400, ExpiredToken)", True),
        (403, "AccessDenied", "access denied (status 403, AccessDenied)", True),
        (403, "Secret4242", "access denied (status 403)", True),
        (507, None, "no space left (status 507)", True),
        (412, None, "it exists (status 412)", False),
        (599, None, "unavailable (status 599)", True),
        (418, None, "refused (status 418)", True),
    ],
)
def test_servers(status: int, code: str | None, text: str, may_pass: bool) -> None:
    reason = of_answer(status, code)
    assert (reason.text, reason.may_pass) == (text, may_pass)
