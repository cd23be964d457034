"""Deletion vectors: which rows a table no longer has of a file, as Delta and Iceberg write them.

A vector is an array of roaring bitmaps of 32 bits (https://github.com/RoaringBitmap/RoaringFormatSpec). All
of it is checked: no size that it states is believed, and no position may lie outside of its file.
"""

from __future__ import annotations

import json
import os
import re
import string
import struct
import uuid
import zlib
from contextlib import closing
from io import BufferedReader
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from suffice.arrays import text_array
from suffice.pipeline.rows.sources.contract import exact_data
from suffice.pipeline.rows.sources.file_access import PinnedFile, objects_below, opened, status
from suffice.pipeline.terms.declaration.source_specs import is_url

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator
    from io import RawIOBase

    from numpy.typing import NDArray


class Deletes(Protocol):
    """What a table's log says of rows that a file holds and the table does not."""

    def kept(self, n_rows: int) -> NDArray[np.bool_]:
        """Return which of a file's rows the table still has, shape (n_rows,).

        Raises
        ------
        ValueError, OSError, pyarrow.ArrowException
            Where what says so is gone, damaged, or of rows that the file does not have.
        """


_MAGIC = 1681511377
_WITH_RUNS, _WITHOUT_RUNS = 12347, 12346
_BLOCK = 1 << 16
_MOST_LISTED = 4096
"""Rows of a block that are listed; more are a bit each."""
_BLOCK_BYTES = 1 << 18
"""More than any writer takes for a block of rows."""


def kept_rows(vector: bytes | memoryview, n_rows: int, n_deleted: int) -> NDArray[np.bool_]:
    """Return which rows of a file a vector leaves, shape (n_rows,).

    Parameters
    ----------
    vector : bytes
        A magic number, and the bitmaps.
    n_rows : int
        Of the file.
    n_deleted : int
        How many rows the log says that it deletes.

    Raises
    ------
    ValueError
        Where it is malformed, or deletes other rows.
    """
    content = _Content(vector)
    _require(content.number("<I") == _MAGIC)
    kept = np.ones(n_rows, np.bool_)
    n_bitmaps = content.number("<Q")
    _require(n_bitmaps <= (n_rows >> 32) + 1)
    last = -1
    for _ in range(n_bitmaps):
        high = content.number("<I")
        _require(last < high <= n_rows >> 32)
        last = high
        for positions in _positions(content):
            deleted = positions + (high << 32)
            _require(not deleted.size or int(deleted[-1]) < n_rows)
            kept[deleted] = False
    _require(not content.left and n_rows - int(np.count_nonzero(kept)) == n_deleted)
    return kept


