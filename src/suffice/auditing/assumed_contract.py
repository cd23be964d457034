"""The contract of an audit's scratch account: one that is stated, or the one that a spec implies."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from suffice.auditing.scratch_sources import kind_tried
from suffice.pipeline.rows.sources.inspecting import columns_of_texts, proposed_contract
from suffice.pipeline.terms.declaration.csv_spec import CsvSpec
from suffice.pipeline.terms.declaration.data_contract import SourceForm
from suffice.pipeline.terms.declaration.parquet_spec import ParquetSpec
from suffice.pipeline.terms.declaration.type_family import ColumnFamily, TypeFamily

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suffice.auditing.implied_schema import ImpliedColumn
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.data_contract import DataContract

_FAMILIES = {
    TypeFamily.TEXT: ColumnFamily.TEXT,
    TypeFamily.BOOLEAN: ColumnFamily.BOOLEAN,
    TypeFamily.DATE: ColumnFamily.DATE,
}


def implied_contract(spec: Spec, schema: Mapping[str, ImpliedColumn]) -> DataContract:
    """Return the contract that ``suffice inspect`` would propose where the data are what a spec implies."""
    if isinstance(spec.source, CsvSpec):
        return proposed_contract(spec, columns_of_texts(spec, spec.source))
    folders = spec.source.hive if isinstance(spec.source, ParquetSpec) else {}
    columns = {name: _family(column) for name, column in schema.items()}
    columns |= {name: ColumnFamily(str(folder.type)) for name, folder in folders.items()}
    return proposed_contract(spec, columns)


def contract_as_tried(contract: DataContract, spec: Spec) -> DataContract:
    """Return a contract of the kind of source that is tried in place of a spec's."""
    kind, _ = kind_tried(spec)
    if kind == contract.source.kind:
        return contract
    return replace(contract, source=SourceForm(kind=kind, compression="as_stored"))


def _family(column: ImpliedColumn) -> ColumnFamily:
    if column.family is TypeFamily.NUMERIC:
        return ColumnFamily.INTEGER if column.is_whole else ColumnFamily.FLOATING
    if column.family is TypeFamily.TIMESTAMP:
        return ColumnFamily.TIMESTAMP_WITH_ZONE if column.has_zone else ColumnFamily.TIMESTAMP
    return _FAMILIES[column.family]
