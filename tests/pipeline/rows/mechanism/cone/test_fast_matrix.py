"""The compiled path is the same function of the same bits, with the arithmetic of Python's integers."""

from __future__ import annotations

import math
import random
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from suffice.pipeline.rows.mechanism.cone import fast_matrix, limbs, sampler
from suffice.pipeline.rows.mechanism.cone.sampler import ConeSampler, cone_noise, draw_exactly, draw_fast
from support.cone_bits import RecordedBits

SHAPES = [
    (1, True, 1, Fraction(1)),
    (1, False, 1 << 20, Fraction(1, 80)),
    (2, True, 1, Fraction(3, 7)),
    (3, False, 5, Fraction(2)),
    (4, True, 1 << 16, Fraction(1, 3)),
    (2, True, 1 << 24, Fraction(123_456_789, 10**14)),
]


def both(
    made: ConeSampler, words: np.ndarray[tuple[int], np.dtype[np.uint64]], n_cells: int, dtype: type
) -> bool:
    """Tell whether both paths give one result and leave the stream at one place."""
    exact: Any = np.zeros((n_cells, made.shape.n_components), dtype)
    fast = exact.copy()
    first, second = RecordedBits(words), RecordedBits(words)
    draw_exactly(made.shape, first, exact)
    draw_fast(made.shape, second, fast)
    return bool((exact == fast).all()) and [first.word() for _ in range(3)] == [
        second.word() for _ in range(3)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [object, np.int64])
@pytest.mark.parametrize(("columns", "linear", "steps", "rate"), SHAPES)
def test_both_paths_are_one_function(
    columns: int, linear: bool, steps: int, rate: Fraction, dtype: type
) -> None:
    made = cone_noise(rate=rate, columns=columns, linear=linear, steps=steps)
    words = np.random.default_rng(columns).integers(0, 2**64, 5000, dtype=np.uint64)
    assert both(made, words, 70, dtype)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_streams_that_decide_nothing_are_continued_exactly(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words that repeat, and words at the ends: most cells are left, by each reason, and none differs."""
    generator = np.random.default_rng(seed)
    special = np.array([0, 1, 2**63, 2**64 - 1, 2**64 - 2, 2**32], np.uint64)
    words = generator.integers(0, 2**64, 40_000, dtype=np.uint64)
    places = generator.random(len(words)) < (0.002, 0.01, 0.03)[seed % 3]
    words[places] = special[generator.integers(0, len(special), int(places.sum()))]
    repeated = np.flatnonzero(generator.random(len(words)) < 0.002)[1:]
    words[repeated] = words[repeated - 1]
    columns, linear, steps, rate = SHAPES[seed]
    made = cone_noise(rate=rate, columns=columns, linear=linear, steps=steps)
    left = 0

    def counted(*arguments: object) -> None:
        nonlocal left
        left += 1
        draw_exactly(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(sampler, "draw_exactly", counted)
    assert both(made, words, 60, object)
    assert left > 0


def test_values_beyond_64_bits_are_saturated_or_kept() -> None:
    made = cone_noise(rate=Fraction(1, 2**20), columns=1, linear=True, steps=1 << 24)
    words = np.random.default_rng(0).integers(0, 2**64, 5000, dtype=np.uint64)
    kept, cut = np.zeros((70, 3), object), np.zeros((70, 3), np.int64)
    draw_fast(made.shape, RecordedBits(words), kept)
    draw_fast(made.shape, RecordedBits(words), cut)
    assert max(abs(value) for value in kept.ravel()) > 2**64
    assert cut.astype(object).tolist() == np.clip(kept, -(2**63), 2**63 - 1).tolist()
    exact = np.zeros((70, 3), np.int64)
    draw_exactly(made.shape, RecordedBits(words), exact)
    assert (exact == cut).all()


def test_a_factor_beyond_128_bits_is_left_to_the_exact_path() -> None:
    made = cone_noise(rate=Fraction(1, 2**130 + 1), columns=1, linear=False, steps=1)
    assert fast_matrix.Workspace.of(made.shape) is None
    assert both(made, np.zeros(0, np.uint64), 3, object)


@pytest.mark.slow
def test_limbs_are_natural_numbers() -> None:
    """Random numbers of every length, and those of limbs all 0, all 1 or one bit: Knuth's rare steps."""
    generator = random.Random(3)  # noqa: S311 - not about chance
    rows = np.zeros((8, limbs.SIZE), np.uint64)
    edges = (0, 1, 2**32 - 1, 2**31, 2**31 - 1)

    def number(size: int) -> int:
        if generator.random() < 0.4:
            return sum(generator.choice(edges) << (32 * place) for place in range(size))
        return generator.getrandbits(generator.randrange(1, 32 * size + 1))

    def write(value: int, row: int) -> None:
        rows[row] = [(value >> (32 * place)) & 0xFFFFFFFF for place in range(limbs.SIZE)]

    def read(row: int) -> int:
        return sum(int(limb) << (32 * place) for place, limb in enumerate(rows[row]))

    for _ in range(1200):
        size = generator.randrange(1, 24)
        left, right = number(size), number(generator.randrange(1, 25 - size)) or 1
        write(left, 4)
        write(right, 5)
        limbs.divide(rows, 4, 5, 6)
        assert read(6) == left // right
        limbs.square_root(rows, 4, 6)
        assert read(6) == math.isqrt(left)
        limbs.multiply(rows, 4, 5, 6)
        assert read(6) == left * right
        limbs.shift_down(rows, 6, 4, 7)
        assert read(7) == left * right >> 128
        limbs.halve(rows, 7)
        assert read(7) == left * right >> 129
        limbs.double(rows, 7)
        word, place = generator.getrandbits(64), generator.randrange(0, 20)
        limbs.add_word(rows, np.uint64(word), place, 7)
        assert read(7) == ((left * right >> 129 << 1) + (word << 32 * place)) % 2**768
        limbs.subtract(rows, 4, 5, 7)
        assert read(7) == max(left - right, 0)
        limbs.add(rows, 5, 7)
        assert read(7) == max(left, right)
        assert limbs.is_less(rows, 4, 5) == (left < right)
        assert limbs.length(rows, 4) == -(-left.bit_length() // 32)


@pytest.mark.slow
def test_threads_draw_every_cell_once() -> None:
    """At 2^50 two of 600 equal or zero values of the first component have a chance below 1e-9."""
    made = cone_noise(rate=Fraction(1), columns=2, linear=True, steps=1 << 25)
    out = np.zeros((2 * sampler.CHUNK + 3, made.shape.n_components), np.int64)
    with ThreadPoolExecutor(2) as threads:
        for piece in made.start(out, threads):
            piece.result()
    assert len(np.unique(out[:, 0])) == len(out)
    assert out.all()
