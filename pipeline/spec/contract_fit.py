"""A spec held against the contract of its account: before anything is opened, and from public text alone.

What files say decides no status: they follow from single records. What a spec says does: which columns it
needs, for what, and of which type families.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suffice.errors import SchemaError
from suffice.pipeline.spec.plan import derived_in_use, measures
from suffice.pipeline.terms.declaration.column_types import (
    ANY_FAMILY,
    DATES,
    NUMBERS,
    TEXTS,
    ColumnFamily,
    TypeFamily,
)
from suffice.pipeline.terms.declaration.column_unit import UnitNulls, UnitType
from suffice.pipeline.terms.declaration.data_contract import DelimitedForm
from suffice.pipeline.terms.declaration.derived_conditions import Input, condition_inputs
from suffice.pipeline.terms.declaration.domains import DomainKind
from suffice.pipeline.terms.declaration.fields import ColumnSpec
from suffice.pipeline.terms.declaration.row_rules import column_or_rule, in_words
from suffice.pipeline.terms.declaration.source_specs import CsvSpec, CsvType, GivenSpec, ParquetSpec
from suffice.pipeline.terms.declaration.wording import shortened_name
from suffice.pipeline.terms.statistics.measure import CodeColumn, orders_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.column_types import HiveColumn
    from suffice.pipeline.terms.declaration.data_contract import DataContract
    from suffice.pipeline.terms.declaration.domains import Domain

_BY_DOMAIN = {
    DomainKind.LIST: ANY_FAMILY,
    DomainKind.RANGE: frozenset({TypeFamily.NUMERIC, TypeFamily.TEXT}),
    DomainKind.PERIOD: DATES,
    DomainKind.BOOLEAN: frozenset({TypeFamily.BOOLEAN, TypeFamily.NUMERIC}),
}
_ORDERED = frozenset({TypeFamily.NUMERIC, TypeFamily.DATE, TypeFamily.TIMESTAMP})


def column_uses(spec: Spec) -> Iterator[tuple[str, Input]]:
    """List what a spec needs: the place in it, and a column, derived or not, with the families that serve."""
    if spec.window is not None:
        yield "window.column", Input(column=spec.window.column, families=DATES)
    if spec.privacy.column_unit is not None:
        column = spec.privacy.column_unit.column
        yield "privacy.unit.column", Input(column=column, families=ANY_FAMILY)
        if column in spec.derived:  # numbers may have been rounded where they are stored
            yield "privacy.unit.column", Input(column=spec.stored_unit or column, families=TEXTS)
    yield from _computed_uses(spec)
    for place, groups in (("groups", spec.groups), *_stated_groups(spec)):
        for column, domain in groups.items():
            yield f"{place}.{column}", Input(column=column, families=_serving(domain))
    for name, measure in measures(spec).items():
        position = f"statistics.{name}" + (".column" if isinstance(spec.statistics[name], ColumnSpec) else "")
        for read in measure.reads:
            needed = _serving(read.domain) if isinstance(read, CodeColumn) else NUMBERS
            yield position, Input(column=read.column, families=needed)
        for order in orders_of([measure]):
            yield f"statistics.{name}.order", Input(column=order, families=_ORDERED)


def _stated_groups(spec: Spec) -> Iterator[tuple[str, dict[str, Domain]]]:
    """List the groups that statistics state, by the place that does."""
    for name, statistic in spec.statistics.items():
        yield f"statistics.{name}.groups", statistic.groups or {}


def _computed_uses(spec: Spec) -> Iterator[tuple[str, Input]]:
    """List what conditions of rows need, and derived columns that something reads."""
    for name in derived_in_use(spec):
        derived = spec.derived[name]
        for of in derived.inputs:
            yield f"{derived.section}.{shortened_name(name)}", of
    for place, condition in spec.conditions.items():
        for of in condition_inputs(condition):
            yield place, of


def _serving(domain: Domain) -> frozenset[TypeFamily]:
    return _BY_DOMAIN[domain.kind]


LOOSE_KINDS = frozenset({ParquetSpec.kind, CsvSpec.kind, GivenSpec.kind})
"""Kinds of sources whose rows alone say how they are typed: no catalogue does."""

FAMILIES_OF_TEXTS = {
    CsvType.TEXT: ColumnFamily.TEXT,
    CsvType.NUMBER: ColumnFamily.FLOATING,
    CsvType.INTEGER: ColumnFamily.INTEGER,
    CsvType.BOOLEAN: ColumnFamily.BOOLEAN,
    CsvType.DATE: ColumnFamily.DATE,
    CsvType.TIMESTAMP: ColumnFamily.TIMESTAMP,
    CsvType.TIMESTAMP_WITH_OFFSET: ColumnFamily.TIMESTAMP_WITH_ZONE,
}
"""What columns of delimited text hold, by what their texts are read as."""

_MOST_NAMES = 20


def check_contract(spec: Spec, contract: DataContract) -> None:
    """Refuse a spec that asks for what the contract of its account does not have.

    Parameters
    ----------
    spec : Spec
    contract : DataContract
        Of the spec's account.

    Raises
    ------
    SchemaError
        Naming the place in the spec, what the contract states, and what is needed. Nothing was opened.
    """
    _check_source(spec, contract)
    _check_unit(spec, contract)
    _check_window(spec, contract)
    for name, derived in spec.derived.items():
        if name in contract.columns:
            message = (
                f"{derived.section}.{shortened_name(name)}: the contract has a column of this name: call the "
                "derived one otherwise"
            )
            raise SchemaError(message)
    for position, of in column_uses(spec):
        if of.column in spec.derived:
            _check_family(f"{position}: the derived column", of, spec.derived[of.column].family)
        else:
            _check_column(position, of, contract.columns)


def floating_unit_warning(contract: DataContract) -> str | None:
    """Return a sentence about units that are floating-point numbers; None where they are none."""
    column = contract.unit_column
    if column is None or contract.columns[column] is not ColumnFamily.FLOATING:
        return None
    return (
        f"privacy.unit.column: the contract says that {shortened_name(column)} is floating point: rows of "
        "ids from 2^53 on (2^24 in single precision) enter nothing, for they may have been rounded"
    )


def _check_column(position: str, of: Input, columns: Mapping[str, ColumnFamily]) -> None:
    family = columns.get(of.column)
    if family is None:
        names = ", ".join(sorted(columns)[:_MOST_NAMES]) + ", ..." * (len(columns) > _MOST_NAMES)
        message = f"{position}: the account's contract has no column {of.column!r}; its columns are {names}"
        raise SchemaError(message)
    _check_family(f"{position}: by the account's contract the column", of, family.read_as)
    if of.needs_zone and family is not ColumnFamily.TIMESTAMP_WITH_ZONE:
        message = (
            f"{position}: by the account's contract the column {of.column!r} is {family}, so that its times "
            "are read as they are: leave time_zone out"
        )
        raise SchemaError(message)


def _check_family(where: str, of: Input, stored: TypeFamily) -> None:
    if stored not in of.families:
        needed = " or ".join(sorted(of.families - {TypeFamily.NULL}))
        message = f"{where} {of.column!r} is {stored}; {needed} is needed{date_remedy(of, stored)}"
        raise SchemaError(message)


def date_remedy(of: Input, stored: str) -> str:
    """Return what makes dates of numbers or texts, where dates are needed."""
    if stored not in {TypeFamily.NUMERIC, TypeFamily.TEXT} or of.families & {stored, TypeFamily.BOOLEAN}:
        return ""
    if TypeFamily.DATE not in of.families:
        return ""
    name = f"date_of_{of.column}" if of.column.isidentifier() else "date_of_it"
    return (
        f": derive it, as derived: {{{name}: {{column: {of.column}, parse: date, format: '%Y%m%d'}}}} with "
        f"the format that is there, or epoch: seconds, and name {name} here"
    )


def _check_unit(spec: Spec, contract: DataContract) -> None:
    unit = spec.privacy.column_unit
    if spec.unit_name != contract.unit_name:
        message = (
            f"privacy.unit: the account's contract has the unit {in_words(contract.unit_name)}, the spec "
            f"{in_words(spec.unit_name)}"
        )
        raise SchemaError(message)
    if unit is None or unit.column in spec.derived:
        return
    family = contract.columns[unit.column]
    if unit.type is not None and (family is ColumnFamily.TEXT) != (unit.type is UnitType.TEXT):
        message = f"privacy.unit.type: by the account's contract {unit.column!r} is {family}, not {unit.type}"
        raise SchemaError(message)
    if unit.type is UnitType.INTEGER and family.read_as is not TypeFamily.NUMERIC:
        message = f"privacy.unit.type: by the account's contract {unit.column!r} is {family}, no integer"
        raise SchemaError(message)
    is_loose = contract.source.kind in LOOSE_KINDS
    if family is ColumnFamily.FLOATING and unit.nulls is UnitNulls.OWN_UNIT and not is_loose:
        message = (
            f"privacy.unit.nulls: by the account's contract {unit.column!r} is floating, and a table's ids "
            "of that kind may be rounded: write nulls: drop, or have the column made an integer or a text"
        )
        raise SchemaError(message)


def _check_window(spec: Spec, contract: DataContract) -> None:
    if spec.window is None:
        return
    column, time_zone = column_or_rule(spec.window.column, spec.derived), spec.window.time_zone
    rule = contract.window
    if rule is None:
        message = "window: the account's contract has no window: have its owner add one, or leave it out"
        raise SchemaError(message)
    divides = contract.window_column
    if (column, time_zone) != (divides, rule.time_zone):
        message = (
            f"window: by the account's contract {in_words(divides)!r} divides rows, in {rule.time_zone}; the "
            f"spec states {in_words(column)!r} in {time_zone}, where a row could lie in another window"
        )
        raise SchemaError(message)
    if spec.window.files_by_window != rule.files_by_window:
        message = (
            "window.files_by_window: the account's contract states "
            f"{rule.files_by_window or 'none'}, the spec {spec.window.files_by_window or 'none'}: other rows "
            "would be in a window"
        )
        raise SchemaError(message)


def _check_source(spec: Spec, contract: DataContract) -> None:
    source, form = spec.source, contract.source
    if source.kind != form.kind:
        message = f"source: the account's contract is of {form.kind}, the spec of {source.kind}"
        raise SchemaError(message)
    if isinstance(source, ParquetSpec):
        _check_folders(source.hive, form.folders)
    if isinstance(source, CsvSpec):
        _check_delimited(spec, source, contract)


def _check_folders(stated: Mapping[str, HiveColumn], folders: Mapping[str, HiveColumn]) -> None:
    """Refuse folders that are read otherwise than the contract says: a row could get another value."""
    if bool(stated) != bool(folders):
        message = (
            "source.hive: the account's contract states folders, the spec none"
            if folders
            else "source.hive: the account's contract states no folders"
        )
        raise SchemaError(message)
    for name, column in stated.items():
        if folders.get(name) != column:
            message = f"source.hive.{shortened_name(name)}: the account's contract reads folders otherwise"
            raise SchemaError(message)


def _check_delimited(spec: Spec, source: CsvSpec, contract: DataContract) -> None:
    """Refuse delimited text that is divided or read otherwise than the contract says."""
    if contract.source.compression == "none" and source.csv.lower().endswith((".gz", ".zst", ".bz2")):
        message = (
            "source.csv: by the account's contract files are not compressed, and the name says that they are"
        )
        raise SchemaError(message)
    if contract.source.delimited != delimited_form(source):
        message = (
            "source: by the account's contract other signs divide lines, or another header names the "
            "columns: state delimiter, quote and header as it does"
        )
        raise SchemaError(message)
    used = {of.column for _, of in column_uses(spec)} - spec.derived.keys()
    for column in sorted(used & contract.columns.keys()):
        kind = source.columns.get(column, CsvType.TEXT)
        if FAMILIES_OF_TEXTS[kind] is not contract.columns[column]:
            message = (
                f"source.columns.{shortened_name(column)}: by the account's contract it is read as "
                f"{contract.columns[column]}, by the spec as {kind}"
            )
            raise SchemaError(message)


def delimited_form(source: CsvSpec) -> DelimitedForm:
    """Return how a spec's lines are divided, as contracts state it."""
    return DelimitedForm(delimiter=source.delimiter, quote=source.quote, header=source.header)
