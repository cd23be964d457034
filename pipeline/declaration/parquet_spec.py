"""The declaration of Parquet files as a source."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field, PlainValidator, model_validator

from suffice.pipeline.declaration.fields import Column
from suffice.pipeline.declaration.hive_columns import HiveColumn, read_hive
from suffice.pipeline.declaration.source_spec import SourceSpec, is_url, source_path


class ParquetSpec(SourceSpec):
    """Parquet files: a file, a directory (its ``*.parquet``, not those below it), a pattern, or a URL.

    With ``hive`` the files of a directory's folders ``KEY=VALUE`` are read too, and their values are columns.
    """

    kind: ClassVar[str] = "parquet"

    parquet: Annotated[str, PlainValidator(source_path)]
    clustered_by: Column | None = None
    hive: Annotated[dict[str, HiveColumn], PlainValidator(read_hive)] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _names_a_directory(self) -> Any:
        if self.hive and any(sign in self.parquet for sign in "*?["):
            message = "hive folders are those of one directory or URL: name it without *, ? and ["
            raise ValueError(message)
        return self

    def address(self, directory: Path) -> str:
        """Return a URL; or an absolute path or pattern, links in its fixed part resolved."""
        if is_url(self.parquet):
            return self.parquet
        full = os.path.abspath(directory / self.parquet)  # noqa: PTH100 - no link is followed
        parts = Path(full).parts
        fixed = next((n for n, part in enumerate(parts) if any(sign in part for sign in "*?[")), len(parts))
        return str(Path(os.path.realpath(Path(*parts[:fixed])), *parts[fixed:]))
