"""The schema check: column names and type families against the spec, before anything is charged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from suffice.errors import SchemaError
from suffice.pipeline.rows.sources.column_values import NUMERIC, decimal_is_readable, stored_family
from suffice.pipeline.rows.sources.contract import spec_columns
from suffice.pipeline.spec.contract_fit import LOOSE_KINDS, column_uses, date_remedy
from suffice.pipeline.spec.plan import measures
from suffice.pipeline.terms.declaration.column_types import TypeFamily
from suffice.pipeline.terms.declaration.column_unit import UnitNulls, UnitType
from suffice.pipeline.terms.declaration.source_specs import CsvSpec, GivenSpec
from suffice.pipeline.terms.declaration.wording import shortened_name
from suffice.pipeline.terms.statistics.measure import orders_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suffice.pipeline.rows.sources.contract import PartSchema
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.data_contract import DataContract
    from suffice.pipeline.terms.declaration.derived_conditions import Input

_MOST_NAMES = 20


def type_family(kind: pa.DataType) -> TypeFamily | None:
    """Return the family of an Arrow type; None for what no statistic reads: nested, binary, times of day."""
    if pa.types.is_dictionary(kind):
        return type_family(kind.value_type)
    families = {
        TypeFamily.NUMERIC: (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal),
        TypeFamily.TEXT: (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
        TypeFamily.BOOLEAN: (pa.types.is_boolean,),
        TypeFamily.DATE: (pa.types.is_date,),
        TypeFamily.TIMESTAMP: (pa.types.is_timestamp,),
        TypeFamily.NULL: (pa.types.is_null,),
    }
    return next((family for family, tests in families.items() if any(test(kind) for test in tests)), None)


def check_schema(spec: Spec, schemas: Sequence[PartSchema]) -> None:
    """Check the columns of all parts of a source against the spec: names and type families, nothing else.

    Parameters
    ----------
    spec : Spec
        The spec.
    schemas : sequence of PartSchema
        The columns of every part of the source.

    Raises
    ------
    SchemaError
        Naming the place in the spec, the column, what was found, what is needed, and the file.
    """
    _check_unit(spec, schemas)
    _check_orders(spec, schemas)
    _check_derived_names(spec, schemas)
    for position, of in column_uses(spec):
        if of.column in spec.derived:
            _check_use(f"{position}: the derived column", of, spec.derived[of.column].family)
        else:
            _check_physical(spec, position, of, schemas)


def _check_physical(spec: Spec, position: str, of: Input, schemas: Sequence[PartSchema]) -> None:
    """Check one use of a column of the source in all parts."""
    first: tuple[TypeFamily, str] | None = None
    for schema in schemas:
        family = _column_family(spec, schema.columns, of.column, f"{position}: {schema.part}")
        if family is TypeFamily.NULL:
            continue
        kind = schema.columns.field(of.column).type
        _check_use(f"{position}: {schema.part}: the column", of, family or _describe(kind))
        if of.needs_zone and getattr(_stored(kind), "tz", None) is None:
            message = (
                f"{position}: {schema.part}: the column {of.column!r} has no time zone, so that its times "
                "are read as they are: leave time_zone out"
            )
            raise SchemaError(message)
        if first is not None and family is not first[0]:
            message = (
                f"{position}: the column {of.column!r} is {first[0]} in {first[1]}, but {family} in "
                f"{schema.part}: write all files with one type"
            )
            raise SchemaError(message)
        if family is not None and first is None:
            first = family, schema.part


_TIME_SPAN = "of time spans"


def _check_use(where: str, of: Input, stored: str) -> None:
    if stored not in of.families:
        needed = " or ".join(sorted(of.families - {TypeFamily.NULL}))
        message = f"{where} {of.column!r} is {stored}; {needed} is needed{_remedy(of, stored)}"
        raise SchemaError(message)


def _remedy(of: Input, stored: str) -> str:
    """Return what makes a column of the type that is needed, where that is known."""
    if stored == _TIME_SPAN:
        return ": hand over numbers, as frame[column].dt.total_seconds()"
    if stored == TypeFamily.TEXT and TypeFamily.BOOLEAN in of.families:
        name = f"is_{of.column}" if of.column.isidentifier() else "is_so"
        return (
            f": derive it, as derived: {{{name}: {{column: {of.column}, in: ['yes']}}}} with the texts that "
            f"count as true, and state the statistic of {name}"
        )
    return date_remedy(of, stored)


def _check_derived_names(spec: Spec, schemas: Sequence[PartSchema]) -> None:
    """Refuse a derived column that the source has too: a statistic could mean either."""
    for schema in schemas:
        for name, derived in spec.derived.items():
            if schema.columns.get_all_field_indices(name):
                message = (
                    f"{derived.section}.{shortened_name(name)}: {shortened_name(schema.part)} has a column "
                    "of this name: call the derived one otherwise"
                )
                raise SchemaError(message)


def check_columns(
    spec: Spec, schemas: Sequence[PartSchema], contract: DataContract | None
) -> tuple[str, ...]:
    """Check the columns of a source against the spec, and of a catalogue against the account's contract.

    Parameters
    ----------
    spec : Spec
        It fits the contract.
    schemas : sequence of PartSchema
        Of a source that was pinned by the contract.
    contract : DataContract, optional

    Returns
    -------
    tuple of str
        What to warn of; nothing by a contract, for files would decide it.

    Raises
    ------
    SchemaError
    """
    if contract is not None:
        _check_catalogue(spec, schemas, contract)
    check_schema(spec, schemas)
    return (*unit_warnings(spec, schemas), *_absence_warnings(schemas)) if contract is None else ()


def _absence_warnings(schemas: Sequence[PartSchema]) -> tuple[str, ...]:
    """Name the columns that files lack: added later, or called otherwise there."""
    first: dict[str, str] = {}
    for schema in schemas:
        for name in schema.absent:
            first.setdefault(name, schema.part)
    return tuple(
        f"{shortened_name(part)} has no column {shortened_name(name)!r}, which other files have: it is null "
        "in all rows of such files"
        for name, part in first.items()
    )


def _check_catalogue(spec: Spec, schemas: Sequence[PartSchema], contract: DataContract) -> None:
    """Refuse a table whose columns are not those of the contract; of files they are, whatever files hold."""
    unit = contract.unit_column
    for name in spec_columns(spec):
        family = contract.columns[name]
        for schema in schemas:
            where = f"{shortened_name(schema.part)}: the account's contract"
            _column_family(spec, schema.columns, name, where)
            stored = stored_family(schema.columns.field(name).type)
            is_alike = stored in NUMERIC and family in NUMERIC and name != unit
            if stored is not family and not is_alike:
                message = (
                    f"{where} says that {name!r} is {family}, the table's column is {stored or 'another'}"
                )
                raise SchemaError(message)


def unit_warnings(spec: Spec, schemas: Sequence[PartSchema]) -> tuple[str, ...]:
    """Say where some files hold the unit's column as integers, and others as floating-point numbers.

    From types alone: it neither depends on a value nor says that one was lost.
    """
    unit = spec.stored_unit
    if unit is None:
        return ()
    first: dict[bool, str] = {}
    for schema in schemas:
        for index in schema.columns.get_all_field_indices(unit):
            kind = _stored(schema.columns.field(index).type)
            if pa.types.is_floating(kind) or pa.types.is_integer(kind):
                first.setdefault(pa.types.is_floating(kind), schema.part)
    if len(first) < 2:
        return ()
    text = (
        f"privacy.unit.column: {shortened_name(unit)} is integer in {shortened_name(first[False])}, "
        f"but floating point in {shortened_name(first[True])}, where rows of ids from 2^53 on (2^24 in "
        "single precision) enter nothing: write integers in all files if any may be"
    )
    return (text,)


def _check_unit(spec: Spec, schemas: Sequence[PartSchema]) -> None:
    """Refuse what is not of the declared type, and fractions in decimals here, in floats there."""
    unit, column = spec.privacy.column_unit, spec.stored_unit
    if unit is None or column is None:
        return
    declared = None if unit.column in spec.derived else unit.type
    fractions = {}
    for schema in schemas:
        where = f"privacy.unit.column: {schema.part}"
        _column_family(spec, schema.columns, column, where)
        kind = _stored(schema.columns.field(column).type)
        if not _is_of_type(kind, declared):
            message = f"{where}: the column {column!r} is not of the declared type {declared}"
            raise SchemaError(message)
        _check_rounded(spec, kind, where)
        if pa.types.is_decimal(kind):
            if not decimal_is_readable(kind):
                rule = "holds decimals of more than 38 digits on one side"
                message = f"{where}: the column {column!r} {rule}"
                raise SchemaError(message)
            fractions["decimal"] = schema.part
        elif pa.types.is_floating(kind):
            fractions["floating-point"] = schema.part
    if len(fractions) > 1:
        message = (
            f"privacy.unit.column: the column {column!r} is decimal in {fractions['decimal']}, but "
            f"floating-point in {fractions['floating-point']}: write all files with one type"
        )
        raise SchemaError(message)


def _check_rounded(spec: Spec, kind: pa.DataType, where: str) -> None:
    """Refuse a table's floating-point ids where rows without one count: a table says that all may be rounded.

    Files of doubles are what writers make of integers and one null.
    """
    unit = spec.privacy.column_unit
    is_table = spec.source.kind not in LOOSE_KINDS
    if unit is not None and is_table and unit.nulls is UnitNulls.OWN_UNIT and pa.types.is_floating(kind):
        message = (
            f"{where}: the column {spec.stored_unit!r} is floating-point, so that its ids may be rounded: "
            "write nulls: drop, or have the column made an integer or a text"
        )
        raise SchemaError(message)


def _is_of_type(kind: pa.DataType, declared: UnitType | None) -> bool:
    """Tell whether a column can hold the declared units; integers that met a null are floating-point."""
    if declared is None or pa.types.is_null(kind):
        return True
    if declared is UnitType.TEXT:
        return type_family(kind) is TypeFamily.TEXT
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or (pa.types.is_decimal(kind) and kind.scale == 0)
    )


def _stored(kind: pa.DataType) -> pa.DataType:
    """Return the type of a column's values, in a dictionary or not."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _check_orders(spec: Spec, schemas: Sequence[PartSchema]) -> None:
    """Refuse decimals here and integers there: decimals have the place of the nearest float64."""
    for name, measure in measures(spec).items():
        for column in orders_of([measure]):
            kinds: dict[str, str] = {}
            for schema in schemas:
                _column_family(spec, schema.columns, column, f"statistics.{name}.order: {schema.part}")
                kind = _stored(schema.columns.field(column).type)
                if pa.types.is_decimal(kind) or pa.types.is_integer(kind):
                    kinds["decimals" if pa.types.is_decimal(kind) else "integers"] = schema.part
            if len(kinds) > 1:
                message = (
                    f"statistics.{name}.order: the column {column!r} holds integers in {kinds['integers']}, "
                    f"but decimals in {kinds['decimals']}: write all files with one type"
                )
                raise SchemaError(message)


