"""Arguments for every inner loop, edges among them, and both versions of each: in C, and by numba."""

from __future__ import annotations

import importlib
import importlib.util
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.pipeline.rows.chunk import jit

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator
    from numpy.typing import NDArray

    Arguments = list[Any]

NOTHING = -(2**31)
ROOMS = (
    "chunk.kernels",
    "chunk.clipping",
    "chunk.calendar_parts",
    "contribution.siphash",
    "contribution.records",
    "contribution.unit_ids",
)


def by_numba() -> dict[str, Callable[..., None]]:
    """Return every loop compiled by numba, from modules that are loaded once more."""
    loops: dict[str, Callable[..., None]] = {}
    used, jit.MODULE = jit.MODULE, None
    try:
        for room in ROOMS:
            spec = importlib.util.find_spec(f"suffice.pipeline.rows.{room}")
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            for name, loop in vars(module).items():
                if name.lstrip("_") in CASES and hasattr(loop, "signatures") and loop.__module__ == spec.name:
                    loops[name.lstrip("_")] = loop
    finally:
        jit.MODULE = used
    return loops


def codes(rng: Generator, n: int, most: int) -> NDArray[np.int32]:
    """Return codes from -1 on, and now and then one that should not exist."""
    strange = np.array([-(2**31), 2**31 - 1, most, -2], np.int64)
    return np.where(rng.random(n) < 0.1, rng.choice(strange, n), rng.integers(-1, most, n)).astype(np.int32)


def lattice(rng: Generator, shape: Any) -> NDArray[np.int32]:
    """Return lattice values up to their limits, and rows that do not enter."""
    values = rng.integers(-(2**30), 2**30 + 1, shape)
    return np.where(rng.random(shape) < 0.1, NOTHING, values).astype(np.int32)


def numbers(rng: Generator, n: int) -> NDArray[np.float64]:
    """Return floats of any bits, ties, and ordinary ones."""
    any_bits = rng.integers(0, 2**64, n, dtype=np.uint64).view(np.float64)
    edges = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 1.7e308, 0.5, 1.5, -2.5, 1.0], n)
    return np.choose(rng.integers(0, 3, n), [any_bits, edges, rng.normal(0, 50, n)])


def words(rng: Generator, n: int, width: int) -> NDArray[np.uint64]:
    """Return records, some of them equal."""
    return rng.integers(0, 3, (n, width)).astype(np.uint64) * np.uint64(2**64 - 59)


def key(rng: Generator) -> list[int]:
    """Return a key of two words."""
    return [int(word) for word in rng.integers(0, 2**64, 2, dtype=np.uint64)]


def slots(n: int) -> NDArray[np.int32]:
    """Return an empty table of slots for n rows."""
    return np.full(1 << int(n).bit_length(), -1, np.int32)


def empty(n: int, kind: Any = np.int32) -> NDArray[Any]:
    """Return an array to be written, whose contents do not matter."""
    return np.full(n, 77, kind)


