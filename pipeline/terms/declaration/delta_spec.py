"""The declaration of a Delta table as a source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import PlainValidator

from suffice.pipeline.terms.declaration.fields import Column
from suffice.pipeline.terms.declaration.scalars import read_integer
from suffice.pipeline.terms.declaration.source_spec import SourceSpec, absolute_pattern, source_path

if TYPE_CHECKING:
    from pathlib import Path


def _root(value: object) -> str:
    text = source_path(value)
    if any(sign in text for sign in "*?["):
        message = "a Delta table is one directory or URL: name it without *, ? and ["
        raise ValueError(message)
    return text


def _version(value: object) -> int:
    version = read_integer(value)
    if version < 0:
        message = "a version is an integer from 0 on"
        raise ValueError(message)
    return version


class DeltaSpec(SourceSpec):
    """A Delta table: the directory or URL that holds ``_delta_log``.

    Without ``version`` it is read as it is when a release begins.
    """

    kind: ClassVar[str] = "delta"

    delta: Annotated[str, PlainValidator(_root)]
    version: Annotated[int, PlainValidator(_version)] | None = None
    clustered_by: Column | None = None

    def address(self, directory: Path) -> str:
        """Return a URL, or an absolute path, links resolved."""
        return absolute_pattern(directory, self.delta)
