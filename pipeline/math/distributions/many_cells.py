"""Batches of cells on threads, by loops that hold no lock of the interpreter."""

from __future__ import annotations

import functools
import importlib.util
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from suffice.pipeline.cluster.processors import processors

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")


@functools.cache
def is_compiled() -> bool:
    """Whether there is what compiles loops."""
    return importlib.util.find_spec("numba") is not None


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
