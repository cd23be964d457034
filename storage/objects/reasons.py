"""Why bytes could not be reached: a closed table of short texts, and whether the reason may pass.

The text of a system, a client library or a server is never repeated: it can hold a signed address.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why something could not be done.

    Attributes
    ----------
    text : str
        As ``no space left (ENOSPC)``.
    may_pass : bool
        Whether the same request may succeed later, once an operator or time has helped.
    """

    text: str
    may_pass: bool


SILENT = Reason(text="the server does not answer, or credentials are missing", may_pass=True)

_SYSTEM = {
    errno.ENOSPC: "no space left",
    errno.EDQUOT: "quota exceeded",
    errno.EFBIG: "the file is too large",
    errno.EACCES: "access denied",
    errno.EPERM: "access denied",
    errno.EROFS: "read-only file system",
    errno.EIO: "input or output error",
    errno.ESTALE: "unavailable",
    errno.ETIMEDOUT: "unavailable",
    errno.ENODEV: "unavailable",
    errno.ENOTCONN: "unavailable",
    errno.EHOSTDOWN: "unavailable",
    errno.EMFILE: "too many open files",
    errno.ENFILE: "too many open files",
    errno.ENOMEM: "not enough memory",
    errno.EBUSY: "busy",
    errno.ENOENT: "no such file or directory",
    errno.ENOTDIR: "not a directory",
    errno.EISDIR: "a directory",
    errno.EEXIST: "it exists",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ELOOP: "too many links",
    errno.EINVAL: "not a path that the system knows",
}

_LASTING = frozenset(
    {errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL}
)

_STATUS = {
    400: "the request is refused",
    401: "credentials are missing or refused",
    403: "access denied",
    404: "no such bucket or object",
    405: "the request is not supported",
    408: "unavailable",
    409: "requests conflict",
    412: "it exists",
    413: "the object is too large",
    429: "too many requests",
    501: "the request is not supported",
    507: "no space left",
}

_CODES = {
    "ExpiredToken": "credentials have expired",
    "ExpiredTokenException": "credentials have expired",
    "TokenRefreshRequired": "credentials have expired",
    "InvalidToken": "credentials are refused",
    "InvalidAccessKeyId": "credentials are refused",
    "SignatureDoesNotMatch": "credentials are refused",
    "AuthenticationFailed": "credentials are refused",
    "RequestTimeTooSkewed": "the clocks of client and server differ",
    "AccessDenied": "access denied",
    "AllAccessDisabled": "access denied",
    "QuotaExceeded": "quota exceeded",
    "XMinioStorageFull": "no space left",
    "NoSuchBucket": "no such bucket",
    "SlowDown": "too many requests",
    "ServiceUnavailable": "unavailable",
    "ServerBusy": "unavailable",
    "InternalError": "unavailable",
    "InternalServerError": "unavailable",
    "ConditionalRequestConflict": "requests conflict",
}
"""Names that servers give their errors; any other is left out."""

_LASTING_STATUS = frozenset({405, 412, 413, 501})


def of_system_error(error: Exception) -> Reason:
    """Return the reason of what the system raised."""
    number = getattr(error, "errno", None)
    if not isinstance(number, int):
        return Reason(text="not a path that the system knows", may_pass=False)
    name = errno.errorcode.get(number, "unknown")
    text = _SYSTEM.get(number)
    return Reason(text=f"{text} ({name})" if text else f"error {name}", may_pass=number not in _LASTING)


def of_answer(status: int, code: str | None = None) -> Reason:
    """Return the reason of a server's answer, by its status and the name that the server gives its error."""
    known = code if code in _CODES else None
    text = _CODES[known] if known else _STATUS.get(status, "unavailable" if status >= 500 else "refused")
    named = f"status {status}, {known}" if known else f"status {status}"
    return Reason(text=f"{text} ({named})", may_pass=status not in _LASTING_STATUS)
