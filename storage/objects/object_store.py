"""What a store needs of whatever keeps its bytes: objects that are created once, complete, or not at all.

Whether it does is asked of the store itself before anything is charged. Why bytes could not be reached is
said from a closed table of short texts: a library's or a server's own text can hold a signed address. Where a
store fails in a way that may pass, `Patience` says how long to go on.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import errno
import re
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from suffice.errors import ObjectExistsError, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

Result = TypeVar("Result")

_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to go on with publishing where the store fails in a way that may pass.

    Attributes
    ----------
    seconds : float
        Nothing is begun again later than this.
    sleep : callable
        Waits for some seconds, and returns whether to go on.
    clock : callable
        Gives the present moment in seconds; only differences count.
    notice : callable
        Called with a sentence before every wait.
    """

    seconds: float = 0.0
    sleep: Callable[[float], bool] = _sleep
    clock: Callable[[], float] = time.monotonic
    notice: Callable[[str], None] = lambda _: None


ONCE = Patience()
"""No second try."""


def patiently(attempt: Callable[[], Result], patience: Patience, state: str) -> Result:
    """Return what `attempt` does, tried again and again, with growing pauses, while what fails may pass.

    Parameters
    ----------
    attempt : callable
        May be called any number of times.
    patience : Patience
    state : str
        How things stand meanwhile, for the notices: ``not published yet``.

    Raises
    ------
    StoreError
        The last failure.
    """
    deadline = patience.clock() + patience.seconds
    pause = _FIRST_PAUSE
    while True:
        try:
            return attempt()
        except StoreError as error:
            left = deadline - patience.clock()
            if not error.may_pass or left <= 0:
                raise
            # Of many runs that wait for one store not all should come back at once.
            wait = min(left, pause * (0.5 + secrets.randbelow(1000) / 2000))
            reason = error.reason or "the store failed"
            patience.notice(f"{state}: {reason}; tried again in {wait:.0f} s, for {left:.0f} s more")
            if not patience.sleep(wait):
                raise
        pause = min(2 * pause, _LONGEST_PAUSE)


PREFIX = "probe-"
"""Of the probe's key, at the top of the store, where no release is looked for."""
_LARGEST_STANDING = 4096
LENGTH = 16
"""Of what is put, in bytes."""

_NAME = re.compile(rf"{PREFIX}[0-9a-f]{{32}}", re.ASCII)


def check_create_only(objects: ObjectStore, uri: str) -> None:
    """Put an object of a random key, and then try to replace it.

    On a store that replaces it two runs could publish two noisy versions for one charge, and a
    tombstone could be put over a release. Servers that speak like S3 and ignore ``If-None-Match`` are such
    stores.

    Parameters
    ----------
    objects : ObjectStore
    uri : str
        For messages.

    Raises
    ------
    StoreError
        Where the store replaces objects, does not show what was put, or cannot be written.
    """
    key = PREFIX + secrets.token_hex(16)
    first, second = secrets.token_bytes(LENGTH), secrets.token_bytes(LENGTH)
    objects.put_new(key, first)
    try:
        try:
            objects.put_new(key, second)
        except ObjectExistsError:
            refused = True
        else:
            refused = False
        standing = objects.get(key, at_most=len(first) + 1)
    finally:
        # Who may create and not delete is a good publisher: then the probe stays, and is no release.
        with contextlib.suppress(StoreError):
            objects.delete(key)
    if not refused or standing != first:
        message = (
            f"the store {uri} replaces objects that exist: releases need a store that creates each object "
            "only once (S3 servers: one that honours If-None-Match)"
        )
        raise StoreError(message)


def check_create_only_by(objects: ObjectStore, uri: str, key: str) -> None:
    """Try to replace an object that stands there by its own bytes: nothing new is left, whoever is killed.

    A store that refuses is one that creates objects only once; one that replaces it changes nothing. What it
    answers otherwise, as to a role that may create and not replace, a probe decides.

    Parameters
    ----------
    objects : ObjectStore
    uri : str
        For messages.
    key : str
        Of an object of at most 4096 bytes that nobody ever changes.

    Raises
    ------
    StoreError
        As :func:`check_create_only`.
    """
    try:
        standing = objects.get(key, at_most=_LARGEST_STANDING)
        if standing is not None:
            objects.put_new(key, standing)  # after a lost answer, too, a bucket takes them for those put
    except ObjectExistsError:
        return
    except StoreError:
        pass
    check_create_only(objects, uri)


