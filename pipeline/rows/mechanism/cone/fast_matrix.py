"""The same matrices of the same words, compiled: what words of 64 bits decide at the first attempt.

Every real has two words, its first 64 bits and its next ones, and every comparison has to be decided by the
first. Where it is not, or a number does not fit, the cell is left to `matrix`, which reads the same words
from the cell's first one on. That happens to fewer than one matrix in a million.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

import numba
import numpy as np

from suffice.pipeline.rows.chunk import argument_types as types
from suffice.pipeline.rows.chunk.argument_types import read_only, writable
from suffice.pipeline.rows.chunk.exact_sums import wipe
from suffice.pipeline.rows.chunk.numba_loops import compiled
from suffice.pipeline.rows.mechanism.cone.limbs import (
    SCRATCH,
    SIZE,
    add,
    add_word,
    clear,
    divide,
    double,
    halve,
    is_less,
    length,
    multiply,
    shift_down,
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

# Rows of `numbers`, behind those that dividing overwrites.
_NUMERATOR, _DENOMINATOR = SCRATCH, SCRATCH + 1  # of c
_GAMMA = SCRATCH + 3  # low, high
_A, _B, _C, _D = SCRATCH + 5, SCRATCH + 6, SCRATCH + 7, SCRATCH + 8
_POSITIVE, _NEGATIVE, _DIVISOR = SCRATCH + 9, SCRATCH + 11, SCRATCH + 13  # low, high
_NORMS = SCRATCH + 15  # low, high of each row; coordinates follow


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Workspace:
    """Arrays of one thread, for one shape."""

    gamma: Words  # (D, 3): the exponential variables that t is the sum of
    energy: Words  # (d, pairs + 1, 3): those of every pair, and the one beside them
    point: Words  # (d, pairs, 4): first words of a and b, and second ones
    negative: NDArray[np.bool_]  # (d + 1, 2 pairs)
    numbers: Words  # (.., SIZE): natural numbers
    values: Words  # (2, D, 2): P and Q, integers of 128 bits
    state: State  # (3,)

    @classmethod
    def of(cls, shape: ConeShape) -> Self | None:
        """Return the arrays; None where c takes more than 128 bits, which the exact path alone can."""
        if max(shape.size.numerator, shape.size.denominator) >> 128:
            return None
        rows, pairs = shape.columns, (shape.dimension + 1) // 2
        numbers = np.zeros((_NORMS + 2 * (rows + 1) * (1 + 2 * pairs), SIZE), np.uint64)
        for place in range(4):
            numbers[_NUMERATOR, place] = (shape.size.numerator >> (32 * place)) & 0xFFFFFFFF
            # Norms are in units of 2^-128: that factor of a quotient's denominator comes in here.
            numbers[_DENOMINATOR, place + 4] = (shape.size.denominator >> (32 * place)) & 0xFFFFFFFF
        first = _coordinate(0, 0, rows, pairs)
        for unit in (_NORMS, _NORMS + 1, first, first + 1):  # row 0 is the first unit vector
            numbers[unit, 4] = 1
        return cls(
            gamma=np.zeros((shape.n_components, 3), np.uint64),
            energy=np.zeros((rows, pairs + 1, 3), np.uint64),
            point=np.zeros((rows, pairs, 4), np.uint64),
            negative=np.zeros((rows + 1, 2 * pairs), np.bool_),
            numbers=numbers,
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
            work.numbers,
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
    """Draw all reals of a matrix: first words in the order of `matrix`, then second ones in that order."""
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
def _coordinate(row: int, place: int, rows: int, pairs: int) -> int:
    """Return the row of `numbers` with a coordinate's low end; the high end is in the next one."""
    return _NORMS + 2 * (rows + 1) + 2 * (2 * pairs * row + place)


