"""Natural numbers of a fixed size, compiled: arrays of limbs of 32 bits, the lowest first, in 64-bit words.

Only integers: sums, products, quotients and roots are exact, or rounded down as their names say. Tests compare
each with Python's own integers. An array that is written is no array that is read, unless it says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numba
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Limbs = NDArray[np.uint64]

BITS = 32
"""Bits of a limb: the product of two, and two carries, fit in 64."""

SIZE = 24
"""Limbs of a number that may be divided."""

_0, _1, _32, _64 = np.uint64(0), np.uint64(1), np.uint64(32), np.uint64(64)
_LOW = np.uint64(0xFFFFFFFF)
_BASE = np.uint64(1 << 32)


@numba.njit(error_model="numpy")
def length_of(number: Limbs) -> int:
    """Return how many limbs are left without leading zeros."""
    length = len(number)
    while length > 0 and number[length - 1] == _0:
        length -= 1
    return length


@numba.njit(error_model="numpy")
def is_less(left: Limbs, right: Limbs) -> bool:
    """Tell whether one number is less than another."""
    for place in range(max(len(left), len(right)) - 1, -1, -1):
        x = left[place] if place < len(left) else _0
        y = right[place] if place < len(right) else _0
        if x != y:
            return bool(x < y)
    return False


@numba.njit(error_model="numpy")
def add(total: Limbs, term: Limbs) -> None:
    """Add a term to a total that is no shorter, and has room."""
    carry = _0
    for place in range(len(total)):
        carry += total[place] + (term[place] if place < len(term) else _0)
        total[place] = carry & _LOW
        carry >>= _32


@numba.njit(error_model="numpy")
def add_small(total: Limbs, term: Any) -> None:
    """Add less than ``2**32`` to a total that has room."""
    carry = np.uint64(term)
    for place in range(len(total)):
        carry += total[place]
        total[place] = carry & _LOW
        carry >>= _32


@numba.njit(error_model="numpy")
def subtract(left: Limbs, right: Limbs, out: Limbs) -> None:
    """Write the difference of two numbers of one length, or 0 where it would be negative."""
    if is_less(left, right):
        out[:] = _0
        return
    borrow = _0
    for place in range(len(out)):
        difference = left[place] - right[place] - borrow
        out[place] = difference & _LOW
        borrow = (difference >> _32) & _1


@numba.njit(error_model="numpy")
def multiply(left: Limbs, right: Limbs, out: Limbs) -> None:
    """Write the product of two numbers into as many limbs as both have together."""
    out[:] = _0
    for i in range(len(left)):
        factor, carry = left[i], _0
        if factor != _0:
            for j in range(len(right)):
                # At most (2^32 - 1)^2 + 2 (2^32 - 1) = 2^64 - 1.
                carry += factor * right[j] + out[i + j]
                out[i + j] = carry & _LOW
                carry >>= _32
            out[i + len(right)] = carry


@numba.njit(error_model="numpy")
def double(number: Limbs) -> None:
    """Double a number in its place, which has room."""
    carry = _0
    for place in range(len(number)):
        carry |= number[place] << _1
        number[place] = carry & _LOW
        carry >>= _32


@numba.njit(error_model="numpy")
def halve(number: Limbs) -> None:
    """Halve a number in its place, rounded down."""
    for place in range(len(number)):
        above = number[place + 1] if place + 1 < len(number) else _0
        number[place] = ((number[place] >> _1) | (above << np.uint64(31))) & _LOW


@numba.njit(error_model="numpy")
def divide(number: Limbs, divisor: Limbs, out: Limbs, scratch: Limbs) -> None:
    """Write the quotient, rounded down, into as many limbs as the number has; the divisor is above 0.

    Knuth, The Art of Computer Programming 2, 4.3.1, algorithm D. `scratch` has two rows of `SIZE` limbs.
    """
    out[:] = _0
    n, m = length_of(number), length_of(divisor)
    if n < m:
        return
    if m == 1:
        rest, digit = _0, divisor[0]
        for place in range(n - 1, -1, -1):
            rest = (rest << _32) | number[place]
            out[place] = rest // digit
            rest %= digit
        return
    # D1. Shift both until the divisor's first limb has its highest bit.
    shift = _0
    while ((divisor[m - 1] << shift) >> np.uint64(31)) == _0:
        shift += _1
    rest_of, by = scratch[0], scratch[1]
    carry = _0
    for place in range(m):
        carry |= divisor[place] << shift
        by[place] = carry & _LOW
        carry >>= _32
    carry = _0
    for place in range(n):
        carry |= number[place] << shift
        rest_of[place] = carry & _LOW
        carry >>= _32
    rest_of[n] = carry
    first, second = by[m - 1], by[m - 2]
    for place in range(n - m, -1, -1):
        # D3. An estimate of a digit from two limbs, at most one too large after the loop.
        top = (rest_of[place + m] << _32) | rest_of[place + m - 1]
        digit, rest = top // first, top % first
        while digit >= _BASE or digit * second > ((rest << _32) | rest_of[place + m - 2]):
            digit -= _1
            rest += first
            if rest >= _BASE:
                break
        # D4. Subtract its multiple.
        carry, borrow = _0, _0
        for i in range(m):
            carry += digit * by[i]
            difference = rest_of[place + i] - (carry & _LOW) - borrow
            rest_of[place + i] = difference & _LOW
            borrow = (difference >> _32) & _1
            carry >>= _32
        difference = rest_of[place + m] - carry - borrow
        rest_of[place + m] = difference & _LOW
        if (difference >> _32) & _1 != _0:
            # D6. It was one too large: add the divisor back.
            digit -= _1
            carry = _0
            for i in range(m):
                carry += rest_of[place + i] + by[i]
                rest_of[place + i] = carry & _LOW
                carry >>= _32
            rest_of[place + m] = (rest_of[place + m] + carry) & _LOW
        out[place] = digit


@numba.njit(error_model="numpy")
def root_of_word(number: Any) -> Any:
    """Return the square root of a word of 64 bits, rounded down, bit by bit."""
    root, bit = _0, np.uint64(1 << 31)
    while bit > _0:
        trial = root | bit
        if trial * trial <= number:
            root = trial
        bit >>= _1
    return root


@numba.njit(error_model="numpy")
def square_root(number: Limbs, out: Limbs, scratch: Limbs) -> None:
    """Write the square root, rounded down, into half as many limbs, or one more.

    Newton's steps from above, ``r -> (r + n // r) // 2``, fall until the root is reached, and not below it.
    `scratch` has four rows of `SIZE` limbs, of which `divide` takes the first two.
    """
    out[:] = _0
    n = length_of(number)
    if n == 0:
        return
    # Above the root: that of the first limbs, an even number of which is left out, and 1 more.
    left_out = (n - 1) & ~1
    top = number[left_out]
    if left_out + 1 < n:
        top |= number[left_out + 1] << _32
    start = root_of_word(top) + _1
    half = left_out // 2
    size = len(out) + 1
    root, following = scratch[2][:size], scratch[3][: len(number)]
    root[:] = _0
    root[half], root[half + 1] = start & _LOW, start >> _32
    while True:
        divide(number, root, following, scratch)
        if not is_less(following, root):
            break
        add(root, following[:size])
        halve(root)
    out[:] = root[: len(out)]
