"""Derived columns, computed batch by batch: each is a total function of its own row's values.

Every type of column gives the same answer for the same value. What is stored as a dictionary is computed
for its entries alone. Conditions are true, false, or null where there is no value.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from suffice.arrays import masked_array
from suffice.pipeline.rows.chunk.calendar_parts import date_part, dates
from suffice.pipeline.rows.chunk.encoding import Encoder
from suffice.pipeline.rows.chunk.parsed_values import matches, parsed, parsed_type
from suffice.pipeline.rows.sources.column_values import as_float64, comparable, fixed_width
from suffice.pipeline.terms.declaration.derived_columns import (
    Arithmetic,
    Case,
    Constant,
    DatePart,
    MapTo,
    PublicMap,
    UniformText,
    needed,
)
from suffice.pipeline.terms.declaration.derived_conditions import (
    ColumnComparison,
    Combination,
    Membership,
    Negation,
    Presence,
    TextMatch,
)
from suffice.pipeline.terms.declaration.derived_values import Bins, Coalesced, CoalesceTo, Cut, ParsedText
from suffice.pipeline.terms.declaration.domain_lookup import nearest
from suffice.pipeline.terms.declaration.time_zones import UTC_OFFSETS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from suffice.pipeline.rows.chunk.partition import ChunkJob
    from suffice.pipeline.terms.declaration.derived_conditions import DerivedColumn
    from suffice.pipeline.terms.declaration.domains import Domain
    from suffice.pipeline.terms.declaration.time_zones import ZoneOffsets

    Columns: TypeAlias = Mapping[str, pa.Array]
    Zones: TypeAlias = Mapping[str, ZoneOffsets]
    OfValues: TypeAlias = Callable[[pa.Array], pa.Array]

_EPOCH = dt.date(1970, 1, 1).toordinal()


def compared(column: pa.Array, of: ColumnComparison, zone: ZoneOffsets) -> pa.Array:
    """Compare numbers, or dates, with public constants.

    Integers, decimals and dates are compared exactly. For a floating-point column a constant is the nearest
    number of the column's type, as keys of groups are. NaN is a null.
    """
    if of.is_of_dates:
        column = dates(column, zone)
    if pa.types.is_floating(column.type):
        return _floats(column, of)
    return _integers(column, of)


def _floats(column: pa.Array, of: ColumnComparison) -> pa.Array:
    kind = np.dtype(column.type.to_pandas_dtype())
    column = pc.cast(column, pa.float64())
    within = None
    for end, including, excluding in (
        (of.lowest, pc.greater_equal, pc.greater),
        (of.highest, pc.less_equal, pc.less),
    ):
        if end is not None:
            is_within = (including if end[1] else excluding)(column, _float(end[0], kind))
            within = is_within if within is None else pc.and_(within, is_within)
    return pc.if_else(pc.is_nan(column), pa.scalar(None, pa.bool_()), within)


def _float(end: Fraction | str, kind: np.dtype[Any]) -> pa.Scalar:
    """Return a constant as the nearest number of a type; beyond its range as that of float64."""
    number = Fraction(end)
    near = nearest(number, kind)
    return pa.scalar(float(number) if near is None else near, pa.float64())


def _integers(column: pa.Array, of: ColumnComparison) -> pa.Array:
    """Compare integers, or decimals as integers of their scale."""
    kind = column.type
    is_decimal = pa.types.is_decimal(kind)
    unit = Fraction(10) ** (kind.scale if is_decimal else 0)
    if is_decimal:
        lowest, highest = 1 - 10**kind.precision, 10**kind.precision - 1
    else:
        limits = np.iinfo(kind.to_pandas_dtype())
        lowest, highest = int(limits.min), int(limits.max)
    first, last = lowest, highest
    if of.lowest is not None:
        number = _number(of.lowest[0]) * unit
        first = math.ceil(number) if of.lowest[1] else math.floor(number) + 1
    if of.highest is not None:
        number = _number(of.highest[0]) * unit
        last = math.floor(number) if of.highest[1] else math.ceil(number) - 1
    if first > min(last, highest) or last < lowest:
        return pc.not_equal(column, column)

    def scalar(value: int) -> pa.Scalar:
        if not is_decimal:
            return pa.scalar(value, kind)
        return pa.scalar(Decimal((int(value < 0), tuple(map(int, str(abs(value)))), -kind.scale)), kind)

    within = [pc.greater_equal(column, scalar(first))] if first > lowest else []
    within += [pc.less_equal(column, scalar(last))] if last < highest else []
    if not within:
        return pc.equal(column, column)
    return within[0] if len(within) == 1 else pc.and_(*within)


def _number(end: Fraction | str) -> Fraction:
    if isinstance(end, str):
        return Fraction(dt.date.fromisoformat(end).toordinal() - _EPOCH)
    return end


def is_member(column: pa.Array, domain: Domain) -> pa.Array:
    """Tell whether values are among public ones, compared as keys of groups are."""
    return pa.array(Encoder(domain).codes(column) >= 0, mask=no_value(column))


def has_value(column: pa.Array) -> pa.Array:
    """Tell which values are there, neither null nor NaN; of an array without a type none is."""
    absent = no_value(column)
    return pa.array(np.ones(len(column), np.bool_) if absent is None else ~absent)


def no_value(column: pa.Array) -> NDArray[np.bool_] | None:
    """Tell which rows are null or NaN, shape (n_rows,); None where none can be."""
    if not column.null_count and not pa.types.is_floating(column.type):
        return None
    is_null: NDArray[np.bool_] = pc.is_null(column, nan_is_null=True).to_numpy(zero_copy_only=False)
    return is_null


# proof: derived-columns


def with_derived(
    batches: Iterable[pa.RecordBatch], job: ChunkJob, columns: Iterable[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Add derived columns to batches of rows; those of units are not of rows.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        With what the derived columns rest on, of types that serve them.
    job : ChunkJob
        The derived columns, and the offsets of their time zones.
    columns : iterable of str, optional
        What is wanted; everything that the job sums or chooses by otherwise.
    """
    wanted = job.names if columns is None else columns
    on_units = job.of_units
    functions = {
        name: _function(of, job.zones)
        for name, of in needed(wanted, job.derived).items()
        if name not in on_units
    }
    for batch in batches:
        if not functions:
            yield batch
            continue
        columns_by_name = dict(zip(batch.schema.names, batch.columns, strict=True))
        for name, function in functions.items():
            columns_by_name[name] = function(columns_by_name)
        yield pa.RecordBatch.from_arrays([*columns_by_name.values()], [*columns_by_name])