@numba.njit(error_model="numpy")
def _write(numbers: Words, whole: Any, first: Any, second: Any, end: int, place: int, out: int) -> None:
    """Write the low end (0) or the high end (1) of a real, times ``2**(128 + 32 place)``."""
    clear(numbers, out)
    add_word(numbers, second, place, out)
    add_word(numbers, first, place + 2, out)
    add_word(numbers, whole, place + 4, out)
    if end == 1:
        add_word(numbers, _1, place, out)


@numba.njit(error_model="numpy")
def _pair(numbers: Words, energy: Words, point: Words, out: int, state: State) -> None:
    """Write the ends of both magnitudes of a pair, as `GaussianPair.magnitudes` would."""
    for end in range(1, -1, -1):
        # s = a^2 + b^2: first its high end, into C
        clear(numbers, _C)
        for side in range(2):
            _write(numbers, _0, point[side], point[side + 2], end, 0, _A)
            multiply(numbers, _A, _A, _B)
            add(numbers, _B, _C)
        shift_down(numbers, _C, 4, _C)
        if end == 1:
            add_word(numbers, _1, 0, _C)
            # w = sqrt(E / s): its low end, into D
            _write(numbers, energy[_WHOLE], energy[_FIRST], energy[_SECOND], 0, 8, _A)
            divide(numbers, _A, _C, _B)
            square_root(numbers, _B, _D)
    if length(numbers, _C) < 4:
        _leave(state)
        return
    for end in range(2):
        if end == 1:
            # w + 2^32, its slack, which is narrow where its square times s is at least E
            add_word(numbers, _1, 1, _D)
            multiply(numbers, _D, _D, _A)
            multiply(numbers, _A, _C, _B)
            _write(numbers, energy[_WHOLE], energy[_FIRST], energy[_SECOND], 1, 8, _A)
            if is_less(numbers, _B, _A):
                _leave(state)
                return
        for side in range(2):
            _write(numbers, _0, point[side], point[side + 2], end, 0, _A)
            multiply(numbers, _A, _D, _B)
            shift_down(numbers, _B, 4, out + 2 * side + end)
            if end == 1:
                add_word(numbers, _1, 0, out + 2 * side + end)


@numba.njit(error_model="numpy")
def _norm(numbers: Words, coordinates: int, n: int, beside: Words, out: int, state: State) -> None:
    """Write both ends of a row's norm, as `_Row.norm` would."""
    for end in range(2):
        _write(numbers, beside[_WHOLE], beside[_FIRST], beside[_SECOND], end, 4, _C)
        for place in range(n):
            coordinate = coordinates + 2 * place + end
            multiply(numbers, coordinate, coordinate, _A)
            add(numbers, _A, _C)
        if end == 0:
            square_root(numbers, _C, out)
    if length(numbers, out) == 0:
        _leave(state)
        return
    clear(numbers, out + 1)
    add(numbers, out, out + 1)
    add_word(numbers, np.uint64(n), 1, out + 1)  # n times the slack
    multiply(numbers, out + 1, out + 1, _A)
    if is_less(numbers, _A, _C):
        _leave(state)


