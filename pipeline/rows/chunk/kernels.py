"""The inner loops, compiled: one block of rows that fits the processor's cache, one column at a time.

Every loop releases the interpreter lock, allocates nothing and touches no Python object. A code of -1
means that the row does not enter. Codes are checked where they are combined or used as an index: a wrong
one goes where -1 goes, to the last row of a table, which stands for no cell and is thrown away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suffice.pipeline.rows.chunk import argument_types as types
from suffice.pipeline.rows.chunk.argument_types import read_only, writable
from suffice.pipeline.rows.chunk.jit import compiled

if TYPE_CHECKING:
    from numpy.typing import NDArray

NOTHING = -(2**31)
"""The lattice value of a row that does not enter a sum; lattice values are at most 2**30 in magnitude."""

_input = read_only


def _table(scalar: types.ArgumentType) -> types.ArgumentType:
    return writable(scalar, 2)


_codes_out = writable(types.int32)


@compiled(_input(types.int32), _input(types.int32), _codes_out)
def gather(indices: NDArray[np.int32], codes: NDArray[np.int32], out: NDArray[np.int32]) -> None:
    """Look dictionary indices up; the last entry of `codes` stands for every index out of range."""
    last = np.uint32(len(codes) - 1)
    for row in range(len(indices)):
        out[row] = codes[min(np.uint32(indices[row]), last)]


@compiled(_input(types.int64), types.int64, _input(types.int32), types.int32, _codes_out)
def look_up(
    values: NDArray[np.int64], first: int, codes: NDArray[np.int32], missing: int, out: NDArray[np.int32]
) -> None:
    """Look integers up in a table that begins at `first`; others, and codes of -1, get `missing`."""
    size = np.uint64(len(codes))
    for row in range(len(values)):
        # Unsigned differences wrap, so that one comparison checks both ends.
        index = np.uint64(values[row]) - np.uint64(first)
        code = codes[index] if index < size else np.int32(-1)
        out[row] = code if code >= 0 else missing


@compiled(_input(types.int64), _input(types.int64), _input(types.int32), types.int32, _codes_out)
def search(
    values: NDArray[np.int64],
    keys: NDArray[np.int64],
    codes: NDArray[np.int32],
    missing: int,
    out: NDArray[np.int32],
) -> None:
    """Search for integers among sorted keys; the others get `missing`."""
    for row in range(len(values)):
        value, low, high = values[row], 0, len(keys)
        while low < high:
            middle = (low + high) >> 1
            if keys[middle] < value:
                low = middle + 1
            else:
                high = middle
        out[row] = codes[low] if low < len(keys) and keys[low] == value else missing


@compiled(_codes_out, _input(types.uint8), types.int64, types.int32)
def fill_nulls(out: NDArray[np.int32], validity: NDArray[np.uint8], offset: int, missing: int) -> None:
    """Overwrite the rows whose bit in an Arrow validity bitmap, from bit `offset` on, is 0."""
    n_rows = len(out)
    whole = n_rows & ~7 if offset & 7 == 0 else 0
    for start in range(0, whole, 8):
        byte = validity[(offset + start) >> 3]
        if byte != 0xFF:  # most bytes have no null
            for step in range(8):
                if not (byte >> step) & 1:
                    out[start + step] = missing
    for row in range(whole, n_rows):
        bit = offset + row
        if not (validity[bit >> 3] >> (bit & 7)) & 1:
            out[row] = missing


@compiled(_codes_out, _input(types.int32), types.int32)
def combine_codes(cells: NDArray[np.int32], codes: NDArray[np.int32], size: int) -> None:
    """Refine cells by one more dimension of `size` keys: ``cell * size + code``, or -1 for ever."""
    for row in range(len(cells)):
        cell, code = cells[row], codes[row]
        cells[row] = cell * size + code if (cell >= 0) & (code >= 0) & (code < size) else -1


@compiled(_codes_out, _input(types.int32))
def keep_coded(cells: NDArray[np.int32], codes: NDArray[np.int32]) -> None:
    """Put the rows without a code into no cell."""
    for row in range(len(cells)):
        cells[row] = cells[row] if codes[row] >= 0 else -1


@compiled(_input(types.int32), _codes_out, _table(types.int64))
def count_codes(cells: NDArray[np.int32], codes: NDArray[np.int32], table: NDArray[np.int64]) -> None:
    """Count the rows of each (cell, code), overwriting the codes; others go to the last cell."""
    no_cell, n_codes = np.uint32(table.shape[0] - 1), np.uint32(table.shape[1])
    counts = table.reshape(-1)
    # Two loops: the first has no branch and no scattered access, so it runs on vectors.
    for row in range(len(cells)):
        cell, code = np.uint32(cells[row]), np.uint32(codes[row])
        known = (cell < no_cell) & (code < n_codes)
        codes[row] = cell * n_codes + code if known else no_cell * n_codes
    for row in range(len(cells)):
        counts[np.uint32(codes[row])] += 1


@compiled(_input(types.int32), _input(types.int32), types.int32, types.int32, _codes_out)
def keep_sides_at_ends(
    lattice: NDArray[np.int32],
    sides: NDArray[np.int32],
    lowest: int,
    highest: int,
    out: NDArray[np.int32],
) -> None:
    """Keep the side, 0 or 1, of rows whose lattice value is the end on it; others get -1."""
    for row in range(len(sides)):
        end = lowest if sides[row] == 0 else highest
        out[row] = sides[row] if lattice[row] == end else -1


@compiled(
    _input(types.int32),
    _input(types.int32),
    _input(types.int32),
    _input(types.int32),
    types.int64,
    types.int64,
    _table(types.int64),
)
def count_transitions(
    rows: NDArray[np.int32],
    units: NDArray[np.int32],
    cells: NDArray[np.int32],
    codes: NDArray[np.int32],
    most: int,
    n_codes: int,
    table: NDArray[np.int64],
) -> None:
    """Count steps between consecutive `rows` of a unit and a cell, among the first `most` of each unit."""
    no_cell, steps = np.uint32(table.shape[0] - 1), 0
    for position in range(1, len(rows)):
        before, row = rows[position - 1], rows[position]
        steps = steps + 1 if units[before] == units[row] else 0
        if 0 < steps <= most and cells[before] == cells[row]:
            cell = min(np.uint32(cells[row]), no_cell)
            table[cell, np.int64(codes[before]) * n_codes + codes[row]] += 1


@compiled(_input(types.int32), read_only(types.int32, 2), _table(types.int64))
def add_moments(cells: NDArray[np.int32], lattice: NDArray[np.int32], table: NDArray[np.int64]) -> None:
    """Add 1, every value and every product of two in each row's cell; `lattice` holds one column a line.

    The caller sees to it that no sum can leave int64. Rows of no cell, or with a `NOTHING`, enter nothing.
    """
    no_cell, n_columns = np.uint32(table.shape[0] - 1), lattice.shape[0]
    for row in range(len(cells)):
        cell = np.uint32(cells[row])
        complete = cell < no_cell
        for column in range(n_columns):
            complete &= lattice[column, row] != NOTHING
        if not complete:
            continue
        table[cell, 0] += 1
        product = n_columns + 1
        for first in range(n_columns):
            value = np.int64(lattice[first, row])
            table[cell, 1 + first] += value
            for second in range(first, n_columns):
                table[cell, product] += value * lattice[second, row]
                product += 1


@compiled(
    _input(types.int32),
    read_only(types.int32, 2),
    writable(types.int64),
    writable(types.float64, 2),
)
def gather_by_cell(
    cells: NDArray[np.int32],
    lattice: NDArray[np.int32],
    starts: NDArray[np.int64],
    out: NDArray[np.float64],
) -> None:
    """Write the complete rows as (1, values) in float64, sorted by cell, a row a line.

    `starts` has an entry more than there are cells: afterwards cell c stands in ``starts[c]:starts[c + 1]``.
    Rows of no cell, or with a `NOTHING`, are left out.
    """
    n_cells, n_columns = np.uint32(len(starts) - 1), lattice.shape[0]
    starts[:] = 0
    for row in range(len(cells)):
        complete = np.uint32(cells[row]) < n_cells
        for column in range(n_columns):
            complete &= lattice[column, row] != NOTHING
        if complete:
            starts[cells[row]] += 1
    end = np.int64(0)
    for cell in range(n_cells + 1):
        end += starts[cell]
        starts[cell] = end
    # Filled from the back: every start ends up where its cell begins.
    for row in range(len(cells) - 1, -1, -1):
        complete = np.uint32(cells[row]) < n_cells
        for column in range(n_columns):
            complete &= lattice[column, row] != NOTHING
        if complete:
            starts[cells[row]] -= 1
            position = starts[cells[row]]
            out[position, 0] = 1.0
            for column in range(n_columns):
                out[position, 1 + column] = lattice[column, row]


@compiled(_input(types.int32), _input(types.int32), _table(types.int64))
def add_powers(cells: NDArray[np.int32], lattice: NDArray[np.int32], table: NDArray[np.int64]) -> None:
    """Add 1, X and, where the table has three columns, X^2 in each row's cell.

    The caller sees to it that no sum can leave int64. Rows of no cell, or of `NOTHING`, go to the last
    cell.
    """
    no_cell, squares = np.uint32(table.shape[0] - 1), table.shape[1] == 3
    for row in range(len(cells)):
        value = np.int64(lattice[row])
        cell = min(np.uint32(cells[row]), no_cell)
        if value == NOTHING:
            cell, value = no_cell, np.int64(0)
        table[cell, 0] += 1
        table[cell, 1] += value
        if squares:
            table[cell, 2] += value * value


@compiled(_input(types.int64), _input(types.int32), _input(types.boolean), writable(types.int64))
def first_rows(
    ranked: NDArray[np.int64], units: NDArray[np.int32], enters: NDArray[np.bool_], firsts: NDArray[np.int64]
) -> None:
    """Write each unit's first row in `ranked` among those that enter; `firsts` is all -1 before."""
    for position in range(len(ranked)):
        row = ranked[position]
        if enters[row] and firsts[units[row]] < 0:
            firsts[units[row]] = row


@compiled(
    _input(types.int32),
    _input(types.int32),
    _input(types.int32),
    _input(types.int64),
    writable(types.int64),
    writable(types.int64),
)
def add_by_unit(
    units: NDArray[np.int32],
    cells: NDArray[np.int32],
    lattice: NDArray[np.int32],
    firsts: NDArray[np.int64],
    totals: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    """Add and count the lattice values of each unit in the cell of its first row; 0 where it has none."""
    for row in range(len(units)):
        unit = units[row]
        if lattice[row] != NOTHING and cells[row] == cells[firsts[unit]]:
            totals[unit] += lattice[row]
            counts[unit] += 1