def with_derived_of_units(columns: Columns, job: ChunkJob) -> pa.RecordBatch:
    """Return aggregates of units, and the derived columns that rest on them, a row for each unit."""
    on_units, by_name = job.of_units, dict(columns)
    for name, of in needed(job.names, job.derived).items():
        if name in on_units and name not in by_name:
            by_name[name] = _function(of, job.zones)(by_name)
    return pa.RecordBatch.from_arrays([*by_name.values()], [*by_name])


def _function(of: DerivedColumn, zones: Zones) -> Callable[[Columns], pa.Array]:
    """Return the function of a derived column; it lives for one task."""
    zone = zones[of.time_zones[0]] if of.time_zones else UTC_OFFSETS
    functions: dict[type[DerivedColumn], Callable[..., Callable[[Columns], pa.Array]]] = {
        ColumnComparison: lambda of: _OfOne(of.column, partial(compared, of=of, zone=zone), pa.bool_()),
        Membership: lambda of: _OfOne(of.column, partial(is_member, domain=of.domain), pa.bool_()),
        DatePart: lambda of: _OfOne(of.column, partial(date_part, part=of.part, zone=zone), pa.int32()),
        UniformText: lambda of: _OfOne(of.column, partial(_uniform, of=of), pa.string()),
        PublicMap: _mapped,
        Arithmetic: lambda of: partial(_computed, of=of),
        Presence: _present,
        Combination: lambda of: _combined(of, zones),
        Negation: lambda of: _negated(of, zones),
        TextMatch: lambda of: _OfOne(of.column, partial(matches, of=of), pa.bool_()),
        ParsedText: lambda of: _OfOne(of.column, partial(parsed, of=of), parsed_type(of)),
        Bins: lambda of: _OfOne(of.column, partial(_binned, of=of), pa.float64()),
        Cut: lambda of: _OfOne(of.column, partial(_cut, of=of), pa.string()),
        Coalesced: lambda of: partial(_coalesced, of=of),
    }
    return functions[type(of)](of)


