"""Rows as pandas writes them: integers beside a null are doubles, texts are large, decimals what fits."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

LARGEST = 2**53
"""Doubles hold every integer below this magnitude, and no other integer is rounded to one of them."""


def within_doubles(table: pa.Table) -> pa.Table:
    """Return rows in which integers that a double might not hold are nulls."""
    for index, field in enumerate(table.schema):
        if pa.types.is_integer(field.type) and field.type.bit_width == 64:
            column = table.column(index)
            inside = pc.less(column, pa.scalar(LARGEST, field.type))
            if pa.types.is_signed_integer(field.type):
                inside = pc.and_(inside, pc.greater(column, pa.scalar(-LARGEST, field.type)))
            table = table.set_column(index, field, pc.if_else(inside, column, pa.scalar(None, field.type)))
    return table


def as_pandas_writes(table: pa.Table) -> pa.Table:
    """Return rows after a way through pandas."""
    for index, field in enumerate(table.schema):
        if pa.types.is_string_view(field.type):  # pandas knows none
            table = table.set_column(index, field.name, table.column(index).cast(pa.string()))
    return pa.Table.from_pandas(table.to_pandas(), preserve_index=False).replace_schema_metadata(None)


def enters(column: pa.ChunkedArray, nulls: str) -> pa.Array:
    """Tell which rows enter by their unit, in NumPy: what `unit_ids` and `records` tell in their own way."""
    are_null = np.asarray(pc.is_null(column, nan_is_null=True))
    kept = are_null if nulls == "own_unit" else np.zeros(len(column), bool)
    if not pa.types.is_floating(column.type):
        return pa.array(kept | ~are_null)
    numbers = column.to_numpy().astype(float)
    below = {16: 2.0**11, 32: 2.0**24, 64: 2.0**53}[column.type.bit_width]
    return pa.array(kept | ((np.abs(numbers) < below) & (np.trunc(numbers) == numbers)))
