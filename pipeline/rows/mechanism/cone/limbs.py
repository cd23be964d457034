"""Natural numbers of a fixed size, compiled: 24 limbs of 32 bits each, the lowest first, a row of an array.

Only integers: sums, products, quotients and roots are exact, or rounded down as their names say; tests
compare each with Python's own integers. A function is given the array and the rows of its numbers. It writes
the last of them, which is none of the others unless it says so, and rows 0 to 3 where it divides.

Machine code of `fast_matrix` holds these functions; delete it where they change, as numba looks at one file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numba
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.uint64]

SIZE = 24
"""Limbs of a number, as the array's shape says too: loops over a constant would be unrolled, all of them."""

SCRATCH = 4
"""Rows that dividing and taking roots overwrite."""

_0, _1, _31, _32 = np.uint64(0), np.uint64(1), np.uint64(31), np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_BASE = np.uint64(1 << 32)


@numba.njit(error_model="numpy")
def length(rows: Rows, number: int) -> int:
    """Return how many limbs are left without leading zeros."""
    limbs: int = rows.shape[1]
    while limbs > 0 and rows[number, limbs - 1] == _0:
        limbs -= 1
    return limbs


@numba.njit(error_model="numpy")
def is_less(rows: Rows, left: int, right: int) -> bool:
    """Tell whether one number is less than another."""
    for place in range(rows.shape[1] - 1, -1, -1):
        if rows[left, place] != rows[right, place]:
            return bool(rows[left, place] < rows[right, place])
    return False


@numba.njit(error_model="numpy")
def clear(rows: Rows, out: int) -> None:
    """Write 0."""
    for place in range(rows.shape[1]):
        rows[out, place] = _0


@numba.njit(error_model="numpy")
def add_word(rows: Rows, word: Any, place: int, out: int) -> None:
    """Add a word of 64 bits times ``2**(32 place)``."""
    carry = word & _LOW
    above = word >> _32
    while place < rows.shape[1] and (carry | above) != _0:
        carry += rows[out, place]
        rows[out, place] = carry & _LOW
        carry = (carry >> _32) + above
        above = _0
        place += 1


@numba.njit(error_model="numpy")
def add(rows: Rows, term: int, out: int) -> None:
    """Add a number."""
    carry = _0
    for place in range(rows.shape[1]):
        carry += rows[out, place] + rows[term, place]
        rows[out, place] = carry & _LOW
        carry >>= _32


@numba.njit(error_model="numpy")
def subtract(rows: Rows, left: int, right: int, out: int) -> None:
    """Write ``left - right``, or 0 where that would be negative."""
    if is_less(rows, left, right):
        clear(rows, out)
        return
    borrow = _0
    for place in range(rows.shape[1]):
        difference = rows[left, place] - rows[right, place] - borrow
        rows[out, place] = difference & _LOW
        borrow = (difference >> _32) & _1


@numba.njit(error_model="numpy")
def multiply(rows: Rows, left: int, right: int, out: int) -> None:
    """Write a product that fits."""
    clear(rows, out)
    n, m = length(rows, left), length(rows, right)
    for i in range(n):
        factor, carry = rows[left, i], _0
        for j in range(m):
            # At most (2^32 - 1)^2 + 2 (2^32 - 1) = 2^64 - 1.
            carry += factor * rows[right, j] + rows[out, i + j]
            rows[out, i + j] = carry & _LOW
            carry >>= _32
        if carry != _0:
            rows[out, i + m] = carry


@numba.njit(error_model="numpy")
def shift_down(rows: Rows, number: int, limbs: int, out: int) -> None:
    """Write ``number // 2**(32 limbs)``; `out` may be the number."""
    for place in range(rows.shape[1]):
        rows[out, place] = rows[number, place + limbs] if place + limbs < rows.shape[1] else _0


@numba.njit(error_model="numpy")
def double(rows: Rows, out: int) -> None:
    """Double a number."""
    carry = _0
    for place in range(rows.shape[1]):
        carry |= rows[out, place] << _1
        rows[out, place] = carry & _LOW
        carry >>= _32


