"""The compiled loops: equal to their NumPy references, and safe on codes that should not exist."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from suffice.pipeline.rows.chunk import kernels
from suffice.pipeline.rows.chunk.clipping import quantise
from suffice.pipeline.terms.statistics.lattice import Quantiser

REPOSITORY = Path(__file__).resolve().parents[4]

QUANTISERS = [
    Quantiser.centred(Fraction(-60), Fraction(180), 16),
    Quantiser.centred(Fraction("0.1"), Fraction("0.3"), 24),
    Quantiser.centred(Fraction(-1), Fraction(1), 2),
    Quantiser.centred(-(Fraction(10) ** 150), Fraction(10) ** 150, 16),
    Quantiser.counting(1),
    Quantiser.counting(10**9),
]


def quantised(values: np.ndarray, quantiser: Quantiser, missing: int = kernels.NOTHING) -> np.ndarray:
    out = np.empty(len(values), np.int32)
    quantise(
        values,
        quantiser.centre,
        quantiser.half_range,
        quantiser.steps,
        quantiser.lowest,
        quantiser.highest,
        missing,
        out,
    )
    return out


@pytest.mark.parametrize("quantiser", QUANTISERS)
def test_quantise_equals_the_reference_bit_for_bit(quantiser: Quantiser) -> None:
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2**64, 200_000, dtype=np.uint64).view(np.float64)
    near = quantiser.centre + quantiser.half_range * rng.uniform(-1.1, 1.1, 200_000)
    steps = rng.integers(-quantiser.steps, quantiser.steps + 1, 200_000)
    ties = quantiser.centre + quantiser.half_range * ((steps + 0.5) / quantiser.steps)
    special = np.array([np.inf, -np.inf, 0.0, -0.0, 5e-324, 1.7e308, -1.7e308, 0.5, 1.5, 2.5])
    values = np.concatenate([bits[~np.isnan(bits)], near, ties, special])
    assert np.array_equal(quantised(values, quantiser), quantiser.quantise(values))


def test_ties_go_to_the_even_step() -> None:
    halves = np.array([0.5, 1.5, 2.5, 3.5])
    assert quantised(halves, Quantiser.counting(10)).tolist() == [0, 2, 2, 4]


def test_nan_is_missing() -> None:
    values = np.array([np.nan, -np.nan, 1.0])
    assert quantised(values, Quantiser.counting(10), missing=7).tolist() == [7, 7, 1]


STRANGE = np.array([-1, 3, 4, 2**31 - 1, -(2**31), 0], np.int32)
FIRST = np.zeros(6, np.int32)


def test_a_wrong_code_goes_to_the_last_cell_and_to_no_other() -> None:
    table = np.zeros((4, 3), np.int64)
    kernels.count_codes(FIRST, STRANGE.copy(), table)
    assert table.tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 0], [5, 0, 0]]
    kernels.count_codes(STRANGE, FIRST.copy(), table)
    assert table.tolist() == [[2, 0, 0], [0, 0, 0], [0, 0, 0], [10, 0, 0]]

    powers = np.zeros((4, 3), np.int64)
    kernels.add_powers(STRANGE, np.full(6, 2, np.int32), powers)
    assert powers.tolist() == [[1, 2, 4], [0, 0, 0], [0, 0, 0], [5, 10, 20]]
    kernels.add_powers(FIRST, np.full(6, kernels.NOTHING, np.int32), powers)
    assert powers.tolist() == [[1, 2, 4], [0, 0, 0], [0, 0, 0], [11, 10, 20]]


def test_a_wrong_code_makes_no_cell_and_none_comes_back() -> None:
    cells = FIRST.copy()
    kernels.combine_codes(cells, STRANGE, 3)
    assert cells.tolist() == [-1, -1, -1, -1, -1, 0]
    kernels.combine_codes(cells, FIRST, 3)
    assert cells.tolist() == [-1, -1, -1, -1, -1, 0]


@pytest.mark.parametrize("offset", range(17))
@pytest.mark.parametrize("n_rows", [0, 1, 7, 8, 9, 64, 100])
def test_nulls_are_found_at_any_offset(offset: int, n_rows: int) -> None:
    rng = np.random.default_rng(offset)
    for chance in (0.0, 0.1, 0.9):
        valid = rng.random(offset + n_rows) >= chance
        out = np.arange(n_rows, dtype=np.int32)
        kernels.fill_nulls(out, np.packbits(valid, bitorder="little"), offset, -5)
        assert out.tolist() == np.where(valid[offset:], np.arange(n_rows), -5).tolist()


def test_an_index_beyond_its_dictionary_is_missing() -> None:
    out = np.empty(4, np.int32)
    indices = np.array([0, 2, -1, 2**31 - 1], np.int32)
    kernels.gather(indices, np.array([5, 6, 9], np.int32), out)
    assert out.tolist() == [5, 9, 9, 9]


def test_a_lookup_at_the_ends_of_int64_does_not_wrap() -> None:
    values = np.array([-(2**63), 2**63 - 1, -(2**63) + 1, 0], np.int64)
    out = np.empty(4, np.int32)
    kernels.look_up(values, -(2**63), np.array([0, 1], np.int32), -1, out)
    assert out.tolist() == [0, -1, 1, -1]
    kernels.look_up(values, 2**63 - 2, np.array([0, 1], np.int32), -1, out)
    assert out.tolist() == [-1, 1, -1, -1]


@pytest.mark.slow
def test_kernels_compile_where_no_cache_can_be_written(tmp_path: Path) -> None:
    # For root every directory can be written: leave numba no directory instead.
    environment = {"NUMBA_CACHE_LOCATOR_CLASSES": "ZipCacheLocator"} if os.geteuid() == 0 else {}
    copy = tmp_path / "pipeline"
    shutil.copytree(
        REPOSITORY / "pipeline", copy, ignore=shutil.ignore_patterns("__pycache__"), symlinks=True
    )
    copy.chmod(0o500)
    code = (
        "import sys, types; import suffice; package = types.ModuleType('suffice.pipeline');"
        f"package.__path__ = [{str(copy)!r}]; sys.modules['suffice.pipeline'] = package;"
        "import suffice.pipeline.rows.chunk.kernels as kernels; import numpy as np;"
        "out = np.empty(1, np.int32);"
        "kernels.gather(np.zeros(1, np.int32), np.array([4], np.int32), out); print(out[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment, "HOME": str(tmp_path / "nowhere"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "4"
    assert not list(copy.rglob("*.nbi"))
