"""The declaration of a table or a view in PostgreSQL as a source."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import PlainValidator

from suffice.pipeline.terms.declaration.fields import Column
from suffice.pipeline.terms.declaration.scalars import read_choice
from suffice.pipeline.terms.declaration.source_spec import SourceSpec
from suffice.pipeline.terms.declaration.table_names import KeyRanges, TwoPartName

if TYPE_CHECKING:
    from pathlib import Path


class RowPolicies(StrEnum):
    """What becomes of a table whose row-level policies choose what the reading role sees.

    ``refused``: it is not read. ``accepted``: the rows that the role sees are read, as the owner means it.
    """

    REFUSED = "refused"
    ACCEPTED = "accepted"


class PostgresqlSpec(SourceSpec):
    """A table, a partitioned table or a view in PostgreSQL; who reads it has the server's URI."""

    kind: ClassVar[str] = "postgresql"

    postgresql: TwoPartName
    row_policies: Annotated[RowPolicies, PlainValidator(partial(read_choice, kind=RowPolicies))] = (
        RowPolicies.REFUSED
    )
    split_by: KeyRanges | None = None
    clustered_by: Column | None = None

    def address(self, directory: Path) -> str:  # noqa: ARG002 - it is no path
        """Return the name, after the kind."""
        return f"{self.kind}:{self.postgresql}"
