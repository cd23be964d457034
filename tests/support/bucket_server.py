"""A small server that speaks as much of S3, Google Cloud Storage and Azure as a store needs, and can fail.

The three speak alike: objects are put, got and deleted by path; a put says by a header that it must not
replace anything; a listing is one XML document. What differs is kept apart below.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Literal
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Iterator

Fault = Literal["lost answer", "lost request", "error after", "error before", "late", "conflict", "denied"]


class BucketServer(ThreadingHTTPServer):
    """The server, its objects by path, and the faults that the next puts meet.

    Attributes
    ----------
    honest : bool
        Whether conditions of puts are looked at.
    readable : bool
        Whether gets are answered.
    only_below : str
        As a policy of a bucket: what is not below this path is denied. Empty: nothing is.
    listings : list of str
        Of each listing, its prefix.
    starts : list of str
        Of each listing, the key after which it began.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        self.faults: list[Fault] = []
        self.conditions: list[str] = []
        self.listings: list[str] = []
        self.starts: list[str] = []
        self.honest = True
        self.readable = True
        self.only_below = ""
        self._outage: tuple[int, bytes] | None = None
        self._lasts = self._ends = math.inf
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def fail(self, status: int, body: bytes, *, lasts: float = math.inf) -> None:
        """Answer every request like this, for some seconds from the first one on."""
        self._outage, self._lasts, self._ends = (status, body), lasts, math.inf

    def recover(self) -> None:
        """Answer as before."""
        self._outage = None

    def outage(self) -> tuple[int, bytes] | None:
        """Return what requests are answered now, if the server fails."""
        with self.lock:
            if self._outage is not None:
                self._ends = min(self._ends, time.monotonic() + self._lasts)
                if time.monotonic() < self._ends:
                    return self._outage
            return None

    def create(self, path: str, data: bytes, *, conditional: bool, standing: str = "") -> bool:
        """Put an object, if it is new or is of the version that `standing` names; tell whether."""
        with self.lock:
            if standing:
                if path not in self.objects or standing not in versions(self.objects[path]):
                    return False
            elif conditional and self.honest and path in self.objects:
                return False
            self.objects[path] = data
            return True


def versions(data: bytes) -> tuple[str, str]:
    """Return an object's entity tag, and its generation."""
    digest = hashlib.sha256(data).hexdigest()
    return f'"{digest[:32]}"', str(int(digest[:12], 16) + 1)


