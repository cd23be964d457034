"""Make the folder that an image consists of, beside its base: ``build_prefix.py STAGE PREFIX``.

Locked dependencies, `suffice` from this source tree, the bytecode and the machine code of both, an inventory
(CycloneDX), and nothing that only tests or compilers read. The Containerfile calls this. It runs as well on
any Linux with Python 3.11 to 3.13, its venv module and binutils, and needs only the standard library.

The folder holds absolute paths: it is made where it will be used. Made twice from one commit at one
``SOURCE_DATE_EPOCH``, it is equal byte for byte; its hash is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from shrink import shrink
from tree import set_times, size_of, tree_hash

HERE = Path(__file__).resolve().parent
STAGES = ("consumer", "pipeline", "drivers")
SBOM = Path("share/suffice/sbom.cdx.json")

COMPILE_KERNELS = """
import importlib, pkgutil
for name in ("chunk", "contribution", "reduce"):
    room = f"suffice.pipeline.rows.{name}"
    for module in pkgutil.walk_packages(importlib.import_module(room).__path__, room + "."):
        importlib.import_module(module.name)
"""

START = """
import pyarrow.compute, pyarrow.csv, pyarrow.dataset, pyarrow.fs, pyarrow.parquet
import scipy.linalg, scipy.optimize, scipy.special, scipy.stats
import suffice
for name in suffice.__all__:
    try:
        getattr(suffice, name)
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] not in "alembic dask distributed numba opendp sqlalchemy".split():
            raise
"""
"""What is left must start; only the extras of another stage may be missing."""

PORTABLE = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
"""Machine code for every processor of the architecture; the image's environment says the same."""


def main() -> None:
    """Make the folder and print what it weighs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("stage", choices=STAGES)
    parser.add_argument("prefix", type=Path, help="where it will be used; must not exist")
    parser.add_argument("--source", type=Path, default=HERE.parent.parent, help="the source tree")
    arguments = parser.parse_args()
    if arguments.prefix.exists():
        sys.exit(f"{arguments.prefix} exists: remove it, or name a folder that does not")
    if shutil.which("strip") is None:
        sys.exit("strip is not on PATH: install binutils")
    os.umask(0o022)
    os.environ |= {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "PIP_NO_CACHE_DIR": "1"}
    os.environ |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    epoch = int(os.environ.setdefault("SOURCE_DATE_EPOCH", "315532800"))  # the least that a zip file can hold
    with tempfile.TemporaryDirectory() as directory:
        sizes = build(arguments.stage, arguments.prefix, arguments.source, Path(directory))
    set_times(arguments.prefix, epoch)
    print(json.dumps({"stage": arguments.stage, **sizes, "tree": tree_hash(arguments.prefix)}))


def build(stage: str, prefix: Path, source: Path, scratch: Path) -> dict[str, int]:
    """Build the folder; return its bytes as installed, without what is not needed, and in the end."""
    tools = scratch / "tools"
    run(sys.executable, "-m", "venv", tools)
    install(tools, "--requirement", HERE / "requirements-build.txt")
    run(sys.executable, "-m", "venv", "--without-pip", prefix)
    python = prefix / "bin" / "python"
    install(tools, "--requirement", HERE / f"requirements-{stage}.txt", into=python)
    wheel = make_wheel(tools, source, scratch)
    # By name from a folder: a wheel that is named by its path leaves the path in the metadata.
    pip = (tools / "bin/pip", "--python", python)
    run(
        *pip,
        "install",
        "--quiet",
        "--no-deps",
        "--no-compile",
        "--no-index",
        "--find-links",
        wheel,
        "suffice",
    )
    run(*pip, "check")
    installed = size_of(prefix)
    for script in prefix.glob("bin/[Aa]ctivate*"):
        script.unlink()
    shrink(prefix)
    inventory(tools, python, prefix / SBOM)
    shrunk = size_of(prefix)
    compile_all(python, prefix, stage)
    return {"installed": installed, "shrunk": shrunk, "with_bytecode": size_of(prefix)}


def install(tools: Path, *arguments: str | Path, into: Path | None = None) -> None:
    """Install wheels with known hashes, and nothing else."""
    python = ("--python", into) if into else ()
    flags = ("--quiet", "--require-hashes", "--only-binary=:all:", "--no-compile", "--no-deps")
    run(tools / "bin/pip", *python, "install", *flags, *arguments)


def make_wheel(tools: Path, source: Path, scratch: Path) -> Path:
    """Build the wheel from a copy: a build leaves folders beside the source."""
    copy, wheels = scratch / "source", scratch / "wheels"
    copy.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy2(source / name, copy)
    for name in ("src", "flows", "pipeline", "storage"):
        shutil.copytree(
            source / name, copy / name, symlinks=True, ignore=shutil.ignore_patterns("*.py[cod]", "*.so")
        )
    run(
        tools / "bin/pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        wheels,
        copy,
    )
    return wheels


def inventory(tools: Path, python: Path, out: Path) -> None:
    """List what is installed, from its metadata."""
    out.parent.mkdir(parents=True)
    run(
        *(tools / "bin/cyclonedx-py", "environment", "--output-reproducible", "--output-format", "JSON"),
        *("--output-file", out, python),
    )


def compile_all(python: Path, prefix: Path, stage: str) -> None:
    """Keep bytecode and machine code: nothing can be written where the image runs."""
    packages = next(prefix.glob("lib/python3*/site-packages"))
    # Bytecode that is never compared with its source: times and a read-only root do not matter.
    mode = "--invalidation-mode=unchecked-hash"
    run(python, "-c", START)
    run(python, "-m", "compileall", "-q", mode, packages)
    if stage != "consumer":
        run(python, "-c", COMPILE_KERNELS, environment=PORTABLE)
        forget_addresses(prefix)


def forget_addresses(prefix: Path) -> None:
    """Put zeros for addresses in memory: numba keeps a listing of what it compiled, which names them."""
    for path in prefix.rglob("*.nbc"):
        content = path.read_bytes()
        path.write_bytes(
            re.sub(rb"(?<= at 0x)[0-9a-f]+(?=>)", lambda address: b"0" * len(address[0]), content)
        )


def run(*command: str | Path, environment: dict[str, str] | None = None) -> None:
    """Run a step; what it says goes to the log of the build."""
    subprocess.run([str(part) for part in command], check=True, env=os.environ | (environment or {}))


if __name__ == "__main__":
    main()
