"""Columns of PostgreSQL tables as Arrow columns: what is asked of the server, and what its answers become.

No expression here raises in the server, whatever the value: an error would stop the release because of a
value, and PostgreSQL writes the value into its log. Values that Arrow's type cannot hold become nulls:

- decimals that are NaN;
- dates and timestamps that are infinite, and timestamps from the year 200,000 on. Where they are privacy
  units their rows enter nothing: as nulls, each row could be a unit of its own, and a person enter any number
  of times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from suffice.pipeline.terms.declaration.table_names import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

_LARGEST_SCALED = 18
"""Digits of a decimal that, scaled to an integer, surely is one of 64 bits."""
_TYPMOD_HEADER = 4
_UNREAD = pa.time64("us")
"""Stands for a type that no statistic reads; the schema check refuses it."""

_AS_IT_IS = {
    "bool": pa.bool_(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "text": pa.string(),
    "varchar": pa.string(),
}
_AS_TEXT = frozenset({"bpchar", "name", "uuid", "enum"})
"""Whose cast to text never fails; that of padded characters drops the padding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerColumn:
    """One column of a table.

    Parameters
    ----------
    name : str
        Its name.
    kind : pyarrow.DataType
        What holds its values here.
    expression : str
        What is asked of the server.
    scaled : bool
        Whether integers arrive, which are decimals times a power of ten.
    enters : str
        Of a unit, which rows are asked for; empty for all.
    """

    name: str
    kind: pa.DataType
    expression: str
    scaled: bool = False
    enters: str = ""

    @property
    def is_read(self) -> bool:
        """Whether some statistic can read it."""
        return bool(self.kind != _UNREAD)

    def array(self, found: pa.Array) -> pa.Array:
        """Return values as they arrived in their Arrow type, without copying most of them."""
        if isinstance(found, pa.ExtensionArray):
            found = found.storage
        if self.scaled:
            return _decimals(found, self.kind)
        return found if found.type == self.kind else pc.cast(found, self.kind)


def server_column(name: str, type_name: str, typmod: int, *, is_unit: bool) -> ServerColumn:
    """Return a column as the catalogue describes it.

    Parameters
    ----------
    name : str
        Its name.
    type_name : str
        Its type in ``pg_type``, of a domain that of its base; ``enum`` for enumerated types.
    typmod : int
        The type's modifier: of ``numeric`` its precision and scale, -1 for none.
    is_unit : bool
        Whether its values are the privacy units, which must not be rounded.
    """
    column = quoted(name)
    if type_name in _AS_IT_IS:
        return ServerColumn(name=name, kind=_AS_IT_IS[type_name], expression=column)
    if type_name in _AS_TEXT:
        return ServerColumn(name=name, kind=pa.string(), expression=f"{column}::text")
    if type_name == "numeric":
        return _numeric(name, column, typmod, is_unit=is_unit)
    if type_name == "date":
        return _time(name, column, pa.date32(), f"isfinite({column})", is_unit=is_unit)
    if type_name in {"timestamp", "timestamptz"}:
        kind = pa.timestamp("us", "UTC" if type_name == "timestamptz" else None)
        in_range = f"isfinite({column}) AND {column} < {type_name} '200000-01-01'"
        return _time(name, column, kind, in_range, is_unit=is_unit)
    return ServerColumn(name=name, kind=_UNREAD, expression="NULL::time")


def batch_of(found: pa.RecordBatch, columns: Sequence[ServerColumn]) -> pa.RecordBatch:
    """Return a batch as it arrived in the columns' Arrow types."""
    arrays = [column.array(found.column(index)) for index, column in enumerate(columns)]
    return pa.RecordBatch.from_arrays(arrays, [column.name for column in columns])


def _time(name: str, column: str, kind: pa.DataType, in_range: str, *, is_unit: bool) -> ServerColumn:
    """Return a date or a time: null out of range, and as a unit not asked for there."""
    enters = f"({column} IS NULL OR {in_range})" if is_unit else ""
    return ServerColumn(name=name, kind=kind, expression=_where(in_range, column), enters=enters)


def _numeric(name: str, column: str, typmod: int, *, is_unit: bool) -> ServerColumn:
    """Return a decimal: scaled to an integer, as text, or where it has no declared digits as a float64.

    Without declared digits a unit stays text, as a float64 would merge units: without trailing zeros, as the
    server holds 5 and 5.0 for equal.
    """
    precision, scale = divmod(typmod - _TYPMOD_HEADER, 1 << 16) if typmod >= _TYPMOD_HEADER else (0, 0)
    is_number = f"{column} <> 'NaN'::numeric"
    if 0 < precision <= _LARGEST_SCALED and 0 <= scale <= precision:
        kind = pa.decimal128(precision, scale)
        scaled = f"({column} * 1{'0' * scale})::int8"
        return ServerColumn(name=name, kind=kind, expression=_where(is_number, scaled), scaled=True)
    if 0 < precision <= 38 and 0 <= scale <= precision:
        text = _where(is_number, f"{column}::text")
        return ServerColumn(name=name, kind=pa.decimal128(precision, scale), expression=text)
    if is_unit:
        text = _where(is_number, f"trim_scale({column})::text")
        return ServerColumn(name=name, kind=pa.string(), expression=text)
    # The cast fails beyond the range of float64, and below it: 308 digits before the point, 307 after it.
    largest, smallest = "1" + "0" * 308, "0." + "0" * 306 + "1"
    expression = (
        f"CASE WHEN {column} = 'NaN'::numeric THEN 'NaN'::float8"
        f" WHEN {column} >= {largest} THEN 'Infinity'::float8"
        f" WHEN {column} <= -{largest} THEN '-Infinity'::float8"
        f" WHEN abs({column}) < {smallest} AND {column} IS NOT NULL THEN 0::float8"
        f" ELSE {column}::float8 END"
    )
    return ServerColumn(name=name, kind=pa.float64(), expression=expression)


def _where(condition: str, value: str) -> str:
    return f"CASE WHEN {condition} THEN {value} END"


def _decimals(integers: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return integers as decimals of so many digits after the point: the same bits, called otherwise."""
    wide = pc.cast(integers, pa.decimal128(19, 0))
    buffers: list[Any] = wide.buffers()
    return pa.Array.from_buffers(kind, len(wide), buffers, wide.null_count, wide.offset)