def _moments(rng: Generator, n: int) -> Arguments:
    columns = int(rng.integers(1, 4))
    table = np.zeros((6, (columns + 1) * (columns + 2) // 2), np.int64)
    return [codes(rng, n, 5), lattice(rng, (columns, n)) >> 8, table]


def _texts(rng: Generator, n: int) -> Arguments:
    ends = np.concatenate([[0], np.cumsum(rng.integers(0, 20, n))]).astype(np.int64)
    return [
        ends,
        rng.integers(0, 256, int(ends[-1])).astype(np.uint8),
        *key(rng),
        np.zeros((n, 2), np.uint64),
    ]


def _units(rng: Generator, n: int) -> NDArray[np.int32]:
    return rng.integers(0, 7, n).astype(np.int32)


def _by_unit(rng: Generator, n: int) -> Arguments:
    firsts = rng.integers(0, max(n, 1), 7)
    return [_units(rng, n), codes(rng, n, 3), lattice(rng, n), firsts, *(np.zeros(7, np.int64) for _ in "ab")]


def _transitions(rng: Generator, n: int) -> Arguments:
    rows = rng.permutation(n).astype(np.int32)
    units = np.sort(rng.integers(0, 4, n)).astype(np.int32)
    states = rng.integers(0, 3, n).astype(np.int32)
    return [rows, units, codes(rng, n, 2), states, int(rng.integers(0, 5)), 3, np.zeros((3, 9), np.int64)]


def _local(rng: Generator, n: int) -> Arguments:
    edges = rng.choice(np.array([-(2**63), 2**63 - 1, -62135596800, 253402300799, 0, -1]), n)
    values = np.where(rng.random(n) < 0.3, edges, rng.integers(-(10**11), 3 * 10**11, n))
    times, per_second = ((86_400, 1), (1, 1), (1, 1000))[int(rng.integers(0, 3))]
    starts = np.array([-(2**63), 10**8, 5 * 10**8], np.int64)
    offsets = np.array([0, 3600, -7200], np.int64)
    return [values, times, per_second, starts, offsets, 4_102_444_800, 146_097 * 86_400, empty(n, np.int64)]


def _part(rng: Generator, n: int) -> Arguments:
    part = int(rng.choice([0, 2, 3, 5, 6, 7]))
    seconds = np.where(rng.random(n) < 0.1, -(2**63), rng.integers(-62135596800, 253402300800, n))
    return [seconds, part, rng.integers(1, 400, 146_097).astype(np.int32), empty(n)]


def _decimals(rng: Generator, n: int) -> Arguments:
    whole = rng.choice([0, 1, -1, 2**63, 2**63 - 1, -(2**63), -(2**63) - 1, 2**64 - 1, 2**64, 12345], n)
    values = [int(number) * 10**38 + int(rng.integers(0, 2)) * int(rng.integers(0, 2)) for number in whole]
    data = b"".join(value.to_bytes(32, "little", signed=True) for value in values)
    return [np.frombuffer(data, np.uint64).reshape(-1, 4), words(rng, n, 2)]


def _sorted(rng: Generator, n: int) -> Arguments:
    keys = np.unique(rng.integers(-50, 50, 20))
    return [rng.integers(-60, 60, n), keys, codes(rng, len(keys), 9), -1, empty(n)]


def _by_hash(rng: Generator, n: int) -> Arguments:
    rows = words(rng, n, 3)
    return [rows, rows.sum(axis=1, dtype=np.uint64) if n else np.zeros(0, np.uint64)]


def _nulls(rng: Generator, n: int) -> Arguments:
    offset = int(rng.integers(0, 20))
    return [empty(n), np.packbits(rng.random(offset + n) < 0.8, bitorder="little"), offset, -5]


CASES: dict[str, Callable[[Generator, int], Arguments]] = {
    "gather": lambda rng, n: [codes(rng, n, 4), codes(rng, 5, 9), empty(n)],
    "look_up": lambda rng, n: [
        rng.integers(-9, 9, n),
        int(rng.choice([-(2**63), -3])),
        codes(rng, 6, 9),
        -1,
        empty(n),
    ],
    "search": _sorted,
    "fill_nulls": _nulls,
    "combine_codes": lambda rng, n: [codes(rng, n, 50), codes(rng, n, 6), 6],
    "keep_coded": lambda rng, n: [codes(rng, n, 9), codes(rng, n, 3)],
    "count_codes": lambda rng, n: [codes(rng, n, 4), codes(rng, n, 3), np.zeros((5, 3), np.int64)],
    "keep_sides_at_ends": lambda rng, n: [
        rng.integers(-2, 3, n).astype(np.int32),
        codes(rng, n, 2),
        -2,
        2,
        empty(n),
    ],
    "count_transitions": _transitions,
    "add_moments": _moments,
    "gather_by_cell": lambda rng, n: [
        rng.integers(-1, 6, n).astype(np.int32),
        lattice(rng, (2, n)),
        empty(6, np.int64),
        np.zeros((n, 3)),
    ],
    "add_powers": lambda rng, n: [
        codes(rng, n, 5),
        lattice(rng, n),
        np.zeros((6, int(rng.integers(2, 4))), np.int64),
    ],
    "first_rows": lambda rng, n: [rng.permutation(n), _units(rng, n), rng.random(n) < 0.5, np.full(7, -1)],
    "add_by_unit": _by_unit,
    "transform": lambda rng, n: [
        numbers(rng, n),
        int(rng.integers(0, 4)),
        1.5,
        0.75,
        0.3,
        empty(n, np.float64),
    ],
    "quantise": lambda rng, n: [numbers(rng, n), 60.0, 120.0, 65536.0, -65536.0, 65536.0, NOTHING, empty(n)],
    "beyond": lambda rng, n: [numbers(rng, n), -2.5, 1.5, -1, empty(n)],
    "local_seconds": _local,
    "tabulate": lambda rng, n: [int(rng.integers(0, 6)), empty(700 * n)],
    "part_of": _part,
    "hash_words": lambda rng, n: [words(rng, n, int(rng.integers(1, 40))), *key(rng), empty(n, np.uint64)],
    "hash_texts": _texts,
    "assign_parts": lambda rng, n: [words(rng, n, 2), *key(rng), 3, 5, 16, bool(n % 2), codes(rng, n, 2)],
    "sort_by_part": lambda rng, n: [rng.integers(-1, 4, n).astype(np.int32), np.zeros(5, np.int64), empty(n)],
    "number_units": lambda rng, n: [words(rng, n, 2), *key(rng), slots(n), empty(n), np.zeros(n, np.int32)],
    "settle_ties": lambda rng, n: [*_by_hash(rng, n), np.argsort(_by_hash(rng, n)[1], kind="stable")],
    "rank_rows": lambda rng, n: [*_by_hash(rng, n), *key(rng), slots(n), empty(n, np.uint64)],
    "take_first": lambda rng, n: [
        rng.permutation(n),
        _units(rng, n),
        2,
        np.zeros(7, np.int32),
        np.zeros(n, bool),
    ],
    "pack_units": lambda rng, n: [words(rng, 9, 2), rng.integers(0, 9, n).astype(np.int32), words(rng, n, 3)],
    "pack": lambda rng, n: [
        codes(rng, 9, 50),
        rng.integers(0, 9, n).astype(np.int32),
        2,
        40,
        -1,
        words(rng, n, 3),
    ],
    "unpack": lambda rng, n: [words(rng, n, 3), 1, 13, 31, -1, NOTHING, empty(n)],
    "write_whole_decimals": _decimals,
}


def native() -> SimpleNamespace | None:
    """Return the module in C by its attributes; None where it is not built."""
    if importlib.util.find_spec("suffice.pipeline.rows.chunk._native") is None:
        return None
    module = importlib.import_module("suffice.pipeline.rows.chunk._native")
    return SimpleNamespace(**vars(module))
