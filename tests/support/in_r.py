"""Runs R, where this machine has it."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def program_of_r(name: str) -> str:
    """``Rscript`` or ``R``. Where there is none the test is skipped; under ``RSCRIPT=required`` it fails."""
    program = shutil.which(name)
    if program is None:
        assert os.environ.get("RSCRIPT") != "required", f"{name} is not here"
        pytest.skip(f"{name} is not installed (apt-get install r-base-core r-cran-openssl)")
    return program


def run_in_r(script: Path, *words: str, timeout: float = 300) -> str:
    """What a script prints."""
    done = subprocess.run(
        [program_of_r("Rscript"), str(script), *words],
        check=False,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