class _OfOne:
    """A function of one column's values; of a dictionary's entries it is computed once.

    Parameters
    ----------
    column : str
        The column.
    of_values : callable
        Array to array, of no dictionary.
    kind : pyarrow.DataType
        The result's type where no value is there.
    """

    def __init__(self, column: str, of_values: OfValues, kind: pa.DataType) -> None:
        self._column = column
        self._of_values = of_values
        self._kind = kind
        self._dictionary: pa.Array | None = None
        self._of_dictionary: pa.Array | None = None

    def __call__(self, columns: Columns) -> pa.Array:
        """Return the function's values, one a row."""
        column = columns[self._column]
        if not pa.types.is_dictionary(column.type):
            return self._values(column)
        entries = self._of_entries(column.dictionary)
        if pa.types.is_string(entries.type) or pa.types.is_large_string(entries.type):
            return pa.DictionaryArray.from_arrays(column.indices, entries)
        return entries.take(column.indices)

    def _values(self, column: pa.Array) -> pa.Array:
        if pa.types.is_null(column.type):
            return pa.nulls(len(column), self._kind)
        return self._of_values(comparable(column))

    def _of_entries(self, dictionary: pa.Array) -> pa.Array:
        """Return the function of a dictionary's entries: of new ones, where it begins with the last one's."""
        last, known = self._dictionary, self._of_dictionary
        if last is None or known is None or not last.equals(dictionary.slice(0, len(last))):
            known = self._values(dictionary)
        elif len(last) < len(dictionary):
            known = pa.concat_arrays([known, self._values(dictionary.slice(len(last)))])
        self._dictionary, self._of_dictionary = dictionary, known
        return known


def _mapped(of: PublicMap) -> Callable[[Columns], pa.Array]:
    targets = [*of.map.values(), *([] if of.otherwise is None else [of.otherwise])]
    positions = _OfOne(of.column, partial(_positions, of=of), pa.int32())
    if of.type is MapTo.NUMBER:
        numbers = pa.array([float(target) for target in targets], pa.float64())
        return lambda columns: numbers.take(positions(columns))
    texts = pa.array([str(target) for target in targets], pa.string())
    return lambda columns: pa.DictionaryArray.from_arrays(positions(columns), texts)


def _positions(column: pa.Array, of: PublicMap) -> pa.Array:
    """Return where values are among a map's keys, one past the last for others, null for null."""
    codes = Encoder(of.domain, missing=len(of.map)).codes(column)
    absent = no_value(column)
    if of.otherwise is None:
        unlisted = codes == len(of.map)
        absent = unlisted if absent is None else absent | unlisted
    return pa.array(codes, mask=absent)


def _uniform(column: pa.Array, of: UniformText) -> pa.Array:
    if of.normalize is not None:
        column = _where_text(partial(pc.utf8_normalize, form=str(of.normalize)), column)
    if of.trim:
        column = _where_text(pc.utf8_trim_whitespace, column)
    if of.case is not None:
        column = _where_text(pc.utf8_lower if of.case is Case.LOWER else pc.utf8_upper, column)
    return column


def _where_text(function: OfValues, column: pa.Array) -> pa.Array:
    """Return a function of texts, and null of what is no UTF-8: Arrow refuses whole arrays of them."""
    try:
        return function(column)
    except pa.ArrowInvalid:
        if len(column) == 1:
            return pa.nulls(1, column.type)
    half = len(column) // 2
    return pa.concat_arrays([_where_text(function, part) for part in (column[:half], column[half:])])


def _computed(columns: Columns, of: Arithmetic) -> pa.Array:
    """Compute in float64: null where an operand is null or NaN, or the result is no number."""
    numbers = [
        (np.full(1, float(each.number)), None) if isinstance(each, Constant) else as_float64(columns[each])
        for each in of.operands
    ]
    left, right = numbers
    if left is None or right is None:
        return pa.nulls(len(columns[of.inputs[0].column]), pa.float64())
    (first, first_source), (second, second_source) = left, right
    with np.errstate(all="ignore"):
        match of.operation:
            case "sum":
                result = first + second
            case "difference":
                result = first - second
            case "product":
                result = first * second
            case _:
                result = np.where(second == 0.0, np.nan, first / second)
        absent = np.isnan(result)
    for source in (first_source, second_source):
        if source is not None and source.null_count:
            absent |= pc.is_null(source).to_numpy(zero_copy_only=False)
    return pa.array(np.clip(result, float(of.lower), float(of.upper)), mask=absent)


