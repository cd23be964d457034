"""The page of a publication: what was asked, what answers it, and its files."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import TYPE_CHECKING, Any

from suffice.pages.release_page import Link, Site, size_text, table_rows
from suffice.pages.rendering import asset, render

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SCRIPTS = ("theme.js", "catalogue.js")
_PROLOGUE = re.compile(
    r'<!DOCTYPE html>\s*<html lang="en">\s*<head>\s*<meta charset="utf-8">\s*'
    r'<meta http-equiv="Content-Security-Policy" content="([^"<>]{1,2000})">'
)
_HASH = re.compile(r"'sha256-[A-Za-z0-9+/]{43}='")


def is_inert(page: bytes) -> bool:
    """Tell whether a page forbids itself, before anything else, scripts that are not ours and all requests.

    What others published is put beside our pages: a script in it would run in their place.
    """
    try:
        found = _PROLOGUE.match(page.decode("utf-8"))
    except UnicodeDecodeError:
        return False
    if found is None:
        return False
    policy: dict[str, list[str]] = {}
    for directive in found[1].replace("&#39;", "'").split(";"):
        name, *sources = directive.split() or [""]
        policy.setdefault(name.lower(), sources)
    ours = {f"'sha256-{_digest(asset(name))}'" for name in ("theme.js", "catalogue.js", "explorer.js")}
    return (
        policy.pop("default-src", []) == ["'none'"]
        and set(policy.pop("script-src", [])) <= {"'none'", *ours}
        and all(_HASH.fullmatch(source) or source == "'none'" for source in policy.pop("style-src", []))
        and set(policy.pop("img-src", [])) <= {"data:", "'none'"}
        and set(policy) <= {"base-uri", "form-action", ""}
    )


def publication_page(
    manifest: Mapping[str, Any],
    *,
    site: Site,
    root: str,
    summaries: Sequence[Mapping[str, Any]],
    card: str | None,
    releases: Sequence[tuple[str, Link | None]],
    signature_note: str,
) -> str:
    """Return the page of a publication.

    Parameters
    ----------
    manifest : mapping
        As it was read and checked.
    site, root
        As for a release's page.
    summaries : sequence of mapping
        Rows of its table of summaries; empty where there is none to show.
    card : str or None
        The file of its card, beside the page.
    releases : sequence of (str, Link or None)
        What it rests on: a label, and the page of it where the catalogue has one.
    signature_note : str
    """
    request = {
        name: value
        for name, value in manifest["request"].items()
        if name not in {"releases", "algorithm"} and value not in (None, [], {}, "")
    }
    return render(
        "publication.html",
        scripts=_SCRIPTS,
        site=site,
        root=root,
        here="",
        crumbs=[("Data", "index.html")],
        manifest=manifest,
        signature_note=signature_note,
        request=[(name.replace("_", " "), _in_words(value)) for name, value in request.items()],
        diagnostics=[
            (of, ", ".join(f"{name} {value}" for name, value in found.items()))
            for of, found in manifest["diagnostics"].items()
        ],
        releases=releases,
        card=card,
        rows=table_rows(summaries),
        n_rows=len(summaries),
        downloads=[{**file, "size_text": size_text(file["size"])} for file in manifest["files"]],
    )


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_in_words(of)}" for key, of in value.items())
    if isinstance(value, list):
        return ", ".join(map(_in_words, value))
    return str(value)


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
