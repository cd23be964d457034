"""Keyed hashes of units and rows, compiled: SipHash-2-4, and a cheap one that only places rows.

SipHash is a pseudorandom function under a secret key of 128 bits; the order of its inputs is that of the
reference implementation, so its published test vectors hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.rows.chunk import argument_types as types
from suffice.pipeline.rows.chunk.argument_types import read_only, writable
from suffice.pipeline.rows.chunk.jit import compiled, inlined

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Words = NDArray[np.uint64]
    State = tuple[Any, Any, Any, Any]

_V0, _V1 = np.uint64(0x736F6D6570736575), np.uint64(0x646F72616E646F6D)
_V2, _V3 = np.uint64(0x6C7967656E657261), np.uint64(0x7465646279746573)
_13, _16, _17, _21, _32 = np.uint64(13), np.uint64(16), np.uint64(17), np.uint64(21), np.uint64(32)
_43, _47, _48, _51 = np.uint64(43), np.uint64(47), np.uint64(48), np.uint64(51)
_EE, _DD, _FF = np.uint64(0xEE), np.uint64(0xDD), np.uint64(0xFF)
_1, _29 = np.uint64(1), np.uint64(29)
_MULTIPLIER, _OTHER_MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_LOW_HALF = np.uint64(0xFFFFFFFF)

_words_in, _words_out = read_only(types.uint64, 2), writable(types.uint64, 2)
_hashes_in, _hashes_out = read_only(types.uint64), writable(types.uint64)
_key = (types.uint64, types.uint64)


@inlined
def _round(v0: Any, v1: Any, v2: Any, v3: Any) -> State:
    v0 += v1
    v1 = ((v1 << _13) | (v1 >> _51)) ^ v0
    v0 = (v0 << _32) | (v0 >> _32)
    v2 += v3
    v3 = ((v3 << _16) | (v3 >> _48)) ^ v2
    v0 += v3
    v3 = ((v3 << _21) | (v3 >> _43)) ^ v0
    v2 += v1
    v1 = ((v1 << _17) | (v1 >> _47)) ^ v2
    v2 = (v2 << _32) | (v2 >> _32)
    return v0, v1, v2, v3


@inlined
def _absorb(v: State, word: Any) -> State:
    v0, v1, v2, v3 = v[0], v[1], v[2], v[3] ^ word
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ word, v1, v2, v3


@inlined
def _finish(v: State) -> State:
    v0, v1, v2, v3 = v
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0, v1, v2, v3


@inlined
def _begin(key0: Any, key1: Any) -> State:
    return _V0 ^ key0, _V1 ^ key1, _V2 ^ key0, _V3 ^ key1


@compiled(_words_in, *_key, _hashes_out)
def hash_words(words: Words, key0: int, key1: int, out: Words) -> None:
    """Hash each row of 64-bit words, as its bytes in little-endian order, to 64 bits."""
    width = words.shape[1]
    last = np.uint64((8 * width) & 0xFF) << np.uint64(56)
    for row in range(len(words)):
        v = _begin(key0, key1)
        for word in range(width):
            v = _absorb(v, words[row, word])
        v = _absorb(v, last)
        v0, v1, v2, v3 = _finish((v[0], v[1], v[2] ^ _FF, v[3]))
        out[row] = v0 ^ v1 ^ v2 ^ v3


@compiled(read_only(types.int64), read_only(types.uint8), *_key, _words_out)
def hash_texts(offsets: NDArray[np.int64], data: NDArray[np.uint8], key0: int, key1: int, out: Words) -> None:
    """Hash the bytes between consecutive offsets to 128 bits."""
    for row in range(len(offsets) - 1):
        start, length = offsets[row], offsets[row + 1] - offsets[row]
        v0, v1, v2, v3 = _begin(key0, key1)
        v = (v0, v1 ^ _EE, v2, v3)
        whole = length - length % 8
        for position in range(start, start + whole, 8):
            word = np.uint64(0)
            for byte in range(8):
                word |= np.uint64(data[position + byte]) << np.uint64(8 * byte)
            v = _absorb(v, word)
        word = np.uint64(length & 0xFF) << np.uint64(56)
        for byte in range(length - whole):
            word |= np.uint64(data[start + whole + byte]) << np.uint64(8 * byte)
        v = _absorb(v, word)
        v = _finish((v[0], v[1], v[2] ^ _EE, v[3]))
        out[row, 0] = v[0] ^ v[1] ^ v[2] ^ v[3]
        v = _finish((v[0], v[1] ^ _DD, v[2], v[3]))
        out[row, 1] = v[0] ^ v[1] ^ v[2] ^ v[3]


@inlined
def _position(first: Any, second: Any, key0: Any, key1: Any) -> Any:
    """Spread units over 64 bits. What it gives decides where rows are handled, never which are kept."""
    z = ((first ^ key0) * _MULTIPLIER) ^ (second + key1)
    z = (z ^ (z >> _29)) * _OTHER_MULTIPLIER
    z = (z ^ (z >> _32)) * _MULTIPLIER
    return z ^ (z >> _29)


@compiled(_words_in, *_key, types.int64, types.int64, types.int64, types.boolean, writable(types.int32))
def assign_parts(
    words: Words,
    key0: int,
    key1: int,
    first: int,
    n_parts: int,
    n_total: int,
    finely: bool,
    out: NDArray[np.int32],
) -> None:
    """Assign units, the first two words of each row, to the parts ``first..first + n_parts - 1``.

    There are `n_total` in all. The part is counted from `first`; -1 where it is none of these, and where
    `out` held -1 before. The division of a part (`finely`) is independent of that into parts.
    """
    total = np.uint64(n_total)
    for row in range(len(words)):
        spread = _position(words[row, 0], words[row, 1], key0, key1)
        half = spread & _LOW_HALF if finely else spread >> _32
        part = np.int64((half * total) >> _32) - first
        out[row] = part if (out[row] >= 0) & (part >= 0) & (part < n_parts) else -1


@compiled(read_only(types.int32), writable(types.int64), writable(types.int32))
def sort_by_part(parts: NDArray[np.int32], ends: NDArray[np.int64], order: NDArray[np.int32]) -> None:
    """List the rows of each part in order, one part after the other.

    Parameters
    ----------
    parts : ndarray of int32, shape (n_rows,)
        Each row's part, -1 for none.
    ends : ndarray of int64, shape (n_parts + 1,)
        All 0 before; then the number of rows listed up to the beginning of each part.
    order : ndarray of int32, shape (n_rows,)
        The numbers of the rows listed.
    """
    for row in range(len(parts)):
        if parts[row] >= 0:
            ends[parts[row] + 1] += 1
    for part in range(1, len(ends)):
        ends[part] += ends[part - 1]
    for row in range(len(parts)):
        part = parts[row]
        if part >= 0:
            order[ends[part]] = row
            ends[part] += 1
    for part in range(len(ends) - 1, 0, -1):
        ends[part] = ends[part - 1]
    ends[0] = 0


@compiled(_words_in, *_key, writable(types.int32), writable(types.int32), writable(types.int32))
def number_units(
    words: Words,
    key0: int,
    key1: int,
    slots: NDArray[np.int32],
    numbers: NDArray[np.int32],
    counts: NDArray[np.int32],
) -> None:
    """Number the units of rows, and count the rows of each.

    Parameters
    ----------
    words : ndarray of uint64, shape (n_rows, n_words)
        The first two words are the unit.
    slots : ndarray of int32, shape (a power of two above n_rows,)
        All -1 before.
    numbers : ndarray of int32, shape (n_rows,)
        Gets each row's unit.
    counts : ndarray of int32, shape (n_rows,)
        All 0 before; gets the number of rows by unit.
    """
    firsts = np.empty(len(words), np.int32)
    mask, n_units = np.uint64(len(slots) - 1), 0
    for row in range(len(words)):
        first, second = words[row, 0], words[row, 1]
        slot = _position(first, second, key0, key1) & mask
        while True:
            unit = slots[slot]
            if unit < 0:
                slots[slot] = unit = n_units
                firsts[unit] = row
                n_units += 1
                break
            if words[firsts[unit], 0] == first and words[firsts[unit], 1] == second:
                break
            slot = (slot + _1) & mask
        numbers[row] = unit
        counts[unit] += 1


@compiled(_words_in, _hashes_in, writable(types.int64))
def settle_ties(words: Words, hashes: Words, order: NDArray[np.int64]) -> None:
    """Put rows of equal hashes, side by side in `order`, into the order of their words."""
    width = words.shape[1]
    for position in range(1, len(order)):
        row = order[position]
        at = position
        while at > 0:
            before = order[at - 1]
            if hashes[before] != hashes[row]:
                break
            word = 0
            while word < width - 1 and words[before, word] == words[row, word]:
                word += 1
            if words[before, word] <= words[row, word]:
                break
            order[at] = before
            at -= 1
        order[at] = row


@compiled(_words_in, _hashes_in, *_key, writable(types.int32), _hashes_out)
def rank_rows(
    words: Words, hashes: Words, key0: int, key1: int, slots: NDArray[np.int32], ranks: Words
) -> None:
    """Rank rows by a keyed hash of their own hash and of their number among identical rows.

    Parameters
    ----------
    words : ndarray of uint64, shape (n_rows, n_words)
        The rows.
    hashes : ndarray of uint64, shape (n_rows,)
        Their keyed hashes.
    slots : ndarray of int32, shape (a power of two above n_rows,)
        All -1 before.
    ranks : ndarray of uint64, shape (n_rows,)
        Gets the ranks.
    """
    width, mask = words.shape[1], np.uint64(len(slots) - 1)
    copies = np.zeros(len(words), np.int64)  # of a row, by the first of its kind
    for row in range(len(words)):
        slot = hashes[row] & mask
        while True:
            first = slots[slot]
            if first < 0:
                slots[slot] = first = row
                break
            word = 0
            while word < width and words[first, word] == words[row, word]:
                word += 1
            if word == width:
                break
            slot = (slot + _1) & mask
        v = _absorb(_begin(key0, key1), hashes[row])
        v = _absorb(v, np.uint64(copies[first]))
        v = _absorb(v, np.uint64(16) << np.uint64(56))
        v0, v1, v2, v3 = _finish((v[0], v[1], v[2] ^ _FF, v[3]))
        ranks[row] = v0 ^ v1 ^ v2 ^ v3
        copies[first] += 1


@compiled(
    read_only(types.int64),
    read_only(types.int32),
    types.int64,
    writable(types.int32),
    writable(types.boolean),
)
def take_first(
    order: NDArray[np.int64],
    numbers: NDArray[np.int32],
    most: int,
    taken: NDArray[np.int32],
    kept: NDArray[np.bool_],
) -> None:
    """Keep the first `most` rows of each number in `order`; `taken` is all 0 before."""
    for position in range(len(order)):
        row = order[position]
        unit = numbers[row]
        kept[row] = taken[unit] < most
        taken[unit] += 1
