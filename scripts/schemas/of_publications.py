"""What commands print that publish, or show what was published."""

from __future__ import annotations

from scripts.schemas import documents
from scripts.schemas.of_answers import SIGNATURE, reading
from scripts.schemas.shapes import (
    BOOLEAN,
    COUNT,
    HOUR,
    KEY_ID,
    TEXT,
    TEXTS,
    Schema,
    closed,
    digits,
    each,
    listed,
    named,
    of_model,
    or_null,
)
from suffice.storage.publications.publication import PublishedEntry

_manifest = documents.publication_manifest()["properties"]
_file = named(
    "published_file",
    closed({**of_model(PublishedEntry)["properties"], "uri": TEXT}),
)
PUBLICATION: Schema = {
    "publication_id": digits(32),
    "uri": TEXT,
    **{name: _manifest[name] for name in ("title", "created", "epsilon", "cost", "diagnostics", "request")},
    "signed_by": or_null(KEY_ID),
    "files": listed(_file),
}
PUBLISHED = reading({"status": {"enum": ["published", "found"]}, **PUBLICATION})
"""What is printed where something was published, or had been."""
RESTING = listed(
    closed(
        {
            **each(TEXT, "release release_id"),
            "state": {"enum": ["stands", "withdrawn", "not_found", "unreadable"]},
        }
    )
)
VERIFIED_PUBLICATION = reading(
    {
        "releases": RESTING,
        "ok": BOOLEAN,
        "problems": TEXTS,
        "ledger": {"const": "not_checked"},
        "signature": SIGNATURE,
        **each(COUNT, "files left_files"),
    }
)


COMMANDS: dict[str, Schema] = {
    "publish": PUBLISHED,
    "publications list": reading(
        {
            "uri": TEXT,
            "publications": listed(
                closed(
                    {
                        "publication_id": digits(32),
                        **each(TEXT, "title kind"),
                        "created": HOUR,
                        "files": COUNT,
                        "signed_by": or_null(KEY_ID),
                        "withdrawn": TEXTS,
                    }
                )
            ),
            "problems": TEXTS,
        }
    ),
    "publications show": reading({**PUBLICATION, "releases": RESTING}),
    "publications verify": VERIFIED_PUBLICATION,
    "publications fetch": closed({"publication_id": digits(32), "files": TEXTS}),
}
"""By command: what it prints with ``--json``."""
