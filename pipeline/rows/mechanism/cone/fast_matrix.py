"""The same matrices of the same words, compiled: what words of 64 bits decide at the first attempt.

Every real has two words, its first 64 bits and its next ones, and every comparison has to be decided by the
first. Where it is not, or a number does not fit, the cell is left to `matrix`, which reads the same words from
the cell's first one on. That happens to fewer than one matrix in a million.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

import numba
import numpy as np
from numba import types

from suffice.pipeline.rows.chunk.exact_sums import wipe
from suffice.pipeline.rows.chunk.jit import compiled, read_only, writable
from suffice.pipeline.rows.mechanism.cone.limbs import (
    SIZE,
    add,
    add_small,
    divide,
    double,
    halve,
    is_less,
    length_of,
    multiply,
    square_root,
    subtract,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.pipeline.rows.mechanism.cone.bits import BufferedBits
    from suffice.pipeline.rows.mechanism.cone.matrix import ConeShape

    Words = NDArray[np.uint64]
    State = NDArray[np.int64]

DECIDED, UNDECIDED, EXHAUSTED = 0, 1, 2
"""What became of the last cell: drawn; left to the exact path; not drawn, for want of words."""

_POSITION, _STATUS, _CELLS = 0, 1, 2  # of `state`
_WHOLE, _FIRST, _SECOND = 0, 1, 2  # of an exponential variable: its whole part, and 128 bits behind the point
_0, _1, _2, _32 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_MOST_WHOLE = 64
_ALMOST_ONE = np.uint64(2**64 - 4)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Workspace:
    """Arrays of one thread, for one shape; each is written before it is read. Units are ``2**-128``."""

    gamma: Words  # (D, 3): the parts of t
    energy: Words  # (d, pairs + 1, 3): the exponential variable of every pair, and the slack
    point: Words  # (d, pairs, 4): first words of a and b, and second ones
    negative: NDArray[np.bool_]  # (d + 1, 2 pairs)
    coordinates: Words  # (d + 1, 2 pairs, 2, 5): both ends of magnitudes
    norms: Words  # (d + 1, 2, 5)
    scale: Words  # (2, 4): numerator and denominator of c
    scratch: Words  # (20, SIZE)
    values: Words  # (2, D, 2): P and Q, integers of 128 bits
    state: State  # (3,)

    @classmethod
    def of(cls, shape: ConeShape) -> Self | None:
        """Return the arrays; None where c takes more than 128 bits, which the exact path alone can."""
        if max(shape.size.numerator, shape.size.denominator) >> 128:
            return None
        rows, pairs = shape.columns, (shape.dimension + 1) // 2
        coordinates = np.zeros((rows + 1, 2 * pairs, 2, 5), np.uint64)
        coordinates[0, 0, :, 4] = 1  # the first unit vector
        norms = np.zeros((rows + 1, 2, 5), np.uint64)
        norms[0, :, 4] = 1
        scale = [
            [(number >> (32 * place)) & 0xFFFFFFFF for place in range(4)]
            for number in (shape.size.numerator, shape.size.denominator)
        ]
        return cls(
            gamma=np.zeros((shape.n_components, 3), np.uint64),
            energy=np.zeros((rows, pairs + 1, 3), np.uint64),
            point=np.zeros((rows, pairs, 4), np.uint64),
            negative=np.zeros((rows + 1, 2 * pairs), np.bool_),
            coordinates=coordinates,
            norms=norms,
            scale=np.array(scale, np.uint64),
            scratch=np.zeros((20, SIZE), np.uint64),
            values=np.zeros((2, shape.n_components, 2), np.uint64),
            state=np.zeros(3, np.int64),
        )

    def wipe(self) -> None:
        """Overwrite all of it."""
        for field in fields(self):
            wipe(getattr(self, field.name))


def draw_cells(shape: ConeShape, bits: BufferedBits, work: Workspace, out: Words) -> int:
    """Overwrite cells, shape (n_cells, D, 2), until one is undecided; return how many were drawn.

    The values are integers of 128 bits, the low word first. The stream of bits then stands at the first word
    that no cell drawn has read.
    """
    done = 0
    while done < len(out):
        work.state[:] = bits.position, DECIDED, 0
        _draw_cells(
            bits.words,
            shape.dimension,
            shape.linear,
            work.gamma,
            work.energy,
            work.point,
            work.negative,
            work.coordinates,
            work.norms,
            work.scale,
            work.scratch,
            work.values,
            work.state,
            out[done:],
        )
        bits.position = int(work.state[_POSITION])
        done += int(work.state[_CELLS])
        if work.state[_STATUS] == UNDECIDED:
            break
        if work.state[_STATUS] == EXHAUSTED:
            bits.refill()
    return done


@numba.njit(error_model="numpy")
def _word(words: Words, state: State) -> Any:
    position = state[_POSITION]
    if position >= len(words):
        state[_STATUS] = EXHAUSTED
        return _0  # zeros end every loop below: two that are compared are undecided
    state[_POSITION] = position + 1
    return words[position]


@numba.njit(error_model="numpy")
def _leave(state: State) -> None:
    if state[_STATUS] == DECIDED:
        state[_STATUS] = UNDECIDED


@numba.njit(error_model="numpy")
def _exponential(words: Words, state: State, out: Words) -> None:
    """Write the whole part and the first word behind the point, as `exponential` would."""
    whole = 0
    while True:
        first = _word(words, state)
        last, is_odd = first, True
        while True:
            following = _word(words, state)
            if following == last:
                _leave(state)
                return
            if following > last:
                break
            last, is_odd = following, not is_odd
        if is_odd:
            out[_WHOLE], out[_FIRST] = np.uint64(whole), first
            if whole >= _MOST_WHOLE:
                _leave(state)
            return
        whole += 1


@numba.njit(error_model="numpy")
def _square(word: Any) -> tuple[Any, Any]:
    """Return the high and the low word of a square."""
    high, low = word >> _32, word & _LOW
    middle = high * low  # twice this, times 2^32, is added
    bottom = low * low
    carried = (bottom >> _32) + ((middle << _1) & _LOW)
    return high * high + (middle >> np.uint64(31)) + (carried >> _32), (carried << _32) | (bottom & _LOW)


@numba.njit(error_model="numpy")
def _quarter_disc(words: Words, state: State, out: Words) -> None:
    """Write the first words of a point, as `quarter_disc` would."""
    while True:
        a, b = _word(words, state), _word(words, state)
        a_high, a_low = _square(a)
        b_high, b_low = _square(b)
        low = a_low + b_low
        high = a_high + b_high
        is_outside = high < a_high
        if low < a_low:
            high += _1
            is_outside |= high == _0
        if is_outside:
            continue
        out[0], out[1] = a, b
        if high >= _ALMOST_ONE:  # below it, a^2 + b^2 + 2 (a + b + 1) is at most 1
            _leave(state)
        return


@numba.njit(error_model="numpy")
def _draw(
    words: Words, gamma: Words, energy: Words, point: Words, negative: NDArray[np.bool_], state: State
) -> None:
    """Draw all reals of a matrix: first words in the order of `matrix`, then second ones in the same order."""
    rows, pairs = point.shape[0], point.shape[1]
    for part in range(len(gamma)):
        _exponential(words, state, gamma[part])
    for row in range(rows):
        for pair in range(pairs):
            _exponential(words, state, energy[row, pair])
            _quarter_disc(words, state, point[row, pair])
            for side in range(2):
                negative[row + 1, 2 * pair + side] = (_word(words, state) & _1) == _1
        _exponential(words, state, energy[row, pairs])
        if state[_STATUS] != DECIDED:
            return
    for part in range(len(gamma)):
        gamma[part, _SECOND] = _word(words, state)
    for row in range(rows):
        for pair in range(pairs):
            energy[row, pair, _SECOND] = _word(words, state)
            point[row, pair, 2] = _word(words, state)
            point[row, pair, 3] = _word(words, state)
        energy[row, pairs, _SECOND] = _word(words, state)


@numba.njit(error_model="numpy")
def _to_limbs(whole: Any, first: Any, second: Any, out: Words) -> None:
    out[0], out[1] = second & _LOW, second >> _32
    out[2], out[3] = first & _LOW, first >> _32
    out[4] = whole


@numba.njit(error_model="numpy")
def _pair(energy: Words, point: Words, ends: Words, scratch: Words, state: State) -> None:
    """Write the magnitudes of a pair, shape (2, 2, 5), as `GaussianPair.magnitudes` would."""
    number, product, quotient = scratch[4], scratch[5], scratch[6]
    total, factor, root = scratch[7], scratch[8], scratch[9]
    for end in range(2):
        # s = a^2 + b^2, its high end for the low end of w, and the other way round
        total[:11] = _0
        for side in range(2):
            _to_limbs(_0, point[side], point[side + 2], factor)
            if end == 0:
                add_small(factor[:5], _1)
            multiply(factor[:5], factor[:5], product[:10])
            add(total[:11], product[:10])
        s = total[4:11]
        if end == 0:
            add_small(s, _1)
        elif length_of(s) < 4:
            _leave(state)
            return
        # w = sqrt(E / s)
        number[:13] = _0
        _to_limbs(energy[_WHOLE], energy[_FIRST], energy[_SECOND], number[8:13])
        if end == 1:
            add_small(number[8:13], _1)
        divide(number[:13], s, quotient[:13], scratch)
        square_root(quotient[:10], root[:5], scratch)  # E < 2^7 and s >= 2^-32: 10 limbs hold it
        if end == 1:
            add_small(root[:5], _1)
        for side in range(2):
            _to_limbs(_0, point[side], point[side + 2], factor)
            if end == 1:
                add_small(factor[:5], _1)
            multiply(factor[:5], root[:5], product[:10])
            ends[side, end, :] = product[4:9]
            if end == 1:
                add_small(ends[side, end], _1)


@numba.njit(error_model="numpy")
def _norm(ends: Words, slack: Words, norm: Words, scratch: Words) -> None:
    """Write both ends of a row's norm, as `_Row.norm` would."""
    total, product = scratch[4], scratch[5]
    for end in range(2):
        total[:10] = _0
        _to_limbs(slack[_WHOLE], slack[_FIRST], slack[_SECOND], total[4:9])
        if end == 1:
            add_small(total[4:10], _1)
        for place in range(len(ends)):
            multiply(ends[place, end], ends[place, end], product[:10])
            add(total[:10], product[:10])
        square_root(total[:10], norm[end], scratch)
        if end == 1:
            add_small(norm[end], _1)


