"""The declaration of Parquet files as a source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import PlainValidator

from suffice.pipeline.declaration.fields import Column
from suffice.pipeline.declaration.source_spec import SourceSpec, absolute_pattern, source_path

if TYPE_CHECKING:
    from pathlib import Path


class ParquetSpec(SourceSpec):
    """Local Parquet files: a file, a directory (its ``*.parquet``, not those below it) or a pattern."""

    kind: ClassVar[str] = "parquet"

    parquet: Annotated[str, PlainValidator(source_path)]
    clustered_by: Column | None = None

    def address(self, directory: Path) -> str:
        """Return an absolute path or pattern, links in its fixed part resolved."""
        return absolute_pattern(directory, self.parquet)
