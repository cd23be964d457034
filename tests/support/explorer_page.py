"""A page with the explorer of a release, as the catalogue's pages carry it."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

ASSETS = files("suffice.pages") / "assets"

# The colours that the explorer takes from the catalogue's style.
COLOURS = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #ffffff; --muted: #5a6470; --line: #dfe3e8;
  --control-line: #7d8793; --accent: #0b63a5; --contrast: #b8500f; --danger: #b3261e; --shade: #f1f4f7; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8ebee; --paper: #14181d; --muted: #a2adb8; --line: #2b323a; --control-line: #77828e;
    --accent: #6cb6f5; --contrast: #f2a065; --danger: #ff9d94; --shade: #1d232a; } }
body { font: 16px/1.5 system-ui, sans-serif; background: var(--paper); color: var(--ink); }
"""


def explorer_page(release: Path, uri: str | None = None) -> str:
    """Return a page that carries a release and the explorer, under the policy of the catalogue's pages."""
    manifest = (release / "manifest.json").read_text(encoding="utf-8")
    declared = json.loads(manifest)
    data = {
        "label": f"{declared['name']}@{declared['window']}",
        "uri": uri or str(release),
        "manifest": manifest,
        "files": {
            file["path"]: base64.b64encode((release / file["path"]).read_bytes()).decode()
            for file in declared["files"]
        },
    }
    script = (ASSETS / "explorer.js").read_text(encoding="utf-8")
    style = COLOURS + (ASSETS / "explorer.css").read_text(encoding="utf-8")
    policy = f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>A release</title>
<style>{style}</style>
</head>
<body>
<main><h1>A release</h1><section id="explorer" aria-label="Explorer"></section></main>
<script type="application/json" id="suffice-release">{_inert(json.dumps(data))}</script>
<script>{script}</script>
</body>
</html>
"""


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _inert(text: str) -> str:
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
