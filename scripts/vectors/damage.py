"""What hostile vectors are made with: a release with one thing changed, and every hash right again."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import io
import json
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from scripts.vectors.releases import MadeRelease

    Content = dict[str, Any]
    Files = dict[str, bytes]

READER, RECOMPUTATION, SIGNATURE = "reader", "recomputation", "signature"
"""Who refuses: every reader; one that compiles the plan, or demands a signature; one that demands it."""
WORDS = "words"
"""Who refuses: every reader that shows a release's words."""

_WRITER: dict[str, Any] = {
    "version": "2.6",
    "data_page_version": "1.0",
    "compression": "none",
    "use_dictionary": False,
    "write_statistics": False,
    "store_schema": False,
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Hostile:
    """One hostile release: its files by name, and why it has to be refused."""

    name: str
    reason: str
    check: str
    files: Files
    refused_by: str = READER


def sealed(content: Content, *, keep_signature: bool = False) -> bytes:
    """Write a manifest with whatever content: its checksum right, and its signature gone."""
    changed = {**content, "signature": content["signature"] if keep_signature else None}
    blank = {**changed, "checksum": None, "signature": None}
    changed["checksum"] = hashlib.sha256(encoded(blank)).hexdigest()
    return encoded(changed)


def encoded(content: object) -> bytes:
    """Return canonical JSON of whatever content, also of what no writer writes."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def content_of(made: MadeRelease) -> Content:
    """Return a release's manifest."""
    content: Content = json.loads(made.manifest)
    return content


def with_manifest(
    made: MadeRelease, change: Callable[[Content], None], *, keep_signature: bool = False
) -> Files:
    """Return a release whose manifest was changed and sealed again."""
    content = copy.deepcopy(content_of(made))
    change(content)
    return {**made.files, "manifest.json": sealed(content, keep_signature=keep_signature)}


def with_file(made: MadeRelease, statistic: str, data: bytes) -> Files:
    """Return a release with another data file, to which its manifest agrees."""
    path = f"{statistic}.parquet"

    def change(content: Content) -> None:
        (entry,) = (entry for entry in content["files"] if entry["path"] == path)
        entry["size"], entry["sha256"] = len(data), hashlib.sha256(data).hexdigest()

    return {**with_manifest(made, change), path: data}


def statistic_of(content: Content, name: str) -> Content:
    """Return a statistic's entry in a manifest."""
    (statistic,) = (entry for entry in content["statistics"] if entry["name"] == name)
    return statistic  # type: ignore[no-any-return]


def nullable_field(field: pa.Field, *, nullable: bool) -> pa.Field:
    """Return a column's field that may be null, or may not."""
    return field.with_nullable(nullable)


def parquet_bytes(table: pa.Table, *, row_group_size: int | None = None, **options: Any) -> bytes:
    """Return a Parquet file as releases have it, but for the options."""
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=row_group_size, **{**_WRITER, **options})
    return sink.getvalue()