@numba.njit(error_model="numpy")
def _round(
    difference: Words, gamma: Words, norm: Words, out: Words, product: Words, scratch: Words
) -> None:
    """Write ``(2 difference gamma // (norm 2^128) + 1) // 2``."""
    multiply(difference, gamma, product[:19])
    product[19] = _0
    double(product[:20])
    divide(product[4:20], norm, out[:16], scratch)
    add_small(out[:16], _1)
    halve(out[:16])


@numba.njit(error_model="numpy")
def _entry(
    left: Words,
    right: Words,
    left_negative: NDArray[np.bool_],
    right_negative: NDArray[np.bool_],
    n: int,
    norms: tuple[Words, Words],
    denominator: Words,
    scratch: Words,
    out: Words,
    state: State,
) -> None:
    """Write one rounded entry, as `inner_product` and `rounded_difference` would."""
    gamma, ends, products = scratch[10:12, :9], scratch[12:16, :10], scratch[16:18, :14]
    product, difference = scratch[4], scratch[5]
    ends[:] = _0  # positive: low, high; negative: low, high
    for place in range(n):
        first = 2 if left_negative[place] != right_negative[place] else 0
        for end in range(2):
            multiply(left[place, end], right[place, end], product[:10])
            add(ends[first + end], product[:10])
    for end in range(2):
        multiply(norms[0][end], norms[1][end], product[:10])
        multiply(product[:10], denominator, products[end])
    larger = 2 if is_less(ends[0], ends[2]) else 0
    smaller = 2 - larger
    least, most = scratch[6], scratch[7]
    subtract(ends[larger], ends[smaller + 1], difference[:10])
    _round(difference[:10], gamma[0], products[1], least, product, scratch)
    subtract(ends[larger + 1], ends[smaller], difference[:10])
    _round(difference[:10], gamma[1], products[0], most, product, scratch)
    if is_less(least[:16], most[:16]) or length_of(most[:16]) > 3:
        _leave(state)
        return
    if is_less(ends[larger], ends[smaller + 1]):  # the sign is open
        subtract(ends[smaller + 1], ends[larger], difference[:10])
        multiply(difference[:10], gamma[1], product[:19])
        product[19] = _0
        double(product[:20])
        if not is_less(product[4:20], products[0]):
            _leave(state)
            return
    low, high = least[0] | (least[1] << _32), least[2]
    if larger == 2:  # two's complement
        low, high = ~low + _1, ~high
        if low == _0:
            high += _1
    out[0], out[1] = low, high


