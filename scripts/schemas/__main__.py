"""Compare ``schemas/`` with the code: ``python -m scripts.schemas``; with ``--write`` write it anew.

The exit status is 1 where a schema is missing, stale, or of nothing.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scripts.schemas import documents
from scripts.schemas.cli_documents import ERROR, PRINTED, file_name
from scripts.schemas.shapes import whole
from scripts.schemas.spec_schema import spec_schema

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMAS = Path(__file__).parent.parent.parent / "schemas"
MAKERS: dict[str, tuple[str, Callable[[], dict[str, Any]]]] = {
    "spec-1": ("A spec, in YAML or JSON", spec_schema),
    "plan-1": ("The canonical plan that a manifest holds", documents.plan),
    "family-1": ("The name of a family of distributions, which other schemas refer to", documents.family),
    "release-manifest-1": ("The manifest of a release", documents.release_manifest),
    "declared-law-1": (
        "The declared law of a published noisy table, in YAML or JSON",
        documents.declared_law,
    ),
    "adopted-manifest-1": ("The manifest of an adopted release", documents.adopted_manifest),
    "publication-manifest-1": ("The manifest of a publication", documents.publication_manifest),
    "withdrawal-1": ("withdrawn.json beside a manifest", documents.withdrawal),
    "about-1": ("about-N.json beside a manifest", documents.about),
    "ledger-export-1": ("One line of a ledger's export", documents.ledger_export),
}


def schemas() -> dict[str, bytes]:
    """Return every schema's bytes, by file name."""
    printed = {file_name(command): (_title(command), schema) for command, schema in PRINTED.items()}
    made = {**{name: (title, make()) for name, (title, make) in MAKERS.items()}, **printed}
    return {f"{name}.json": _written(name, title, schema) for name, (title, schema) in made.items()}


def stale() -> list[str]:
    """Name what differs between the folder and the code."""
    expected = schemas()
    there = {path.relative_to(SCHEMAS).as_posix() for path in SCHEMAS.rglob("*.json")}
    wrong = [name for name, data in expected.items() if not _stands(name, data)]
    return [
        *(f"schemas/{name} is stale" for name in wrong),
        *(f"schemas/{name} is of nothing" for name in sorted(there - expected.keys())),
    ]


def main() -> int:
    """Write, or compare."""
    if "--write" in sys.argv[1:]:
        (SCHEMAS / "cli").mkdir(parents=True, exist_ok=True)
        for name, data in schemas().items():
            (SCHEMAS / name).write_bytes(data)
    wrong = stale()
    for line in wrong:
        sys.stdout.write(f"{line}: python -m scripts.schemas --write\n")
    return 1 if wrong else 0


def _stands(name: str, data: bytes) -> bool:
    path = SCHEMAS / name
    return path.exists() and path.read_bytes() == data


def _title(command: str) -> str:
    if command == ERROR:
        return "What every command prints with --json where it fails"
    return f"What suffice {command} prints with --json"


def _written(name: str, title: str, schema: dict[str, Any]) -> bytes:
    content = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:suffice:schema:{name}",
        **whole(schema),
        "title": title,
    }
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()


if __name__ == "__main__":
    sys.exit(main())