def _reached(column: pa.Array, edges: Sequence[Fraction], name: str) -> NDArray[np.int64]:
    """Return how many of ascending numbers each value reaches, exactly; -1 where it is null or NaN."""
    numbers = np.zeros(len(column), np.int64)
    for edge in edges:
        at_least = compared(column, ColumnComparison.model_construct(column=name, at_least=edge), UTC_OFFSETS)
        numbers += fixed_width(pc.cast(pc.fill_null(at_least, fill_value=False), pa.uint8()))
    absent = no_value(column)
    return numbers if absent is None else np.where(absent, -1, numbers)


def _binned(column: pa.Array, of: Bins) -> pa.Array:
    """Return the lower edges of bins; null beyond the first and the last edge."""
    place = _reached(column, of.bins, of.column) - 1
    last = len(of.bins) - 1
    beyond = compared(
        column, ColumnComparison.model_construct(column=of.column, above=of.bins[-1]), UTC_OFFSETS
    )
    is_out = (place < 0) | fixed_width(pc.cast(pc.fill_null(beyond, fill_value=True), pa.uint8())).view(
        np.bool_
    )
    edges = np.array([float(edge) for edge in of.bins])
    return masked_array(edges[np.clip(place, 0, last - 1)], is_out)


def _cut(column: pa.Array, of: Cut) -> pa.Array:
    """Return the labels of the parts that numbers lie in."""
    place = _reached(column, of.cut, of.column)
    chosen = masked_array(np.maximum(place, 0).astype(np.int32), place < 0)
    return pa.array(of.labels, pa.string()).take(chosen)


_COALESCED_TYPES = {
    CoalesceTo.TEXT: pa.string(),
    CoalesceTo.NUMBER: pa.float64(),
    CoalesceTo.BOOLEAN: pa.bool_(),
    CoalesceTo.DATE: pa.date32(),
}


def _coalesced(columns: Columns, of: Coalesced) -> pa.Array:
    """Return the first value of several columns, in one type."""
    kind = _COALESCED_TYPES[of.type]
    values = [_of_type(columns[name], of.type, kind) for name in of.coalesce]
    if of.otherwise is not None:
        stated = float(of.otherwise) if of.type is CoalesceTo.NUMBER else str(of.otherwise)
        values.append(pa.scalar(stated, kind))
    return pc.coalesce(*values)


def _of_type(column: pa.Array, to: CoalesceTo, kind: pa.DataType) -> pa.Array:
    """Return a column that serves in one type, NaN as null."""
    if pa.types.is_dictionary(column.type):
        column = comparable(column.dictionary).take(column.indices)
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), kind)
    if to is CoalesceTo.DATE:
        return dates(column, UTC_OFFSETS).cast(kind)
    if to is CoalesceTo.NUMBER:
        numbers = as_float64(column)
        if numbers is None:
            return pa.nulls(len(column), kind)
        absent = no_value(column)
        return pa.array(numbers[0], mask=absent)
    return pc.cast(comparable(column), kind)


def _negated(of: Negation, zones: Zones) -> Callable[[Columns], pa.Array]:
    condition = _condition(of.condition, zones)
    return lambda columns: pc.invert(condition(columns))


def _condition(of: str | DerivedColumn, zones: Zones) -> Callable[[Columns], pa.Array]:
    return partial(_named, name=of) if isinstance(of, str) else _function(of, zones)


def _present(of: Presence) -> Callable[[Columns], pa.Array]:
    # What has no value is null in what `_OfOne` gives, or false: of a dictionary its indices are null.
    there = _OfOne(of.column, has_value, pa.bool_())
    if of.present:
        return lambda columns: pc.fill_null(there(columns), fill_value=False)
    return lambda columns: pc.invert(pc.fill_null(there(columns), fill_value=False))


def _combined(of: Combination, zones: Zones) -> Callable[[Columns], pa.Array]:
    """Return Kleene's logic of conditions: null where what is null could still decide."""
    conditions = [_condition(each, zones) for each in of.conditions]
    combine = pc.or_kleene if of.any_of is not None else pc.and_kleene
    return lambda columns: reduce(combine, [condition(columns) for condition in conditions])


def _named(columns: Columns, name: str) -> pa.Array:
    column = columns[name]
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column if pa.types.is_boolean(column.type) else pa.nulls(len(column), pa.bool_())
