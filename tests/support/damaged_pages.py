"""python -m support.damaged_pages FIRST LAST FOLDER [MODULE]: damaged files, one a seed, read in both ways.

The process ends with another code than 0 where they differ, or where a sanitiser speaks; the seed at which it
was stands in FOLDER/seed. MODULE is a build of the loops in C.
"""

from __future__ import annotations

import importlib.util
import os
import random
import sys
from pathlib import Path


def main(first: int, last: int, folder: Path, module: str | None) -> None:
    """Compare, and print how many files pages read wholly, partly or not at all."""
    from suffice.pipeline.rows.chunk import jit

    if module is not None:
        spec = importlib.util.spec_from_file_location("_native", module)
        assert spec is not None and spec.loader is not None
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
        choose = random.Random(seed)
        content = paged_files.damaged(choose.choice(contents), choose)
        path = folder / "file.parquet"
        columns = (choose.choice(paged_files.COLUMNS),) if choose.random() < 0.6 else paged_files.COLUMNS
        if os.environ.get("ARROW_ALONE"):
            path.write_bytes(content)
            paged_files.read(path, columns, by_pages=False)
            continue
        served += paged_files.compare(content, path, columns) > 0
        refused += paged_files.read(path, columns, by_pages=False)[0] == paged_files.REFUSED
    print(f"{last - first} files: {served} with rows by pages, {refused} refused")


if __name__ == "__main__":
    arguments = sys.argv[1:]
    main(int(arguments[0]), int(arguments[1]), Path(arguments[2]), arguments[3] if len(arguments) > 3 else None)