@numba.njit(error_model="numpy")
def _matrix(
    words: Words,
    n: int,
    linear: bool,
    parts: Words,
    energy: Words,
    point: Words,
    negative: NDArray[np.bool_],
    coordinates: Words,
    norms: Words,
    scale: Words,
    scratch: Words,
    out: Words,
    state: State,
) -> None:
    _draw(words, parts, energy, point, negative, state)
    if state[_STATUS] != DECIDED:
        return
    rows, pairs = point.shape[0], point.shape[1]
    for row in range(rows):
        for pair in range(pairs):
            _pair(
                energy[row, pair],
                point[row, pair],
                coordinates[row + 1, 2 * pair : 2 * pair + 2],
                scratch,
                state,
            )
            if state[_STATUS] != DECIDED:
                return
        _norm(coordinates[row + 1, :n], energy[row, pairs], norms[row + 1], scratch)
        if length_of(norms[row + 1, 0]) == 0:
            _leave(state)
            return
    # c t, without the denominator of c
    total, term = scratch[4], scratch[5]
    total[:5] = _0
    for part in range(len(parts)):
        _to_limbs(parts[part, _WHOLE], parts[part, _FIRST], parts[part, _SECOND], term)
        add(total[:5], term[:5])
    multiply(scale[0], total[:5], scratch[10, :9])
    add_small(total[:5], np.uint64(len(parts)))
    multiply(scale[0], total[:5], scratch[11, :9])
    component = 0
    for i in range(rows + 1):
        for j in range(i, rows + 1):
            if i > 0 or j == 0 or linear:
                _entry(
                    coordinates[i],
                    coordinates[j],
                    negative[i],
                    negative[j],
                    n if i > 0 else 1,
                    (norms[i], norms[j]),
                    scale[1],
                    scratch,
                    out[component],
                    state,
                )
                if state[_STATUS] != DECIDED:
                    return
                component += 1


