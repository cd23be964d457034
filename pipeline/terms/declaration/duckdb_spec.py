"""The declaration of a table or a view in a DuckDB file as a source."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import PlainValidator

from suffice.pipeline.terms.declaration.fields import Column
from suffice.pipeline.terms.declaration.source_spec import SourceSpec, source_path
from suffice.pipeline.terms.declaration.table_names import TwoPartName

if TYPE_CHECKING:
    from pathlib import Path


class DuckdbSpec(SourceSpec):
    """A table or a view in a local DuckDB file, which nobody writes meanwhile."""

    kind: ClassVar[str] = "duckdb"

    duckdb: Annotated[str, PlainValidator(source_path)]
    table: TwoPartName
    clustered_by: Column | None = None

    def address(self, directory: Path) -> str:
        """Return the file's absolute path, links resolved, and the name as if it lay in it."""
        return f"{self.file(directory)}/{self.table}"

    def file(self, directory: Path) -> str:
        """Return the file's absolute path, links resolved."""
        return os.path.realpath(directory / self.duckdb)
