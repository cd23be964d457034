"""python -m support.damaged_pages FIRST LAST FOLDER [MODULE]: damaged files, one a seed, read in both ways.

It ends with another code than 0 where they differ, or where a sanitiser speaks. A file of which Arrow alone
ends the process, as it does of damaged footers, is counted. MODULE is a build of the loops in C.
"""

from __future__ import annotations

import importlib.util
import os
import random
import subprocess
import sys
from pathlib import Path

_BY_ARROW = "SUFFICE_BY_ARROW_ALONE"
_CHILD = "SUFFICE_DAMAGED_CHILD"


def main(first: int, last: int, folder: Path, module: list[str]) -> int:
    """Have other processes compare, as each may end; print what they say, and return a code of exit."""
    ended = 0
    while first < last:
        ran = _child(first, min(first + 500, last), folder, module, {})
        sys.stdout.write(ran.stdout)
        sys.stdout.flush()
        if ran.returncode == 0:
            first += 500
            continue
        if not (folder / "seed").exists():
            sys.stderr.write(ran.stderr)
            return 1
        seed = int((folder / "seed").read_text())
        by_arrow = _child(seed, seed + 1, folder, module, {_BY_ARROW: "1"})
        if by_arrow.returncode >= 0 or by_arrow.returncode != ran.returncode:
            sys.stderr.write(f"seed {seed}: {ran.returncode}\n{ran.stderr}\n")
            return 1
        first, ended = seed + 1, ended + 1
    sys.stdout.write(f"{ended} files ended Arrow's own process\n")
    return 0


def _child(
    first: int, last: int, folder: Path, module: list[str], variables: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    arguments = [str(first), str(last), str(folder), *module]
    return subprocess.run(
        [sys.executable, "-m", "support.damaged_pages", *arguments],
        env=os.environ | {_CHILD: "1"} | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def compare_files(first: int, last: int, folder: Path, module: list[str]) -> None:
    """Compare, and print how many files pages read wholly or partly, and how many are refused."""
    from suffice.pipeline.rows.chunk import jit

    if module:
        spec = importlib.util.spec_from_file_location("_native", module[0])
        assert spec is not None
        assert spec.loader is not None
        jit.MODULE = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(jit.MODULE)
    from support import paged_files

    paged_files.every_row_group_is_served(setattr)
    contents = [path.read_bytes() for path in paged_files.base_files(folder)]
    for content in contents:
        assert paged_files.compare(content, folder / "file.parquet") > 0
    served = refused = 0
    for seed in range(first, last):
        (folder / "seed").write_text(str(seed))
        choose = random.Random(seed)  # noqa: S311 - damage, no noise
        content = paged_files.damaged(choose.choice(contents), choose)
        path = folder / "file.parquet"
        columns = (choose.choice(paged_files.COLUMNS),) if choose.random() < 0.6 else paged_files.COLUMNS
        if _BY_ARROW not in os.environ:
            served += paged_files.compare(content, path, columns) > 0
        path.write_bytes(content)
        refused += paged_files.read(path, columns, by_pages=False)[0] == paged_files.REFUSED
    sys.stdout.write(f"{last - first} files: {served} with rows by pages, {refused} refused\n")


if __name__ == "__main__":
    first, last, folder, *module = sys.argv[1:]
    if _CHILD in os.environ:
        compare_files(int(first), int(last), Path(folder), module)
    else:
        sys.exit(main(int(first), int(last), Path(folder), module))
