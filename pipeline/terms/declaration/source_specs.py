"""Every kind of source that can be declared, one file each; who reads it is not known here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticKnownError

from suffice.pipeline.terms.declaration.bigquery_spec import BigquerySpec
from suffice.pipeline.terms.declaration.csv_spec import CsvSpec
from suffice.pipeline.terms.declaration.delta_spec import DeltaSpec
from suffice.pipeline.terms.declaration.duckdb_spec import DuckdbSpec
from suffice.pipeline.terms.declaration.iceberg_spec import IcebergSpec
from suffice.pipeline.terms.declaration.parquet_spec import ParquetSpec
from suffice.pipeline.terms.declaration.postgresql_spec import PostgresqlSpec
from suffice.pipeline.terms.declaration.snowflake_spec import SnowflakeSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.pipeline.terms.declaration.source_spec import SourceSpec

SOURCE_SPECS: dict[str, type[SourceSpec]] = {
    model.kind: model
    for model in (
        ParquetSpec,
        CsvSpec,
        DeltaSpec,
        IcebergSpec,
        PostgresqlSpec,
        DuckdbSpec,
        SnowflakeSpec,
        BigquerySpec,
    )
}
"""Every kind of source that can be declared, by key; `suffice.pipeline.rows.sources.SOURCES` reads them."""


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
    if not SOURCE_SPECS.keys() & entry.keys():
        message = f"a source names its kind by a key: {', '.join(SOURCE_SPECS)}"
        raise ValueError(message)
    return source_model(entry).model_validate(entry)