@numba.njit(error_model="numpy")
def halve(rows: Rows, out: int) -> None:
    """Halve a number, rounded down."""
    for place in range(rows.shape[1]):
        above = rows[out, place + 1] if place + 1 < rows.shape[1] else _0
        rows[out, place] = ((rows[out, place] >> _1) | (above << _31)) & _LOW


@numba.njit(error_model="numpy")
def _divide_by_limb(rows: Rows, number: int, digit: Any, out: int) -> None:
    rest = _0
    for place in range(length(rows, number) - 1, -1, -1):
        rest = (rest << _32) | rows[number, place]
        rows[out, place] = rest // digit
        rest %= digit


@numba.njit(error_model="numpy")
def _shift_up(rows: Rows, number: int, shift: Any, out: int) -> None:
    carry = _0
    for place in range(rows.shape[1]):
        carry |= rows[number, place] << shift
        rows[out, place] = carry & _LOW
        carry >>= _32


@numba.njit(error_model="numpy")
def _subtract_multiple(rows: Rows, digit: Any, m: int, place: int) -> bool:
    """Subtract the divisor in row 1 so many times from row 0; where that was once too often, add it back."""
    carry, borrow = _0, _0
    for i in range(m + 1):
        if i < m:
            carry += digit * rows[1, i]
        difference = rows[0, place + i] - (carry & _LOW) - borrow
        rows[0, place + i] = difference & _LOW
        borrow = (difference >> _32) & _1
        carry >>= _32
    if borrow == _0:
        return False
    carry = _0
    for i in range(m + 1):
        carry += rows[0, place + i] + (rows[1, i] if i < m else _0)
        rows[0, place + i] = carry & _LOW
        carry >>= _32
    return True


@numba.njit(error_model="numpy")
def divide(rows: Rows, number: int, divisor: int, out: int) -> None:
    """Write the quotient, rounded down; the divisor is above 0, and the number has fewer than 24 limbs.

    Knuth, The Art of Computer Programming 2, 4.3.1, algorithm D.
    """
    clear(rows, out)
    n, m = length(rows, number), length(rows, divisor)
    if m == 1:
        _divide_by_limb(rows, number, rows[divisor, 0], out)
        return
    # D1. Shift both, into rows 0 and 1, until the divisor's first limb has its highest bit.
    shift = _0
    while ((rows[divisor, m - 1] << shift) >> _31) == _0:
        shift += _1
    _shift_up(rows, number, shift, 0)
    _shift_up(rows, divisor, shift, 1)
    first, second = rows[1, m - 1], rows[1, m - 2]
    for place in range(n - m, -1, -1):
        # D3. Estimate a digit from two limbs; after the loop it is at most one too large.
        top = (rows[0, place + m] << _32) | rows[0, place + m - 1]
        digit, rest = top // first, top % first
        while digit >= _BASE or digit * second > ((rest << _32) | rows[0, place + m - 2]):
            digit -= _1
            rest += first
            if rest >= _BASE:
                break
        # D4 to D6.
        rows[out, place] = digit - _1 if _subtract_multiple(rows, digit, m, place) else digit


@numba.njit(error_model="numpy")
def square_root(rows: Rows, number: int, out: int) -> None:
    """Write the square root, rounded down, of a number of fewer than 24 limbs.

    Newton's steps from above, ``r -> (r + number // r) // 2``, fall until the root is reached, and not below.
    """
    clear(rows, out)
    n = length(rows, number)
    if n == 0:
        return
    # Above the root: that of the first one or two limbs, and 1 more, with half of the limbs left out.
    left_out = (n - 1) & ~1
    top = (rows[number, left_out + 1] << _32) | rows[number, left_out]
    start, bit = _0, np.uint64(1 << 31)
    while bit != _0:
        if (start | bit) * (start | bit) <= top:
            start |= bit
        bit >>= _1
    add_word(rows, start + _1, left_out // 2, out)
    while True:
        divide(rows, number, out, 2)
        if not is_less(rows, 2, out):
            return
        add(rows, 2, out)
        halve(rows, out)
