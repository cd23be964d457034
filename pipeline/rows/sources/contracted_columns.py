"""The columns of files as the contract of their account has them, by a total rule.

A column that a file lacks, has twice, or holds in a type of which no value reads as the contract's family is
null in it. Where that is the unit's column, the file has no rows: nobody can tell whose they are, and one row
alone, made a unit of its own, would let a person enter any number of times. For the same reason a row enters
nothing whose unit is there and does not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from suffice.arrays import null_scalar
from suffice.pipeline.rows.sources.arrow_arrays import decimal_is_readable
from suffice.pipeline.rows.sources.contract import PartSchema, spec_columns
from suffice.pipeline.rows.sources.exact_data import exact_data
from suffice.pipeline.rows.sources.family_values import (
    ARROW_TYPES,
    NUMERIC,
    converter,
    has_nanoseconds,
    stored_family,
)
from suffice.pipeline.rows.sources.file_columns import FileColumns
from suffice.pipeline.spec.plan import measures
from suffice.pipeline.terms.declaration.type_family import ColumnFamily
from suffice.pipeline.terms.statistics.measure import orders_of

if TYPE_CHECKING:
    from suffice.pipeline.rows.sources.parquet_footers import ColumnsOf
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.data_contract import DataContract


@exact_data(travels=True)
class ContractedColumns:
    """How the columns of a file become those of its contract: known when the file's own are.

    Parameters
    ----------
    inner : ColumnsOf
        How they become the source's: by folders, or by a table's log.
    families : tuple of (str, ColumnFamily)
        What the contract says of the columns that the spec reads.
    unit : str or None
        The column whose values are the units.
    orders : tuple of str
        Columns that order the rows of a unit: of decimals and integers both are then float64, as decimals
        have the place of the nearest.
    """

    inner: ColumnsOf
    families: tuple[tuple[str, ColumnFamily], ...]
    unit: str | None = None
    orders: tuple[str, ...] = ()

    def of(self, stored: pa.Schema) -> FileColumns | None:
        """Return how the columns of a file become the contract's; None where a table's file tells no ids."""
        inner = self.inner.of(stored)
        if inner is None:
            return None
        seen = inner.schema(stored)
        constants, is_folder = dict(inner.constants), isinstance(self.inner, FileColumns)
        read_as, as_numbers, has_rows = [], [], True
        for name, family in self.families:
            if name in constants:
                # A table's log states nulls; a folder that states no unit may be anybody's.
                has_rows &= name != self.unit or constants[name].is_valid or not is_folder
                continue
            positions = seen.get_all_field_indices(name)
            kind = seen.field(positions[0]).type if len(positions) == 1 else None
            if kind is None or converter(_values_of(kind), family) is None or self._is_too_wide(name, kind):
                constants[name] = null_scalar(ARROW_TYPES[family])
                has_rows &= name != self.unit
            elif not _is_of(kind, family) or (name == self.unit and has_nanoseconds(_values_of(kind))):
                read_as.append((name, family))
            elif name in self.orders and name != self.unit and _places_differ(kind, family):
                as_numbers.append(name)
        return FileColumns(
            renamed=inner.renamed,
            constants=tuple(constants.items()),
            dropped=inner.dropped,
            read_as=tuple(read_as),
            as_numbers=tuple(as_numbers),
            unit=self.unit,
            has_rows=has_rows,
        )

    def _is_too_wide(self, name: str, kind: pa.DataType) -> bool:
        return name == self.unit and pa.types.is_decimal(kind) and not decimal_is_readable(kind)


def contracted(inner: ColumnsOf, spec: Spec, contract: DataContract) -> ContractedColumns:
    """Return how a file's columns become those that a spec reads, by a contract that the spec fits."""
    return ContractedColumns(
        inner=inner,
        families=tuple((name, contract.columns[name]) for name in spec_columns(spec)),
        unit=contract.unit_column,
        orders=orders_of(measures(spec).values()),
    )


def contract_schema(spec: Spec, contract: DataContract, part: str) -> PartSchema:
    """Return the columns that a spec reads as its contract has them, whatever files hold."""
    return PartSchema(
        part=part,
        columns=pa.schema([(name, ARROW_TYPES[contract.columns[name]]) for name in spec_columns(spec)]),
    )


def _values_of(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_of(kind: pa.DataType, family: ColumnFamily) -> bool:
    stored = stored_family(kind)
    return pa.types.is_null(_values_of(kind)) or stored is family or (stored in NUMERIC and family in NUMERIC)


def _places_differ(kind: pa.DataType, family: ColumnFamily) -> bool:
    """Tell whether a number could have another place in an order than the family's have."""
    return ColumnFamily.DECIMAL in {stored_family(kind), family} and stored_family(kind) is not family