def _column_family(spec: Spec, schema: pa.Schema, column: str, where: str) -> TypeFamily | None:
    positions = schema.get_all_field_indices(column)
    if not positions:
        shown = ", ".join(schema.names[:_MOST_NAMES]) + ", ..." * (len(schema.names) > _MOST_NAMES)
        if spec.source.kind == CsvSpec.kind:  # without a header line, the names in its place are values
            message = (
                f"{where}: no column {column!r}; of the columns that the spec names its first line has "
                f"{shown or 'none'}: look for the others there"
            )
            raise SchemaError(message)
        if spec.source.kind == GivenSpec.kind:  # a pivoted frame's names, and how many, are of its values
            shown = "not listed, for names may be values of rows: look at them in the data"
        message = f"{where}: no column {column!r}; its columns are {shown}"
        raise SchemaError(message)
    if len(positions) > 1:
        message = f"{where}: the column {column!r} occurs {len(positions)} times: rename all but one"
        raise SchemaError(message)
    return type_family(schema.field(positions[0]).type)


def _describe(kind: pa.DataType) -> str:
    """Name a type that no statistic reads, without its parameters."""
    if pa.types.is_nested(kind):
        return "nested"
    if pa.types.is_duration(kind):
        return _TIME_SPAN
    types = pa.types
    binary = (types.is_binary, types.is_large_binary, types.is_fixed_size_binary, types.is_binary_view)
    return "binary" if any(test(kind) for test in binary) else "of a type that is not read"
