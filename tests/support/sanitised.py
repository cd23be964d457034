"""Runs code with the module in C built with the compiler's sanitisers, which end the process they catch."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

BEGINNING = """
import importlib.util, sys
import numpy as np
NAME = "suffice.pipeline.rows.chunk._native"
spec = importlib.util.spec_from_file_location(NAME, sys.argv[1])
native = sys.modules[NAME] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(native)
from suffice.pipeline.rows.sources import flat_columns, parquet_pages

class Exact:
    # Hands out bytes as copies that end where they end, so that reading on is caught.
    def __getattr__(self, name):
        def call(*arguments):
            return getattr(native, name)(*map(exact, arguments))
        return call

def exact(of):
    return np.array(np.frombuffer(of, np.uint8)) if isinstance(of, memoryview) else of

assert parquet_pages._loops is native
parquet_pages._loops = flat_columns._loops = Exact()
"""


def sanitised(repository: Path, folder: Path, code: str) -> str:
    """Run code that may use ``native``, the module, and return what it printed; skip without sanitisers."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no gcc here")
    library = folder / "_native.abi3.so"
    sources = sorted((repository / "pipeline/rows/chunk/native").glob("*.c"))
    flags = ["-O1", "-g", "-std=c11", "-fwrapv", "-ffp-contract=off", "-fno-sanitize-recover=all"]
    sanitisers = ["-fsanitize=address,undefined", "-shared", "-fPIC", f"-I{sysconfig.get_paths()['include']}"]
    subprocess.run([compiler, *flags, *sanitisers, *sources, "-o", library, "-lm"], check=True)
    preloaded = [
        subprocess.run(
            [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    if not all(path.startswith("/") for path in preloaded):
        pytest.skip("gcc has no sanitisers here")
    ran = subprocess.run(
        [sys.executable, "-c", BEGINNING + code, str(library)],
        env=os.environ
        | {
            "LD_PRELOAD": " ".join(preloaded),
            "ASAN_OPTIONS": "detect_leaks=0",
            "PYTHONMALLOC": "malloc",
            "ARROW_DEFAULT_MEMORY_POOL": "system",
            "PYTHONPATH": str(repository / "tests"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout
