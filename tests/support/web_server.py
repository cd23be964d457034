"""A small web server of files, honest or not: what a URL of anybody's may answer."""

from __future__ import annotations

import contextlib
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Fault = "Callable[[Handler, bytes], None]"
PAGE = b"<!doctype html><html><title>CANARY</title><body>not found</body></html>"


class WebServer(ThreadingHTTPServer):
    """The server: files by path, and what is answered in the place of some.

    Attributes
    ----------
    files : dict of str to bytes
    faults : dict of str to callable
        What answers for a path; gets the request and the file's bytes.
    asked : list of str
        The path of each request.
    """

    daemon_threads = True

    def __init__(self, certificate: tuple[Path, Path] | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.faults: dict[str, Callable[[Handler, bytes], None]] = {}
        self.asked: list[str] = []
        self.scheme = "http" if certificate is None else "https"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_port}"

    def serve_folder(self, folder: Path, at: str) -> None:
        """Serve a folder's files below a path."""
        for file in folder.rglob("*"):
            if file.is_file():
                self.files[f"{at}/{file.relative_to(folder).as_posix()}"] = file.read_bytes()

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients leave when they have seen enough."""


class Handler(BaseHTTPRequestHandler):
    """Answers one client."""

    server: WebServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None: ...

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        content = self.server.files.get(self.path)
        if fault := self.server.faults.get(self.path):
            fault(self, content or b"")
        elif content is None:
            self.answer(404, PAGE)
        else:
            self.answer(200, content)

    def answer(
        self, status: int, body: bytes, *, length: int | None = None, headers: dict[str, str] | None = None
    ) -> None:
        """Send an answer, whose length may be stated otherwise; then the connection ends."""
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.send_header("Connection", "close")
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)
        self.close_connection = True


def redirected_for_ever(request: Handler, _: bytes) -> None:
    request.answer(302, b"", headers={"Location": request.path})


def redirected_eleven_times(request: Handler, _: bytes) -> None:
    path, _question, number = request.path.partition("?")
    after = int(number or 0) + 1
    request.server.faults[f"{path}?{after}"] = redirected_eleven_times
    if after > 11:
        request.answer(200, request.server.files[path])
    else:
        request.answer(302, b"", headers={"Location": f"{path}?{after}"})


def redirected_nowhere(request: Handler, _: bytes) -> None:
    request.answer(302, b"")


def redirected_to_a_file(request: Handler, _: bytes) -> None:
    request.answer(302, b"", headers={"Location": "file:///etc/hostname"})


def slow(request: Handler, content: bytes) -> None:
    """Send a byte now and then, and never the last."""
    request.send_response(200)
    request.send_header("Content-Length", str(len(content) + 1000))
    request.end_headers()
    with contextlib.suppress(OSError):
        for number in range(100):
            request.wfile.write(content[number : number + 1] or b" ")
            request.wfile.flush()
            time.sleep(0.1)


def silent(request: Handler, _: bytes) -> None:
    time.sleep(10)
    request.close_connection = True


def huge(request: Handler, content: bytes) -> None:
    """State a terabyte, and send for as long as somebody reads."""
    request.send_response(200)
    request.send_header("Content-Length", str(1 << 40))
    request.end_headers()
    with contextlib.suppress(OSError):
        request.wfile.write(content)
        while True:
            request.wfile.write(b"\0" * (1 << 16))


def larger(request: Handler, content: bytes) -> None:
    request.answer(200, content + b"\0" * 4096)


def cut_off(request: Handler, content: bytes) -> None:
    request.answer(200, content[: len(content) // 2], length=len(content) or 100)


def half(request: Handler, content: bytes) -> None:
    request.answer(200, content[: len(content) // 2] or b"{")


def changed(request: Handler, content: bytes) -> None:
    request.answer(200, bytes([*content[:-9], *((byte ^ 1) for byte in content[-9:])]) or b"[]")


def without_length(request: Handler, content: bytes) -> None:
    request.send_response(200)
    request.send_header("Transfer-Encoding", "chunked")
    request.end_headers()
    request.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(content) or 1, content or b"["))
    request.close_connection = True


def of_negative_length(request: Handler, content: bytes) -> None:
    request.answer(200, content, length=-1)


def a_web_page(request: Handler, _: bytes) -> None:
    request.answer(200, PAGE, headers={"Content-Type": "text/html"})


def a_web_page_after_blanks(request: Handler, _: bytes) -> None:
    request.answer(200, b"\xef\xbb\xbf\r\n\r\n  " + PAGE)


def empty(request: Handler, _: bytes) -> None:
    request.answer(200, b"")


def no_http(request: Handler, _: bytes) -> None:
    request.wfile.write(b"CANARY\r\n\r\n")
    request.close_connection = True


def hung_up(request: Handler, _: bytes) -> None:
    request.close_connection = True


def compressed(request: Handler, content: bytes) -> None:
    """Send what no client asked for."""
    import gzip

    request.answer(200, gzip.compress(content or b"{}"), headers={"Content-Encoding": "gzip"})


def with_status(status: int) -> Callable[[Handler, bytes], None]:
    def answered(request: Handler, _: bytes) -> None:
        request.answer(status, b"CANARY")

    answered.__name__ = f"status_{status}"
    return answered


FAULTS: tuple[Callable[[Handler, bytes], None], ...] = (
    redirected_for_ever,
    redirected_eleven_times,
    redirected_nowhere,
    redirected_to_a_file,
    slow,
    silent,
    huge,
    larger,
    cut_off,
    half,
    changed,
    without_length,
    of_negative_length,
    a_web_page,
    a_web_page_after_blanks,
    empty,
    no_http,
    hung_up,
    compressed,
    *map(with_status, (204, 300, 400, 401, 403, 418, 429, 500, 502, 503)),
)


@contextlib.contextmanager
def serving(certificate: tuple[Path, Path] | None = None) -> Iterator[WebServer]:
    """Serve until the end of the block."""
    server = WebServer(certificate)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
