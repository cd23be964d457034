"""What tests of every layer may use."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def repository() -> Path:
    """Return the top of the source tree."""
    return REPOSITORY


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build ``sdist/`` and the ``wheel/`` made from it, and a wheel straight from the ``tree/``; offline."""
    work = tmp_path_factory.mktemp("distributions")
    tree = work / "source"
    tree.mkdir()
    for name in ("LICENSE", "README.md", "pyproject.toml"):
        shutil.copy(REPOSITORY / name, tree)
    for name in ("flows", "pipeline", "src", "storage"):
        shutil.copytree(
            REPOSITORY / name,
            tree / name,
            symlinks=True,
            ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"),
        )
    for options, out in ((["--sdist", "--wheel"], "tree"), ([], "sdist")):
        run_build(tree, work / out, options)
    return work


def run_build(tree: Path, out: Path, options: list[str]) -> None:
    """Build distributions with the tools that are installed."""
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", *options, "--outdir", str(out), str(tree)],
        check=True,
        capture_output=True,
    )
