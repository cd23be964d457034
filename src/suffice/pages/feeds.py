"""Feeds of a catalogue: Atom, and JSON Feed 1.1, of its newest releases."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from suffice.pages.rendering import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pages.release_page import Site
    from suffice.pages.site_pages import Entry

_MOST = 50
_NAMESPACE = uuid.UUID("5d6e1c3a-6f0b-5c6b-9f0e-2b1f6f3a7c11")
"""Of the ids of entries, which are the same wherever a catalogue stands."""


def atom_feed(site: Site, entries: Sequence[Entry]) -> str:
    """Return an Atom feed; its links are relative where the catalogue's address is not known."""
    base = f"{site.base_url}/" if site.base_url else ""
    newest = _newest(entries)
    updated = _time(newest[0].facts["created"]) if newest else "1970-01-01T00:00:00Z"
    parts = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        f"<title>{_text(site.title)}</title>",
        f"<id>{_id('catalogue ' + site.title)}</id>",
        f"<updated>{updated}</updated>",
        "<author><name>suffice</name></author>",
        f'<link rel="self" type="application/atom+xml" href={_attribute(base + "feed.xml")}/>',
        f'<link rel="alternate" type="text/html" href={_attribute(base + "index.html")}/>',
    ]
    for entry in newest:
        parts += [
            "<entry>",
            f"<title>{_text(entry.facts['label'])}</title>",
            f"<id>{_id(entry.facts['manifest_sha256'])}</id>",
            f"<updated>{_time(entry.facts['created'])}</updated>",
            f'<link rel="alternate" type="text/html" href={_attribute(base + entry.path)}/>',
            f"<summary>{_text(_summary(entry))}</summary>",
            "</entry>",
        ]
    return "\n".join([*parts, "</feed>", ""])


def json_feed(site: Site, entries: Sequence[Entry]) -> str:
    """Return a JSON Feed; it has addresses where the catalogue's is known."""
    base = f"{site.base_url}/" if site.base_url else None
    document = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": visible(site.title),
        **({"home_page_url": f"{base}index.html", "feed_url": f"{base}feed.json"} if base else {}),
        "items": [
            {
                "id": _id(entry.facts["manifest_sha256"]),
                **({"url": base + entry.path} if base else {}),
                "title": visible(entry.facts["label"]),
                "content_text": visible(_summary(entry)),
                "date_published": _time(entry.facts["created"]),
                "tags": sorted({statistic["family"] for statistic in entry.facts["statistics"]}),
            }
            for entry in _newest(entries)
        ],
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def _newest(entries: Sequence[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda entry: (entry.facts["created"], entry.path), reverse=True)[:_MOST]


def _summary(entry: Entry) -> str:
    facts = entry.facts
    names = ", ".join(statistic["name"] for statistic in facts["statistics"])
    mark = f" This release was {entry.mark}." if entry.mark else ""
    return f"{facts['dataset']}: {names}; {facts['cells']:,} cells, epsilon {facts['epsilon']}.{mark}"


def _time(hour: str) -> str:
    return f"{hour[:13]}:00:00Z"


def _id(name: str) -> str:
    return f"urn:uuid:{uuid.uuid5(_NAMESPACE, name)}"


def _text(text: str) -> str:
    return escape(visible(text))


def _attribute(text: str) -> str:
    return quoteattr(visible(text))
