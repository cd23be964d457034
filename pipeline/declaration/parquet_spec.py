"""The declaration of Parquet files as a source."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import PlainValidator

from suffice.pipeline.declaration.fields import Column
from suffice.pipeline.declaration.source_spec import SourceSpec, source_path


class ParquetSpec(SourceSpec):
    """Local Parquet files: a file, a directory (its ``*.parquet``, not those below it) or a pattern."""

    kind: ClassVar[str] = "parquet"

    parquet: Annotated[str, PlainValidator(source_path)]
    clustered_by: Column | None = None

    def address(self, directory: Path) -> str:
        """Return an absolute path or pattern, links in its fixed part resolved."""
        full = os.path.abspath(directory / self.parquet)  # noqa: PTH100 - no link is followed
        parts = Path(full).parts
        fixed = next((n for n, part in enumerate(parts) if any(sign in part for sign in "*?[")), len(parts))
        return str(Path(os.path.realpath(Path(*parts[:fixed])), *parts[fixed:]))
