"""What a spec states of each kind of source: its key and its fields; who reads it is not known here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import PlainValidator
from pydantic_core import PydanticKnownError

from suffice.pipeline.declaration.fields import Column, SpecModel

if TYPE_CHECKING:
    from collections.abc import Mapping

NOT_BUILT = ("csv", "sql", "delta", "iceberg")
"""Kinds that a spec may ask for; a kind that is registered is built, whether it stands here or not."""

_LONGEST_PATH = 4096
"""Characters that file systems take at most."""


class SourceSpec(SpecModel):
    """Where the rows are; not part of what is charged.

    Each kind has a model of its own, whose first field is required and called like the kind. A kind may have
    the field ``clustered_by``: the rows of each value of that column stand together, in a file or two. Where
    that is true, few rows travel between workers to be bounded by that column; no number depends on it.
    """

    kind: ClassVar[str]
    """The key that chooses this model in a spec, and the reader in ``pipeline/sources``."""

    def address(self, directory: Path) -> str:
        """Return the place of the rows as an owner grants it, given the spec's directory: a path or its like.

        It is made of the spec alone, holds no credentials, and does not depend on the data.
        """
        raise NotImplementedError


def _path(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        message = "a source is a file, a directory or a pattern"
        raise ValueError(message)
    if "\0" in value or len(value) > _LONGEST_PATH:
        message = f"a source is a path of at most {_LONGEST_PATH} characters, none of them NUL"
        raise ValueError(message)
    return value


class ParquetSpec(SourceSpec):
    """Local Parquet files: a file, a directory (its ``*.parquet``, not those below it) or a pattern."""

    kind: ClassVar[str] = "parquet"

    parquet: Annotated[str, PlainValidator(_path)]
    clustered_by: Column | None = None

    def address(self, directory: Path) -> str:
        """Return an absolute path or pattern, links in its fixed part resolved."""
        full = os.path.abspath(directory / self.parquet)  # noqa: PTH100 - no link is followed
        parts = Path(full).parts
        fixed = next((n for n, part in enumerate(parts) if any(sign in part for sign in "*?[")), len(parts))
        return str(Path(os.path.realpath(Path(*parts[:fixed])), *parts[fixed:]))


SOURCE_SPECS: dict[str, type[SourceSpec]] = {model.kind: model for model in (ParquetSpec,)}
"""Every kind of source that can be declared, by key; `suffice.pipeline.sources.SOURCES` reads them."""


def source_model(entry: Mapping[str, Any]) -> type[SourceSpec]:
    """Return the model of an entry, by the kind it names; the first kind's where it names none."""
    kind = next((kind for kind in SOURCE_SPECS if kind in entry), next(iter(SOURCE_SPECS)))
    return SOURCE_SPECS[kind]


def parse_source(entry: object) -> SourceSpec:
    """Read the entry ``source`` of a spec.

    Raises
    ------
    pydantic.ValidationError, pydantic_core.PydanticKnownError
        Where it is no mapping, or not what its kind states.
    """
    if not isinstance(entry, dict):
        raise PydanticKnownError("model_type", {"class_name": "Source"})
    return source_model(entry).model_validate(entry)
