"""The versions of the site that lie side by side in one folder."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

if TYPE_CHECKING:
    from pathlib import Path

FRONT = "docs/index.html"
REDIRECT = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={to}">
<title>suffice</title>
<p><a href="{to}">Documentation of suffice {version}</a></p>
</html>
"""


def versions(site: Path) -> list[str]:
    """Return the versions that a site holds, the newest first."""
    numbers = []
    for folder in site.iterdir():
        if (folder / FRONT).is_file():
            try:
                numbers.append(Version(folder.name))
            except InvalidVersion:
                continue
    return [str(version) for version in sorted(numbers, reverse=True)]


def write_versions(site: Path) -> list[str]:
    """Write the list that every page's menu reads, and the entry to the newest version.

    The list is a script, as pages opened from a disk may read no JSON.
    """
    listed = versions(site)
    (site / "versions.js").write_text(f"window.sufficeVersions = {json.dumps(listed)};\n", encoding="utf-8")
    entry = REDIRECT.format(to=f"{listed[0]}/{FRONT}", version=listed[0])
    (site / "index.html").write_text(entry, encoding="utf-8")
    return listed
