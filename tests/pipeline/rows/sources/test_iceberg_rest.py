"""A REST catalog: a small server that answers as the protocol has it; one that refuses or talks nonsense."""

from __future__ import annotations

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from suffice.errors import UsageError
from suffice.pipeline.rows.sources.iceberg import pin, read, splits
from suffice.pipeline.spec.spec import load_spec
from support.hostile import normal
from support.table_makers import CATALOG, TABLE, URI, iceberg_table, write_iceberg

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suffice.pipeline.spec.spec import Spec

TOKEN = "SECRET-5ab1"  # noqa: S105 - of a test's server
PREFIX = f"PYICEBERG_CATALOG__{CATALOG.upper()}__"
NAMESPACE, NAME = TABLE.split(".")


@contextmanager
def serving(metadata: Path, *, body: bytes | None = None) -> Iterator[tuple[str, list[str]]]:
    """Serve one table as its metadata file has it; give the address, and the paths that were asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path.partition("?")[0])
            if self.headers["Authorization"] != f"Bearer {TOKEN}":
                self._answer(
                    401, {"error": {"message": "who?", "type": "NotAuthorizedException", "code": 401}}
                )
            elif self.path.startswith("/v1/config"):
                self._answer(200, {"defaults": {"prefix": "lake"}, "overrides": {}})
            elif self.path.partition("?")[0] == f"/v1/lake/namespaces/{NAMESPACE}/tables/{NAME}":
                loaded = {
                    "metadata-location": f"file://{metadata}",
                    "metadata": json.loads(metadata.read_text()),
                }
                self._answer(200, {**loaded, "config": {}})
            else:
                self._answer(404, {"error": {"message": "none", "type": "NoSuchTableException", "code": 404}})

        def _answer(self, status: int, document: object) -> None:
            content = json.dumps(document).encode() if body is None or status != 200 else body
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the metadata file of a table of three rows."""
    monkeypatch.setenv(URI, "")
    write_iceberg(tmp_path, pa.table({"x": [1.0, 2.0, 4.0]}))
    location = iceberg_table(tmp_path).metadata_location
    for name, value in {"TYPE": "rest", "TOKEN": TOKEN}.items():
        monkeypatch.setenv(PREFIX + name, value)
    return Path(location.removeprefix("file://"))


def spec_of(**source: str) -> Spec:
    return load_spec(
        {
            "name": "test",
            "dataset": "test",
            "source": {"iceberg": TABLE, "catalog": CATALOG, **source},
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
            "statistics": {"x": normal("x", "0", "1")},
        }
    )


def test_a_table_of_a_rest_catalog_is_read(metadata: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(metadata) as (address, asked):
        monkeypatch.setenv(URI, address)
        pinned = pin(spec_of())
        values = [
            value
            for split in splits(pinned)
            for batch in read(split, ("x",), 2)
            for value in batch.column("x").to_pylist()
        ]
        assert sorted(values) == [1.0, 2.0, 4.0]
        assert asked == ["/v1/config", f"/v1/lake/namespaces/{NAMESPACE}/tables/{NAME}"]
        with pytest.raises(UsageError, match="has no snapshot 7"):
            pin(spec_of(snapshot="7"))


@pytest.mark.parametrize("fault", ["token", "table", "nonsense", "gone"])
def test_what_a_rest_catalog_refuses_is_told_without_its_words(
    metadata: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    with serving(metadata, body=b'{"SECRET-5ab1": [' if fault == "nonsense" else None) as (address, _):
        monkeypatch.setenv(URI, address if fault != "gone" else "http://127.0.0.1:1")
        if fault == "token":
            monkeypatch.setenv(PREFIX + "TOKEN", "SECRET-5ab1-not")
        spec = spec_of(**({"iceberg": "sales.others"} if fault == "table" else {}))
        with pytest.raises(
            UsageError, match=r"^source\.iceberg: iceberg:warehouse/.* cannot be read"
        ) as caught:
            pin(spec)
    assert "SECRET" not in str(caught.value)
    assert caught.value.__suppress_context__