@numba.njit(error_model="numpy")
def _entry(
    numbers: Words,
    left: int,
    right: int,
    signs: tuple[NDArray[np.bool_], NDArray[np.bool_]],
    n: int,
    norms: tuple[int, int],
    out: Words,
    state: State,
) -> None:
    """Write one rounded entry, as `inner_product` and `rounded_quotient` would."""
    for end in range(2):
        clear(numbers, _POSITIVE + end)
        clear(numbers, _NEGATIVE + end)
        for place in range(n):
            multiply(numbers, left + 2 * place + end, right + 2 * place + end, _A)
            add(numbers, _A, (_NEGATIVE if signs[0][place] != signs[1][place] else _POSITIVE) + end)
        multiply(numbers, norms[0] + end, norms[1] + end, _A)
        multiply(numbers, _A, _DENOMINATOR, _DIVISOR + end)
    subtract(numbers, _POSITIVE, _NEGATIVE + 1, _A)
    subtract(numbers, _NEGATIVE, _POSITIVE + 1, _B)
    is_negative = length(numbers, _B) > 0
    multiply(numbers, _B if is_negative else _A, _GAMMA, _C)
    double(numbers, _C)
    divide(numbers, _C, _DIVISOR + 1, _D)
    add_word(numbers, _1, 0, _D)
    halve(numbers, _D)
    if length(numbers, _D) > 3:
        _leave(state)
        return
    low, high = numbers[_D, 0] | (numbers[_D, 1] << _32), numbers[_D, 2]
    # Decided where 2 high < (2 nearest + 1) divisor.
    double(numbers, _D)
    add_word(numbers, _1, 0, _D)
    multiply(numbers, _D, _DIVISOR, _C)
    subtract(numbers, _POSITIVE + 1, _NEGATIVE, _A)
    subtract(numbers, _NEGATIVE + 1, _POSITIVE, _B)
    multiply(numbers, _A if is_less(numbers, _B, _A) else _B, _GAMMA + 1, _D)
    double(numbers, _D)
    if not is_less(numbers, _D, _C):
        _leave(state)
        return
    if is_negative:  # two's complement
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
    numbers: Words,
    out: Words,
    state: State,
) -> None:
    _draw(words, parts, energy, point, negative, state)
    rows, pairs = point.shape[0], point.shape[1]
    for row in range(rows):
        for pair in range(pairs):
            if state[_STATUS] == DECIDED:
                at = _coordinate(row + 1, 2 * pair, rows, pairs)
                _pair(numbers, energy[row, pair], point[row, pair], at, state)
        if state[_STATUS] == DECIDED:
            at = _coordinate(row + 1, 0, rows, pairs)
            _norm(numbers, at, n, energy[row, pairs], _NORMS + 2 * (row + 1), state)
    # c t, without the denominator of c
    clear(numbers, _A)
    for part in range(len(parts)):
        _write(numbers, parts[part, _WHOLE], parts[part, _FIRST], parts[part, _SECOND], 0, 0, _B)
        add(numbers, _B, _A)
    for end in range(2):
        multiply(numbers, _NUMERATOR, _A, _GAMMA + end)
        add_word(numbers, np.uint64(len(parts)), 0, _A)
    component = 0
    for i in range(rows + 1):
        for j in range(i, rows + 1):
            if state[_STATUS] == DECIDED and (i > 0 or j == 0 or linear):
                _entry(
                    numbers,
                    _coordinate(i, 0, rows, pairs),
                    _coordinate(j, 0, rows, pairs),
                    (negative[i], negative[j]),
                    n if i > 0 else 1,
                    (_NORMS + 2 * i, _NORMS + 2 * j),
                    out[component],
                    state,
                )
                component += 1


def _in_python(
    words: Words,
    n: int,
    linear: bool,
    parts: Words,
    energy: Words,
    point: Words,
    negative: NDArray[np.bool_],
    numbers: Words,
    values: Words,
    state: State,
    out: Words,
) -> None:
    # proof: same-function
    for cell in range(len(out)):
        begin = state[_POSITION]
        for side in range(2):
            _matrix(words, n, linear, parts, energy, point, negative, numbers, values[side], state)
            if state[_STATUS] != DECIDED:
                state[_POSITION] = begin
                return
        for component in range(len(parts)):
            low, other = values[0, component, 0], values[1, component, 0]
            borrow = _1 if low < other else _0
            out[cell, component, 0] = low - other
            out[cell, component, 1] = values[0, component, 1] - values[1, component, 1] - borrow
        state[_CELLS] = cell + 1


# There is no loop of this in C.
_draw_cells = compiled(
    _in_python,
    (
        read_only(types.uint64),
        types.int64,
        types.boolean,
        writable(types.uint64, 2),
        writable(types.uint64, 3),
        writable(types.uint64, 3),
        writable(types.boolean, 2),
        writable(types.uint64, 2),
        writable(types.uint64, 3),
        writable(types.int64),
        writable(types.uint64, 3),
    ),
)
