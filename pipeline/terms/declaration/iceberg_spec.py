"""The declaration of an Iceberg table as a source."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import PlainValidator

from suffice.pipeline.terms.declaration.fields import Column
from suffice.pipeline.terms.declaration.scalars import read_integer, read_text
from suffice.pipeline.terms.declaration.source_spec import SourceSpec

if TYPE_CHECKING:
    from pathlib import Path

_IDENTIFIER = re.compile(r"[A-Za-z0-9_-]{1,255}(\.[A-Za-z0-9_-]{1,255}){1,15}", re.ASCII)
_CATALOG = re.compile(r"[A-Za-z0-9_-]{1,63}", re.ASCII)


def _identifier(value: object) -> str:
    text = read_text(value)
    if not _IDENTIFIER.fullmatch(text):
        message = "an Iceberg table is NAMESPACE.TABLE, of letters, digits, _ and -"
        raise ValueError(message)
    return text


def _catalog(value: object) -> str:
    text = read_text(value)
    if not _CATALOG.fullmatch(text):
        message = "a catalog is a name of letters, digits, _ and -; where it is says the environment"
        raise ValueError(message)
    return text


class IcebergSpec(SourceSpec):
    """An Iceberg table of a catalog whose place and credentials the worker's environment holds.

    Without ``snapshot`` the table is read as it is when a release begins.
    """

    kind: ClassVar[str] = "iceberg"

    iceberg: Annotated[str, PlainValidator(_identifier)]
    catalog: Annotated[str, PlainValidator(_catalog)]
    snapshot: Annotated[int, PlainValidator(read_integer)] | None = None
    clustered_by: Column | None = None

    def address(self, directory: Path) -> str:  # noqa: ARG002 - it stands in no directory
        """Return the catalog's name and the table's."""
        return f"iceberg:{self.catalog}/{self.iceberg}"