LEFT_FOR = dt.timedelta(days=1)
"""How old a probe or a half-written file is whose writer is gone for certain."""


def has_name_of_probe(key: str, *, folder: str) -> bool:
    """Tell whether a key at the top of the store, or of `folder`, is that of a probe; nothing is read."""
    return _NAME.fullmatch(key.removeprefix(f"{folder}/")) is not None


def is_left_probe(objects: ObjectStore, key: str, *, folder: str) -> bool:
    """Tell whether an object is what is left of a probe: its name and length are a probe's.

    A run that was killed leaves one, and so does a role that may not delete.

    Parameters
    ----------
    objects : ObjectStore
    key : str
    folder : str
        Another place than the top of the store where probes are put.

    Raises
    ------
    StoreError
        Where the object cannot be read.
    """
    if not has_name_of_probe(key, folder=folder):
        return False
    content = objects.get(key, at_most=LENGTH + 1)
    return content is not None and len(content) == LENGTH


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


_SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*", re.ASCII)
"""Keys never begin a segment with a dot: what does is a file that is still being written."""


class ObjectStore(Protocol):
    """What a store needs of whatever keeps its bytes.

    Every method raises `StoreError` where the bytes cannot be reached, or a key is none.
    """

    def put_new(self, key: str, data: bytes) -> None:
        """Create an object durably; `ObjectExistsError` where the key is taken.

        After any other error the object may stand there, now or later: it counts as written.
        """

    def get(self, key: str, *, at_most: int) -> bytes | None:
        """Return an object's first `at_most` bytes, or None where there is none."""

    def copy(self, key: str, sink: BinaryIO, *, at_most: int) -> bool:
        """Write an object's first `at_most` bytes to a file, a piece at a time; False where there is none."""

    def keys(self, prefix: str) -> list[str]:
        """Return the sorted keys below a prefix that is empty or ends with ``/``."""

    def names(self, prefix: str) -> list[str]:
        """Return the sorted names right below a prefix: of objects, and of prefixes without ``/``.

        One listing, however much stands below those; an empty directory may be named.
        """

    def keys_after(self, prefix: str, key: str) -> Iterator[str]:
        """Give the keys below `prefix` that sort after `key`, in order, without listing what comes before.

        An empty `key` gives all. The listing goes on as far as it is asked for.
        """

    def replace(self, key: str, data: bytes, *, expected: bytes) -> None:
        """Replace an object, whole and durably, if it still holds `expected`.

        `ObjectExistsError` where it holds anything else, or is gone. Only what is a note of its own, as a
        witness is, may be replaced; nothing of a release ever is.
        """

    def delete(self, key: str) -> None:
        """Remove an object, if it is there."""

    def modified(self, key: str) -> dt.datetime | None:
        """Return when an object was written, by the clock of whatever keeps it; None where there is none."""

    def sweep_hidden(self, before: dt.datetime) -> list[str]:
        """Remove what writers that died before then left half written, anywhere; return it, sorted.

        Never an object. Where nothing half written can stand, as in a bucket, there is nothing to do.
        """

    def sweep(self, prefix: str, *, keep: str) -> list[str]:
        """Remove what stands below `prefix`, which ends with ``/``, but the key `keep`.

        What a writer that died left half written is removed too; the keys removed are returned, sorted.
        """


def checked_key(key: str) -> list[str]:
    """Return a key's segments.

    Raises
    ------
    StoreError
        Where it is no key: nothing above the store and nothing hidden is ever reached.
    """
    segments = key.split("/")
    if not all(map(_SEGMENT.fullmatch, segments)):
        message = f"{key!r} is no key of a store"
        raise StoreError(message)
    return segments
