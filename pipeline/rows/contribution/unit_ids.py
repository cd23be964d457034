"""The unit of every row as two 64-bit words: equal exactly where the values are.

Integers, booleans, dates and timestamps are written out exactly. Texts, and decimals that are no 64-bit
integer, are hashed to 128 bits under a secret key of the run. Equal values have equal words in whatever
type a file stores them: 5 as int32, int64, float or decimal; a text plain or in a dictionary; an instant
in any unit.

A floating-point number is a unit where it is an integer that no other integer is rounded to: writers turn a
column of integers into one of doubles once a row is null. NaN is a null. Any other number may be an id that
was rounded: its row belongs to somebody, nobody can tell to whom, and it enters nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from suffice.arrays import number_array
from suffice.pipeline.rows.chunk import argument_types as types
from suffice.pipeline.rows.chunk.argument_types import read_only, writable
from suffice.pipeline.rows.chunk.jit import compiled
from suffice.pipeline.rows.contribution.siphash import hash_texts
from suffice.pipeline.rows.sources.column_values import fixed_width, null_mask

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Words: TypeAlias = NDArray[np.uint64]
    Kinds: TypeAlias = NDArray[np.uint8]

IS_UNIT, IS_NULL, IS_ROUNDED = np.uint8(0), np.uint8(1), np.uint8(2)
"""Kinds of a value: a unit; a null, which follows ``nulls``; what may have been rounded and never enters."""

_INTEGER, _UNSIGNED, _INSTANT = 0, 1, 2
"""The second word of units that are written out; an instant's begins with its nanoseconds."""

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_MILLISECONDS_PER_DAY = 86_400_000
_WIDEST = pa.decimal256(76, 38)
_2_63 = np.uint64(2**63)


class UnitReader:
    """The unit of every row; lives for one task.

    Parameters
    ----------
    column : str
        The column whose values are the units.
    key : (int, int)
        The secret key of hashes.
    """

    def __init__(self, column: str, key: tuple[int, int]) -> None:
        self._column = column
        self._key = key
        self._dictionary: pa.Array | None = None
        self._of_dictionary = np.zeros((1, 2), np.uint64), np.full(1, IS_NULL)

    def read(self, batch: pa.RecordBatch) -> tuple[Words, Kinds]:
        """Return the units of a batch, shape (n_rows, 2), uint64, and their kinds, shape (n_rows,), uint8."""
        return self._units(batch.column(self._column))

    def _units(self, column: pa.Array) -> tuple[Words, Kinds]:
        if pa.types.is_null(column.type):
            return np.zeros((len(column), 2), np.uint64), np.full(len(column), IS_NULL)
        if pa.types.is_dictionary(column.type):
            return self._by_index(column)
        words, kinds = _words(column, self._key)
        if column.null_count:
            kinds = np.where(null_mask(column), IS_NULL, kinds)
        return words, kinds

    def _by_index(self, column: pa.DictionaryArray) -> tuple[Words, Kinds]:
        words, kinds = self._of(column.dictionary)
        last = number_array(np.array([len(kinds) - 1], np.int64))[0]
        indices = fixed_width(pc.fill_null(pc.cast(column.indices, pa.int64()), last))
        return words[indices], kinds[indices]

    def _of(self, dictionary: pa.Array) -> tuple[Words, Kinds]:
        """Return the units of a dictionary's entries, and a null last.

        Within a row group each batch's dictionary begins with the last one's: only new entries are hashed.
        """
        last, (words, kinds) = self._dictionary, self._of_dictionary
        known = 0
        if last is not None and last.equals(dictionary.slice(0, len(last))):
            known = len(last)
        if last is None or known < max(len(dictionary), len(last)):
            fresh, fresh_kinds = self._units(dictionary.slice(known))
            words = np.concatenate([words[:known], fresh, np.zeros((1, 2), np.uint64)])
            kinds = np.concatenate([kinds[:known], fresh_kinds, np.full(1, IS_NULL)])
            self._dictionary, self._of_dictionary = dictionary, (words, kinds)
        return words, kinds


def _words(column: pa.Array, key: tuple[int, int]) -> tuple[Words, Kinds]:
    """Return the units of an array that is no dictionary, and their kinds but for Arrow's nulls."""
    if pa.types.is_floating(column.type):
        return _of_floats(fixed_width(column))
    return _exact_words(column, key), np.full(len(column), IS_UNIT)


def _exact_words(column: pa.Array, key: tuple[int, int]) -> Words:
    kind = column.type
    if pa.types.is_decimal(kind):
        return _of_decimals(column, key)
    if pa.types.is_timestamp(kind):
        return _of_instants(fixed_width(column), _PER_SECOND[kind.unit])
    if pa.types.is_boolean(kind):
        column = pc.cast(column, pa.uint8())
    elif pa.types.is_date64(kind):
        return _written_out(fixed_width(column) // _MILLISECONDS_PER_DAY)
    elif not pa.types.is_date(kind) and not pa.types.is_integer(kind):
        return _hashed_texts(column, key)
    return _written_out(fixed_width(column))


def _written_out(values: NDArray[np.integer]) -> Words:
    words = np.zeros((len(values), 2), np.uint64)
    if values.dtype == np.uint64:
        words[:, 0] = values
        words[:, 1] = np.where(values >> np.uint64(63), _UNSIGNED, _INTEGER)
    else:
        words[:, 0] = values.astype(np.int64, copy=False).view(np.uint64)
    return words


def _of_floats(values: NDArray[np.floating]) -> tuple[Words, Kinds]:
    """A whole number below 2^53, in single precision 2^24, in half 2^11, is that integer; NaN is a null."""
    # proof: bounded-contributions
    below = 2.0 ** (np.finfo(values.dtype).nmant + 1)
    numbers = values.astype(np.float64, copy=False)
    is_unit = (numbers == np.floor(numbers)) & (np.abs(numbers) < below)
    kinds = np.where(is_unit, IS_UNIT, np.where(np.isnan(numbers), IS_NULL, IS_ROUNDED))
    return _written_out(np.where(is_unit, numbers, 0.0).astype(np.int64)), kinds


def _of_instants(values: NDArray[np.int64], per_second: int) -> Words:
    seconds, rest = np.divmod(values, per_second)
    words = np.empty((len(values), 2), np.uint64)
    words[:, 0] = seconds.view(np.uint64)
    words[:, 1] = (rest * (10**9 // per_second)).view(np.uint64) << np.uint64(2) | np.uint64(_INSTANT)
    return words


def _of_decimals(column: pa.Array, key: tuple[int, int]) -> Words:
    """A whole number of 64 bits is that integer; any other is hashed at 38 fractional digits."""
    if column.type.precision <= 18 and column.type.scale == 0:
        return _written_out(fixed_width(pc.cast(column, pa.int64())))
    wide = pc.cast(column, _WIDEST)
    data = np.frombuffer(wide.buffers()[1], np.uint8, count=32 * len(wide), offset=32 * wide.offset)
    words = np.empty((len(wide), 2), np.uint64)
    hash_texts(np.arange(len(wide) + 1, dtype=np.int64) * 32, data, *key, words)
    _write_whole_decimals(data.view(np.uint64).reshape(-1, 4), words)
    return words


@compiled(read_only(types.uint64, 2), writable(types.uint64, 2))
def _write_whole_decimals(wide: Words, words: Words) -> None:
    """Write out what is a whole number of 64 bits, given 256-bit multiples of 10^-38.

    Arrow's division of such numbers is wrong near 2^64 (in version 26.0), so it is done by hand.
    """
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    limbs = np.empty(8, np.uint64)
    for row in range(len(wide)):
        is_negative = wide[row, 3] >> np.uint64(63) == 1
        carry = np.uint64(1)
        for position in range(8):
            limb = (wide[row, position >> 1] >> (half if position & 1 else np.uint64(0))) & low
            if is_negative:
                limb = (limb ^ low) + carry
                carry = limb >> half
            limbs[position] = limb & low
        is_whole = True
        for division in range(5):  # by 10^9 four times, and by 10^2
            divisor = np.uint64(10**9) if division < 4 else np.uint64(100)
            rest = np.uint64(0)
            for position in range(7, -1, -1):
                dividend = (rest << half) | limbs[position]
                limbs[position] = dividend // divisor
                rest = dividend % divisor
            is_whole &= rest == 0
        for position in range(2, 8):
            is_whole &= limbs[position] == 0
        number = (limbs[1] << half) | limbs[0]
        if is_whole and (not is_negative or number <= _2_63):
            words[row, 0] = ~number + np.uint64(1) if is_negative else number
            words[row, 1] = _UNSIGNED if number >= _2_63 and not is_negative else _INTEGER


def _hashed_texts(column: pa.Array, key: tuple[int, int]) -> Words:
    if not pa.types.is_large_string(column.type):
        column = pc.cast(column, pa.large_string())
    _, offsets, data = column.buffers()
    words = np.empty((len(column), 2), np.uint64)
    ends = np.frombuffer(offsets, np.int64, count=len(column) + 1, offset=8 * column.offset)
    hash_texts(ends, np.frombuffer(data or b"", np.uint8), *key, words)
    return words
