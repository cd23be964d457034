"""What a fuzzer met, done again: under sanitisers, and as files that both readers read."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from suffice.pipeline.rows.chunk import jit
from support import fuzzing, kernel_calls, sanitisers

if TYPE_CHECKING:
    from pathlib import Path


def test_inputs_are_packed_one_after_the_other() -> None:
    inputs = [b"", b"abc", b"\x00" * 300]
    assert list(fuzzing.unpacked(fuzzing.packed(inputs))) == inputs


@pytest.mark.slow
def test_sanitisers_find_nothing_in_the_corpus(tmp_path: Path) -> None:
    """Nor in calls that fit but for one argument, or one value of it."""
    program, file = sanitisers.replay(tmp_path), tmp_path / "inputs"
    inputs = [*fuzzing.unpacked(fuzzing.CORPUS.read_bytes()), *kernel_calls.hostile()]
    file.write_bytes(fuzzing.joined(inputs))
    ran = subprocess.run([program, file], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert ran.stdout == f"{len(inputs)} inputs\n"


@pytest.mark.skipif(jit.MODULE is None, reason="the module in C was not built here, or is not wanted")
def test_calls_that_fit_are_accepted() -> None:
    """Else calls that fit but for one thing would be refused for another."""
    assert jit.MODULE is not None
    for name, arguments in kernel_calls.fitting():
        getattr(jit.MODULE, name)(*arguments)


@pytest.mark.slow
@pytest.mark.skipif(jit.MODULE is None, reason="the module in C was not built here, or is not wanted")
def test_columns_of_the_corpus_are_read_as_arrow_reads_them(repository: Path, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "support.spliced_files", str(fuzzing.CORPUS), str(tmp_path)],
        cwd=repository / "tests",
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    n_columns, n_read = (int(word) for word in ran.stdout.split() if word.isdigit())
    assert n_columns > 100
    assert n_read > 50