@compiled(
    read_only(types.uint64),
    types.int64,
    types.boolean,
    writable(types.uint64, 2),
    writable(types.uint64, 3),
    writable(types.uint64, 3),
    writable(types.boolean, 2),
    writable(types.uint64, 4),
    writable(types.uint64, 3),
    writable(types.uint64, 2),
    writable(types.uint64, 2),
    writable(types.uint64, 3),
    writable(types.int64),
    writable(types.uint64, 3),
)
def _draw_cells(
    words: Words,
    n: int,
    linear: bool,
    parts: Words,
    energy: Words,
    point: Words,
    negative: NDArray[np.bool_],
    coordinates: Words,
    norms: Words,
    scale: Words,
    scratch: Words,
    values: Words,
    state: State,
    out: Words,
) -> None:
    # proof: same-function
    for cell in range(len(out)):
        begin = state[_POSITION]
        for side in range(2):
            _matrix(
                words,
                n,
                linear,
                parts,
                energy,
                point,
                negative,
                coordinates,
                norms,
                scale,
                scratch,
                values[side],
                state,
            )
            if state[_STATUS] != DECIDED:
                state[_POSITION] = begin
                return
        for component in range(len(parts)):
            low, other = values[0, component, 0], values[1, component, 0]
            borrow = _1 if low < other else _0
            out[cell, component, 0] = low - other
            out[cell, component, 1] = values[0, component, 1] - values[1, component, 1] - borrow
        state[_CELLS] = cell + 1
