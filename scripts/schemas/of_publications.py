"""What commands print that publish, or show what was published."""

from __future__ import annotations

from scripts.schemas import documents
from scripts.schemas.of_answers import reading
from scripts.schemas.shapes import (
    KEY_ID,
    TEXT,
    Schema,
    closed,
    digits,
    listed,
    named,
    of_model,
    or_null,
)
from scripts.schemas.typed import fields_of, schema_of
from suffice.cli.publications import FetchedPublication, PublicationList
from suffice.cli.trust import VerifiedPublication
from suffice.storage.operations.withdrawing import RestingRelease
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
RESTING = listed(schema_of(RestingRelease))
VERIFIED_PUBLICATION = reading(fields_of(VerifiedPublication))


COMMANDS: dict[str, Schema] = {
    "publish": PUBLISHED,
    "publications list": reading(fields_of(PublicationList)),
    "publications show": reading({**PUBLICATION, "releases": RESTING}),
    "publications verify": VERIFIED_PUBLICATION,
    "publications fetch": schema_of(FetchedPublication),
}
"""By command: what it prints with ``--json``."""
