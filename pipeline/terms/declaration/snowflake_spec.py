"""The declaration of a table in Snowflake as a source."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from suffice.pipeline.terms.declaration.source_spec import SourceSpec
from suffice.pipeline.terms.declaration.table_names import KeyRanges, ThreePartName

if TYPE_CHECKING:
    from pathlib import Path


class SnowflakeSpec(SourceSpec):
    """A table in Snowflake as it was at one time; who reads it has the account's URI."""

    kind: ClassVar[str] = "snowflake"

    snowflake: ThreePartName
    split_by: KeyRanges | None = None

    def address(self, directory: Path) -> str:  # noqa: ARG002 - it is no path
        """Return the name, after the kind."""
        return f"{self.kind}:{self.snowflake}"
