"""Batches of cells on threads, by loops that hold no lock of the interpreter."""

from __future__ import annotations

import functools
import importlib.util
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from suffice.pipeline.cluster.processors import processors

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")


@functools.cache
def is_compiled() -> bool:
    """Whether there is what compiles loops."""
    return importlib.util.find_spec("numba") is not None


def is_kept(module: str) -> bool:
    """Whether machine code of a module's loops is on disk, and no older than the module."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return False
    source = Path(spec.origin)
    index = f"{source.stem}.*.nbi"
    # Where numba keeps it: beside the module, or where the environment says, in a folder for each of ours.
    kept = list((source.parent / "__pycache__").glob(index))
    if folder := os.environ.get("NUMBA_CACHE_DIR"):
        kept = list(Path(folder).glob(f"*/{index}"))
    return any(path.stat().st_mtime >= source.stat().st_mtime for path in kept)


def on_threads(
    work: Callable[[slice], Result], cells: int, size: int, threads: int | None = None
) -> list[Result]:
    """Return what is made of each batch of consecutive cells, in order, for any number of threads.

    Parameters
    ----------
    work : callable
        The cells of a batch -> what is made of them.
    cells, size : int
        How many cells there are, and how many a batch has at most.
    threads : int, optional
        As many as this process may use processors by default.
    """
    batches = [slice(start, min(start + size, cells)) for start in range(0, cells, size)]
    workers = min(threads or processors(), len(batches))
    if workers < 2:
        return [work(batch) for batch in batches]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, batches))
