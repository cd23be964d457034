"""The page `docs/how-to/read-from-a-source.md`: its spec and its commands, for each source of its table."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

PAGE = "docs/how-to/read-from-a-source.md"
EXAMPLE = "postgresql"
"""The source that the page's spec and commands have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedSource:
    """A row of the table: what a spec states of a source, and what the grant does."""

    spec: str
    grant: str


def stated_sources(page: str) -> dict[str, StatedSource]:
    """Return the rows of the page's table, by the key that names their kind in a spec."""
    rows = re.findall(r"^\| [^|]+ \| `(\{(\w+): [^`]+)` \| `([^`]+)` \| `[^`]+` \|$", page, re.MULTILINE)
    return {kind: StatedSource(spec=spec, grant=grant) for spec, kind, grant in reversed(rows)}


def spec_and_commands(page: str, kind: str) -> tuple[str, list[list[str]]]:
    """Return the page's spec and the words of its commands for a source."""
    sources = stated_sources(page)
    example, wanted = sources[EXAMPLE], sources[kind]
    spec = re.findall(r"^```yaml\n(name:.*?)^```", page, re.MULTILINE | re.DOTALL)[0]
    grant, release = re.findall(r"^    (suffice .*)$", page, re.MULTILINE)
    assert spec.count(f"source: {example.spec}\n") == 1
    assert grant.count(f"--source {example.grant} ") == 1
    lines = (grant.replace(f"--source {example.grant} ", f"--source {wanted.grant} "), release)
    listed = [shlex.split(line)[1:] for line in lines]
    assert [words[0] for words in listed] == ["ledger", "release"]
    return spec.replace(f"source: {example.spec}\n", f"source: {wanted.spec}\n"), listed


def section(page: str, title: str) -> str:
    """Return what stands below a heading of the second level."""
    return page.split(f"\n## {title}\n")[1].split("\n## ", maxsplit=1)[0]
