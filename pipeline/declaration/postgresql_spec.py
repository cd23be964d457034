"""The declaration of a table or a view in PostgreSQL as a source."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from suffice.pipeline.declaration.fields import Column
from suffice.pipeline.declaration.source_spec import SourceSpec
from suffice.pipeline.declaration.table_names import KeyRanges, TwoPartName

if TYPE_CHECKING:
    from pathlib import Path


class PostgresqlSpec(SourceSpec):
    """A table, a partitioned table or a view in PostgreSQL; who reads it has the server's URI."""

    kind: ClassVar[str] = "postgresql"

    postgresql: TwoPartName
    split_by: KeyRanges | None = None
    clustered_by: Column | None = None

    def address(self, directory: Path) -> str:  # noqa: ARG002 - it is no path
        """Return the name, after the kind."""
        return f"{self.kind}:{self.postgresql}"
