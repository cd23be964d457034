"""Hostile manifests: every field of real ones changed in every way, the hashes in them made right again."""

from __future__ import annotations

import copy
import hashlib
import json
import resource
import sys
import time
from typing import TYPE_CHECKING, Any

from suffice.errors import ReleaseCorruptError
from suffice.storage.releases.manifest import checksum
from suffice.storage.releases.manifest_reader import parse_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator

Path = tuple[str | int, ...]

DELETED = object()
OTHERS: tuple[Any, ...] = (
    DELETED,
    None,
    True,
    -1,
    0,
    2**53 - 1,
    "",
    "NaN",
    "1e999",
    "9" * 5000,
    "-0.5",
    "x" * 50_000,
    "\u202eevil\x1b[31m",
    "../../x",
    [],
    {},
    [[]],
    {"range": ["0", "9999999"]},
    {"from": "0001-01-01", "to": "9999-12-31", "every": "day"},
    {"file": "/etc/hostname"},
    [str(number) for number in range(70_000)],
)

UNDERIVED = {
    "created",
    "drawing_hash",
    "drawing_sequence",
    "input_verified",
    "ledger_id",
    "n",
    "release_id",
    "versions",
}
"""Fields that only a signature and a ledger vouch for: other values of the right form are read."""


def is_unvouched(path: Path) -> bool:
    """Tell whether another value at a place can make another release, consistent in itself."""
    return path[0] in UNDERIVED or (path[0] == "plan" and path[-2:] == ("nulls", "value"))


def encode(content: object) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


def sealed(content: dict[str, Any]) -> bytes:
    """Write a manifest with whatever content, its hashes right where there is something to hash."""
    content = dict(content)
    if isinstance(content.get("plan"), dict):
        content["plan_hash"] = hashlib.sha256(encode(content["plan"])).hexdigest()
    blank = {**content, "checksum": None, "signature": None}
    if "checksum" in content:
        content["checksum"] = hashlib.sha256(encode(blank)).hexdigest()
    return encode(content)


def paths(value: object, path: Path = ()) -> Iterator[Path]:
    """Return every place in a document."""
    if path:
        yield path
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, entry in entries:
        yield from paths(entry, (*path, key))


def changed(content: dict[str, Any], path: Path, other: object) -> dict[str, Any]:
    """Return a copy with another value at a place, or none."""
    copied = copy.deepcopy(content)
    holder: Any = copied
    for key in path[:-1]:
        holder = holder[key]
    if other is DELETED:
        del holder[path[-1]]
    else:
        holder[path[-1]] = other
    return copied


def mutants(content: dict[str, Any], step: int) -> Iterator[tuple[Path, bytes]]:
    """Return each `step`-th of: every field changed in every way, repeated, and nested."""
    position, original = 0, encode(content)
    for path in paths(content):
        standing: Any = content
        for key in path:
            standing = standing[key]
        for other in (*OTHERS, [standing] * 3, {"a": standing}, [standing, standing]):
            position += 1
            if position % step == 0 and (other != standing or type(other) is not type(standing)):
                data = sealed(changed(content, path, other))
                if data != original:  # a hash was made right again
                    yield path, data


def resident_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Read documents from a file, refuse their mutants, and print what that took."""
    with open(sys.argv[1], encoding="utf-8") as file:  # noqa: PTH123 - a script of a test
        documents = json.load(file)
    step = int(sys.argv[2])
    before, slowest, longest = resident_mb(), 0.0, 0
    counted, refused, read, wrong = 0, 0, [], []
    for content in documents:
        parse_manifest(encode({**content, "checksum": checksum(content)}))
        for path, data in mutants(content, step):
            counted += 1
            started = time.process_time()
            try:
                parse_manifest(data)
            except ReleaseCorruptError as error:
                refused += 1
                longest = max(longest, len(str(error)))
                words = ("Input should", "pydantic", "Traceback", "\x1b", "\u202e")
                wrong += [f"{path}: {error}" for word in words if word in str(error)]
            except Exception as error:  # noqa: BLE001 - counted
                wrong.append(f"{path}: {type(error).__name__} {error}")
            else:
                if not is_unvouched(path):
                    read.append(str(path))
            slowest = max(slowest, time.process_time() - started)
    outcome = {"counted": counted, "refused": refused, "read": read[:5], "wrong": wrong[:5]}
    figures = {"longest": longest, "seconds": slowest, "mb": resident_mb() - before}
    sys.stdout.write(json.dumps({**outcome, **figures}))


if __name__ == "__main__":
    main()