def _positions(content: _Content) -> Iterator[NDArray[np.int64]]:
    """Give the positions of one bitmap, block by block, in order."""
    cookie = content.number("<I")
    if cookie & 0xFFFF == _WITH_RUNS:
        n_blocks = (cookie >> 16) + 1
        flags = np.frombuffer(content.take((n_blocks + 7) // 8), np.uint8)
        is_run = np.unpackbits(flags, bitorder="little")[:n_blocks]
    else:
        _require(cookie == _WITHOUT_RUNS)
        n_blocks = content.number("<I")
        _require(n_blocks <= _BLOCK)
        is_run = np.zeros(n_blocks, np.uint8)
    head = np.frombuffer(content.take(4 * n_blocks), "<u2").reshape(n_blocks, 2).astype(np.int64)
    _require(bool(np.all(np.diff(head[:, 0]) > 0)))
    if cookie == _WITHOUT_RUNS or n_blocks >= 4:
        content.take(4 * n_blocks)  # where each block begins, which follows from those before it
    for (key, last), runs in zip(head.tolist(), is_run.tolist(), strict=True):
        within = _of_runs(content) if runs else _of_block(content, last + 1)
        _require(within.size == last + 1)
        yield within + key * _BLOCK


def _of_runs(content: _Content) -> NDArray[np.int64]:
    n_runs = content.number("<H")
    runs = np.frombuffer(content.take(4 * n_runs), "<u2").reshape(n_runs, 2).astype(np.int64)
    starts, ends = runs[:, 0], runs[:, 0] + runs[:, 1] + 1
    _require(bool(np.all(starts[1:] >= ends[:-1]) and np.all(ends <= _BLOCK)))
    bits = np.zeros(_BLOCK + 1, np.int64)
    np.add.at(bits, starts, 1)
    np.subtract.at(bits, ends, 1)
    return np.flatnonzero(np.cumsum(bits))


def _of_block(content: _Content, count: int) -> NDArray[np.int64]:
    if count > _MOST_LISTED:
        return np.flatnonzero(np.unpackbits(np.frombuffer(content.take(8192), np.uint8), bitorder="little"))
    listed = np.frombuffer(content.take(2 * count), "<u2").astype(np.int64)
    _require(bool(np.all(np.diff(listed) > 0)))
    return listed


class _Content:
    """Bytes that are taken from the front, and no more than there are."""

    def __init__(self, content: bytes | memoryview) -> None:
        self._content = memoryview(content)

    @property
    def left(self) -> int:
        return len(self._content)

    def take(self, n_bytes: int) -> memoryview:
        _require(n_bytes <= len(self._content))
        taken, self._content = self._content[:n_bytes], self._content[n_bytes:]
        return taken

    def number(self, form: str) -> int:
        return int(struct.unpack(form, self.take(struct.calcsize(form)))[0])


def _require(holds: bool) -> None:
    if not holds:
        message = "the deletion vector is malformed"
        raise ValueError(message)


@exact_data(travels=False)
class DeletionVector:
    """A deletion vector as a log describes it.

    Parameters
    ----------
    inline : bytes or None
        The vector, where the log holds it.
    file : PinnedFile or None
        The file that holds it, elsewhere.
    offset : int
        Where in the file it begins, with its size.
    size : int
        Of the vector, in bytes.
    n_deleted : int
        Rows that it deletes.
    """

    inline: bytes | None
    file: PinnedFile | None
    offset: int
    size: int
    n_deleted: int

    def kept(self, n_rows: int) -> NDArray[np.bool_]:
        """Return which of a file's rows the table still has; see `Deletes`."""
        _require(self.size <= (n_rows // _BLOCK + 1) * _BLOCK_BYTES and self.n_deleted <= n_rows)
        return kept_rows(self._vector(), n_rows, self.n_deleted)

    def _vector(self) -> bytes:
        if self.inline is not None:
            _require(0 <= len(self.inline) - self.size < 4)  # what it is padded with
            return self.inline[: self.size]
        _require(self.file is not None)
        file = cast("PinnedFile", self.file)
        _require(status(file.address) == file and self.offset + self.size + 8 <= file.size)
        with opened(file) as stored:
            version = stored.read(1)
            stored.seek(self.offset)
            with BufferedReader(cast("RawIOBase", stored)) as buffered:
                framed = buffered.read(self.size + 8)
        _require(version == b"\1" and len(framed) == self.size + 8)
        vector = framed[4:-4]
        stated, checksum = struct.unpack(">I", framed[:4])[0], struct.unpack(">I", framed[-4:])[0]
        _require(stated == self.size and checksum == zlib.crc32(vector))
        return vector


_DIGITS = string.digits + string.ascii_lowercase + string.ascii_uppercase + ".-:+=^!/*?&<>()[]{}@%$#"
_VALUES = np.full(256, 85, np.int64)
_VALUES[list(_DIGITS.encode())] = np.arange(85)


def from_base85(text: str) -> bytes:
    """Return the bytes of a text in Z85.

    Raises
    ------
    ValueError
        Where it is none.
    """
    digits = _VALUES[np.frombuffer(text.encode(), np.uint8)]
    _require(digits.size % 5 == 0 and bool(np.all(digits < 85)))
    words = digits.reshape(-1, 5) @ 85 ** np.arange(4, -1, -1)
    _require(bool(np.all(words < 2**32)))
    return words.astype(">u4").tobytes()


def described(root: str, entry: object) -> DeletionVector:
    """Return the vector that an entry of a Delta table's log describes.

    Parameters
    ----------
    root : str
        The table's directory or URL.
    entry : object
        As JSON has it.

    Raises
    ------
    ValueError, OSError
        Where it is malformed, or its file is not there or lies elsewhere.
    """
    stated: dict[str, Any] = entry if isinstance(entry, dict) else {}
    kind, text = stated.get("storageType"), stated.get("pathOrInlineDv")
    numbers = [stated.get("sizeInBytes"), stated.get("cardinality"), stated.get("offset") or 1]
    if not isinstance(text, str) or not all(isinstance(each, int) and each >= 0 for each in numbers):
        message = "the deletion vector is not described"
        raise ValueError(message)
    size, n, offset = (int(each) for each in numbers if each is not None)
    if kind == "i":
        return DeletionVector(inline=from_base85(text), file=None, offset=0, size=size, n_deleted=n)
    if kind == "u":
        prefix, name = text[:-20], uuid.UUID(bytes=from_base85(text[-20:]))
        _require(re.fullmatch(r"[A-Za-z0-9_-]*", prefix) is not None)
        address = "/".join(filter(None, (root, prefix, f"deletion_vector_{name}.bin")))
    else:
        _require(kind == "p")
        address = unquote(text.removeprefix("file://"))
        _require(address.startswith(f"{root}/") and ".." not in address.split("/"))
    return DeletionVector(inline=None, file=status(address), offset=offset, size=size, n_deleted=n)


_CHECKPOINT = re.compile(
    r"\d{20}\.checkpoint(\.(?P<part>\d{10})\.(?P<parts>\d{10})|\.[0-9a-fA-F-]{36})?\.(parquet|json)"
)


def vectors_of(root: str, version: int, paths: Iterable[str]) -> dict[str, DeletionVector]:
    """Return the deletion vectors of files of a Delta table's version, by their paths in its log.

    Commits are read backwards from the version, down to a checkpoint or the first: of each file the newest
    entry counts. Neither statistics nor removed files are looked at.

    Raises
    ------
    ValueError, OSError, pyarrow.ArrowException
        Where the log cannot be read, does not name one of the files, or describes a vector that is none.
    """
    log = f"{root}/_delta_log"
    names = set(_names(log))
    wanted = set(paths)
    vectors: dict[str, DeletionVector] = {}
    for number in range(version, -1, -1):
        if not wanted:
            break
        checkpoint = _checkpoint(names, number)
        files = checkpoint or [f"{number:020}.json"]
        newest: dict[str, object] = {}
        for name in files:
            with closing(_added(log, name, wanted)) as added:
                for path, entry in added:
                    _require(path not in newest)
                    newest[path] = entry
        vectors |= {path: described(root, entry) for path, entry in newest.items() if entry is not None}
        wanted -= newest.keys()
        if checkpoint:
            break
    _require(not wanted)
    return vectors


def _names(log: str) -> Iterable[str]:
    if not is_url(log):
        return os.listdir(log)  # noqa: PTH208 - no Path objects
    return [address.rpartition("/")[2] for address, _, _ in objects_below(log, recursive=False)]


def _checkpoint(names: set[str], version: int) -> list[str]:
    """Return the files of a complete checkpoint of a version; none where there is no such."""
    for name in sorted(name for name in names if name.startswith(f"{version:020}.checkpoint.")):
        parts = _CHECKPOINT.fullmatch(name)
        if parts is None:
            continue
        if parts["parts"] is None:
            return [name]
        of = int(parts["parts"])
        whole = [
            f"{version:020}.checkpoint.{part:010}.{of:010}.parquet" for part in range(1, min(of, 10**6) + 1)
        ]
        if names.issuperset(whole):
            return whole
    return []


def _added(log: str, name: str, wanted: set[str]) -> Generator[tuple[str, object]]:
    """Give the files that a part of a log adds, of those wanted, each with what describes its vector."""
    entries = _of_lines(log, name) if name.endswith(".json") else _of_table(log, name, wanted)
    with closing(entries):
        for entry in entries:
            match entry:
                case {"add": {"path": str(path)} as add} if path in wanted:
                    yield path, add.get("deletionVector")
                case {"sidecar": {"path": str(path)}}:
                    _require("/" not in path and path.endswith(".parquet"))
                    yield from _added(log, f"_sidecars/{path}", wanted)


def _of_lines(log: str, name: str) -> Generator[Any]:
    with (
        opened(status(f"{log}/{name}")) as stored,
        BufferedReader(cast("RawIOBase", stored), 1 << 20) as lines,
    ):
        for line in lines:
            if b'"add"' in line or b'"sidecar"' in line:
                yield json.loads(line)


def _of_table(log: str, name: str, wanted: set[str]) -> Generator[Any]:
    paths = text_array(sorted(wanted))
    with opened(status(f"{log}/{name}")) as stored, pq.ParquetFile(stored) as table:
        held = table.schema_arrow
        kinds = [
            held.field(kind).type if kind in held.names else pa.struct([]) for kind in ("add", "sidecar")
        ]
        columns = [
            f"{kind}.{field}"
            for kind, of, fields in zip(
                ("add", "sidecar"), kinds, (("path", "deletionVector"), ("path",)), strict=True
            )
            for field in fields
            if of.get_field_index(field) >= 0
        ]
        for batch in table.iter_batches(1 << 14, columns=columns):
            if "add" in batch.schema.names:
                named = pc.struct_field(batch.column("add"), "path")
                for add in batch.column("add").filter(pc.is_in(named, paths)).to_pylist():
                    yield {"add": add}
            if "sidecar" in batch.schema.names:
                for sidecar in batch.column("sidecar").drop_null().to_pylist():
                    yield {"sidecar": sidecar}
