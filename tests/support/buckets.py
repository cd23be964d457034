"""Buckets to keep stores in: S3 as moto serves it, and the environment that leads to each kind of bucket."""

from __future__ import annotations

import base64
import contextlib
import logging
import threading
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

BUCKET = "bucket"
SECRET = "not-to-be-repeated"  # noqa: S105 - of nothing


class Serialised:
    """moto's S3, one request at a time: moto looks at a condition and puts afterwards, S3 does both at once.

    Attributes
    ----------
    honest : bool
        Whether ``If-None-Match`` reaches moto.
    """

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        self.application = application
        self.honest = True
        self.lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        with self.lock:
            if not self.honest:
                environ.pop("HTTP_IF_NONE_MATCH", None)
            return list(self.application(environ, start_response))


@contextlib.contextmanager
def s3_server() -> Iterator[tuple[str, Serialised]]:
    """Serve S3 with one bucket until the block ends; give its address."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

    application = Serialised(DomainDispatcherApplication(create_backend_app))
    with serve(application) as url:
        yield url, application


@contextlib.contextmanager
def serve(application: Callable[..., Iterable[bytes]], *, as_user: str = "somebody") -> Iterator[str]:
    """Serve an application of S3, make its bucket as a user who may, and give the address."""
    from moto.moto_server.werkzeug_app import MotoRequestHandler
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=MotoRequestHandler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    signed = {"Authorization": f"AWS4-HMAC-SHA256 Credential={as_user}/20260101/us-east-1/s3/aws4_request"}
    try:
        with contextlib.closing(HTTPConnection("127.0.0.1", server.server_port, timeout=30)) as connection:
            connection.request("PUT", f"/{BUCKET}", b"", signed)
            assert connection.getresponse().status == 200
        yield url
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def variables(url: str) -> dict[str, str]:
    """Return the environment in which every kind of bucket is served at `url`."""
    key = base64.b64encode(SECRET.encode()).decode()
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "GOOGLE_BASE_URL": url,
        "GOOGLE_ALLOW_HTTP": "true",
        "GOOGLE_BEARER_TOKEN": SECRET,
        "AZURE_STORAGE_ENDPOINT": f"{url}/account",
        "AZURE_ALLOW_HTTP": "true",
        "AZURE_STORAGE_ACCOUNT_NAME": "account",
        "AZURE_STORAGE_ACCOUNT_KEY": key,
    }
