"""Calls of the kernels in C as `tests/fuzz/kernels.c` reads them: those that fit, and as good as fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from support.native_cases import CASES
from support.sanitisers import KERNELS, NATIVE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Arguments = list[Any]

_MOST_BYTES = 1 << 13
_N_PLACES, _N_BYTES = 12, 64
_SEEDS = range(5, 9)


def fitting() -> Iterator[tuple[str, Arguments]]:
    """Yield kernels by name, with arguments that they accept."""
    for name, case in CASES.items():
        for seed in range(8):
            yield name, case(np.random.default_rng(seed), seed)
    yield from _tight()


def hostile() -> Iterator[bytes]:
    """Yield calls of every kernel in which one argument, or one value of it, is another; and cut pages."""
    cases = ((name, case(np.random.default_rng(seed), 7)) for name, case in CASES.items() for seed in _SEEDS)
    for name, arguments in (*cases, *_tight()):
        for at, argument in enumerate(arguments):
            for changed in _changes(argument):
                yield encoded(name, [*arguments[:at], changed, *arguments[at + 1 :]])
    yield from (encoded(name, arguments) for name, arguments in _cut())


def encoded(name: str, arguments: Arguments) -> bytes:
    """Return a call: where its kernel stands, and its arguments."""
    return bytes(_PLACES[name]) + b"".join(map(_argument, arguments))


def _argument(value: Any) -> bytes:
    if isinstance(value, float):
        return b"\x80" + np.float64(value).tobytes()
    if not isinstance(value, np.ndarray):
        return b"\x80" + (int(value) % 2**64).to_bytes(8, "little")
    rows, *columns = value.shape
    size = bytes([rows]) if rows < 254 else b"\xff" + rows.to_bytes(4, "little")
    is_given = value.nbytes <= _MOST_BYTES
    return size + bytes(columns) + (b"\x00" + value.tobytes() if is_given else b"\x02\x01")  # or 1 throughout


def _places() -> dict[str, tuple[int, int]]:
    """Return where each kernel stands, by name."""
    places: dict[str, tuple[int, int]] = {}
    for number, name in enumerate(KERNELS):
        lines = (NATIVE / f"{name}.c").read_text().partition("_KERNELS[] = {")[2].splitlines()
        kernels = [line.split('"')[1] for line in lines if line.startswith('    {"')]
        places |= {kernel: (number, place) for place, kernel in enumerate(kernels)}
    return places


_PLACES = _places()


def _changes(argument: Any) -> Iterator[Any]:
    if isinstance(argument, bool):
        yield not argument
    elif isinstance(argument, float):
        yield from (np.nan, np.inf, -np.inf, 0.0, -1e300)
    elif isinstance(argument, int):
        yield from (argument - 1, argument + 1, 0, -1, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))
    else:
        yield from (argument[:-1], argument[:0], np.append(argument, argument[-1:], axis=0))
        if argument.ndim > 1:
            yield from (argument[:, :-1].copy(), argument[:, :0].copy())
        yield from _other_values(argument)


def _other_values(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield an array with one of its first values, or its last one, at a limit or beside what it is."""
    if array.nbytes > _MOST_BYTES:
        return
    n_places = min(array.size, _N_BYTES if array.itemsize == 1 else _N_PLACES)
    for place in {*range(n_places), array.size - 1} - {-1}:
        value = array.flat[place]
        others: Any = (np.nan, np.inf, 0.0)
        if array.dtype.kind in "iu":
            limits, of_bits = np.iinfo(array.dtype), 2 ** (8 * array.itemsize)
            beside = [(int(value) + step - int(limits.min)) % of_bits + int(limits.min) for step in (-1, 1)]
            others = (*beside, limits.min, limits.max, 0, limits.max // 2 - 1, limits.max // 2**8)
        for other in others:
            changed = array.copy()
            changed.flat[place] = other
            yield changed


def _slots(
    size: int, n_values: int, begin: int = 0, levels: int = -1, n_nulls: int = -1
) -> NDArray[np.int64]:
    """Return a page as a table lists it."""
    return np.array([[0, 8, n_values, begin, size, size, levels, 1, n_nulls, -1]])


def _tight() -> Iterator[tuple[str, Arguments]]:
    """Yield calls without room for more, and those of pages, which have no case."""
    lattice, ends = np.ones((2, 2), np.int32), np.zeros(2, np.int64)
    yield "gather_by_cell", [np.zeros(2, np.int32), lattice, ends, np.zeros((2, 3))]
    yield from _of_pages()


def _of_pages() -> Iterator[tuple[str, Arguments]]:
    codes = np.arange(3, dtype=np.int32)
    for width in range(1, 25):
        page, n_rows = _indices(width)
        table = _slots(len(page), n_rows, n_nulls=1032)
        yield "page_codes", [_bytes(page), table, True, codes, np.zeros(n_rows, np.int32)]
    levels = b"\x03\x5b"  # rows 2, 5 and 7 of eight are null
    for begin, is_first in ((0, False), (3, False), (0, True)):
        length, n_levels = (b"\x02\x00\x00\x00", -1) if is_first else (b"", 2)
        last: dict[str, tuple[bytes, Arguments]] = {
            "page_codes": (b"\x01\x03\x0a", [codes, np.zeros(8, np.int32)]),
            "value_codes": (b"", [np.arange(5, dtype=np.int32), -1, np.zeros(8, np.int32)]),
            "join_values": (bytes(40), [8, np.zeros(40, np.uint8), np.zeros(2, np.int64)]),
        }
        for name, (values, others) in last.items():
            page = bytes(begin) + length + levels + values
            table = _slots(len(page) - begin, 8, begin, n_levels, n_nulls=3)
            yield name, [_bytes(page), table, True, *others]
    two = np.concatenate([_slots(8, 2), _slots(12, 3, 8)])
    joined, counts = np.zeros(20, np.uint8), np.zeros(2, np.int64)
    yield "join_values", [np.zeros(20, np.uint8), two, False, 4, joined, counts]
    runs = np.concatenate([_slots(3, 3), _slots(3, 2, 3)])
    yield "page_codes", [_bytes(b"\x01\x06\x01\x01\x04\x00"), runs, False, codes, np.zeros(5, np.int32)]
    filled = b"\x03\xdf" + b"\x08\x03" + b"\x00\x01\x00\x01\x00" + b"\xff\xff\xff"  # what fills groups is any
    for n_rows in (6, 8):
        table, out = _slots(len(filled), n_rows, 0, 2, 1), np.zeros(n_rows, np.int32)
        size = 5 if n_rows == 6 else 7
        values = filled if size == 5 else filled[:9] + b"\x00\x01" + b"\xff"
        yield "page_codes", [_bytes(values), table, True, codes, out]
        yield "value_codes", [_bytes(values), table, True, np.arange(size, dtype=np.int32), -1, out]
    few = b"\x05\x03\x07" + b"\x08\x03" + b"\x00\x01\x00\x01\x00" + b"\xff\xff\xff"  # three for eight rows
    yield "page_codes", [_bytes(few), _slots(len(few), 16, 0, 3, 11), True, codes, np.zeros(16, np.int32)]
    texts = b"\x02\x00\x00\x00ab\x00\x00\x00\x00\x03\x00\x00\x00cde"
    yield "plain_texts", [_bytes(texts), np.zeros(4, np.int32), np.zeros(5, np.uint8)]
    listed = np.concatenate([_slots(4, 1, 2), _slots(3, 1, 7), _slots(1, 1, 10)])
    yield "pack_pages", [np.arange(11, dtype=np.uint8), listed]
    yield from _of_headers()


def _of_headers() -> Iterator[tuple[str, Arguments]]:
    for codec, name in enumerate(_CODECS):
        body = _body(name)
        for kind in _HEADERS:
            page = _page(kind, body)
            yield "page_headers", [_bytes(page + page), codec, np.zeros((3, 10), np.int64)]


_CODECS = (None, "snappy", "zstd")
_CONTENT = bytes(range(7)) * 9
_HEADERS = {
    b"\x00": b"\x2c\x15\x06\x15\x00\x15\x06\x15\x06\x00",
    b"\x04": b"\x4c\x15\x06\x15\x00\x11\x00",
    b"\x06": b"\x5c\x15\x06\x15\x00\x15\x06\x15\x00\x15\x00\x15\x00\x11\x1c\x18\x02ab\x26\x02\x00\x00",
}
"""Of three values: data, a dictionary, and data of the second version, by their kinds."""


def _body(codec: str | None) -> bytes:
    return _CONTENT if codec is None else bytes(pa.compress(_CONTENT, codec=codec, asbytes=True))


def _page(kind: bytes, body: bytes) -> bytes:
    sizes = b"\x15" + bytes([2 * len(_CONTENT)]) + b"\x15" + bytes([2 * len(body)])
    return b"\x15" + kind + sizes + _HEADERS[kind] + b"\x00" + body


def _cut() -> Iterator[tuple[str, Arguments]]:
    """Yield pages whose bytes end too early, and indices of more bits than are read."""
    for codec, name in enumerate(_CODECS):
        body = _body(name)
        for size in range(len(body)):
            table = np.zeros((3, 10), np.int64)
            yield "page_headers", [_bytes(_page(b"\x00", body[:size])), codec, table]
    page, codes, out = b"\x03\xff\x08\x10\x01", np.arange(3, dtype=np.int32), np.zeros(8, np.int32)
    for size in range(len(page)):
        yield "page_codes", [_bytes(page[:size]), _slots(size, 8, 0, 2), True, codes, out]
    for width in range(24, 256):
        for run in (b"\x10", b"\x03"):
            wide = bytes([width]) + run + bytes(width + 40)
            yield "page_codes", [_bytes(wide), _slots(len(wide), 8), False, codes, out]


def _bytes(content: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(content, np.uint8)


def _indices(width: int) -> tuple[bytes, int]:
    """Return a page of a long run and groups of indices, with nulls between them, and its number of rows."""
    group = sum(place % 2 << place * width for place in range(8)).to_bytes(width, "little")
    run = b"\xb0\x30" + (1).to_bytes((width + 7) // 8, "little")  # 3,096
    page = bytes([width]) + run + b"\x83\x02" + 129 * group
    present = b"\x81\x04" + 256 * b"\xaa" + b"\xc0\x30\x01\x10\x00"  # every second one, 3,104, and 8 nulls
    return len(present).to_bytes(4, "little") + present + page, 2048 + 3104 + 8
