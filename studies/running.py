"""One study, run and told: apart from the command, so that processes which are not forked find it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from studies.catalogue import module_of

if TYPE_CHECKING:
    from pathlib import Path

    from studies.catalogue import Study
    from studies.result import Size


def run_study(study: Study, out: Path, seed: int, size: Size) -> str:
    """Run one study, and say what it found and wrote."""
    start = time.perf_counter()
    result = module_of(study).run(out, seed, size)
    lines = [f"{study.name}: {study.paper}, {study.result}; {time.perf_counter() - start:.1f} s"]
    for row in result.rows:
        quantity, paper, ours, error, verdict, _ = row.cells()
        beside = f"; paper {paper}" if paper else ""
        lines.append(f"  {quantity}: {ours} ({error}){beside}: {verdict}")
    return "\n".join([*lines, *(f"  wrote {path}" for path in result.files)])
