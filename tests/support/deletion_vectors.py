"""Deletion vectors written by hand, as the Delta protocol states them; the bitmaps are those of pyroaring."""

from __future__ import annotations

import json
import string
import struct
import uuid
import zlib
from typing import TYPE_CHECKING, Any

from pyroaring import BitMap

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

MAGIC = 1681511377


def vector_of(positions: Sequence[int], *, runs: bool = False) -> bytes:
    """Return the bytes of a vector: a magic number, and bitmaps of 32 bits."""
    bitmaps: dict[int, BitMap] = {}
    for position in positions:
        bitmaps.setdefault(position >> 32, BitMap()).add(position & 0xFFFFFFFF)
    parts = [struct.pack("<IQ", MAGIC, len(bitmaps))]
    for key in sorted(bitmaps):
        if runs:
            bitmaps[key].run_optimize()
        parts += [struct.pack("<I", key), bitmaps[key].serialize()]
    return b"".join(parts)


def in_z85(data: bytes) -> str:
    """Return bytes, padded to whole words, as a text in Z85."""
    digits = string.digits + string.ascii_lowercase + string.ascii_uppercase + ".-:+=^!/*?&<>()[]{}@%$#"
    data += bytes(-len(data) % 4)
    words = struct.unpack(f">{len(data) // 4}I", data)
    return "".join(digits[word // 85**power % 85] for word in words for power in (4, 3, 2, 1, 0))


def inline(vector: bytes, count: int) -> dict[str, Any]:
    """Return the entry of a vector that the log holds."""
    return {
        "storageType": "i",
        "pathOrInlineDv": in_z85(vector),
        "sizeInBytes": len(vector),
        "cardinality": count,
    }


def in_file(
    root: Path, vector: bytes, count: int, *, prefix: str = "", before: bytes = b""
) -> dict[str, Any]:
    """Write a vector into a file of its own, behind others' bytes, and return its entry."""
    name = uuid.uuid4()
    folder = root / prefix
    folder.mkdir(exist_ok=True)
    checksum = struct.pack(">I", zlib.crc32(vector))
    content = b"\1" + before + struct.pack(">I", len(vector)) + vector + checksum
    (folder / f"deletion_vector_{name}.bin").write_bytes(content)
    return {
        "storageType": "u",
        "pathOrInlineDv": prefix + in_z85(name.bytes),
        "offset": 1 + len(before),
        "sizeInBytes": len(vector),
        "cardinality": count,
    }


def delete_rows(root: Path, version: int, entries: Mapping[str, dict[str, Any]]) -> None:
    """Commit a version in which vectors delete rows of files, which stay as they are, as Spark does.

    Parameters
    ----------
    root : Path
        The table.
    version : int
        The one before exists.
    entries : mapping of str to dict
        Vectors' entries, by a text that the path of one file contains.
    """
    log = root / "_delta_log"
    newest: dict[str, dict[str, Any]] = {}
    for number in range(version):
        for line in (log / f"{number:020}.json").read_text().splitlines():
            add = json.loads(line).get("add")
            if add:
                newest[add["path"]] = add
    lines: list[dict[str, Any]] = []
    for text, vector in entries.items():
        (add,) = [add for path, add in newest.items() if text in path]
        stats = json.dumps({**json.loads(add["stats"]), "tightBounds": False})
        removed = {name: add[name] for name in ("path", "partitionValues", "size")}
        if add.get("deletionVector"):
            removed["deletionVector"] = add["deletionVector"]
        times = {"deletionTimestamp": 1, "dataChange": True, "extendedFileMetadata": True}
        lines += [
            {"remove": {**removed, **times}},
            {"add": {**add, "stats": stats, "deletionVector": vector}},
        ]
    (log / f"{version:020}.json").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
