"""Bits come from the operating system, once each; nothing takes a seed."""

from __future__ import annotations

import ast
import inspect
import sys
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from suffice.pipeline.rows.mechanism.cone import sampler
from suffice.pipeline.rows.mechanism.cone.bits import WORDS, OperatingSystemBits
from suffice.pipeline.rows.mechanism.cone.sampler import cone_noise

if TYPE_CHECKING:
    from pathlib import Path


def test_words_are_those_of_the_operating_system_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    given = np.arange(1, 3 * WORDS + 1, dtype=np.uint64)
    asked: list[int] = []

    def urandom(size: int) -> bytes:
        start = sum(asked) // 8
        asked.append(size)
        return given[start : start + size // 8].tobytes()

    monkeypatch.setattr("os.urandom", urandom)
    source = OperatingSystemBits()
    words = [source.word() for _ in range(WORDS - 3)]
    source.refill()
    words += [source.word() for _ in range(WORDS)]
    assert words == given[: 2 * WORDS - 3].tolist()
    kept = source.words
    source.wipe()
    assert not kept.any()


def test_no_seed_and_no_bits_can_be_given() -> None:
    for function in (cone_noise, sampler.ConeSampler, sampler.ConeSampler.draw_into, OperatingSystemBits):
        names = set(inspect.signature(function).parameters)
        assert not names & {"seed", "rng", "random_state", "generator", "bits"}


def test_one_file_asks_the_operating_system_and_none_uses_floating_point(repository: Path) -> None:
    folder = repository / "pipeline/rows/mechanism/cone"
    naming, floats = set(), []
    for path in sorted(folder.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Attribute(attr="urandom" | "random" | "secrets"):
                    naming.add(path.name)
                case ast.BinOp(op=ast.Div()) | ast.Constant(value=float()) | ast.Name(id="float"):
                    floats.append((path.name, ast.unparse(node)))
    assert naming == {"bits.py"}
    assert floats == [("sampler.py", "Fraction(steps * steps) / rate")], "a quotient of fractions"


@pytest.mark.parametrize(
    ("rate", "columns", "steps"),
    [(Fraction(0), 1, 1), (Fraction(-1), 1, 1), (Fraction(1), 0, 1), (Fraction(1), 1, 0)],
)
def test_arguments_out_of_range_draw_nothing(rate: Fraction, columns: int, steps: int) -> None:
    with pytest.raises(ValueError, match="out of range"):
        cone_noise(rate=rate, columns=columns, linear=True, steps=steps)


def test_without_numba_noise_is_drawn_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have been charged when nobody has looked whether numba is there."""
    monkeypatch.setattr(sampler, "FEW", 0)
    monkeypatch.delitem(sys.modules, "suffice.pipeline.rows.mechanism.cone.fast_matrix", raising=False)
    monkeypatch.setitem(sys.modules, "numba", None)
    out = np.zeros((4, 6), np.int64)
    cone_noise(rate=Fraction(1, 2), columns=2, linear=True, steps=1 << 10).draw_into(out)
    assert out.any()
    assert "suffice.pipeline.rows.mechanism.cone.fast_matrix" not in sys.modules
