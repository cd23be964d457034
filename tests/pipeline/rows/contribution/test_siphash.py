"""SipHash against its published vectors and a plain version; tables and divisions against plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from suffice.pipeline.rows.contribution import siphash
from support.siphash import plain_siphash

KEY = (int.from_bytes(bytes(range(8)), "little"), int.from_bytes(bytes(range(8, 16)), "little"))


def hashed_texts(texts: list[bytes]) -> list[bytes]:
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    out = np.empty((len(texts), 2), np.uint64)
    siphash.hash_texts(offsets, np.frombuffer(b"".join(texts), np.uint8), *KEY, out)
    return [row.tobytes() for row in out]


def test_the_published_vectors() -> None:
    """The first and the ninth of the reference implementation's vectors: 128 bits, and 64 bits."""
    assert hashed_texts([b""])[0].hex() == "a3817f04ba25a8e66df67214c7550293"
    out = np.empty(1, np.uint64)
    siphash.hash_words(np.frombuffer(bytes(range(8)), np.uint64).reshape(1, 1), *KEY, out)
    assert out.tobytes().hex() == "6224939a79f5f593"


def test_texts_and_words_of_any_length() -> None:
    rng = np.random.default_rng(1)
    texts = [rng.bytes(length) for length in range(70)] + [bytes(8), bytes(9), bytes(300)]
    assert hashed_texts(texts) == [plain_siphash(KEY, text, 16) for text in texts]
    for width in range(3, 40, 9):
        words = rng.integers(0, 2**63, (5, width), np.uint64)
        out = np.empty(5, np.uint64)
        siphash.hash_words(words, *KEY, out)
        assert [row.tobytes() for row in out] == [plain_siphash(KEY, row.tobytes(), 8) for row in words]


def test_ranks_are_hashes_of_a_rows_hash_and_its_number_among_identical_rows() -> None:
    rows = np.array([[1, 1, 5], [1, 1, 6], [1, 1, 5], [2, 1, 5], [1, 1, 5], [1, 1, 6]], np.uint64)
    copies = [0, 0, 1, 0, 2, 1]
    # Equal hashes must not make rows identical, and a full cluster of slots must be searched to its end.
    for hashes in (np.arange(6, dtype=np.uint64) % 3, np.full(6, 15, np.uint64)):
        hashes[rows[:, 2] == 6] = 15
        same = {tuple(row): value for row, value in zip(rows.tolist(), hashes.tolist(), strict=True)}
        hashes[:] = [same[tuple(row)] for row in rows.tolist()]
        ranks = np.empty(6, np.uint64)
        siphash.rank_rows(rows, hashes, *KEY, np.full(16, -1, np.int32), ranks)
        assert [rank.tobytes() for rank in ranks] == [
            plain_siphash(KEY, np.array([value, copy], np.uint64).tobytes(), 8)
            for value, copy in zip(hashes, copies, strict=True)
        ]


@pytest.mark.parametrize("hash_values", [1, 2, 50])
def test_ties_go_by_content(hash_values: int) -> None:
    rng = np.random.default_rng(hash_values)
    words = rng.integers(0, 3, (300, 3), np.uint64)
    hashes = rng.integers(0, hash_values, 300).astype(np.uint64)
    order = np.argsort(hashes)
    siphash.settle_ties(words, hashes, order)
    keys = [(int(hashes[row]), *words[row].tolist()) for row in order]
    assert keys == sorted(keys)
    assert sorted(order.tolist()) == list(range(300))


def test_units_are_numbered_and_counted() -> None:
    rng = np.random.default_rng(2)
    words = rng.integers(0, 7, (500, 3), np.uint64)
    numbers, counts = np.empty(500, np.int32), np.zeros(500, np.int32)
    siphash.number_units(words, *KEY, np.full(1024, -1, np.int32), numbers, counts)
    units = [tuple(row[:2]) for row in words.tolist()]
    first = list(dict.fromkeys(units))
    assert numbers.tolist() == [first.index(unit) for unit in units]
    assert counts[: len(first)].tolist() == [units.count(unit) for unit in first]
    assert not counts[len(first) :].any()


def test_each_unit_is_in_one_part_and_parts_are_of_like_size() -> None:
    units = np.arange(200_000, dtype=np.uint64).reshape(-1, 2)
    parts = {}
    for finely in (False, True):
        out = np.zeros(len(units), np.int32)
        siphash.assign_parts(units, *KEY, 0, 8, 8, finely, out)
        parts[finely] = out.copy()
        numbers = np.zeros(len(units), np.int32)
        numbers[::2] = -1
        siphash.assign_parts(units, *KEY, 3, 2, 8, finely, numbers)
        inside = (out >= 3) & (out < 5) & (np.arange(len(units)) % 2 == 1)
        assert (numbers == np.where(inside, out - 3, -1)).all()
    together = np.bincount(parts[False] * 8 + parts[True], minlength=64)
    assert together.min() > 1200, "64 pairs of parts with 1562.5 units each on average"
    assert together.max() < 1900


def test_sorting_by_part_is_stable() -> None:
    parts = np.array([2, -1, 0, 2, 3, 0, -1], np.int32)
    ends, order = np.zeros(5, np.int64), np.full(7, -5, np.int32)
    siphash.sort_by_part(parts, ends, order)
    assert ends.tolist() == [0, 2, 2, 4, 5]
    assert order[:5].tolist() == [2, 5, 0, 3, 4]
