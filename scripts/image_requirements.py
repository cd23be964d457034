"""Lock what the images install: ``python -m scripts.image_requirements``.

Writes ``deploy/image/requirements-*.txt``: every distribution that a stage needs, at the version of
``constraints.txt``, with the hashes of its files. It asks the package index, by uv (``pip install uv``);
what it wrote is checked without one by ``tests/deploy/test_image.py``. Tools of the build that
``constraints.txt`` does not name keep the version that is locked until ``--upgrade``.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
FOLDER = REPOSITORY / "deploy" / "image"

STAGES = {
    "consumer": ("plot", "signing"),
    "pipeline": ("pipeline", "postgres", "postgres-source", "signing"),
    "drivers": ("pipeline", "postgres", "signing", *("postgres-source", "delta", "iceberg", "duckdb")),
}
"""The extras of each stage."""

BUILD_TOOLS = ("cyclonedx-bom>=7", "pip>=25", "setuptools>=77")
"""What builds the wheel, installs it and lists what is in the image; none of it is in an image."""

HEAD = """\
# Written by `python -m scripts.image_requirements`: versions from constraints.txt, hashes from the index.
"""


def main() -> None:
    """Write the files of all stages."""
    parser = argparse.ArgumentParser(description="Lock what the images install.")
    parser.add_argument("--upgrade", action="store_true", help="take the newest tools of the build")
    arguments = parser.parse_args()
    uv = shutil.which("uv")
    if uv is None:
        sys.exit("uv is not on PATH: pip install uv")
    with tempfile.TemporaryDirectory() as directory:
        tools = Path(directory) / "tools.in"
        tools.write_text("\n".join(BUILD_TOOLS) + "\n")
        _lock(uv, "build", [str(tools), *(["--upgrade"] if arguments.upgrade else [])])
    for stage, extras in STAGES.items():
        _lock(uv, stage, ["pyproject.toml", *(f"--extra={extra}" for extra in extras)])


def _lock(uv: str, stage: str, inputs: list[str]) -> None:
    """Write one file, from what it holds: uv keeps a version that still fits."""
    out = FOLDER / f"requirements-{stage}.txt"
    with tempfile.TemporaryDirectory() as directory:
        resolved = Path(directory) / "requirements.txt"
        if out.exists():
            resolved.write_text(out.read_text())
        subprocess.run(
            [
                uv,
                "pip",
                "compile",
                *inputs,
                "--no-config",
                "--universal",
                "--python-version=3.11",
                "--constraints=constraints.txt",
                "--generate-hashes",
                "--no-header",
                "--no-annotate",
                "--no-emit-index-url",
                "--quiet",
                f"--output-file={resolved}",
            ],
            cwd=REPOSITORY,
            check=True,
        )
        out.write_text(HEAD + _for_linux(resolved.read_text()))


def _for_linux(requirements: str) -> str:
    """Leave out what only other systems install: a requirement and the indented lines of its hashes."""
    entries = re.split(r"\n(?=\S)", requirements.strip())
    return "".join(f"{entry}\n" for entry in entries if "== 'win32'" not in entry)


if __name__ == "__main__":
    main()
