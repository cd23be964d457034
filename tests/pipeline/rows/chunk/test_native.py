"""The inner loops in C: the same bits as numba's, and nothing outside of the arrays that they get."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tracemalloc
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.pipeline.rows.chunk import jit, kernels
from suffice.pipeline.rows.chunk.argument_types import int32, read_only
from support import sanitisers
from support.native_cases import CASES, by_numba, native

if TYPE_CHECKING:
    from pathlib import Path

NATIVE = native()
needs_native = pytest.mark.skipif(NATIVE is None, reason="the module in C was not built here")


@pytest.fixture(scope="module")
def compiled_by_numba() -> dict[str, Any]:
    return by_numba()


@pytest.mark.slow
def test_every_loop_has_a_case(compiled_by_numba: dict[str, Any]) -> None:
    assert set(compiled_by_numba) == set(CASES)


def same(first: list[Any], second: list[Any]) -> bool:
    """Tell whether arrays are equal bit by bit; of NaN there are many."""
    return all(
        np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
        for one, other in zip(first, second, strict=True)
        if isinstance(one, np.ndarray)
    )


def arguments(name: str, seed: int, n: int) -> list[Any]:
    return CASES[name](np.random.default_rng(seed), n)


@needs_native
def test_the_module_holds_these_loops() -> None:
    assert NATIVE is not None
    assert set(NATIVE.SIGNATURES) == set(CASES)


@needs_native
@pytest.mark.parametrize("name", CASES)
@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(0, 70))
def test_both_give_the_same_bits(compiled_by_numba: dict[str, Any], name: str, seed: int, n: int) -> None:
    assert NATIVE is not None
    in_c, by_numba_too = arguments(name, seed, n), arguments(name, seed, n)
    getattr(NATIVE, name)(*in_c)
    compiled_by_numba[name](*by_numba_too)
    assert same(in_c, by_numba_too)


@needs_native
def test_what_is_no_such_array_is_refused() -> None:
    assert NATIVE is not None
    out, indices, codes = np.zeros(3, np.int32), np.zeros(3, np.int32), np.arange(4, dtype=np.int32)
    fixed = out.copy()
    fixed.flags.writeable = False
    for given_out, error in (
        (np.zeros(3), TypeError),
        (out[::2], (ValueError, BufferError)),
        (None, TypeError),
    ):
        with pytest.raises(error):
            NATIVE.gather(indices, codes, given_out)
    with pytest.raises((ValueError, BufferError)):
        NATIVE.gather(indices, codes, fixed)
    with pytest.raises(TypeError):
        NATIVE.gather(indices, codes)
    with pytest.raises(TypeError):
        NATIVE.gather(indices.astype(">i4"), codes, out)
    with pytest.raises(OverflowError):
        NATIVE.fill_nulls(out, np.zeros(1, np.uint8), 0, 2**31)


@needs_native
@pytest.mark.parametrize(
    ("name", "position", "wrong"),
    [
        ("gather", 2, np.zeros(1, np.int32)),
        ("search", 4, np.zeros(1, np.int32)),
        ("fill_nulls", 1, np.zeros(1, np.uint8)),
        ("fill_nulls", 2, -1),
        ("count_codes", 1, np.zeros(1, np.int32)),
        ("add_moments", 2, np.zeros((6, 1), np.int64)),
        ("gather_by_cell", 3, np.zeros((1, 3))),
        ("add_by_unit", 0, np.full(40, 7, np.int32)),
        ("first_rows", 0, np.full(40, 40)),
        ("count_transitions", 0, np.full(40, -1, np.int32)),
        ("count_transitions", 5, 4),
        ("hash_texts", 0, np.array([0, 10**9])),
        ("hash_texts", 0, np.array([5, 1])),
        ("sort_by_part", 0, np.full(40, 4, np.int32)),
        ("number_units", 3, np.full(3, -1, np.int32)),
        ("number_units", 3, np.zeros(64, np.int32)),
        ("rank_rows", 4, np.full(64, 63, np.int32)),
        ("settle_ties", 2, np.array([0, 40])),
        ("take_first", 0, np.array([-1])),
        ("pack_units", 1, np.full(40, 9, np.int32)),
        ("pack", 2, 3),
        ("pack", 3, 64),
        ("unpack", 1, -1),
        ("unpack", 3, 64),
        ("part_of", 2, np.zeros(9, np.int32)),
        ("tabulate", 0, 6),
    ],
)
def test_arrays_that_do_not_fit_are_refused(name: str, position: int, wrong: Any) -> None:
    assert NATIVE is not None
    given_arguments = arguments(name, 1, 40)
    if name == "part_of":
        given_arguments[1] = 2
    if name == "count_transitions" and position == 5:
        given_arguments[1][:], given_arguments[2][:], given_arguments[3][:] = 0, 0, 2
        given_arguments[4] = 5
    getattr(NATIVE, name)(*arguments(name, 1, 40))  # as they are, they fit
    given_arguments[position] = wrong
    with pytest.raises(ValueError, match="do not fit together"):
        getattr(NATIVE, name)(*given_arguments)


@needs_native
@pytest.mark.parametrize(("name", "position"), [("number_units", 3), ("rank_rows", 4)])
def test_a_table_that_holds_something_is_refused(name: str, position: int) -> None:
    """A search for a unit that is not there would go round for ever, in one that is full but for a slot."""
    assert NATIVE is not None
    for empty_slot in range(64):
        given_arguments = arguments(name, 1, 40)
        given_arguments[position][:] = np.where(np.arange(64) == empty_slot, -1, 0)
        with pytest.raises(ValueError, match="do not fit together"):
            getattr(NATIVE, name)(*given_arguments)


@needs_native
def test_arrays_off_a_network_need_not_be_aligned() -> None:
    assert NATIVE is not None
    words = np.arange(12, dtype=np.uint64).reshape(4, 3)
    moved = np.frombuffer(b"x" + words.tobytes(), np.uint64, offset=1).reshape(4, 3)
    assert not moved.flags.aligned
    first, second = np.zeros(4, np.uint64), np.zeros(4, np.uint64)
    NATIVE.hash_words(words, 1, 2, first)
    NATIVE.hash_words(moved, 1, 2, second)
    assert np.array_equal(first, second)


class NotANumber:
    def __index__(self) -> int:
        raise LookupError


def typed(kind: Literal["i", "q", "d"], values: Any) -> memoryview[Any]:
    return memoryview(bytearray(np.asarray(values, kind).tobytes())).cast(kind)


@needs_native
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({}, None),
        ({0: "moved"}, None),
        ({4: typed("i", [0])}, ValueError),  # refused by the kernel
        ({0: "moved", 4: typed("i", [0])}, ValueError),
        ({4: typed("d", [0.0, 0.0])}, TypeError),
        ({0: "moved", 4: None}, TypeError),
        ({4: typed("i", [0, 0]).toreadonly()}, BufferError),
        ({4: typed("i", [0, 0, 0, 0])[::2]}, BufferError),
        ({3: 2**31}, OverflowError),
        ({1: 2**63}, OverflowError),
        ({0: "moved", 3: NotANumber()}, LookupError),
        ({3: 0.5}, TypeError),
        ({5: 0}, TypeError),
    ],
)
def test_nothing_is_held_after_a_call(changes: dict[int, Any], error: type[Exception] | None) -> None:
    """Neither arrays, numbers nor copies: a memoryview cannot be released as long as its bytes are in use."""
    assert NATIVE is not None
    n_bytes, n_calls = 1 << 14, 100

    def call() -> None:
        moved = memoryview(bytearray(n_bytes + 1))[1:].cast("q")
        usual: list[Any] = [typed("q", [0, 1]), 0, typed("i", [5]), -1, typed("i", [0] * (n_bytes // 8))]
        given_arguments = dict(enumerate(usual)) | changes
        values = [moved if isinstance(value, str) else value for value in given_arguments.values()]
        if error is None:
            NATIVE.look_up(*values)
        else:
            with pytest.raises(error):
                NATIVE.look_up(*values)
        for view in (moved, usual[0], usual[2], usual[4]):
            view.release()

    call()
    references = [sys.getrefcount(value) for value in changes.values()]
    tracemalloc.start()
    try:
        for _ in range(n_calls):
            call()
        leaked, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    now = [sys.getrefcount(value) for value in changes.values()]
    assert all(after < before + n_calls for after, before in zip(now, references, strict=True))
    assert leaked < n_bytes


@needs_native
def test_the_module_may_be_loaded_by_another_name() -> None:
    assert NATIVE is not None
    spec = importlib.util.spec_from_file_location("elsewhere._native", NATIVE.__file__)
    assert spec is not None
    assert spec.loader is not None
    again = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(again)
    assert again.SIGNATURES == NATIVE.SIGNATURES
    for module in (again, NATIVE):
        codes = np.zeros(2, np.int32)
        module.gather(np.array([1, 0], np.int32), np.array([5, 6], np.int32), codes)
        assert codes.tolist() == [6, 5]


@pytest.mark.slow
@needs_native
def test_the_loops_in_use_are_those_in_c_unless_numba_is_asked_for() -> None:
    code = "from suffice.pipeline.rows.chunk import jit, kernels; print(jit.how_compiled())"
    said = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {jit.VARIABLE: value},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for value in (jit.NATIVE, jit.NUMBA)
    ]
    assert said == [jit.NATIVE, jit.NUMBA]


@needs_native
def test_a_module_of_other_sources_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert NATIVE is not None

    def gather(_codes: Any) -> None:
        pass

    monkeypatch.setattr(jit, "MODULE", NATIVE)
    with pytest.raises(TypeError, match="raise the version"):
        jit.compiled(read_only(int32))(gather)
    assert kernels.gather is not gather


SANITISED = """
import importlib.util, sys
import numpy as np
spec = importlib.util.spec_from_file_location("_native", sys.argv[1])
native = importlib.util.module_from_spec(spec)
spec.loader.exec_module(native)
from support import sanitisers
from support.native_cases import CASES
for name, case in CASES.items():
    for seed in range(60):
        getattr(native, name)(*case(np.random.default_rng(seed), seed))
print("ran", len(CASES))
"""


@pytest.mark.slow
def test_sanitisers_find_nothing(repository: Path, tmp_path: Path) -> None:
    library, variables = sanitisers.library(tmp_path)
    ran = subprocess.run(
        [sys.executable, "-c", SANITISED, str(library)],
        env=variables | {"PYTHONPATH": str(repository / "tests")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert ran.stdout.split() == ["ran", str(len(CASES))]
