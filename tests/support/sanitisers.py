"""Builds of the loops in C under sanitisers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

REPOSITORY = Path(__file__).resolve().parents[2]
NATIVE = REPOSITORY / "pipeline/rows/chunk/native"
FUZZ = REPOSITORY / "tests/fuzz"
KERNELS = ("chunk", "values", "units", "page_headers", "page_codes")
"""Files of kernels, in the order of the tables in kernels.c."""
_FLAGS = ("-O1", "-g", "-std=c11", "-ffp-contract=off", "-fno-sanitize-recover=all")
_SANITISERS = "-fsanitize=address,undefined,float-cast-overflow"


def library(folder: Path) -> tuple[Path, dict[str, str]]:
    """Build the module by gcc; return it, and the variables of a process that loads it."""
    compiler, built = _gcc(), folder / "_native.abi3.so"
    flags = [*_FLAGS, _SANITISERS, "-fwrapv", "-shared", "-fPIC", f"-I{sysconfig.get_paths()['include']}"]
    subprocess.run([compiler, *flags, *sorted(NATIVE.glob("*.c")), "-o", built, "-lm"], check=True)
    preloaded = " ".join(_runtimes(compiler))
    return built, os.environ | {"LD_PRELOAD": preloaded, "ASAN_OPTIONS": "detect_leaks=0"}


def replay(folder: Path) -> Path:
    """Build by gcc what does inputs of the fuzzer again."""
    return _program(_gcc(), folder / "replay", [FUZZ / "replay.c"], counted=(), linked=())


def fuzzer(folder: Path) -> Path:
    """Build the fuzzer by clang, which counts what is reached of the kernels, but not of what calls them."""
    counted, linked = ["-fsanitize=fuzzer-no-link"], ["-fsanitize=fuzzer"]
    return _program("clang", folder / "fuzzer", [], counted=counted, linked=linked)


def _program(
    compiler: str, program: Path, main: Iterable[Path], *, counted: Sequence[str], linked: Sequence[str]
) -> Path:
    """Build a program of the kernels; of those that read pages nothing may wrap."""
    objects = []
    for source in (*(NATIVE / f"{name}.c" for name in KERNELS), FUZZ / "kernels.c", *main):
        flags = [*_FLAGS, _SANITISERS, f"-I{NATIVE}", *(counted if source.parent == NATIVE else ())]
        flags += [] if source.name.startswith("page") else ["-fwrapv"]
        objects.append(program.with_name(f"{program.name}-{source.stem}.o"))
        subprocess.run([compiler, *flags, "-c", source, "-o", objects[-1]], check=True)
    subprocess.run([compiler, _SANITISERS, *linked, *objects, "-o", program, "-lm"], check=True)
    return program


def _gcc() -> str:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no gcc here")
    if not all(path.startswith("/") for path in _runtimes(compiler)):
        pytest.skip("gcc has no sanitisers here")
    return compiler


def _runtimes(compiler: str) -> list[str]:
    asked = [[compiler, f"-print-file-name={name}"] for name in ("libasan.so", "libubsan.so")]
    return [subprocess.run(each, capture_output=True, text=True, check=True).stdout.strip() for each in asked]
