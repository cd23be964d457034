"""Numbers in the bits of 64-bit words, compiled: how encoded rows are kept small."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import types

from suffice.pipeline.rows.chunk.jit import compiled, read_only, writable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Records = NDArray[np.uint64]

_position = (types.int64, types.int64, types.int64)
_1 = np.uint64(1)


@compiled(read_only(types.uint64, 2), read_only(types.int32), writable(types.uint64, 2))
def pack_units(units: Records, chosen: NDArray[np.int32], records: Records) -> None:
    """Write the units of chosen rows into the first two words of records."""
    for row in range(len(chosen)):
        records[row, 0] = units[chosen[row], 0]
        records[row, 1] = units[chosen[row], 1]


@compiled(read_only(types.int32), read_only(types.int32), *_position, writable(types.uint64, 2))
def pack(
    values: NDArray[np.int32], chosen: NDArray[np.int32], word: int, shift: int, lowest: int, records: Records
) -> None:
    """Write ``value - lowest + 1`` of chosen rows from bit `shift` of a word on, where there was 0.

    What lies below `lowest` is written as 0.
    """
    left = np.uint64(shift)
    for row in range(len(chosen)):
        number = np.int64(values[chosen[row]]) - lowest + 1
        if number > 0:
            records[row, word] |= np.uint64(number) << left


@compiled(read_only(types.uint64, 2), *_position, types.int64, types.int64, writable(types.int32))
def unpack(
    records: Records, word: int, shift: int, bits: int, lowest: int, nothing: int, out: NDArray[np.int32]
) -> None:
    """Read what `pack` wrote; what lay below `lowest` becomes `nothing`."""
    right, mask = np.uint64(shift), (_1 << np.uint64(bits)) - _1
    for row in range(len(records)):
        number = np.int64((records[row, word] >> right) & mask)
        out[row] = number - 1 + lowest if number else nothing
