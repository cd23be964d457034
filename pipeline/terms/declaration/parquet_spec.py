"""The declaration of Parquet files as a source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field, PlainValidator, model_validator

from suffice.pipeline.terms.declaration.fields import Column
from suffice.pipeline.terms.declaration.hive_columns import HiveColumn, read_hive
from suffice.pipeline.terms.declaration.source_spec import SourceSpec, absolute_pattern, source_path

if TYPE_CHECKING:
    from pathlib import Path


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
        return absolute_pattern(directory, self.parquet)
