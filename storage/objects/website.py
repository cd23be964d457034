"""Objects below a URL of a web server, which may be anybody's: they are read, never listed and never written.

The client follows at most ten redirects, all of them to ``https``; each request has a time in which it has to
end, its transfer included; a file has to say how long it is and then be as long; no more is read than is
asked for. What a server sends beyond that is judged as what stands on a disk is, by who asked for it. A web
page in the place of a file is told apart, as many servers answer so where there is none.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from suffice.errors import StoreError, UsageError
from suffice.storage.objects.object_store import SILENT, Reason, checked_key, of_answer, of_system_error

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator
    from typing import BinaryIO

WEBSITE_SCHEMES = ("https", "http")
OPTIONS: dict[str, Any] = {"connect_timeout": "10s", "timeout": "5m", "user_agent": "suffice"}
"""Of the client; a request takes no longer, its transfer included."""
_RETRIES, _RETRIED_FOR = 2, timedelta(minutes=1)

_HOST = re.compile(
    r"(?:[a-z0-9](?:[a-z0-9.-]{0,252}[a-z0-9])?|\[[0-9a-f:]{2,39}\])(?::[0-9]{1,5})?", re.ASCII
)
_THIS_MACHINE = re.compile(r"(?:localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])(?::[0-9]{1,5})?", re.ASCII)
_STATUS = re.compile(r"status code: (\d{3})")
_PIECE = 1 << 16
_WEB_PAGE = Reason(text="the server answers with a web page in the place of the file", may_pass=False)
_ONLY_READ = Reason(text="a website is only read: publish to a path or a bucket", may_pass=False)
_NO_LISTING = Reason(text="a website lists nothing: give the URL of one release", may_pass=False)
_BLANK = b"\xef\xbb\xbf \t\r\n"
_SAID = (
    ("Content-Length", "the server does not say how long the file is"),
    ("following redirect", "it redirects too often, or to a place that is not https"),
    ("kind: Timeout", "the server is too slow"),
    ("timed out", "the server is too slow"),
    ("body error", "the transfer broke off: the file is not as long as the server says"),
)
"""What a client's text holds, and what is said in its place."""


def read_website(scheme: str, authority: str) -> str:
    """Return a server as addresses name it: ``https://HOST`` or ``https://HOST:PORT``.

    Raises
    ------
    UsageError
        Where it is none, could hold a credential, or is reached without encryption and is not this machine;
        the text does not repeat it.
    """
    host = authority.lower()
    if "@" in host:
        message = f"the {scheme}:// URL has a user before its host: it is opened as anybody may open it"
        raise UsageError(message)
    if not _HOST.fullmatch(host):
        message = f"the {scheme}:// URL names no host: write https://HOST/PATH"
        raise UsageError(message)
    if scheme == "http" and not _THIS_MACHINE.fullmatch(host):
        message = (
            "an http:// URL is read from this machine alone, as http://localhost:8000/PATH: use https://"
        )
        raise UsageError(message)
    return f"{scheme}://{host}"


class Website:
    """The files below a URL.

    Parameters
    ----------
    url : str
        Begins with what `read_website` returns; without a ``/`` at its end.
    """

    def __init__(self, url: str) -> None:
        from obstore.store import HTTPStore  # directories need no client

        options: Any = {**OPTIONS, "allow_http": url.startswith("http://")}
        self._url = url
        self._client = HTTPStore.from_url(
            url,
            client_options=options,
            retry_config={"max_retries": _RETRIES, "retry_timeout": _RETRIED_FOR},
        )

    def get(self, key: str, *, at_most: int) -> bytes | None:
        """Return a file's first `at_most` bytes, or None where there is no such file.

        Raises
        ------
        StoreError
            Where it cannot be read, or a web page stands there.
        """
        data = bytearray()
        try:
            for piece in self._pieces(key, at_most):
                data += piece
        except FileNotFoundError:
            return None
        return bytes(data)

    def copy(self, key: str, sink: BinaryIO, *, at_most: int) -> bool:
        """Write a file's first `at_most` bytes to `sink`; False where there is no such file.

        Raises
        ------
        StoreError
            As `get`; and where the bytes cannot be written.
        """
        try:
            sink.writelines(self._pieces(key, at_most))
        except FileNotFoundError:
            return False
        except OSError as error:
            if isinstance(error, StoreError):
                raise
            raise self._error(key, of_system_error(error)) from None
        return True

    def _pieces(self, key: str, at_most: int) -> Iterator[bytes]:
        """Give a file's first bytes, as they come.

        Raises
        ------
        FileNotFoundError
            Where there is no such file.
        StoreError
        """
        from obstore import get
        from obstore.exceptions import BaseError

        checked_key(key)
        begun = False
        try:
            for chunk in get(self._client, key).stream(min_chunk_size=_PIECE):
                piece = bytes(chunk)[:at_most]
                if not begun and piece.lstrip(_BLANK)[:1] == b"<":
                    raise self._error(key, _WEB_PAGE)
                begun = begun or bool(piece.lstrip(_BLANK))
                yield piece
                at_most -= len(piece)
                if at_most <= 0:
                    return
        except (FileNotFoundError, StoreError):
            raise
        except (BaseError, OSError, ValueError) as error:
            raise self._error(key, _reason(error)) from None

    def put_new(self, key: str, data: bytes) -> None:  # noqa: ARG002 - as directories do it
        """Refuse: a website is only read."""
        self._refuse("written")

    def replace(self, key: str, data: bytes, *, expected: bytes) -> None:  # noqa: ARG002 - likewise
        """Refuse: a website is only read."""
        self._refuse("written")

    def delete(self, key: str) -> None:  # noqa: ARG002 - likewise
        """Refuse: a website is only read."""
        self._refuse("written")

    def sweep(self, prefix: str, *, keep: str) -> list[str]:  # noqa: ARG002 - likewise
        """Refuse: a website is only read."""
        self._refuse("written")

    def sweep_hidden(self, before: dt.datetime) -> list[str]:  # noqa: ARG002 - likewise
        """Refuse: a website is only read."""
        self._refuse("written")

    def keys(self, prefix: str) -> list[str]:  # noqa: ARG002 - likewise
        """Refuse: a website lists nothing."""
        self._refuse("listed")

    def names(self, prefix: str) -> list[str]:  # noqa: ARG002 - likewise
        """Refuse: a website lists nothing."""
        self._refuse("listed")

    def keys_after(self, prefix: str, key: str) -> Iterator[str]:  # noqa: ARG002 - likewise
        """Refuse: a website lists nothing."""
        self._refuse("listed")

    def modified(self, key: str) -> dt.datetime | None:  # noqa: ARG002 - likewise
        """Refuse: a server may say any time."""
        self._refuse("listed")

    def _refuse(self, action: str) -> NoReturn:
        reason = _ONLY_READ if action == "written" else _NO_LISTING
        message = f"{self._url} cannot be {action}: {reason.text}"
        raise StoreError(message, reason=reason.text, may_pass=reason.may_pass)

    def _error(self, key: str, reason: Reason) -> StoreError:
        message = f"{self._url}/{key} cannot be read: {reason.text}"
        return StoreError(message, reason=reason.text, may_pass=reason.may_pass)


def _reason(error: Exception) -> Reason:
    """Say what a client's error is about, without its text."""
    text = str(error)
    if status := _STATUS.search(text):
        return of_answer(int(status[1]))
    for part, said in _SAID:
        if part in text:
            return Reason(text=said, may_pass=False)
    return SILENT