class _Handler(BaseHTTPRequestHandler):
    server: BucketServer
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer in one piece

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if self._is_out():
            return
        path = unquote(urlsplit(self.path).path)
        named = [
            f"{name}: {self.headers[name]}"
            for name in ("If-None-Match", "x-goog-if-generation-match")
            if name in self.headers
        ]
        self.server.conditions += named
        named_version = self.headers.get("If-Match") or self.headers.get("x-goog-if-generation-match")
        standing = "" if named_version in {None, "0"} else str(named_version)
        fault = self.server.faults.pop(0) if self.server.faults else None
        if fault in {"lost request", "late"}:
            if fault == "late":
                threading.Timer(0.1, self.server.create, (path, data), {"conditional": bool(named)}).start()
            self._hang_up()
        elif fault == "error before":
            self._answer(500, b"secret")
        elif fault == "denied":
            self._answer(403, b"<Error><Code>AccessDenied</Code><Message>secret</Message></Error>")
        elif fault == "conflict":
            self._answer(409, b"<Error><Code>ConditionalRequestConflict</Code></Error>")
        else:
            put = self.server.create(path, data, conditional=bool(named), standing=standing)
            if fault == "lost answer":
                self._hang_up()
            elif fault == "error after":
                self._answer(503, b"secret")
            elif put:
                self._answer(201 if "x-ms-version" in self.headers else 200)
            else:
                self._answer(409 if "x-ms-version" in self.headers and not standing else 412)

    def do_GET(self) -> None:
        if self._is_out():
            return
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if not self.server.readable:
            self._answer(403, b"secret")
        elif "list-type" in query or query.get("comp") == "list":
            after = query.get("start-after", query.get("startOffset", ""))
            self.server.listings.append(query.get("prefix", ""))
            self.server.starts.append(after)
            self._list(unquote(parts.path), query.get("prefix", ""), after, query.get("delimiter"))
        else:
            data = self.server.objects.get(unquote(parts.path))
            wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            if data is None or wanted is None:
                self._answer(404 if data is None else 200, data or b"", tags=versions(data or b""))
            else:
                start, end = int(wanted[1]), min(int(wanted[2]) + 1, len(data))
                part = f"bytes {start}-{end - 1}/{len(data)}"
                self._answer(206, data[start:end], tags=versions(data), content_range=part)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        if self._is_out():
            return
        self._answer(204 if self._remove(self.path) else 404)

    def do_POST(self) -> None:
        batch = self.rfile.read(int(self.headers["Content-Length"]))
        removed = re.search(rb"DELETE (\S+) HTTP", batch)
        is_removed = removed is not None and self._remove(removed[1].decode())
        boundary = "batchresponse_1"
        body = (
            f"--{boundary}\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\n"
            f"HTTP/1.1 {'202 Accepted' if is_removed else '404 The specified blob does not exist.'}\r\n"
            f"x-ms-version: 1\r\n\r\n--{boundary}--\r\n"
        )
        self._answer(202, body.encode(), kind=f"multipart/mixed; boundary={boundary}")

    def _is_out(self) -> bool:
        """Answer with the outage, if there is one now."""
        outage = self.server.outage()
        if outage is None and not self._named().startswith(self.server.only_below):
            outage = 403, b"<Error><Code>AccessDenied</Code><Message>secret</Message></Error>"
        if outage is not None:
            self._answer(*outage)
        return outage is not None

    def _named(self) -> str:
        """Return the path that a request is about; of a listing, with its prefix."""
        parts = urlsplit(self.path)
        prefix = parse_qs(parts.query).get("prefix", [""])[0]
        return f"{unquote(parts.path).rstrip('/')}/{prefix}" if prefix else unquote(parts.path)

    def _remove(self, path: str) -> bool:
        with self.server.lock:
            return self.server.objects.pop(unquote(urlsplit(path).path), None) is not None

    def _list(self, bucket: str, prefix: str, after: str, delimiter: str | None) -> None:
        start = bucket.rstrip("/") + "/"
        names = sorted(path[len(start) :] for path in self.server.objects if path.startswith(start + prefix))
        below = [key[len(prefix) :].partition(delimiter or "\0") for key in names if key > after]
        keys = [prefix + name for name, more, _ in below if not more]
        folders = dict.fromkeys(prefix + name + more for name, more, _ in below if more)
        time = "2026-01-31T08:00:00.000Z"
        objects = {key: self.server.objects[start + key] for key in keys}
        tags = {key: versions(data)[0] for key, data in objects.items()}
        if "x-ms-version" in self.headers:
            entries = "".join(
                f"<Blob><Name>{escape(key)}</Name><Properties>"
                "<Last-Modified>Sat, 31 Jan 2026 08:00:00 GMT</Last-Modified>"
                f"<Content-Length>{len(objects[key])}</Content-Length><Content-Type>x</Content-Type>"
                f"<Etag>{tags[key].strip(chr(34))}</Etag></Properties></Blob>"
                for key in keys
            )
            entries += "".join(
                f"<BlobPrefix><Name>{escape(folder)}</Name></BlobPrefix>" for folder in folders
            )
            text = f"<EnumerationResults><Blobs>{entries}</Blobs><NextMarker/></EnumerationResults>"
        else:
            entries = "".join(
                f"<Contents><Key>{escape(key)}</Key><LastModified>{time}</LastModified>"
                f"<ETag>{tags[key]}</ETag><Size>{len(objects[key])}</Size></Contents>"
                for key in keys
            )
            entries += "".join(
                f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in folders
            )
            text = f"<ListBucketResult>{entries}</ListBucketResult>"
        self._answer(200, text.encode())

    def _answer(
        self,
        status: int,
        body: bytes = b"",
        *,
        kind: str = "application/xml",
        tags: tuple[str, str] = ('"tag"', "1"),
        content_range: str = "",
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", tags[0])
        if content_range:
            self.send_header("Content-Range", content_range)
        self.send_header("x-goog-generation", tags[1])
        self.send_header("Last-Modified", "Sat, 31 Jan 2026 08:00:00 GMT")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _hang_up(self) -> None:
        self.close_connection = True

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def bucket_server() -> Iterator[BucketServer]:
    """Run a server until the block ends."""
    server = BucketServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
